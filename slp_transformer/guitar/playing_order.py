"""The order in which bars are played: repeats, endings, and the signs that lead elsewhere.

Repeats may be nested. One without a beginning goes back to where the last one ended. Its ending
numbers say which times a bar is played. D.C. and D.S. lead back once, after the repeat that ends
there; from there to where they stood repeats are played only once, by their last ending, until
Fine ends the piece or a sign leads on to the coda.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from slp_transformer._internal.bounds import MAX_BARS
from slp_transformer.guitar.playing_signs import PLAYING_SIGNS, START
from slp_transformer.guitar.tab import Bar, Tab
from slp_transformer.guitar.timing import drop_repeated_changes

"""Most bars that repeats are expanded to."""


@dataclass
class _Repeat:
    """A repeat: where it begins, which bars go back, and how often it is being played."""

    start: int
    closes: set[int] = field(default_factory=set)
    last_time: int = 1
    time: int = 1

    def needs_to_go_back(self, bars: Sequence[Bar], place: int) -> bool:
        """Return whether a bar that is not played this time ends the repeat for this time."""
        after = bars[place + 1 : place + 2]
        return self.time < self.last_time and not any(
            self.time in bar.endings or bar.starts_repeat for bar in after if bar.endings
        )


def _find_repeats(bars: Sequence[Bar]) -> list[_Repeat | None]:
    """Return for each bar the innermost repeat that it is in."""
    inside: list[_Repeat | None] = []
    begun: list[_Repeat] = []
    free = 0  # where a repeat begins that nothing begins
    for number, bar in enumerate(bars):
        if bar.starts_repeat:
            begun.append(_Repeat(number))
        elif not begun and (bar.num_plays > 1 or bar.endings):
            begun.append(_Repeat(free))
            inside[free:] = [begun[-1]] * (number - free)
        inside.append(begun[-1] if begun else None)
        if not begun:
            continue
        repeat, after = begun[-1], bars[number + 1 : number + 2]
        repeat.last_time = max(repeat.last_time, bar.num_plays, *bar.endings)
        if bar.num_plays > 1:
            repeat.closes.add(number)
        # The ending after a repeat inside another is the outer one's.
        goes_on = any(
            each.endings and not each.starts_repeat and each.endings >= bar.endings
            for each in after
            if bar.endings or len(begun) == 1
        )
        if repeat.closes and (bar.num_plays > 1 or bar.endings) and not goes_on:
            begun.pop()
            free = number + 1
    return inside


def find_playing_order(bars: Sequence[Bar]) -> list[int]:
    """Return the places of the bars, from 0, in the order in which they are played.

    Raises:
        ValueError: if that would be more than 100,000 bars.
    """
    repeats = _find_repeats(bars)
    order: list[int] = []
    followed: set[int] = set()  # bars whose sign has led back
    until, without_repeats_to, goes_back = "", -1, False
    place = 0
    while place < len(bars):
        bar, repeat = bars[place], repeats[place]
        if repeat and repeat.start == place and not goes_back:
            repeat.time = repeat.last_time if place <= without_repeats_to else 1
        goes_back = False
        if repeat and repeat.closes and bar.endings and repeat.time not in bar.endings:
            # The last sign of a repeat leads back from an ending before it as well.
            if place == max(repeat.closes) and repeat.needs_to_go_back(bars, place):
                repeat.time += 1
                place, goes_back = repeat.start, True
            else:
                place += 1
            continue
        order.append(place)
        if len(order) > MAX_BARS:
            raise ValueError(f"With its repeats this tab has more than {MAX_BARS:,} bars.")
        if until and until in bar.signs:
            goal = _find_bar_with_sign(bars, PLAYING_SIGNS[until].leads_to)
            if goal is None:
                break
            place, until, without_repeats_to = goal, "", -1
            continue
        times = max(bar.num_plays, repeat.last_time if bar.endings and repeat else 0)
        if repeat and place in repeat.closes and repeat.time < times:
            repeat.time += 1
            place, goes_back = repeat.start, True
            continue
        signs = (PLAYING_SIGNS[name] for name in bar.signs if place not in followed)
        back = next((sign for sign in signs if sign.leads_to and not sign.is_conditional), None)
        goal = _find_bar_with_sign(bars, back.leads_to) if back else None
        if back is None or goal is None:
            place += 1
            continue
        followed.add(place)
        until, without_repeats_to = back.until, place
        for each in filter(None, repeats):
            each.time = each.last_time
        place = goal
    return order


def _find_bar_with_sign(bars: Sequence[Bar], sign: str) -> int | None:
    """Return the first bar that has a sign; None if none has."""
    if sign == START:
        return 0
    return next((place for place, bar in enumerate(bars) if sign in bar.signs), None)


def expand_repeats(tab: Tab) -> Tab:
    """The tab as it is played: repeats and signs written out, so that none is left.

    Raises:
        ValueError: as `find_playing_order`.
    """
    carried, time_signature, tempo = [], None, None
    for bar in tab.bars:  # a bar has what is in force before it, wherever it is played
        time_signature, tempo = bar.time_signature or time_signature, bar.tempo_bpm or tempo
        plain = replace(bar, starts_repeat=False, num_plays=0, endings=(), signs=())
        carried.append(replace(plain, time_signature=time_signature, tempo_bpm=tempo))
    played = [carried[place] for place in find_playing_order(tab.bars)]
    return replace(tab, bars=tuple(drop_repeated_changes(played)))
