"""Random pieces fingered by the package and by the page's script, which agree to the last bit."""

import json
import random

from js_engines import Racer, constants

from slp_guitar.fingering.features import MOVABLE_CHORDS
from slp_guitar.fingering.fingering_pieces import find_doubtful_moments, find_fingerings
from slp_guitar.fingering.playable_chords import FingeringOptions, fit_chord_to_guitar
from slp_guitar.fingering.playable_pieces import PlayableMoment, PlayablePiece
from slp_guitar.fretboard import TUNINGS, Note, Tuning
from slp_guitar.tab import Bar, Tab, TabNote

FINGERING = constants.constants()["FINGERING"].value


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
    """Grips at random places, with now and then a pitch that no hand reaches, or one twice; some
    begin again at the end. One piece in five is full of power chords, and one of sevenths."""
    moments, luck = [], rng.random()
    for number in range(1, rng.randint(2, 20)):
        tuning = options.tuning
        size, hand = rng.choice([1, 1, 1, 2, 3, 4, 6]), rng.randint(0, 12)
        strings = rng.sample(range(1, len(tuning.open_pitches) + 1), size)
        frets = [rng.choice([0, hand, hand + rng.randint(0, 4)]) for _ in strings]
        pitches = [tuning.pitch_of(Note(*place)) for place in zip(strings, frets, strict=True)]
        if luck < 0.4:
            shapes = MOVABLE_CHORDS if luck < 0.2 else ((0, 7, 10, 15), (0, 10, 16, 21))
            pitches = [pitches[0] + apart for apart in rng.choice(shapes)][: rng.choice([1, 4, 4])]
        if rng.random() < 0.05:
            pitches[0] += rng.choice([-31, 31, 5])
        lasting = [rng.choice([0, 1, 1, 2, 3, 8]) for _ in pitches]
        notes = tuple(TabNote(Note(0, p), d) for p, d in zip(pitches, lasting, strict=True))
        moments.append(PlayableMoment(1, number, number, tuple(pitches), notes))
    again = moments[: rng.choice([0, 0, 3, 7])]
    places = [moment.number + len(moments) for moment in again]
    return moments + [m._replace(number=n, step=n) for m, n in zip(again, places, strict=True)]


SOLVE = """(M, { guitar, asked, moments, durations, pins, octave }) => {
  const fitted = moments.map((pitches) => M.fitMoment(pitches, guitar, octave));
  const left = [...fitted.keys()].filter((t) => fitted[t].notes.length);
  const pitches = left.map((t) => fitted[t].notes.map(([pitch]) => pitch));
  const repeats = M.findRepeats(pitches);
  const own = pins.map(([t, notes]) => [left.indexOf(t), notes]).filter(([t]) => t >= 0);
  const pinned = M.spreadAnswers(new Map(own), repeats);
  const choices = pitches.map((own, t) => M.findPlayableGrips(own, guitar, pinned.get(t) ?? []));
  const lasting = left.map((t) => fitted[t].notes.map(([, place]) => durations[t][place]));
  const ringing = M.ringingOf(left.map((t) => t + 1), lasting);
  const lattice = new M.Lattice(pitches, choices, ringing, asked), prices = lattice.prices();
  const { path, hands, cost } = lattice.findPath();
  const grips = (path) => path.map((k, t) => choices[t][k]);
  const doubts = M.rankQuestions(prices, repeats).slice(0, 7).map((t) => {
    const others = lattice.alternatives(t, path, prices, 2)
      .map((grip) => lattice.findPath(lattice.placesLike(t, repeats), grip));
    return { places: [t, ...repeats[t].filter((i) => i !== t)],
      extra: others.map((own) => own.cost - cost), paths: others.map((own) => grips(own.path)) };
  });
  const best = grips(path);
  const fingers = best.map((grip, t) => M.chooseFingers(grip, hands[t], guitar));
  return { fitted, best, fingers, doubts };
}"""


def ask_script(run, options, moments):
    """Return what the page's script finds for a piece."""
    guitar = {
        "open": options.tuning.open_pitches,
        "capo": options.tuning.capo,
        "maxFret": options.max_fret,
        "maxSpan": options.max_span,
    }
    asked = {
        "openStringCost": -FINGERING["openStringCost"] * options.open_string_preference,
        "position": options.preferred_position,
    }
    pins = [[number - 1, notes] for (_, number), notes in options.pinned_notes.items()]
    given = {"guitar": guitar, "asked": asked, "pins": pins}
    given["moments"] = [moment.pitches for moment in moments]
    given["durations"] = [[each.duration_steps for each in own.notes] for own in moments]
    return run(SOLVE, given | {"octave": options.unplayable_policy == "octave"})


def as_lists(value):
    return json.loads(json.dumps(value))


def compare_pieces(seeds):
    """Compare as many random pieces, each as it is and with pins."""
    run, num_compared = Racer("hand.js").run, 0
    for seed in seeds:
        rng = random.Random(seed)
        options = random_options(rng, rng.choice(["drop", "drop", "octave"]))
        moments = random_moments(rng, options)
        fitted = [fit_chord_to_guitar(moment.pitches, options) for moment in moments]
        if not any(left for left, *_ in fitted):
            continue
        piece = PlayablePiece(Tab(bars=(Bar(99, ()),), steps_per_quarter=4), moments)
        for _ in range(2):
            found = ask_script(run, options, moments)
            for (left, changes, _), theirs in zip(fitted, found["fitted"], strict=True):
                assert theirs == {"notes": as_lists(list(left.items())), "changes": changes}
            ((tab, path),), _ = find_fingerings(piece, options)
            assert found["best"] == as_lists(path), seed
            written = [
                {n.note: [one.kind for one in n.techniques] for n in event.tab_notes()}
                for event in tab.iter_events()
            ]
            assert written == [
                {note: [f"finger {n}"] * (n > 0) for note, n in zip(*own, strict=True)}
                for own in zip(path, found["fingers"], strict=True)
            ], seed
            doubts = find_doubtful_moments(piece, options, 7)
            assert [one["places"] for one in found["doubts"]] == [d.places for d in doubts], seed
            for theirs, doubt in zip(found["doubts"], doubts, strict=True):
                assert theirs["extra"] == doubt.extra_costs[1:], seed
                assert theirs["paths"] == as_lists(doubt.paths[1:]), seed
            num_compared += 1
            pins = {}
            for doubt in doubts[1:3]:  # the first note of another way, or the whole of it
                grip = rng.choice(doubt.paths[1:])[doubt.places[0]]
                pins[1, doubt.moment.number] = grip[: rng.choice([1, len(grip)])]
            options = FingeringOptions(**(vars(options) | {"pinned_notes": pins}))
            if not pins:
                break
    return num_compared
