/* Finds the numbers of equations, figures and exercises in a PDF, from nothing but its text with
   its places. No form of PDF is assumed: a number is one's own where numbers of the document, or
   its lines, have an edge in common and it stands free at that edge, and where all of them rise as
   one reads. Places are those of a page as it is shown: from its top left, in points. */

/**
 * @typedef {{ str: string, transform: number[], width: number, fontName: string }} TextItem as
 *   pdf.js has it
 * @typedef {{ text: string, x: number, end: number, y: number, size: number, font: string }} Piece
 * @typedef {{ x: number, end: number, item: Piece | null }} Letter null: a blank between two pieces
 * @typedef {{ y: number, size: number, text: string, letters: Letter[], pieces: Piece[] }} Line
 * @typedef {{ page: number, kind: string, chapter: string, index: number, suffix: string, x:
 *   number,
 *   end: number, y: number, size: number, weight: number, left: number, right: number,
 *   before: number, after: number, words: number, blank: number, isFull: boolean, isFirst: boolean,
 *   isLast: boolean, isSure: boolean, isCell: boolean, isTail: boolean, isBeforeFormula: boolean,
 *   column: number }} Found
 * @typedef {{ page: number, width: number, height: number, found: Found[], starts: number[],
 *   ends: number[], letters: number, unnamed: number, inExercises: boolean, text: string,
 *   size: number }} PageText
 * @typedef {{ page: number, y: number, kind: string, number: string }} Destination
 */

const CHAPTER = "((?:[IVX]{1,4}\\.)?(?:\\d{1,2}|[A-Z]))";
/* A point that was set in mathematics may arrive as a colon, from a font without names of
   letters. */
const NUMBER = new RegExp(`\\(\\s?${CHAPTER}\\s?[.:]\\s?(\\d{1,3})([a-h]?)\\s?\\)`, "g");
const CAPTION = new RegExp(
  `^(?:Figure|Fig\\.|FIGURE|FIG\\.)\\s?${CHAPTER}\\s?[.:]\\s?(\\d{1,3})(?![\\d])`,
);
const EXERCISE = /^(\d{1,2})\.(\d{1,3})\.?(?=\s|$)/;
const EXERCISES = /^(?:\d+(?:\.\d+)?\s+)?(?:Exercises?|Problems?)$/i;
const UNNAMED = /[\p{Cc}\p{Co}\ufffd]/gu;

/** Sizes of type by which a piece is free of its neighbor. */
const FREE = 1.2;
const CLOSE = 0.45; // TeX leaves half a quad between a formula and its number at least
const SAME_EDGE = 0.35;
const COLUMN_GAP = 1; // between pieces of prose that are not one
const MAX_FOUND_ON_PAGE = 150;
const MAX_IN_CHAIN = 1500;

/** @param {number[]} values */
const median = (values) => {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted.length ? sorted[sorted.length >> 1] : 0;
};

/**
 * The lines of a page, from top to bottom, each with its pieces from left to right.
 * @param {TextItem[]} items
 * @param {number[]} view how the page is turned and shifted to be shown, as pdf.js has it
 * @returns {Line[]}
 */
export function linesOf(items, view) {
  /** @type {Piece[]} */
  const pieces = [];
  const [p, q, r, s, t, u] = view;
  for (const { str, transform, width, fontName } of items) {
    if (!str?.trim()) continue;
    const [a, b, c, d, e, f] = transform;
    const across = [p * a + r * b, q * a + s * b],
      up = [p * c + r * d, q * c + s * d];
    if (Math.abs(across[1]) > 0.1 * Math.abs(across[0]) || across[0] <= 0) continue; // it is turned
    const size = Math.hypot(...up) || Math.hypot(...across);
    const x = p * e + r * f + t,
      y = q * e + s * f + u;
    if (!Number.isFinite(x + y + size + width) || size <= 0) continue;
    pieces.push({ text: str, x, end: x + Math.abs(width), y, size, font: fontName });
  }
  pieces.sort((one, other) => one.y - other.y || one.x - other.x);
  /** @type {Line[]} */
  const lines = [];
  for (const piece of pieces) {
    const line = lines.at(-1);
    if (line && Math.abs(line.y - piece.y) < 0.15 * Math.max(piece.size, 4))
      line.pieces.push(piece);
    else lines.push({ y: piece.y, size: piece.size, text: "", letters: [], pieces: [piece] });
  }
  for (const line of lines) {
    line.pieces.sort((one, other) => one.x - other.x);
    line.size = Math.max(...line.pieces.map((piece) => piece.size));
    /** @type {Piece | null} */
    let last = null;
    for (const piece of line.pieces) {
      if (last && piece.x - last.end > 0.15 * piece.size) {
        line.text += " ";
        line.letters.push({ x: last.end, end: piece.x, item: null });
      }
      const step = (piece.end - piece.x) / piece.text.length;
      for (let k = 0; k < piece.text.length; k++)
        line.letters.push({ x: piece.x + k * step, end: piece.x + (k + 1) * step, item: piece });
      line.text += piece.text;
      last = piece;
    }
  }
  return lines;
}

/** Pieces of a line between wide blanks: columns, a formula and its number. @param {Line} line */
const runsOf = (line) => {
  const runs = [];
  let first = 0;
  for (let k = 0; k <= line.letters.length; k++) {
    const letter = line.letters[k];
    const isWide = letter && !letter.item && letter.end - letter.x > COLUMN_GAP * line.size;
    if (k < line.letters.length && !isWide) continue;
    if (k > first)
      runs.push({
        first,
        text: line.text.slice(first, k),
        x: line.letters[first].x,
        end: line.letters[k - 1].end,
        y: line.y,
        size: line.size,
        isFirst: !runs.length,
      });
    first = k + 1;
  }
  return runs;
};

/**
 * How wide the blanks of a part of a line are, but for those around a number.
 * @param {Line} line @param {number} from @param {number} to @param {number[]} but
 */
const blankOf = (line, from, to, ...but) => {
  const blanks = [];
  for (let k = from; k < to; k++) {
    if (but.includes(k)) continue;
    const { x, end, item } = line.letters[k];
    if (item ? item.text.length > 1 && line.text[k] === " " : end - x < COLUMN_GAP * line.size)
      blanks.push((end - x) / line.size);
  }
  return median(blanks);
};

/**
 * What a page has that looks like a number, and what speaks for its being one's own.
 * @param {TextItem[]} items
 * @param {number[]} view
 * @param {{ page: number, width: number, height: number, inExercises?: boolean }} given
 *   inExercises: whether the page before it ends among exercises
 * @returns {PageText}
 */
export function readPage(items, view, { page, width, height, inExercises = false }) {
  const lines = linesOf(items, view);
  const pieces = lines.flatMap((line) => line.pieces);
  let letters = 0,
    unnamed = 0;
  const sizes = new Map(),
    fonts = new Map();
  for (const { text, size, font } of pieces) {
    letters += text.length;
    unnamed += text.match(UNNAMED)?.length ?? 0;
    const key = Math.round(size * 10);
    sizes.set(key, (sizes.get(key) ?? 0) + text.length);
    fonts.set(font, (fonts.get(font) ?? 0) + text.length);
  }
  /** @param {Map<any, number>} counts */
  const most = (counts) => [...counts].sort((one, other) => other[1] - one[1])[0]?.[0];
  const body = (most(sizes) ?? 100) / 10,
    bodyFont = most(fonts);
  const runs = lines.flatMap(runsOf);
  const prose = runs.filter(({ text }) => text.length > 24 && wordsIn(text) >= 3);
  /** @type {Found[]} */
  const found = [];
  const plain = {
    suffix: "",
    kind: "",
    weight: 0,
    left: 0,
    right: 0,
    before: 0,
    after: 0,
    words: 0,
    blank: 0,
    isFull: true,
    isFirst: false,
    isLast: false,
    isSure: false,
    isCell: false,
    isTail: false,
    isBeforeFormula: false,
    column: 0,
  };
  let isInExercises = inExercises;
  for (const line of lines) {
    const lineRuns = runsOf(line);
    for (const match of line.text.matchAll(NUMBER)) {
      if (found.length >= MAX_FOUND_ON_PAGE) break;
      const first = match.index,
        last = first + match[0].length - 1;
      const { x, item } = line.letters[first],
        { end } = line.letters[last];
      const size = item?.size ?? body;
      // What stands beside it at the same height, on whichever line: parts of a formula do.
      const beside = pieces.filter(
        (one) =>
          one.y - 0.8 * one.size < line.y + 0.2 * size &&
          one.y > line.y - 0.8 * size &&
          one !== item,
      );
      const before = beside.filter((one) => one.end <= x + 1).map((one) => one.end);
      const after = beside.filter((one) => one.x >= end - 1).map((one) => one.x);
      // What is of the same piece, or of a line that wraps around it.
      const letterBefore = lastLetter(line, first - 1, -1),
        letterAfter = lastLetter(line, last + 1, 1);
      if (letterBefore) before.push(letterBefore.end);
      if (letterAfter) after.push(letterAfter.x);
      const left = before.length ? Math.max(...before) : Number.NEGATIVE_INFINITY;
      const right = after.length ? Math.min(...after) : Number.POSITIVE_INFINITY;
      const run = lineRuns.find((one) => one.first <= first && first < one.first + one.text.length);
      const own = run ? run.text : line.text;
      const at = first - (run?.first ?? 0);
      found.push({
        ...plain,
        page,
        chapter: match[1],
        index: Number(match[2]),
        suffix: match[3],
        x,
        end,
        y: line.y,
        size,
        left,
        right,
        before: (x - left) / size,
        after: (right - end) / size,
        words: Math.max(wordsIn(own.slice(0, at)), wordsIn(own.slice(at + match[0].length))),
        blank: blankOf(line, run?.first ?? 0, (run?.first ?? 0) + own.length, first - 1, last + 1),
        isBeforeFormula: isFormula(own.slice(at + match[0].length)),
        isFull: size > 0.9 * body,
        isFirst: left === Number.NEGATIVE_INFINITY,
        isLast: right === Number.POSITIVE_INFINITY,
      });
    }
    // A line of the page may hold several columns, and a caption or an exercise begin any of them.
    for (const run of lineRuns) {
      if (found.length >= 2 * MAX_FOUND_ON_PAGE) break;
      if (EXERCISES.test(run.text.trim())) isInExercises = true;
      const item = line.letters[run.first].item;
      const caption = CAPTION.exec(run.text);
      const exercise = isInExercises && !caption && EXERCISE.exec(run.text);
      const match = caption || exercise;
      if (!item || !match) continue;
      const next = line.letters[run.first + match[0].length];
      const rest = run.text.slice(match[0].length);
      const end = line.letters[run.first + match[0].length - 1].end;
      const blank = next && !next.item ? (next.end - next.x) / item.size : 0;
      const isBlock = startsBlock(lines, line, run, body);
      const place = {
        page,
        chapter: match[1],
        index: Number(match[2]),
        x: run.x,
        end,
        y: line.y,
        size: item.size,
      };
      if (exercise) {
        found.push({
          ...plain,
          ...place,
          kind: "exercise",
          weight: item.font !== bodyFont ? 2 : 1,
        });
        continue;
      }
      let weight = 0;
      if (item.font !== bodyFont) weight += 2;
      if (item.size < 0.97 * body) weight += 1;
      const ended = /^\s?[:.]\s+\S|^\s?[:.]$|^$/.test(rest);
      if (ended && isBlock) weight += 1;
      if (/^\s?:/.test(rest) && isBlock) weight += 1;
      if (blank > 0.6 && blank > 1.7 * blankOf(line, run.first, run.first + run.text.length))
        weight += 1;
      // No caption goes on so.
      if (/^\s?[),;]/.test(rest) || (item.font === bodyFont && !isBlock)) weight = 0;
      found.push({ ...plain, ...place, kind: weight >= 1 ? "figure" : "cited figure", weight });
    }
  }
  for (const one of found) {
    one.isCell = isCell(one, found, runs);
    one.isTail = prose.some(
      ({ x, y }) =>
        one.y - y > 0.5 * one.size &&
        one.y - y < 1.75 * one.size &&
        Math.abs(one.x - x) < 2.5 * one.size,
    );
  }
  return {
    page,
    width,
    height,
    found,
    letters,
    unnamed,
    inExercises: isInExercises,
    size: body,
    starts: prose.map(({ x }) => x),
    ends: prose.map(({ end }) => end),
    text: lines.map(({ text }) => text).join("\n"),
  };
}

/**
 * Whether a number stands in a table: the row above or below has something else at the same edge,
 *   or
 * a number that is not the next.
 * @param {Found} one @param {Found[]} found @param {ReturnType<typeof runsOf>} runs
 */
const isCell = (one, found, runs) => {
  if (one.kind || one.isFirst) return false;
  const isBelow = (/** @type {{ x: number, end: number, y: number }} */ other) =>
    Math.abs(other.y - one.y) > 0.5 * one.size &&
    Math.abs(other.y - one.y) < 1.9 * one.size &&
    Math.min(Math.abs(other.x - one.x), Math.abs(other.end - one.end)) < SAME_EDGE * one.size;
  // What ends a line of prose is no cell.
  const rows = found.filter(
    (other) => !other.kind && !other.isFirst && other.before > COLUMN_GAP && isBelow(other),
  );
  if (rows.some((other) => other.chapter !== one.chapter || Math.abs(other.index - one.index) > 1))
    return true;
  const others = runs.filter(
    (run) =>
      run.text.length < 16 && run.size > 0.85 * one.size && isBelow(run) && !run.text.match(NUMBER),
  );
  return others.some((run) => !run.isFirst);
};

/** The next letter of a line that is no blank. @param {Line} line @param {number} k @param
   {number} step */
const lastLetter = (line, k, step) => {
  for (; k >= 0 && k < line.letters.length; k += step)
    if (line.letters[k].item && line.text[k].trim()) return line.letters[k];
  return null;
};

const WORD = /(?<![\w(\\])[A-Za-z][a-z]+(?=[\s.,;:)]|$)/g;

/** Words of prose in a text: what formulas have few of. @param {string} text */
const wordsIn = (text) => text.match(WORD)?.length ?? 0;

/** Whether a text is a formula, and no prose of few words, which is short. @param {string} text */
const isFormula = (text) =>
  wordsIn(text) < 3 && !text.match(NUMBER) && text.replace(WORD, "").replace(/\s/g, "").length > 12;

/**
 * Whether a run is the first of a block: nothing stands above it as near as lines stand.
 * @param {Line[]} lines @param {Line} line @param {{ x: number, end: number }} run @param
 *   {number} body
 */
const startsBlock = (lines, line, run, body) => {
  for (let k = lines.indexOf(line) - 1; k >= 0; k--) {
    const above = lines[k];
    if (line.y - above.y > 1.45 * body) return true;
    if (above.pieces.some((piece) => piece.x < run.end && piece.end > run.x)) return false;
  }
  return true;
};

/**
 * Edges that many have in common, the most common first.
 * @param {{ at: number, page: number }[]} places @param {number} tolerance
 */
const edgesOf = (places, tolerance) => {
  const sorted = [...places].sort((one, other) => one.at - other.at);
  /** @type {{ at: number, count: number, pages: number }[]} */
  const edges = [];
  let group = [];
  for (const [k, place] of sorted.entries()) {
    group.push(place);
    if (k + 1 < sorted.length && sorted[k + 1].at - place.at <= tolerance) continue;
    edges.push({
      at: median(group.map((one) => one.at)),
      count: group.length,
      pages: new Set(group.map((one) => one.page)).size,
    });
    group = [];
  }
  return edges.sort((one, other) => other.count - one.count);
};

/**
 * Where lines of prose end, or begin: of a page, and of all pages on its side.
 * @param {PageText[]} pages @param {"ends" | "starts"} which
 */
const marginsOf = (pages, which) => {
  const sides = [0, 1].map((side) => {
    const places = pages
      .filter(({ page }) => page % 2 === side)
      .flatMap((one) => one[which].map((at) => ({ at, page: one.page })));
    return edgesOf(places, 0.6)
      .filter(({ count }) => count >= Math.max(3, 0.12 * places.length))
      .slice(0, 4)
      .map(({ at }) => at);
  });
  return (/** @type {PageText} */ page) => {
    const own = edgesOf(
      page[which].map((at) => ({ at, page: page.page })),
      0.6,
    )
      .filter(({ count }) => count >= Math.max(3, 0.2 * page[which].length))
      .slice(0, 3)
      .map(({ at }) => at);
    return [...own, ...sides[page.page % 2]];
  };
};

/**
 * Edges at which numbers stand that are free on both sides: in a margin, or where lines end
 *   raggedly.
 * A column of a table is one too, so it has to hold on several pages and be as common as others.
 * @param {PageText[]} pages @param {"x" | "end"} which
 */
const numberEdges = (pages, which) => {
  const places = pages.flatMap(({ page, found }) =>
    found
      .filter(
        (one) => !/figure|exercise/.test(one.kind) && one.isFull && !one.isCell && isFree(one),
      )
      .map((one) => ({ at: one[which], page })),
  );
  const common = (/** @type {typeof places} */ some) => {
    const edges = edgesOf(some, 1).filter(({ count, pages }) => count >= 3 && pages >= 2);
    return edges.filter(({ count }) => count >= 0.3 * (edges[0]?.count ?? 0));
  };
  const all = common(places);
  const sides = [0, 1].map((side) => common(places.filter(({ page }) => page % 2 === side)));
  return (/** @type {number} */ page) => [...sides[page % 2], ...all];
};

/** @param {Found} one */
const isFree = (one) =>
  (one.isLast || one.after > 2 * FREE) && (one.isFirst || one.before > FREE) && !one.isSure;

/**
 * Of one kind in one chapter: those that together say most and whose numbers rise as one reads.
 * @param {Found[]} list
 */
function rising(list) {
  if (list.length > MAX_IN_CHAIN) {
    // Of a document that has been made to be slow the surest are enough.
    list.sort((one, other) => other.weight - one.weight);
    list.length = MAX_IN_CHAIN;
  }
  list.sort(
    (one, other) =>
      one.page - other.page ||
      columnOf(one) - columnOf(other) ||
      one.y - other.y ||
      one.x - other.x,
  );
  const rank = (/** @type {Found} */ one) =>
    one.index + (one.suffix ? one.suffix.charCodeAt(0) - 96 : 0) / 100;
  const sums = list.map((one) => one.weight),
    previous = list.map(() => -1);
  let best = -1;
  for (let k = 0; k < list.length; k++) {
    for (let j = 0; j < k; j++) {
      const step = rank(list[k]) - rank(list[j]);
      if (step <= 0) continue;
      // A step of one is what is expected; each number that is left out speaks a little against it.
      const sum = sums[j] + list[k].weight - Math.min(0.9, 0.05 * Math.max(0, Math.ceil(step) - 1));
      if (sum > sums[k]) [sums[k], previous[k]] = [sum, j];
    }
    if (best < 0 || sums[k] > sums[best]) best = k;
  }
  const chain = [];
  for (let k = best; k >= 0; k = previous[k]) chain.unshift(list[k]);
  return chain;
}

/** Of a page with columns, which one: they are read one after the other. @param {Found} one */
const columnOf = (one) => one.column;

/**
 * What is a number of its own, of all that was found so far. Each gets its kind and its weight; the
 * chosen ones are returned, in the order of reading.
 * @param {PageText[]} pages
 * @param {Destination[]} destinations where hyperref has written down what stands there
 * @returns {Found[]}
 */
export function choose(pages, destinations = []) {
  const rightMargins = marginsOf(pages, "ends"),
    leftMargins = marginsOf(pages, "starts");
  const rightEdges = numberEdges(pages, "end"),
    leftEdges = numberEdges(pages, "x");
  const known = byPage(destinations);
  const kinds = new Set(destinations.map(({ kind }) => kind));
  const chains = new Map();
  for (const page of pages) {
    const rights = rightMargins(page),
      lefts = leftMargins(page);
    const columns = columnsOf(lefts, page);
    for (const one of page.found) {
      one.column = columns.filter((left) => left < one.x + one.size).length;
      if (!/figure|exercise/.test(one.kind)) {
        [one.kind, one.weight] = judge(one, {
          rights,
          lefts,
          columns,
          numbersEnd: rightEdges(page.page),
          numbersStart: leftEdges(page.page),
        });
      }
      const kind = one.kind.includes("figure")
        ? "figure"
        : one.kind === "exercise"
          ? "exercise"
          : "equation";
      const there = known.get(`${page.page} ${kind} ${one.chapter}.${one.index}`);
      one.isSure = Boolean(there && isAt(one, there, kind));
      if (one.isSure) {
        // The name of a destination tells what stands there; a citation beside it stands in a line.
        const free = one.before > CLOSE || one.after > CLOSE || one.isFirst;
        if (kind === "figure" || one.weight || (free && one.words < 5)) {
          one.kind = kind;
          one.weight += 6;
        }
      } else if (kinds.has(kind) && known.has(`${kind} ${one.chapter}.${one.index}`)) {
        one.weight = 0; // it has its place elsewhere
        if (kind === "figure") one.kind = "cited figure";
      }
      if (!one.weight) continue;
      const key = `${kind} ${one.chapter}`;
      chains.set(key, [...(chains.get(key) ?? []), one]);
    }
  }
  const chosen = [...chains.values()].flatMap(rising);
  return chosen.sort((one, other) => one.page - other.page || one.y - other.y);
}

/** @param {Destination[]} destinations */
const byPage = (destinations) => {
  const known = new Map();
  for (const one of destinations) {
    for (const key of [`${one.page} ${one.kind} ${one.number}`, `${one.kind} ${one.number}`])
      known.set(key, [...(known.get(key) ?? []), one]);
  }
  return known;
};

/** @param {Found} one @param {Destination[]} there @param {string} kind */
const isAt = (one, there, kind) =>
  // A formula is anchored above its first line; a figure above itself, or at its caption.
  there.some(({ y }) => one.y > y - one.size && (kind === "figure" || one.y < y + 16 * one.size));

/** Where columns of prose begin, from left to right. @param {number[]} lefts @param {PageText}
   page */
const columnsOf = (lefts, page) => {
  const starts = [...lefts].sort((one, other) => one - other);
  return starts.filter(
    (left, k) => k && left - starts[0] > 0.25 * page.width && left - starts[k - 1] > 4 * page.size,
  );
};

/**
 * @param {Found} one
 * @param {{ rights: number[], lefts: number[], columns: number[],
 *   numbersEnd: { at: number }[], numbersStart: { at: number }[] }} edges
 * @returns {[string, number]} its kind and its weight
 */
function judge(one, { rights, lefts, columns, numbersEnd, numbersStart }) {
  if (!one.isFull) return ["cited", 0];
  const near = (/** @type {number} */ at, /** @type {number} */ edge) =>
    Math.abs(at - edge) < SAME_EDGE * one.size;
  const isAtRight = rights.some((edge) => near(one.end, edge));
  // To the right there is nothing, or another column, or a note in the margin.
  const isClear = one.isLast || (one.after > 0.8 && (isAtRight || one.after > 2 * FREE));
  const isProse = one.words >= 4 && one.before < 2 * FREE;
  // Where there are words, it is the widest blank; between letters of formulas all may be wide.
  const isApart =
    one.before > Math.max(CLOSE, 1.6 * one.blank) || (one.words < 3 && one.before > 0.7);
  if (one.isCell) return ["cited", 0];
  if (isClear && isAtRight) {
    if (one.before > FREE && !isProse) return ["equation", 3];
    if (isApart && !isProse) return ["equation", 1];
  }
  const isNumberEdge =
    numbersEnd.some(({ at }) => near(one.end, at)) ||
    numbersStart.some(({ at }) => near(one.x, at));
  if (isClear && isNumberEdge && one.before > FREE && !isProse) return ["equation", 2];
  if (isClear && numbersEnd.some(({ at }) => near(one.end, at)) && isApart && !isProse)
    return ["equation", 1];
  // At the left: nothing before it, or the column before, and a blank that is no space between
  // words.
  const isFirst = one.isFirst || columns.some((left) => near(one.x, left) && one.before > 0.8);
  const isAtLeft = lefts.some((edge) => Math.abs(one.x - edge) < 2.5 * one.size);
  const isWide =
    one.after > Math.max(CLOSE, 1.7 * one.blank) ||
    (one.words < 3 && one.after > CLOSE && !one.isTail) ||
    (one.isBeforeFormula && one.after > 0.9 * CLOSE);
  if (
    isFirst &&
    (isAtLeft || numbersStart.some(({ at }) => near(one.x, at))) &&
    (isWide || one.isLast)
  ) {
    const isShort = one.words < 3 && !one.isBeforeFormula && one.after < COLUMN_GAP;
    if (one.isTail && (one.isLast || isShort)) return ["cited", 0]; // the last words of a paragraph
    if (one.after > FREE) return ["equation", one.isLast ? 1 : 2];
    return ["example", one.after > 0.7 ? 2 : 1];
  }
  return ["cited", 0];
}

/**
 * Where prose begins and ends on pages of either side: what a narrow screen has to show.
 * @param {PageText[]} pages
 * @returns {{ start: number, end: number }[] | null} of even and of odd pages
 */
export function columnsOfText(pages) {
  const sides = [0, 1].map((side) => {
    const own = pages.filter(({ page }) => page % 2 === side);
    const starts = own.flatMap((page) => page.starts).sort((one, other) => one - other),
      ends = own
        .flatMap(({ ends, found }) => [
          ...ends,
          ...found.filter(({ kind }) => kind === "equation").map(({ end }) => end),
        ])
        .sort((one, other) => one - other);
    if (starts.length < 10) return null;
    return {
      start: starts[Math.floor(0.02 * starts.length)],
      end: ends[Math.ceil(0.98 * ends.length) - 1],
    };
  });
  const known = sides.find((side) => side);
  return known ? sides.map((side) => side ?? known) : null;
}
