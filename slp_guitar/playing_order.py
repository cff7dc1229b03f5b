"""The order in which bars are played: repeats, endings, and the signs that lead elsewhere.

Repeats may be nested. One without a beginning goes back to where the last one ended. Its ending
numbers say which times a bar is played. D.C. and D.S. lead back once, after the repeat that ends
there; from there to where they stood repeats are played only once, by their last ending, until
Fine ends the piece or a sign leads on to the coda.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from slp_guitar.bounds import MAX_BARS, MAX_PLAYED_NOTES
from slp_guitar.playing_signs import PLAYING_SIGNS, START
from slp_guitar.tab import Bar, Tab
from slp_guitar.timing import drop_repeated_changes


@dataclass(eq=False)
class _Repeat:
    """A repeat: where it begins, which bars go back, and how often it is being played.

    One that is inside an ending of another has the endings of that at bars that it has none for.
    """

    start: int
    outer: "_Repeat | None" = None
    outer_endings: tuple[int, ...] = ()
    closes: set[int] = field(default_factory=set)
    last_time: int = 1
    time: int = 1

    def own_endings(self, bar: Bar) -> tuple[int, ...]:
        """Return the times that the repeat plays a bar in it; empty for always."""
        return () if self.outer_endings == bar.endings else bar.endings

    def goes_on(self, endings: tuple[int, ...], after: Sequence[Bar]) -> bool:
        """Return whether a bar with an ending of it follows one with others.

        The ending after a repeat inside another that has none itself is the outer one's.
        """
        own = [self.own_endings(bar) for bar in after[:1]]
        return any(each and each >= endings for each in own if endings or not self.outer)

    def goes_on_with(self, bars: Sequence[Bar]) -> bool:
        """Return whether the first of some bars is played at this time, as an ending."""
        return any(
            self.time in self.own_endings(bar) or bar.starts_repeat
            for bar in bars[:1]
            if bar.endings
        )


def _find_repeats(bars: Sequence[Bar]) -> list[_Repeat | None]:
    """Return for each bar the innermost repeat that it is in."""
    inside: list[_Repeat | None] = []
    begun: list[_Repeat] = []
    free = 0  # where a repeat begins that nothing begins
    for number, bar in enumerate(bars):
        if bar.starts_repeat:
            outer = begun[-1] if begun else None
            begun.append(_Repeat(number, outer, bar.endings if outer else ()))
            if outer:
                outer.last_time = max(outer.last_time, *outer.own_endings(bar), 1)
        elif not begun and (bar.num_plays > 1 or bar.endings):
            begun.append(_Repeat(free))
            inside[free:] = [begun[-1]] * (number - free)
        inside.append(begun[-1] if begun else None)
        if not begun:
            continue
        repeat, after = begun[-1], bars[number + 1 : number + 2]
        own, is_close = repeat.own_endings(bar), bar.num_plays > 1
        repeat.last_time = max(repeat.last_time, bar.num_plays, *own)
        if is_close:
            repeat.closes.add(number)
        # With a repeat inside the last ending of another both may end here.
        while begun and begun[-1].closes and (is_close or own):
            if begun[-1].goes_on(own, after):
                break
            free, is_close, own = number + 1, False, begun.pop().outer_endings
    return inside


NO_BEGINNING = (
    "a repeat sign without a beginning leads back to behind the last one; programs differ"
)
NESTED_IN_ENDING = "a repeat inside an ending is played whenever the ending is; programs differ"
BY_NUMBER = "endings are played at the times that their numbers say; programs differ"
SEVERAL_JUMPS = "several signs that lead elsewhere do so one by one; programs differ"


def find_unclear_repeats(bars: Sequence[Bar]) -> dict[str, int]:
    """Return what programs play in different ways: how it is read here, and its first bar from 1.

    All agree on repeats inside others without endings, and on endings 1 to n of which the last but
    one alone has a sign, that says n.
    """
    found: dict[str, int] = {}
    endings: dict[_Repeat, list[tuple[int, tuple[int, ...]]]] = {}  # by bar number
    num_back = 0
    for number, (bar, repeat) in enumerate(zip(bars, _find_repeats(bars), strict=True), start=1):
        leading = [sign for sign in map(PLAYING_SIGNS.__getitem__, bar.signs) if sign.leads_to]
        is_back = any(not sign.is_conditional for sign in leading)
        num_back += is_back
        if len(leading) > 1 or (is_back and num_back > 1):
            found.setdefault(SEVERAL_JUMPS, number)
        if repeat is None:
            continue
        if number == repeat.start + 1 > 1 and not bar.starts_repeat and repeat.closes:
            found.setdefault(NO_BEGINNING, number)
        if number == repeat.start + 1 and repeat.outer and repeat.outer_endings:
            endings.setdefault(repeat.outer, []).append((number, repeat.outer_endings))
            if repeat.closes:
                found.setdefault(NESTED_IN_ENDING, number)
        if own := repeat.own_endings(bar):
            endings.setdefault(repeat, []).append((number, own))
    for repeat, parts in endings.items():
        times = {own[-1]: own for _, own in parts}
        numbers = [time for last in sorted(times) for time in times[last]]
        signs = [(bars[place].num_plays, bars[place].endings) for place in repeat.closes]
        before_last = repeat.outer is None and signs
        is_plain = numbers == [*range(1, len(numbers) + 1)] and repeat.start + 1 < parts[0][0]
        if not is_plain or before_last != [(len(numbers), times.get(len(numbers) - 1))]:
            found.setdefault(BY_NUMBER, parts[0][0])
    return found


def find_playing_order(bars: Sequence[Bar]) -> list[int]:
    """Return the places of the bars, from 0, in the order in which they are played.

    Raises:
        ValueError: if that would be more than 10,000 bars.
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
        waiting = _find_waiting_repeat(repeat, bar)
        if waiting:  # not played this time
            # The last sign of a repeat leads back from an ending before it as well.
            is_last = place == max(waiting.closes) and waiting.time < waiting.last_time
            if is_last and not waiting.goes_on_with(bars[place + 1 :][:1]):
                waiting.time += 1
                place, goes_back = waiting.start, True
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
        own = repeat.own_endings(bar) if repeat else ()
        times = max(bar.num_plays, repeat.last_time if own and repeat else 0)
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


def _find_waiting_repeat(repeat: _Repeat | None, bar: Bar) -> _Repeat | None:
    """Return the repeat, of those that a bar is in, that does not play it this time."""
    endings = bar.endings
    while repeat is not None:
        own = () if repeat.outer_endings == endings else endings
        if repeat.closes and own and repeat.time not in own:
            return repeat
        endings, repeat = repeat.outer_endings, repeat.outer
    return None


def _find_bar_with_sign(bars: Sequence[Bar], sign: str) -> int | None:
    """Return the first bar that has a sign; None if none has."""
    if sign == START:
        return 0
    return next((place for place, bar in enumerate(bars) if sign in bar.signs), None)


def expand_repeats(tab: Tab) -> Tab:
    """The tab as it is played: repeats and signs written out, so that none is left.

    Raises:
        ValueError: as `find_playing_order`, or if that would be more than 50,000 notes.
    """
    carried, time_signature, tempo, key = [], None, None, "C"
    for bar in tab.bars:  # a bar has what is in force before it, wherever it is played
        time_signature, tempo = bar.time_signature or time_signature, bar.tempo_bpm or tempo
        key = bar.key or key
        plain = replace(bar, key=key, starts_repeat=False, num_plays=0, endings=(), signs=())
        carried.append(replace(plain, time_signature=time_signature, tempo_bpm=tempo))
        tempo = bar.tempo_changes[-1][1] if bar.tempo_changes else tempo
    played = [carried[place] for place in find_playing_order(tab.bars)]
    if sum(len(event.notes) for bar in played for event in bar.events) > MAX_PLAYED_NOTES:
        raise ValueError(f"With its repeats this tab has more than {MAX_PLAYED_NOTES:,} notes.")
    return replace(tab, bars=tuple(drop_repeated_changes(played)))
