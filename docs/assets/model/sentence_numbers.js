/* The numbers of the page "One sentence, every number": each matrix of the model, and how each of
   its numbers is made. */

import { Tensor, headsOff, softmax } from "./engine.js";

export let model, vocabulary, tokenizer; // the vocabulary as it is shown
export let now, was; // what it makes of the sentence, and of the one that this is compared with
export const at = { l: 0, c: 0 }; // the block and the head that are shown

/** Take a model, with a sentence for it to begin with. */
export function takeModel(given, ids, switches) {
  ({ model, vocabulary, tokenizer } = given);
  Object.assign(at, { l: 0, c: 0 });
  compute(ids, switches);
  compareWithNow();
}

/** Compute all that a sentence and the switches give. */
export function compute(ids, switches) {
  const points = {},
    { off, tau, ...how } = switches;
  const zero = headsOff(off === null ? [] : [placeOfHead(off)]);
  const hook = (name, X, l) => {
    const Y = zero(name, X, l) ?? X;
    points[l === null ? name : `${name} ${l}`] = Y;
    return Y;
  };
  const words = ids.map((id) => vocabulary[id]);
  const U = model.forward(ids, { ...how, hook });
  now = { words, ids, switches, points, U, Y: softmax(U.map((x) => x / tau)) };
}

/** Compare what comes with what there is now. */
export function compareWithNow() {
  was = now;
}

/** A number in a few figures. */
export const shown = (x, digits = 2) => {
  if (x === -Infinity) return "−∞";
  const text = x.toFixed(digits).replace("-", "−");
  return /^−[0.]+$/.test(text) ? text.slice(1) : text;
};

export const placeOfHead = (k) => ({
  block: Math.floor(k / model.sizes.A),
  head: k % model.sizes.A,
});
const part = (X, from, to) => {
  // some columns of a matrix
  const Y = new Tensor([X.rows, to - from]);
  for (let i = 0; i < X.rows; i++) Y.row(i).set(X.row(i).subarray(from, to));
  return Y;
};
const own = (l) => model.weights.stack.blocks[l];
const dk = () => model.sizes.dk;

/** The matrix of a name in block l, head c. */
export const MATRICES = {
  E: () => model.E,
  P: () => model.weights.embedding.positions.P,
  X: (s) => s.points["X 0"],
  X_in: (s, l) => s.points[`X ${l}`],
  masked: (s, l, c) => {
    const M = s.points[`scores ${l}`].matrix(c).copy();
    if (s.switches.causal) for (let i = 0; i < M.rows; i++) M.row(i).fill(-Infinity, i + 1);
    return M;
  },
  final: (s) => s.points.final,
  u: (s) => s.U,
  y: (s) => s.Y,
  W_Q: (_s, l, c) => part(own(l).attention.W_QKV, c * dk(), (c + 1) * dk()),
  W_K: (_s, l, c) =>
    part(own(l).attention.W_QKV, (model.sizes.A + c) * dk(), (model.sizes.A + c + 1) * dk()),
  W_V: (_s, l, c) =>
    part(
      own(l).attention.W_QKV,
      (2 * model.sizes.A + c) * dk(),
      (2 * model.sizes.A + c + 1) * dk(),
    ),
  W_O: (_s, l) => own(l).attention.W_O,
  W_1: (_s, l) => own(l).ffn.W_1,
  W_2: (_s, l) => own(l).ffn.W_2,
};
for (const name of ["T1", "T2", "T3", "T4", "hidden", "T5", "H"])
  MATRICES[name] = (s, l) => s.points[`${name} ${l}`];
for (const name of ["Q", "K", "V", "scores", "alpha", "head"])
  MATRICES[name] = (s, l, c) => s.points[`${name} ${l}`].matrix(c);
export const BY_HEAD = new Set([
  "Q",
  "K",
  "V",
  "scores",
  "masked",
  "alpha",
  "head",
  "W_Q",
  "W_K",
  "W_V",
]);
export const BY_BLOCK = new Set([
  ...BY_HEAD,
  "X_in",
  "T1",
  "T2",
  "T3",
  "T4",
  "hidden",
  "T5",
  "H",
  "W_O",
  "W_1",
  "W_2",
]);
export const look = (name, { l = at.l, c = at.c } = {}, s = now) => MATRICES[name](s, l, c);
export const value = ({ name, i, j, ...where }, s = now) => look(name, where, s).row(i)[j];
export const valueBefore = (cell) => {
  // what a cell was, in the sentence that is compared with
  const M = look(cell.name, cell, was);
  return cell.i < M.rows && cell.j < M.columns ? value(cell, was) : undefined;
};

export const numbers = (count) => Array.from({ length: count }, (_, k) => String(k + 1));
export const OVER_WORDS = new Set(["scores", "masked", "alpha"]),
  OVER_VOCABULARY = new Set(["u", "y"]);
export function labels(name, M) {
  const columns = OVER_WORDS.has(name)
    ? now.words
    : OVER_VOCABULARY.has(name)
      ? vocabulary
      : numbers(M.columns);
  const rows =
    name === "E" ? vocabulary : name === "P" || name.startsWith("W_") ? numbers(M.rows) : now.words;
  return { rows, columns };
}
export const placeOf = ({ name, i, j }) => {
  const { rows, columns } = labels(name, look(name));
  const named = (all, k) =>
    all.indexOf(all[k]) === all.lastIndexOf(all[k]) ? all[k] : `${all[k]} (${k + 1})`;
  return `[${named(rows, i)}, ${named(columns, j)}]`;
};

// --- How a number is made --------------------------------------------------------------------

const row = (name, where, i, count, from = 0) =>
  Array.from({ length: count }, (_, j) => ({ name, ...where, i, j: j + from }));
const column = (name, where, j, count, from = 0) =>
  Array.from({ length: count }, (_, i) => ({ name, ...where, i: i + from, j }));
export const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt()};`);
const quoted = (text) => `“${escaped(text)}”`;
const signed = (x) => (shown(x).startsWith("−") ? `(${shown(x)})` : shown(x));

/** a₁ · b₁ + a₂ · b₂ + …: the four largest products, and the rest. */
function sumInFigures(products, term) {
  const order = [...products.keys()].sort((x, y) => Math.abs(products[y]) - Math.abs(products[x]));
  const some = order.slice(0, 4).map(term),
    rest = order.slice(4).reduce((sum, k) => sum + products[k], 0);
  if (order.length > 4) some.push(`${signed(rest)} in ${order.length - 4} smaller terms`);
  return some.join(" + ");
}

/** A dot product, with what may be done to it. */
function product(a, b, { bias = null, over = null, relu = false } = {}) {
  const products = a.map((cell, k) => value(cell) * value(b[k]));
  let figures = sumInFigures(products, (k) => `${signed(value(a[k]))} · ${signed(value(b[k]))}`);
  let number = products.reduce((x, y) => x + y, 0);
  if (bias !== null) figures += ` + ${signed(bias)} (bias)`;
  number += bias ?? 0;
  if (over) figures = `(${figures}) / √${over} = ${shown(number)} / ${shown(Math.sqrt(over))}`;
  if (relu) figures = `max(0, ${figures}) = max(0, ${shown(number)})`;
  number /= over ? Math.sqrt(over) : 1;
  return { figures, number: relu ? Math.max(0, number) : number, strips: [a, b], products };
}

/** A norm: γ (x − μ)/σ + β, with μ and σ of the row. */
function norming(name, where, W, cell) {
  const d = model.config.model_dim,
    x = look(name, where).row(cell.i),
    gamma = W.gamma.data[cell.j],
    beta = W.beta.data[cell.j];
  const mu = x.reduce((a, b) => a + b, 0) / d;
  const sigma = Math.sqrt(x.reduce((a, b) => a + (b - mu) ** 2, 0) / d + model.config.eps);
  return {
    figures:
      `γ (x − μ) / σ + β = ${signed(gamma)} · (${shown(x[cell.j])} − ${signed(mu)}) / ` +
      `${shown(sigma)} + ${signed(beta)}`,
    say: `μ and σ are the mean and the deviation of the row of ${d} numbers; γ and β are learned.`,
    number: (gamma * (x[cell.j] - mu)) / sigma + beta,
    strips: [row(name, where, cell.i, d)],
  };
}

/** A softmax: e to the power of one score, over the sum of these powers. */
function softened(cells, j, tau = 1) {
  const powers = cells.map((cell) => Math.exp(value(cell) / tau)),
    sum = powers.reduce((a, b) => a + b, 0);
  const power = (k) => `e<sup>${shown(value(cells[k]))}${tau === 1 ? "" : `/${tau}`}</sup>`;
  return {
    figures: `${power(j)} / (${sumInFigures(powers, power)}) = ${shown(powers[j])} / ${shown(sum)}`,
    number: powers[j] / sum,
    strips: [cells],
  };
}

const adding = (a, b) => ({
  figures: `${signed(value(a))} + ${signed(value(b))}`,
  number: value(a) + value(b),
  strips: [[a], [b]],
});
const same = (a, whose) => ({
  figures: `the same number as ${whose}`,
  number: value(a),
  strips: [[a]],
});
const learned = (figures) => (cell) => ({
  figures: figures(cell),
  number: value(cell),
  strips: [],
});
const projecting = (W, { l, c, i, j }) =>
  product(
    row("T1", { l }, i, model.config.model_dim),
    column(W, { l, c }, j, model.config.model_dim),
  );
const future = ({ i, j }) => now.switches.causal && j > i;

export const EXPLAIN = {
  E: learned(({ i }) => `learned in training; the row of id ${i}, ${quoted(vocabulary[i])}`),
  P: learned(({ i }) => `learned in training; row ${i + 1} is for token ${i + 1}`),
  X: ({ i, j }) => adding({ name: "E", i: now.ids[i], j }, { name: "P", i, j }),
  X_in: ({ l, i, j }) =>
    l ? same({ name: "H", l: l - 1, i, j }, `H of block ${l}`) : same({ name: "X", i, j }, "X"),
  T1: (cell) => norming("X_in", { l: cell.l }, own(cell.l).norm_1, cell),
  Q: (cell) => projecting("W_Q", cell),
  K: (cell) => projecting("W_K", cell),
  V: (cell) => projecting("W_V", cell),
  scores: ({ l, c, i, j }) =>
    product(
      row("Q", { l, c }, i, dk()),
      row("K", { l, c }, j, dk()),
      now.switches.scaled ? { over: dk() } : {},
    ),
  masked: (cell) =>
    future(cell)
      ? {
          figures:
            `${quoted(now.words[cell.j])} comes after ` + `${quoted(now.words[cell.i])}: its score`,
          number: -Infinity,
          strips: [],
        }
      : same({ ...cell, name: "scores" }, "the score"),
  alpha: ({ l, c, i, j }) =>
    softened(
      now.words.map((_, k) => ({ name: future({ i, j: k }) ? "masked" : "scores", l, c, i, j: k })),
      j,
    ),
  head: ({ l, c, i, j }) =>
    now.switches.off === l * model.sizes.A + c
      ? { figures: "this head is off: its output", number: 0, strips: [] }
      : product(
          row("alpha", { l, c }, i, now.words.length),
          column("V", { l, c }, j, now.words.length),
        ),
  T2: ({ l, i, j }) => {
    const heads = Array.from({ length: model.sizes.A }, (_, c) =>
      row("head", { l, c }, i, model.sizes.dv),
    ).flat();
    return product(heads, column("W_O", { l }, j, heads.length));
  },
  T3: ({ l, i, j }) => adding({ name: "T2", l, i, j }, { name: "X_in", l, i, j }),
  T4: (cell) => norming("T3", { l: cell.l }, own(cell.l).norm_2, cell),
  hidden: ({ l, i, j }) =>
    product(
      row("T4", { l }, i, model.config.model_dim),
      column("W_1", { l }, j, model.config.model_dim),
      { bias: own(l).ffn.b_1.data[j], relu: true },
    ),
  T5: ({ l, i, j }) =>
    product(
      row("hidden", { l }, i, model.sizes.hidden),
      column("W_2", { l }, j, model.sizes.hidden),
      { bias: own(l).ffn.b_2.data[j] },
    ),
  H: ({ l, i, j }) => adding({ name: "T5", l, i, j }, { name: "T3", l, i, j }),
  final: (cell) => {
    const top = { l: model.config.num_blocks - 1 };
    return now.switches.finalNorm
      ? norming("H", top, model.weights.stack.final_norm, cell)
      : same({ ...cell, ...top, name: "H" }, "H of the last block");
  },
  u: ({ i, j }) =>
    product(row("final", {}, i, model.config.model_dim), row("E", {}, j, model.config.model_dim)),
  y: ({ i, j }) => softened(row("u", {}, i, vocabulary.length), j, now.switches.tau),
};
for (const W of ["W_Q", "W_K", "W_V", "W_O", "W_1", "W_2"])
  EXPLAIN[W] = learned(() => "learned in training");
