/* Where a hand takes notes on a guitar: grips, what they cost, the cheapest way through a piece,
   and the moments that could well be played otherwise. As slp_transformer.guitar.fingering has it,
   to the last bit; its costs are given. A place is [string, fret], string 1 the highest; a guitar
   is { open, capo, maxFret, maxSpan }. */

import { FINGERING, SHARPS } from "./constants.js";

/** @import { Costs } from "./constants.js" */
/** @typedef {[number, number]} Place */
/** @typedef {Place[]} Grip */
/** @typedef {{ open: number[], capo: number, maxFret: number, maxSpan: number }} Guitar */
/** @typedef {{ notes: [number, number][], changes: string[] }} Fitted */
/** @typedef {{ grip: number, extra: number }} Other */
/** @typedef {{ onsets: number[], ends: number[][] }} Ringing */
/** @typedef {[number, number][]} Held strings that ring on, and until when */
/** @typedef {{ grip: number, before: number, cut: number, after: number, isKept: boolean,
    total: number }} Way */
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

/** Every way in which one hand can take different pitches together, fretted ones within a span.
   @type {(pitches: number[], guitar: Guitar, span: number) => Grip[]} */
function findGrips(pitches, guitar, span) {
  if (pitches.length > guitar.open.length) return [];
  /** @type {Grip[]} */
  let grips = [[]];
  for (const pitch of pitches) {
    const places = positionsOf(pitch, guitar);
    grips = grips.flatMap((grip) =>
      places.map((place) => [...grip, place]).filter((longer) => isWithin(longer, span)),
    );
  }
  return grips.filter((grip) => isTaken(grip, guitar));
}
/** @type {(grip: Grip, span: number) => boolean} */
function isWithin(grip, span) {
  const frets = grip.map(([, fret]) => fret).filter(Boolean);
  return (
    Math.max(...frets) - Math.min(...frets) <= span &&
    new Set(grip.map(([string]) => string)).size === grip.length
  );
}

/** Every choice of so many numbers in order, up to a last one.
   @type {(count: number, last: number, first?: number) => number[][]} */
const choose = (count, last, first = 1) =>
  count
    ? Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => first + n).flatMap((one) =>
        choose(count - 1, last, one + 1).map((others) => [one, ...others]),
      )
    : [[]];
/** Usual length of the open strings, in millimeters. @type {(open: number[]) => number} */
function scaleLength(open) {
  const highest = Math.max(...open);
  if (open.length === 4 && Math.min(...open) >= 48) return 380;
  if (highest < 53) return 864;
  return highest <= 59 ? 700 : 650;
}
/** Whether a hand has the fingers and the reach for a grip whose notes have a string each.
   @type {(grip: Grip, guitar: Guitar) => boolean} */
function isTaken(grip, { open, capo }) {
  const pressed = grip
    .filter(([, fret]) => fret)
    .map(([string, fret]) => /** @type {Place} */ ([fret, string]))
    .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  if (pressed.length <= 1) return true;
  const lowest = pressed[0][0],
    barred = pressed.filter(([fret]) => fret === lowest).map(([, string]) => string);
  const isClear = (/** @type {Place} */ [string, fret]) =>
    fret > 0 || string < barred[0] || string > barred[barred.length - 1];
  // A finger presses a string, or neighboring ones at one fret.
  const press = (/** @type {Place[]} */ own) =>
    own
      .filter(([fret, string], n) => `${own[n - 1]}` !== `${[fret, string - 1]}`)
      .map(([fret]) => fret);
  /** @type {[boolean, number[]][]} */
  const ways = [[false, press(pressed)]];
  if (grip.every(isClear)) ways.push([true, [lowest, ...press(pressed.slice(barred.length))]]);
  return ways.some(([needsIndex, way]) => {
    const places = way.map((fret) => scaleLength(open) * (1 - 2 ** (-(capo + fret) / 12)));
    return choose(way.length, FINGERING.numFingers).some(
      (fingers) =>
        (fingers[0] === 1 || !needsIndex) &&
        places.every((b, j) =>
          places
            .slice(0, j)
            .every((a, i) => b - a <= FINGERING.fingerReach[`${fingers[i]}-${fingers[j]}`]),
        ),
    );
  });
}

/** The grips that have some places, or all; where none is within the usual
   span, those beyond it that stretch the hand least.
    @type {(pitches: number[], guitar: Guitar, pinned?: Grip) => Grip[]} */
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
    isPlayable = (/** @type {number[]} */ chord) =>
      findGrips(chord, guitar, guitar.maxFret).length > 0;
  const dropped = inOrder.filter((pitch) => !isOnNeck(pitch));
  let rest = inOrder.filter(isOnNeck);
  if (movesOctaves && rest.length === inOrder.length && !isPlayable(rest)) {
    const moved = moveOctaves(rest, guitar, isPlayable);
    for (const [k, pitch] of rest.entries())
      if (moved && moved[k] !== pitch)
        changes.push(`${formatPitch(pitch)} is moved to ${formatPitch(moved[k])}`);
    if (moved) {
      const places = rest.map((pitch) => left.get(pitch));
      left.clear();
      moved.forEach((pitch, k) => left.set(pitch, places[k]));
      rest = [...moved].sort((a, b) => a - b);
    }
  }
  // The melody counts most, then the bass; of the inner voices the lowest goes first.
  while (rest.length && !isPlayable(rest)) dropped.push(...rest.splice(rest.length > 2 ? 1 : 0, 1));
  const inTurn = movesOctaves ? [...dropped].sort((a, b) => a - b) : dropped;
  changes.push(...inTurn.map((pitch) => `${formatPitch(pitch)} is left out`));
  return { notes: rest.map((pitch) => [pitch, left.get(pitch)]), changes };
}
/** Where the notes of a chord move by an octave so that a hand can take it; null if nowhere. As few
   as possible move; of these the inner ones rather than the bass, and the melody last.
   @type {(pitches: number[], guitar: Guitar, isPlayable: (chord: number[]) => boolean) =>
     number[] | null} */
function moveOctaves(pitches, guitar, isPlayable) {
  if (pitches.length > guitar.open.length) return null;
  /** @type {number[][]} */
  let chords = [[]];
  for (const pitch of pitches) {
    const octaves = [pitch - 12, pitch + 12].filter((own) => positionsOf(own, guitar).length);
    chords = chords.flatMap((chord) => [pitch, ...octaves].map((own) => [...chord, own]));
  }
  const price = (/** @type {number[]} */ chord) => {
    const moved = chord.map((pitch, k) => Number(pitch !== pitches[k]));
    return 4 * moved.reduce((a, b) => a + b, 0) + 2 * moved[moved.length - 1] + moved[0];
  };
  const ranked = chords.map((chord) => ({ chord, cost: price(chord) }));
  ranked.sort((a, b) => a.cost - b.cost);
  const found = ranked.find(
    ({ chord }) =>
      new Set(chord).size === chord.length && isPlayable([...chord].sort((a, b) => a - b)),
  );
  return found ? found.chord : null;
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

/** When the notes of a piece that ring on begin, and until when they should: of onsets and of
    durations in any unit, 0 where one is not known.
    @type {(onsets: number[], durations: number[][]) => Ringing} */
export const ringingOf = (onsets, durations) => ({
  onsets,
  ends: durations.map((own, t) =>
    own.map((one) => (one ? onsets[t] + FINGERING.heardShare * one : 0)),
  ),
});
/** What rings on when the moment after t begins, if a grip is struck at t.
    @type {(ringing: Ringing | null, t: number, held: Held, grip: Grip) => Held} */
function hold(ringing, t, held, grip) {
  if (!ringing || t + 1 >= ringing.onsets.length) return [];
  const left = held.filter(([string]) => !grip.some(([other]) => other === string));
  const struck = grip.map(([string], i) => [string, ringing.ends[t][i]]);
  return /** @type {Held} */ ([...left, ...struck])
    .filter(([, end]) => end > ringing.onsets[t + 1])
    .sort((a, b) => a[0] - b[0]);
}
/** The states that stay in the beam, the cheapest; and of each grip the cheapest it leads to, which
    stays, too. @type {(paid: number[][], ways: Way[]) => [number[], Map<number, Way>]} */
function keepCheapest(paid, ways) {
  const least = paid.map((row) => Math.min(...row)),
    best = new Map();
  for (const way of ways)
    if (!best.has(way.grip) || way.total < best.get(way.grip).total) best.set(way.grip, way);
  const ranked = [...paid.keys()].sort((a, b) => least[a] - least[b]);
  const kept = new Set(ranked.slice(0, FINGERING.maxHeldStates));
  for (const { after } of best.values()) kept.add(after);
  return [[...kept].sort((a, b) => a - b), best];
}

/** The fingerings of a piece: a path through the grips of each moment, on which a hand moves and
    strings ring on. */
export class Lattice {
  /** @param {Grip[][]} choices @param {Costs} costs @param {Ringing | null} ringing */
  constructor(choices, costs, ringing = null) {
    this.choices = choices;
    this.ringing = ringing;
    this.cutCost = costs.per_cut_note;
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
    this.inOrder = choices.map((choice) =>
      [...choice.keys()].sort((a, b) => compareGrips(choice[a], choice[b])),
    );
    this.nowhere = hands.map(() => 0);
  }
  /** What it costs to come to each place of the hand from where this was paid.
     @type {(paid: number[]) => number[]} */
  arrive(paid) {
    return this.roads.map((road) => Math.min(...sum(paid, road)));
  }
  /** What a grip costs at each place of the hand, with what it cuts.
     @type {(t: number, way: { grip: number, cut: number }) => number[]} */
  priceOf(t, { grip, cut }) {
    return cut ? this.own[t][grip].map((cost) => cost + cut) : this.own[t][grip];
  }
  /** The dynamic program, forward: what is paid at each state of each moment, and the ways there;
     with one grip fixed at a moment, if that is asked.
     @type {(fixed?: number, only?: number | null) => { paid: number[][][], ways: Way[][] }} */
  search(fixed = -1, only = null) {
    const found = { paid: /** @type {number[][][]} */ ([]), ways: /** @type {Way[][]} */ ([]) };
    let states = /** @type {Held[]} */ ([[]]),
      arrived = [this.nowhere];
    for (const [t, choice] of this.choices.entries()) {
      const ways = /** @type {Way[]} */ ([]),
        paid = /** @type {number[][]} */ ([]),
        reached = /** @type {Held[]} */ ([]),
        numbers = new Map();
      for (const grip of t === fixed && only !== null ? [only] : this.inOrder[t])
        for (const [before, held] of states.entries()) {
          const struck = choice[grip].filter(([string]) => held.some(([own]) => own === string));
          const cut = this.cutCost * struck.length,
            total = sum(arrived[before], this.priceOf(t, { grip, cut })),
            next = hold(this.ringing, t, held, choice[grip]),
            key = `${next}`,
            after = numbers.get(key) ?? reached.length;
          if (after === reached.length) {
            numbers.set(key, after);
            reached.push(next);
            paid.push(total);
          } else paid[after] = paid[after].map((cost, h) => Math.min(cost, total[h]));
          ways.push({ grip, before, cut, after, isKept: true, total: Math.min(...total) });
        }
      const [kept, best] = keepCheapest(paid, ways);
      found.ways.push(
        ways.map((way) => {
          const isKept = kept.includes(way.after); // else the beam dropped where it leads
          const led = isKept ? way : (best.get(way.grip) ?? way);
          return { ...way, isKept, after: kept.indexOf(led.after) };
        }),
      );
      found.paid.push(kept.map((n) => paid[n]));
      states = kept.map((n) => reached[n]);
      arrived = kept.map((n) => this.arrive(paid[n]));
    }
    return found;
  }
  /** The cheapest fingering, as the number of each moment's grip; with one grip fixed at a moment,
     if that is asked. @type {(fixed?: number, grip?: number | null) => number[]} */
  findPath(fixed = -1, grip = null) {
    const { paid, ways } = this.search(fixed, grip);
    const lasts = paid[paid.length - 1].map((row) => Math.min(...row));
    let state = lasts.indexOf(Math.min(...lasts));
    let hand = paid[paid.length - 1][state].indexOf(lasts[state]);
    const path = [];
    for (let t = paid.length - 1; t >= 0; t--) {
      const from = (t ? paid[t - 1] : [this.nowhere]).map((row) => {
        const costs = t ? sum(row, this.roads[hand]) : row;
        return t ? costs.indexOf(Math.min(...costs)) : hand;
      });
      const cost = (/** @type {Way} */ way) => {
        const road = t
          ? paid[t - 1][way.before][from[way.before]] + this.roads[hand][from[way.before]]
          : 0;
        return road + this.priceOf(t, way)[hand];
      };
      let best = null,
        least = Infinity;
      for (const way of ways[t])
        if (way.isKept && way.after === state && cost(way) < least)
          [best, least] = [way, cost(way)];
      const taken = /** @type {Way} */ (/** @type {unknown} */ (best));
      path.push(taken.grip);
      [state, hand] = [taken.before, from[taken.before]];
    }
    return path.reverse();
  }
  /** What the cheapest fingering with each grip of each moment costs in all. */
  prices() {
    const { paid, ways } = this.search(),
      prices = [];
    let toGo = (paid[paid.length - 1] ?? []).map(() => this.nowhere);
    for (let t = paid.length - 1; t >= 0; t--) {
      const arrived = t ? paid[t - 1].map((row) => this.arrive(row)) : [this.nowhere];
      const own = this.choices[t].map(() => Infinity),
        ahead = arrived.map(() => this.roads.map(() => Infinity));
      for (const way of ways[t]) {
        const price = this.priceOf(t, way),
          left = sum(toGo[way.after], price);
        const total = Math.min(...sum(sum(arrived[way.before], toGo[way.after]), price));
        own[way.grip] = Math.min(own[way.grip], total);
        ahead[way.before] = ahead[way.before].map((cost, h) => Math.min(cost, left[h]));
      }
      prices.push(own);
      toGo = ahead.map((row) => this.arrive(row)); // moves cost the same in both directions
    }
    return prices.reverse();
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
