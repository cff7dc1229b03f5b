"""Pitch to tab on GuitarSet, each player left out in turn.

Usage::

    python benchmarks/guitarset_fingering.py GUITARSET

GUITARSET is a folder of JAMS files, or the publisher's annotation.zip, with two players or more.
Pitches are given, and nothing of the strings is seen. For each player, what has to be counted or
learned is counted or learned on the others.

Printed as JSON: a line for each player and way, then for each way the mean over players and its
standard deviation, and the middle 95% of the gain over the costs of the package when excerpts are
drawn anew (paired bootstrap). Strings are what a player did, which is not the only right answer.
"""

import argparse
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, pstdev

from fingering_baselines import StringHabits, bootstrap, random_legal

from slp_guitar.fingering.costs import HandCosts
from slp_guitar.fingering.grips import (
    Grip,
    UnplayableError,
    find_playable_grips,
    place_on_lowest_frets,
)
from slp_guitar.fingering.lattice import FingeringLattice, find_cheapest_fingering
from slp_guitar.fingering.passages import (
    FingeringMetrics,
    Passage,
    compare_fingerings,
    passage_from_tab,
    sum_metrics,
)
from slp_guitar.guitarset import read_guitarset_tabs
from slp_guitar.tab import Tab

Way = Callable[[Passage], Sequence[Grip]]
SHIPPED = "costs of the package"


def ways(learned: Sequence[Passage]) -> dict[str, Way]:
    """The ways to finger, by name, with what the other players teach them."""
    habits = StringHabits((p.tuning, p.grips) for p in learned)
    chance = random.Random(0)

    def with_habits(passage: Passage) -> Sequence[Grip]:
        def extra(_: int, grip: Grip) -> float:
            return -habits.of_grip(grip, passage.tuning)

        choices = [find_playable_grips(own, passage.tuning) for own in passage.moments]
        return FingeringLattice(passage, choices, HandCosts(), extra).find_cheapest_path()

    return {
        "random legal": lambda p: random_legal(p.moments, p.tuning, chance),
        "lowest fret": lambda p: place_on_lowest_frets(p.moments, p.tuning),
        "P(string given pitch)": lambda p: habits.likeliest(p.moments, p.tuning),
        SHIPPED: find_cheapest_fingering,
        "these and that prior": with_habits,
    }


def fingered(excerpt: Tab) -> Passage | None:
    """An excerpt as a passage; None if some moment of it is out of any hand's reach."""
    passage = passage_from_tab(excerpt)
    try:
        for pitches in passage.moments:
            find_playable_grips(pitches, passage.tuning)
    except UnplayableError:
        return None
    return passage if passage.moments else None


def leave_one_out(excerpts: Sequence[Tab], draws: int) -> list[dict]:
    """The lines of the table.

    Raises:
        ValueError: if there are fewer than two players.
    """
    passages = [(excerpt, fingered(excerpt)) for excerpt in excerpts]
    known = [(excerpt, passage) for excerpt, passage in passages if passage is not None]
    players = sorted({excerpt.source[:2] for excerpt, _ in known})
    if len(players) < 2:
        raise ValueError(
            f"To leave a player out takes two players or more; here there are {len(players)}."
        )
    lines, counts, by_player = [], {}, {}
    for player in players:
        learned = [passage for excerpt, passage in known if excerpt.source[:2] != player]
        held_out = [
            (excerpt, passage) for excerpt, passage in known if excerpt.source[:2] == player
        ]
        for name, way in ways(learned).items():
            found = [compare_fingerings(p.grips, way(p), p.tuning) for _, p in held_out]
            line = {"player": player, "way": name, "excerpts": len(found), **rounded(found)}
            for mode in ("solo", "comp"):
                own = [a for a, (e, _) in zip(found, held_out, strict=True) if mode in e.source]
                if own:
                    line[f"{mode} strings"] = rounded(own)["strings"]
            lines.append(line)
            counts.setdefault(name, []).extend(found)
            by_player.setdefault(name, []).append(sum_metrics(found).to_shares()["strings"])
    for name, found in counts.items():
        gain = bootstrap(found, counts[SHIPPED], draws=draws)
        lines.append({
            "player": "all", "way": name, "excerpts": len(found), **rounded(found),
            "mean over players": round(fmean(by_player[name]), 4),
            "deviation": round(pstdev(by_player[name]), 4),
            "gain 95 %": [round(end, 4) for end in gain],
        })  # fmt: skip
    left_out = len(passages) - len(known)
    return [*lines, {"excerpts left out, with a moment out of reach or none": left_out}]


def rounded(found: Sequence[FingeringMetrics]) -> dict[str, float]:
    """Shares of what was counted."""
    return {name: round(share, 4) for name, share in sum_metrics(found).to_shares().items()}


def main() -> None:
    """Measure, and print a JSON object a line."""
    parser = argparse.ArgumentParser(description="Pitch to tab on GuitarSet, player by player.")
    parser.add_argument("data", type=Path, help="a folder of JAMS files, or annotation.zip")
    parser.add_argument("--draws", type=int, default=10_000, help="of the bootstrap [10000]")
    arguments = parser.parse_args()
    try:
        excerpts, problems = read_guitarset_tabs(arguments.data)
        lines = leave_one_out(excerpts, arguments.draws)
    except ValueError as error:
        parser.error(str(error))
    for line in [*lines, {"problems": len(problems)}]:
        print(json.dumps(line))


if __name__ == "__main__":
    main()
