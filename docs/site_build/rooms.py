"""The pages of the reference: one for each module of equations, and one for each package."""

from dataclasses import dataclass

from reading import PACKAGE

MODULES = [
    *("attention", "multi_head", "layer_norm", "feedforward", "block", "embedding", "config"),
    *("language_model", "encoder_decoder", "masks", "cache", "loss", "sampling", "scaling_laws"),
    *("model_sizes", "lora", "hooks"),
]
PACKAGES = [
    *("modern", "generation", "interpret", "data", "training", "guitar", "tasks", "plotting"),
    "check",
]


@dataclass(frozen=True)
class Room:
    """One page of the reference.

    Attributes:
        name: the module or package, within `slp_transformer`.
        modules: the dotted names of what the page describes, its own first.
    """

    name: str
    modules: tuple[str, ...]

    @property
    def path(self) -> str:
        """The page's source."""
        return f"api/{self.name}.md"

    @property
    def is_package(self) -> bool:
        """Whether it is a folder."""
        return self.name in PACKAGES or len(self.modules) > 1

    @property
    def is_listed(self) -> bool:
        """Whether the navigation names it; others are found by links and by the search.

        People use `cli` through commands, which have pages of their own.
        """
        return self.name in MODULES or self.name in PACKAGES


def arranged(modules: dict) -> list[Room]:
    """All pages: modules of equations, packages, and what is not listed."""
    inside: dict[str, list[str]] = {}
    for name in sorted(modules):
        first = name.removeprefix(PACKAGE + ".").split(".")[0]
        inside.setdefault(first, []).append(name)
    rooms = [Room(name, tuple(names)) for name, names in inside.items()]
    order = [*MODULES, *PACKAGES]

    def place(room: Room) -> tuple:
        known = order.index(room.name) if room.name in order else len(order)
        return (known, not room.is_package, room.name)

    return sorted(rooms, key=place)


def path_of(module: str) -> str:
    """The source of the page on which a module stands."""
    return f"api/{module.removeprefix(PACKAGE + '.').split('.')[0]}.md"


def url_of(module: str) -> str:
    """Where a module is found."""
    page = path_of(module).removesuffix(".md") + "/"
    return page if module.count(".") == 1 else f"{page}#{module}"


def markdown(room: Room, members: dict[str, list[str]]) -> str:
    """A page for mkdocstrings: what a package offers, then each of its modules.

    Args:
        room: what the page is about.
        members: what each module has that its package does not offer.
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
