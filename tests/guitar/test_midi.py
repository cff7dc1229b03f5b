"""MIDI at the door: any file as pitches in time, tabs with a channel for each string and back."""

import io

import mido
import pytest

from slp_guitar.formats import safe_read
from slp_guitar.formats.midi import read_midi_tabs
from slp_guitar.formats.notation import measures_from_tab
from slp_guitar.formats.registry import describe_losses, write_tab
from slp_guitar.fretboard import STANDARD, Note, Tuning
from slp_guitar.tab import Bar, Event, Tab
from slp_guitar.timing import bar_start_steps


def midi_file(path, *tracks, ticks=480, kind=1):
    """A MIDI file of tracks, each a list of (tick, message)."""
    file = mido.MidiFile(type=kind, ticks_per_beat=ticks)
    for said in tracks:
        track, now = mido.MidiTrack(), 0
        for tick, message in sorted(said, key=lambda each: each[0]):
            track.append(message.copy(time=tick - now))
            now = tick
        file.tracks.append(track)
    file.save(path)
    return path


def note(start, end, pitch, channel=1):
    on = mido.Message("note_on", channel=channel - 1, note=pitch, velocity=60)
    return [(start, on), (end, on.copy(velocity=0))]


def meta(tick, kind, **said):
    return (tick, mido.MetaMessage(kind, **said))


def sounding(tab):
    """Onset, duration and pitch of each note, in steps."""
    found = []
    for start, bar in zip(bar_start_steps(tab), tab.bars, strict=False):
        for event in bar.events:
            for each in event.tab_notes():
                pitch = tab.tuning.pitch_of(each.note)
                found.append((start + event.step, each.duration_steps, pitch))
    return sorted(found)


def test_a_file_by_hand(tmp_path):
    conductor = [
        meta(0, "track_name", name="Two voices"),
        meta(0, "time_signature", numerator=3, denominator=4),
        meta(0, "set_tempo", tempo=500_000),
        meta(1440, "set_tempo", tempo=1_000_000),
    ]
    melody = [*note(0, 480, 64), *note(480, 720, 67), *note(720, 960, 69)]
    bass = [*note(0, 1440, 40, 2), *note(0, 10, 35, 10)]
    bend = (490, mido.Message("pitchwheel", channel=0, pitch=4096))
    path = midi_file(tmp_path / "song.mid", conductor, [*melody, bend], bass)
    (tab,), problems = read_midi_tabs(path)
    assert (tab.steps_per_quarter, tab.title, tab.is_fingered) == (2, "Two voices", False)
    assert sounding(tab) == [(0, 2, 64), (0, 6, 40), (2, 1, 67), (3, 1, 69)]
    changes = [(bar.steps, bar.time_signature, bar.tempo_bpm) for bar in tab.bars]
    assert changes == [(6, (3, 4), 120)]
    assert [str(problem) for problem in problems] == [
        "song.mid: notes of drums, on channel 10, are left out",
        "song.mid: tracks 2, 3 are read together; --tracks chooses some",
        "song.mid: pitchwheel left out (the first in bar 1)",
    ]
    assert [note[2] for note in sounding(read_midi_tabs(path, tracks=[3])[0][0])] == [40]
    assert [note[2] for note in sounding(read_midi_tabs(path, channels=[10])[0][0])] == [35]
    with pytest.raises(
        ValueError, match="no notes there: there are notes in track 2, channel 1: 3"
    ):
        read_midi_tabs(path, tracks=[1])


def test_a_time_signature_that_comes_too_early_waits_for_the_bar_to_end(tmp_path):
    """A bar of 8/3 quarters has no time signature, and no file but a tab could hold it."""
    early = [meta(tick, "time_signature", numerator=3, denominator=4) for tick in (640, 1920)]
    (tab,), _ = read_midi_tabs(midi_file(tmp_path / "a.mid", [*early, *note(640, 2880, 60)]))
    assert [(bar.steps, bar.time_signature) for bar in tab.bars] == [(12, (4, 4)), (9, (3, 4))]


def test_notes_as_people_play_them_are_moved_and_told(tmp_path):
    said = [*note(3, 470, 60), *note(483, 900, 62), *note(967, 1400, 64), *note(1211, 1300, 65)]
    (tab,), problems = read_midi_tabs(midi_file(tmp_path / "played.mid", said))
    assert tab.steps_per_quarter == 12
    assert sounding(tab) == [(0, 12, 60), (12, 11, 62), (24, 11, 64), (30, 3, 65)]
    message = (
        "4 notes are moved to the nearest of 12 steps to a quarter note; beats and bars are the "
        "file's, and are not looked for in what was played without a click"
    )
    assert problems[0].message == message
    (coarse,), _ = read_midi_tabs(tmp_path / "played.mid", quantize=2)
    assert [onset for onset, _, _ in sounding(coarse)] == [0, 2, 4, 5]


def test_a_strummed_chord_is_one_moment(tmp_path):
    """12 ms at 120 quarter notes a minute are 11.5 of 480 ticks; 35 ms are two strokes."""
    strum = [*note(480, 960, 60), *note(486, 960, 64), *note(492, 960, 67)]
    (tab,), problems = read_midi_tabs(
        midi_file(tmp_path / "strum.mid", [*note(0, 480, 60), *strum])
    )
    assert sounding(tab) == [(0, 1, 60), (1, 1, 60), (1, 1, 64), (1, 1, 67)] and not problems
    apart = [*note(0, 480, 60), *note(34, 480, 64), *note(480, 960, 67)]
    (tab,), _ = read_midi_tabs(midi_file(tmp_path / "apart.mid", apart))
    assert len({onset for onset, _, _ in sounding(tab)}) == 3


def test_how_long_a_strum_takes_follows_the_tempo_where_it_is(tmp_path):
    """30 ms are 57.6 of 480 ticks at 240 quarter notes a minute, and 14.4 at 60."""
    tempos = [meta(0, "set_tempo", tempo=250_000), meta(960, "set_tempo", tempo=1_000_000)]
    fast = [*note(480, 960, 60), *note(530, 960, 64)]
    slow = [*note(960, 1440, 60), *note(1010, 1440, 64)]
    (tab,), _ = read_midi_tabs(midi_file(tmp_path / "tempos.mid", [*tempos, *fast, *slow]))
    assert [onset for onset, _, _ in sounding(tab)] == [12, 12, 24, 25]


def test_short_ends_do_not_make_steps_finer(tmp_path):
    said = [*note(0, 229, 60), *note(240, 469, 62), *note(480, 709, 64)]
    (tab,), problems = read_midi_tabs(midi_file(tmp_path / "short.mid", said))
    assert (tab.steps_per_quarter, problems) == (2, [])
    assert [duration for _, duration, _ in sounding(tab)] == [1, 1, 1]


def test_the_sustain_pedal_lets_notes_ring_on(tmp_path):
    def pedal(tick, value, channel=1):
        return tick, mido.Message("control_change", channel=channel - 1, control=64, value=value)

    said = [pedal(100, 127), pedal(1440, 0), pedal(1900, 64, channel=2)]
    said += [*note(0, 480, 48), *note(480, 960, 52), *note(960, 1440, 55), *note(1440, 1920, 60)]
    (tab,), problems = read_midi_tabs(midi_file(tmp_path / "pedal.mid", said))
    assert problems == []
    rings = {
        tab.tuning.pitch_of(each.note): [own.kind for own in each.techniques]
        for event in tab.iter_events()
        for each in event.tab_notes()
    }
    # the third note ends with the pedal, the last comes after it
    assert rings == {48: ["let ring"], 52: ["let ring"], 55: [], 60: []}
    assert [length for _, length, _ in sounding(tab)] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("down", "channel", "up", "rings"),
    [
        (64, 1, 480, True),  # an eighth after the key is let go
        (64, 1, 479, False),
        (63, 1, 480, False),  # that is up
        (64, 2, 1200, False),  # another instrument's
        (64, 1, None, True),  # it stays down
    ],
)
def test_the_pedal_holds_a_note_of_its_channel_for_an_eighth_or_longer(
    tmp_path, down, channel, up, rings
):
    said = [*note(0, 240, 60), *note(960, 1440, 62, channel=2)]
    for tick, value in ((0, down), (up, 0)):
        if tick is not None:
            kind = mido.Message("control_change", channel=channel - 1, control=64, value=value)
            said.append((tick, kind))
    tabs, _ = read_midi_tabs(midi_file(tmp_path / "pedal.mid", said))
    first = next(tabs[0].iter_events()).tab_notes()[0]
    assert [own.kind for own in first.techniques] == ["let ring"] * rings


@pytest.mark.parametrize("early", [0, 7])
def test_quintuplets_are_read_beside_triplets_and_sixteenths(tmp_path, early):
    starts = [480 * beat + 480 * k // n for beat, n in enumerate((3, 5, 4)) for k in range(n)]
    ends = [*starts[1:], 3 * 480]
    said = [each for a, b in zip(starts, ends, strict=True) for each in note(a, b - early, 60)]
    (tab,), problems = read_midi_tabs(midi_file(tmp_path / "tuplets.mid", said))
    assert (tab.steps_per_quarter, problems) == (60, [])
    assert [(on * 8, on * 8 + length * 8) for on, length, _ in sounding(tab)] == list(
        zip(starts, ends, strict=True)
    )
    ((beats, _),) = [measure.voices for measure in measures_from_tab(tab)]
    assert [beat.note_value.tuplet_notes for beat in beats[:12]] == [3] * 3 + [5] * 5 + [1] * 4


def test_a_beat_that_notation_cannot_hold_is_moved(tmp_path):
    said = [*note(0, 96, 60), *note(96, 160, 62), *note(160, 480, 64)]  # a fifth, then a third
    (tab,), problems = read_midi_tabs(midi_file(tmp_path / "mixed.mid", said))
    assert [(onset, length) for onset, length, _ in sounding(tab)] == [(0, 1), (1, 1), (2, 4)]
    assert (
        tab.steps_per_quarter == 6
        and "notes are moved to the nearest of 12 steps" in problems[0].message
    )
    measures_from_tab(tab)


def test_a_note_that_never_ends_ends_with_its_track(tmp_path):
    said = [note(0, 0, 60)[0], *note(480, 960, 62)]
    (tab,), problems = read_midi_tabs(midi_file(tmp_path / "stuck.mid", said))
    assert sounding(tab)[0] == (0, 2, 60)
    assert [p.message for p in problems] == ["notes never end; they end with their track"]


def test_strings_are_channels_and_the_highest_is_the_first(tmp_path):
    tab = Tab(
        "Low E, high E",
        bars=(Bar(4, (Event(0, (Note(6, 0), Note(1, 3)), (4, 4)),), (4, 4), 90),),
        steps_per_quarter=1,
    )
    write_tab(tab, tmp_path / "out.mid")
    sent = {
        (message.channel, message.note)
        for message in mido.MidiFile(tmp_path / "out.mid")
        if message.type == "note_on"
    }
    assert sent == {(5, 40), (0, 67)}
    (back,), problems = read_midi_tabs(tmp_path / "out.mid")
    assert (back.title, back.bars, problems) == (tab.title, tab.bars, [])


def test_all_strings_are_in_one_track(tmp_path):
    bar = Bar(4, (Event(0, tuple(Note(string, 1) for string in range(6, 0, -1))),))
    write_tab(Tab("Chord", bars=(bar,), steps_per_quarter=1), tmp_path / "out.mid")
    conductor, guitar = mido.MidiFile(tmp_path / "out.mid").tracks
    assert conductor.name == "Chord" and all(message.is_meta for message in conductor)
    sent = [message for message in guitar if message.type == "note_on"]
    assert sorted(message.channel for message in sent) == list(range(6))


def test_a_program_that_cuts_off_decimals_shows_every_tempo(tmp_path):
    tempi = range(40, 241)
    bars = tuple(Bar(4, (Event(0, (Note(1, 0),)),), (4, 4), tempo) for tempo in tempi)
    write_tab(Tab(bars=bars, steps_per_quarter=1), tmp_path / "out.mid")
    messages = mido.MidiFile(tmp_path / "out.mid").tracks[0]
    shown = [int(60e6 / message.tempo) for message in messages if message.type == "set_tempo"]
    assert shown == list(tempi)


def test_channels_are_the_strings_of_the_guitar_that_a_track_states(tmp_path):
    def read(pitch, channel, tuning):
        guitar = [meta(0, "text", text=f"tuning: {tuning}")]
        for number in range(6):
            guitar.append((0, mido.Message("program_change", channel=number, program=25)))
        return read_midi_tabs(
            midi_file(tmp_path / "a.mid", [*guitar, *note(0, 480, pitch, channel)])
        )

    ((back,), problems) = read(60, 1, "D A D G B B")
    assert back.bars[0].events[0].notes == (Note(1, 1),) and problems == []
    for channel in (1, 9):  # below the open string 1, and no string's
        ((back,), problems) = read(60, channel, "E A D G B E")
        assert not back.is_fingered and back.bars[0].events[0].notes == (Note(1, 60),)
        said = "a track has notes on none of its strings; they are read by their pitches"
        assert said in [problem.message for problem in problems]


def test_a_tab_of_columns_has_no_time_to_write(tmp_path):
    columns = Tab(bars=(Bar(4, (Event(0, (Note(1, 0),)),)),))
    with pytest.raises(ValueError, match="columns of a text, not time"):
        write_tab(columns, tmp_path / "out.mid")
    high = Tab(bars=(Bar(4, (Event(0, (Note(1, 64),)),)),), steps_per_quarter=4)
    with pytest.raises(ValueError, match="0 to 127, and this tab has 128"):
        write_tab(high, tmp_path / "out.mid")
    assert list(tmp_path.iterdir()) == []


def seconds_file():
    content = io.BytesIO()
    mido.MidiFile(tracks=[mido.MidiTrack()]).save(file=content)
    return content.getvalue()[:12] + b"\xe7\x28" + content.getvalue()[14:]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"e|--0--|\n", "cannot be read as a MIDI file: MThd not found"),
        (b"MThd", "cannot be read as a MIDI file: it ends too early"),
        (b"MThd\0\0\0\6\0\1\0\1\1\xe0MTrk\0\0\0\x40\0\x90", "cannot be read as a MIDI file"),
        (seconds_file(), "its time is in seconds"),
        (
            b"MThd\0\0\0\6\0\1\0\1\1\xe0MTrk\0\x0f\0\0" + b"\xff" * (15 << 16),
            "takes more than 0.2 seconds",
        ),
        (b"\0" * ((1 << 20) + 1), "too large for a MIDI file: more than 1,024 KiB"),
    ],
)
def test_what_is_no_midi_file_is_said_in_a_sentence(tmp_path, monkeypatch, content, sentence):
    monkeypatch.setattr(safe_read, "MAX_CPU_SECONDS", 0.2)
    path = tmp_path / "odd.mid"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        read_midi_tabs(path)
    with pytest.raises(ValueError, match="There is no file"):
        read_midi_tabs(tmp_path / "none.mid")


def test_too_many_notes_are_refused_before_any_work(tmp_path):
    notes = b"\0\x90\x28\x50" + b"\0\x28\x50" * 50_000 + b"\0\xff\x2f\0"
    path, head = tmp_path / "many.mid", b"MThd\0\0\0\6\0\1\0\1\1\xe0MTrk"
    path.write_bytes(head + len(notes).to_bytes(4, "big") + notes)
    with pytest.raises(ValueError, match="it has 50,001 notes, more than 50,000"):
        read_midi_tabs(path)


def test_one_channel_has_every_pitch_and_no_note_that_is_never_ended(tmp_path):
    same = Event(0, (Note(2, 5), Note(1, 0)), durations=(8, 2))  # E4 on two strings
    events = (same, Event(4, (Note(2, 5),)), Event(6, (Note(1, 0),), durations=(10,)))
    tab = Tab("Song", Tuning(STANDARD.open_pitches, 1), (Bar(16, events),), steps_per_quarter=4)
    write_tab(tab, tmp_path / "one.mid", tab, one_channel=True)
    file = mido.MidiFile(tmp_path / "one.mid")
    channels = [{m.channel for m in track if not m.is_meta} for track in file.tracks]
    assert channels == [set(), {0}, {1}]
    (read, *_), problems = read_midi_tabs(tmp_path / "one.mid", channels=(1,))
    assert sounding(read) == [(0, 2, 65), (2, 1, 65), (3, 5, 65)] and not problems
    assert read.steps_per_quarter == 2 and not read.is_fingered
    with pytest.raises(ValueError, match="one.gp5 is no MIDI file"):
        write_tab(tab, tmp_path / "one.gp5", one_channel=True)


def test_what_a_file_of_one_channel_does_not_hold_is_said(tmp_path):
    events = (Event(0, (Note(6, 0), Note(4, 2))), Event(8, (Note(1, 3),)))
    tab = Tab("Song", Tuning(STANDARD.open_pitches, 1), (Bar(16, events),), steps_per_quarter=4)
    write_tab(tab, tmp_path / "one.mid", one_channel=True)
    lost = describe_losses([tab], read_midi_tabs(tmp_path / "one.mid")[0])
    assert lost == ["the strings", "the tuning", "the capo"]
