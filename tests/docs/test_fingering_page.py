"""The page "Finger a piece": its lattice is Python's, and what is dropped comes back fingered."""

import base64
import json
import random
from fractions import Fraction
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest
from guitar_pieces import random_piece
from js_engines import Racer
from model_stage import answering, assert_accessible, on_a_phone, without_javascript

from slp_transformer.guitar.fingering.fingering_pieces import (
    FingeringOptions,
    PlayableMoment,
    PlayablePiece,
    finger_piece,
    fit_moment,
    piece_from_tab,
    review_fingering,
)
from slp_transformer.guitar.formats.midi import format_midi, read_midi
from slp_transformer.guitar.formats.registry import READER_OF_SUFFIX, write_tab
from slp_transformer.guitar.fretboard import TUNINGS, Note, Tuning
from slp_transformer.guitar.tab import Bar, Tab, TabNote

for library in ("mkdocs", "py_mini_racer"):
    pytest.importorskip(library)
ROOT = Path(__file__).parents[2]
pytest.importorskip("mido", reason="mido writes MIDI files")
import model_pages  # noqa: E402

SETTINGS = model_pages.fingering_settings()


# --- The lattice ----------------------------------------------------------------------------------


def random_options(rng, policy):
    """A guitar of any tuning, capo and length, and what its player prefers."""
    capo, open_pitches = rng.choice([0, 0, 2, 5]), rng.choice(list(TUNINGS.values())).open_pitches
    if rng.random() < 0.2:
        open_pitches = tuple(p + rng.randint(-3, 3) for p in (67, *open_pitches))
    return FingeringOptions(
        Tuning(open_pitches, capo),
        max_fret=rng.choice([7 + capo, 12 + capo, 19, 24]),
        max_span=rng.choice([3, 4, 4, 5]),
        preferred_position=rng.choice([None, None, 5, 9]),
        open_string_preference=rng.choice([0, 0, 1, -1]),
        unplayable_policy=policy,
    )


def random_moments(rng, options):
    """Grips at random places, with now and then a pitch that no hand reaches, or one twice."""
    moments = []
    for number in range(1, rng.randint(2, 23)):
        tuning = options.tuning
        size, hand = rng.choice([1, 1, 1, 2, 3, 4, 6]), rng.randint(0, 12)
        strings = rng.sample(range(1, len(tuning.open_pitches) + 1), size)
        frets = [rng.choice([0, hand, hand + rng.randint(0, 4)]) for _ in strings]
        pitches = [tuning.pitch_of(Note(*place)) for place in zip(strings, frets, strict=True)]
        if rng.random() < 0.05:
            pitches[0] += rng.choice([-31, 31, 5])
        notes = tuple(TabNote(Note(0, pitch)) for pitch in pitches)
        moments.append(PlayableMoment(1, number, number, tuple(pitches), notes))
    return moments


SOLVE = """(M, { settings, guitar, costs, moments, pins, octave }) => {
  const fitted = moments.map((pitches) => M.fitMoment(pitches, guitar, octave));
  const choices = fitted.map(({ notes }, t) => {
    return M.findPlayableGrips(notes.map(([pitch]) => pitch), guitar, pins[t] ?? []);
  }).filter((_, t) => fitted[t].notes.length);
  const lattice = new M.Lattice(choices, costs), prices = lattice.prices();
  const best = lattice.findPath(), grips = (path) => path.map((k, t) => choices[t][k]);
  const doubts = lattice.findDoubts(best, prices, 7, 2).map(({ t, others }) => ({
    place: t, extra: others.map(({ extra }) => extra),
    paths: others.map(({ grip }) => grips(lattice.findPath(t, grip))),
  }));
  return { fitted, best: grips(best), doubts };
}"""


def ask_script(run, options, moments):
    """Return what the page's script finds for a piece."""
    guitar = {
        "open": options.tuning.open_pitches,
        "capo": options.tuning.capo,
        "maxFret": options.max_fret,
        "maxSpan": options.max_span,
    }
    costs = SETTINGS["costs"] | {
        "per_open_string": -SETTINGS["open_string_cost"] * options.open_string_preference,
        "preferred_position": options.preferred_position,
    }
    pins = {number - 1: notes for (_, number), notes in options.pinned_notes.items()}
    given = {"guitar": guitar, "costs": costs, "pins": pins}
    given["moments"] = [moment.pitches for moment in moments]
    return run(SOLVE, given | {"octave": options.unplayable_policy == "octave"})


def as_lists(value):
    return json.loads(json.dumps(value))


def test_the_lattice_is_python_s_to_the_last_bit():
    """Of random pieces, each as it is and with pins."""
    run, num_compared = Racer("hand.js").run, 0
    for seed in range(80):
        rng = random.Random(seed)
        options = random_options(rng, rng.choice(["drop", "drop", "octave"]))
        moments = random_moments(rng, options)
        fitted = [fit_moment(moment.pitches, options) for moment in moments]
        if options.unplayable_policy == "octave" and any(reason for *_, reason in fitted):
            continue  # Python refuses the piece, where the page leaves notes out
        if not any(left for left, *_ in fitted):
            continue
        piece = PlayablePiece(Tab(bars=(Bar(99, ()),), steps_per_quarter=4), moments)
        for _ in range(2):
            found = ask_script(run, options, moments)
            for (left, changes, _), theirs in zip(fitted, found["fitted"], strict=True):
                assert theirs == {"notes": as_lists(list(left.items())), "changes": changes}
            ((_, path),), _ = finger_piece(piece, options)
            assert found["best"] == as_lists(path), seed
            doubts = review_fingering(piece, options, 7)
            assert [one["place"] for one in found["doubts"]] == [one.place for one in doubts], seed
            for theirs, doubt in zip(found["doubts"], doubts, strict=True):
                assert theirs["extra"] == doubt.extra_costs[1:], seed
                assert theirs["paths"] == as_lists(doubt.paths[1:]), seed
            num_compared += 1
            pins = {}
            for doubt in doubts[1:3]:  # the first note of another way, or the whole of it
                grip = rng.choice(doubt.paths[1:])[doubt.place]
                pins[1, doubt.moment.number] = grip[: rng.choice([1, len(grip)])]
            options = FingeringOptions(**(vars(options) | {"pinned_notes": pins}))
            if not pins:
                break
    assert num_compared > 120


# --- MIDI files -----------------------------------------------------------------------------------


def made_midi(seed, **options):
    return format_midi(random_piece(random.Random(seed), strings=6, plain=True, **options))


@cache
def answer():
    """Return what answers the page's requests."""
    body = model_pages.fill_fingering(model_pages.FINGERING_MARK, "/assets/alphatab/")
    return answering("Finger a piece", "fingering", body)


def in_quarters(tab):
    """Return a tab's bars and notes as the page's script has them, with times in quarters."""
    unit = tab.steps_per_quarter
    starts = list(accumulate((bar.steps for bar in tab.bars), initial=0))
    bars, notes, tempo, signature = [], [], 120, (4, 4)
    for start, bar in zip(starts, tab.bars, strict=False):
        tempo, signature = bar.tempo_bpm or tempo, bar.time_signature or signature
        bars.append((Fraction(bar.steps, unit), tempo))
        for event in bar.events:
            for each in event.tab_notes():
                onset = Fraction(start + event.step, unit)
                length = Fraction(each.duration_steps, unit)
                notes.append((onset, onset + length, tab.tuning.pitch_of(each.note)))
    return bars, sorted(notes)


@pytest.mark.parametrize("unit", [0, 12])
def test_a_midi_file_is_read_as_the_package_reads_it(browser, tmp_path, unit):
    contents = [made_midi(seed, voices=seed % 3 == 0) for seed in range(40)]
    with browser.new_context() as context:
        page = context.new_page()
        page.route("**/*", answer())
        page.goto("http://page.test/assets/model/fingering.css")
        found = page.evaluate(
            """async ([files, asked]) => {
              const { readMidi, intoBars } = await import("/assets/model/midi.js");
              return files.map((content) => {
                const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
                const midi = readMidi(bytes, 999);
                return intoBars(midi, midi.notes, asked);
              });
            }""",
            [[base64.b64encode(content).decode() for content in contents], unit],
        )
    for content, theirs in zip(contents, found, strict=True):
        path = tmp_path / "piece.mid"
        path.write_bytes(content)
        tabs, _ = read_midi(path, channels=range(1, 17), steps_per_quarter=unit or None)
        both = [in_quarters(tab) for tab in tabs]
        own = theirs["unit"]
        bars = [(Fraction(bar["steps"], own), bar["tempo"]) for bar in theirs["bars"]]
        assert bars == both[0][0]
        ours = {(start, pitch) for _, notes in both for start, _, pitch in notes}
        assert {(Fraction(n["start"], own), n["pitch"]) for n in theirs["notes"]} == ours


# --- The page -------------------------------------------------------------------------------------


@pytest.fixture
def page(browser):
    with on_a_phone(browser, answer(), "#f-marks button") as opened:
        opened.asked, opened.said = [], []
        opened.on("request", lambda request: opened.asked.append(request.url))
        opened.on("console", lambda said: said.type == "error" and opened.said.append(said.text))
        yield opened
        assert opened.said == []
        inside = ("http://page.test/", "blob:", "data:")
        assert [url for url in opened.asked if not url.startswith(inside)] == []


DROP = """([name, content]) => {
  const files = new DataTransfer();
  files.items.add(new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], name));
  const given = { bubbles: true, cancelable: true, dataTransfer: files };
  document.body.dispatchEvent(new DragEvent("drop", given));
}"""


def drop(page, name, content):
    """Drop a file and wait until it is drawn."""
    before = page.locator("#slp-fingering").get_attribute("data-shown")
    page.evaluate(DROP, [name, base64.b64encode(content).decode()])
    page.wait_for_function("n => document.getElementById('f-name').textContent === n", arg=name)
    drawn(page, before)


def drawn(page, before):
    page.wait_for_function(
        "n => document.getElementById('slp-fingering').dataset.shown !== n", arg=before
    )


def download(page, kind, folder):
    """Return the tab in a downloaded file, as the package reads it."""
    with page.expect_download() as waiting:
        page.click(f"#f-save-{kind}")
    path = folder / f"saved.{kind}"
    waiting.value.save_as(path)
    (tab,), _ = READER_OF_SUFFIX[f".{kind}"](path)
    return tab


def places(tab):
    return [sorted(event.notes) for event in tab.iter_events()]


def test_a_midi_file_is_dropped_chosen_in_and_taken_away(page, tmp_path):
    content = made_midi(3)
    (tmp_path / "tune.mid").write_bytes(content)
    (unfingered,), _ = read_midi(tmp_path / "tune.mid")
    piece, options = piece_from_tab(unfingered), FingeringOptions(unplayable_policy="drop")
    ((tab, _),), _ = finger_piece(piece, options)
    drop(page, "tune.mid", content)
    first = download(page, "gp", tmp_path)
    assert places(first) == places(tab) and in_quarters(first) == in_quarters(tab)
    doubts = review_fingering(piece, options, 3)
    assert page.locator("#f-marks .f-asked").count() == 3
    shown = page.locator("#slp-fingering").get_attribute("data-shown")
    page.locator("#f-marks [aria-label$='number 2']").click()
    page.locator("#f-ways button >> nth=1").click()
    drawn(page, shown)
    for kind in ("gp", "atex", "txt"):
        expected = [sorted(grip) for grip in doubts[1].paths[1]]
        assert places(download(page, kind, tmp_path)) == expected != places(tab)
    page.locator("#f-marks .f-chosen").focus()
    page.keyboard.press("Enter")
    page.locator("#f-free").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#f-marks .f-chosen", state="detached")
    assert places(download(page, "gp", tmp_path)) == places(tab)


@pytest.mark.parametrize("suffix", [".gp5", ".musicxml"])
def test_a_score_keeps_its_music_and_its_guitar(page, tmp_path, suffix):
    pytest.importorskip("guitarpro", reason="PyGuitarPro writes Guitar Pro files")
    tuning = Tuning(TUNINGS["drop-D"].open_pitches, 3)
    made = random_piece(random.Random(11), plain=True)
    made = Tab("A piece", tuning, made.bars, "", made.steps_per_quarter)
    high = FingeringOptions(tuning, preferred_position=9, unplayable_policy="drop")
    ((made, _),), _ = finger_piece(piece_from_tab(made), high)
    write_tab(made, tmp_path / f"piece{suffix}")
    (read,), _ = READER_OF_SUFFIX[suffix](tmp_path / f"piece{suffix}")
    options = FingeringOptions(read.tuning, unplayable_policy="drop")
    ((tab, _),), _ = finger_piece(piece_from_tab(read), options)
    drop(page, f"piece{suffix}", (tmp_path / f"piece{suffix}").read_bytes())
    found = download(page, "gp", tmp_path)
    assert found.tuning == read.tuning and places(found) == places(tab)
    assert "notes are where the file has them" in page.inner_text("#f-summary")
    page.click("summary >> nth=0")
    page.check("#f-keep")
    assert places(download(page, "gp", tmp_path)) == places(read) != places(tab)


BAD = {
    "empty.mid": (b"", "empty.mid is empty."),
    "large.mid": (b"MThd" + bytes(2 << 20), "large.mid has 2.0 MB; a file of this kind may have 1"),
    "cut.mid": (made_midi(3)[:150], "it ends in the middle of track"),
    "text.gp5": (b"To be read by people", "no Guitar Pro file, whatever its name says"),
    "text.pdf": (b"%PDF", "none of the files that this page reads"),
}


def test_what_cannot_be_read_is_refused_in_a_sentence_and_the_piece_stays(page):
    summary = page.inner_text("#f-summary")
    for name, (content, sentence) in BAD.items():
        page.evaluate(DROP, [name, base64.b64encode(content).decode()])
        said = "s => document.getElementById('f-note').textContent.includes(s)"
        page.wait_for_function(said, arg=sentence, timeout=9000)
        assert page.inner_text("#f-note").count("\n") == 0
        assert page.inner_text("#f-summary") == summary
        assert page.inner_text("#f-name") == "An example: Ode to Joy"
    page.locator("#f-ways button >> nth=1").click()  # and can still be changed
    page.wait_for_selector("#f-marks .f-chosen")


def test_axe_finds_nothing(page):
    page.click("summary >> nth=0")
    page.locator("#f-ways button >> nth=1").click()
    page.wait_for_selector("#f-marks .f-chosen")
    assert_accessible(page)


def test_without_javascript_the_example_stands_there(browser):
    with without_javascript(browser, answer()) as page:
        assert "tuning:" in page.locator("#f-plain").text_content()
        assert not page.locator("#f-ask").is_visible()
