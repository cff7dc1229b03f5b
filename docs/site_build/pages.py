"""The parts of the pages of chapters and reference, and the lists on other pages."""

import html
import json
import re
from html import escape
from pathlib import Path

import chapter_source
import diagrams
import execution
import exercises
import figures
import links
import model_pages
import nbformat
import notebook_html
import postprocess
import previews
import reference
import short_path
from chapter_source import Chapter
from diagrams import Link
from markdown.extensions.toc import slugify
from mkdocs.exceptions import PluginError
from reference import ApiPage, short_name, url_of
from state import log, relative, site

from slp_transformer._internal.equations import Equations


def line_below_title(chapter: Chapter, page) -> str:
    """The line below a chapter's title: how long it takes, its files, and a fold with the rest."""
    stem, times = chapter.path.stem, site.times[chapter.path.stem]
    line = f"<span>{short_path.rounded(times.whole)} min</span>"
    if times.short:
        line = (
            '<span class="slp-lengths" role="group" aria-label="How much is shown">'
            f'<button type="button" aria-pressed="true">Short path · '
            f"{short_path.rounded(times.short)} min</button>"
            f'<button type="button" aria-pressed="false" data-all>All · '
            f"{short_path.rounded(times.whole)} min</button></span>"
        )
    line += f' <a href="{stem}.ipynb" download>Notebook</a>'
    line += f' <a href="{stem}.py" download>Script</a>'
    if chapter.exercises:
        line += f' <a href="{exercises_name(chapter)}" download>Exercises</a>'
    rest = [_path_note(chapter, page)]
    if site.repository:
        report = f"{site.repository}/issues/new?template=chapter.yml"
        ways = {
            "Colab": colab(f"{stem}/{stem}.ipynb"),
            "Source": f"{site.repository}/blob/main/{chapter.name}",
            "Edit": f"{site.repository}/edit/main/{chapter.name}",
            "Report a mistake": report,
        }
        rest += [f'<a href="{address}">{name}</a>' for name, address in ways.items()]
    return (
        f'<div class="slp-path" data-whole="{times.whole:.0f}" data-short="{times.short:.0f}"'
        f" data-search-exclude>{line}"
        f'<details class="slp-rest"><summary>More</summary>{" ".join(rest)}</details></div>'
    )


def with_sections_first(body: str) -> str:
    """A chapter whose line of the book's sections is a quiet one, as that of its files is."""
    return re.sub(
        r"(</h1>\s*)<p>(?=(?:Sections?|Chapters?) )", r'\1<p class="slp-sections">', body, count=1
    )


def colab(notebook: str) -> str:
    """Return the address under which Colab opens a published notebook of chapters/."""
    place = site.repository.partition("://")[2].partition("/")[2]
    published = f"github/{place}/blob/gh-pages/chapters/{notebook}"
    return f"https://colab.research.google.com/{published}"


def with_ways_to_solve(body: str, chapter: Chapter) -> str:
    """A chapter that says below "Exercises" where they can be solved."""
    if not chapter.exercises:
        return body
    name = exercises_name(chapter)
    ways = [f'<a href="{name}" download>as a notebook</a>']
    if site.repository:
        ways.insert(0, f'<a href="{colab(f"{chapter.path.stem}/{name}")}">in Colab</a>')
    own = ", in JupyterLab or any other editor of notebooks"
    said = f"<p>Solve them {' or '.join(ways)}{own if not site.repository else ''}."
    if site.serving:
        said += " Or here: Edit changes a cell, and Run checks it.</p>"
    else:
        folder = "a clone" if site.repository else "the project's folder"
        commands = 'python -m pip install -e ".[docs]"\npython -m mkdocs serve'
        said += (
            f" Or in this page, which runs its cells on your machine: two commands in {folder},"
            " and the link that the second shows.</p>"
            f'<div class="highlight"><pre><code style="--lines: 2">{commands}</code></pre></div>'
        )
    solve = f'<div class="slp-solve" data-search-exclude>{said}</div>'
    return re.sub(r'<h2 id="exercises">.*?</h2>', lambda found: found[0] + solve, body, count=1)


LIVE = {
    "model": "One sentence",
    "write": "Write with it",
    "break-it": "Break it",
    "hear": "Hear it",
    "fingering": "Finger a piece",
}
"""The pages that compute or play: each leads to the others."""


def with_siblings(content: str, page) -> str:
    """A page that computes or plays, with the way to the others of its kind."""
    own = Path(page.file.src_uri).stem
    if own not in LIVE or page.file.src_uri != f"{own}.md":
        return content
    ways = "".join(
        f'<a href="{relative(f"{name}/", page)}"{" aria-current=page" if name == own else ""}>'
        f"{title}</a>"
        for name, title in LIVE.items()
    )
    return f'<nav class="slp-live" aria-label="Live pages">{ways}</nav>{NO_SCRIPT}{content}'


NO_SCRIPT = """<noscript><p><strong>What this page computes needs JavaScript, which is off.</strong>
The chapters are whole without it.</p></noscript>"""


def modules_used(chapter: Chapter, page) -> str:
    """The line below a chapter: the modules that it uses."""
    modules = [
        f'<a href="{relative(url_of(name), page)}"><code>{short_name(name)}</code></a>'
        for name in chapter_source.modules_named(chapter)
        if name in site.modules and not re.search(r"\.(plotting|_)", name)
    ]
    used = f"Modules of this chapter: {' '.join(modules)}"
    return f'<p class="slp-links" data-search-exclude>{used}</p>' if modules else ""


def with_equations(headings: list[notebook_html.Heading], body: str) -> list[dict]:
    """Return a chapter's contents: its headings, and the equations below each."""
    known, found, level = {heading["id"]: heading for heading in headings}, [], 1
    places = re.compile(r'<h[1-6]\b[^>]*\bid="([^"]+)"|<span class="eq" id="eq-([^"]+)">')
    for heading, slug in places.findall(body):
        if heading in known:
            level = known[heading]["level"]
            found.append(known[heading])
        elif slug in site.book.slugs:
            numbers = " · ".join(site.book.numbers_of(slug))
            name = f"{numbers} {html.escape(site.book.slugs[slug]['title'])}".strip()
            found.append({"level": level + 1, "id": f"eq-{slug}", "name": name})
    return found


def exercises_name(chapter: Chapter) -> str:
    """The file name of a chapter's exercises, without their solutions."""
    return f"{chapter.path.stem}_exercises.ipynb"


def with_tests(body: str, page) -> str:
    """A chapter with a way from each of its equations to its code and to its test."""

    def ways(match: re.Match) -> str:
        found = code_and_test(match[2], page)
        if place := model_pages.places().get(match[2]):
            found.append(f'<a href="{relative("model/", page)}#{place}">numbers</a>')
        if not found:
            return match[0]
        return f'{match[0]} <span class="slp-ways-on" data-search-exclude>{" ".join(found)}</span>'

    return re.sub(r'(<span class="eq" id="eq-([^"]+)">.*?</span>)', ways, body)


def with_model(content: str, page) -> str:
    """A page with what is computed in it, if it is one of those."""
    model, player = (relative(f"assets/{name}/", page) for name in ("model", "alphatab"))
    match page.file.src_uri:
        case "index.md" if "<!-- looking -->" in content:
            link = relative("model/", page)
            content = model_pages.fill_home_piece(content, site.root, player)
            return content.replace("<!-- looking -->", model_pages.looking(site.root, link))
        case "book.md":
            return model_pages.fill_book(content, site.book)
        case "hear.md":
            heard = model_pages.stage(model_pages.pieces(site.root), player)
            return content.replace(model_pages.HEAR_MARK, heard)
        case "fingering.md":
            return model_pages.fill_fingering(content, player)
        case "write.md":
            return model_pages.fill_write(content, site.root, model, player)
        case "break-it.md":
            return model_pages.fill_mistakes(content, site.root)
        case "model.md":
            try:
                return model_pages.fill_sentence(
                    content,
                    site.root,
                    site.equations,
                    link_from(page),
                    lambda name: links.source_of(name, site.root),
                    model,
                )
            except (KeyError, ValueError) as error:
                raise PluginError(f"docs/model.md: {error}") from None
    return content


def notes(chapter: Chapter) -> str:
    """Return a note on a chapter that has not run, has failed, or lacks an alt text."""
    outputs = site.outputs[chapter.path.stem]
    if outputs is None:
        failure = _failure(chapter)
        return _failed(failure) if failure else _RUNNING_AGAIN if is_stale(chapter) else _RUNNING
    found = ""
    if site.serving:
        for sentence in execution.missing_alts(chapter, outputs):
            found += note("failure", "A figure without alt text", f"<p>{html.escape(sentence)}</p>")
            if sentence not in site.warned:
                site.warned.add(sentence)
                log.error(sentence)
    return found


def note(kind: str, title: str, body: str) -> str:
    """A box with a note, which the search does not find."""
    return (
        f'<div class="admonition {kind}" data-search-exclude>'
        f'<p class="admonition-title">{title}</p>{body}</div>'
    )


_RUNNING = note(
    "slp-running",
    "Running …",
    "<p>This chapter is being executed. Its outputs appear here when it is done.</p>",
)


_RUNNING_AGAIN = note(
    "slp-running",
    "Running again …",
    "<p>Outputs below are those of its last run, until this one is done.</p>",
)


def is_stale(chapter: Chapter) -> bool:
    """Whether a page shows the outputs of an earlier run, since the next has not ended."""
    has_new = site.outputs[chapter.path.stem] is not None or _failure(chapter) is not None
    return site.serving and not has_new and site.cache.load_stale(chapter) is not None


def _failed(failure: execution.ChapterError) -> str:
    return note("failure", "This chapter failed", f"<pre>{html.escape(str(failure))}</pre>")


def _failure(chapter: Chapter) -> execution.ChapterError | None:
    key = site.keys[chapter.path.stem]
    return site.background.failures.get(key) if site.background else None


def failed_outputs(chapter: Chapter) -> list | None:
    """The outputs up to the cell that raised."""
    failure = _failure(chapter)
    return failure.outputs if failure and failure.outputs else None


def to_chapter(match: re.Match) -> str:
    """A link from one script to the next is a link from one page to the next."""
    return f'href="../{match[1]}/' if match[1] in site.summaries else match[0]


def write(chapter: Chapter, path: Path) -> None:
    """Writes a chapter's notebook for mkdocs-jupyter, if it has changed."""
    stem = chapter.path.stem
    outputs = site.outputs[stem] or failed_outputs(chapter)
    if outputs is None and site.serving:
        outputs = site.cache.load_stale(chapter)
    plain = site.deferring and outputs is None
    made_of = (chapter, id(outputs), plain, site.figures[stem])
    if path.is_file() and site.written.get(stem) == made_of:
        return
    filled = notebook_html.filled(
        chapter.notebook, outputs, plain, site.figures[stem], live=site.serving
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    text = nbformat.writes(filled)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    site.written[stem] = made_of


def exercises_notebook(chapter: Chapter) -> str:
    """A chapter's exercises without their solutions, as a file."""
    tex = {slug: equation.tex for slug, equation in site.equations.items()}
    show = links.equations_shown(tex, site.book)
    title = exercises.title_of(chapter.script)
    made = exercises.notebook(chapter.exercises, title, show, site.repository)
    return nbformat.writes(made)


def kept(uri: str) -> dict | None:
    """Return what a server still has of a page of the reference; a build renders all."""
    key = site.reference_keys.get(uri) if site.serving else None
    return site.reference.page(uri, key) if key else None


def shown_as(name: str) -> str:
    """The anchor of an object, by any of its names: that in its package if this offers it."""
    for length in range(name.count("."), 0, -1):
        parts = name.split(".")
        outer, inner = ".".join(parts[: length + 1]), parts[length + 1 :]
        outer = site.definitions.get(outer, outer)
        if outer in site.shown_as:
            return ".".join([site.shown_as[outer], *inner])
        if outer != ".".join(parts[: length + 1]):
            return ".".join([outer, *inner])
    return name


def url_of_object(name: str) -> str:
    """Return the address of an object of the package, from the top of the site."""
    shown = shown_as(name)
    return url_of(_module_of(shown)).partition("#")[0] + "#" + shown


def _module_of(name: str) -> str:
    """Return the module whose page shows an object of this name."""
    parts = name.split(".")
    outer = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next(module for module in outer if module in site.modules)


def defined_as(name: str) -> str:
    """The name of an object where it is defined, by its anchor."""
    for anchor, definition in site.definitions.items():
        if name == anchor or name.startswith(anchor + "."):
            return definition + name.removeprefix(anchor)
    return name


def names_on(entry: ApiPage) -> list[str]:
    """The names on a page of the reference that mkdocstrings does not register in this build.

    It registers no module, and nothing of a page that is kept, or not rendered yet.
    """
    names = list(entry.modules)
    if found := kept(entry.path):
        names += reference.ids_in(found["content"])
    elif site.serving:
        inner = [m for m in site.modules if reference.is_within(m, entry)]
        all_names = [n for m in inner for n in links.public_names(site.modules[m], site.root)]
        names += [n for n in map(shown_as, all_names) if _module_of(n) in entry.modules]
    return names


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
        place = link_from(page)(match[1])
        return f'<a href="{place[0]}"><code>{match[1]}</code></a>' if place else match[0]

    def cited(match: re.Match) -> str:
        slugs = re.findall(r"<code>([^<]+)</code>", match[0])
        linked = re.sub(r"<code>([^<]+)</code>", to_equation, match[0])
        if not all(slug in site.book.slugs for slug in slugs):
            return linked
        place = f"{linked} ({site.book.format_place(*slugs, span='</code> to' in match[0])})"
        return previews.linked(place, link_from(page), site.book)

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


def link_from(page) -> Link:
    """Return the function that finds an equation's address, seen from a page."""

    def found(slug: str) -> tuple[str, str] | None:
        equation = site.equations.get(slug)
        if equation is None or not equation.chapters:
            return None
        stem = equation.chapters[0]
        url = relative(f"chapters/{stem}/", page)
        url = f"{'' if url == './' else url}#eq-{slug}"
        # Home has the numbers of the newest draft, others those of the first.
        is_home = page.url in ("", "./")
        number = equation.numbers[-1 if is_home else 0] if equation.numbers else slug
        short, _, draft = number.partition(" in the ")
        is_older = is_home and draft and draft != [*site.book.drafts.values()][-1]
        shown = f"({short}, {draft})" if is_older else f"({short})"
        text = shown if short.replace(".", "").replace("-", "").isdigit() else number
        return url, f"{text} in chapter {site.summaries[stem].number}"

    return found


def code_and_test(slug: str, page) -> list[str]:
    """The links to the code and to the test of an equation."""
    found = [way for way in ways_to(slug) if way[0] in ("Code", "Test")]
    return [f'<a href="{relative(url, page)}">{words.lower()}</a>' for words, url in found]


def ways_to(slug: str) -> list[list[str]]:
    """The words and addresses, from the top of the site, of an equation, its code and its test."""
    found = []
    if equation := site.equations.get(slug):
        for stem in equation.chapters[:1]:
            found.append([f"Chapter {site.summaries[stem].number}", f"chapters/{stem}/#eq-{slug}"])
        for name in equation.objects[:1]:
            found.append(["Code", url_of_object(name)])
    for test in site.tests_of(slug)[:1]:
        found.append(["Test", f"tests/#{test.name}"])
    return found


def diagram(page) -> str:
    """The diagram, and its parts in words."""
    link = link_from(page)
    drawings = "".join(diagrams.drawing(link, frozenset(), upright) for upright in (False, True))
    ways = {slug: " ".join(code_and_test(slug, page)) for slug in site.equations}
    parts = diagrams.parts_list(link, ways)
    return f'<figure class="slp-map">{drawings}</figure>\n{parts}'


def you_are_here(chapter: Chapter, page) -> str:
    """The diagram at the head of a chapter, with its parts marked; folded on a phone."""
    declared = {slug for slug, _ in links.declared(chapter)}
    parts = diagrams.here(site.summaries[chapter.path.stem].number, declared)
    named = diagrams.named(parts) or "the complete model"
    link = link_from(page)
    words = f"<strong>You are here:</strong> {escape(named)}"
    return (
        f'<figure class="slp-map" data-search-exclude>{diagrams.drawing(link, parts, False)}'
        f"<figcaption>{words}. Each part leads to its equation.</figcaption></figure>"
        f'<details class="slp-map-small" data-search-exclude><summary>{words}</summary>'
        f"{diagrams.drawing(link, parts, True)}</details>"
    )


def _path_note(chapter: Chapter, page) -> str:
    """What the short path has of a chapter, and where it goes on."""
    path = f'<a href="{relative("teachers/", page)}#the-short-path">short path</a>'
    stems = list(site.times)
    after = [s for s in stems[stems.index(chapter.path.stem) + 1 :] if site.times[s].short]
    goes_on = "ends here"
    if after:
        then = site.summaries[after[0]]
        url = relative(f"chapters/{after[0]}/", page)
        goes_on = f'goes on with <a href="{url}">{then.number} · {then.title}</a>'
    if not site.times[chapter.path.stem].short:
        goes_on = f"leaves this chapter out; it {goes_on}" if after else "leaves this chapter out"
    is_marked = "(whole chapter)" in chapter.script
    marks = " <em>(Whole chapter)</em> marks what it leaves out." * is_marked
    return f"<span>The {path} {goes_on}.{marks}</span>"


def measured() -> dict[str, str]:
    """The recorded runs that pages name: their folders, and what each has."""
    results = site.root / chapter_source.RESULTS
    sources = [*(site.root / "docs").glob("*.md"), *(site.root / "chapters").glob("*.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    named = set(re.findall(rf"{chapter_source.RESULTS}/(\w+)(?:`|/README\.md\))", text))
    about = results / "README.md"
    known = about.read_text(encoding="utf-8") if about.is_file() else ""
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", known, flags=re.MULTILINE)
    return {name: what for name, what in rows if name in named}


def measurements() -> str:
    """The table of the recorded runs, each of which has its page."""
    rows = [f"| [`{name}`](measurements/{name}.md) | {what} |" for name, what in measured().items()]
    return "\n".join(["| folder | what |", "|---|---|", *rows])


def measurement_page(name: str) -> str:
    """The page of a recorded run: what its folder says of it, whose headings skip no level."""
    own = (site.root / chapter_source.RESULTS / name / "README.md").read_text(encoding="utf-8")
    title, _, rest = own.partition("\n")
    blocks = re.split(r"(^```.*?^```$)", rest, flags=re.MULTILINE | re.DOTALL)
    level = 1

    def in_steps(match: re.Match[str]) -> str:
        nonlocal level
        level = max(2, min(len(match[1]), level + 1))
        return "#" * level

    steps = [re.sub(r"^(#+)(?= )", in_steps, one, flags=re.MULTILINE) for one in blocks[::2]]
    blocks[::2] = steps
    way = f"One of the [recorded runs](../measurements.md): `{chapter_source.RESULTS}/{name}`."
    return f"---\nsearch: {{exclude: true}}\n---\n\n{title}\n\n{way}\n{''.join(blocks)}"


def with_measurements(body: str, page) -> str:
    """Make the names of folders of recorded runs ways to what was recorded."""
    if f"<code>{chapter_source.RESULTS}/" not in body:
        return body
    known = measured()

    def link(match: re.Match[str]) -> str:
        place = f"measurements/{match[1]}/"
        if match[1] not in known or page.url == place:
            return match[0]
        return f'<a href="{relative(place, page)}">{match[0]}</a>'

    return re.sub(rf"<code>{chapter_source.RESULTS}/(\w+)</code>", link, body)


FOLD = re.compile(r'(<details class="slp-more")(>.*?</details><!-- /more -->)', re.DOTALL)


def with_drafts(body: str, book: Equations) -> str:
    """Mark the folds of the short path that a reader of one draft wants open.

    Their equations all stand in that draft's own chapter, and in no other draft.
    """

    def mark(fold: re.Match[str]) -> str:
        slugs = re.findall(r'<span class="eq" id="eq-([^"]+)"', fold[2])
        found = {tuple(d for d in book.drafts if book.numbers_of(slug, d)) for slug in slugs}
        draft = next(iter(found))[0] if len(found) == 1 and len(next(iter(found))) == 1 else ""
        own = f"{book.chapters[draft]['number']}." if draft else ""
        if not own or not all(book.numbers_of(s, draft)[0].startswith(own) for s in slugs):
            return fold[0]
        return f'{fold[1]} data-draft="{draft}"{fold[2]}'

    return FOLD.sub(mark, body)


def with_times(markdown: str) -> str:
    """A page of docs/ with how long chapters take: both sums, a table, or one of them alone."""
    short, whole = (sum(getattr(t, of) for t in site.times.values()) for of in ("short", "whole"))
    rows = [
        f'| <a href="../chapters/{stem}/">{s.number} · {s.title}</a> '
        f"| {short_path.rounded(times.short) or '–'} "
        f"| {short_path.rounded(times.whole)} |"
        for stem, times in site.times.items()
        for s in [site.summaries[stem]]
    ]
    head = ["| chapter | short path | all of it |", "|---|---|---|"]
    minutes = {site.summaries[stem].number: times.whole for stem, times in site.times.items()}
    markdown = markdown.replace("<!-- hours of the path -->", short_path.in_hours(short))
    markdown = markdown.replace("<!-- hours -->", short_path.in_hours(whole))
    markdown = markdown.replace("<!-- times -->", "\n".join([*head, *rows]))
    one = r"<!-- minutes of (\w+) -->"
    return re.sub(one, lambda found: str(short_path.rounded(minutes[found[1]])), markdown)


def card(summary: links.Summary, page) -> str:
    """A chapter on the landing page."""
    url = relative(f"chapters/{summary.stem}/", page)
    # Those of the newest draft, until a reader has chosen another.
    shown = list(summary.equations.values())[-1]
    of = "".join(f' data-of-{draft}="{numbers}"' for draft, numbers in summary.equations.items())
    equations = f'<span class="slp-card-eq"{of}>{shown}</span>'
    return (
        f'<li><a href="{url}"><span class="slp-card-number">{summary.number}</span>'
        f"<strong>{html.escape(summary.title)}</strong>{equations}"
        f"<span>{_code_marks(summary.text)}</span></a></li>"
    )


def with_newest_numbers(markdown: str, book: Equations) -> str:
    """Return a page whose labels have the number of the newest draft alone, where that has one."""
    newest = next(reversed(book.drafts), "")

    def label(found: re.Match) -> str:
        slug = found[2].partition(" · ")[0].strip()
        number = book.slugs.get(slug, {}).get(newest)
        return f"{found[1]}{slug} · {number}</span>" if number else found[0]

    return re.sub(r'(<span class="eq">)([^<]+)</span>', label, markdown)


def draft_choice(book: Equations) -> str:
    """The choice of the draft whose numbers all pages show, the newest first; and one's own PDF."""
    options = "".join(
        f'<option value="{draft}">{name}</option>' for draft, name in reversed(book.drafts.items())
    )
    return (
        '<form class="slp-filter"><label>Numbers of equations: '
        f'<select id="slp-draft">{options}</select></label>'
        '<span>or open <a href="book/">your own PDF of the chapter</a>: each equation has its'
        " code beside it</span></form>"
    )


def source(match: re.Match) -> str:
    """The source of an object that the landing page asks for."""
    try:
        code = links.source_of(match[1], site.root)
    except KeyError:
        raise PluginError(f"docs/index.md asks for {match[1]}, which the package lacks.") from None
    return f"```python\n{code}\n```"


def equation_table(page) -> str:
    """Every equation: its formula and numbers, its chapter, its code, and its tests."""
    rows = []
    for equation in site.equations.values():
        if equation.slug not in site.book.slugs:
            raise PluginError(f"equations.toml has no {equation.slug!r}.")
        where = ", ".join(
            f'<a href="{relative(f"chapters/{stem}/", page)}#eq-{equation.slug}">'
            f"{html.escape(site.summaries[stem].title)}</a>"
            for stem in equation.chapters
        )
        objects = "<br>".join(
            f'<autoref identifier="{name}" optional><code>{_short(name)}</code></autoref>'
            for name in equation.objects
        )
        tests = "<br>".join(
            f'<a href="{relative("tests/", page)}#{test.name}">{html.escape(test.claim)}</a>'
            for test in site.tests_of(equation.slug)
        )
        numbers = f'<span class="slp-quiet">{" · ".join(equation.numbers)}</span>'
        name = f'<code id="{html.escape(equation.slug)}">{html.escape(equation.slug)}</code>'
        name += f"<br>{html.escape(site.book.slugs[equation.slug]['title'])}"
        formula = ""
        if equation.tex:
            formula = f'<div class="slp-formula">$${html.escape(equation.tex)}$$</div>'
        cells = (f"{name}<br>{numbers}", formula, where or "to come", objects)
        # On a phone, where rows are cards, each names what it is.
        heads = ("", "", ' data-head="Chapter"', ' data-head="Code"')
        row = "".join(f"<td{head}>{cell}</td>" for head, cell in zip(heads, cells, strict=True))
        row += f'<td data-head="Tests" data-search-exclude>{tests}</td>'
        rows.append(f'<tr data-in="{" ".join(equation.chapters)}">{row}</tr>')
    chapters = [(stem, f"{s.number} · {s.title}") for stem, s in site.summaries.items()]
    tools = model_pages.template("equations.html")
    return (
        tools.render(chapters=chapters, drafts=site.book.drafts, count=len(rows))
        + '<div class="slp-wide slp-equations" tabindex="0"><table><thead><tr><th>Equation</th>'
        "<th>Formula</th><th>Chapter</th><th>Code</th><th>Tests</th></tr></thead><tbody>"
        + "".join(rows)
        + "</tbody></table></div>"
    )


def equation_places() -> list[tuple[str, list[str], str]]:
    """Return of each equation that a chapter shows its address, its numbers, and its title."""
    return [
        (
            f"chapters/{equation.chapters[0]}/#eq-{equation.slug}",
            site.book.numbers_of(equation.slug),
            site.book.slugs[equation.slug]["title"],
        )
        for equation in site.equations.values()
        if equation.chapters and equation.slug in site.book.slugs
    ]


def equations_json() -> str:
    """The index of equations for programs."""
    return json.dumps(
        [
            {
                "slug": equation.slug,
                "title": site.book.slugs[equation.slug]["title"],
                "numbers": equation.numbers,
                "drafts": {
                    draft: numbers
                    for draft in site.book.drafts
                    if equation.slug in site.book.slugs
                    and (numbers := site.book.numbers_of(equation.slug, draft))
                },
                "tex": equation.tex,
                "chapters": [f"chapters/{stem}/#eq-{equation.slug}" for stem in equation.chapters],
                "code": equation.objects,
                "tests": [test.id for test in site.tests_of(equation.slug)],
            }
            for equation in site.equations.values()
        ],
        indent=1,
        ensure_ascii=False,
    )


def figures_json() -> str:
    """Where each figure and exercise of the book has its like, by draft and number."""
    found: dict[str, dict] = {
        kind: {draft: {} for draft in site.book.drafts} for kind in ("figures", "exercises")
    }

    def add(kind: str, draft: str, number: str, at: str, title: str) -> None:
        found[kind][draft].setdefault(number, []).append({"at": at, "title": title})

    for stem, shown in site.figures.items():
        for figure in shown:
            for draft, number in figures.of_the_book(figure.caption, site.book):
                title = re.sub(r" \(Figs?\.? [^)]*\)", "", figure.caption)
                add("figures", draft, number, f"chapters/{stem}/#fig-{figure.name}", title)
    drafts = {name: draft for draft, name in site.book.drafts.items()}
    for chapter in site.chapters:
        headings = re.findall(r"^# ### (.+)$", chapter.exercises, flags=re.MULTILINE)
        for heading in headings:
            if twin := re.search(r" \(exercise (\d+\.\d+) in the (.+)\)$", heading):
                at = f"chapters/{chapter.path.stem}/#{slugify(heading, '-')}"
                add("exercises", drafts[twin[2]], twin[1], at, heading.removesuffix(twin[0]))
    return json.dumps(found, indent=1, ensure_ascii=False)


def _short(name: str) -> str:
    """A dotted name without package and modules: `MultiHeadAttention.forward`."""
    module = max((m for m in site.modules if name.startswith(m + ".")), key=len, default="")
    return name.removeprefix(module + ".")


def description(page) -> str:
    """What a page is about, for what links to it: a chapter's summary, or the first sentences."""
    stem = Path(page.file.src_uri).stem
    if stem in site.summaries:
        return html.escape(re.sub(r"[$`]", "", site.summaries[stem].text))
    seen = re.sub(r"<noscript>.*?</noscript>", "", page.content, flags=re.DOTALL)
    first = re.search(r"<p>(.*?)</p>", seen, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", "", postprocess.as_text(first[1])) if first else ""
    shortened = re.match(r".{0,160}[.!?:](?=\s|$)|.{0,160}", " ".join(text.split()))
    return html.escape(html.unescape(shortened[0]))


def inside(entry: ApiPage) -> dict[str, str]:
    """The pages of a package's modules, each with its first sentence."""
    found = [page for page in site.api_pages if page.name.startswith(f"{entry.name}.")]
    return {page.name: links.first_sentence(site.modules[page.modules[0]]) for page in found}


def page_table() -> str:
    """Every listed module and package with its first sentence."""
    listed = [page for page in site.api_pages if page.is_listed]
    kinds = {
        "The equations": [page for page in listed if not page.is_package],
        "Packages": [page for page in listed if page.is_package],
    }
    return "\n\n".join(f"## {kind}\n\n{_table(found)}" for kind, found in kinds.items() if found)


def _table(entries: list[ApiPage]) -> str:
    rows = []
    for entry in entries:
        link = f'<a href="{entry.name}/"><code>{entry.name}</code></a>'
        text = _code_marks(links.first_sentence(site.modules[entry.modules[0]]))
        rows.append(f"<tr><td>{link}</td><td>{text}</td></tr>")
    head = "<thead><tr><th>Module</th><th>Contents</th></tr></thead>"
    table = f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="slp-wide slp-modules" tabindex="0">{table}</div>'


def _code_marks(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
