/* Where a hand takes notes on a guitar: grips, what they cost, the cheapest way through a piece,
   and the moments that could well be played otherwise. As slp_guitar.fingering has it,
   to the last bit; its costs are given. A place is [string, fret], string 1 the highest; a guitar
   is { open, capo, maxFret, maxSpan }. */

import { FINGERING, SHARPS } from "./constants.js";

/** @typedef {[number, number]} Place */
/** @typedef {Place[]} Grip */
/** @typedef {{ open: number[], capo: number, maxFret: number, maxSpan: number }} Guitar */
/** @typedef {{ notes: [number, number][], changes: string[] }} Fitted */
/** @typedef {{ onsets: number[], ends: number[][] }} Ringing */
/** @typedef {[number, number, number][]} Held strings that ring on, until when, and their frets */
/** @typedef {{ grip: number, before: number, cost: number, after: number, isKept: boolean,
    total: number }} Way */
/** @typedef {{ places: Map<number, number[]>, chords: Map<string, string> }} Memory */
/** @typedef {{ grip: number | null, held: Held, memory: Memory }} State a grip that was struck,
    what rings on, what is remembered */
/** @typedef {State & { least: number, before: number }} Reached a state, the cheapest way there */
/** @typedef {{ paid: number[][][], roads: number[][][][], ways: Way[][], states: State[][] }}
    Search of each moment */
/** @typedef {{ position: number | null, openStringCost: number }} Asked */
/** @typedef {[string, number]} Feature */

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
/** A finger for each place; at one fret the lower string takes the lower finger.
   @type {(pressed: Grip) => Grip[]} */
const separate = (pressed) =>
  [...pressed].sort((a, b) => a[1] - b[1] || b[0] - a[0]).map((place) => [place]);
/** What each finger presses: a fret of one string, or of neighboring ones.
   @type {(pressed: Grip) => Grip[]} */
const groupNeighbors = (pressed) =>
  pressed.reduce(
    (groups, [string, fret], n) => {
      if (`${pressed[n - 1]}` === `${[string - 1, fret]}`)
        groups[groups.length - 1].push([string, fret]);
      else groups.push([[string, fret]]);
      return groups;
    },
    /** @type {Grip[]} */ ([]),
  );
/** The fingers that reach what they press, in every way, as slp_guitar.hand lists them.
   @type {(grip: Grip, guitar: { open: number[], capo: number }) =>
     Generator<{ finger: number, own: Grip }[], void, void>} */
function* listHands(grip, { open, capo }) {
  const pressed = grip
      .filter(([, fret]) => fret)
      .sort(([a, low], [b, high]) => low - high || a - b),
    barred = pressed.filter(([, fret]) => fret === pressed[0][1]),
    rest = pressed.slice(barred.length);
  const isClear = (/** @type {Place} */ [string, fret]) =>
    fret > 0 || string < barred[0][0] || string > barred[barred.length - 1][0];
  const ways = [separate(pressed), groupNeighbors(pressed)];
  if (barred.length && grip.every(isClear))
    ways.push(...[separate(rest), groupNeighbors(rest)].map((own) => [barred, ...own]));
  for (const [n, way] of ways.entries()) {
    const places = way.map(([[, fret]]) => scaleLength(open) * (1 - 2 ** (-(capo + fret) / 12)));
    for (const fingers of choose(way.length, FINGERING.numFingers)) {
      const isWithinReach = places.every((b, j) =>
        places
          .slice(0, j)
          .every((a, i) => b - a <= FINGERING.fingerReach[`${fingers[i]}-${fingers[j]}`]),
      );
      if (isWithinReach && (n < 2 || fingers[0] === 1))
        // a barre is the index's
        yield way.map((own, k) => ({ finger: fingers[k], own }));
    }
  }
}
/** Whether a hand has the fingers and the reach for a grip whose notes have a string each.
   @type {(grip: Grip, guitar: { open: number[], capo: number }) => boolean} */
const isTaken = (grip, guitar) => !listHands(grip, guitar).next().done;
/** The finger of each note of a grip, 0 for an open string, of a hand whose index is at a fret.
   @type {(grip: Grip, hand: number, guitar: { open: number[], capo: number }) => number[]} */
export function chooseFingers(grip, hand, guitar) {
  const ranked = [...listHands(grip, guitar)].map((each) => ({
    each,
    apart: each.reduce((all, { finger, own }) => all + Math.abs(finger - 1 - own[0][1] + hand), 0),
  }));
  ranked.sort((a, b) => b.each.length - a.each.length || a.apart - b.apart);
  const best = ranked[0]?.each ?? [];
  return grip.map(
    (place) => best.find(({ own }) => own.some((each) => `${each}` === `${place}`))?.finger ?? 0,
  );
}

/** Whether one hand can hold notes together, within the usual span.
   @type {(grip: Grip, tab: { open: number[], capo: number }) => boolean} */
export const isPlayableGrip = (grip, { open, capo }) =>
  isWithin(grip, FINGERING.maxSpan) && isTaken(grip, { open, capo });

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
  rest = chooseKept(rest, guitar.open.length, isPlayable);
  const dropped = [...left.keys()].filter((pitch) => !rest.includes(pitch)).sort((a, b) => a - b);
  changes.push(...dropped.map((pitch) => `${formatPitch(pitch)} is left out`));
  return { notes: rest.map((pitch) => [pitch, left.get(pitch)]), changes };
}
/** The notes of a chord that stay so that a hand can take it: the melody, and as many others as
   possible. The bass stays rather than inner voices; of these go those that sound in another
   octave, too, and then the lowest.
   @type {(pitches: number[], strings: number, isPlayable: (chord: number[]) => boolean) =>
     number[]} */
function chooseKept(pitches, strings, isPlayable) {
  const searched = [...pitches.slice(0, 1), ...pitches.slice(1).slice(1 - FINGERING.maxSearched)],
    top = searched[searched.length - 1];
  const price = (/** @type {number[]} */ chord) => [
    Number(!chord.includes(searched[0])),
    -new Set(chord.map((pitch) => pitch % 12)).size,
    ...chord.map((pitch) => -pitch),
  ];
  for (let size = Math.min(searched.length, strings); size; size--) {
    const others = choose(size - 1, searched.length - 1),
      ranked = others.map((own) => [...own.map((k) => searched[k - 1]), top]);
    ranked.sort((a, b) => compareNumbers(price(a), price(b)));
    const found = ranked.find(isPlayable);
    if (found) return found;
  }
  return [];
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

/* --- What costs look at: names with whole numbers, as fingering/features.py has them. --- */

/** What a grip is wherever the hand is; its notes are in order of pitch.
   @type {(grip: Grip) => Feature[]} */
function gripFeatures(grip) {
  const frets = grip.map(([, fret]) => fret).filter(Boolean),
    strings = grip.map(([string]) => string),
    last = FINGERING.numStringFeatures;
  /** @type {Feature[]} */
  const found = frets.flatMap((fret) => [
    ["frets", fret],
    ["frets above 4", Math.max(0, fret - 4)],
    ["frets above 7", Math.max(0, fret - 7)],
    ["frets above 12", Math.max(0, fret - 12)],
  ]);
  if (grip.length === 1)
    return [
      ...found,
      [`alone on string ${Math.min(strings[0], last)}`, 1],
      ["alone open", 1 - frets.length],
    ];
  found.push(
    ["chord: open strings", grip.length - frets.length],
    ["chord: skipped strings", Math.max(...strings) - Math.min(...strings) + 1 - grip.length],
    [`chord: top on string ${Math.min(strings[strings.length - 1], 4)}`, 1],
    [`chord: bass on string ${Math.min(Math.max(strings[0], 3), last)}`, 1],
    ["chord: strings crossed", strings.filter((own, k) => k && strings[k - 1] < own).length],
  );
  if (frets.length)
    found.push(
      ["chord: span", Math.max(...frets) - Math.min(...frets)],
      ["chord: frets used", new Set(frets).size],
    );
  return found;
}
/** What most chords of a piece are: "movable" power chords and octaves, or "comping".
   @type {(moments: number[][]) => string} */
function findStyle(moments) {
  const { shapes, compingNotes, minChords, minShare } = FINGERING.styles,
    known = shapes.map(String),
    chords = moments.filter(({ length }) => length > 1),
    least = Math.max(minChords, minShare * chords.length);
  const isMovable = (/** @type {number[]} */ own) =>
    known.includes(`${own.map((pitch) => pitch - own[0])}`);
  const isComping = (/** @type {number[]} */ own) =>
    own.length >= compingNotes && new Set(own.map((pitch) => pitch % 12)).size === own.length;
  if (chords.filter(isMovable).length >= least) return "movable";
  return chords.filter(isComping).length >= least ? "comping" : "";
}
/** What a grip asks in a piece of a style.
   @type {(grip: Grip, style: string) => Feature[]} */
function styleFeatures(grip, style) {
  const frets = grip.map(([, fret]) => fret).filter(Boolean);
  if (grip.length < 2 || !style) return [];
  if (style === "comping") return [[FINGERING.costNames.compingOpen, grip.length - frets.length]];
  if (!frets.length) return [];
  const strings = grip.map(([string]) => string),
    skipped = Math.max(...strings) - Math.min(...strings) + 1 - grip.length,
    isOctave = grip.length === 2 && skipped > 0 && grip[1][1] > grip[0][1],
    isMovable = isOctave || grip[0][1] > 0 || Math.max(...frets) > 4;
  return [
    [FINGERING.costNames.movableOpen, isMovable ? grip.length - frets.length : 0],
    [
      FINGERING.costNames.movableFrets,
      new Set(grip.map(([, fret]) => fret)).size + skipped - Number(isOctave),
    ],
  ];
}
/** What a grip asks of a hand whose index finger is at a fret.
   @type {(grip: Grip, hand: number) => Feature[]} */
function handFeatures(grip, hand) {
  const kind = grip.length === 1 ? "alone" : "chord";
  /** @type {Feature[]} */
  const found = [[`hand at ${Math.min(hand, 12)}`, 1]];
  for (const [, fret] of grip) {
    const apart = fret - hand;
    if (fret === 0)
      found.push(
        [`${kind}: open, hand above 3`, Number(hand > 3)],
        [`${kind}: open, frets of the hand above 3`, Math.max(0, hand - 3)],
      );
    else if (apart < 0) found.push(["behind the index", 1], ["frets behind the index", -apart]);
    else if (apart > 3) found.push(["stretch", 1], ["frets of stretch", apart - 3]);
    else found.push([`${kind}: finger ${apart + 1}`, 1]);
  }
  const atIndex = grip.filter(([, fret]) => fret === hand).length;
  return [...found, ["barre or two fingers at the index", Number(atIndex > 1)]];
}
/** What a move of the hand asks.
   @type {(from: number, to: number, time: string, wasOpen: boolean) => Feature[]} */
function moveFeatures(from, to, time, wasOpen) {
  const apart = Math.abs(to - from);
  if (!apart) return [];
  return [
    [`move, time ${time}`, 1],
    [`frets moved, time ${time}`, apart],
    ["move by 1", Number(apart === 1)],
    ["move by 2", Number(apart === 2)],
    ["frets moved beyond 4", Math.max(0, apart - 4)],
    ["move from open strings", Number(wasOpen)],
    ["frets moved from open strings", wasOpen ? apart : 0],
  ];
}
/** What two grips in a row ask, wherever the hand is.
   @type {(before: Grip, grip: Grip, pitchesBefore: number[], pitches: number[]) => Feature[]} */
function pairFeatures(before, grip, pitchesBefore, pitches) {
  if (before.length === 1 && grip.length === 1)
    return lineFeatures(before[0], grip[0], pitches[0] - pitchesBefore[0]);
  /** @type {Feature[]} */
  const found = [];
  for (const name of ["top", "bass"]) {
    const at = (/** @type {any[]} */ own) => own[name === "top" ? own.length - 1 : 0];
    const strings = at(grip)[0] - at(before)[0],
      interval = at(pitches) - at(pitchesBefore);
    if (strings)
      found.push(
        [`${name}: another string`, 1],
        [`${name}: strings crossed`, Math.abs(strings) - 1],
        [`${name}: against the pitch`, Number(strings * interval > 0)],
      );
    else found.push([`${name}: leap along a string`, Number(Math.abs(interval) > 4)]);
  }
  for (const [k, pitch] of pitches.entries()) {
    const was = before[pitchesBefore.lastIndexOf(pitch)];
    found.push(["pitch repeated elsewhere", Number(Boolean(was) && `${was}` !== `${grip[k]}`)]);
  }
  if (before.length === grip.length && before.every(([string], k) => string === grip[k][0])) {
    const apart = new Set(grip.map(([, fret], k) => fret - before[k][1]));
    const isFretted = [...before, ...grip].every(([, fret]) => fret);
    found.push(["same strings", 1], ["same shape", Number(apart.size === 1 && isFretted)]);
  }
  return found;
}
/** What a note after another asks, so many half steps higher.
   @type {(before: Place, note: Place, interval: number) => Feature[]} */
function lineFeatures(before, note, interval) {
  const strings = note[0] - before[0],
    size = Math.abs(interval);
  if (!size) return [["pitch repeated elsewhere", Number(strings !== 0)]];
  const step = size <= 2 ? "step" : size <= 4 ? "third" : "leap",
    hasOpen = before[1] === 0 || note[1] === 0;
  return [
    [`line: ${step}, ${Math.min(Math.abs(strings), 3)} strings on`, 1],
    ["line: against the pitch", Number(strings * interval > 0)],
    ["line: between open and fretted on a string", Number(hasOpen && strings === 0)],
  ];
}
/** The class of the time before each moment, against the piece's median.
   @type {(onsets: number[]) => string[]} */
function classifyGaps(onsets) {
  const gaps = onsets.map((onset, t) => (t ? onset - onsets[t - 1] : 0)),
    known = gaps.filter((gap) => gap > 0).sort((a, b) => a - b),
    usual = known[Math.floor(known.length / 2)];
  return gaps.map((gap) => {
    if (!(gap > 0)) return "unknown";
    return gap < 0.75 * usual ? "short" : gap > 1.5 * usual ? "long" : "usual";
  });
}
/** @type {(features: Feature[], weights: Record<string, number>) => number} */
const price = (features, weights) =>
  features.reduce((sum, [name, value]) => sum + (weights[name] ?? 0) * value, 0);

/** Which of two rows of numbers, equally long, comes first.
   @type {(a: number[], b: number[]) => number} */
const compareNumbers = (a, b) => a.reduce((sign, own, k) => sign || own - b[k], 0);
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
    @type {(ringing: Ringing, t: number, held: Held, grip: Grip) => Held} */
function hold(ringing, t, held, grip) {
  if (t + 1 >= ringing.onsets.length) return [];
  const released = releasedNotes(held, grip),
    left = held.filter((one) => !isStruck(one, grip) && !released.includes(one));
  const struck = grip.map(([string, fret], i) => [string, ringing.ends[t][i], fret]);
  return /** @type {Held} */ ([...left, ...struck])
    .filter(([, end]) => end > ringing.onsets[t + 1])
    .sort((a, b) => a[0] - b[0]);
}
/** Whether a grip strikes the string of a held note.
    @type {(one: Held[0], grip: Grip) => boolean} */
const isStruck = ([string], grip) => grip.some(([other]) => other === string);
/** The held notes whose strings a grip leaves alone, and whose frets are out of its reach.
    @type {(held: Held, grip: Grip) => Held} */
const releasedNotes = (held, grip) =>
  held.filter(
    (one) =>
      one[2] &&
      !isStruck(one, grip) &&
      grip.some(([, fret]) => fret && Math.abs(fret - one[2]) > FINGERING.maxSpan),
  );
/** The states that stay in the beam, the cheapest; and of each grip the cheapest it leads to, which
    stays, too. @type {(reached: Reached[], ways: Way[]) => [number[], Map<number, Way>]} */
function keepCheapest(reached, ways) {
  const best = new Map();
  for (const way of ways)
    if (!best.has(way.grip) || way.total < best.get(way.grip).total) best.set(way.grip, way);
  const ranked = [...reached.keys()].sort(
    (a, b) => reached[a].least - reached[b].least || reached[a].before - reached[b].before,
  );
  const kept = new Set(ranked.slice(0, FINGERING.maxStates));
  for (const { after } of best.values()) kept.add(after);
  return [[...kept].sort((a, b) => a - b), best];
}

/** The fingerings of a piece: a path through the grips of each moment, on which a hand moves and
    strings ring on. */
export class Lattice {
  /** @param {number[][]} moments pitches @param {Grip[][]} choices @param {Ringing} ringing
     @param {Asked} asked what a guitarist asks for */
  constructor(moments, choices, ringing, asked) {
    const { weights, handFrets: hands, timeClasses, memoryLags, costNames } = FINGERING,
      { perFretFromPosition } = FINGERING,
      wanted = asked.position;
    this.moments = moments;
    this.choices = choices;
    this.ringing = ringing;
    this.weights = weights;
    this.cutCost = weights[costNames.cut] ?? 0;
    this.releasedCost = weights[costNames.released] ?? 0;
    this.otherGripCost = weights[costNames.otherGrip] ?? 0;
    const stay = hands.map((hand) => (wanted ? perFretFromPosition * Math.abs(hand - wanted) : 0));
    const perOpen =
      asked.openStringCost +
      (wanted && asked.openStringCost >= 0 ? perFretFromPosition * (wanted - 1) : 0);
    const style = findStyle(moments);
    this.own = choices.map((choice) =>
      choice.map((grip) => {
        const open = grip.filter(([, fret]) => fret === 0).length * perOpen,
          features = [...gripFeatures(grip), ...styleFeatures(grip, style)],
          anywhere = price(features, weights) + open;
        return hands.map(
          (hand, h) => anywhere + price(handFeatures(grip, hand), weights) + stay[h],
        );
      }),
    );
    const tables = new Map(
      timeClasses.flatMap((time) =>
        [false, true].map((wasOpen) => [
          `${time} ${wasOpen}`,
          hands.map((to) =>
            hands.map((from) => price(moveFeatures(from, to, time, wasOpen), weights)),
          ),
        ]),
      ),
    );
    const classes = classifyGaps(ringing.onsets);
    /** What moves to each place of the hand cost after a grip of the moment before.
       @type {(t: number, grip: number) => number[][]} */
    this.roadsOf = (t, grip) =>
      tables.get(`${classes[t]} ${choices[t - 1][grip].every(([, fret]) => fret === 0)}`) ?? [];
    this.forgetCosts = Array.from({ length: memoryLags[memoryLags.length - 1] + 1 }, (_, lag) => {
      const within = memoryLags.find((most) => lag <= most);
      return lag < 2 ? 0 : (weights[`elsewhere than within ${within} moments`] ?? 0);
    });
    this.inOrder = choices.map((choice) =>
      [...choice.keys()].sort((a, b) => compareGrips(choice[a], choice[b])),
    );
    this.nowhere = hands.map(() => 0);
    /** @type {Search | null} */
    this.searched = null;
    this.pairs = new Map();
  }
  /** What it costs to come to each place of the hand from where this was paid.
     @type {(paid: number[], roads: number[][]) => number[]} */
  arrive(paid, roads) {
    return roads.map((road) => {
      let least = Infinity; // the innermost loop of all: no array is made
      for (let h = 0; h < road.length; h++) least = Math.min(least, paid[h] + road[h]);
      return least;
    });
  }
  /** What a grip costs at each place of the hand, with what it costs after the one before.
     @type {(t: number, way: { grip: number, cost: number }) => number[]} */
  priceOf(t, { grip, cost }) {
    return cost ? this.own[t][grip].map((own) => own + cost) : this.own[t][grip];
  }
  /** What a grip costs after a state, wherever the hand is.
     @type {(t: number, grip: number, state: State) => number} */
  priceAfter(t, grip, { grip: last, held, memory }) {
    const own = this.choices[t][grip],
      pitches = this.moments[t];
    let cost = 0;
    if (last !== null) {
      const key = `${t} ${last} ${grip}`;
      if (!this.pairs.has(key)) {
        const found = pairFeatures(this.choices[t - 1][last], own, this.moments[t - 1], pitches);
        this.pairs.set(key, price(found, this.weights));
      }
      cost = this.pairs.get(key);
    }
    for (const [k, pitch] of pitches.entries()) {
      const [string, when] = memory.places.get(pitch) ?? [0, -Infinity];
      if (t - when < this.forgetCosts.length && own[k][0] !== string)
        cost += this.forgetCosts[t - when];
    }
    const known = pitches.length > 1 && memory.chords.get(`${pitches}`);
    if (known && known !== `${own}`) cost += this.otherGripCost;
    const struck = held.filter((one) => isStruck(one, own)).length,
      released = releasedNotes(held, own).length;
    return cost + this.cutCost * struck + this.releasedCost * released;
  }
  /** What is remembered after a grip.
     @type {(t: number, grip: number, memory: Memory) => Memory} */
  remember(t, grip, { places, chords }) {
    const own = this.choices[t][grip],
      pitches = this.moments[t];
    return {
      places: new Map([
        ...places,
        ...own.map(([string], k) => /** @type {[number, number[]]} */ ([pitches[k], [string, t]])),
      ]),
      chords: own.length > 1 ? new Map([...chords, [`${pitches}`, `${own}`]]) : chords,
    };
  }
  /** The dynamic program, forward, and kept, with nothing fixed. @returns {Search} */
  get free() {
    this.searched ??= this.search();
    return this.searched;
  }
  /** The dynamic program, forward: what is paid at each state of each moment, what moves from there
     cost, and the ways there; with one grip fixed at some moments, if that is asked.
     @type {(fixed?: number[], only?: number | null) => Search} */
  search(fixed = [], only = null) {
    const first = only === null ? 0 : Math.min(...fixed), // up to there nothing differs
      before = first ? this.free : null;
    /** @type {Search} */
    const found = {
      paid: before?.paid.slice(0, first) ?? [],
      roads: before?.roads.slice(0, first) ?? [],
      ways: before?.ways.slice(0, first) ?? [],
      states: before?.states.slice(0, first) ?? [],
    };
    let states = found.states[first - 1] ?? [
      { grip: null, held: [], memory: { places: new Map(), chords: new Map() } },
    ];
    let arrived = first
      ? found.paid[first - 1].map((own, k) => this.arrive(own, found.roads[first - 1][k]))
      : [this.nowhere];
    for (let t = first; t < this.choices.length; t++) {
      const choice = this.choices[t],
        ways = /** @type {Way[]} */ ([]),
        paid = /** @type {number[][]} */ ([]),
        reached = /** @type {Reached[]} */ ([]),
        numbers = new Map();
      for (const grip of fixed.includes(t) && only !== null ? [only] : this.inOrder[t])
        for (const [before, state] of states.entries()) {
          const cost = this.priceAfter(t, grip, state),
            total = sum(arrived[before], this.priceOf(t, { grip, cost })),
            least = Math.min(...total),
            held = hold(this.ringing, t, state.held, choice[grip]),
            key = `${grip} ${held}`,
            after = numbers.get(key) ?? reached.length;
          if (after === reached.length) {
            numbers.set(key, after);
            reached.push({ grip, held, memory: state.memory, least, before });
            paid.push(total);
          } else {
            paid[after] = paid[after].map((own, h) => Math.min(own, total[h]));
            if (least < reached[after].least)
              Object.assign(reached[after], { least, before, memory: state.memory });
          }
          ways.push({ grip, before, cost, after, isKept: true, total: least });
        }
      const [kept, best] = keepCheapest(reached, ways);
      const places = new Map(kept.map((n, k) => [n, k]));
      for (const way of ways) way.isKept = places.has(way.after); // else the beam dropped it
      const led = ways.map((way) => (way.isKept ? way : (best.get(way.grip) ?? way)).after);
      ways.forEach((way, k) => (way.after = places.get(led[k]) ?? -1));
      found.ways.push(ways);
      found.paid.push(kept.map((n) => paid[n]));
      states = kept.map((n) => {
        const { grip, held, memory } = reached[n];
        return { grip, held, memory: this.remember(t, Number(grip), memory) };
      });
      found.states.push(states);
      if (t + 1 < this.choices.length) {
        const roads = states.map(({ grip }) => this.roadsOf(t + 1, Number(grip)));
        found.roads.push(roads);
        arrived = kept.map((n, k) => this.arrive(paid[n], roads[k]));
      }
    }
    return found;
  }
  /** The cheapest fingering, as the number of each moment's grip and the fret at which the hand is,
     and what it costs in all; with one grip fixed at some moments, if that is asked.
     @type {(fixed?: number[], grip?: number | null) =>
       { path: number[], hands: number[], cost: number }} */
  findPath(fixed = [], grip = null) {
    const { paid, roads, ways } = grip === null ? this.free : this.search(fixed, grip);
    const lasts = paid[paid.length - 1].map((row) => Math.min(...row));
    const lowest = Math.min(...lasts);
    let state = lasts.indexOf(lowest);
    let hand = paid[paid.length - 1][state].indexOf(lasts[state]);
    const path = [],
      hands = [];
    for (let t = paid.length - 1; t >= 0; t--) {
      const from = (t ? paid[t - 1] : [this.nowhere]).map((row, k) => {
        const costs = t ? sum(row, roads[t - 1][k][hand]) : [];
        const least = t ? Math.min(...costs) : 0;
        return { least, came: t ? costs.indexOf(least) : hand };
      });
      const cost = (/** @type {Way} */ way) => from[way.before].least + this.priceOf(t, way)[hand];
      let best = null,
        least = Infinity;
      for (const way of ways[t])
        if (way.isKept && way.after === state && cost(way) < least)
          [best, least] = [way, cost(way)];
      const taken = /** @type {Way} */ (/** @type {unknown} */ (best));
      path.push(taken.grip);
      hands.push(FINGERING.handFrets[hand]);
      [state, hand] = [taken.before, from[taken.before].came];
    }
    return { path: path.reverse(), hands: hands.reverse(), cost: lowest };
  }
  /** What the cheapest fingering with each grip of each moment costs in all. */
  prices() {
    const { paid, roads, ways } = this.free,
      prices = [];
    let toGo = (paid[paid.length - 1] ?? []).map(() => this.nowhere);
    for (let t = paid.length - 1; t >= 0; t--) {
      const arrived = t
        ? paid[t - 1].map((row, k) => this.arrive(row, roads[t - 1][k]))
        : [this.nowhere];
      const own = this.choices[t].map(() => Infinity),
        ahead = arrived.map(() => this.nowhere.map(() => Infinity));
      for (const way of ways[t]) {
        const left = sum(toGo[way.after], this.priceOf(t, way));
        own[way.grip] = Math.min(own[way.grip], ...sum(arrived[way.before], left));
        ahead[way.before] = ahead[way.before].map((cost, h) => Math.min(cost, left[h]));
      }
      prices.push(own);
      // Roads lead to a place (a row) from another one: here they are walked back.
      if (t)
        toGo = ahead.map((row, k) =>
          row.map((_, from) => Math.min(...row.map((own, to) => own + roads[t - 1][k][to][from]))),
        );
    }
    return prices.reverse();
  }
  /** Other grips of a moment than the one of the cheapest fingering, cheapest first.
     @type {(t: number, best: number[], prices: number[][], count: number) => number[]} */
  alternatives(t, best, prices, count) {
    const ranked = [...prices[t].keys()].sort(
      (a, b) => prices[t][a] - prices[t][b] || compareGrips(this.choices[t][a], this.choices[t][b]),
    );
    return ranked.filter((k) => k !== best[t]).slice(0, count);
  }
  /** A moment and its repeats that have the same choice. @type {(t: number, repeats: number[][]) =>
     number[]} */
  placesLike(t, repeats) {
    return repeats[t].filter((i) => `${this.choices[i]}` === `${this.choices[t]}`);
  }
}

/** For each moment those that have its pitches and its neighbors', itself too, as questions.py has
   it. @type {(moments: number[][]) => number[][]} */
export function findRepeats(moments) {
  const keys = moments.map((_, t) => [t - 1, t, t + 1].map((i) => `${moments[i]}`).join(" "));
  const groups = new Map(keys.map((key) => /** @type {[string, number[]]} */ ([key, []])));
  for (const [t, key] of keys.entries()) groups.get(key)?.push(t);
  return keys.map((key) => groups.get(key) ?? []);
}

/** Answers with those of the moments at which they hold as well; the first one given holds.
   @type {<T>(answers: Map<number, T>, repeats: number[][]) => Map<number, T>} */
export function spreadAnswers(answers, repeats) {
  const spread = [...answers].reverse();
  return new Map([
    ...spread.flatMap(([asked, own]) => repeats[asked].map((t) => /** @type {const} */ ([t, own]))),
    ...answers,
  ]);
}

/** The moments to ask about, most useful first: of each group one, if it has a choice.
   @type {(prices: number[][], repeats: number[][]) => number[]} */
export function rankQuestions(prices, repeats) {
  const worth = prices.map((own, t) => {
    const [least, next] = [...own].sort((a, b) => a - b);
    return repeats[t].length / (FINGERING.sureMargin + next - least);
  });
  const apart = /** @type {number[]} */ ([]),
    near = /** @type {number[]} */ ([]),
    settled = new Set(),
    close = new Set();
  const ranked = [...worth.keys()]
    .filter((t) => prices[t].length > 1)
    .sort((a, b) => worth[b] - worth[a]);
  for (const t of ranked) {
    if (settled.has(t)) continue;
    for (const again of repeats[t]) settled.add(again);
    if (close.has(t)) {
      near.push(t);
      continue;
    }
    apart.push(t);
    for (const again of repeats[t])
      for (let k = 1 - FINGERING.momentsApart; k < FINGERING.momentsApart; k++)
        close.add(again + k);
  }
  return [...apart, ...near];
}
