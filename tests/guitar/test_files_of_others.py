"""What other programs write: read as they play it, and named where no tab can hold it."""

import struct
import zipfile
from dataclasses import replace

import mido
import pytest
from guitar_pieces import event, timed

from slp_guitar.formats import registry
from slp_guitar.formats.alphatex import parse_alphatex_tabs
from slp_guitar.formats.gpif import read_gp_tabs
from slp_guitar.formats.midi import read_midi_tabs
from slp_guitar.formats.musicxml import read_musicxml_tabs
from slp_guitar.fretboard import DROP_D, STANDARD
from slp_guitar.tab import Bar, Technique
from slp_guitar.timing import bar_start_steps
from slp_transformer.cli import main

guitarpro = pytest.importorskip("guitarpro", reason="Guitar Pro files need the guitar extra")


def sounding(tab):
    """Onset and length in quarters and pitch of each note, in order."""
    unit = tab.steps_per_quarter
    return [
        ((start + e.step) / unit, each.duration_steps / unit, tab.tuning.pitch_of(each.note))
        for start, _, e in tab.iter_placed_events()
        for each in e.tab_notes()
    ]


def said(problems):
    return [problem.message for problem in problems]


# --- Guitar Pro 3 to 5 ---------------------------------------------------------------------------


def song(bars, folder, change=None):
    """Write bars of beats, each a note value and (string, fret, type) of notes; read them back."""
    piece = guitarpro.Song(tempo=120)
    piece.measureHeaders = [guitarpro.MeasureHeader(number=n) for n, _ in enumerate(bars, start=1)]
    track = piece.tracks[0]
    track.measures = [guitarpro.Measure(track, header) for header in piece.measureHeaders]
    for measure, beats in zip(track.measures, bars, strict=True):
        voice = measure.voices[0]
        for value, *notes in beats:
            beat = guitarpro.Beat(voice, duration=guitarpro.Duration(value))
            beat.status = guitarpro.BeatStatus.normal if notes else guitarpro.BeatStatus.rest
            beat.notes = [
                guitarpro.Note(beat, value=fret, string=string, type=guitarpro.NoteType[kind])
                for string, fret, kind in notes
            ]
            voice.beats.append(beat)
    if change:
        change(piece)
    guitarpro.write(piece, folder / "song.gp5")
    return registry.read_any_tab_file(folder / "song.gp5")


def test_a_tie_over_a_gap_holds_its_note(tmp_path):
    """The low string sounds on while others are struck, as arpeggios are written."""
    low, others = (6, 3, "normal"), [(3, 0, "normal"), (2, 0, "normal")]
    beats = [(8, low), *((8, other) for other in others), (8, (1, 3, "normal"), (6, 3, "tie"))]
    (tab,), problems = song([[*beats, (2, (6, 5, "normal"))]], tmp_path)
    assert problems == [] and sounding(tab)[0] == (0, 2.0, 43)


def test_a_tie_over_more_than_three_bars_continues_no_note(tmp_path):
    low, high = (6, 3, "normal"), [(1, (1, 0, "normal"))]
    (tab,), problems = song([[(1, low)], *[high] * 4, [(1, (6, 3, "tie"))]], tmp_path)
    assert sounding(tab)[0] == (0, 4.0, 43)
    assert ["ties that continue no note" in problem.message for problem in problems] == [True]


def test_a_tempo_that_changes_inside_a_bar_begins_there(tmp_path):
    def change(piece):
        beat = piece.tracks[0].measures[0].voices[0].beats[1]
        beat.effect.mixTableChange = guitarpro.MixTableChange(tempo=guitarpro.MixTableItem(60))

    note = (1, 0, "normal")
    (tab,), problems = song([[(2, note), (2, note)], [(1, note)]], tmp_path, change)
    assert (tab.steps_per_quarter, problems) == (1, [])
    assert [(bar.tempo_bpm, bar.tempo_changes) for bar in tab.bars] == [
        (120, ((2, 60),)),
        (None, ()),
    ]


def test_what_no_tab_has_is_named_with_its_number_and_first_bar(tmp_path):
    def change(piece):
        for measure in piece.tracks[0].measures[1:]:
            for beat in measure.voices[0].beats:
                beat.notes[0].effect.trill = guitarpro.TrillEffect(5, guitarpro.Duration(16))
                beat.effect.fadeIn = True

    note = (1, 0, "normal")
    _, problems = song([[(1, note)], [(2, note), (2, note)]], tmp_path, change)
    assert said(problems) == [
        "2 BeatEffect.fadeIn left out (the first in bar 2)",
        "2 NoteEffect.trill left out (the first in bar 2)",
    ]


# --- Guitar Pro 7 and 8 --------------------------------------------------------------------------

QUARTER = '<Rhythms><Rhythm id="0"><NoteValue>Quarter</NoteValue></Rhythm></Rhythms>'


def gpif(voices, master="", bar_marks=None, beat="", note="", track=""):
    """The score of a Guitar Pro file whose bars hold so many quarters each."""
    beats = sum(voices)
    string = '<Property name="String"><String>5</String></Property>'
    notes = "".join(
        f'<Note id="{n}"><Properties>{string}<Property name="Fret"><Fret>{n}</Fret></Property>'
        f"{note}</Properties></Note>"
        for n in range(beats)
    )
    pitches = '<Property name="Tuning"><Pitches>40 45 50 55 59 64</Pitches></Property>'
    bars, names = "", ""
    for place, count in enumerate(voices):
        first = sum(voices[:place])
        mark = (bar_marks or {}).get(place, "")
        bars += f'<Bar id="{place}"><Voices>{place}</Voices>{mark}</Bar>'
        beat_names = " ".join(map(str, range(first, first + count)))
        names += f'<Voice id="{place}"><Beats>{beat_names}</Beats></Voice>'
    return (
        f"<GPIF><MasterTrack>{master}</MasterTrack><Tracks><Track>{track}<Staves><Staff><Properties>"
        f"{pitches}</Properties></Staff></Staves></Track></Tracks><MasterBars>"
        + "".join(f"<MasterBar><Bars>{n}</Bars></MasterBar>" for n in range(len(voices)))
        + f"</MasterBars><Bars>{bars}</Bars><Voices>{names}</Voices><Beats>"
        + "".join(
            f'<Beat id="{n}"><Rhythm ref="0"/><Notes>{n}</Notes>{beat}</Beat>' for n in range(beats)
        )
        + f"</Beats><Notes>{notes}</Notes>{QUARTER}</GPIF>"
    )


def gp(folder, *score, **marks):
    """Write a score as a .gp file, and read it."""
    with zipfile.ZipFile(folder / "song.gp", "w") as archive:
        archive.writestr("Content/score.gpif", gpif(*score, **marks))
    return read_gp_tabs(folder / "song.gp")


def file_system(**files):
    """The file system of Guitar Pro 6: entries, each followed by its content, in 4 KiB sectors."""
    sectors = [b"\xff" * 4096]
    for name, content in files.items():
        parts = [content[at : at + 4096].ljust(4096, b"\0") for at in range(0, len(content), 4096)]
        places = range(len(sectors) + 1, len(sectors) + 1 + len(parts))
        entry = struct.pack("<I128s8xI4x", 2, name.replace("_", ".").encode(), len(content))
        sectors += [(entry + struct.pack(f"<{len(places)}I", *places)).ljust(4096, b"\0"), *parts]
    return b"BCFS" + b"".join(sectors)


def low_first(number, width):
    return f"{number:0{width}b}"[::-1]


def compressed(content):
    """What is like what stands at most 4,000 bytes before is copied, the rest stands as it is."""
    bits, place = "", 0
    while place < len(content):
        begin = max(0, place - 4000)
        found = next(
            (
                n
                for n in (255, 30, 8)
                if content.find(content[place : place + n], begin, place) >= 0
            ),
            0,
        )
        found = min(found, len(content) - place)
        if found:
            back = place - content.find(content[place : place + found], begin, place)
            bits += f"1{12:04b}{low_first(back, 12)}{low_first(found, 12)}"
        else:
            found = min(3, len(content) - place)
            raw = "".join(f"{byte:08b}" for byte in content[place : place + found])
            bits += f"0{low_first(found, 2)}{raw}"
        place += found
    bits = bits.ljust(-(-len(bits) // 8) * 8, "0")
    packed = int(bits, 2).to_bytes(len(bits) // 8, "big")
    return b"BCFZ" + struct.pack("<I", len(content)) + packed


@pytest.mark.parametrize("pack", [bytes, compressed])
def test_files_of_guitar_pro_6_are_read(tmp_path, pack):
    score = gpif([1, 4, 3], note='<Property name="PalmMuted"/>').encode()
    content = pack(file_system(misc_xml=b"<a/>", score_gpif=score, PartConfiguration=b"abc"))
    (tmp_path / "song.gpx").write_bytes(content)
    assert registry.read_any_tab_file(tmp_path / "song.gpx")[0][0].bars == (
        gp(tmp_path, [1, 4, 3], note='<Property name="PalmMuted"/>')[0][0].bars
    )


def test_guitar_pro_6_has_pitches_by_octave_and_drums_by_their_table(tmp_path):
    note = '<Property name="Octave"><Number>5</Number></Property>'
    note += '<Property name="Tone"><Step>3</Step></Property>'
    score = gpif([1], note=note).replace("<Pitches>40 45 50 55 59 64</Pitches>", "")
    (tmp_path / "song.gpx").write_bytes(file_system(score_gpif=score.encode()))
    (tab,), _ = registry.read_any_tab_file(tmp_path / "song.gpx")
    assert [pitch for *_, pitch in sounding(tab)] == [63]
    score = gpif([1], track='<GeneralMidi table="Percussion"/>')
    (tmp_path / "song.gpx").write_bytes(file_system(score_gpif=score.encode()))
    with pytest.raises(ValueError, match="left out, since it is drums"):
        registry.read_any_tab_file(tmp_path / "song.gpx")


ONE_COPY = (int(f"1{2:04b}{low_first(1, 2)}{low_first(1, 2)}".ljust(16, "0"), 2)).to_bytes(2, "big")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"BCFZ" + struct.pack("<I", 9) + ONE_COPY, "it is damaged"),
        (b"BCFZ" + struct.pack("<I", 1 << 27) + b"abc", "it unpacks to more than 65,536 KiB"),
        (b"BCFZ" + bytes(3 << 20), "it has more than 2,048 KiB"),
        (b"BCFZ", "it holds no BCFS"),
        (file_system(misc_xml=b"a"), "there is no score.gpif in it"),
        (
            file_system(score_gpif=b"a" * 5000)[: 2 * 4096 + 4],
            "a sector of score.gpif is not in it",
        ),
        (file_system(score_gpif=b"a" * 5000)[: 3 * 4096 + 9], "score.gpif in it ends too early"),
    ],
)
def test_a_damaged_file_of_guitar_pro_6_is_refused_in_a_sentence(tmp_path, content, reason):
    (tmp_path / "song.gpx").write_bytes(content)
    with pytest.raises(ValueError, match=f"song.gpx cannot be read as .*: {reason}"):
        registry.read_any_tab_file(tmp_path / "song.gpx")


def test_a_pickup_lasts_as_long_as_what_is_in_it(tmp_path):
    (tab,), _ = gp(tmp_path, [1, 4], "<Anacrusis/>")
    assert bar_start_steps(tab) == [0, 1, 5]
    (tab,), _ = gp(tmp_path, [1, 4])
    assert bar_start_steps(tab) == [0, 4, 8]


def test_a_simile_mark_repeats_bars(tmp_path):
    marks = {1: "<SimileMark>Simple</SimileMark>"}
    marks |= {n: f"<SimileMark>{w}OfDouble</SimileMark>" for n, w in ((3, "First"), (4, "Second"))}
    (tab,), _ = gp(tmp_path, [1, 0, 2, 0, 0], bar_marks=marks)
    frets = [[note.fret for e in bar.events for note in e.notes] for bar in tab.bars]
    assert frets == [[0], [0], [1, 2], [0], [1, 2]]


@pytest.mark.parametrize(
    ("kind", "beat", "note"),
    [
        ("vibrato", '<Properties><Property name="VibratoWTremBar"/></Properties>', ""),
        ("palm mute", "", '<Property name="PalmMuted"/>'),
        ("slap", '<Properties><Property name="Slapped"/></Properties>', ""),
        ("staccato", "", "</Properties><Accent>1</Accent><Properties>"),
        ("strong accent", "", "</Properties><Accent>4</Accent><Properties>"),
        ("accent", "", "</Properties><Accent>8</Accent><Properties>"),
    ],
)
def test_signs_of_a_beat_and_of_a_note_are_techniques(tmp_path, kind, beat, note):
    (tab,), problems = gp(tmp_path, [1], beat=beat, note=note)
    assert tab.bars[0].events[0].techniques == ((Technique(kind),),) and problems == []


# --- MusicXML ------------------------------------------------------------------------------------


def xml(folder, *measures, instrument=""):
    """Write measures of quarter notes, divided once, as MusicXML, and read them."""
    text = "".join(f'<measure number="{n}">{m}</measure>' for n, m in enumerate(measures, start=1))
    (folder / "song.musicxml").write_text(
        '<score-partwise><part-list><score-part id="P1"><part-name>A</part-name>'
        f'{instrument}</score-part></part-list><part id="P1">{text}</part></score-partwise>',
        encoding="utf-8",
    )
    return read_musicxml_tabs(folder / "song.musicxml")


def quarter(step, *inside, octave=4):
    pitch = f"<pitch><step>{step}</step><octave>{octave}</octave></pitch>"
    return f"<note>{pitch}<duration>1</duration>{''.join(inside)}</note>"


def test_measures_that_hold_the_parts_are_read_like_parts_that_hold_measures(tmp_path):
    parts = {"A": (quarter("C"), quarter("D")), "B": (quarter("E"), quarter("F"))}
    names = "".join(f'<score-part id="{n}"><part-name>{n}</part-name></score-part>' for n in parts)
    measures = "".join(
        f'<measure number="{n + 1}">'
        + "".join(f'<part id="{name}">{own[n]}</part>' for name, own in parts.items())
        + "</measure>"
        for n in range(2)
    )
    (tmp_path / "song.xml").write_text(
        f"<score-timewise><part-list>{names}</part-list>{measures}</score-timewise>",
        encoding="utf-8",
    )
    tabs, problems = read_musicxml_tabs(tmp_path / "song.xml")
    assert problems == [] and [[p for *_, p in sounding(tab)] for tab in tabs] == [
        [60, 62],
        [64, 65],
    ]


def test_a_tie_to_another_fret_is_struck(tmp_path):
    def fretted(step, fret, tie=""):
        technical = f"<technical><string>2</string><fret>{fret}</fret></technical>"
        return quarter(step, f"<notations>{tie}{technical}</notations>")

    stop = '<tied type="stop"/>'
    notes = fretted("C", 1), fretted("C", 1, stop), fretted("D", 3, stop)
    (tab,), _ = xml(tmp_path, "".join(notes))
    assert sounding(tab) == [(0, 2, 60), (2, 1, 62)]


def test_parts_of_a_group_that_have_numbers_alone_are_named_by_it(tmp_path):
    parts = {"P1": "I", "P2": "II", "P3": "Bass"}
    listed = "".join(
        f'<score-part id="{key}"><part-name>{name}</part-name></score-part>'
        for key, name in parts.items()
    )
    start = '<part-group type="start"><group-name>Guitars</group-name></part-group>'
    bass = '<score-part id="P3">'
    listed = start + listed.replace(bass, '<part-group type="stop"/>' + bass)
    own = "".join(f'<part id="{key}"><measure>{quarter("C")}</measure></part>' for key in parts)
    (tmp_path / "song.musicxml").write_text(
        f"<score-partwise><part-list>{listed}</part-list>{own}</score-partwise>", encoding="utf-8"
    )
    tabs, _ = read_musicxml_tabs(tmp_path / "song.musicxml")
    assert [tab.track for tab in tabs] == ["Guitars I", "Guitars II", "Bass"]


def test_a_transposition_counts_from_where_it_stands(tmp_path):
    def moved(half_steps):
        change = f"<transpose><chromatic>{half_steps}</chromatic></transpose>"
        return f"<attributes>{change}</attributes>"

    (tab,), _ = xml(tmp_path, moved(-2) + quarter("C"), moved(3) + quarter("C"))
    assert [pitch for *_, pitch in sounding(tab)] == [58, 63]


def test_drums_are_left_out_however_they_are_written(tmp_path):
    clef = "<attributes><clef><sign>percussion</sign></clef></attributes>"
    channel = "<midi-instrument><midi-channel>10</midi-channel></midi-instrument>"
    drum = "<note><unpitched/><duration>1</duration></note>"
    for measure, instrument in ((clef + quarter("C"), ""), (quarter("C"), channel), (drum, "")):
        with pytest.raises(ValueError, match="left out, since it is drums"):
            xml(tmp_path, measure, instrument=instrument)
    (tab,), problems = xml(tmp_path, quarter("C") + drum + quarter("D"))
    assert [onset for onset, *_ in sounding(tab)] == [0, 2]
    assert said(problems) == ["unpitched left out (the first in bar 1)"]


def test_a_bar_may_be_repeated_by_a_sign(tmp_path):
    def sign(kind, bars=""):
        style = f'<measure-repeat type="{kind}">{bars}</measure-repeat>'
        return f"<attributes><measure-style>{style}</measure-style></attributes>"

    rest = "<note><rest/><duration>1</duration></note>"
    measures = [quarter("C"), sign("start", 1) + rest, rest, sign("stop") + quarter("E")]
    (tab,), _ = xml(tmp_path, *measures)
    assert [(onset, pitch) for onset, _, pitch in sounding(tab)] == [
        (0, 60),
        (1, 60),
        (2, 60),
        (3, 64),
    ]


def test_a_note_may_be_tied_by_notation_alone_and_cues_are_not_played(tmp_path):
    def tied(kind):
        return f'<notations><tied type="{kind}"/></notations>'

    first, second = quarter("D", tied("start")), quarter("D", tied("stop"))
    cue = quarter("G").replace("<note>", "<note><cue/>")
    (tab,), problems = xml(tmp_path, first + second + cue + quarter("E"))
    assert sounding(tab) == [(0, 2, 62), (3, 1, 64)]
    assert said(problems) == ["cue left out (the first in bar 1)"]


def test_a_tempo_inside_a_measure_begins_there_or_by_the_offset_of_its_sound(tmp_path):
    tempo = '<sound tempo="60"/>'
    later = '<direction><offset sound="yes">1</offset><sound tempo="90"/></direction>'
    (tab,), problems = xml(tmp_path, quarter("C") + tempo + later + quarter("D") + quarter("E"))
    assert tab.bars[0].tempo_changes == ((1, 60), (2, 90)) and problems == []
    drawn_later = '<direction><offset>2</offset><sound tempo="90"/></direction>'
    heard_later = (
        "<direction><offset>2</offset><sound tempo='70'><offset>1</offset></sound></direction>"
    )
    notes = quarter("D") + quarter("E") + quarter("F")
    (tab,), _ = xml(tmp_path, quarter("C") + drawn_later + heard_later + notes)
    assert tab.bars[0].tempo_changes == ((1, 90), (2, 70))


def test_a_metronome_mark_counts_its_note_value_with_all_dots(tmp_path):
    def mark(unit, dots, number):
        beat = f"<beat-unit>{unit}</beat-unit>{'<beat-unit-dot/>' * dots}"
        inside = f"<metronome>{beat}{number and f'<per-minute>{number}</per-minute>'}</metronome>"
        return f"<direction><direction-type>{inside}</direction-type></direction>{quarter('C')}"

    marks = [mark("16th", 0, "240"), mark("quarter", 2, "80"), mark("breve", 0, "c. 11")]
    (tab,), problems = xml(tmp_path, *marks, mark("long", 0, "100"), mark("half", 1, ""))
    assert [bar.tempo_bpm for bar in tab.bars] == [60, 140, 88, None, None]
    assert said(problems) == [
        "2 tempos that are no number from 1 to 1,000 are left out (the first in bar 4)"
    ]


def test_what_a_pitch_and_a_string_have_that_plain_notation_has_not_is_named(tmp_path):
    sharp = quarter("C").replace("</step>", "</step><alter>0.5</alter>")
    string = "<notations><technical><string>3</string></technical></notations>"
    (tab,), problems = xml(tmp_path, quarter("D"), quarter("E", string) + sharp)
    assert not tab.is_fingered
    assert said(problems) == [
        "strings without a fret are left out (the first in bar 2)",
        "microtones are rounded to half steps (the first in bar 2)",
    ]


def test_a_step_back_to_before_the_bar_leads_to_its_start(tmp_path):
    back = "<backup><duration>5</duration></backup>"
    (tab,), problems = xml(tmp_path, quarter("C"), quarter("D") * 2 + back + quarter("G"))
    assert sounding(tab) == [(0, 1, 60), (1, 1, 62), (1, 1, 67), (2, 1, 62)]
    assert said(problems) == [
        "steps back to before their bar lead to its start (the first in bar 2)"
    ]


def test_a_part_without_divisions_has_those_of_the_first(tmp_path):
    note = quarter("C").replace("<duration>1<", "<duration>7<")
    divisions = "<attributes><divisions>7</divisions></attributes>"
    parts = "".join(
        f'<part id="{name}"><measure>{content}</measure></part>'
        for name, content in (("A", divisions + note + note), ("B", note + note))
    )
    text = f"<score-partwise><part-list/>{parts}</score-partwise>"
    (tmp_path / "song.musicxml").write_text(text, encoding="utf-8")
    tabs, _ = read_musicxml_tabs(tmp_path / "song.musicxml")
    assert [sounding(tab) for tab in tabs] == [[(0, 1, 60), (1, 1, 60)]] * 2


@pytest.mark.parametrize("number", ["0", "-1"])
def test_a_quarter_note_without_divisions_is_refused(tmp_path, number):
    """In a part that comes before the one that says so, too."""
    divisions = f"<attributes><divisions>{number}</divisions></attributes>"
    parts = "".join(
        f"<part><measure>{content}{quarter('C')}</measure></part>" for content in ("", divisions)
    )
    text = f"<score-partwise><part-list/>{parts}</score-partwise>"
    (tmp_path / "song.musicxml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"song.musicxml .*: a quarter note has {number} div"):
        read_musicxml_tabs(tmp_path / "song.musicxml")


@pytest.mark.parametrize(("sound", "is_read"), [("pluck.guitar", True), ("drum.bongo", False)])
def test_a_sound_says_more_than_the_channel_of_drums(tmp_path, sound, is_read):
    named = f"<score-instrument><instrument-sound>{sound}</instrument-sound></score-instrument>"
    channel = "<midi-instrument><midi-channel>10</midi-channel></midi-instrument>"
    if is_read:
        (tab,), problems = xml(tmp_path, quarter("C"), instrument=named + channel)
        assert sounding(tab) == [(0, 1, 60)] and problems == []
    else:
        with pytest.raises(ValueError, match="left out, since it is drums"):
            xml(tmp_path, quarter("C"), instrument=named + channel)


def test_a_staff_that_leaves_the_clef_of_drums_is_no_drum(tmp_path):
    def clef(sign):
        return f"<attributes><clef><sign>{sign}</sign></clef></attributes>"

    (tab,), _ = xml(tmp_path, clef("percussion") + quarter("C"), clef("G") + 3 * quarter("D"))
    assert len(sounding(tab)) == 4


# --- MIDI ----------------------------------------------------------------------------------------


def midi(folder, *tracks, kind=1):
    """Write tracks, each its first messages and pitches of quarters, and read them."""
    file = mido.MidiFile(type=kind)
    for number, (messages, pitches) in enumerate(tracks):
        notes = [
            mido.Message(name, channel=number, note=pitch, time=time)
            for pitch in pitches
            for name, time in (("note_on", 0), ("note_off", 480))
        ]
        file.tracks.append(mido.MidiTrack([*messages, *notes]))
    file.save(folder / "song.mid")
    return folder / "song.mid"


def named(name, program=0, channel=0):
    change = mido.Message("program_change", program=program, channel=channel)
    return [mido.MetaMessage("track_name", name=name), change]


def test_a_text_that_mentions_a_tuning_is_not_a_tab(tmp_path):
    text = [mido.MetaMessage("text", text="for guitar in standard tuning")]
    (tab,), _ = read_midi_tabs(midi(tmp_path, (text, [45, 46])))
    assert not tab.is_fingered


def test_patterns_of_type_2_are_refused(tmp_path):
    with pytest.raises(ValueError, match="it is of type 2: its tracks are patterns"):
        read_midi_tabs(midi(tmp_path, ([], [60]), ([], [62]), kind=2))


def test_instruments_are_parts_the_guitar_first_and_two_hands_are_one(tmp_path, capsys):
    path = midi(tmp_path, (named("Flute", 73), [76]), (named("Six", 25, 1), [64, 65]))
    tabs, problems = read_midi_tabs(path)
    assert [(tab.title, tab.track) for tab in tabs] == [("", "Six"), ("", "Flute")]
    assert said(problems) == [
        "tracks 1, 2 are read one by one; --tracks chooses some",
        "program_change 73 left out (the first in bar 1)",
    ]
    (one,), _ = read_midi_tabs(path, tracks=[1])
    assert [pitch for *_, pitch in sounding(one)] == [76]
    hands = midi(tmp_path, (named("Right"), [76]), (named("Left", 0, 1), [48]))
    (both,), _ = read_midi_tabs(hands)
    assert len(sounding(both)) == 2


def test_a_part_out_of_reach_keeps_its_bars_and_its_notes_are_named(tmp_path, capsys):
    parts = (named("Guitar"), [64]), (named("Bass", 0, 1), [33]), (named("Bell", 0, 2), [120])
    assert main(["convert", str(midi(tmp_path, *parts)), "-o", str(tmp_path / "out.gp5")]) == 0
    tabs, _ = registry.read_any_tab_file(tmp_path / "out.gp5")
    assert [(tab.track, len(tab.tuning.open_pitches)) for tab in tabs] == [
        ("Guitar", 6), ("Bass", 4), ("Bell", 6),
    ]  # fmt: skip
    assert (
        "Bell: its bars are left empty: no neck has any of its 1 note." in capsys.readouterr().err
    )


# --- alphaTex, and what was written --------------------------------------------------------------


def test_a_grace_note_takes_no_time():
    (tab,), problems = parse_alphatex_tabs("(3.1).8{gr} 5.1.4 7.1.16{gr ob} 8.1.4")
    assert [(onset, pitch) for onset, _, pitch in sounding(tab)] == [(0, 69), (1, 72)]
    assert said(problems) == ["2 {gr} left out (the first in bar 1)"]


def test_an_effect_of_a_beat_is_of_each_of_its_notes():
    (tab,), _ = parse_alphatex_tabs("(3.1 3.2).4{s}")
    assert tab.bars[0].events[0].techniques == ((Technique("slap"),),) * 2


@pytest.mark.parametrize("suffix", [".musicxml", ".mid", ".atex", ".gp3", ".gp5", ".txt"])
def test_a_piece_without_a_note_is_written(tmp_path, capsys, suffix):
    song([[(1,)]], tmp_path)
    out = tmp_path / f"out{suffix}"
    assert main(["convert", str(tmp_path / "song.gp5"), "-o", str(out)]) == 0
    assert out.is_file()


def test_a_guitar_without_notes_comes_back_from_musicxml(tmp_path):
    tabs = [timed(Bar(4, own, (4, 4), 90), unit=1) for own in ((event(0, (1, 5)),), ())]
    registry.write_tab(tabs[0], tmp_path / "out.musicxml", replace(tabs[1], tuning=DROP_D))
    read, problems = registry.read_any_tab_file(tmp_path / "out.musicxml")
    assert [tab.tuning for tab in read] == [STANDARD, DROP_D] and not problems
    assert not registry.find_losses(read, tmp_path / "out.musicxml")


def test_a_track_without_notes_hides_no_loss(tmp_path):
    bend = event(0, (1, 5), durations=(4,))
    bend = type(bend)(0, bend.notes, (4,), ((Technique("bend", 4),),))
    tabs = [timed(Bar(4, (bend,), (4, 4), 90), unit=1), timed(Bar(4, (), (4, 4), 90), unit=1)]
    registry.write_tab(tabs[0], tmp_path / "out.mid", tabs[1])
    lost = registry.find_losses(tabs, tmp_path / "out.mid")
    assert lost[:1] == ["tracks without notes"] and "bends (the first in bar 1)" in lost
