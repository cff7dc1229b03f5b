/* ASCII tab as people type it, read for the page "Finger a piece": six rows to a system, or four to
   eight whose names are those of another instrument, bars between common bar lines, a column a
   moment; and the time of each bar by its gaps, as slp_guitar.text_time finds it. Beats
   and letters beside the rows, techniques, repeats and several guitars are for
   `slp-transformer convert`, which reads far more. */

import { OTHER_INSTRUMENTS, TEXT_TIME, TUNINGS, UNEVEN_BARS } from "./constants.js";
import { gcd, lcm } from "./tab.js";

/** @import { Bar, Moment, Signature, Tab } from "./tab.js" */
/** @typedef {{ rows: string[], labels: string[] }} System */
/** @typedef {{ cost: number, misfit: number, grid: number, steps: number[] }} Fit */

const STRINGS = 6,
  MAX_COLUMNS = 2000, // of a row
  MAX_BARS = 3000,
  MAX_STATEMENT = 1000, // columns of a line in which something is stated
  MAX_FRET = 24;
export const NO_ROWS =
  "It has no rows of tab one below the other: six, or four to eight with the names of the " +
  "strings of a bass, a ukulele, a banjo or a larger guitar in front.";
const ROW = /^\s*(?:\d{1,3}\s+)?([A-Ga-g][#b]?)?\s*(?=[-|:])([-0-9|:*~=hpbrstxXoO/\\()<>^. ]+)$/;
const NAME = "([A-Ga-g][#b♯♭]?)",
  SIX_NAMES = Array(STRINGS).fill(NAME).join("[\\s,-]*"),
  STATED = new RegExp(`tuning\\W{0,5}${SIX_NAMES}(?![\\w#])`, "i");
const METER = new RegExp(
  String.raw`\b(?:time(?: signature)?|timing|met(?:re|er)|takt)\s*[:=-]?\s*` +
    String.raw`(\d{1,2})\s*/\s*(1|2|4|8|16)(?![\d,/])` +
    String.raw`|(?<![\d,/])([2-9]|12)/([248])(?=\s+time\b|\s*$)`,
  "i",
);
const CAPO = /^\W*[ck]apo\b[\s:=#-]*(?:(?:on|at|fret|bund)\s+)*(\d{1,2}|[IVX]+)(?:st|nd|rd|th)?\b/i;
const ROMAN = "0 I II III IV V VI VII VIII IX X XI XII".split(" ");

/** Half steps from C up to a note. @type {(name: string) => number} */
const pitchClass = (name) =>
  "C D EF G A B".indexOf(name[0].toUpperCase()) +
  (/[#♯]/.test(name[1] ?? "") ? 1 : 0) -
  (/[b♭]/.test(name[1] ?? "") ? 1 : 0);

/** @type {(number: number, by: number) => number} */
const mod = (number, by) => ((number % by) + by) % by;
/** To the nearest whole number, of two to the even one. @type {(number: number) => number} */
const rounded = (number) => {
  const below = Math.floor(number),
    rest = number - below;
  if (rest !== 0.5) return Math.round(number);
  return below % 2 ? below + 1 : below;
};
/** @type {(numbers: number[]) => number} */
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
/** @type {(numbers: number[]) => number} */
const median = (numbers) => {
  const inOrder = [...numbers].sort((a, b) => a - b),
    middle = inOrder.length >> 1;
  return inOrder.length % 2 ? inOrder[middle] : (inOrder[middle - 1] + inOrder[middle]) / 2;
};

// --- Rows and bars -----------------------------------------------------------------------------

/** @type {(line: string) => boolean} */
function isRow(line) {
  const marks = line.replace(/\s/g, "");
  return (
    line.length <= MAX_COLUMNS &&
    ROW.test(line) &&
    (marks.match(/[-=]/g) ?? []).length >= 3 &&
    (marks.match(/[-=~|\d]/g) ?? []).length >= 0.6 * marks.length
  );
}

/** The tuning that names in front of rows are of, moved as a whole, and the lowest string alone
   too; null if they are of another.
   @type {(labels: string[], open: number[]) => number[] | null} */
function fitted(labels, open) {
  if (labels.length !== open.length || !labels.every(Boolean)) return null;
  const shifts = labels.map((name, k) => mod(pitchClass(name) - open[k] + 6, 12) - 6),
    [first] = shifts,
    low = shifts[shifts.length - 1] - first;
  const isMoved = shifts.slice(0, -1).every((shift) => shift === first);
  if (!isMoved || first < -4 || first > 0 || low < -2 || low > 0) return null;
  return open.map((pitch, k) => pitch + shifts[k]);
}

/** How many strings the systems in a run of rows have, by their names.
   @type {(labels: string[]) => number} */
function countStrings(labels) {
  const other = OTHER_INSTRUMENTS.find(({ length }) => {
    const starts = labels.map((_, k) => k).filter((k) => k % length === 0);
    return (
      labels.length % length === 0 &&
      starts.every((k) =>
        OTHER_INSTRUMENTS.some((open) => fitted(labels.slice(k, k + length), open)),
      )
    );
  });
  return other?.length ?? STRINGS;
}

/** The systems of a text, and how many rows belong to none.
   @type {(lines: string[]) => { systems: System[], left: number }} */
function findSystems(lines) {
  /** @type {System[]} */
  const systems = [];
  let left = 0;
  for (let k = 0; k < lines.length; k++) {
    let end = k;
    while (end < lines.length && isRow(lines[end])) end++;
    const run = lines.slice(k, end).map((line) => line.trimEnd()),
      labels = run.map((line) => ROW.exec(line)?.[1] ?? ""),
      strings = countStrings(labels);
    for (let from = 0; from < run.length; from += strings) {
      const own = run.slice(from, from + strings),
        width = Math.max(...own.map((line) => line.length));
      const rows = own.map((line) =>
        line.replace(/^[^-|:]*/, (label) => " ".repeat(label.length)).padEnd(width),
      );
      const isWhole = own.length === strings && strings === (systems[0]?.rows.length ?? strings);
      if (isWhole) systems.push({ rows, labels: labels.slice(from, from + strings) });
      else left += own.length;
    }
    k = Math.max(k, end);
  }
  return { systems, left };
}

/** The frets of digits side by side: 12 is one, 34 and 7 are others.
   @type {(digits: string, column: number) => [number, number][]} */
function fretsOf(digits, column) {
  if (!digits) return [];
  const two = Number(digits.slice(0, 2)),
    size = digits.length > 1 && two >= 10 && two <= MAX_FRET ? 2 : 1;
  return [[column, Number(digits.slice(0, size))], ...fretsOf(digits.slice(size), column + size)];
}

/** What sounds together in a bar: frets in one column, or under the second digit of others.
   @type {(rows: string[]) => Moment[]} */
function momentsOf(rows) {
  const placed = rows.flatMap((row, k) =>
    [...row.matchAll(/\d+/g)].flatMap(({ 0: digits, index }) =>
      fretsOf(digits, index).map(([column, fret]) => ({ column, string: k + 1, fret })),
    ),
  );
  placed.sort((a, b) => a.column - b.column || a.string - b.string);
  /** @type {Moment[]} */
  const moments = [];
  let wide = false; // whether all frets that begin in the first column have two digits
  for (const { column, string, fret } of placed) {
    const last = moments.at(-1),
      isFree = last && !last.notes.some((note) => note[0] === string);
    if (last && isFree && (column === last.step || (column === last.step + 1 && wide))) {
      last.notes.push([string, fret]);
      if (column === last.step) wide &&= fret > 9;
    } else {
      moments.push({ step: column, notes: [[string, fret]] });
      wide = fret > 9;
    }
  }
  for (const { notes } of moments) notes.sort((a, b) => b[0] - a[0]);
  return moments;
}

/** The bars of all systems in columns, less those left free behind the bar lines, over what the
   others are multiples of. @type {(systems: System[]) => Bar[]} */
function barsOf(systems) {
  /** @type {Bar[]} */
  const bars = [];
  for (const { rows } of systems) {
    const isLine = [...rows[0]].map(
      (_, k) => 2 * rows.filter((row) => row[k] === "|").length > rows.length,
    );
    let from = 0;
    for (let k = 0; k <= isLine.length; k++) {
      if (k < isLine.length && !isLine[k]) continue;
      const own = rows.map((row) => row.slice(from, k)),
        isDrawn = own.filter((row) => row.replace(/[ |*:o@.]/g, "")).length > 2;
      if (own.some((row) => /\d/.test(row)) || (k - from > 2 && isDrawn))
        bars.push({ steps: k - from, moments: momentsOf(own) });
      from = k + 1;
    }
  }
  const margin = Math.min(...bars.flatMap(({ moments }) => moments.slice(0, 1).map((m) => m.step)));
  const unit =
    bars.flatMap(({ moments }) => moments.map(({ step }) => step - margin)).reduce(gcd, 0) || 1;
  return bars.map(({ steps, moments }) => ({
    steps: Math.max(1, Math.ceil((steps - margin) / unit)),
    moments: moments.map(({ step, notes }) => ({ step: (step - margin) / unit, notes })),
  }));
}

// --- Time --------------------------------------------------------------------------------------

/** The usual meter that bars with notes fit best.
   @type {(bars: Bar[]) => Signature} */
function chooseMeter(bars) {
  const some = bars.slice(0, TEXT_TIME.maxBarsToTry);
  const costs = TEXT_TIME.usualMeters.map((meter) => ({
    meter,
    cost: sum(some.map((bar) => fitBar(bar, meter, 0).cost)),
  }));
  return costs.reduce((best, one) => (one.cost < best.cost ? one : best)).meter;
}

/** The gaps of a bar shared out over its meter; those of a pickup as those of other bars.
   @type {(bar: Bar, meter: Signature, usualWidth: number) => Fit} */
function fitBar({ steps: barWidth, moments }, [beats, kind], usualWidth) {
  const quarters = (4 * beats) / kind;
  if (!moments.length) {
    const grid = kind / gcd(4 * beats, kind);
    return { cost: 0, misfit: 0, grid, steps: [quarters * grid] };
  }
  const onsets = moments.map(({ step }) => step),
    gaps = onsets.slice(1).map((step, k) => step - onsets[k]);
  /** @type {Fit | null} */
  let best = null;
  const canBeLate = onsets[0] > 0 && onsets[0] <= TEXT_TIME.maxFreeColumns;
  for (const late of canBeLate ? [0, onsets[0]] : [0]) {
    const width = barWidth - late,
      spaces = [onsets[0] - late, ...gaps, barWidth - onsets[onsets.length - 1]];
    TEXT_TIME.grids.forEach((grid, place) => {
      const numSteps = quarters * grid;
      if (!Number.isInteger(numSteps)) return;
      for (const scale of TEXT_TIME.columnScales)
        for (const own of usualWidth ? [0] : TEXT_TIME.noteColumns) {
          const column = (scale * ((usualWidth || width) - own * moments.length)) / numSteps;
          if (column <= 0) continue;
          const wanted = spaces.map((space, k) => (space - (k && own)) / column),
            steps = wanted.map((space, k) => (k ? Math.max(1, rounded(space)) : rounded(space)));
          if (!usualWidth) {
            steps[steps.length - 1] = numSteps - sum(steps.slice(0, -1));
            if (steps[steps.length - 1] < 1) continue;
          }
          const errors = wanted.map((space, k) => Math.abs(space - steps[k]));
          errors[errors.length - 1] /= 3;
          const misfit =
            sum(errors) / errors.length +
            (column < TEXT_TIME.minStepColumns ? TEXT_TIME.maxMisfit : 0);
          const cost =
            misfit +
            Math.max(...errors) / 4 +
            TEXT_TIME.gridCost * place +
            Math.abs(scale - 1) / 4 +
            TEXT_TIME.noteColumnCost * own +
            TEXT_TIME.freeColumnCost * Math.max(0, late - 1);
          if (!best || cost < best.cost) best = { cost, misfit, grid, steps };
        }
    });
  }
  if (best) return best;
  const grid = 4 * TEXT_TIME.grids[TEXT_TIME.grids.length - 1],
    edges = [0, ...onsets.map((step) => Math.floor((step * quarters * grid) / barWidth))];
  edges.push(quarters * grid);
  return { cost: 1, misfit: 1, grid, steps: edges.slice(1).map((edge, k) => edge - edges[k]) };
}

/** The rhythm of a bar that is not drawn in time, as slp_guitar.uneven_bars has it.
   @type {(bar: Bar, signature: Signature, hasTriplets: boolean, mayEstimate: boolean) =>
     Fit | null} */
function unevenFit({ steps: width, moments }, [beats, kind], hasTriplets, mayEstimate) {
  const quarters = (4 * beats) / kind,
    first = moments[0].step,
    late = first <= TEXT_TIME.maxFreeColumns ? first : 0,
    columns = moments.map(({ step }) => step - late),
    gaps = columns.slice(1).map((column, k) => column - columns[k]);
  const isEven = gaps.length && Math.max(...gaps) <= UNEVEN_BARS.maxEvenRatio * Math.min(...gaps),
    grid = UNEVEN_BARS.evenGrids.find((each) => quarters * each === columns.length);
  if (!columns[0] && isEven && grid && (grid !== UNEVEN_BARS.triplets || hasTriplets))
    return { cost: 0, misfit: 0, grid, steps: [0, ...columns.map(() => 1)] };
  if (!mayEstimate) return null;
  const found = estimateSteps(columns[0] ? [0, ...columns] : columns, width - late, [beats, kind]);
  if (!found) return null;
  return { ...found, cost: 1, misfit: 1, steps: columns[0] ? found.steps : [0, ...found.steps] };
}

/** The likeliest division of a bar into beats, each as wide as its notes needed.
   @type {(columns: number[], width: number, signature: Signature) =>
     { grid: number, steps: number[] } | null} */
function estimateSteps(columns, width, [numerator, kind]) {
  const U = UNEVEN_BARS,
    beat = kind === 8 && numerator % 3 === 0 ? 1.5 : 4 / Math.max(4, kind),
    count = Math.floor((4 * numerator) / kind / beat);
  if (columns.length > U.maxNotes || count > U.maxBeats) return null;
  const gaps = [...columns.slice(1), width].map((column, k) => column - columns[k]),
    usualWidth = width / count;
  /** @type {Map<string, { notes: number, beats: number, cost: number, parts: Fit[] }>} */
  const best = new Map([["0 0", { notes: 0, beats: 0, cost: 0, parts: [] }]]);
  for (let done = 0; done < count; done++)
    for (const from of [...best.values()].filter((each) => each.beats === done))
      for (let beats = 1; beats <= Math.min(U.maxJoinedBeats, count - done); beats++) {
        const left = gaps.length - from.notes,
          isLast = beats === count - done,
          most = isLast ? left : Math.min(left - 1, U.maxSteps);
        for (let end = isLast ? left : 1; end <= most; end++) {
          const own = gaps.slice(from.notes, from.notes + end),
            logWidth = Math.abs(Math.log(sum(own) / (usualWidth * beats))),
            part = logWidth <= U.maxWidthLog && end ? fitPart(own, beats * beat) : null;
          if (!part) continue;
          const place = `${from.notes + end} ${done + beats}`,
            wide = U.widthCost * logWidth * beats + U.joinedBeatCost * (beats - 1),
            cost = from.cost + (part.cost * end) / gaps.length + wide / count,
            known = best.get(place);
          if (!known || cost < known.cost)
            best.set(place, {
              notes: from.notes + end,
              beats: done + beats,
              cost,
              parts: [...from.parts, part],
            });
        }
      }
  const whole = best.get(`${gaps.length} ${count}`);
  if (!whole) return null;
  const grid = whole.parts.map((part) => part.grid).reduce(lcm, 1);
  return {
    grid,
    steps: whole.parts.flatMap((part) => part.steps.map((step) => (step * grid) / part.grid)),
  };
}

/** The time of some beats shared out over their notes.
   @type {(gaps: number[], quarters: number) => Fit | null} */
function fitPart(gaps, quarters) {
  /** @type {Fit | null} */
  let best = null;
  for (const [grid, gridCost] of UNEVEN_BARS.gridCosts) {
    const total = quarters * grid;
    if (!Number.isInteger(total) || total < gaps.length || total > UNEVEN_BARS.maxSteps) continue;
    const column = sum(gaps) / total;
    /** By steps that are used. @type {Map<number, { cost: number, steps: number[] }>} */
    let ways = new Map([[0, { cost: 0, steps: [] }]]);
    gaps.forEach((gap, k) => {
      const longer = new Map();
      for (const [used, { cost, steps }] of ways)
        for (let step = 1; step <= total - used - (gaps.length - 1 - k); step++) {
          const own = cost + Math.abs(gap / column - step),
            known = longer.get(used + step);
          if (!known || own < known.cost)
            longer.set(used + step, { cost: own, steps: [...steps, step] });
        }
      ways = longer;
    });
    const found = ways.get(total);
    if (!found) continue;
    const cost = found.cost / gaps.length + gridCost;
    if (!best || cost < best.cost) best = { cost, misfit: cost, grid, steps: found.steps };
  }
  return best;
}

/** Bars of columns as bars of time.
   @type {(bars: Bar[], stated: Signature | null) => Pick<Tab, "bars" | "unit" | "signature">} */
function withTime(bars, stated) {
  const inner = bars.slice(1, -1).filter(({ moments }) => moments.length),
    usual = inner.length ? inner : bars.filter(({ moments }) => moments.length);
  const signature = stated ?? chooseMeter(usual),
    usualWidth = median(usual.map(({ steps }) => steps));
  const hasPickup = bars.length > 1 && bars[0].steps < TEXT_TIME.pickupShare * usualWidth;
  const fits = bars.map((bar, k) => fitBar(bar, signature, hasPickup && !k ? usualWidth : 0)),
    isFit = (/** @type {Fit} */ fit) => fit.misfit <= TEXT_TIME.maxMisfit,
    hasTriplets = fits.some((fit) => fit.grid === UNEVEN_BARS.triplets && isFit(fit));
  let left = UNEVEN_BARS.maxEstimated;
  for (let k = hasPickup ? 1 : 0; k < fits.length; k++) {
    const uneven = isFit(fits[k]) ? null : unevenFit(bars[k], signature, hasTriplets, left > 0);
    if (uneven?.misfit) left -= bars[k].moments.length * signature[0];
    fits[k] = uneven ?? fits[k];
  }
  const unit = fits.map(({ grid }) => grid).reduce(lcm, 1);
  return {
    unit,
    signature,
    bars: bars.map(({ moments }, k) => {
      const steps = fits[k].steps.map((each) => (each * unit) / fits[k].grid);
      let now = 0;
      return {
        steps: sum(steps),
        moments: moments.map(({ notes }, i) => ({ step: (now += steps[i]), notes })),
      };
    }),
  };
}

// --- A text ------------------------------------------------------------------------------------

/** The open strings that a text states or that stand before its rows, the highest first.
   @type {(lines: string[], labels: string[]) => number[]} */
function tuningOf(lines, labels) {
  if (labels.length !== STRINGS)
    return OTHER_INSTRUMENTS.map((open) => fitted(labels, open)).find(Boolean) ?? TUNINGS.standard;
  const stated = lines.map((line) => STATED.exec(line)).find(Boolean),
    drop = lines.some((line) => /\bdrop(?:ped)?[\s-]*D\b/i.test(line));
  const names = stated ? stated.slice(1).reverse() : labels;
  if (!names.every(Boolean)) return drop ? TUNINGS["drop-D"] : TUNINGS.standard;
  const own = names.map((name, k) => {
    const usual = TUNINGS.standard[k];
    return usual + mod(pitchClass(name) - usual + 6, 12) - 6;
  });
  const isStandard = `${own}` === `${TUNINGS.standard}`;
  return isStandard && drop ? TUNINGS["drop-D"] : own;
}

/** A text in UTF-8, or else as Windows has it. @type {(bytes: Uint8Array) => string} */
export function decodeText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

/** The tab in a text, in time; and what of it is left out.
   @type {(text: string) => { tab: Tab | null, remarks: string[] }} */
export function readTextTab(text) {
  const lines = text.split(/\r\n|\r|\n/).map((line) => line.replaceAll("\t", "        ")),
    { systems, left } = findSystems(lines);
  const bars = systems.length ? barsOf(systems) : [];
  if (!bars.some(({ moments }) => moments.length) || bars.length > MAX_BARS)
    return { tab: null, remarks: [] };
  const prose = lines.filter((line) => !isRow(line)).map((line) => line.slice(0, MAX_STATEMENT)),
    meter = prose.map((line) => METER.exec(line)).find(Boolean),
    capo = prose.map((line) => CAPO.exec(line)).find(Boolean)?.[1] ?? "0";
  /** @type {Signature | null} */
  const stated = meter ? [Number(meter[1] ?? meter[3]), Number(meter[2] ?? meter[4])] : null;
  const remarks = [];
  if (left)
    remarks.push(`rows are left out (${left}), where a system has ${systems[0].rows.length}`);
  if (systems.some(({ rows }) => rows.some((row) => /[hpbrsxX/\\~]/.test(row))))
    remarks.push("how notes are played is left out");
  if (systems.some(({ rows }) => rows.some((row) => /\|:|:\|/.test(row))))
    remarks.push("repeats are left out");
  return {
    tab: {
      open: tuningOf(prose, systems[0].labels),
      capo:
        ROMAN.indexOf(capo.toUpperCase()) > 0 ? ROMAN.indexOf(capo.toUpperCase()) : Number(capo),
      key: "",
      ...withTime(bars, stated?.[0] ? stated : null),
    },
    remarks,
  };
}
