"""Twenty signs put into each kind of file one by one: kept, or named with their first bar."""

import random
import shutil
import zipfile
from xml.etree import ElementTree

import mido
import pytest
from alphatab import export_guitar_pro_7, sound_and_look_alike

from slp_guitar.formats import registry
from slp_guitar.formats.alphatex import parse_alphatex_tabs
from slp_guitar.formats.unread import TABLES, iter_xml_parts

guitarpro = pytest.importorskip("guitarpro", reason="Guitar Pro files need the guitar extra")


def said(path):
    return [problem.message for problem in registry.read_any_tab_file(path)[1]]


def check(before, after, name):
    """A sign adds a sentence that begins with its name."""
    assert before == []
    assert [each for each in after if each.partition(" left out")[0].removeprefix("2 ") == name], (
        after
    )


# --- Guitar Pro 6 to 8 ----------------------------------------------------------------------------

GPIF = """<GPIF><GPVersion>8</GPVersion><Score><Title>Two bars</Title>@SCORE</Score>
<MasterTrack><Automations><Automation><Type>Tempo</Type><Bar>0</Bar><Position>0</Position>
<Value>90 2</Value></Automation>@MASTER</Automations></MasterTrack><Tracks>
<Track id="0"><Name>Six</Name>@TRACK<Staves><Staff><Properties>
<Property name="Tuning"><Pitches>40 45 50 55 59 64</Pitches></Property>
</Properties></Staff></Staves></Track></Tracks><MasterBars><MasterBar><Time>4/4</Time><Bars>0</Bars>
</MasterBar><MasterBar><Time>4/4</Time><Bars>1</Bars>@BAR</MasterBar></MasterBars>
<Bars><Bar id="0"><Voices>0</Voices></Bar><Bar id="1"><Voices>1</Voices></Bar></Bars>
<Voices><Voice id="0"><Beats>0</Beats></Voice><Voice id="1"><Beats>1</Beats></Voice></Voices>
<Beats><Beat id="0"><Rhythm ref="0"/><Notes>0</Notes></Beat><Beat id="1"><Rhythm ref="0"/>
<Notes>1</Notes>@BEAT</Beat></Beats><Notes><Note id="0"><Properties><Property name="String">
<String>5</String></Property><Property name="Fret"><Fret>3</Fret></Property></Properties></Note>
<Note id="1">@NOTE<Properties><Property name="String"><String>4</String></Property>
<Property name="Fret"><Fret>1</Fret></Property>@WAY</Properties></Note></Notes>
<Rhythms><Rhythm id="0"><NoteValue>Whole</NoteValue></Rhythm></Rhythms></GPIF>"""
IN_GPIF = [
    ("NOTE", "<Ornament>Turn</Ornament>", "Ornament"),
    ("NOTE", "<Trill>67</Trill>", "Trill"),
    ("NOTE", "<Vibrato>Wide</Vibrato>", "Vibrato"),
    ("NOTE", "<LeftFingering>P</LeftFingering>", "LeftFingering"),
    ("NOTE", "<NobodyHasHeardOfIt />", "NobodyHasHeardOfIt"),
    ("WAY", '<Property name="LeftHandTapped"><Enable /></Property>', "Property LeftHandTapped"),
    ("WAY", '<Property name="Slide"><Flags>16</Flags></Property>', "Flags"),
    ("WAY", '<Property name="HarmonicType"><HType>Pinch</HType></Property>', "HType"),
    ("BEAT", "<Dynamic>PPP</Dynamic>", "Dynamic"),
    ("BEAT", "<Hairpin>Crescendo</Hairpin>", "Hairpin"),
    ("BEAT", "<FreeText>softly</FreeText>", "FreeText"),
    ("BEAT", "<Wah>Open</Wah>", "Wah"),
    ("BEAT", "<DeadSlapped />", "DeadSlapped"),
    ("BEAT", "<Tremolo>1/2</Tremolo>", "Tremolo"),
    (
        "BEAT",
        '<Properties><Property name="Brush"><Direction>Up</Direction></Property></Properties>',
        "Property Brush",
    ),
    ("BAR", "<Section><Text>Chorus</Text></Section>", "Section"),
    ("BAR", "<Fermatas><Fermata /></Fermatas>", "Fermatas"),
    ("BAR", "<FreeTime />", "FreeTime"),
    ("BAR", "<TripletFeel>Triplet8th</TripletFeel>", "TripletFeel"),
    ("BAR", "<Key><AccidentalCount>2</AccidentalCount><Mode>Dorian</Mode></Key>", "Mode"),
    ("BAR", "<Directions><Jump>DaNirvana</Jump></Directions>", "Jump"),
    ("MASTER", "<Automation><Type>Sync</Type><Bar>1</Bar></Automation>", "Automation Sync"),
    ("TRACK", '<Lyrics><Line><Text>la</Text></Line></Lyrics>', "Lyrics"),
    ("TRACK", '<LetRingThroughout />', "LetRingThroughout"),
    ("SCORE", "<Artist>Nobody</Artist>", "Artist"),
    (
        "TRACK",
        "<Automations><Automation><Type>DSPParam_12</Type><Bar>1</Bar></Automation></Automations>",
        "Automation DSPParam_12",
    ),
    *(
        (
            "WAY",
            f"""<Property name="Bended" /><Property name="BendOriginValue">
            <Float>{a}</Float></Property><Property name="BendMiddleValue"><Float>100</Float>
            </Property>
            <Property name="BendDestinationValue"><Float>{b}</Float></Property>""",
            f"Property {name}",
        )
        for a, b, name in ((100, 100, "BendOriginValue"), (0, 0, "BendDestinationValue"))
    ),
]  # fmt: skip


def gp(folder, place="", sign=""):
    text = GPIF.replace(f"@{place}", sign) if place else GPIF
    for other in "SCORE MASTER TRACK BAR BEAT NOTE WAY".split():
        text = text.replace(f"@{other}", "")
    with zipfile.ZipFile(folder / "a.gp", "w") as archive:
        archive.writestr("Content/score.gpif", text)
    return folder / "a.gp"


@pytest.mark.parametrize(("place", "sign", "name"), IN_GPIF)
def test_a_sign_of_guitar_pro_8_is_named(tmp_path, place, sign, name):
    after = said(gp(tmp_path, place, sign))
    check(said(gp(tmp_path)), after, name)
    assert place in ("TRACK", "SCORE") or all("the first in bar 2" in each for each in after)


def test_signs_where_to_go_on_are_read(tmp_path):
    for tag, sign in (("Target", "Fine"), ("Jump", "DaCapoAlFine")):
        path = gp(tmp_path, "BAR", f"<Directions><{tag}>{sign}</{tag}></Directions>")
        ((tab,), problems) = registry.read_any_tab_file(path)
        assert tab.bars[1].signs == (sign,) and not [each for each in problems if tag in str(each)]


def test_a_keyboard_is_read_by_pitch_and_the_guitar_beside_it_by_strings(tmp_path):
    piano = "<InstrumentSet><Type>acousticPiano</Type></InstrumentSet>"
    path = gp(tmp_path, "TRACK", piano)
    with zipfile.ZipFile(path) as archive:
        text = archive.read("Content/score.gpif").decode()
    for fret, pitch in (("3", 35), ("1", 60)):
        midi = f'<Property name="Midi"><Number>{pitch}</Number></Property>'
        text = text.replace(f"<Fret>{fret}</Fret></Property>", f"<Fret>-5</Fret></Property>{midi}")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Content/score.gpif", text)
    ((tab,), problems) = registry.read_any_tab_file(path)
    assert not tab.is_fingered and problems == []
    assert [event.notes[0].fret for event in tab.iter_events()] == [35, 60]


def test_a_note_on_no_fret_leaves_no_moment_behind(tmp_path):
    with zipfile.ZipFile(gp(tmp_path)) as archive:
        text = archive.read("Content/score.gpif").decode()
    with zipfile.ZipFile(tmp_path / "a.gp", "w") as archive:
        archive.writestr("Content/score.gpif", text.replace("<Fret>1<", "<Fret>-1<"))
    ((tab,), (problem,)) = registry.read_any_tab_file(tmp_path / "a.gp")
    assert problem.message == "notes on no fret of their guitar are left out (the first in bar 2)"
    assert [[*event.notes] for event in tab.iter_events()] == [[(1, 3)]]


# --- Guitar Pro 3 to 5 ----------------------------------------------------------------------------


def in_gp5():
    gp = guitarpro
    return {
        "NoteEffect.grace": lambda b, n: setattr(n.effect, "grace", gp.GraceEffect()),
        "NoteEffect.trill": lambda b, n: setattr(
            n.effect, "trill", gp.TrillEffect(5, gp.Duration(16))
        ),
        "NoteEffect.tremoloPicking": lambda b, n: setattr(
            n.effect, "tremoloPicking", gp.TremoloPickingEffect(gp.Duration(16))
        ),
        "NoteEffect.leftHandFinger": lambda b, n: setattr(
            n.effect, "leftHandFinger", gp.Fingering.thumb
        ),
        "NoteEffect.slides": lambda b, n: n.effect.slides.append(gp.SlideType.outDownwards),
        "NoteEffect.harmonic": lambda b, n: setattr(n.effect, "harmonic", gp.PinchHarmonic()),
        "Note.velocity": lambda b, n: setattr(n, "velocity", 31),
        "Note.durationPercent": lambda b, n: setattr(n, "durationPercent", 0.5),
        "Beat.text": lambda b, n: setattr(b, "text", "softly"),
        "Beat.octave": lambda b, n: setattr(b, "octave", gp.Octave.ottava),
        "BeatEffect.stroke": lambda b, n: setattr(
            b.effect, "stroke", gp.BeatStroke(gp.BeatStrokeDirection.down, 16)
        ),
        "BeatEffect.pickStroke": lambda b, n: setattr(
            b.effect, "pickStroke", gp.BeatStrokeDirection.up
        ),
        "BeatEffect.hasRasgueado": lambda b, n: setattr(b.effect, "hasRasgueado", True),
        "BeatEffect.fadeIn": lambda b, n: setattr(b.effect, "fadeIn", True),
        "BeatEffect.tremoloBar": lambda b, n: setattr(
            b.effect, "tremoloBar", gp.BendEffect(gp.BendType.dip, 100, [gp.BendPoint(0, 0)])
        ),
        "BeatEffect.chord": lambda b, n: setattr(
            b.effect, "chord", gp.Chord(6, name="C", newFormat=False, firstFret=0)
        ),
        "MixTableChange.volume": lambda b, n: setattr(
            b.effect, "mixTableChange", gp.MixTableChange(volume=gp.MixTableItem(5))
        ),
        "MeasureHeader.marker": lambda b, n: setattr(
            b.voice.measure.header, "marker", gp.Marker("Chorus")
        ),
        "MeasureHeader.tripletFeel": lambda b, n: setattr(
            b.voice.measure.header, "tripletFeel", gp.TripletFeel.eighth
        ),
        "MeasureHeader.hasDoubleBar": lambda b, n: setattr(
            b.voice.measure.header, "hasDoubleBar", True
        ),
        "Song.artist": lambda b, n: setattr(b.voice.measure.track.song, "artist", "Nobody"),
        "MidiChannel.volume": lambda b, n: setattr(b.voice.measure.track.channel, "volume", 8),
    }


def gp5(folder, change=None):
    song = guitarpro.Song()
    song.measureHeaders = [guitarpro.MeasureHeader(number=n) for n in (1, 2)]
    track = song.tracks[0]
    track.measures = [guitarpro.Measure(track, header) for header in song.measureHeaders]
    for measure in track.measures:
        beat = guitarpro.Beat(measure.voices[0], status=guitarpro.BeatStatus.normal)
        beat.notes = [guitarpro.Note(beat, 3, string=1, type=guitarpro.NoteType.normal)]
        beat.duration = guitarpro.Duration(1)
        measure.voices[0].beats.append(beat)
    if change:
        change(beat, beat.notes[0])
    guitarpro.write(song, folder / "a.gp5")
    return folder / "a.gp5"


@pytest.mark.parametrize("name", in_gp5())
def test_a_field_of_guitar_pro_5_is_named(tmp_path, name):
    after = said(gp5(tmp_path, in_gp5()[name]))
    check(said(gp5(tmp_path)), after, name)
    is_of_piece = name.startswith(("Song", "MidiChannel"))
    assert is_of_piece or f"{name} left out (the first in bar 2)" in after


# --- MusicXML -------------------------------------------------------------------------------------

XML = """<score-partwise>@SCORE<part-list><score-part id="P1"><part-name>Six</part-name>
</score-part></part-list><part id="P1">
<measure><attributes><divisions>1</divisions></attributes><note><pitch>
<step>E</step><octave>4</octave></pitch><duration>4</duration></note></measure><measure>@MEASURE
<note><pitch><step>G</step><octave>4</octave></pitch><duration>4</duration>@NOTE
<notations>@NOTATION<technical>@TECHNICAL</technical></notations></note></measure></part>
</score-partwise>"""
SAYS = "<direction><direction-type>{}</direction-type></direction>"
IN_MUSICXML = [
    ("SCORE", "<identification><creator>Nobody</creator></identification>", "creator"),
    ("SCORE", "<credit><credit-words>By hand</credit-words></credit>", "credit"),
    ("MEASURE", "<harmony><root><root-step>C</root-step></root></harmony>", "harmony"),
    ("MEASURE", SAYS.format("<dynamics><p/></dynamics>"), "dynamics"),
    ("MEASURE", SAYS.format("<wedge type='crescendo'/>"), "wedge"),
    ("MEASURE", SAYS.format("<rehearsal>A</rehearsal>"), "rehearsal"),
    ("MEASURE", SAYS.format("<words>softly</words>"), "words"),
    ("MEASURE", "<sound dynamics='30'/>", "sound@dynamics"),
    ("MEASURE", "<sound damper-pedal='yes'/>", "sound@damper-pedal"),
    ("MEASURE", "<barline><bar-style>light-light</bar-style></barline>", "bar-style"),
    ("MEASURE", "<barline><fermata/></barline>", "fermata"),
    ("NOTE", "<lyric><text>la</text></lyric>", "lyric"),
    ("NOTE", "<notehead>diamond</notehead>", "notehead"),
    ("NOTATION", "<slur type='start'/>", "slur"),
    ("NOTATION", "<arpeggiate/>", "arpeggiate"),
    ("NOTATION", "<ornaments><trill-mark/></ornaments>", "trill-mark"),
    ("NOTATION", "<ornaments><turn/></ornaments>", "turn"),
    ("NOTATION", "<articulations><tenuto/></articulations>", "tenuto"),
    ("NOTATION", "<fermata/>", "fermata"),
    ("NOTATION", "<nobody-has-heard-of-it/>", "nobody-has-heard-of-it"),
    ("TECHNICAL", "<fingering>5</fingering>", "fingering"),
    ("TECHNICAL", "<up-bow/>", "up-bow"),
    ("TECHNICAL", "<bend><bend-alter>2</bend-alter><release/></bend>", "release"),
    ("TECHNICAL", "<bend><bend-alter>-2</bend-alter></bend>", "bend-alter"),
    ("MEASURE", "<attributes><key><fifths>9</fifths></key></attributes>", "fifths"),
    ("MEASURE", "<attributes><key><mode>dorian</mode></key></attributes>", "mode"),
    ("MEASURE", "<sound><play><mute>palm</mute></play></sound>", "play"),
    ("SCORE", "<identification><source>Urtext</source></identification>", "source"),
    (
        "SCORE",
        "<work><work-title>A</work-title></work><movement-title>B</movement-title>",
        "movement-title beside a work-title",
    ),
]  # fmt: skip


def xml(folder, place="", sign=""):
    text = XML.replace(f"@{place}", sign) if place else XML
    for other in "SCORE MEASURE NOTE NOTATION TECHNICAL".split():
        text = text.replace(f"@{other}", "")
    (folder / "a.xml").write_text(text, encoding="utf-8")
    return folder / "a.xml"


@pytest.mark.parametrize(("place", "sign", "name"), IN_MUSICXML)
def test_an_element_of_musicxml_is_named(tmp_path, place, sign, name):
    after = said(xml(tmp_path, place, sign))
    check(said(xml(tmp_path)), after, name)
    assert place == "SCORE" or f"{name} left out (the first in bar 2)" in after


def test_signs_at_bar_lines_are_read_and_third_voices_named(tmp_path):
    path = xml(tmp_path, "MEASURE", "<barline><coda/></barline>")
    text = path.read_text(encoding="utf-8")
    for voice in "132":
        text = text.replace("<duration>4</duration></note>", f"<duration>4</duration>@{voice}", 1)
        text = text.replace(f"@{voice}", f"<voice>{voice}</voice></note>")
    note = "<note><pitch><step>A</step><octave>4</octave></pitch><duration>1</duration>"
    more = "".join(f"{note}<voice>{voice}</voice></note>" for voice in (2, 3))
    path.write_text(text.replace("</measure></part>", f"{more}</measure></part>"), encoding="utf-8")
    ((tab,), problems) = registry.read_any_tab_file(path)
    assert tab.bars[1].signs == ("Coda",)
    further = "notes of further voices are read as of the second (the first in bar 2)"
    assert [each.message for each in problems] == [further]


def test_a_part_that_is_left_out_decides_nothing_about_the_bars_of_others(tmp_path):
    drums = "<score-part id='P2'><part-name>Drums</part-name></score-part></part-list>"
    beat = "<note><unpitched/><duration>9</duration></note>"
    bars = f"<part id='P2'>{f'<measure>{beat}</measure>' * 3}</part></score-partwise>"
    path = xml(tmp_path)
    text = path.read_text(encoding="utf-8").replace("</part-list>", drums)
    path.write_text(text.replace("</score-partwise>", bars), encoding="utf-8")
    ((tab,), problems) = registry.read_any_tab_file(path)
    assert [bar.steps for bar in tab.bars] == [4, 4] and tab.bars[0].time_signature == (4, 4)
    assert [each.message for each in problems] == ["Drums: left out, since it is drums"]


# --- MIDI -----------------------------------------------------------------------------------------

IN_MIDI = {
    "pitchwheel": mido.Message("pitchwheel", pitch=99),
    "aftertouch": mido.Message("aftertouch", value=9),
    "polytouch": mido.Message("polytouch", note=64, value=9),
    "program_change 40": mido.Message("program_change", program=40),
    **{
        f"control_change {n}": mido.Message("control_change", control=n, value=9)
        for n in (1, 5, 7, 10, 11, 66, 67, 84, 91, 93)
    },
    "sysex": mido.Message("sysex", data=(67, 16, 76)),
    "lyrics": mido.MetaMessage("lyrics", text="la"),
    "marker": mido.MetaMessage("marker", text="Chorus"),
    "cue_marker": mido.MetaMessage("cue_marker", text="door"),
    "copyright": mido.MetaMessage("copyright", text="Nobody"),
    "instrument_name": mido.MetaMessage("instrument_name", name="Flute"),
    "text": mido.MetaMessage("text", text="softly"),
    "unknown_meta": mido.UnknownMetaMessage(0x60, data=(1, 2)),
    "note_on velocity": mido.Message("note_on", note=90, velocity=9),
}


def mid(folder, *messages):
    note = [mido.Message("note_on", note=64), mido.Message("note_off", note=64, time=1920)]
    track = mido.MidiTrack([*note, *messages, *(each.copy() for each in note)])
    mido.MidiFile(tracks=[track], ticks_per_beat=480).save(folder / "a.mid")
    return folder / "a.mid"


@pytest.mark.parametrize("name", IN_MIDI)
def test_an_event_of_midi_is_named(tmp_path, name):
    after = said(mid(tmp_path, IN_MIDI[name]))
    check(said(mid(tmp_path)), [each for each in after if "never end" not in each], name)
    assert f"{name} left out (the first in bar 2)" in after


def test_what_another_track_does_to_a_channel_is_named(tmp_path):
    note = [mido.Message("note_on", note=64), mido.Message("note_off", note=64, time=1920)]
    other = [
        mido.MetaMessage("track_name", name="By nobody"),
        mido.Message("control_change", control=1, value=9, time=1920),
    ]
    inside = [mido.MetaMessage("key_signature", key="D", time=480)]
    file = mido.MidiFile(tracks=[mido.MidiTrack(own) for own in (note, other, inside)])
    file.save(tmp_path / "a.mid")
    moved = "keys and time signatures inside bars are moved to the next bar line"
    assert sorted(said(tmp_path / "a.mid")) == [
        "control_change 1 left out (the first in bar 2)",
        f"{moved} (the first in bar 1)",
        "track_name left out",
    ]


def test_notes_struck_twice_are_named(tmp_path):
    messages = [mido.Message("note_on", note=64), mido.Message("note_on", note=64)]
    messages += [mido.Message("note_off", note=64, time=t) for t in (480, 0)]
    mido.MidiFile(tracks=[mido.MidiTrack(messages)]).save(tmp_path / "a.mid")
    assert said(tmp_path / "a.mid") == [
        "notes on a string that is struck already are left out (the first in bar 1)",
    ]


# --- alphaTex -------------------------------------------------------------------------------------

EFFECTS = (
    'ch "D"|txt "softly"|lyrics "la"|dy ppp|tr 5 16|tp 16|gr|f|bu|bd|pu|ot 8va|cre|dec|fermata'
)
EFFECTS += "|rasg mi|lf 1|lht|dead|nobody"
TAGS = '\\section "A" "Chorus"|\\tf triplet8th|\\ft|\\db|\\ottava 8va|\\nobodyhasheardofit'


@pytest.mark.parametrize("effect", EFFECTS.split("|"))
def test_an_effect_of_alphatex_is_named(effect):
    assert parse_alphatex_tabs("3.1.1 | 3.1.1")[1] == []
    _, problems = parse_alphatex_tabs(f"3.1.1 | 3.1.1{{{effect}}}")
    name = f"{{{effect.split()[0]}}}"
    assert [each.message for each in problems] == [f"{name} left out (the first in bar 2)"]


@pytest.mark.parametrize("tag", TAGS.split("|"))
def test_a_tag_of_alphatex_is_named(tag):
    _, problems = parse_alphatex_tabs(f"3.1.1 | {tag} 3.1.1")
    assert f"{tag.split()[0]} left out (the first in bar 2)" in [each.message for each in problems]


# --- Text -----------------------------------------------------------------------------------------

ROWS = "e|-0-|-0-|\nB|---|---|\nG|---|---|\nD|---|---|\nA|---|---|\nE|---|---|\n"
LINES = (
    "by Nobody",
    "Am   G",
    "down by the river",
    "P.M.---",
    "[Chorus]",
    "h = hammer-on",
    "let ring",
)


def txt(folder, text):
    (folder / "a.txt").write_text(f"A study\n\n{text}", encoding="utf-8")
    return folder / "a.txt"


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_text_is_named(tmp_path, line):
    assert said(txt(tmp_path, ROWS)) == []
    for text in (f"{line}\n{ROWS}", f"{ROWS}\n{line}\n", f"{ROWS}{line}\n\n{ROWS}"):
        assert said(txt(tmp_path, text)) == [
            f"a line of text is left out: {line!r}".replace("   ", " ")
        ]


@pytest.mark.parametrize(
    "line", ["  >   >", "  ^", "  ~~~~", "  -3-", "  (3)", "  .   .", "  <  >"]
)
def test_a_line_of_signs_beside_rows_is_named(tmp_path, line):
    words = " ".join(line.split())
    assert said(txt(tmp_path, f"{line}\n{ROWS}")) == [f"a line of text is left out: {words!r}"]
    for read in ("- - - -", "*******", " 1   2   3", "=== ==="):
        assert said(txt(tmp_path, f"{read}\n{ROWS}")) == []


@pytest.mark.parametrize("mark", "()[]{}^%+.?&$#=tTvrqz"[:13].replace("=", ""))
def test_a_mark_in_a_row_is_named(tmp_path, mark):
    text = ROWS.replace("B|---", f"B|-{mark}-")
    assert said(txt(tmp_path, text)) == [f"{mark!r} in rows left out"]


def test_what_stands_beside_a_row_is_named(tmp_path):
    text = ROWS.replace("|---|---|\nG", "|---|---|  hold\nG")
    assert said(txt(tmp_path, text)) == ["'hold' beside a row is left out"]


BY_BAR = "looked into bar by bar, or where a bar, voice or beat names it"

# --- The lists ------------------------------------------------------------------------------------


def test_every_entry_that_may_be_skipped_has_one_reason_and_is_not_read():
    for kind, table in TABLES.items():
        names = [name for own in table["skipped"].values() for name in own]
        assert len(names) == len(set(names)), kind
        assert not set(names) & set(table["read"]), kind
        assert all(len(reason) > 15 for reason in table["skipped"]), kind


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="alphaTab runs in Node.js")
def test_what_may_be_skipped_changes_neither_sound_nor_page_in_alphatab(tmp_path):
    """Twenty entries that are in a file, drawn; each is taken out of it."""
    (tmp_path / "a.atex").write_text(
        '\\title "A"\n.\n3.3.4 5.3{h}.4 7.3.2 | 3.2.1', encoding="utf-8"
    )
    export_guitar_pro_7(tmp_path / "a.atex", tmp_path / "a.gp")
    with zipfile.ZipFile(tmp_path / "a.gp") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    score, others = "Content/score.gpif", []
    # What a guitar has in any case, the names of what is taken out elsewhere, a hidden tempo.
    apart = {"@id", "@name", "Visible", "Transpose", "Program=25"}
    entries = [name for own in TABLES["gpif"]["skipped"].values() for name in own]
    entries = [name for name in entries if name not in apart]
    random.Random(58).shuffle(entries)
    for name in entries:
        root = ElementTree.fromstring(members[score])
        found = [
            (parent, part)
            for parent in root.iter()
            for names, part in iter_xml_parts(parent)
            if name in names and part in list(parent)
        ]
        if not found or name in TABLES["gpif"]["skipped"][BY_BAR] or len(others) == 20:
            continue
        for parent, part in found:
            parent.remove(part)
        others.append(tmp_path / f"{len(others)}.gp")
        with zipfile.ZipFile(others[-1], "w") as archive:
            for member, content in members.items():
                own = ElementTree.tostring(root) if member == score else content
                archive.writestr(member, own)
    # What other versions of the program write, put in.
    root = ElementTree.fromstring(members[score])
    wires = "<Port>1</Port><PrimaryChannel>0</PrimaryChannel><SecondaryChannel>1</SecondaryChannel>"
    sound = f'<GeneralMidi table="Instrument"><Program>25</Program>{wires}</GeneralMidi>'
    for place, more in (
        ("Tracks/Track", "<PalmMute>0.3</PalmMute>"),
        ("Tracks/Track", sound),
        ("Beats/Beat", "<Bank>D-Steel</Bank>"),
    ):
        root.find(place).append(ElementTree.fromstring(more))
    others.append(tmp_path / "more.gp")
    with zipfile.ZipFile(others[-1], "w") as archive:
        for member, content in members.items():
            own = ElementTree.tostring(root) if member == score else content
            archive.writestr(member, own)
    assert said(others[-1]) == said(tmp_path / "a.gp")
    assert sound_and_look_alike(tmp_path / "a.gp", *others) == [True] * 21


@pytest.mark.parametrize("suffix", [".gp5", ".musicxml", ".mid", ".atex", ".txt"])
def test_a_key_is_kept_and_where_there_is_none_it_is_c(tmp_path, suffix):
    ((tab,), _) = parse_alphatex_tabs("\\ks D 3.1.1 | 3.1.1 | \\ks Fminor 3.1.1 | \\ks C 3.1.1")
    assert [bar.key for bar in tab.bars] == ["D", None, "Fm", "C"]
    registry.write_tab(tab, tmp_path / f"a{suffix}")
    ((read,), problems) = registry.read_any_tab_file(tmp_path / f"a{suffix}")
    assert [bar.key for bar in read.bars] == ["D", None, "Fm", "C"] and problems == []
    assert registry.find_losses([tab], tmp_path / f"a{suffix}") == []
