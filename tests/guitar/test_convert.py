"""One kind of file into another and back, and files of programs that are not ours."""

import random
import re
import shutil
import zipfile
from dataclasses import replace
from itertools import pairwise, permutations

import pytest
from alphatab import export_guitar_pro_7
from guitar_pieces import event, random_piece, timed
from sampled import mostly_slow

from slp_guitar import bounds
from slp_guitar.formats import registry
from slp_guitar.formats.registry import describe_losses
from slp_guitar.fretboard import STANDARD, Note, Tuning
from slp_guitar.hand import FINGERS
from slp_guitar.tab import Bar, Tab, Technique
from slp_guitar.techniques import TECHNIQUES

NOT_HELD = {
    each.suffixes[0]: set(each.cannot_hold)
    for each in registry.FORMATS.values()
    if each.reader and each.writer
}
NOT_HELD[".txt"].add("bends")  # of three eighths of a step, and so on


def random_band(rng):
    """Two guitars and a bass with the same bars, repeats and voltas."""
    lead = random_piece(rng, 6, voices=True)
    bars = list(lead.bars)
    bars[0] = replace(bars[0], starts_repeat=True)
    bars[-1] = replace(bars[-1], num_plays=2)
    if len(bars) > 2:
        bars[-2] = replace(bars[-2], endings=(1,), num_plays=2)
        bars[-1] = replace(bars[-1], endings=(2,), num_plays=0)
    lead = replace(lead, bars=tuple(bars), track="Lead")
    bass = Tab(lead.title, Tuning((43, 38, 33, 28)), tuple(bars), "", lead.steps_per_quarter)
    empty = [replace(bar, events=(event(0, (2, 3), durations=(1,)),)) for bar in bars]
    return [lead, replace(lead, track="Rhythm"), replace(bass, bars=tuple(empty), track="Bass")]


def kinds_of(losses):
    return {re.sub(r"^\d+ | \(the first.*", "", each) for each in losses}


@pytest.mark.parametrize(
    ("first", "second"),
    mostly_slow(
        permutations(NOT_HELD, 2),
        *pairwise([*NOT_HELD, *NOT_HELD][: len(NOT_HELD) + 1]),
        unpack=True,
    ),
)
def test_there_and_back_all_is_kept_that_both_can_hold(tmp_path, first, second):
    rng = random.Random(first + second)
    for _ in range(3):
        band = random_band(rng)
        tabs = band
        for number, suffix in enumerate((first, second, first)):
            path = tmp_path / f"{number}{suffix}"
            registry.write_tab(tabs[0], path, *tabs[1:])
            tabs, problems = registry.read_any_tab_file(path)
            assert problems == []
        lost = kinds_of(describe_losses(band, tabs))
        allowed = NOT_HELD[first] | NOT_HELD[second]
        if "dead notes" in allowed:  # a length without a next note to end it
            allowed = allowed | {"lengths of notes"}
        assert lost <= allowed


def test_losses_are_named_with_their_number():
    ringing = event(0, (1, 3), durations=(2,))
    marks = replace(ringing, techniques=((Technique("bend", 2),),), voices=(2,))
    before = timed(Bar(4, (marks,), (4, 4), 90, num_plays=2), unit=1, tuning=Tuning(capo=3))
    after = timed(Bar(4, (event(0, (1, 3), durations=(1,)),), (4, 4)), unit=1)
    assert describe_losses([before], [after]) == [
        "the capo", *(f"{what} (the first in bar 1)" for what in (
            "tempos", "marks of repeats", "lengths of notes", "marks of a second voice", "bends",
        )),
    ]  # fmt: skip
    assert describe_losses([after], [before]) == ["lengths of notes (the first in bar 1)"]
    moved = timed(Bar(4, (event(0, (2, 8), durations=(2,)),), (4, 4)), unit=1)
    assert describe_losses([after], [moved]) == ["notes (the first in bar 1)"]
    assert describe_losses([after, after], [after]) == ["2 tracks, but 1"]


def test_techniques_stand_in_one_order_in_every_process():
    """Sets of words have another order in each."""
    others = ("hammer", "pull", "slide", "dead", *FINGERS[1:])  # a note has one finger
    kinds = [kind for kind in TECHNIQUES if kind not in others]
    marks = (tuple(Technique(kind, 2 * (kind == "bend")) for kind in kinds),)
    full = replace(event(0, (1, 3), durations=(4,)), techniques=marks)
    before = timed(Bar(4, (full,), (4, 4), 90), unit=1)
    written = registry.FORMATS["MusicXML"].writer(before)
    signs = "accent strong-accent staccato vibrato palm.mute tap slap pop".split()
    found = re.findall(r"<([\w-]+) />|<other-technical>(.*)<", written)
    in_order = [kind.replace(" ", ".") for pair in found for kind in pair]
    assert [each for each in in_order if each in signs[:3]] == signs[:3]
    others = [each for each in in_order if each in signs[3:]]
    assert others == ["vibrato", "palm.mute", "tap", "slap", "pop"]
    plain = replace(before, bars=(replace(before.bars[0], events=(event(0, (1, 3)),)),))
    lost = [each.partition(" (")[0] for each in describe_losses([before], [plain])]
    assert lost == [TECHNIQUES[kind].plural for kind in kinds]


def test_of_two_ways_to_strike_guitar_pro_has_always_the_same(tmp_path):
    kinds = ("tap", "slap", "pop")
    full = replace(event(0, (1, 3), durations=(4,)), techniques=(tuple(map(Technique, kinds)),))
    path = tmp_path / "a.gp5"
    registry.write_tab(timed(Bar(4, (full,), (4, 4), 90), unit=1), path)
    ((read,), _) = registry.read_any_tab_file(path)
    assert read.bars[0].events[0].techniques == ((Technique("pop"),),)


def test_tracks_with_other_bars_cannot_play_together(tmp_path):
    one = timed(Bar(4, ()), Bar(4, ()))
    with pytest.raises(ValueError, match="Tracks 1 and 2 differ in bar 2, .* by --tracks"):
        registry.write_tab(one, tmp_path / "x.gp5", timed(Bar(4, ()), Bar(3, ())))
    assert not list(tmp_path.iterdir())


# --- MusicXML of others --------------------------------------------------------------------------


def xml(measures, attributes=""):
    return f"""<?xml version="1.0"?><!DOCTYPE score-partwise PUBLIC "-//R//DTD" "http://x/p.dtd">
<score-partwise><movement-title>Étude</movement-title>
<part-list><score-part id="P1"><part-name>Guitar</part-name></score-part></part-list>
<part id="P1"><measure number="0" implicit="yes"><attributes><divisions>2</divisions>
<time><beats>3</beats><beat-type>4</beat-type></time>{attributes}</attributes>{measures}</measure>
</part></score-partwise>"""


def sound(step, octave, duration, *inside, chord=False, staff=1, voice=1):
    """A note of MusicXML."""
    mark = "<chord/>" if chord else ""
    pitch = f"<pitch><step>{step}</step><octave>{octave}</octave></pitch>"
    return (
        f"<note>{mark}{pitch}<duration>{duration}</duration><voice>{voice}</voice>"
        f"<staff>{staff}</staff>{''.join(inside)}</note>"
    )


def place(string, fret):
    inside = f"<string>{string}</string><fret>{fret}</fret>"
    return f"<notations><technical>{inside}</technical></notations>"


def read_one(tmp_path, text, name="a.musicxml"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tab,), problems = registry.read_any_tab_file(tmp_path / name)
    return tab, [problem.message for problem in problems]


def test_plain_notation_has_pitches_and_no_strings(tmp_path):
    """A pickup of one quarter, written an octave above where it sounds, and a tied note."""
    transpose = "<transpose><chromatic>0</chromatic><octave-change>-1</octave-change></transpose>"
    rest = "</measure><measure number='1'><sound tempo='72.4'/>"
    notes = sound("E", 4, 2, '<tie type="start"/>') + sound("G", 4, 2, chord=True) + rest
    notes += sound("E", 4, 1, '<tie type="stop"/>') + sound("C", 5, 5)
    tab, problems = read_one(tmp_path, xml(notes, transpose))
    assert (tab.title, tab.is_fingered, problems, tab.steps_per_quarter) == ("Étude", False, [], 2)
    assert [(bar.steps, bar.tempo_bpm) for bar in tab.bars] == [(2, None), (6, 72)]
    found = [
        (e.step, [(tab.tuning.pitch_of(n.note), n.duration_steps) for n in e.tab_notes()])
        for e in tab.iter_events()
    ]
    assert found == [(0, [(52, 3), (55, 2)]), (1, [(60, 5)])]
    with pytest.raises(ValueError, match="pitches but no strings yet"):
        registry.write_tab(tab, tmp_path / "x.gp5")


def test_of_notation_and_tablature_the_tablature_is_read(tmp_path):
    details = "<staves>2</staves><clef number='2'><sign>TAB</sign></clef>"
    details += "<staff-details number='2'><capo>2</capo></staff-details>"
    notes = sound("F", 4, 6) + "<backup><duration>6</duration></backup>"
    notes += sound("F", 4, 6, place(3, 8), staff=2, voice=5)
    tab, problems = read_one(tmp_path, xml(notes, details))
    assert problems == [] and tab.tuning == Tuning(STANDARD.open_pitches, 2)
    assert [e.notes for e in tab.iter_events()] == [(Note(3, 8),)]


def test_a_packed_file_is_read_and_a_bomb_is_not(tmp_path, monkeypatch):
    container = '<container><rootfiles><rootfile full-path="s.xml"/></rootfiles></container>'
    with zipfile.ZipFile(tmp_path / "a.mxl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("s.xml", xml(sound("E", 4, 6)))
    (tab,), _ = registry.read_any_tab_file(tmp_path / "a.mxl")
    assert len(list(tab.iter_events())) == 1
    with zipfile.ZipFile(tmp_path / "a.gp", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Content/score.gpif", " " * 3_000_000)
    monkeypatch.setattr(bounds, "MAX_UNPACKED_BYTES", 2_000_000)
    with pytest.raises(ValueError, match="score.gpif in it has more than 1,953 KiB"):
        registry.read_any_tab_file(tmp_path / "a.gp")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "it defines entities"),
        ("a.xml", "<score-partwise><part>", "it is no XML"),
        ("a.xml", "<html/>", "it is no score-partwise or score-timewise"),
        ("a.xml", xml(""), "no track of 4 to 8 strings with notes"),
        ("a.xml", xml(sound("H", 4, 2)), "a note has no pitch"),
        ("a.gp", "PK", "cannot be read as a Guitar Pro 6, 7 or 8 file"),
        ("a.mxl", "PK", "cannot be read as MusicXML"),
    ],
)
def test_what_is_no_such_file_is_said_in_a_sentence(tmp_path, name, content, sentence):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=sentence):
        registry.read_any_tab_file(tmp_path / name)


# --- Guitar Pro 7 and 8 --------------------------------------------------------------------------


def test_a_number_that_leads_nowhere_is_named(tmp_path):
    for number, told in (("7", "it names '7', which"), ("7" * 3000, "it names '7{99}, which")):
        bars = f"<MasterBars><MasterBar><Bars>{number}</Bars></MasterBar></MasterBars>"
        score = f"<GPIF><Tracks><Track/></Tracks>{bars}</GPIF>"
        with zipfile.ZipFile(tmp_path / "a.gp", "w") as archive:
            archive.writestr("Content/score.gpif", score)
        with pytest.raises(ValueError, match=f"{told} is not in it"):
            registry.read_any_tab_file(tmp_path / "a.gp")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="alphaTab runs in Node.js")
def test_what_alphatab_writes_for_guitar_pro_7_is_read(tmp_path):
    rng = random.Random(7)
    for number in range(4):
        band = random_band(rng)
        registry.write_tab(band[0], tmp_path / f"{number}.atex", *band[1:])
        written = tmp_path / f"{number}.gp"
        export_guitar_pro_7(tmp_path / f"{number}.atex", written)
        tabs, problems = registry.read_any_tab_file(written)
        lost = kinds_of(describe_losses(band, tabs))  # what leads to no note leads nowhere
        assert problems == [] and lost <= {"hammer-ons and pull-offs", "slides"}
