"""Attempts at the exercises on fingering, as readers write them."""

import torch
from planted import add_table, odd, right


@right("path_back", "written from the end")
def _(came, last):
    places = [0] * len(came) + [last]
    for t in range(len(came) - 1, -1, -1):
        places[t] = came[t][places[t + 1]]
    return places


@odd("path_back", "torch.zeros without a dtype")
def _(came, last):
    path = torch.zeros(len(came) + 1)
    path[-1] = last
    for t in reversed(range(len(came))):
        path[t] = came[t, int(path[t + 1])]
    return path


add_table(
    globals(),
    r"""
is_playable_grip
  span of 4: s = [a for a, _ in grip]; f = [b for _, b in grip if b] or [0]; len(set(s)) == len(s)
      and max(f) - min(f) < 5
  highest fret: len({a for a, _ in grip}) == len(grip) and all(b <= span for _, b in grip)
  four fingers: f = [b for _, b in grip if b]; len({a for a, _ in grip}) == len(grip) and len(f) < 5
      and max(f, default=0) - min(f, default=0) <= span
  string and fret: f = [a for a, _ in grip if a]; len({b for _, b in grip}) == len(grip) and max(f,
      default=0) - min(f, default=0) <= span
  first fret compared: first = [f for _, f in grip if f][:1]; len({s for s, _ in grip}) == len(grip)
      and all(abs(f - first[0]) <= span for _, f in grip if f)
  open strings counted: strings, frets = zip(*grip, strict=True); len(set(strings)) == len(strings)
      and max(frets) - min(frets) <= span
  right: s = [a for a, _ in grip]; f = sorted(b for _, b in grip if b > 0); all(s.count(a) == 1 for
      a in s) and (not f or f[-1] - f[0] <= span)
  a string twice: f = [b for _, b in grip if b]; not f or max(f) - min(f) <= span
cheapest_step
  rounded: (e + (v[:, None] + m).min(0).values).long()
  one minimum: e + (v[:, None] + m).min()
  wrong axis: e + (v[:, None] + m).min(1).values
  two minima: e + v.min() + m.min(0).values
  sum: (v[:, None] + m).sum(0) + e
  m transposed: e + (v + m).min(1).values
  right: torch.stack([min(v[q] + m[q, p] for q in range(len(v))) + e[p] for p in range(len(v))])
path_back
  last = 0: path = [0]; [path.append(int(row[path[-1]])) for row in came.flip(0)]; path[::-1]
  smallest: [*(int(row.argmin()) for row in came), last]
  not followed: [*came[:, last].tolist(), last]
  then reversed: path = [last]; [path.append(row[path[-1]]) for row in came.tolist()[::-1]]; path
  from the beginning (in order): path = [last]; [path.append(int(row[path[-1]])) for row in came];
      path
takes_turns
  odd: torch.stack([notes, places], 1).float().flatten()[:-1]
  last note missed: torch.stack([notes, places], 1)[:-1].flatten()
  shifted: torch.stack([notes, torch.cat([places[-1:], places[:-1]])], 1).flatten()[:-1]
  two columns: torch.stack([notes, places], dim=1)
  right: reads = torch.zeros(2 * len(notes) - 1, dtype=torch.long); reads[::2], reads[1::2] = notes,
      places[:-1]; reads
  last place read: [x for pair in zip(notes, places, strict=True) for x in pair]
  notes and places swapped: torch.stack([places, notes], 1).flatten()[:-1]
""",
)
