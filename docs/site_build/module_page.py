"""The pages of the reference: kept from one build of a server to the next, and linked both ways."""

import html
import re

import linking
import reference
from chapter_page import note
from rooms import url_of
from state import relative, site


def kept(uri: str) -> dict | None:
    """What a server still has of a page of the reference; a build renders all afresh."""
    key = site.reference_keys.get(uri) if site.serving else None
    return site.reference.page(uri, key) if key else None


def shown_as(name: str) -> str:
    """The anchor of an object, by any of its names: what a wing offers stands under that name."""
    for length in range(name.count("."), 0, -1):
        whole = name.split(".")
        outer, inner = ".".join(whole[: length + 1]), whole[length + 1 :]
        outer = site.definitions.get(outer, outer)
        if outer in site.shown_as:
            return ".".join([site.shown_as[outer], *inner])
        if outer != ".".join(whole[: length + 1]):
            return ".".join([outer, *inner])
    return name


def url_of_object(name: str) -> str:
    """Where an object of the package is shown, from the top of the site."""
    module = max((m for m in site.modules if f"{name}.".startswith(f"{m}.")), key=len)
    return url_of(module).partition("#")[0] + "#" + shown_as(name)


def defined_as(name: str) -> str:
    """The name of an object where it is defined, by its anchor."""
    for anchor, definition in site.definitions.items():
        if name == anchor or name.startswith(anchor + "."):
            return definition + name.removeprefix(anchor)
    return name


def resolved(content: str, page) -> str:
    """A page whose references lead to where a thing is shown, by whatever name they asked for it.

    Links to the kept pages of the reference are made here: the autorefs plugin has not heard of
    them.
    """
    if "<autoref" not in content:
        return content
    content = reference.renamed(content, shown_as)
    urls = {name: relative(url_of(name), page) for name in site.modules}
    for room in site.rooms:
        url = relative(url_of(room.modules[0]), page)
        if found := kept(room.path):
            names = reference.ID.findall(found["content"])
        elif site.deferring:
            paths = [site.modules[name] for name in room.modules]
            names = [shown_as(n) for path in paths for n in linking.public_names(path, site.root)]
        else:
            names = []
        urls |= {name: f"{url}#{name}" for name in names}
    return reference.resolve(content, urls, forget=site.deferring)


def with_links_back(content: str, page) -> str:
    """A page of the reference with links to the chapters that explain or use what it describes."""

    def back(match: re.Match) -> str:
        name = defined_as(match[2])
        word = "Explained" if name in site.explained_in else "Used"
        stems = site.explained_in.get(name) or site.used_in.get(name, [])
        links = ", ".join(
            f'<a href="{relative(f"chapters/{stem}/", page)}">{html.escape(title)}</a>'
            for stem in stems
            for title in [f"{site.summaries[stem].number} · {site.summaries[stem].title}"]
        )
        after = f'<p class="slp-explained">{word} in: {links}</p>' if links else ""
        return match[0] + after

    def to_equation(match: re.Match) -> str:
        equation = site.equations.get(match[1])
        if equation is None or not equation.chapters:
            return match[0]
        url = relative(f"chapters/{equation.chapters[0]}/", page) + f"#eq-{match[1]}"
        return f'<a href="{url}"><code>{match[1]}</code></a>'

    def cited(match: re.Match) -> str:
        slugs = re.findall(r"<code>([^<]+)</code>", match[0])
        linked = re.sub(r"<code>([^<]+)</code>", to_equation, match[0])
        if not all(slug in site.book.slugs for slug in slugs):
            return linked
        return f"{linked} ({site.book.place(*slugs, span='</code> to' in match[0])})"

    # Shapes and other strings in types in double quotes, as the source has them.
    content = re.sub(r"(?<=[\[ ])(?:'|&#39;)([^'&<>\n]*)(?:'|&#39;)(?=[\],])", r'"\1"', content)
    content = re.sub(r"(<span class=\"s)1\">'([^'<]*)'</span>", r'\g<1>2">"\2"</span>', content)
    group = r"<code>[^<]+</code>(?:(?:, and|,| and| to)\s+<code>[^<]+</code>)*"
    content = re.sub(
        r"<p>Source:.*?</p>", lambda p: re.sub(group, cited, p[0]), content, flags=re.DOTALL
    )
    pattern = r'<h([2-6]) id="([^"]+)" class="doc doc-heading">.*?</h\1>'
    return re.sub(pattern, back, content, flags=re.DOTALL)


PREPARING = note(
    "slp-running", "Soon …", "<p>The reference is prepared while the first chapter runs.</p>"
)
