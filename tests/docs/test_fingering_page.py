"""The page "Finger a piece": its lattice is Python's, and what is dropped comes back fingered."""

import base64
import io
import os
import random
import sys
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest
from guitar_pieces import random_piece
from model_stage import ADDRESS, answering, assert_accessible, on_a_phone, without_scripts
from own_process import printed

from slp_guitar.ascii.guitars import OTHER_INSTRUMENT_TUNINGS
from slp_guitar.ascii.reader import parse_ascii_tabs
from slp_guitar.ascii.writer import format_tab
from slp_guitar.fingering.fingering_pieces import find_doubtful_moments, find_fingerings
from slp_guitar.fingering.playable_chords import FingeringOptions
from slp_guitar.fingering.playable_pieces import piece_from_tab
from slp_guitar.formats import notation
from slp_guitar.formats.midi import read_midi_tabs
from slp_guitar.formats.midi_writer import format_midi
from slp_guitar.formats.registry import read_any_tab_file, write_tab
from slp_guitar.fretboard import STANDARD, TUNINGS, Note, Tuning
from slp_guitar.hand import FINGERS
from slp_guitar.tab import Bar, Event, Tab, TabNote
from slp_guitar.text_time import infer_timing

for library in ("mkdocs", "py_mini_racer"):
    pytest.importorskip(library)
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site_build"))
mido = pytest.importorskip("mido", reason="mido writes MIDI files")
import model_pages  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("fingering page"),
]  # most of its tests share one page
MODEL = ROOT / "docs" / "assets" / "model"


def test_the_lattice_is_python_s_to_the_last_bit():
    """In a process without shape checks, which take far longer than what they check."""
    script = "import lattices, sys; print(lattices.compare_pieces(range(*map(int, sys.argv[1:]))))"
    last = 1080 if "SLP_LATTICES" in os.environ else 60
    assert int(printed(script, 0, last)) > 1.5 * last


def midi_bytes(*tracks, tempo=500_000, ticks=480, signatures=()):
    """Return a MIDI file of tracks: name, program, channel from 1, notes of (start, end, pitch)."""
    file, content = mido.MidiFile(ticks_per_beat=ticks), io.BytesIO()
    for name, program, channel, notes in tracks:
        track = mido.MidiTrack()
        messages = [(0, 0, mido.MetaMessage("track_name", name=name))]
        messages.append((0, 0, mido.MetaMessage("set_tempo", tempo=tempo)))
        for tick, beats, unit in signatures:
            sign = mido.MetaMessage("time_signature", numerator=beats, denominator=unit)
            messages.append((tick, 0, sign))
        messages.append(
            (0, 1, mido.Message("program_change", channel=channel - 1, program=program))
        )
        for start, end, pitch in notes:
            given = {"channel": channel - 1, "note": pitch}
            messages.append((start, 3, mido.Message("note_on", velocity=80, **given)))
            messages.append((end, 2, mido.Message("note_on", velocity=0, **given)))
        now = 0
        for tick, _, message in sorted(messages, key=lambda each: each[:2]):
            track.append(message.copy(time=tick - now))
            now = tick
        file.tracks.append(track)
    file.save(file=content)
    return content.getvalue()


def random_midis(unit):
    """MIDI files of made pieces and, for a grid of so many steps, as they are played by hand."""
    for seed in range(40):
        rng = random.Random(seed)
        if not unit or seed % 2:
            piece = random_piece(rng, strings=6, plain=True, voices=seed % 3 == 0)
            # A string sounds one note at a time, also where a grid puts two at one moment.
            yield format_midi(piece, one_channel=unit > 0)
            continue
        notes, now = [], 0
        for _ in range(rng.randint(9, 41)):
            for pitch in rng.sample(range(40, 80), rng.choice([1, 1, 3])):
                start = max(0, now + rng.randint(-9, 9))
                notes.append((start, start + rng.randint(100, 900), pitch))
            now += rng.choice([160, 251, 477])
        # 3/4 begins where on a grid of 12 the bar before is no whole number of thirty-seconds.
        signs = [(0, 5, 8), (rng.choice([1200, 1280]), 3, 4), (4200, 2, 2)]
        yield midi_bytes(("A", 24, 1, notes), tempo=960_000, signatures=signs)  # 62.5 a minute


@cache
def answer():
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


def read_by_the_page(page, contents, unit=0):
    """What the page's script makes of MIDI files, each with so many steps to a quarter."""
    return page.evaluate(
        """async ([files, unit]) => {
          const { readMidi, intoBars } = await import("/assets/model/midi.js");
          return files.map((content) => {
            const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
            const midi = readMidi(bytes, 999);
            return intoBars(midi, midi.notes, unit);
          });
        }""",
        [[base64.b64encode(content).decode() for content in contents], unit],
    )


@pytest.mark.parametrize("unit", [0, 4, 12])
def test_a_midi_file_is_read_as_the_package_reads_it(shared, tmp_path, unit):
    contents = list(random_midis(unit))
    found = read_by_the_page(shared, contents, unit)
    for content, theirs in zip(contents, found, strict=True):
        path = tmp_path / "piece.mid"
        path.write_bytes(content)
        tabs, _ = read_midi_tabs(path, channels=range(1, 17), quantize=unit or None)
        both = [in_quarters(tab) for tab in tabs]
        own = theirs["unit"]
        bars = [(Fraction(bar["steps"], own), bar["tempo"]) for bar in theirs["bars"]]
        assert bars == both[0][0]
        ours = {(start, pitch) for _, notes in both for start, _, pitch in notes}
        assert {(Fraction(n["start"], own), n["pitch"]) for n in theirs["notes"]} == ours


@pytest.mark.parametrize("early", [0, 9])
def test_quintuplets_beside_triplets_are_read_and_written_as_the_package_does(
    shared, tmp_path, early
):
    starts = [480 * beat + 480 * k // n for beat, n in enumerate((3, 5, 4, 3)) for k in range(n)]
    ends = [*starts[1:], 4 * 480]
    played = [(a, b - early, 60 + a % 7) for a, b in zip(starts, ends, strict=True)]
    content = midi_bytes(("A", 24, 1, played))
    (found,) = read_by_the_page(shared, [content])
    assert found["unit"] == 60
    assert [(n["start"] * 8, n["end"] * 8) for n in found["notes"]] == list(
        zip(starts, ends, strict=True)
    )
    drop(shared, "tuplets.mid", content)
    assert "tu (5 4)" in shared.evaluate(TEX_OF, [base64.b64encode(content).decode()])


def test_the_sustain_pedal_lets_notes_ring_on(shared, tmp_path):
    track = mido.MidiTrack([mido.Message("control_change", control=64, value=127)])
    for pitch in (48, 52, 55):
        track.append(mido.Message("note_on", note=pitch))
        track.append(mido.Message("note_off", note=pitch, time=480))
    track.append(mido.Message("control_change", control=64, value=0))
    file, content = mido.MidiFile(ticks_per_beat=480, tracks=[track]), io.BytesIO()
    file.save(file=content)
    (found,) = read_by_the_page(shared, [content.getvalue()])
    assert [note["rings"] for note in found["notes"]] == [True, True, False]
    tex = shared.evaluate(TEX_OF, [base64.b64encode(content.getvalue()).decode()])
    assert tex.count("{lr}") == 2
    drop(shared, "pedal.mid", content.getvalue())
    kinds = [
        [own.kind for own in each.techniques if own.kind not in FINGERS]
        for event in download(shared, "gp", tmp_path).iter_events()
        for each in event.tab_notes()
    ]
    assert kinds == [["let ring"], ["let ring"], []]


TEX_OF = """async ([content]) => {
  const { readMidi, intoBars, pitchesAsTex } = await import("/assets/model/midi.js");
  const midi = readMidi(Uint8Array.from(atob(content), (c) => c.charCodeAt(0)), 999);
  return pitchesAsTex(intoBars(midi, midi.notes), "A");
}"""


@pytest.mark.parametrize(
    ("length", "unit", "jitter"),
    [(480, 2, 15), (240, 2, 15), (120, 4, 15), (160, 12, 15), (240, 2, 0), (480, 1, 0)],
)
def test_a_performance_is_put_on_the_grid_that_it_is_near(shared, length, unit, jitter):
    rng = random.Random(length)
    starts = [max(0, k * length + rng.randint(-jitter, jitter)) for k in range(50)]
    notes = [(k, (n + 1) * length - rng.randint(20, 50), 60) for n, k in enumerate(starts)]
    content = midi_bytes(("A", 24, 1, notes), tempo=500_000 * 60 // 50)
    (found,) = read_by_the_page(shared, [content])
    step = length * unit // 480
    edges = [(n["start"], n["end"]) for n in found["notes"][:-1]]
    assert found["unit"] == unit and edges == [(k * step, (k + 1) * step) for k in range(49)]


def random_voices(rng):
    """A tab of open strings, so that a lower pitch is a lower string, whose second voice is one
    line; and the same notes by voice as the page has them."""
    steps, ends, bars, voices = 5, 0, [], ([], [])
    for start in range(0, 7 * steps, steps):
        events = []
        for step in sorted({0, *rng.sample(range(steps), 2)}):
            now, notes = start + step, []
            for string in sorted(rng.sample(range(1, 7), rng.randint(1, 3)), reverse=True):
                lasts = rng.randint(1, 3)
                voice = 2 if now >= ends and rng.random() < 0.4 else 1
                ends = now + lasts if voice == 2 else ends
                notes.append(TabNote(Note(string, 0), lasts, voice=voice))
                pitch = STANDARD.open_pitches[string - 1]
                voices[voice - 1].append({"start": now, "end": now + lasts, "pitch": pitch})
            events.append(Event.from_notes(step, notes))
        bars.append(Bar(steps, tuple(events)))
    return Tab(bars=tuple(bars), steps_per_quarter=1), voices


def test_the_bass_that_a_bar_begins_with_is_moved_as_the_package_moves_it(shared):
    rng = random.Random(3)
    tabs, voices = zip(*(random_voices(rng) for _ in range(211)), strict=True)
    found = shared.evaluate(
        """async (all) => {
          const { moveFirstBasses } = await import("/assets/model/midi.js");
          const bars = [0, 5, 10, 15, 20, 25, 30].map((start) => ({ start, steps: 5 }));
          for (const voices of all) moveFirstBasses(voices, bars);
          return all.map(([, second]) => second.map(({ start, pitch }) => [start, pitch]));
        }""",
        voices,
    )
    num_moved = 0
    for tab, before, theirs in zip(tabs, voices, found, strict=True):
        own = [
            [start + event.step, STANDARD.open_pitches[each.note.string - 1]]
            for start, _, event in notation.move_first_basses(tab).iter_placed_events()
            for each in event.tab_notes()
            if each.voice == 2
        ]
        assert theirs == own
        num_moved += len(own) - len(before[1])
    assert num_moved > 53


@contextmanager
def opened_page(browser):
    with on_a_phone(browser, answer(), "#f-marks button") as opened:
        opened.asked, opened.said = [], []
        opened.on("request", lambda request: opened.asked.append(request.url))
        opened.on("console", lambda said: said.type == "error" and opened.said.append(said.text))
        yield opened
        assert opened.said == []
        inside = ("http://page.test/", "blob:", "data:")
        assert [url for url in opened.asked if not url.startswith(inside)] == []


@pytest.fixture
def page(browser):
    with opened_page(browser) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(browser):
    """A page for the tests that leave its options as they are."""
    with opened_page(browser) as opened:
        yield opened


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
    (tab,), _ = read_any_tab_file(path)
    return tab


def places(tab):
    return [sorted(event.notes) for event in tab.iter_events()]


def fingers(tab):
    """Return which finger takes each note."""
    return [
        (each.note, [one.kind for one in each.techniques if one.kind in FINGERS])
        for event in tab.iter_events()
        for each in event.tab_notes()
    ]


def melody():
    """A tune with a bass and triplets, one chord too wide for a hand and one note off the neck."""
    rng, notes, now, pitch = random.Random(3), [], 0, 64
    for number in range(36):
        length = 160 if number in range(8, 14) else 240
        pitch = min(76, max(57, pitch + rng.choice([-4, -2, 1, 2, 3])))
        notes.append((now, now + length, pitch))
        if number % 8 == 0:
            notes.append((now, now + 960, rng.randint(45, 50)))
        now += length
    wide = [(now, now + 480, pitch) for pitch in (40, 41, 42, 64)]
    return [*notes, *wide, (now + 480, now + 960, 22), (now + 960, now + 1920, 60)]


def test_a_midi_file_is_dropped_chosen_in_and_taken_away(shared, tmp_path):
    page = shared
    content = midi_bytes(("Étude", 0, 1, [(0, 90, 99)]), ("Guitar", 25, 2, melody()))
    (tmp_path / "tune.mid").write_bytes(content)
    (unfingered,), _ = read_midi_tabs(tmp_path / "tune.mid", tracks=[2])
    piece, options = piece_from_tab(unfingered), FingeringOptions(unplayable_policy="drop")
    ((tab, _),), changes = find_fingerings(piece, options)
    drop(page, "tune.mid", content)
    assert page.locator("#f-part option").all_inner_texts()[0] == "Guitar (guitar): 47 notes"
    said = page.inner_text("#f-changes")
    assert said == (
        "Not as written: bar 5, beat 2: F2 is left out, F#2 is left out; "
        "bar 5, beat 3: A#0 is left out."
    )
    assert len(changes) == 3
    first = download(page, "gp", tmp_path)
    assert places(first) == places(tab) and first.title == "tune"
    assert in_quarters(first) == in_quarters(tab) and fingers(first) == fingers(tab)
    assert any(2 in event.voices for event in first.iter_events())  # the held basses
    doubts = find_doubtful_moments(piece, options, 3)
    assert page.locator("#f-marks .f-asked").count() == 3
    shown = page.locator("#slp-fingering").get_attribute("data-shown")
    page.locator("#f-marks [aria-label$='number 2']").click()
    page.locator("#f-ways button >> nth=1").click()
    drawn(page, shown)
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    for kind in ("gp", "atex", "txt"):
        expected = [sorted(grip) for grip in doubts[1].paths[1]]
        assert places(download(page, kind, tmp_path)) == expected != places(tab)
    assert page.locator("#f-marks .f-chosen").count() == 1
    page.locator("#f-marks .f-chosen").focus()
    page.keyboard.press("Enter")
    page.locator("#f-free").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#f-marks .f-chosen", state="detached")
    assert places(download(page, "gp", tmp_path)) == places(tab)


def test_it_is_fingered_in_another_tuning_with_a_capo_and_moved_by_octaves(page, tmp_path):
    (tmp_path / "tune.mid").write_bytes(midi_bytes(("Guitar", 25, 2, melody())))
    drop(page, "tune.mid", (tmp_path / "tune.mid").read_bytes())
    page.click("summary >> nth=0")
    page.select_option("#f-tuning", "DADGAD")
    page.select_option("#f-open", "1")
    page.check("#f-octaves")
    page.select_option("#f-capo", "2")
    page.wait_for_function(
        "document.getElementById('f-changes').textContent.includes('A#0 is moved to A#2')"
    )
    found = download(page, "gp", tmp_path)
    assert found.tuning == Tuning(TUNINGS["DADGAD"].open_pitches, 2)
    (unfingered,), _ = read_midi_tabs(tmp_path / "tune.mid")
    pitches = [[p for p in m.pitches] for m in piece_from_tab(unfingered).moments]
    assert len(places(found)) == len(pitches)
    assert {found.tuning.pitch_of(n) for n in places(found)[-2]} == {46}


def test_a_score_keeps_its_music_and_its_guitar(page, tmp_path):
    pytest.importorskip("guitarpro", reason="PyGuitarPro writes Guitar Pro files")
    tuning = Tuning(TUNINGS["drop-D"].open_pitches, 3)
    made = random_piece(random.Random(11), plain=True)
    made = Tab("A piece", tuning, made.bars, "", made.steps_per_quarter)
    high = FingeringOptions(tuning, preferred_position=9, unplayable_policy="drop")
    ((made, _),), _ = find_fingerings(piece_from_tab(made), high)
    page.click("summary >> nth=0")
    for suffix in (".gp5", ".gp4", ".musicxml"):
        write_tab(made, tmp_path / f"piece{suffix}")
        (read,), _ = read_any_tab_file(tmp_path / f"piece{suffix}")
        options = FingeringOptions(read.tuning, unplayable_policy="drop")
        ((tab, _),), _ = find_fingerings(piece_from_tab(read), options)
        drop(page, f"piece{suffix}", (tmp_path / f"piece{suffix}").read_bytes())
        found = download(page, "gp", tmp_path)
        assert found.tuning == read.tuning and places(found) == places(tab), suffix
        assert fingers(found) == fingers(tab)
        said = page.inner_text("#f-changes")
        assert ("the file’s fingers are found anew where notes move" in said) == (suffix != ".gp4")
        assert "notes are where the file has them" in page.inner_text("#f-summary")
        page.check("#f-keep")
        found = download(page, "gp", tmp_path)
        assert places(found) == places(read) != places(tab)
        assert suffix == ".gp4" or fingers(found) == fingers(read)
        while page.is_enabled("#f-back"):
            page.click("#f-back")
        while page.locator("#f-ways button").count() < 2:  # the first with another way
            page.click("#f-on", timeout=5000)
        page.locator("#f-ways button >> nth=1").click()
        found, kept = places(download(page, "gp", tmp_path)), places(read)
        assert [a == b for a, b in zip(found, kept, strict=True)].count(False) == 1
        page.uncheck("#f-keep")


# --- A tab as text -------------------------------------------------------------------------------

TEXT_TUNINGS = ("standard", "drop-D", "DADGAD", "half-step-down")
READ_TEXT = """async (texts) => {
  const { readTextTab } = await import("/assets/model/text_tab.js");
  return texts.map((text) => {
    const { tab } = readTextTab(text);
    const bars = tab.bars.map(({ steps, moments }) => [
      steps, moments.map(({ step, notes }) => [step, notes])]);
    return [tab.open, tab.capo, tab.unit, tab.signature, bars];
  });
}"""


def text_as_read(text):
    """Return what Python makes of a text, in the shape in which the page says it; None for none."""
    (tab,), _ = parse_ascii_tabs(text)
    try:
        found = infer_timing(tab).tab
    except ValueError:
        return None
    bars = [
        [bar.steps, [[e.step, [list(note) for note in e.notes]] for e in bar.events]]
        for bar in found.bars
    ]
    signature = list(found.bars[0].time_signature)
    tuning = found.tuning
    return [list(tuning.open_pitches), tuning.capo, found.steps_per_quarter, signature, bars]


def test_a_text_has_the_notes_and_the_time_that_python_finds(shared):
    texts = []
    for number in range(40):
        rng = random.Random(number)
        tuning = Tuning(TUNINGS[rng.choice(TEXT_TUNINGS)].open_pitches, rng.choice([0, 2]))
        tab = replace(random_piece(rng, plain=True), tuning=tuning)
        head = rng.choice(["Time: 4/4", "3/4 time", "Takt: 6/8", "A study"])
        texts.append(f"{head}\n" + format_tab(tab, 400))
    expected = [text_as_read(text) for text in texts]
    known = [k for k, own in enumerate(expected) if own is not None]
    read = shared.evaluate(READ_TEXT, [texts[k] for k in known])
    assert read == [expected[k] for k in known] and len(known) > 20


def test_a_text_of_another_instrument_is_read_by_the_names_of_its_strings(shared):
    names = "C C# D D# E F F# G G# A A# B".split()
    expected, texts = [], []
    for instrument, pitches in OTHER_INSTRUMENT_TUNINGS.items():
        labels = [names[pitch % 12] for pitch in pitches]
        rows = [f"{labels[0]:2}|0---3---5---3---|"]
        rows += [f"{name:2}|----2-----------|" for name in labels[1:]]
        texts.append(f"{instrument}\n\n" + "\n".join(rows))
        expected.append(text_as_read(texts[-1]))
    assert [len(own[0]) for own in expected] == [4, 4, 4, 5, 5, 7, 8]
    mandolin = list(OTHER_INSTRUMENT_TUNINGS).index("mandolin")  # which the page has no name for
    del expected[mandolin], texts[mandolin]
    assert shared.evaluate(READ_TEXT, texts) == expected


def test_a_text_is_dropped_and_keeps_its_places(page, tmp_path):
    rows = (
        "0-----3-----",
        "1-----------",
        "0-----------",
        "2-----0-----",
        "3-----------",
        "3--x--",
    )
    text = "Study\ntime: 3/4\n" + "\n".join(f"|{row.ljust(12, '-')}|" for row in rows)
    drop(page, "study.txt", text.encode())
    said = page.inner_text("#f-changes")
    assert said == "Not as written: how notes are played is left out."
    page.click("summary >> nth=0")
    page.check("#f-keep")
    found = download(page, "gp", tmp_path)
    (own,), _ = parse_ascii_tabs(text.replace("x", "-"))
    assert places(found) == places(own)
    assert {onset for onset, *_ in in_quarters(found)[1]} == {0, Fraction(3, 2)}


def test_the_score_is_printed_whole_by_our_button_and_by_the_browser_s_menu(page):
    content = midi_bytes(("Guitar", 25, 2, [(480 * k, 480 * k + 480, 60) for k in range(400)]))
    whole = """() => [...document.querySelectorAll("#slp-hear-stage .at-surface > div")]
        .filter((line) => line.layoutResultId).every((line) => line.renderedResult)"""
    drop(page, "long.mid", content)
    on_paper = "document.getElementById('slp-hear').hasAttribute('data-paper')"
    assert page.evaluate(
        f"() => {{ dispatchEvent(new Event('beforeprint')); return {on_paper} === ({whole})() }}"
    )
    page.wait_for_function(whole)  # though nobody has scrolled
    pdf = page.pdf(format="Letter")
    assert page.evaluate(on_paper)
    assert 1 < pdf.count(b"/Type /Page\n") < 15
    page.evaluate("() => { window.print = () => { window.printed = true } }")
    page.click("#slp-hear-print")
    page.wait_for_function("window.printed")


def test_the_two_staves_of_a_piano_become_one_guitar(shared, tmp_path):
    def note(step, octave, quarters, staff):
        pitch = f"<pitch><step>{step}</step><octave>{octave}</octave></pitch>"
        rest = f"<duration>{quarters}</duration><voice>{staff}</voice><staff>{staff}</staff>"
        return f"<note>{pitch}{rest}</note>"

    bars = ""
    for number, (high, low) in enumerate(("GE", "AC", "BD"), start=1):
        head = "<attributes><divisions>1</divisions><time><beats>2</beats><beat-type>4</beat-type>"
        head += "</time><staves>2</staves><clef number='1'><sign>G</sign><line>2</line></clef>"
        head += "<clef number='2'><sign>F</sign><line>4</line></clef></attributes>"
        notes = note(high, 4, 1, 1) * 2 + "<backup><duration>2</duration></backup>"
        bars += f"<measure number='{number}'>{head if number == 1 else ''}{notes}"
        bars += f"{note(low, 3, 2, 2)}</measure>"
    xml = "<?xml version='1.0'?><score-partwise version='4.0'><part-list><score-part id='P1'>"
    xml += "<part-name>Piano</part-name></score-part></part-list><part id='P1'>"
    drop(shared, "piano.xml", f"{xml}{bars}</part></score-partwise>".encode())
    found = download(shared, "gp", tmp_path)
    _, notes = in_quarters(found)
    assert [pitch for *_, pitch in notes] == [67, 52, 67, 69, 48, 69, 71, 50, 71]
    assert [float(end - start) for start, end, _ in notes] == [1.0, 2.0, 1.0] * 3


def score(attributes="", after="", bar_line=""):
    """Return a MusicXML score of one note, with more inside its measure."""
    note = "<note><pitch><step>E</step><octave>4</octave></pitch><duration>4</duration>{}</note>"
    time = "<time><beats>4</beats><beat-type>4</beat-type></time>"
    attributes = f"<attributes><divisions>1</divisions>{attributes or time}</attributes>"
    head = "<part-list><score-part id='P1'><part-name>A</part-name></score-part></part-list>"
    bar = f"<measure number='1'>{attributes}{note.format(after)}{bar_line}</measure>"
    return (
        f"<score-partwise version='4.0'>{head}<part id='P1'>{bar}</part></score-partwise>".encode()
    )


BAD = {
    "empty.mid": (b"", "empty.mid is empty."),
    "text.mid": (b"To be read by people", "It is no MIDI file, whatever its name says"),
    "large.mid": (b"MThd" + bytes(2 << 20), "large.mid has 2.0 MB; a file of this kind may have 1"),
    "cut.mid": (midi_bytes(("A", 0, 1, melody()))[:150], "it ends in the middle of track 1"),
    "noise.mid": (
        midi_bytes(("A", 0, 1, melody()))[:22] + bytes(range(128, 206)),
        "noise.mid cannot be read",
    ),
    "drums.mid": (midi_bytes(("A", 0, 10, melody())), "no notes that a guitar could play"),
    "low.mid": (midi_bytes(("A", 0, 1, [(0, 90, 7)])), "no note of this part is on this guitar"),
    "long.mid": (midi_bytes(("A", 0, 1, [(0, 90, 60), (1 << 26, 1 << 27, 60)])), "3,000 bars"),
    "text.gp5": (b"To be read by people", "no Guitar Pro file, whatever its name says"),
    "text.musicxml": (b"<a>" * 99, "no MusicXML file, whatever its name says"),
    "staves.musicxml": (score("<staves>1000000</staves>"), "It says staves = 1000000"),
    "beats.musicxml": (
        score("<time><beats>1000000000</beats><beat-type>4</beat-type></time>"),
        "It says beats = 1000000000, and this page reads up to 32.",
    ),
    "voice.musicxml": (score(after="<voice>1000000000</voice>"), "It says voice = 1000000000"),
    "back.musicxml": (
        score(bar_line="<backup><duration>1000000000</duration></backup>"),
        "It says duration = 1000000000, and this page reads up to 1,000,000.",
    ),
    "again.musicxml": (
        score(
            bar_line="<barline location='right'><repeat direction='backward' times='1000000000'/>"
            "</barline>"
        ),
        "It repeats bars 1000000000 times",
    ),
    "divided.musicxml": (score("<divisions>0</divisions>"), "a quarter note into 0 parts"),
    "33_8.mid": (
        midi_bytes(("A", 0, 1, [(0, 90, 60)]), signatures=[(0, 33, 8)]),
        "Bar 1 has 33/8, and this page draws up to 32 beats.",
    ),
    "text.pdf": (b"%PDF", "none of the files that this page reads"),
}


def test_what_cannot_be_read_is_refused_in_a_sentence_and_the_piece_stays(shared):
    page, shown = shared, ("#f-summary", "#f-name")
    before = [page.inner_text(one) for one in shown]
    for name, (content, sentence) in BAD.items():
        page.evaluate(DROP, [name, base64.b64encode(content).decode()])
        said = "s => document.getElementById('f-note').textContent.includes(s)"
        page.wait_for_function(said, arg=sentence, timeout=90_000)
        assert page.inner_text("#f-note").count("\n") == 0
        assert [page.inner_text(one) for one in shown] == before
    page.locator("#f-ways button >> nth=1").click()  # and can still be changed
    page.wait_for_selector("#f-marks .f-chosen")


def test_bytes_at_random_end_in_a_sentence(shared):
    good, rng = midi_bytes(("A", 25, 1, melody())), random.Random(5)
    files = []
    for _ in range(300):
        damaged = bytearray(good[: rng.choice([len(good), rng.randint(1, len(good))])])
        for _ in range(rng.randint(1, 5)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        files.append(base64.b64encode(bytes(damaged)).decode())
    wrong = shared.evaluate(
        """async (files) => {
          const from = (name) => import(`/assets/model/${name}.js`);
          const { readMidi, partsOf, intoBars, pitchesAsTex } = await from("midi");
          const { Refusal } = await from("refusals"), wrong = [];
          for (const content of files) {
            try {
              const midi = readMidi(Uint8Array.from(atob(content), (c) => c.charCodeAt(0)), 999);
              for (const { notes } of partsOf(midi)) pitchesAsTex(intoBars(midi, notes), "x");
            } catch (error) { if (!(error instanceof Refusal)) wrong.push(error.stack); }
          }
          return wrong;
        }""",
        files,
    )
    assert wrong == []


def test_any_note_of_the_score_can_be_clicked_and_axe_finds_nothing(page):
    assert page.inner_text("#f-name") == "An example: Ode to Joy"
    place = page.evaluate(
        """() => {
          const frets = [...document.querySelectorAll("#slp-hear-stage text")];
          const black = (one) => getComputedStyle(one).fill === "rgb(0, 0, 0)"; // no bar's number
          const note = frets.find((one) => one.textContent === "3" && black(one)); // of 2 2 3 0
          note.scrollIntoView({ block: "center" });
          const box = note.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        }"""
    )
    page.mouse.click(*place)
    page.wait_for_function(
        "document.getElementById('f-where').textContent.includes('bar 1, beat 3')"
    )
    page.locator("#f-ways button >> nth=1").click()
    page.wait_for_selector("#f-marks [aria-label='bar 1, beat 3: chosen']")
    page.click("summary >> nth=0")
    assert_accessible(page)


def test_without_javascript_the_example_stands_there(browser):
    with without_scripts(browser, answer()) as page:
        assert "tuning:" in page.inner_text("#slp-hear-still")
        assert not page.locator("#f-ask").is_visible()


@pytest.mark.parametrize("deed", ["move", "Tab", "drop"])
def test_the_example_is_text_until_the_reader_does_anything(browser, deed):
    with browser.new_context(viewport={"width": 390, "height": 844}) as context:
        page, asked = context.new_page(), []
        context.route("**/*", answer())
        page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
        page.goto(ADDRESS)
        page.wait_for_function("performance.getEntriesByType('paint').length")
        page.evaluate("dispatchEvent(new PointerEvent('pointermove'))")  # a mouse that rests there
        stage = page.locator("#slp-hear-stage")
        before, text = stage.bounding_box(), page.locator("#slp-hear-still").bounding_box()
        assert text["y"] + text["height"] < 844 and "alphaTab.min.js" not in asked
        if deed == "drop":
            page.evaluate("document.body.dispatchEvent(new DragEvent('dragenter'))")
            page.evaluate(DROP, ["mine.musicxml", base64.b64encode(score()).decode()])
            page.wait_for_function("document.getElementById('f-name').textContent[0] === 'm'")
        else:
            page.keyboard.press(deed) if deed == "Tab" else page.mouse.move(7, 11, steps=3)
        page.wait_for_selector("#slp-hear-still", state="detached")
        assert stage.bounding_box()["y"] == before["y"] and stage.locator("svg").count()


def test_the_first_tap_on_play_plays(browser):
    size = {"width": 390, "height": 844}
    with browser.new_context(viewport=size, has_touch=True) as context:
        page = context.new_page()
        context.route("**/*", answer())
        page.goto(ADDRESS)
        page.wait_for_function("performance.getEntriesByType('paint').length")
        page.tap("#slp-hear-play")
        playing = "document.getElementById('slp-hear-play').textContent === 'Pause'"
        page.wait_for_function(playing, timeout=60_000)


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720), (390, 844), (720, 450)])
def test_the_score_has_most_of_the_screen_below_its_top(size, browser):
    width, height = size
    with browser.new_context(viewport={"width": width, "height": height}) as context:
        page = context.new_page()
        context.route("**/*", answer())
        page.goto(ADDRESS)
        page.mouse.move(7, 11, steps=3)
        page.wait_for_selector("#slp-hear-still", state="detached")
        stage = "document.getElementById('slp-hear-stage').getBoundingClientRect()"
        panel = "document.getElementById('f-ask').getBoundingClientRect().top"
        page.evaluate(f"scrollBy(0, {stage}.top - 150)")
        page.wait_for_timeout(100)
        seen = page.evaluate(f"Math.min(innerHeight, {panel}) - Math.max(0, {stage}.top)")
        assert seen > height - 150 - 90


def test_a_meter_of_32_beats_is_drawn(shared, tmp_path):
    drop(shared, "long.mid", midi_bytes(("A", 0, 1, [(0, 90, 60)]), signatures=[(0, 32, 8)]))
    assert download(shared, "gp", tmp_path).bars[0].time_signature == (32, 8)


def test_a_file_that_takes_too_long_is_given_up(browser):
    with opened_page(browser) as opened:
        busy = "onmessage = () => { for (;;); }"
        opened.route(
            "**/score_reader.js",
            lambda route: route.fulfill(body=busy, content_type="text/javascript"),
        )
        before = opened.inner_text("#f-summary")
        opened.evaluate(DROP, ["slow.musicxml", base64.b64encode(score()).decode()])
        has = "([id, said]) => document.getElementById(id).textContent.includes(said)"
        opened.wait_for_function(has, arg=["f-summary", "Reading slow.musicxml"])
        opened.wait_for_function(has, arg=["f-note", "It takes more than 10 seconds to read."])
        assert opened.inner_text("#f-summary") == before
