"""`slp-transformer tab`: pitches in, tab that can be played out."""

import gc
import os
import re
import signal
from pathlib import Path

import pytest
from commands import fine, refused
from guitar_pieces import event, timed
from own_process import python

from slp_guitar import read_tab_file
from slp_guitar.commands.song_options import TabOptions
from slp_guitar.commands.tab import make_fingering_options
from slp_guitar.formats import registry
from slp_guitar.formats.registry import read_any_tab_file, write_tab
from slp_guitar.fretboard import DROP_D, STANDARD, Note, Tuning, is_playable_grip
from slp_guitar.tab import Bar, Event, Tab, TabNote, Technique
from slp_transformer._internal import atomic_write

mido = pytest.importorskip("mido", reason="MIDI files need the guitar extra")

ODE = (64, 64, 65, 67, 67, 65, 64, 62, 60, 60, 62, 64, 64, 62, 62)
CHORDS = {0: (48, 55), 8: (45,), 14: (43, 55)}


def sounding(tab: Tab) -> list[tuple[int, ...]]:
    return [tuple(sorted(map(tab.tuning.pitch_of, event.notes))) for event in tab.iter_events()]


def expected() -> list[tuple[int, ...]]:
    return [tuple(sorted((pitch, *CHORDS.get(i, ())))) for i, pitch in enumerate(ODE)]


@pytest.fixture(scope="module")
def song(tmp_path_factory):
    """A melody with some chords, quarter notes in four bars, as any program writes it."""
    path = tmp_path_factory.mktemp("songs") / "song.mid"
    track = mido.MidiTrack()
    for pitches in expected():
        for kind, wait in (("note_on", 0), ("note_off", 480)):
            for first, pitch in enumerate(pitches):
                time = 0 if first else wait
                track.append(mido.Message(kind, note=pitch, velocity=80, time=time))
    mido.MidiFile(ticks_per_beat=480, tracks=[track]).save(path)
    return path


def written(path) -> Tab:
    (tab,), problems = read_tab_file(path)
    assert not problems
    return tab


def test_a_midi_file_becomes_tab_that_can_be_played(song, tmp_path, capsys):
    out = tmp_path / "song.txt"
    fine("tab", str(song), "-o", str(out))
    said = capsys.readouterr()
    tab = written(out)
    assert sounding(tab) == expected() and tab.tuning == STANDARD
    assert all(is_playable_grip(event.notes) for event in tab.iter_events())
    assert max(note.fret for event in tab.iter_events() for note in event.notes) <= 3
    assert said.out == "" and "standard" in said.err and "20 at 15 moments" in said.err
    assert "cut short" not in said.err
    assert "Loading" not in said.err


def test_notes_that_cannot_ring_on_are_counted(tmp_path, capsys):
    """E2 has one place only, string 6, and so has F2, which comes while E2 should sound."""
    track, now = mido.MidiTrack(), 0
    for kind, pitch, at in (
        *(("note_on", 40, 0), ("note_on", 41, 480), ("note_off", 41, 960)),
        *(("note_on", 64, 960), ("note_off", 40, 1920), ("note_off", 64, 1920)),
    ):
        track.append(mido.Message(kind, note=pitch, velocity=80, time=at - now))
        now = at
    mido.MidiFile(ticks_per_beat=480, tracks=[track]).save(tmp_path / "bass.mid")
    for command in ("tab", "convert"):
        fine(command, str(tmp_path / "bass.mid"), "-o", str(tmp_path / "x.gp5"))
        assert "1 note cut short: the string is struck again." in capsys.readouterr().err


def test_without_an_output_all_of_it_is_shown(song, capsys):
    fine("tab", str(song))
    assert capsys.readouterr().out.count("|") >= 6 * 3


@pytest.mark.parametrize("suffix", [".mid", ".gp5", ".atex"])
def test_the_same_tab_goes_into_other_programs_files(song, tmp_path, suffix):
    pytest.importorskip("guitarpro", reason="Guitar Pro files need the guitar extra")
    fine("tab", str(song), "-o", str(tmp_path / "a.txt"), "--tuning", "drop-D", "--capo", "1")
    fine("tab", str(song), "-o", str(tmp_path / f"a{suffix}"), "--tuning", "drop-D", "--capo", "1")
    text = written(tmp_path / "a.txt")
    ((other,), _) = read_any_tab_file(tmp_path / f"a{suffix}")
    assert other.tuning == text.tuning == Tuning(DROP_D.open_pitches, 1)
    assert [e.notes for e in other.iter_events()] == [e.notes for e in text.iter_events()]
    assert sounding(other) == expected()
    # And in again, to be fingered anew.
    fine("tab", str(tmp_path / f"a{suffix}"), "-o", str(tmp_path / "b.txt"))
    assert sounding(written(tmp_path / "b.txt")) == expected()


def test_wishes_are_heeded(song, tmp_path):
    def frets(*flags):
        fine("tab", str(song), "-o", str(tmp_path / "x.txt"), *flags)
        tab = written(tmp_path / "x.txt")
        assert sounding(tab) == expected()
        return [note.fret for event in tab.iter_events() for note in event.notes]

    usual = frets()
    fewer, more = frets("--open-strings", "less"), frets("--open-strings", "more")
    assert fewer.count(0) < usual.count(0) <= more.count(0)
    assert max(usual) < 5 <= max(frets("--position", "5", "--open-strings", "less"))
    easy = frets("--position", "9", "--easy")
    assert frets("--easy") == frets("--position", "1", "--open-strings", "more", "--max-span", "3")
    assert max(frets("--easy")) < 5 < max(easy)
    assert max(frets("--max-fret", "3")) <= 3


def test_easy_is_three_flags_each_of_which_can_be_changed():
    def asked(**flags):
        found = make_fingering_options(TabOptions(song=Path("x.mid"), **flags), Tab())
        return found.preferred_position, found.open_string_preference, found.max_span

    assert asked() == (None, 0, 4) and asked(easy=True) == (1, 1, 3)
    assert asked(easy=True, position=5) == (5, 1, 3)
    assert asked(easy=True, open_strings="less") == (1, -1, 3)
    assert asked(easy=True, max_span=5) == (1, 1, 5)


def test_a_review_draws_what_is_uncertain_and_its_pins_do_what_they_say(song, tmp_path, capsys):
    fine("tab", str(song), "-o", str(tmp_path / "x.txt"), "--review", "3")
    said = capsys.readouterr().out
    assert [said.count(f"{number}. bar ") for number in (1, 2, 3, 4)] == [1, 1, 1, 0]
    for pin, moments in re.findall(r"--pin (\S+)  costs \S+ more, changes (\d+) moment", said):
        fine("tab", str(song), "-o", str(tmp_path / "y.txt"), "--pin", pin)
        before, after = (written(tmp_path / name).iter_events() for name in ("x.txt", "y.txt"))
        changed = [a.notes != b.notes for a, b in zip(before, after, strict=True)]
        assert sum(changed) == int(moments) > 0


def test_alternatives_differ_and_are_numbered(song, tmp_path):
    fine("tab", str(song), "-o", str(tmp_path / "x.txt"), "--alternatives", "3")
    tabs = [written(tmp_path / name) for name in ("x.txt", "x-2.txt", "x-3.txt")]
    assert len({tuple(event.notes for event in tab.iter_events()) for tab in tabs}) == 3
    assert all(sounding(tab) == expected() for tab in tabs)


def test_notes_out_of_reach_are_reported_and_moved_or_dropped_only_if_asked(song, tmp_path, capsys):
    out = tmp_path / "x.txt"
    high = ["tab", str(song), "-o", str(out), "--capo", "5"]
    said = refused(capsys, *high)
    assert "One moment is out of this guitar's reach" in said
    assert "bar 4, moment 3 (beat 3): G2 is not on this neck, which goes from A2 to B5" in said
    assert not out.exists()
    fine(*high, "--unplayable", "octave")
    assert "G2 is moved to G3" in capsys.readouterr().err
    assert sounding(written(out))[-1] == (55, 62)
    fine(*high, "--unplayable", "drop")
    assert "bar 4, moment 3 (beat 3): G2 is left out" in capsys.readouterr().err
    assert sounding(written(out))[-1] == (55, 62) and sounding(written(out))[:-1] == expected()[:-1]


def test_a_chord_with_too_many_notes_loses_inner_ones_if_asked(tmp_path, capsys):
    path, out = tmp_path / "piano.mid", tmp_path / "x.txt"
    guitar = Tuning((64, 60, 57, 53, 50, 48, 45, 41))
    chord = tuple(Note(string, 0) for string in range(8, 0, -1))
    write_tab(Tab("", guitar, (Bar(4, (Event(0, chord),)),), "", 1), path)
    asked = ("tab", str(path), "--tuning", "standard")
    assert "8 notes at once need more than 6 strings" in refused(capsys, *asked)
    fine(*asked, "--unplayable", "drop", "-o", str(out))
    (kept,) = sounding(written(out))
    assert kept[0] == 41 and kept[-1] == 64 and 4 <= len(kept) <= 6


def test_a_tab_is_fingered_for_another_guitar(tmp_path, capsys):
    rows = {"E": "----0---", "B": "--3---1-", "G": "-" * 8, "D": "-" * 8, "A": "-" * 8}
    text = "\n".join(f"{name}|{row}|" for name, row in (*rows.items(), ("E", "3-------")))
    (tmp_path / "in.txt").write_text(text + "\n", encoding="utf-8")
    fine("tab", str(tmp_path / "in.txt"), "--tuning", "D A D G A D", "-o", str(tmp_path / "x.txt"))
    tab = written(tmp_path / "x.txt")
    assert tab.tuning.open_pitches == (62, 57, 55, 50, 45, 38)
    assert sounding(tab) == [(43,), (62,), (64,), (60,)]
    fine("tab", str(tmp_path / "in.txt"), "-o", str(tmp_path / "x.mid"))
    assert "in.txt: 4/4 by its bars, 1 step a quarter, 1 of 1 bars fit." in capsys.readouterr().err
    steps = ("--steps-per-quarter", "2")
    fine("tab", str(tmp_path / "in.txt"), "-o", str(tmp_path / "x.mid"), *steps)
    assert "no effect" not in capsys.readouterr().err
    ((back,), _) = read_any_tab_file(tmp_path / "x.mid")
    assert sounding(back) == [(43,), (62,), (64,), (60,)]
    fine("tab", str(tmp_path / "x.mid"), "-o", str(tmp_path / "y.mid"), *steps)
    assert "--steps-per-quarter has no effect here" in capsys.readouterr().err


def test_how_notes_are_played_is_not_carried_over_in_silence(tmp_path, capsys):
    notes = (Note(6, 3), Note(1, 0))
    event = Event(0, notes, techniques=((Technique("dead"),), (Technique("vibrato"),)))
    bars = (Bar(4, (event,)),)
    write_tab(Tab("", STANDARD, bars, "", 1), tmp_path / "a.gp5")
    fine("tab", str(tmp_path / "a.gp5"), "-o", str(tmp_path / "x.txt"), "--refinger")
    said = capsys.readouterr().err
    assert "without a pitch is left out" in said
    assert sounding(written(tmp_path / "x.txt")) == [(64,)]
    assert "~" in (tmp_path / "x.txt").read_text(encoding="utf-8")
    plain = tmp_path / "plain.gp5"
    write_tab(Tab("", STANDARD, (Bar(4, (Event(0, notes),)),), "", 1), plain)
    fine("tab", str(plain), "-o", str(tmp_path / "x.txt"), "--refinger")
    assert "left out" not in capsys.readouterr().err


def test_a_fingering_that_is_there_is_kept_and_so_is_the_guitar(tmp_path, capsys):
    guitar, high = Tuning(DROP_D.open_pitches, 2), Event(0, (Note(6, 12), Note(5, 10)))
    write_tab(Tab("", guitar, (Bar(4, (high,)),), "", 1), tmp_path / "a.gp5")
    fine("tab", str(tmp_path / "a.gp5"), "-o", str(tmp_path / "x.txt"))
    kept = written(tmp_path / "x.txt")
    assert kept.tuning == guitar and [e.notes for e in kept.iter_events()] == [high.notes]
    fine("tab", str(tmp_path / "a.gp5"), "-o", str(tmp_path / "x.txt"), "--refinger")
    other = written(tmp_path / "x.txt")
    assert other.tuning == guitar and sounding(other) == [(52, 57)]
    assert [event.notes for event in other.iter_events()] != [high.notes]


def test_the_easiest_capo_gives_open_shapes_at_the_same_pitches(tmp_path, capsys):
    """E flat, A flat and B flat, voiced as C, F and G of the first position, three frets up."""
    shapes = [
        [(5, 3), (4, 2), (3, 0), (2, 1), (1, 0)],
        [(4, 3), (3, 2), (2, 1), (1, 1)],
        [(6, 3), (5, 2), (4, 0), (3, 0), (2, 0), (1, 3)],
    ]
    events = [
        Event.from_notes(4 * n, [TabNote(Note(s, f + 3), 4) for s, f in shape])
        for n, shape in enumerate(shapes * 2)
    ]
    write_tab(timed(Bar(24, tuple(events))), tmp_path / "a.atex")
    fine("tab", str(tmp_path / "a.atex"), "--easiest-capo", "-o", str(tmp_path / "b.atex"))
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "1. capo 3, shapes of C: x32010 xx3211 320003"
    assert all(re.fullmatch(r"\d\. .+; costs \d+\.\d more", own) for own in (second, third))
    before, after = (read_any_tab_file(tmp_path / f"{n}.atex")[0][0] for n in "ab")
    assert after.tuning == Tuning(capo=3) and sounding(after) == sounding(before)
    said = refused(capsys, "tab", str(tmp_path / "a.atex"), "--easiest-capo", "--capo", "2")
    assert "--easiest-capo finds the capo, and --capo is for a given one." in said


@pytest.mark.parametrize("suffix", [".gp5", ".musicxml", ".atex"])
def test_a_new_fingering_has_fingers_and_they_are_read_again(tmp_path, suffix):
    pytest.importorskip("guitarpro", reason="Guitar Pro files need the guitar extra")
    shapes = [[(5, 3), (4, 2), (3, 0), (2, 1), (1, 0)], [(6, 3), (5, 2), (4, 0), (3, 0), (1, 3)]]
    events = [
        Event.from_notes(4 * n, [TabNote(Note(*place), 4) for place in shape])
        for n, shape in enumerate(shapes)
    ]
    write_tab(timed(Bar(8, tuple(events))), tmp_path / "a.atex")
    out, again = (tmp_path / f"{name}{suffix}" for name in "bc")
    fine("tab", str(tmp_path / "a.atex"), "--refinger", "-o", str(out))
    fine("convert", str(out), "-o", str(again))
    for path in (out, again):
        ((tab,), _) = read_any_tab_file(path)
        fingers = [
            {note.string: [t.kind for t in techniques] for note, _, techniques, _ in e.tab_notes()}
            for e in tab.iter_events()
        ]
        assert fingers == [
            {5: ["finger 3"], 4: ["finger 2"], 3: [], 2: ["finger 1"], 1: []},
            {6: ["finger 3"], 5: ["finger 2"], 4: [], 3: [], 1: ["finger 4"]},
        ]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["-o", "none/x.txt"], "There is no folder none"),
        (["-o", "x.doc"], "x.doc does not say what to write"),
        (["-o", "x.pdf"], "x.pdf is not written here: write a .musicxml, and print that"),
        (["--tuning", "zither"], 'There is no tuning "zither"'),
        (["--capo", "30"], "--capo must be from 0 to 12, not 30"),
        (["--max-fret", "0"], "--max-fret must be from 1 to 36, not 0"),
        (["--position", "20"], "--position must be from 1 to 15"),
        (["--alternatives", "0"], "--alternatives must be from 1 to 20"),
        (["--review", "-1"], "--review must be from 0 to 1,000"),
        (["--pin", "1=2"], "--pin is BAR:MOMENT=STRING/FRET"),
        (["--pin", "9:1=2/5"], "Bar 9 has 0 moments, so there is no 9:1"),
        (["--pin", "1:1=2/6"], "bar 1, moment 1: string 2, fret 6 is F4, and what sounds there is"),
        (["--pin", "1:1=9/6"], "bar 1, moment 1: String 9 does not exist"),
        (["--tracks", "40"], "has no notes there"),
        (["--model", "none"], "There is no option --model"),
        (["--open-strings", "none"], "invalid choice 'none' for argument '--open-strings'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    song, tmp_path, monkeypatch, capsys, flags, said
):
    monkeypatch.chdir(tmp_path)
    assert said in refused(capsys, "tab", str(song), *flags)
    assert list(tmp_path.iterdir()) == []


def test_files_of_no_use_are_named(tmp_path, capsys):
    (tmp_path / "a.mid").write_bytes(b"not a MIDI file")
    (tmp_path / "a.txt").write_text("no tab at all", encoding="utf-8")
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    said = {
        "a.mid": "a.mid",
        "a.wav": "is a recording",
        "a.pdf": "unsupported file",
        "b.mid": "b.mid",
    }
    (tmp_path / "a.gp5").write_bytes(b"Q" * 40)
    (tmp_path / "b.gp5").touch()
    (tmp_path / "a.gpx").write_bytes(b"BCFZ")
    said |= {"a.gpx": "a.gpx cannot be read as a Guitar Pro 6, 7 or 8 file: it holds no BCFS."}
    said |= {"a.gp5": "does not begin like one", "b.gp5": "b.gp5 is empty.", ".": "is a folder"}
    for name, sentence in {**said, "a.txt": "no tablature"}.items():
        assert sentence in refused(capsys, "tab", str(tmp_path / name))


def test_the_file_that_is_read_is_never_written_to(song, capsys):
    before = song.read_bytes()
    for command in ("tab", "convert"):
        assert "is the file to read" in refused(capsys, command, str(song), "-o", str(song))
    assert song.read_bytes() == before


@pytest.mark.parametrize("words", [["tab"], ["convert", "-o", "out.musicxml"]])
def test_it_needs_no_pytorch(song, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    script = (
        "import sys; from slp_transformer.cli import main; code = main(sys.argv[1:]); "
        "assert not {'torch', 'numpy'} & set(sys.modules); sys.exit(code)"
    )
    done = python("-c", script, *words, song)
    assert done.returncode == 0, done.stderr


def test_convert_keeps_all_and_lists_what_the_file_cannot_hold(tmp_path, capsys):
    guitar, bent = Tuning(DROP_D.open_pitches, 2), ((Technique("bend", 2),),)
    bars = (Bar(4, (Event(0, (Note(6, 12),), (4,), bent),), (4, 4), 90, num_plays=2),)
    write_tab(Tab("Piece", guitar, bars, "", 1), tmp_path / "a.gp5")
    fine("convert", str(tmp_path / "a.gp5"), "-o", str(tmp_path / "b.musicxml"))
    said = capsys.readouterr().err
    assert "does not hold" not in said and "--no-capo" in said and "--max-fret" not in said
    fine("convert", str(tmp_path / "a.gp5"), "-o", str(tmp_path / "e.gp4"), "--max-fret", "22")
    assert "--max-fret has no effect here: these notes have strings" in capsys.readouterr().err
    ((back,), _) = read_any_tab_file(tmp_path / "b.musicxml")
    assert (back.title, back.tuning, back.bars[0].num_plays) == ("Piece", guitar, 2)
    fine("convert", str(tmp_path / "b.musicxml"), "-o", str(tmp_path / "c.mid"))
    assert "c.mid does not hold the repeats, which are played out, 2 bends" in (
        capsys.readouterr().err
    )
    fine("convert", str(tmp_path / "a.gp5"), "-o", str(tmp_path / "d.musicxml"), "--no-capo")
    ((open_strings,), _) = read_any_tab_file(tmp_path / "d.musicxml")
    assert open_strings.tuning == Tuning(tuple(pitch + 2 for pitch in guitar.open_pitches))
    assert [e.notes for e in open_strings.iter_events()] == [(Note(6, 12),)]


def test_a_command_looks_for_cycles_seldom_and_then_as_before(song, tmp_path, monkeypatch, capsys):
    """Python would walk through a piece's notes again and again, which are in none."""
    before, during = gc.get_threshold(), []

    def write(*words, **flags):
        during.append(gc.get_threshold())
        write_tab(*words, **flags)

    monkeypatch.setattr(registry, "write_tab", write)
    fine("convert", str(song), "-o", str(tmp_path / "song.musicxml"))
    refused(capsys, "convert", str(song), "-o", str(tmp_path / "song.pdf"))
    assert during[0][0] >= 100_000 and gc.get_threshold() == before
    gc.set_threshold(0)  # off stays off
    try:
        fine("convert", str(song), "-o", str(tmp_path / "song.musicxml"))
        assert during[1][0] == 0 and gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX's")
@pytest.mark.parametrize("command", ["tab", "convert"])
def test_a_pipe_is_written_to_and_not_waited_for(command, song, tmp_path, monkeypatch, capsys):
    no_time = atomic_write.WAITS["a pipe's reader"]._replace(seconds=0.0)
    monkeypatch.setitem(atomic_write.WAITS, "a pipe's reader", no_time)
    pipe = tmp_path / "pipe.mid"
    os.mkfifo(pipe)
    words = [command, str(song), "-o", str(pipe)]
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits for a reader"))
    signal.alarm(60)
    try:
        assert "pipe.mid could not be read or written: nobody reads" in refused(capsys, *words)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    fine(*words)
    assert os.read(reader, 1 << 16).startswith(b"MThd")
    os.close(reader)


def test_what_a_umask_hides_is_not_read_back(tmp_path, monkeypatch):
    out = tmp_path / "song.mid"
    monkeypatch.setattr(registry.os, "access", lambda path, mode: path != out)
    monkeypatch.setattr(registry, "read_any_tab_file", lambda *_: pytest.fail("it was read"))
    tabs = [timed(Bar(4, (event(0, (1, 3), durations=(4,)),), (4, 4), 90), unit=1)]
    write_tab(tabs[0], out)
    assert registry.find_losses(tabs, out) == []


def test_convert_takes_the_tracks_that_are_asked_for(tmp_path, capsys):
    def track(name, *notes):
        return Tab("Band", STANDARD, (Bar(4, (Event(0, notes),), (4, 4)),), "", 1, "", name)

    band = [track("Lead", Note(1, 3)), track("Rhythm", Note(6, 3)), track("Third", Note(2, 3))]
    write_tab(band[0], tmp_path / "a.gp5", *band[1:])
    out = ["-o", str(tmp_path / "b.txt")]
    fine("convert", str(tmp_path / "a.gp5"), *out, "--tracks", "3", "2")
    tabs, _ = read_any_tab_file(tmp_path / "b.txt")
    assert [tab.track for tab in tabs] == ["Third", "Rhythm"]
    wrong = refused(capsys, "convert", str(tmp_path / "a.gp5"), *out, "--tracks", "4")
    assert "has no track 4: its tracks are 1 to 3" in wrong
    wrong = refused(capsys, "convert", str(tmp_path / "a.gp5"), *out, "--quantize", "4")
    assert "--quantize has no effect here" in wrong


def test_convert_fingers_what_has_no_strings_where_strings_are_needed(song, tmp_path, capsys):
    fine("convert", str(song), "-o", str(tmp_path / "a.gp5"))
    assert "have no strings; they are fingered" in capsys.readouterr().err
    ((tab,), _) = read_any_tab_file(tmp_path / "a.gp5")
    assert sounding(tab) == expected() and tab.tuning == STANDARD
    for suffix in (".musicxml", ".mid"):
        fine("convert", str(song), "-o", str(tmp_path / f"a{suffix}"))
        assert "string" not in capsys.readouterr().err
        ((tab,), _) = read_any_tab_file(tmp_path / f"a{suffix}")
        assert sounding(tab) == expected() and not tab.is_fingered


def played(folder, name, *pitches):
    """A MIDI file with a part of quarter notes."""
    track = mido.MidiTrack([mido.MetaMessage("track_name", name=name)])
    for pitch in pitches:
        track.append(mido.Message("note_on", note=pitch))
        track.append(mido.Message("note_off", note=pitch, time=480))
    mido.MidiFile(ticks_per_beat=480, tracks=[track]).save(folder / f"{name}.mid")
    return folder / f"{name}.mid"


@pytest.mark.parametrize("command", ["tab", "convert"])
def test_tab_and_convert_take_one_guitar(tmp_path, capsys, command):
    bass = played(tmp_path, "Bass", 26, 33, 38, 31)  # down to D1, which only a fifth string has
    fine(command, str(bass), "-o", str(tmp_path / "a.gp5"))
    ((tab,), _) = read_any_tab_file(tmp_path / "a.gp5")
    assert len(tab.tuning.open_pitches) == 5
    lead = played(tmp_path, "Lead", 64, 76, 85, 83)
    fine(command, str(lead), "-o", str(tmp_path / "b.gp5"))
    ((tab,), _) = read_any_tab_file(tmp_path / "b.gp5")
    assert tab.tuning == STANDARD
    assert max(note.fret for event in tab.iter_events() for note in event.notes) == 21
    assert "Lead.mid: not all its notes are within 19 frets: up to 24 are used" in (
        capsys.readouterr().err
    )


def test_a_note_that_no_neck_has_costs_that_note_or_is_refused_with_the_flag(tmp_path, capsys):
    lead, out = str(played(tmp_path, "Lead", 64, 76, 85, 83)), str(tmp_path / "a.gp5")
    fine("convert", lead, "-o", out, "--max-fret", "19")
    assert "Lead.mid, bar 1, moment 3 (beat 3): C#6 is left out" in capsys.readouterr().err
    ((tab,), _) = read_any_tab_file(out)
    assert pitches_of(tab) == [[64], [76], [83]]
    said = refused(capsys, "tab", lead, "--max-fret", "19")
    assert "--max-fret 21 has all its notes." in said
    said = refused(capsys, "convert", lead, "-o", out, "--max-fret", "37")
    assert "--max-fret must be from 1 to 36, not 37" in said


def test_a_part_takes_a_neck_that_the_file_can_hold(tmp_path, capsys):
    part = str(played(tmp_path, "Keys", 30, 64, 76))
    fine("convert", part, "-o", str(tmp_path / "a.atex"))
    assert "fingered for eight-string" in capsys.readouterr().err
    fine("convert", part, "-o", str(tmp_path / "a.gp5"))
    assert "moment 1 (beat 1): F#1 is left out" in capsys.readouterr().err


def pitches_of(tab):
    return [sorted(map(tab.tuning.pitch_of, event.notes)) for event in tab.iter_events()]


def test_pitches_move_by_half_steps_and_shapes_with_a_capo(song, tmp_path, capsys):
    plain, up, capo = (tmp_path / f"{name}.txt" for name in ("plain", "up", "capo"))
    fine("tab", str(song), "-o", str(plain))
    fine("tab", str(song), "-o", str(up), "--transpose", "3")
    fine("tab", str(song), "-o", str(capo), "--capo", "3", "--keep-shapes")
    higher = [[pitch + 3 for pitch in own] for own in pitches_of(written(plain))]
    assert pitches_of(written(up)) == pitches_of(written(capo)) == higher
    assert written(capo).tuning == Tuning(capo=3)
    assert [e.notes for e in written(capo).iter_events()] == [
        e.notes for e in written(plain).iter_events()
    ]
    fine("tab", str(plain), "-o", str(up), "--capo", "2", "--keep-shapes")  # of a fingered tab
    assert [e.notes for e in written(up).iter_events()] == [
        e.notes for e in written(plain).iter_events()
    ]
    assert written(up).tuning.capo == 2
    assert "needs --capo" in refused(capsys, "tab", str(song), "--keep-shapes")
    low = refused(capsys, "tab", str(song), "--capo", "12")  # C3 is below it
    assert low.endswith("leaves notes out. --keep-shapes keeps the shapes, 12 half steps higher.")
    assert "from -36 to 36" in refused(capsys, "tab", str(song), "--transpose", "40")


def test_a_file_that_names_no_guitar_gets_the_first_that_has_its_notes(song, tmp_path, capsys):
    out = tmp_path / "low.txt"
    fine("tab", str(song), "-o", str(out), "--transpose", "-5")  # the lowest note is G2
    assert "fingered for drop-D (--tuning takes another)" in capsys.readouterr().err
    assert written(out).tuning == DROP_D
    fine("tab", str(song), "-o", str(out), "--tuning", "ukulele-low-G", "--transpose", "12")
    assert written(out).tuning == Tuning((69, 64, 60, 55))
    assert "not on this neck" in refused(
        capsys, "tab", str(song), "--transpose", "-5", "--tuning", "standard"
    )
