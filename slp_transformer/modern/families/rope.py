"""How published models write down their rotations, in the older form and the newer."""

from typing import Any, get_type_hints

from slp_transformer.modern.config import ModernConfig, RopeScaling
from slp_transformer.modern.hf_config import HFConfigReader

ORIGINAL_LENGTH = "original_max_position_embeddings"
OLD_LENGTH = {"original_context_length": ORIGINAL_LENGTH}
PUBLISHED: dict[str, dict[str, str]] = {  # by rope_type: fields of `RopeScaling`, and their keys
    "linear": {"factor": "factor"},
    "llama3": {n: n for n in ("factor", "low_freq_factor", "high_freq_factor")} | OLD_LENGTH,
    "yarn": {n: n for n in ("factor", "beta_fast", "beta_slow", "attention_factor")} | OLD_LENGTH,
}
OPTIONAL = ("beta_fast", "beta_slow", "attention_factor")  # a config.json may leave them out


def rope_from_hf(
    settings: HFConfigReader,
    base_name: str = "rope_theta",
    share: float | None = None,
    default_base: float = 10000.0,
) -> dict[str, Any]:
    """Return the base of the frequencies and their scaling, in the older form or the newer.

    Args:
        settings: those of the model.
        base_name: how older files call the base of the frequencies.
        share: the share of columns that is rotated, if nothing else is said; None for a family
            that rotates all of them.
        default_base: the base, if nothing else is said.

    Raises:
        ValueError: if they are scaled in a way that we don't have, or in two ways.
    """
    older, newer = (settings.get(name, dict, {}) for name in ("rope_scaling", "rope_parameters"))
    same = {"rope_type" if name == "type" else name: older[name] for name in older}
    if older and newer and newer != same:  # transformers reads the older alone
        settings.refuse("rope_scaling", older, "rope_parameters say otherwise: keep one of the two")
    content = newer or older
    rope = HFConfigReader(content, f"{settings.source}, rope_parameters")
    rope_type = rope.get_optional("rope_type", str) or rope.get("type", str, "default")
    if rope_type not in ("default", *PUBLISHED):
        rope.refuse("rope_type", rope_type, f"known are default, {', '.join(PUBLISHED)}")
    published = PUBLISHED.get(rope_type, {})
    known = {"type", "rope_type", "rope_theta", "partial_rotary_factor", ORIGINAL_LENGTH}
    if unknown := set(content) - known - set(published.values()):
        rope.refuse(min(unknown), content[min(unknown)], "there is no such part here")
    base = settings.get(base_name, float, default_base)
    base = rope.get_optional("rope_theta", float) or base
    found: dict[str, Any] = {"rope_base": base}
    if share is None:
        rope.check_usual_values(partial_rotary_factor=1.0)
    else:
        found["rotary_share"] = rope.get("partial_rotary_factor", float, share)
    if not published:
        return found
    types = get_type_hints(RopeScaling)
    numbers = {
        ours: rope.get(theirs, float if ours == "attention_factor" else types[ours])
        for ours, theirs in published.items()
        if ours not in OPTIONAL or content.get(theirs) is not None
    }
    return found | {"rope_scaling": RopeScaling(rope_type, **numbers)}


def rope_to_hf(config: ModernConfig) -> dict[str, Any]:
    """Return the settings of the rotations, in the newer form and the older."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rope_base}
    written = {"rope_parameters": rope, "rope_theta": config.rope_base}
    if config.rotary_share != 1:
        rope["partial_rotary_factor"] = config.rotary_share
    if (scaling := config.rope_scaling) is not None:
        published = PUBLISHED[scaling.rope_type]
        rope["rope_type"] = scaling.rope_type
        found = {theirs: getattr(scaling, ours) for ours, theirs in published.items()}
        rope |= {theirs: value for theirs, value in found.items() if value is not None}
        written["rope_scaling"] = rope
    return written
