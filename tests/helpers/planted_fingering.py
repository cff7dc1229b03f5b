"""Planted attempts at chapter 13: what a hand holds, the cheapest path, taking turns."""

import torch
from planted import right, wrong


@right("is_playable_grip", "counted string by string")
def _(grip, span):
    strings = [string for string, _ in grip]
    if any(strings.count(string) > 1 for string in strings):
        return False
    frets = sorted(fret for _, fret in grip if fret > 0)
    return not frets or frets[-1] - frets[0] <= span


@wrong("is_playable_grip", "a string twice", "frets alone")
def _(places, span):
    frets = [fret for _, fret in places if fret]
    return not frets or max(frets) - min(frets) <= span


@wrong("is_playable_grip", "open strings counted", "all frets")
def _(grip, span):
    strings, frets = zip(*grip, strict=True)
    return len(set(strings)) == len(strings) and max(frets) - min(frets) <= span


wrong("is_playable_grip", "span not looked at", "strings alone")(
    lambda grip, span: len(dict(grip)) == len(grip)
)


@wrong("is_playable_grip", "one too few", "range(span)")
def _(grip, span):
    frets = [fret for _, fret in grip if fret]
    apart = max(frets) - min(frets) if frets else 0
    return len(dict(grip)) == len(grip) and apart in range(span)


@right("cheapest_step", "two loops")
def _(v, e, m):
    new = []
    for p in range(len(v)):
        roads = [v[q] + m[q, p] for q in range(len(v))]
        new.append(min(roads) + e[p])
    return torch.stack(new)


wrong("cheapest_step", "the other way", "m[p, q]")(lambda v, e, m: e + (v + m).min(1).values)
wrong("cheapest_step", "moves free", "min of v")(lambda v, e, m: e + v.min())


@wrong("cheapest_step", "from the cheapest place", "argmin first")
def _(v, e, m):
    q = int(v.argmin())
    return e + v[q] + m[q]


@right("path_back", "written from the end")
def _(came, last):
    places = [0] * len(came) + [last]
    for t in range(len(came) - 1, -1, -1):
        places[t] = came[t][places[t + 1]]
    return places


@wrong("path_back", "last place first", "not turned round")
def _(came, last):
    places = [last]
    for row in came.tolist()[::-1]:
        places.append(row[places[-1]])
    return places


wrong("path_back", "not followed", "came[:, last]")(
    lambda came, last: [*came[:, last].tolist(), last]
)


@right("takes_turns", "slices")
def _(notes, places):
    reads = torch.zeros(2 * len(notes) - 1, dtype=torch.long)
    reads[::2], reads[1::2] = notes, places[:-1]
    return reads


wrong("takes_turns", "last place read", "all of both")(
    lambda notes, places: [x for pair in zip(notes, places, strict=True) for x in pair]
)
wrong("takes_turns", "places first", "the other in front")(
    lambda notes, places: torch.stack([places, notes], 1).flatten()[:-1]
)
