"""Pieces of guitar music: by hand, and random ones that every kind of file should give back."""

from dataclasses import replace

from slp_guitar.fretboard import Note, Tuning
from slp_guitar.tab import Bar, Event, Tab, TabNote, Technique
from slp_guitar.techniques import TECHNIQUES

OPEN = (64, 59, 55, 50, 45, 40, 35, 30)
METRES = [(4, 4), (3, 4), (6, 8), (5, 8), (2, 2)]
ONE_SIDED = [
    kind
    for kind, signs in TECHNIQUES.items()
    if kind != "pull" and not signs.is_of_beat and signs.since_guitar_pro < 5
]
"""Techniques of single notes; a hammer-on or pull-off, and what a beat has, depend on others."""


def event(step, *places, durations=()):
    """Notes that begin together, each a string and a fret."""
    return Event(step, tuple(Note(*place) for place in places), durations)


def timed(*bars, unit=4, **said):
    return Tab("By hand", bars=bars, steps_per_quarter=unit, **said)


def random_tuning(rng, strings, capos=(0, 0, 2, 5)):
    return Tuning(tuple(p + rng.randint(-3, 2) for p in OPEN[:strings]), rng.choice(capos))


def random_piece(rng, strings=6, plain=False, voices=False):
    """A piece in time, whose notes all say how long they last; with techniques unless plain."""
    unit = rng.choice([2, 4, 6, 12])
    bars, metre, tempo = [], None, None
    for number in range(rng.randint(1, 5)):
        new = rng.choice(METRES)
        said = {"time_signature": new} if new != metre else {}
        metre = new
        fast = rng.choice([tempo, rng.randint(40, 240)]) if number else rng.randint(40, 240)
        if fast != tempo:
            said["tempo_bpm"] = tempo = fast
        steps = metre[0] * 4 * unit // metre[1]
        bars.append(Bar(steps, (), **said))
    title = rng.choice(["A piece", "Étude in Gb", "One & <two>"])
    tab = Tab(title, random_tuning(rng, strings), tuple(bars), "", unit)
    return filled(tab, rng, plain, voices)


def filled(tab, rng, plain, voices):
    """A tab with notes: in each voice, one group begins where the one before has ended."""
    strings = len(tab.tuning.open_pitches)
    total = sum(bar.steps for bar in tab.bars)
    parts = {1: range(1, strings + 1)}
    if voices:
        parts = {1: range(1, 4), 2: range(4, strings + 1)}
    moments = {}
    for voice, own in parts.items():
        now = rng.randint(0, 3)
        while now < total:
            length = min(rng.choice([1, 1, 2, 3, 4, 6, 9]), total - now)
            chosen = rng.sample(list(own), min(len(own), rng.choice([1, 1, 1, 2, 3])))
            group = [played(rng, string, length, voice, plain) for string in chosen]
            moments.setdefault(now, []).extend(group)
            now += length + rng.choice([0, 0, 0, 1, 2])
    bars, start = [], 0
    for bar in tab.bars:
        events = [
            Event.from_notes(now - start, moments[now])
            for now in range(start, start + bar.steps)
            if now in moments
        ]
        bars.append(replace(bar, events=tuple(events)))
        start += bar.steps
    return replace(tab, bars=tuple(bars))


def played(rng, string, length, voice, plain):
    techniques = []
    if not plain and rng.random() < 0.4:
        kind = rng.choice(ONE_SIDED)
        techniques = [Technique(kind, rng.randint(1, 6) if kind == "bend" else 0)]
    return TabNote(Note(string, rng.randint(0, 19)), length, tuple(techniques), voice)
