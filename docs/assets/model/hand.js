/* Where a hand takes notes on a guitar: grips, what they cost, the cheapest way through a piece,
   and the moments that could well be played otherwise. As slp_transformer.guitar.fingering has it,
   to the last bit; its costs are given. A place is [string, fret], string 1 the highest; a guitar
   is { open, capo, maxFret, maxSpan }. */

import { SHARPS } from "./constants.js";

/** @import { Costs } from "./constants.js" */
/** @typedef {[number, number]} Place */
/** @typedef {Place[]} Grip */
/** @typedef {{ open: number[], capo: number, maxFret: number, maxSpan: number }} Guitar */
/** @typedef {{ notes: [number, number][], changes: string[] }} Fitted */
/** @typedef {{ grip: number, extra: number }} Other */
/** @typedef {{ t: number, others: Other[] }} Doubt */

/** @type {(pitch: number) => string} */
export const formatPitch = (pitch) => `${SHARPS[pitch % 12]}${Math.floor(pitch / 12) - 1}`;

/** Every place of a pitch, lowest string first.
   @type {(pitch: number, guitar: Guitar) => Place[]} */
function positionsOf(pitch, { open, capo, maxFret }) {
  const places = open.map((own, k) => /** @type {Place} */ ([k + 1, pitch - own - capo]));
  places.reverse();
  return places.filter(([, fret]) => fret >= 0 && fret <= maxFret - capo);
}

/** Every way to take different pitches together: a string each, and the fretted ones within a
   span. @type {(pitches: number[], guitar: Guitar, span: number) => Grip[]} */
function findGrips(pitches, guitar, span) {
  if (pitches.length > guitar.open.length) return [];
  /** @type {Grip[]} */
  let grips = [[]];
  for (const pitch of pitches) {
    const places = positionsOf(pitch, guitar);
    grips = grips.flatMap((grip) =>
      places.map((place) => [...grip, place]).filter((longer) => isHeld(longer, span)),
    );
  }
  return grips;
}
/** @type {(grip: Grip, span: number) => boolean} */
function isHeld(grip, span) {
  const frets = grip.map(([, fret]) => fret).filter(Boolean);
  return (
    Math.max(...frets) - Math.min(...frets) <= span &&
    new Set(grip.map(([string]) => string)).size === grip.length
  );
}

/** The grips that have some places, or all; where none is within the hand's span, those that
   stretch it least. @type {(pitches: number[], guitar: Guitar, pinned?: Grip) => Grip[]} */
export function findPlayableGrips(pitches, guitar, pinned = []) {
  for (let span = Math.min(guitar.maxSpan, guitar.maxFret); span <= guitar.maxFret; span++) {
    const grips = findGrips(pitches, guitar, span).filter((grip) =>
      pinned.every((pin) => grip.some((place) => `${place}` === `${pin}`)),
    );
    if (grips.length) return grips;
  }
  return [];
}

/** Make a moment fit for a guitar: the pitches that are left, lowest first, each with its place
   among those that were given, and what was changed. Pitches off the neck move to their nearest
   octave if that is wanted; then what no hand can take goes.
   @type {(pitches: number[], guitar: Guitar, movesOctaves?: boolean) => Fitted} */
export function fitMoment(pitches, guitar, movesOctaves = false) {
  const isOnNeck = (/** @type {number} */ pitch) => positionsOf(pitch, guitar).length > 0,
    left = new Map(),
    changes = [];
  for (const [k, pitch] of pitches.entries()) {
    const octaves = Array.from({ length: 11 }, (_, n) => [pitch - 12 * n, pitch + 12 * n]).flat();
    const moved = (movesOctaves && octaves.find(isOnNeck)) || pitch;
    if (moved !== pitch) changes.push(`${formatPitch(pitch)} is moved to ${formatPitch(moved)}`);
    if (!left.has(moved)) left.set(moved, k);
  }
  if (left.size < pitches.length) changes.push("a pitch that is there twice is taken once");
  const inOrder = [...left.keys()].sort((a, b) => a - b),
    dropped = inOrder.filter((pitch) => !isOnNeck(pitch));
  const rest = inOrder.filter(isOnNeck);
  // The melody counts most, then the bass; of the inner voices the lowest goes first.
  while (rest.length && !findPlayableGrips(rest, guitar).length)
    dropped.push(...rest.splice(rest.length > 2 ? 1 : 0, 1));
  changes.push(...dropped.map((pitch) => `${formatPitch(pitch)} is left out`));
  return { notes: rest.map((pitch) => [pitch, left.get(pitch)]), changes };
}

/** What a grip costs a hand whose index finger is at a fret.
   @type {(grip: Grip, hand: number, costs: Costs) => number} */
function gripCost(grip, hand, costs) {
  let cost = 0;
  for (const [, fret] of grip) {
    if (fret === 0) cost += costs.per_open_string;
    else
      cost +=
        costs.per_fret * fret +
        (Math.max(0, hand - fret) * costs.per_fret_behind_index +
          Math.max(0, fret - hand - 3) * costs.per_fret_of_stretch);
  }
  const strings = grip.map(([string]) => string);
  return (
    cost +
    costs.per_skipped_string * (Math.max(...strings) - Math.min(...strings) + 1 - strings.length)
  );
}

/** Which of two grips Python puts first. @type {(a: Grip, b: Grip) => number} */
const compareGrips = (a, b) =>
  a.reduce((sign, [string, fret], k) => sign || string - b[k][0] || fret - b[k][1], 0);
/** @type {(a: number[], b: number[]) => number[]} */
const sum = (a, b) => a.map((x, i) => x + b[i]);

/** The fingerings of a piece: a path through the grips of each moment, on which a hand moves. */
export class Lattice {
  /** @param {Grip[][]} choices @param {Costs} costs */
  constructor(choices, costs) {
    this.choices = choices;
    const hands = costs.hand_frets,
      wanted = costs.preferred_position;
    const stay = hands.map((hand) =>
      wanted === null ? 0 : costs.per_fret_from_position * Math.abs(hand - wanted),
    );
    this.own = choices.map((choice) =>
      choice.map((grip) => hands.map((hand, h) => gripCost(grip, hand, costs) + stay[h])),
    );
    this.roads = hands.map((to) =>
      hands.map((from) =>
        from === to ? 0 : costs.per_move + costs.per_fret_moved * Math.abs(from - to),
      ),
    );
    this.cheapest = choices.map((_, t) => this.cheapestAt(t));
  }
  /** At each place of the hand, the cheapest grip of a moment, or the only one that is allowed, and
     its cost. @type {(t: number, only?: number | null) => [number, number][]} */
  cheapestAt(t, only = null) {
    return this.roads.map((_, hand) => {
      let best = only ?? 0;
      for (let k = 0; only === null && k < this.own[t].length; k++) {
        const less = this.own[t][k][hand] - this.own[t][best][hand];
        if (less < 0 || (less === 0 && compareGrips(this.choices[t][k], this.choices[t][best]) < 0))
          best = k;
      }
      return [this.own[t][best][hand], best];
    });
  }
  /** The cheapest fingering, as the number of each moment's grip; with one grip fixed at a moment,
     if that is asked. @type {(fixed?: number, grip?: number | null) => number[]} */
  findPath(fixed = -1, grip = null) {
    let paid = this.roads.map(() => 0);
    const came = [],
      held = this.cheapest.map((column, t) => (t === fixed ? this.cheapestAt(t, grip) : column));
    for (const [t, column] of held.entries()) {
      const from = this.roads.map((road) => {
        let best = 0;
        for (let k = 1; t && k < road.length; k++)
          if (paid[k] + road[k] < paid[best] + road[best]) best = k;
        return best;
      });
      paid = column.map(
        ([cost], hand) => (t ? paid[from[hand]] + this.roads[hand][from[hand]] : 0) + cost,
      );
      came.push(from);
    }
    let hand = paid.indexOf(Math.min(...paid));
    const path = [];
    for (let t = held.length - 1; t >= 0; t--) {
      path.push(held[t][hand][1]);
      hand = came[t][hand];
    }
    return path.reverse();
  }
  /** What the cheapest fingering with each grip of each moment costs in all. */
  prices() {
    const columns = this.cheapest.map((column) => column.map(([cost]) => cost));
    const arrivals = (/** @type {number[][]} */ moments) => {
      const reached = [this.roads.map(() => 0)];
      for (const moment of moments.slice(0, -1)) {
        const paid = sum(reached[reached.length - 1], moment);
        reached.push(this.roads.map((road) => Math.min(...sum(paid, road))));
      }
      return reached;
    };
    const before = arrivals(columns),
      after = arrivals([...columns].reverse()).reverse();
    return this.own.map((moment, t) =>
      moment.map((grip) => Math.min(...sum(sum(before[t], after[t]), grip))),
    );
  }
  /** Other grips of a moment than the one of the cheapest fingering, cheapest first: number and
     extra cost.
     @type {(t: number, best: number[], prices: number[][], count: number) => Other[]} */
  alternatives(t, best, prices, count) {
    const ranked = [...prices[t].keys()].sort(
      (a, b) => prices[t][a] - prices[t][b] || compareGrips(this.choices[t][a], this.choices[t][b]),
    );
    return ranked
      .filter((k) => k !== best[t])
      .slice(0, count)
      .map((grip) => ({ grip, extra: prices[t][grip] - prices[t][ranked[0]] }));
  }
  /** The moments where another grip is almost as good, least certain first: each with its
     alternatives and, of the first, the path. One that changes with the alternative of another is
     not a question of its own.
     @type {(best: number[], prices: number[][], count: number, alternatives: number) => Doubt[]} */
  findDoubts(best, prices, count, alternatives) {
    const margins = prices.map((own) =>
      own.length > 1 ? [...own].sort((a, b) => a - b)[1] - Math.min(...own) : Infinity,
    );
    const ranked = [...margins.keys()]
      .filter((t) => margins[t] < Infinity)
      .sort((a, b) => margins[a] - margins[b]);
    const doubts = [],
      changed = new Set();
    for (const t of ranked) {
      if (doubts.length === count) break;
      if (changed.has(t)) continue;
      const others = this.alternatives(t, best, prices, alternatives);
      this.findPath(t, others[0].grip).forEach((k, i) => {
        if (k !== best[i]) changed.add(i);
      });
      doubts.push({ t, others });
    }
    return doubts;
  }
}
