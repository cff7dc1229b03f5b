/* Guitar tab from the tokens of a model: what may follow, the music in them, and three ways to
   write it down, as slp_guitar has it. */

import {
  METER_OF_COLUMNS,
  NOTATED_STEPS,
  NOTE_VALUES,
  SHARPS,
  TIME_SIGNATURES,
  TUNINGS,
  TUPLETS,
} from "./constants.js";
import { Refusal } from "./refusals.js";

const DURING = new Set(["BAR", "SAME", "<eos>"]); // what ends a bar

/** @import { Tokenizer } from "./tokenizer.js" */
/** @typedef {[number, number]} Signature */
/** @typedef {{ step: number, notes: [number, number][] }} Moment */
/** @typedef {{ steps: number, moments: Moment[] }} Bar */
/** @typedef {{ open: number[], capo: number, unit: number | null, signature: Signature | null,
     key: string, bars: Bar[] }} Tab */
/** @typedef {[number, boolean, number, number]} Value A note value: kind, dotted, its tuplet. */
/** @typedef {[number, Value]} Coin Steps, and the value that lasts as long. */
/** @typedef {{ from: number, values: { size: number, text: string }[] }} Stretch */

/** Kind and argument of a token's name: TAB<6,3> is TAB and "6,3".
   @type {(token: string) => [string, string]} */
function parsed(token) {
  if (token.startsWith("<") || !token.includes("<")) return [token, ""];
  return [token.slice(0, token.indexOf("<")), token.slice(token.indexOf("<") + 1, -1)];
}

/** @type {(text: string, mark?: string) => [number, number]} */
function asPair(text, mark = ",") {
  const [one, other] = text.split(mark).map(Number);
  return [one, other];
}

/** How many steps bars may have that fill a time signature, or any; no unit: columns.
   @type {(signature: Signature | null, unit: number | null) => number[]} */
function barSteps(signature, unit) {
  if (!signature && !unit) return Object.keys(METER_OF_COLUMNS).map(Number);
  return (signature ? [signature] : TIME_SIGNATURES).flatMap(([beats, kind]) =>
    (unit ? [unit] : NOTATED_STEPS)
      .map((one) => (4 * beats * one) / kind)
      .filter((steps) => Number.isInteger(unit ? steps : steps / beats)),
  );
}

/** Reads tokens one by one, and knows which may come next. */
export class TabReader {
  /** @param {string[]} vocabulary */
  constructor(vocabulary) {
    this.tokens = vocabulary.map(parsed);
    const kinds = new Set(this.tokens.map(([kind]) => kind));
    this.maxPosition = this.tokens.filter(([kind]) => kind === "POS").length;
    this.header = [
      ["<bos>"],
      ["TUNING", "OPEN"],
      ["CAPO"],
      ["COLUMNS", "STEPS"],
      ["METRE"],
      ["KEY"],
      ["STYLE"],
    ].filter((some) => kinds.has(some[0]));
    this.header.push(["BAR", "<eos>"]);
    /** @type {Tab} */
    this.tab = {
      open: TUNINGS.standard,
      capo: 0,
      unit: null,
      signature: null,
      key: "",
      bars: [],
    };
    /** @type {number[]} */
    this.opens = [];
    this.last = "";
    this.steps = this.now = this.offset = 0;
    /** @type {Moment[]} */
    this.moments = [];
  }
  /** @type {(steps: number) => void} */
  beginBar(steps) {
    this.steps = steps;
    this.now = this.offset = 0;
    this.moments = [];
  }
  /** The kinds that a header may go on with; null after it. */
  get expected() {
    return this.header[0] ?? null;
  }
  /** @type {(id: number) => void} */
  read(id) {
    const [kind, text] = this.tokens[id],
      numbers = text.split(",").map(Number),
      { tab } = this;
    if (DURING.has(kind)) {
      this.closeBar();
      this.header = kind === "<eos>" ? [[]] : [];
      if (kind === "BAR") this.beginBar(numbers[0]);
      if (kind === "SAME") tab.bars.push(tab.bars[tab.bars.length - numbers[0]]);
    } else if (this.expected) {
      if (kind === "TUNING") tab.open = TUNINGS[text];
      if (kind === "CAPO") tab.capo = numbers[0];
      if (kind === "STEPS") tab.unit = numbers[0];
      if (kind === "METRE" && text !== "none") tab.signature = asPair(text, "/");
      if (kind === "KEY") tab.key = text;
      if (kind === "OPEN") {
        this.opens.unshift(numbers[0]);
        if (this.opens.length < 6) this.header[0] = ["OPEN"];
        else tab.open = this.opens;
      }
      if (kind !== "OPEN" || this.opens.length === 6) this.header.shift();
    } else if (kind === "WITH") this.moments[this.moments.length - 1].notes.push(asPair(text));
    else if (kind === "TAB") this.moments.push({ step: this.now, notes: [asPair(text)] });
    else if (kind === "LONGER") this.steps += this.maxPosition;
    else if (kind === "LONG") this.offset += this.maxPosition;
    else this.now = this.offset + numbers[0];
    this.last = kind;
  }
  closeBar() {
    if (this.steps) this.tab.bars.push({ steps: this.steps, moments: this.moments });
    this.beginBar(0);
  }
  /** The ids that may come next: of the grammar, and so that bars fill their time signature. */
  allowed() {
    return [...this.tokens.keys()].filter((id) => {
      const [kind, text] = this.tokens[id],
        number = parseInt(text, 10);
      const isAllowed = this.expected?.includes(kind) ?? this.allows(kind, number);
      return isAllowed && this.fills(kind, number, text);
    });
  }
  /** @type {(kind: string, number: number, text: string) => boolean} */
  fills(kind, number, text) {
    const { tab, last, steps, maxPosition } = this,
      lengths = tab.bars.map((bar) => bar.steps);
    if (kind === "STEPS") return NOTATED_STEPS.includes(number);
    if (kind === "METRE")
      return text === "none" || barSteps(asPair(text, "/"), tab.unit).length > 0;
    if (steps && (last === "BAR" || last === "LONGER")) {
      const wanted = this.lengthsThatFill(lengths),
        canGrow = this.canBecome(steps + maxPosition, wanted);
      if (kind === "LONGER" || (canGrow && !wanted.includes(steps)))
        return canGrow && kind === "LONGER";
    }
    if (kind !== "BAR" && kind !== "SAME") return true;
    if (steps) lengths.push(steps);
    const wanted = this.lengthsThatFill(lengths);
    return kind === "BAR"
      ? this.canBecome(number, wanted)
      : wanted.includes(lengths[lengths.length - number]);
  }
  /** @type {(lengths: number[]) => number[]} */
  lengthsThatFill(lengths) {
    const { signature, unit } = this.tab,
      fitting = barSteps(signature, unit);
    if (!lengths.length || (signature && unit && fitting.length)) return fitting;
    const counts = new Map();
    for (const steps of lengths) counts.set(steps, (counts.get(steps) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return [lengths.find((steps) => counts.get(steps) === most) ?? 0];
  }
  /** Whether a bar of so many steps is one of those wanted, now or made longer.
     @type {(steps: number, wanted: number[]) => boolean} */
  canBecome(steps, wanted) {
    return wanted.some((each) => each >= steps && (each - steps) % this.maxPosition === 0);
  }
  /** @type {(kind: string, number: number) => boolean} */
  allows(kind, number) {
    const { last } = this,
      waits = last === "POS" || last === "LONG";
    const isInside = (/** @type {number} */ step) => step < this.steps;
    if (kind === "WITH")
      return (last === "TAB" || last === "WITH") && number < lowest(this.moments);
    if (DURING.has(kind))
      return !waits && (kind !== "SAME" || number <= this.tab.bars.length + Number(this.steps > 0));
    if (last === "SAME") return false;
    if (kind === "LONGER") return last === "BAR" || last === "LONGER";
    if (kind === "TAB") return last === "POS" || (!this.moments.length && last !== "LONG");
    if (kind === "LONG")
      return last !== "POS" && isInside(Math.max(this.now, this.offset + this.maxPosition) + 1);
    return (
      kind === "POS" &&
      last !== "POS" &&
      this.offset + number > this.now &&
      isInside(this.offset + number)
    );
  }
}

/** @type {(vocabulary: string[], ids: Iterable<number>) => TabReader} */
function readAll(vocabulary, ids) {
  const reader = new TabReader(vocabulary);
  for (const id of ids) reader.read(id);
  return reader;
}
/** The string of the last note. @type {(moments: Moment[]) => number} */
const lowest = (moments) => moments[moments.length - 1].notes.at(-1)?.[0] ?? 0;

/** The ids that may follow; a piece does not end before its first bar. Notes that are struck
   together are playable.
   @type {(tokenizer: Tokenizer, ids: Iterable<number>,
     isPlayable?: (notes: [number, number][], tab: Tab) => boolean) => number[]} */
export function allowedNext(tokenizer, ids, isPlayable = () => true) {
  const reader = readAll(tokenizer.vocabulary, ids);
  return reader.allowed().filter((id) => {
    const [kind, text] = reader.tokens[id];
    if (kind === "WITH")
      return isPlayable([...(reader.moments.at(-1)?.notes ?? []), asPair(text)], reader.tab);
    return id !== tokenizer.end || reader.steps || reader.tab.bars.length;
  });
}

/** What kinds of token a header goes on with; null where bars have begun.
   @type {(tokenizer: Tokenizer, ids: Iterable<number>) => string[] | null} */
export const headerAfter = (tokenizer, ids) => readAll(tokenizer.vocabulary, ids).expected;

/** The music in some ids: open strings, capo, steps to a quarter note, bars of moments.
   @type {(tokenizer: Tokenizer, ids: Iterable<number>) => Tab} */
export function tabOf(tokenizer, ids) {
  const reader = readAll(tokenizer.vocabulary, ids);
  reader.closeBar();
  return reader.tab;
}

/** A riff such as "0.6 3.6 (2.4 2.5).4 r | 5.6" as tokens: fret.string, then .4 for a quarter note;
   eighths until one says otherwise; (…) together, r a rest. Bars are of four quarters.
   @type {(text: string) => string[]} */
export function riffTokens(text) {
  /** @type {(word: string) => never} */
  const refuse = (word) => {
    throw new Refusal(
      `“${word}” is no note: write fret.string, as 3.6 for fret 3 on the lowest string; ` +
        `(2.4 2.5) for two at once; r for a rest; .4 behind it for a quarter note.`,
    );
  };
  const tokens = [];
  let step = 0,
    length = 2;
  for (const word of text.match(/\([^)]*\)\S*|\S+/g) ?? []) {
    if (word === "|") continue;
    const found = /^(?:r|(\d+\.\d+)|\(([^)]+)\))(?:\.(1|2|4|8|16))?$/.exec(word) ?? refuse(word);
    if (found[3]) length = 16 / Number(found[3]);
    const notes = (found[1] ?? found[2] ?? "")
      .split(/\s+/)
      .filter(Boolean)
      .map((note) => /^(\d+)\.([1-6])$/.exec(note) ?? refuse(word));
    notes.sort((a, b) => Number(b[2]) - Number(a[2]));
    if (step % 16 === 0) tokens.push("BAR<16>");
    if (notes.length && step % 16) tokens.push(`POS<${step % 16}>`);
    notes.forEach(([, fret, string], k) =>
      tokens.push(`${k ? "WITH" : "TAB"}<${string},${Number(fret)}>`),
    );
    if (new Set(notes.map((note) => note[2])).size < notes.length) refuse(word);
    if ((step % 16) + length > 16)
      throw new Refusal(`“${word}” does not fit into its bar of four quarters.`);
    step += length;
  }
  return tokens;
}

// --- Notation ----------------------------------------------------------------------------------

/** @type {Value[]} */
const VALUES = TUPLETS.flatMap(([enters, time]) =>
  NOTE_VALUES.flatMap((kind) => [true, false].map((dotted) => [kind, dotted, enters, time])),
);
const DIVISORS = TUPLETS.map(([notes]) => notes);

/** @type {(a: number, b: number) => number} */
export const gcd = (a, b) => (b ? gcd(b, a % b) : a);
/** @type {(a: number, b: number) => number} */
export const lcm = (a, b) => (a * b) / gcd(a, b);

/** The fewest note values, of a tuplet or of none, that last 0, 1, 2, … steps, up to four whole
   notes. @type {(unit: number, tuplet: number) => (Coin[] | null)[]} */
function spellings(unit, tuplet) {
  const own = VALUES.filter((value) => value[2] === tuplet || !DIVISORS.includes(tuplet));
  /** @type {Coin[]} */
  const all = own.map((value) => [
    (unit * 4 * value[3] * (value[1] ? 3 : 2)) / (2 * value[0] * value[2]),
    value,
  ]);
  const coins = all.filter(([size]) => Number.isInteger(size));
  /** @type {(Coin[] | null)[]} */
  const best = [[]];
  for (let steps = 1; steps <= 16 * unit; steps++) {
    /** @type {Coin[] | null} */
    let few = null;
    for (const coin of coins) {
      const rest = best[steps - coin[0]];
      if (rest && (!few || rest.length + 1 < few.length)) few = [coin, ...rest];
    }
    best.push(few);
  }
  return best.map((way) => way && [...way].sort((a, b) => b[0] - a[0]));
}

/** The stretches of a bar that tuplets fill: start, end, and how many notes divide it.
   @type {(cuts: number[], start: number, quarters: number, unit: number) =>
     [number, number, number][]} */
function tupletsOf(cuts, start, quarters, unit) {
  const last = cuts[cuts.length - 1],
    size = quarters * unit,
    end = start + size;
  const parts = cuts
    .filter((cut) => cut > start && cut < end)
    .map((cut) => (64 * size) / gcd(64 * (cut - start), 64 * size));
  const odd = parts.map((part) => {
    while (part % 2 === 0) part /= 2;
    return part;
  });
  if (start >= last || odd.every((part) => part === 1)) return [];
  const even =
    parts.every((part) => part === parts[0]) && parts[0] > 1 && DIVISORS.includes(parts[0]);
  if (end <= last && Number.isInteger(end) && (even || (quarters <= 1 && !parts.includes(2))))
    return [[start, end, odd.reduce(lcm)]];
  const middle = start + size / 2;
  if (!Number.isInteger(middle) || quarters < 1 / 4) return [];
  return [
    ...tupletsOf(cuts, start, quarters / 2, unit),
    ...tupletsOf(cuts, middle, quarters / 2, unit),
  ];
}

/** The plainest time signature of a bar, if it has one.
   @type {(steps: number, unit: number, stated?: Signature | null) => Signature | null} */
export function signatureOf(steps, unit, stated) {
  if (stated && 4 * stated[0] * unit === stated[1] * steps) return stated;
  for (const kind of [4, 8, 16, 32])
    if (Number.isInteger((steps * kind) / (4 * unit))) return [(steps * kind) / (4 * unit), kind];
  return null;
}

const spelled = new Map(); // by unit and tuplet

/** A bar's stretches between some cuts, each with the note values that fill it: what alphaTex
   writes for a value, and how many steps it lasts.
   @type {(cuts: number[], steps: number, unit: number) => Stretch[]} */
export function stretches(cuts, steps, unit) {
  const whole = 4 * unit;
  /** @type {[number, number, number][]} */
  const windows = [];
  const inOrder = [...new Set([0, ...cuts, steps])].sort((a, b) => a - b);
  for (let begin = 0; begin < steps; begin += whole)
    windows.push(...tupletsOf(inOrder, begin, 4, unit));
  const edges = [...new Set([...inOrder, ...windows.flatMap((window) => window.slice(0, 2))])].sort(
    (a, b) => a - b,
  );
  return edges.slice(0, -1).map((from, k) => {
    const tuplet = windows.find(([start, end]) => start <= from && from < end)?.[2] ?? 1,
      key = `${unit} ${tuplet}`,
      length = edges[k + 1] - from;
    if (!spelled.has(key)) spelled.set(key, spellings(unit, tuplet));
    const wholes = tuplet === 1 ? Math.max(0, Math.floor(length / whole) - 2) : 0;
    const values = [
      ...Array(wholes).fill([whole, VALUES[1]]),
      ...spelled.get(key)[length - wholes * whole],
    ];
    return {
      from,
      values: values.map(([size, [kind, dotted, enters, time]]) => {
        const effects = [
          ...(dotted ? ["d"] : []),
          ...(enters > 1 ? [`tu (${enters} ${time})`] : []),
        ].join(" ");
        return { size, text: `.${kind}${effects && `{${effects}}`}` };
      }),
    };
  });
}

/** What columns are taken for, judged by the last bar: time signature, columns to a quarter.
   @type {(signature: Signature | null, bars: Bar[]) => [Signature | null, number]} */
function takeColumnsAsTime(stated, bars) {
  const columns = bars[bars.length - 1].steps;
  if (stated && barSteps(stated, null).includes(columns))
    return [stated, (columns * stated[1]) / (4 * stated[0])];
  return METER_OF_COLUMNS[columns] ?? [null, 4];
}

/** A tab as alphaTex, which alphaTab draws and plays.
   @type {(tab: Tab) => string} */
export function alphaTex({ open, capo, unit: stepsToQuarter, signature: stated, bars }) {
  let [signature, unit] = stepsToQuarter
      ? /** @type {[Signature | null, number]} */ ([stated, stepsToQuarter])
      : takeColumnsAsTime(stated, bars),
    before = "";
  let timed = bars.map((bar) => ({
    ...bar,
    steps: signatureOf(bar.steps, unit, signature) ? bar.steps : Math.ceil(bar.steps / unit) * unit,
  }));
  const size = timed
    .flatMap(({ steps, moments }) => [steps, ...moments.map(({ step }) => step)])
    .reduce(gcd, unit);
  unit /= size;
  timed = timed.map(({ steps, moments }) => ({
    steps: steps / size,
    moments: moments.map(({ step, notes }) => ({ step: step / size, notes })),
  }));
  const written = timed.map(({ steps, moments }) => {
    const now = signatureOf(steps, unit, signature)?.join(" ") ?? "4 4",
      tag = now === before ? "" : `\\ts (${now}) `;
    before = now;
    return (
      tag +
      stretches(
        moments.map(({ step }) => step),
        steps,
        unit,
      )
        .flatMap(({ from, values }) => {
          const moment = moments.findLast(({ step }) => step <= from),
            notes = [...(moment?.notes ?? [])].sort((a, b) => a[0] - b[0]);
          return values.map(({ text }, k) => {
            const high =
              notes
                .map(
                  ([string, fret]) => `${k || (moment?.step ?? 0) < from ? "-" : fret}.${string}`,
                )
                .join(" ") || "r";
            return `${notes.length > 1 ? `(${high})` : high}${text}`;
          });
        })
        .join(" ")
    );
  });
  const pitches = open
    .map((pitch) => `${SHARPS[pitch % 12]}${Math.floor(pitch / 12) - 1}`)
    .join(" ");
  return `${[
    '\\track "Guitar"',
    "\\staff {score tabs}",
    `\\instrument ${Math.min(...open) < 35 ? 33 : 25}`,
    `\\tuning (${pitches})`,
    ...(capo ? [`\\capo ${capo}`] : []),
    written.join(" |\n"),
  ].join("\n")}\n`;
}

/** A tab as text: a line for each string, two columns for a step, some bars beside each other.
   @type {(tab: { open: number[], bars: Bar[] }, across?: number) => string} */
export function plainTab({ open, bars }, across = 2) {
  const rows = [];
  for (let k = 0; k < bars.length; k += across) {
    rows.push(
      open
        .map(
          (pitch, s) =>
            `${SHARPS[pitch % 12].padEnd(2)}|${bars
              .slice(k, k + across)
              .map(({ steps, moments }) => {
                const cells = Array(steps).fill("--");
                for (const { step, notes } of moments)
                  for (const [string, fret] of notes)
                    if (string === s + 1) cells[step] = String(fret).padEnd(2, "-");
                return `-${cells.join("")}|`;
              })
              .join("")}`,
        )
        .join("\n"),
    );
  }
  return rows.join("\n\n");
}
