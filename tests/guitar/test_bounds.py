"""Small files of strangers make no large work: each bound is a sentence, before the work."""

import io
import re
import tracemalloc
import zipfile
from fractions import Fraction
from itertools import product

import pytest
from commands import fine, refused
from sampled import mostly_slow

from slp_guitar import bounds, playing_order
from slp_guitar.bounds import check_score_moment, parse_exact_number
from slp_guitar.formats import gpif, musicxml, tab_builder
from slp_guitar.formats.alphatex import parse_alphatex_tabs
from slp_guitar.formats.gpif import read_gp_tabs
from slp_guitar.formats.musicxml import read_musicxml_tabs
from slp_guitar.formats.registry import FORMATS, read_any_tab_file
from slp_guitar.formats.tab_builder import (
    BarHeader,
    NoteEvent,
    TabBuilder,
    build_tabs,
)
from slp_guitar.fretboard import STANDARD, Note
from slp_guitar.playing_order import expand_repeats

SCORE = (
    '<score-partwise><part-list><score-part id="P1"><part-name>x</part-name></score-part>'
    '</part-list><part id="P1"><measure number="1">%s</measure></part></score-partwise>'
)
NOTE = "<note><pitch><step>E</step><octave>4</octave></pitch><duration>%s</duration></note>"
DIVISIONS = "<attributes><divisions>%s</divisions></attributes>"


def write_score(path, *durations: str, divisions: str = "1") -> None:
    notes = "".join(NOTE % duration for duration in durations)
    path.write_text(SCORE % (DIVISIONS % divisions + notes), encoding="utf-8")


@pytest.mark.parametrize(
    ("duration", "suffix", "says"),
    [
        ("128", "gp5", "Bar 1 has 128 beats; a bar of a Guitar Pro file has at most 127."),
        ("256", "mid", "Bar 1 has 256 beats; a bar of a MIDI file has at most 255."),
        ("1025", "tab", "bar 1 has more than 1,024 quarter notes."),
        ("100000000", "tab", "'100000000' is no number of a score, at most 1,000,000."),
        ("1" + "0" * 30, "atex", "is no number of a score"),
        ("1e999999999", "musicxml", "'1e999999999' is no number of a score"),
        ("nan", "gp5", "'nan' is no number of a score"),
    ],
)
def test_a_bar_too_long_is_one_sentence(tmp_path, monkeypatch, capsys, duration, suffix, says):
    monkeypatch.chdir(tmp_path)
    write_score(tmp_path / "a.musicxml", duration)
    assert says in refused(capsys, "convert", "a.musicxml", "-o", f"b.{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == ["a.musicxml"]
    write_score(tmp_path / "a.musicxml", "64")
    fine("convert", "a.musicxml", "-o", f"b.{suffix}")


def test_lengths_whose_common_unit_only_grows_are_refused(tmp_path):
    """Each sum of fractions would take more time than the one before."""
    odd = [n for n in range(101, 999, 2) if all(n % k for k in range(3, 32, 2))]
    notes = "".join(DIVISIONS % n + NOTE % 1 for n in odd)
    (tmp_path / "a.musicxml").write_text(SCORE % notes, encoding="utf-8")
    with pytest.raises(ValueError, match="its lengths have no common unit of time"):
        read_musicxml_tabs(tmp_path / "a.musicxml")


@pytest.mark.parametrize(
    ("bound", "value", "says"),
    [
        ("MAX_STEPS", 5, "more than 5 steps of 1/1 quarter note"),
        ("MAX_BAR_QUARTERS", 5, "bar 1 has more than 5 quarter notes"),
        ("MAX_BARS", 0, "more than 0 bars"),
    ],
)
def test_each_bound_of_a_piece_is_heeded(tmp_path, monkeypatch, bound, value, says):
    from slp_guitar.formats import tab_builder

    write_score(tmp_path / "a.musicxml", *["1"] * 6)
    read_musicxml_tabs(tmp_path / "a.musicxml")
    monkeypatch.setattr(tab_builder, bound, value)
    with pytest.raises(ValueError, match=says):
        read_musicxml_tabs(tmp_path / "a.musicxml")


def test_numbers_and_moments_of_a_score():
    assert parse_exact_number(" 12.50 ") == Fraction(25, 2) and parse_exact_number("-3") == -3
    for text in ("", "1e3", "1/3", "inf", "1000001", "0.1234567890", "1_000", "٣e1"):
        with pytest.raises(ValueError, match="no number of a score"):
            parse_exact_number(text)
    check_score_moment(Fraction(10**6 - 1, 96))
    with pytest.raises(ValueError, match="longer than 1,000,000 quarter notes"):
        check_score_moment(Fraction(10**6 + 1))


@pytest.mark.parametrize(
    ("method", "suffix"),
    mostly_slow(
        product([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ["gp", "mxl"]),
        (zipfile.ZIP_DEFLATED, "gp"),
        unpack=True,
    ),
)
def test_a_bomb_in_a_zip_is_not_unpacked_whatever_its_method(tmp_path, method, suffix):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("META-INF/container.xml", '<a><b full-path="Content/score.gpif"/></a>')
        with archive.open("Content/score.gpif", "w") as member:
            for _ in range(300):
                member.write(bytes(1 << 20))
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(packed.getvalue())
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"more than \d\d,\d+ KiB|not packed by deflate"):
            read_any_tab_file(path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 3 * bounds.MAX_UNPACKED_BYTES


@pytest.mark.parametrize("element", ["<a/>", '<a b="" c="" d=""/>'])
def test_sixteen_million_elements_in_sixty_kilobytes_are_not_made(tmp_path, element):
    with zipfile.ZipFile(tmp_path / "a.gp", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Content/score.gpif", "<r>" + element * 1_300_000 + "</r>")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 1,250,000 tags, or 600,000 attributes"):
            read_gp_tabs(tmp_path / "a.gp")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2.5 * bounds.MAX_UNPACKED_BYTES


def test_every_kind_of_file_that_is_read_has_a_bound():
    """By the name of its format, or of those that one reader takes."""
    kinds = " ".join(bounds.MAX_FILE_BYTES)
    for name, each in FORMATS.items():
        words = re.findall(r"[A-Za-z]{4,}", name)
        assert each.reader is None or any(word in kinds for word in words), name


def test_the_first_tie_that_continues_nothing_alone_is_looked_for(tmp_path, monkeypatch):
    """Each would look through all bars."""
    asked, look = [], TabBuilder.bar_number_at
    monkeypatch.setattr(
        TabBuilder, "bar_number_at", lambda self, at: asked.append(at) or look(self, at)
    )
    path, tied = tmp_path / "a.musicxml", NOTE.replace("</note>", '<tie type="stop"/></note>')
    gap = "<forward><duration>1</duration></forward>"
    path.write_text(SCORE % (NOTE % 1 + gap + (tied % 1) * 13 + NOTE % 1), encoding="utf-8")
    read_musicxml_tabs(path)
    assert len(asked) <= 1


def test_bars_are_counted_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tab_builder, "MAX_BARS", 7)
    monkeypatch.setattr(musicxml, "_PartReader", None)
    path = tmp_path / "a.musicxml"
    path.write_text(SCORE % ("</measure><measure>" * 7), encoding="utf-8")
    with pytest.raises(ValueError, match="it has more than 7 bars"):
        read_musicxml_tabs(path)


def test_a_note_that_a_guitar_pro_file_names_often_is_read_once(tmp_path, monkeypatch):
    calls, read = [], gpif._read_note
    monkeypatch.setattr(gpif, "_read_note", lambda *which: calls.append(which) or read(*which))
    score = GPIF % ("0 " * 11)
    with zipfile.ZipFile(tmp_path / "a.gp", "w") as archive:
        archive.writestr("Content/score.gpif", score)
    (tab,), _ = read_gp_tabs(tmp_path / "a.gp")
    assert len(calls) == 1 and sum(len(event.notes) for event in tab.iter_events()) == 11
    packed = (tmp_path / "a.gp").stat().st_size
    monkeypatch.setattr(bounds, "MAX_SMALL_FILE_NOTES", 10 - packed // 2)
    with pytest.raises(ValueError, match="more than 10 notes and rests"):
        read_gp_tabs(tmp_path / "a.gp")


def test_a_small_file_has_fewer_notes_than_a_large_one(tmp_path, monkeypatch):
    assert list(map(bounds.max_notes_of_file, (0, 2001, 10**6))) == [10_000, 11_000, 200_000]
    monkeypatch.setattr(bounds, "MAX_SMALL_FILE_NOTES", 5)
    monkeypatch.setattr(bounds, "FILE_BYTES_PER_NOTE", 10_000)
    write_score(tmp_path / "a.musicxml", *["1"] * 6)
    with zipfile.ZipFile(tmp_path / "a.mxl", "w") as archive:
        archive.writestr("META-INF/container.xml", '<a><b full-path="a.musicxml"/></a>')
        archive.write(tmp_path / "a.musicxml", "a.musicxml")
    for name in ("a.mxl", "a.musicxml"):
        with pytest.raises(ValueError, match="more than 5 notes and rests"):
            read_any_tab_file(tmp_path / name)
    with pytest.raises(ValueError, match="more than 5 beats"):
        parse_alphatex_tabs("0.1 * 6")
    monkeypatch.setattr(tab_builder, "MAX_NOTES", 5)
    note = NoteEvent(Fraction(0), Fraction(1), Note(1, 0))
    builder = TabBuilder(tuning=STANDARD, bars=[BarHeader(Fraction(4))], notes=[note] * 6)
    with pytest.raises(ValueError, match="more than 5 notes"):
        build_tabs("a.gp5", "", [builder])


def test_repeats_are_played_out_no_further_than_to_a_number_of_notes(monkeypatch):
    (tab,), _ = parse_alphatex_tabs("\\ro 1.1.4 1.1 1.1 1.1 | \\rc 3 2.1 2.1 2.1 2.1")
    assert len(expand_repeats(tab).bars) == 6
    monkeypatch.setattr(playing_order, "MAX_PLAYED_NOTES", 23)
    with pytest.raises(ValueError, match="With its repeats this tab has more than 23 notes"):
        expand_repeats(tab)


GPIF = (
    "<GPIF><Score><Title>x</Title></Score><MasterTrack/>"
    "<MasterBars><MasterBar><Time>4/4</Time><Bars>0</Bars></MasterBar></MasterBars>"
    "<Tracks><Track id='0'><Name>g</Name><Staves><Staff><Properties><Property name='Tuning'>"
    "<Pitches>40 45 50 55 59 64</Pitches></Property></Properties></Staff></Staves></Track></Tracks>"
    "<Bars><Bar id='0'><Voices>0 -1 -1 -1</Voices></Bar></Bars>"
    "<Voices><Voice id='0'><Beats>%s</Beats></Voice></Voices>"
    "<Beats><Beat id='0'><Rhythm ref='0'/><Notes>0</Notes></Beat></Beats>"
    "<Notes><Note id='0'><Properties><Property name='String'><String>1</String></Property>"
    "<Property name='Fret'><Fret>3</Fret></Property></Properties></Note></Notes>"
    "<Rhythms><Rhythm id='0'><NoteValue>16th</NoteValue></Rhythm></Rhythms></GPIF>"
)
