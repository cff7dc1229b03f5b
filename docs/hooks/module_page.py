"""The pages of the reference: kept from one build of a server to the next, and linked both ways."""

import html
import re

import linking
import reference
from chapter_page import note
from state import api_path, api_url, relative, site


def kept(uri: str) -> dict | None:
    """What a server still has of a page of the reference; a build renders all afresh."""
    key = site.reference_keys.get(uri) if site.serving else None
    return site.reference.page(uri, key) if key else None


def resolved(content: str, page) -> str:
    """Links to the kept pages of the reference, of which the autorefs plugin has not heard."""
    if "<autoref" not in content:
        return content
    urls = {}
    for module, path in site.modules.items():
        uri = api_path(module)
        url = relative(api_url(module), page)
        if found := kept(uri):
            names = reference.ID.findall(found["content"])
        else:
            names = linking.public_names(path, site.root) if site.deferring else []
        urls |= {name: f"{url}#{name}" for name in names}
    return reference.resolve(content, urls, forget=site.deferring)


def with_links_back(content: str, page) -> str:
    """A page of the reference with links to the chapters that explain or use what it describes."""

    def back(match: re.Match) -> str:
        word = "Explained" if match[2] in site.explained_in else "Used"
        stems = site.explained_in.get(match[2]) or site.used_in.get(match[2], [])
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

    # Shapes and other strings in types in double quotes, as the source has them.
    content = re.sub(r"(?<=[\[ ])(?:'|&#39;)([^'&<>\n]*)(?:'|&#39;)(?=[\],])", r'"\1"', content)
    content = re.sub(r"(<span class=\"s)1\">'([^'<]*)'</span>", r'\g<1>2">"\2"</span>', content)
    content = re.sub(r"<code>([A-Za-z][\w^-]*)</code>(?=\s*\()", to_equation, content)
    pattern = r'<h([2-6]) id="([^"]+)" class="doc doc-heading">.*?</h\1>'
    return re.sub(pattern, back, content, flags=re.DOTALL)


PREPARING = note(
    "slp-running", "Soon …", "<p>The reference is prepared while the first chapter runs.</p>"
)
