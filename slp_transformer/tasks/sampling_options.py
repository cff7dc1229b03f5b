"""The sampling options as flags of `generate` and `evaluate`, made from the table `SAMPLING`."""

from dataclasses import dataclass, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any

from slp_transformer._internal.sampling_table import SAMPLING, validate_sampling_options
from slp_transformer.tasks.data_settings import arg


def setting_to_flag(name: str) -> str:
    """Return the flag of an option."""
    return f"--{name.replace('_', '-')}"


@dataclass(frozen=True)
class SamplingFlags:
    """How the next token is drawn: a field for each entry of `SAMPLING`, None if not given."""

    def __post_init__(self) -> None:
        """Refuse numbers that no distribution can be drawn with, and what has no effect.

        Raises:
            ValueError: naming the flag.
        """
        validate_sampling_options(self.to_dict(), setting_to_flag)

    def to_dict(self) -> dict[str, Any]:
        """Return the options as `generate` takes them: those given, and the commands' defaults."""
        found = {}
        for name, option in SAMPLING.items():
            value = getattr(self, name, None)
            value = option.flag_default if value is None else value
            if value is not None:
                found[name] = value
        return found


def make_sampling_options_class() -> type[SamplingFlags]:
    """Return the dataclass whose fields are the entries that `SAMPLING` has now."""
    flags = []
    for name, option in SAMPLING.items():
        default = "" if option.flag_default is None else f" [{option.flag_default}]"
        # The type is a value here, which mypy takes for no type.
        kind: Any = Annotated[type(option.example) | None, arg(help=f"{option.summary}{default}.")]
        flags.append((name, kind, None))
    return make_dataclass("SamplingOptions", flags, bases=(SamplingFlags,), frozen=True)


if TYPE_CHECKING:  # the fields of the class below are the table's
    SamplingOptions = SamplingFlags
else:
    SamplingOptions = make_sampling_options_class()
