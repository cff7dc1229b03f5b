"""How published models write down their rotations, in the older form and the newer."""

from typing import Any, get_type_hints

from slp_transformer._internal.model_choices import ROPE_SCALINGS
from slp_transformer.modern.config import ModernConfig, RopeScaling
from slp_transformer.modern.hf_config import HFConfigReader


def read_rope(settings: HFConfigReader) -> dict[str, Any]:
    """Return the base of the frequencies and their scaling, in the older form or the newer.

    Raises:
        ValueError: if they are scaled in a way that we don't have, or in two ways.
    """
    older, newer = (settings.get(name, dict, {}) for name in ("rope_scaling", "rope_parameters"))
    same = (newer.get("rope_type" if name == "type" else name) == older[name] for name in older)
    if newer and not all(same):
        settings.refuse("rope_scaling", older, "rope_parameters say otherwise: keep one of the two")
    content = older | newer
    rope = HFConfigReader(content, f"{settings.source}, rope_parameters")
    known = {"type", "rope_type", "rope_theta", "partial_rotary_factor"}
    known |= {theirs for choice in ROPE_SCALINGS.values() for theirs in choice.published.values()}
    if unknown := set(content) - known:
        rope.refuse(min(unknown), content[min(unknown)], "there is no such part here")
    base = rope.get_optional("rope_theta", float) or settings.get("rope_theta", float, 10000.0)
    rope.require(partial_rotary_factor=1.0)
    rope_type = rope.get_optional("rope_type", str) or rope.get("type", str, "default")
    if rope_type == "default":
        return {"rope_base": base}
    if rope_type not in ROPE_SCALINGS:
        rope.refuse("rope_type", rope_type, f"known are default, {', '.join(ROPE_SCALINGS)}")
    types = get_type_hints(RopeScaling)
    published = ROPE_SCALINGS[rope_type].published
    numbers = {ours: rope.get(theirs, types[ours]) for ours, theirs in published.items()}
    return {"rope_base": base, "rope_scaling": RopeScaling(rope_type, **numbers)}


def write_rope(config: ModernConfig) -> dict[str, Any]:
    """Return the settings of the rotations, in the newer form and the older."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rope_base}
    written = {"rope_parameters": rope, "rope_theta": config.rope_base}
    if (scaling := config.rope_scaling) is not None:
        published = ROPE_SCALINGS[scaling.rope_type].published
        rope["rope_type"] = scaling.rope_type
        rope |= {theirs: getattr(scaling, ours) for ours, theirs in published.items()}
        written["rope_scaling"] = rope
    return written
