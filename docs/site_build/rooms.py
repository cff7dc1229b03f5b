"""The rooms of the reference: a page for each module of the ground floor, and one for each wing."""

from dataclasses import dataclass

from reading import PACKAGE

GROUND = [
    *("shapes", "matrices", "attention", "heads", "layer_norm", "feedforward", "block"),
    *("embedding", "config", "language_model", "encoder_decoder", "cache", "loss", "sampling"),
    *("scale", "lora", "points"),
]
WINGS = [
    *("decoding", "training", "beyond", "interpret", "check", "fast"),
    *("text", "guitar", "translation", "tokens", "files", "show", "recipes"),
]
# What people use through commands: the pages "Command line" and "Cluster" tell of it.
NOT_LISTED = ("command_line",)


@dataclass(frozen=True)
class Room:
    """One page of the reference.

    Attributes:
        name: the module or wing, within the package.
        modules: the dotted names of what stands on the page, the room itself first.
    """

    name: str
    modules: tuple[str, ...]

    @property
    def path(self) -> str:
        """The page's source."""
        return f"api/{self.name}.md"

    @property
    def is_wing(self) -> bool:
        """Whether it is a folder."""
        return self.name in WINGS or len(self.modules) > 1

    @property
    def is_listed(self) -> bool:
        """Whether the navigation names it; helpers are found by links and by the search."""
        known = self.is_wing or self.name in GROUND
        return known and self.name not in NOT_LISTED


def arranged(modules: dict) -> list[Room]:
    """All rooms: the ground floor from the bottom up, the wings, and helpers last."""
    inside: dict[str, list[str]] = {}
    for name in sorted(modules):
        first = name.removeprefix(PACKAGE + ".").split(".")[0]
        inside.setdefault(first, []).append(name)
    rooms = [Room(name, tuple(names)) for name, names in inside.items()]
    order = [*GROUND, *WINGS]

    def place(room: Room) -> tuple:
        known = order.index(room.name) if room.name in order else len(order)
        return (known, not room.is_wing, room.name)

    return sorted(rooms, key=place)


def path_of(module: str) -> str:
    """The source of the page on which a module stands."""
    return f"api/{module.removeprefix(PACKAGE + '.').split('.')[0]}.md"


def url_of(module: str) -> str:
    """Where a module is found."""
    page = path_of(module).removesuffix(".md") + "/"
    return page if module.count(".") == 1 else f"{page}#{module}"


def markdown(room: Room, members: dict[str, list[str]]) -> str:
    """The page of a room, for mkdocstrings: what a wing offers, then each of its modules.

    Args:
        room: what the page is about.
        members: what each module has that its wing does not offer.
    """
    own = f"{PACKAGE}.{room.name}"
    lines = [f"# <code>{room.name}</code>", "", f"::: {own}", ""]
    for module in room.modules[1:]:
        title = module.removeprefix(PACKAGE + ".").replace(".", ".<wbr>")  # where a line may break
        names = ", ".join(members[module])
        lines += [f"## <code>{title}</code> {{ #{module} }}", "", f"::: {module}", "    options:"]
        lines += [
            "      heading_level: 3",
            f"      members: [{names}]" if names else "      members: false",
            "",
        ]
    return "\n".join(lines)
