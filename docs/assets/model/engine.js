/* The Transformer of the book in a page: its letters, its order, no library.
   The slug after "Source:" names an equation, as everywhere in slp_transformer; in the site's index
   of equations it has its numbers. A matrix has a token in each row, as X [N×d].
   At the end: reading what a training run keeps.

   A runtime for exported models would bring megabytes, and show none of the matrices between; tests
   hold this equal to PyTorch. */

import {
  BOOK,
  END_TOKEN,
  KEY_NAMES,
  ROPE_TYPES,
  SETTINGS,
  SILENT_TOKENS,
  TAB_TOKENS,
  TIME_SIGNATURES,
  TOKEN_TYPES,
  TUNINGS,
  UNKNOWN_TOKENS,
} from "./constants.js";

/** @import { Config, RopeScaling, Setting } from "./constants.js" */
/** @typedef {Float32Array<ArrayBuffer>} Logits u, one for each word. */
/** @typedef {{ gamma: Tensor, beta: Tensor }} Norm β of the book's alone. */
/** @typedef {{ W_QKV: Tensor, b_QKV?: Tensor, W_O: Tensor, b_O?: Tensor, norm_Q?: Norm,
     norm_K?: Norm }} Attention */
/** @typedef {{ W_1: Tensor, b_1?: Tensor, W_2: Tensor, b_2?: Tensor, W_3?: Tensor,
     b_3?: Tensor }} FeedForward */
/** @typedef {{ attention: Attention, ffn: FeedForward, norm_1: Norm, norm_2: Norm }} Block */
/** @typedef {{ embedding: { tokens: { E: Tensor }, positions: { P: Tensor } }, E_out?: Tensor,
     stack: { blocks: Block[], final_norm?: Norm } }} Weights */
/** @typedef {{ A: number, G: number, dk: number, dv: number, hidden: number, activation: string,
     norm: string, normalization: string, eps: number }} Sizes */
/** @typedef {(name: string, X: Tensor) => Tensor} Point */
/** @typedef {(name: string, X: Tensor, block: number | null) => Tensor | undefined} Hook */
/** @typedef {{ cache?: KVCache | null, hook?: Hook | null, causal?: boolean, scaled?: boolean,
     finalNorm?: boolean, last?: boolean }} How */
/** @typedef {{ cache: KVCache | null, scaled: boolean, finalNorm: boolean, start: number,
     block: number | null, sizes: Sizes, point: Point, angles: Float32Array | null,
     mask: Tensor | null }} Pass */
/** @typedef {{ count?: number, options?: Record<string, number>, stop?: number[],
     random?: () => number, allowed?: ((ids: number[]) => Iterable<number>) | null }} Writing */
/** @typedef {{ row?: (model: LanguageModel, i: number) => Float32Array,
     angles?: (model: LanguageModel) => Float32Array }} Positions */
/** @typedef {{ kind: string, vocabulary: string[], end: number | undefined,
     encode: (text: string) => number[], decode: (ids: Iterable<number>) => string }} Tokenizer */
/** @typedef {{ model: LanguageModel, tokenizer: Tokenizer }} Run */
/** @typedef {any} Json What a file says, before it is checked. */
/** @typedef {{ max_fret: number, max_position: number, steps_per_quarter_options: number[],
     styles: string[] }} TabSettings */

/** What a reader is told, in one sentence, when something cannot be used. */
export class Refusal extends Error {}

// --- Tensors -----------------------------------------------------------------------------------

/** Numbers in float32 and their shape; the last axis lies together. */
export class Tensor {
  /** @param {number[]} shape @param {Float32Array<ArrayBuffer>} [data] */
  constructor(shape, data = new Float32Array(shape.reduce((a, b) => a * b, 1))) {
    this.shape = shape;
    this.data = data;
  }
  get rows() {
    return this.shape.at(-2) ?? 1;
  }
  get columns() {
    return this.shape[this.shape.length - 1];
  }
  /** @type {(i: number) => Float32Array<ArrayBuffer>} */
  row(i) {
    return this.data.subarray(i * this.columns, (i + 1) * this.columns);
  }
  /** A view of head c of [A×N×d]. @type {(c: number) => Tensor} */
  matrix(c) {
    const size = this.rows * this.columns;
    return new Tensor([this.rows, this.columns], this.data.subarray(c * size, (c + 1) * size));
  }
  copy() {
    return new Tensor(this.shape, this.data.slice());
  }
  /** @type {(f: (x: number, k: number) => number) => Tensor} */
  map(f) {
    return new Tensor(this.shape, this.data.map(f));
  }
  /** The transpose, made once: a product reads the columns of a weight matrix as rows. */
  get T() {
    if (!this.turned) {
      const { rows, columns, data } = this,
        T = new Tensor([columns, rows]);
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++) T.data[j * rows + i] = data[i * columns + j];
      this.turned = T;
    }
    return this.turned;
  }
}

/** @type {(a: Float32Array, i: number, b: Float32Array, j: number, n: number) => number} */
function dot(a, i, b, j, n) {
  let s = 0,
    t = 0,
    u = 0,
    v = 0,
    k = 0;
  for (; k + 3 < n; k += 4) {
    s += a[i + k] * b[j + k];
    t += a[i + k + 1] * b[j + k + 1];
    u += a[i + k + 2] * b[j + k + 2];
    v += a[i + k + 3] * b[j + k + 3];
  }
  for (; k < n; k++) s += a[i + k] * b[j + k];
  return s + t + (u + v);
}

/** X Wᵀ, each row of X with each row of W. @type {(X: Tensor, W: Tensor) => Tensor} */
function timesTransposed(X, W) {
  const n = X.columns,
    m = W.rows,
    Y = new Tensor([X.rows, m]);
  for (let i = 0; i < X.rows; i++)
    for (let j = 0; j < m; j++) Y.data[i * m + j] = dot(X.data, i * n, W.data, j * n, n);
  return Y;
}

/** X W + b; without b, X W. @type {(X: Tensor, W: Tensor, b?: Tensor) => Tensor} */
export function affine(X, W, b) {
  const Y = timesTransposed(X, W.T),
    m = W.columns;
  if (b) for (let k = 0; k < Y.data.length; k++) Y.data[k] += b.data[k % m];
  return Y;
}

/** @type {(X: Tensor, Y: Tensor) => Tensor} */
export function add(X, Y) {
  return X.map((x, k) => x + Y.data[k]);
}

/** A heads of d_k columns out of [N×Ad_k], from a column on: [A×N×d_k]. Source: `mh-par-qkv`
   @type {(X: Tensor, A: number, share: number, from?: number) => Tensor} */
export function splitHeads(X, A, share, from = 0) {
  const N = X.rows,
    heads = new Tensor([A, N, share]);
  for (let c = 0; c < A; c++) {
    for (let i = 0; i < N; i++) {
      const begin = i * X.columns + from + c * share;
      heads.data.set(X.data.subarray(begin, begin + share), (c * N + i) * share);
    }
  }
  return heads;
}

/** Heads side by side, head¹ ⊕ … ⊕ headᴬ: [A×N×d_v] becomes [N×Ad_v]. Source: `mh-concat`
   @type {(heads: Tensor) => Tensor} */
export function joinHeads(heads) {
  const [A, N, share] = heads.shape,
    X = new Tensor([N, A * share]);
  for (let c = 0; c < A; c++)
    for (let i = 0; i < N; i++)
      X.data.set(
        heads.data.subarray((c * N + i) * share, (c * N + i + 1) * share),
        i * A * share + c * share,
      );
  return X;
}

/** @type {(matrices: Tensor[]) => Tensor} */
function stacked(matrices) {
  const { rows, columns } = matrices[0],
    X = new Tensor([matrices.length, rows, columns]);
  matrices.forEach((M, c) => X.data.set(M.data, c * rows * columns));
  return X;
}

// --- Attention ---------------------------------------------------------------------------------

/** 0 where query i may see key j, −∞ in its future; the queries are the last N of M tokens.
   Source: `mask` @type {(N: number, M: number) => Tensor} */
export function causalMask(N, M) {
  const mask = new Tensor([N, M]);
  for (let i = 0; i < N; i++) mask.row(i).fill(-Infinity, M - N + i + 1);
  return mask;
}

/** Q Kᵀ / √d_k. Source: `QK^T`, `mh-score`
   @type {(Q: Tensor, K: Tensor, scaled?: boolean) => Tensor} */
export function scoresOf(Q, K, scaled = true) {
  const scores = timesTransposed(Q, K);
  const root = scaled ? Math.sqrt(Q.columns) : 1;
  for (let k = 0; k < scores.data.length; k++) scores.data[k] /= root;
  return scores;
}

/** e^u over the sum of its row. A row of nothing but −∞ becomes zeros. Source: `probs`,
   `mh-alpha` @type {(U: Tensor) => Tensor} */
export function softmax(U) {
  const Y = new Tensor(U.shape);
  for (let i = 0; i * U.columns < U.data.length; i++) {
    const u = U.row(i),
      y = Y.row(i);
    let top = -Infinity,
      sum = 0;
    for (const x of u) if (x > top) top = x;
    if (top === -Infinity) continue;
    for (let j = 0; j < u.length; j++) sum += y[j] = Math.exp(u[j] - top);
    for (let j = 0; j < u.length; j++) y[j] /= sum;
  }
  return Y;
}

/** α = softmax(mask(scores)). Source: `mh-alpha`
   @type {(scores: Tensor, mask: Tensor | null) => Tensor} */
export function weightsOf(scores, mask) {
  return softmax(mask ? add(scores, mask) : scores);
}

/** α V, the values that each query gathers. Source: `mh-par-head`
   @type {(alpha: Tensor, V: Tensor) => Tensor} */
export function gather(alpha, V) {
  const d = V.columns,
    head = new Tensor([alpha.rows, d]);
  for (let i = 0; i < alpha.rows; i++) {
    const sum = head.row(i),
      a = alpha.row(i);
    for (let j = 0; j < a.length; j++) {
      const weight = a[j];
      if (weight !== 0) for (let f = 0; f < d; f++) sum[f] += weight * V.data[j * d + f];
    }
  }
  return head;
}

/** head = softmax(mask(Q Kᵀ / √d_k)) V, and its weights. Source: `head-par`
   @type {(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | null) => [Tensor, Tensor]} */
export function attention(Q, K, V, mask) {
  const alpha = weightsOf(scoresOf(Q, K), mask);
  return [gather(alpha, V), alpha];
}

/** (head¹ ⊕ … ⊕ headᴬ) W^O. Source: `mh-par-qkv`, `mh-par-head`, `mh-par-out`
   @type {(X: Tensor, W: Attention, pass: Pass) => Tensor} */
export function multiHeadAttention(X, W, pass) {
  const { A, G, dk, dv } = pass.sizes,
    { point } = pass;
  const QKV = affine(X, W.W_QKV, W.b_QKV);
  let Q = splitHeads(QKV, A, dk),
    K = splitHeads(QKV, G, dk, A * dk),
    V = splitHeads(QKV, G, dv, (A + G) * dk);
  if (W.norm_Q && W.norm_K) {
    Q = rmsNorm(Q, W.norm_Q, pass.sizes.eps);
    K = rmsNorm(K, W.norm_K, pass.sizes.eps);
  }
  if (pass.angles) {
    Q = rotate(Q, pass.start, pass.angles);
    K = rotate(K, pass.start, pass.angles);
  }
  Q = point("Q", Q);
  K = point("K", K);
  V = point("V", V);
  const [keys, values] = pass.cache
    ? pass.cache.update(pass.block ?? 0, K, V)
    : [matricesOf(K), matricesOf(V)];
  // heads of a group share keys and values
  const group = (/** @type {number} */ c) => Math.floor((c * G) / A);
  const heads = [...Array(A).keys()];
  const scores = point(
    "scores",
    stacked(heads.map((c) => scoresOf(Q.matrix(c), keys[group(c)], pass.scaled))),
  );
  const alpha = point("alpha", stacked(heads.map((c) => weightsOf(scores.matrix(c), pass.mask))));
  const head = point("head", stacked(heads.map((c) => gather(alpha.matrix(c), values[group(c)]))));
  return affine(joinHeads(head), W.W_O, W.b_O);
}

/** @type {(X: Tensor) => Tensor[]} */
function matricesOf(X) {
  return [...Array(X.shape[0]).keys()].map((c) => X.matrix(c));
}

/** Turn the pairs (i, i + d_k/2) of each row by an angle that grows with its position.
   Source: `rope` @type {(X: Tensor, start: number, thetas: Float32Array) => Tensor} */
export function rotate(X, start, thetas) {
  const [A, N, d] = X.shape,
    half = d / 2,
    Y = new Tensor(X.shape);
  for (let c = 0; c < A; c++) {
    for (let i = 0; i < N; i++) {
      const begin = (c * N + i) * d;
      for (let k = 0; k < half; k++) {
        const angle = Math.fround((start + i) * thetas[k]),
          cos = Math.cos(angle),
          sin = Math.sin(angle);
        const x = X.data[begin + k],
          y = X.data[begin + half + k];
        Y.data[begin + k] = x * cos - y * sin;
        Y.data[begin + half + k] = y * cos + x * sin;
      }
    }
  }
  return Y;
}

/** How the angle of a pair is stretched to a longer context.
   @type {Record<string, (theta: number, scaling: RopeScaling) => number>} */
const STRETCHES = {
  linear: (theta, { factor }) => theta / factor,
  llama3: (theta, { factor, original_context_length, low_freq_factor, high_freq_factor }) => {
    const turns = (original_context_length * theta) / (2 * Math.PI);
    const share = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
    const keep = Math.min(1, Math.max(0, share));
    return keep * theta + ((1 - keep) * theta) / factor;
  },
};

/** The angle that each pair turns from one position to the next, base^(−2i/d_k), stretched if asked
   for. @type {(dk: number, base: number, scaling: RopeScaling | null) => Float32Array} */
export function rotaryAngles(dk, base, scaling) {
  const pairs = dk / 2;
  return Float32Array.from({ length: pairs }, (_, i) => {
    const theta = base ** -(i / pairs);
    return scaling ? STRETCHES[scaling.rope_type](theta, scaling) : theta;
  });
}

/** The keys and values of all tokens so far. Source: `kv-attn` */
export class KVCache {
  length = 0;
  /** @type {{ K: Float32Array<ArrayBuffer>[], V: Float32Array<ArrayBuffer>[] }[]} */
  kept = [];
  /** Add those of the next tokens to block l's; return, head by head, those of all.
     @type {(l: number, K: Tensor, V: Tensor) => [Tensor[], Tensor[]]} */
  update(l, K, V) {
    const total = this.length + K.rows,
      kept = (this.kept[l] ??= { K: [], V: [] });
    const grown = (/** @type {Float32Array<ArrayBuffer>[]} */ rooms, /** @type {Tensor} */ X) =>
      matricesOf(X).map((M, g) => {
        let room = rooms[g];
        if (!room || room.length < total * M.columns) {
          room = new Float32Array(Math.max(total, 2 * this.length, 64) * M.columns);
          if (rooms[g]) room.set(rooms[g].subarray(0, this.length * M.columns));
          rooms[g] = room;
        }
        room.set(M.data, this.length * M.columns);
        return new Tensor([total, M.columns], room.subarray(0, total * M.columns));
      });
    return [grown(kept.K, K), grown(kept.V, V)];
  }
}

// --- The block and the stack -------------------------------------------------------------------

/** γ (x − μ)/σ + β for each row. Source: `ln-mean` to `ln`
   @type {(X: Tensor, W: Norm, eps: number) => Tensor} */
export function layerNorm(X, { gamma, beta }, eps) {
  const d = X.columns,
    Y = new Tensor(X.shape);
  for (let begin = 0; begin < X.data.length; begin += d) {
    let mean = 0,
      variance = 0;
    for (let j = 0; j < d; j++) mean += X.data[begin + j] / d;
    for (let j = 0; j < d; j++) variance += (X.data[begin + j] - mean) ** 2 / d;
    const sigma = Math.sqrt(variance + eps);
    for (let j = 0; j < d; j++)
      Y.data[begin + j] = (gamma.data[j] * (X.data[begin + j] - mean)) / sigma + beta.data[j];
  }
  return Y;
}

/** γ x over its root mean square, for each row (Zhang and Sennrich 2019).
   @type {(X: Tensor, W: Norm, eps: number) => Tensor} */
export function rmsNorm(X, { gamma }, eps) {
  const d = X.columns,
    Y = new Tensor(X.shape);
  for (let begin = 0; begin < X.data.length; begin += d) {
    const root = Math.sqrt(dot(X.data, begin, X.data, begin, d) / d + eps);
    for (let j = 0; j < d; j++) Y.data[begin + j] = (gamma.data[j] * X.data[begin + j]) / root;
  }
  return Y;
}

/** The norms that a model can have: how each is computed, and what it learns.
   @type {Record<string, { compute: typeof layerNorm, learned: string[] }>} */
const NORMALIZATIONS = {
  layer: { compute: layerNorm, learned: ["gamma", "beta"] },
  rms: { compute: rmsNorm, learned: ["gamma"] },
};

/** The norm that a model of these sizes has.
   @type {(X: Tensor, W: Norm, sizes: Sizes) => Tensor} */
export const norm = (X, W, sizes) => NORMALIZATIONS[sizes.normalization].compute(X, W, sizes.eps);

/** Abramowitz and Stegun 7.1.26, to 1.5e-7. @type {(x: number) => number} */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const rest =
    ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return Math.sign(x) * (1 - rest * Math.exp(-x * x));
}

/** What a feedforward layer does to each of its numbers, and whether a gate is multiplied.
   @type {Record<string, { of: (x: number) => number, isGated?: boolean }>} */
const ACTIVATIONS = {
  relu: { of: (x) => Math.max(0, x) },
  gelu: { of: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)) },
  gelu_tanh: {
    of: (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  },
  relu2: { of: (x) => Math.max(0, x) ** 2 },
  swiglu: { of: (x) => x / (1 + Math.exp(-x)), isGated: true }, // of the gate. Source: `swish`
};

/** ReLU(x W₁ + b₁) W₂ + b₂, or with a gate. Source: `ffn`, `swiglu`
   @type {(X: Tensor, W: FeedForward, pass: Pass) => Tensor} */
export function ffn(X, W, pass) {
  let hidden = affine(X, W.W_1, W.b_1).map(ACTIVATIONS[pass.sizes.activation].of);
  if (W.W_3) {
    const gated = affine(X, W.W_2, W.b_2);
    hidden = hidden.map((gate, k) => gate * gated.data[k]);
  }
  hidden = pass.point("hidden", hidden);
  return W.W_3 ? affine(hidden, W.W_3, W.b_3) : affine(hidden, W.W_2, W.b_2);
}

/** The sublayers of a block and its norms, in their order.
   @type {Record<string, (X: Tensor, W: Block, pass: Pass) => Tensor>} */
const NORM_ORDERS = {
  /** Source: `T1` to `T-H` */
  pre: (X, W, pass) => {
    const { point, sizes } = pass;
    const T1 = point("T1", norm(X, W.norm_1, sizes));
    const T2 = point("T2", multiHeadAttention(T1, W.attention, pass));
    const T3 = point("T3", add(T2, X));
    const T4 = point("T4", norm(T3, W.norm_2, sizes));
    const T5 = point("T5", ffn(T4, W.ffn, pass));
    return point("H", add(T5, T3));
  },
  /** Source: `postnorm-t` */
  post: (X, W, pass) => {
    const { point, sizes } = pass;
    const T1 = point("T1", multiHeadAttention(X, W.attention, pass));
    const T2 = point("T2", add(T1, X));
    const T3 = point("T3", norm(T2, W.norm_1, sizes));
    const T4 = point("T4", ffn(T3, W.ffn, pass));
    const T5 = point("T5", add(T4, T3));
    return point("H", norm(T5, W.norm_2, sizes));
  },
};

/** One block of the residual stream. @type {(X: Tensor, W: Block, pass: Pass) => Tensor} */
export function block(X, W, pass) {
  return NORM_ORDERS[pass.sizes.norm](pass.point("X", X), W, pass);
}

/** Block after block, then in pre-norm the final norm. Source: `stack`, `final-ln`
   @type {(X: Tensor, W: Weights['stack'], pass: Pass) => Tensor} */
export function stack(X, W, pass) {
  W.blocks.forEach((own, l) => {
    pass.block = l;
    X = block(X, own, pass);
  });
  pass.block = null;
  if (W.final_norm && pass.finalNorm) X = norm(X, W.final_norm, pass.sizes);
  return pass.point("final", X);
}

/** u = h Eᵀ. Source: `logits` @type {(H: Tensor, E: Tensor) => Tensor} */
export function lmHead(H, E) {
  return timesTransposed(H, E);
}

/** Row `position` of the fixed positions. Source: `sinusoid`
   @type {(position: number, d: number) => Float32Array} */
export function sinusoid(position, d) {
  return Float32Array.from({ length: d }, (_, k) => {
    const angle = position * Math.exp((k - (k % 2)) * (-Math.log(10000) / d));
    return k % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

/** How a token's row learns its place: what is added to it, or how queries and keys are turned.
   @type {Record<string, Positions>} */
const POSITIONS = {
  learned: { row: (model, i) => model.weights.embedding.positions.P.row(i) },
  sinusoidal: { row: (model, i) => sinusoid(i, model.config.model_dim) },
  rotary: {
    angles: ({ sizes, config }) => rotaryAngles(sizes.dk, config.rope_base, config.rope_scaling),
  },
};

/** A language model: its settings, and its weights by the names of slp_transformer. */
export class LanguageModel {
  /** @param {Config} config @param {Record<string, Tensor>} weights */
  constructor(config, weights) {
    this.config = config;
    this.sizes = sizesOf(config);
    this.weights = nested(weights);
  }
  get E() {
    return this.weights.embedding.tokens.E;
  }
  /** X = E[id] + P[i]. Source: `X`
     @type {(ids: number[], start: number, point: Point) => Tensor} */
  embed(ids, start, point) {
    const { model_dim: d, vocab_size, context_length, scaled_embeddings } = this.config;
    const { row } = POSITIONS[this.config.positions];
    if (start + ids.length > context_length)
      throw new Refusal(
        `The model has ${context_length} positions, and ${start + ids.length} tokens do not fit.`,
      );
    const E = new Tensor([ids.length, d]),
      P = new Tensor([ids.length, d]);
    ids.forEach((id, i) => {
      if (!Number.isInteger(id) || id < 0 || id >= vocab_size)
        throw new Refusal(`Ids go from 0 to ${vocab_size - 1}, not ${id}.`);
      E.row(i).set(this.E.row(id));
      if (row) P.row(i).set(row(this, start + i));
    });
    const tokens = point("E", scaled_embeddings ? E.map((x) => x * Math.sqrt(d)) : E);
    return row ? add(tokens, point("P", P)) : tokens;
  }
  /** The logits U of the word after each of these ids; with a cache they go on from its tokens.

     `hook(name, tensor, block)` is called at each named point and may return another tensor of the
     same shape. The points are those of slp_transformer.hooks (X, T1 to T5 and H, Q, K, V, alpha,
     head), counted by block from 0, and six more: scores (before the mask), hidden (of the
     feedforward layer), and outside of blocks, where block is null, E, P, final and U. `causal`,
     `scaled` (by √d_k) and `finalNorm` can be turned off; `last` asks for the last row alone.
     @type {(ids: number[], how?: How) => Tensor} */
  forward(
    ids,
    {
      cache = null,
      hook = null,
      causal = true,
      scaled = true,
      finalNorm = true,
      last = false,
    } = {},
  ) {
    const start = cache ? cache.length : 0,
      N = ids.length;
    /** @type {Pass} */
    const pass = {
      ...{ cache, scaled, finalNorm, start, block: null, sizes: this.sizes },
      point: hook ? (name, X) => sameShape(name, X, hook(name, X, pass.block)) : (_, X) => X,
      angles: POSITIONS[this.config.positions].angles?.(this) ?? null,
      mask: causal && N > 1 ? causalMask(N, start + N) : null,
    };
    const X = this.embed(ids, start, pass.point);
    let H = stack(X, this.weights.stack, pass);
    if (cache) cache.length += N;
    if (last) H = new Tensor([1, H.columns], H.row(N - 1));
    return pass.point("U", lmHead(H, this.weights.E_out ?? this.E));
  }
}

/** @type {(name: string, X: Tensor, other: Tensor | undefined | void) => Tensor} */
function sameShape(name, X, other) {
  if (!other) return X;
  if (String(other.shape) !== String(X.shape))
    throw new Refusal(
      `The hook at ${name} returned ${other.shape.join(" × ")} in place of ${X.shape.join(" × ")}.`,
    );
  return other;
}

/** A hook that turns heads off: their output becomes zeros.
   @type {(heads: { block: number, head: number }[]) => Hook} */
export function headsOff(heads) {
  return (name, X, l) => {
    const off = heads.filter((one) => name === "head" && one.block === l);
    if (!off.length) return undefined;
    const Y = X.copy();
    off.forEach(({ head }) => Y.matrix(head).data.fill(0));
    return Y;
  };
}

// --- Choosing the next word --------------------------------------------------------------------

/** u/τ. Source: `temperature` @type {(u: Logits, tau: number) => Logits} */
const temperature = (u, tau) => u.map((x) => x / tau);

/** @type {(u: Logits) => number[]} */
const ordered = (u) => [...u.keys()].sort((a, b) => u[b] - u[a] || a - b);
/** @type {(u: Logits, kept: Iterable<number>) => Logits} */
const keeping = (u, kept) => {
  const some = new Set(kept);
  return u.map((x, w) => (some.has(w) ? x : -Infinity));
};

/** Keep the k largest; the others become −∞. Source: `top-k`
   @type {(u: Logits, k: number) => Logits} */
const topK = (u, k) => (k >= u.length ? u : keeping(u, ordered(u).slice(0, k)));

/** Keep the fewest words whose probabilities sum to at least p. Source: `top-p`
   @type {(u: Logits, p: number) => Logits} */
function topP(u, p) {
  if (p >= 1) return u;
  const y = softmax(new Tensor([1, u.length], u)).data;
  let before = 0;
  return keeping(
    u,
    ordered(u).filter((w) => {
      const stays = before < p;
      before += y[w];
      return stays;
    }),
  );
}

/** Keep the words with at least p times the largest probability. Source: Nguyen et al. 2024
   @type {(u: Logits, p: number) => Logits} */
function minP(u, p) {
  const top = Math.max(...u);
  return u.map((x) => (Math.exp(x - top) >= p * (1 - 2 ** -21) ? x : -Infinity));
}

/** Divide positive logits of the words in `ids` by θ, and multiply others. Source: Keskar et al.
   2019 @type {(u: Logits, theta: number, ids: number[]) => Logits} */
function repetitionPenalty(u, theta, ids) {
  const seen = new Set(ids);
  return u.map((x, w) => (seen.has(w) ? (x > 0 ? x / theta : x * theta) : x));
}

/** The sampling options in the order in which they are applied: Python's table `SAMPLING`.
   @type {Record<string, (u: Logits, value: number, ids: number[]) => Logits>} */
export const SAMPLING = {
  repetition_penalty: repetitionPenalty,
  temperature,
  top_k: topK,
  top_p: topP,
  min_p: minP,
};

/** Apply the options that are given to logits; `ids` are the tokens so far. With temperature 0
   only the most probable word is left.
   @type {(u: Logits, options: Record<string, number>, ids: number[]) => Logits} */
export function filterLogits(u, options, ids) {
  for (const [name, filter] of Object.entries(SAMPLING)) {
    if (options[name] === undefined) continue;
    u = name === "temperature" && options[name] === 0 ? topK(u, 1) : filter(u, options[name], ids);
  }
  return u;
}

/** The most probable word. Source: `greedy` @type {(u: Logits) => number} */
export const greedy = (u) => u.reduce((best, x, w) => (x > u[best] ? w : best), 0);

/** A word drawn as often as its probability says; `random` gives numbers from 0 to 1.
   Source: `random` @type {(u: Logits, random: () => number) => number} */
export function sample(u, random) {
  const y = softmax(new Tensor([1, u.length], u)).data;
  let left = random(),
    drawn = greedy(u);
  for (let w = 0; w < y.length; w++) {
    if (y[w] === 0) continue;
    drawn = w;
    left -= y[w];
    if (left < 0) break;
  }
  return drawn;
}

/** The same numbers from 0 to 1 for the same seed (mulberry32).
   @type {(seed: number) => () => number} */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Write on after `ids`, a word at a time: yields each new id, and stops where the window ends.
    `options` are those of `SAMPLING`; `allowed(ids)` may name the words that can come next.
   @param {LanguageModel} model @param {number[]} ids @param {How & Writing} how */
export function* generate(
  model,
  ids,
  { count = Infinity, options = {}, stop = [], random = Math.random, allowed = null, ...how } = {},
) {
  if (!ids.length) throw new Refusal("A model goes on from one token at least.");
  const cache = new KVCache(),
    text = [...ids];
  let next = text;
  while (count-- > 0 && text.length < model.config.context_length) {
    let u = model.forward(next, { ...how, cache, last: true }).row(0);
    if (allowed) u = keeping(u, allowed(text));
    const id = sample(filterLogits(u, options, text), random);
    text.push(id);
    next = [id];
    yield id;
    if (stop.includes(id)) return;
  }
}

// --- What a training run keeps -----------------------------------------------------------------

export const MAX_BYTES = 1 << 28;
/** @type {(least?: number) => (x: Json) => boolean} */
const size =
  (least = 1) =>
  (x) =>
    Number.isSafeInteger(x) && x >= least;

/** What stretches rotary angles: of a known type, with numbers above 0.
   @type {(x: Json) => boolean} */
function isRopeScaling(x) {
  const numbers = ["factor", "original_context_length", "low_freq_factor", "high_freq_factor"];
  const others = ["rope_type", "beta_fast", "beta_slow", "attention_factor"]; // the last of yarn
  const known =
    isObject(x) &&
    ROPE_TYPES.includes(x.rope_type) &&
    Object.hasOwn(STRETCHES, x.rope_type) &&
    Object.keys(x).every((name) => [...numbers, ...others].includes(name));
  return known && numbers.every((name) => x[name] > 0) && x.low_freq_factor < x.high_freq_factor;
}

/** The biases of an attention layer. @type {Record<string, string[]>} */
const ATTENTION_BIASES = { false: [], qkv: ["b_QKV"], true: ["b_QKV", "b_O"] };
/** What this page can compute of the choices that the package has.
   @type {Record<string, Record<string, unknown>>} */
const COMPUTED = {
  activation: ACTIVATIONS,
  norm: NORM_ORDERS,
  normalization: NORMALIZATIONS,
  positions: POSITIONS,
  attention_bias: ATTENTION_BIASES,
};
/** Other settings that matter to what a model computes. */
const READ = new Set(
  "vocab_size context_length model_dim num_heads num_blocks key_dim value_dim hidden_dim".split(
    " ",
  ),
);
for (const name of ["num_kv_heads", "scaled_embeddings", "qk_norm", "ffn_bias", "tied"])
  READ.add(name);
/** Those with a range of their own. @type {Record<string, (x: any) => boolean>} */
const RANGES = { eps: (x) => x >= 0, rope_base: (x) => x > 1, rope_scaling: isRopeScaling };
/** Settings of training, and of what is around a model: it computes the same with any value. */
const IGNORED = new Set([
  "dropout",
  "initialization",
  "zero_init",
  "source_vocab_size",
  "num_encoder_blocks",
  "begin_id",
  "end_ids",
  "pad_id",
]);

/** Why a setting cannot be used; "" if it can.
   @type {(name: string, value: Json, setting: Setting) => string} */
function findFault(name, value, { kind, default: usual, choices }) {
  if (IGNORED.has(name)) return "";
  const computed = COMPUTED[name];
  if (!computed && !READ.has(name) && !Object.hasOwn(RANGES, name))
    return JSON.stringify(value) === JSON.stringify(usual) ? "" : "which this page does not know";
  if (value === null && kind.endsWith("?")) return "";
  const known = choices?.filter((choice) => !computed || Object.hasOwn(computed, String(choice)));
  const isOfKind = known
    ? known.includes(value)
    : kind.startsWith("size")
      ? size()(value)
      : kind.startsWith("other") || Number.isFinite(value);
  if (isOfKind && (RANGES[name]?.(value) ?? true)) return "";
  return `which cannot be used${known ? `: this page knows ${known.join(", ")}` : ""}`;
}

/** @type {(x: Json) => boolean} */
const isObject = (x) => typeof x === "object" && x !== null && !Array.isArray(x);

/** The JSON in a file. @type {(bytes: Uint8Array, name: string) => Json} */
export function readJSON(bytes, name) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new Refusal(`${name} is no JSON.`);
  }
}

/** The settings in config.json, each of them checked. What this page does not know has to be as it
   is by default, which a run says of its own version in "defaults".
   @type {(content: Json) => Config} */
export function readConfig(content) {
  if (!isObject(content) || !("model" in content))
    throw new Refusal("config.json is not from a run of slp_transformer: it names no model.");
  const settings = Object.hasOwn(SETTINGS, content.model) ? SETTINGS[content.model] : null;
  if (!settings || !isObject(content.config))
    throw new Refusal(
      `config.json names ${JSON.stringify(content.model)}; this page reads language models, ` +
        `${Object.keys(SETTINGS).join(" and ")}.`,
    );
  const given = content.config,
    usual = isObject(content.defaults) ? content.defaults : {};
  for (const [name, value] of Object.entries(given)) {
    const isUsual =
      Object.hasOwn(usual, name) && JSON.stringify(value) === JSON.stringify(usual[name]);
    if (!Object.hasOwn(settings, name) && !isUsual)
      throw new Refusal(`config.json has ${name}, which this page does not know.`);
  }
  const config = /** @type {Config & Record<string, Json>} */ ({ ...BOOK });
  for (const [name, setting] of Object.entries(settings)) {
    const from = [given, usual].find((some) => Object.hasOwn(some, name));
    config[name] = from ? from[name] : setting.default;
    const fault = findFault(name, config[name], setting);
    if (fault)
      throw new Refusal(`config.json says ${name} = ${JSON.stringify(config[name])}, ${fault}.`);
  }
  const { A, G, dk } = sizesOf(config);
  if (!Number.isInteger(dk))
    throw new Refusal(`${A} heads do not divide model_dim = ${config.model_dim}.`);
  if (A % G) throw new Refusal(`num_kv_heads = ${G} does not divide num_heads = ${A}.`);
  if (config.positions === "rotary" && dk % 2)
    throw new Refusal(`Rotary positions turn pairs, and key_dim = ${dk} is odd.`);
  return config;
}

/** @type {(config: Config) => Sizes} */
function sizesOf(config) {
  const { model_dim: d, num_heads: A, activation, norm, normalization, eps } = config;
  const dk = config.key_dim ?? d / A,
    dv = config.value_dim ?? d / A,
    G = config.num_kv_heads ?? A;
  const hidden =
    config.hidden_dim ?? (ACTIVATIONS[activation].isGated ? Math.ceil((8 * d) / 3) : 4 * d);
  return { A, G, dk, dv, hidden, activation, norm, normalization, eps };
}

/** The shape of each tensor that a model of these settings has, by its name.
   @type {(config: Config) => Record<string, number[]>} */
export function shapesOf(config) {
  const { model_dim: d, vocab_size: V } = config,
    { A, G, dk, dv, hidden } = sizesOf(config);
  /** @type {Record<string, number[]>} */
  const shapes = { "embedding.tokens.E": [V, d] };
  const normOf = (/** @type {string} */ name) => {
    for (const one of NORMALIZATIONS[config.normalization].learned) shapes[`${name}.${one}`] = [d];
  };
  if (config.positions === "learned") shapes["embedding.positions.P"] = [config.context_length, d];
  for (let l = 0; l < config.num_blocks; l++) {
    const own = `stack.blocks.${l}`,
      across = A * dk + G * (dk + dv);
    shapes[`${own}.attention.W_QKV`] = [d, across];
    shapes[`${own}.attention.W_O`] = [A * dv, d];
    for (const bias of ATTENTION_BIASES[String(config.attention_bias)])
      shapes[`${own}.attention.${bias}`] = [bias === "b_QKV" ? across : d];
    if (config.qk_norm)
      shapes[`${own}.attention.norm_Q.gamma`] = shapes[`${own}.attention.norm_K.gamma`] = [dk];
    normOf(`${own}.norm_1`);
    const inward = Array(ACTIVATIONS[config.activation].isGated ? 2 : 1).fill([d, hidden]);
    [...inward, [hidden, d]].forEach(([rows, columns], k) => {
      shapes[`${own}.ffn.W_${k + 1}`] = [rows, columns];
      if (config.ffn_bias) shapes[`${own}.ffn.b_${k + 1}`] = [columns];
    });
    normOf(`${own}.norm_2`);
  }
  if (config.norm === "pre") normOf("stack.final_norm");
  if (!config.tied) shapes.E_out = [V, d];
  return shapes;
}

/** {"stack.blocks.0.ffn.W_1": W} as {stack: {blocks: [{ffn: {W_1: W}}]}}.
   @type {(weights: Record<string, Tensor>) => Weights} */
function nested(weights) {
  /** @type {Json} */
  const root = {};
  for (const [name, W] of Object.entries(weights)) {
    const way = name.split("."),
      last = way.pop() ?? "";
    way.reduce((at, step, _k) => (at[step] ??= step === "blocks" ? [] : {}), root)[last] = W;
  }
  return root;
}

/** @type {Float32Array | null} */
let float16 = null;
/** Every number that 16 bits can be as float16, made when the first one is read. */
function float16Table() {
  float16 ??= Float32Array.from({ length: 65536 }, (_, half) => {
    const exponent = (half >> 10) & 31,
      rest = half & 1023,
      sign = half >> 15 ? -1 : 1;
    if (exponent === 31) return rest ? NaN : sign * Infinity;
    return sign * (exponent ? 2 ** (exponent - 15) * (1 + rest / 1024) : 2 ** -14 * (rest / 1024));
  });
  return float16;
}
/** @type {Record<string, number>} */
const BYTES = { F32: 4, F16: 2, BF16: 2 };

/** The tensors in a safetensors file, in float32.
   @type {(bytes: Uint8Array, name?: string) => Record<string, Tensor>} */
export function readSafetensors(bytes, name = "model.safetensors") {
  if (bytes.length < 8)
    throw new Refusal(`${name} is no safetensors file: it has ${bytes.length} bytes.`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    length = view.getBigUint64(0, true);
  if (length > BigInt(bytes.length - 8))
    throw new Refusal(
      `${name} is damaged: its header claims ${length} bytes, but the file has ${bytes.length}.`,
    );
  const first = 8 + Number(length),
    header = readJSON(bytes.subarray(8, first), `The header of ${name}`);
  if (!isObject(header)) throw new Refusal(`The header of ${name} is no object.`);
  /** @type {Record<string, Tensor>} */
  const tensors = {};
  for (const [tensor, entry] of Object.entries(/** @type {Record<string, Json>} */ (header))) {
    if (tensor === "__metadata__") continue;
    const { dtype, shape, data_offsets: offsets } = isObject(entry) ? entry : {};
    if (!Object.hasOwn(BYTES, dtype))
      throw new Refusal(
        `${name} has ${tensor} in ${dtype}; this page reads ${Object.keys(BYTES).join(", ")}.`,
      );
    const sound =
      Array.isArray(shape) &&
      shape.every(size(0)) &&
      Array.isArray(offsets) &&
      offsets.length === 2 &&
      offsets.every(size(0));
    const count = sound ? shape.reduce((a, b) => a * b, 1) : NaN;
    if (!(offsets?.[1] - offsets?.[0] === count * BYTES[dtype]))
      throw new Refusal(`${name} is damaged: ${tensor} has not as many numbers as its shape says.`);
    if (first + offsets[1] > bytes.length)
      throw new Refusal(
        `${name} is truncated: ${tensor} ends at byte ${first + offsets[1]}, but the file ` +
          `has ${bytes.length}.`,
      );
    // aligned, and little-endian as all browsers are
    const own = bytes.slice(first + offsets[0], first + offsets[1]).buffer;
    let data = new Float32Array(dtype === "F32" ? own : count);
    if (dtype === "F16")
      new Uint16Array(own).forEach((half, k) => {
        data[k] = float16Table()[half];
      });
    if (dtype === "BF16")
      data = new Float32Array(Uint32Array.from(new Uint16Array(own), (half) => half << 16).buffer);
    if (!data.every(Number.isFinite))
      throw new Refusal(`${name} cannot be used: ${tensor} has NaN or infinite weights.`);
    tensors[tensor] = new Tensor(shape, data);
  }
  return tensors;
}

/** A model from its settings and a safetensors file, if they fit.
   @type {(content: Json, bytes: Uint8Array, name?: string) => LanguageModel} */
export function readModel(content, bytes, name = "model.safetensors") {
  if (bytes.length > MAX_BYTES)
    throw new Refusal(`${name} has ${bytes.length} bytes; this page reads up to ${MAX_BYTES}.`);
  const config = readConfig(content);
  const numbers = config.num_blocks * config.model_dim; // before that many names are listed
  if (numbers > bytes.length || config.vocab_size > bytes.length)
    throw new Refusal(
      `config.json describes a larger model than ${name}, which has ${bytes.length} bytes.`,
    );
  const weights = readSafetensors(bytes, name),
    shapes = shapesOf(config);
  for (const one of new Set([...Object.keys(shapes), ...Object.keys(weights)])) {
    const here = shapes[one]?.join(" × ") ?? "no such tensor",
      there = weights[one]?.shape.join(" × ") ?? "no such tensor";
    if (here !== there)
      throw new Refusal(`${name} does not fit config.json: ${one} is ${there}, not ${here}.`);
  }
  return new LanguageModel(config, weights);
}

/** The model and the tokenizer of a run, from the files of a checkpoint's folder by their names.
   @type {(files: Record<string, Uint8Array>) => Run} */
export function readRun(files) {
  if (files["lora.safetensors"])
    throw new Refusal(
      "This run keeps only the matrices of LoRA: take the run that it was trained on.",
    );
  for (const name of ["config.json", "tokenizer.json", "model.safetensors"])
    if (!files[name]) throw new Refusal(`The folder has no ${name}.`);
  const model = readModel(
    readJSON(files["config.json"], "config.json"),
    files["model.safetensors"],
  );
  const tokenizer = readTokenizer(readJSON(files["tokenizer.json"], "tokenizer.json"));
  const { vocab_size } = model.config,
    words = tokenizer.vocabulary.length;
  if (words !== vocab_size)
    throw new Refusal(`tokenizer.json has ${words} tokens, but the model ${vocab_size}.`);
  return { model, tokenizer };
}

// --- Tokens ------------------------------------------------------------------------------------

const [UNK, UNKNOWN_WORD] = UNKNOWN_TOKENS,
  SILENT = new Set(SILENT_TOKENS);
const SPACE = "\\p{White_Space}",
  LETTER = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}²³¹¼½¾"; // \\w, as the tokenizers library has it
/** @type {(text: string) => RegExp} */
const pattern = (text) => new RegExp(text, "gu");
const WORDS = pattern(` ?[${LETTER}]+(?:'[${LETTER}]+)*| ?[^${LETTER}${SPACE}]|${SPACE}`);
const BPE = pattern(
  `'(?:[sdmt]|ll|ve|re)| ?[\\p{L}\\p{M}]+| ?\\p{N}+| ` +
    `?[^${SPACE}\\p{L}\\p{M}\\p{N}]+|${SPACE}+(?![^${SPACE}])|${SPACE}+`,
);
/** How a text is cut into tokens, by their type. */
const TOKEN_PATTERNS = new Map([
  ["characters", null],
  ["words", WORDS],
  ["bpe", BPE],
]);

/** The character that stands for each byte in a BPE token, as GPT-2 has it. */
const BYTE_CHARACTERS = (() => {
  let others = 256;
  const prints = (/** @type {number} */ b) =>
    (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  return Array.from({ length: 256 }, (_, b) => String.fromCharCode(prints(b) ? b : others++));
})();
const BYTE_OF = new Map(BYTE_CHARACTERS.map((character, b) => [character, b]));

/** Text as ids and back: characters, words or BPE. @implements {Tokenizer} */
class TextTokenizer {
  /** @param {string} kind @param {string[]} vocabulary @param {[string, string][]} merges */
  constructor(kind, vocabulary, merges) {
    this.kind = kind;
    this.vocabulary = vocabulary;
    this.pattern = TOKEN_PATTERNS.get(kind) ?? WORDS;
    this.ids = new Map(vocabulary.map((token, id) => [token, id]));
    this.ranks = new Map(merges.map(([left, right], rank) => [`${left} ${right}`, rank]));
    this.unknown = this.ids.get(UNK) ?? (kind === "words" ? this.ids.get(UNKNOWN_WORD) : undefined);
  }
  get end() {
    return this.ids.get(END_TOKEN);
  }
  /** @type {(text: string) => number[]} */
  encode(text) {
    if (this.kind === "bpe")
      return (text.match(this.pattern) ?? [])
        .flatMap((word) => this.merged(word))
        .map((token) => this.ids.get(token))
        .filter((id) => id !== undefined);
    return (this.kind === "words" ? (text.match(this.pattern) ?? []) : [...text]).map((token) => {
      const id = this.ids.get(token) ?? this.unknown;
      if (id === undefined)
        throw new Refusal(`The model was not trained on the character ${JSON.stringify(token)}.`);
      return id;
    });
  }
  /** Join the pair that was merged first, until none is left. @type {(word: string) => string[]} */
  merged(word) {
    const parts = Array.from(new TextEncoder().encode(word), (b) => BYTE_CHARACTERS[b]);
    for (;;) {
      let best = Infinity,
        at = -1;
      for (let k = 0; k + 1 < parts.length; k++) {
        const rank = this.ranks.get(`${parts[k]} ${parts[k + 1]}`) ?? Infinity;
        if (rank < best) [best, at] = [rank, k];
      }
      if (at < 0) return parts;
      parts.splice(at, 2, parts[at] + parts[at + 1]);
    }
  }
  /** @type {(ids: Iterable<number>) => string} */
  decode(ids) {
    const tokens = Array.from(ids, (id) => this.vocabulary[id]).filter(
      (token) => !SILENT.has(token),
    );
    if (this.kind !== "bpe") return tokens.join("");
    const bytes = tokens.flatMap((token) =>
      token === UNK ? [...new TextEncoder().encode(token)] : [...token].map((c) => BYTE_OF.get(c)),
    );
    return new TextDecoder().decode(Uint8Array.from(bytes));
  }
}

/** The names of tab tokens as ids and back, spaces between them. @implements {Tokenizer} */
class TabTokenizer {
  kind = "tab tokens";
  /** @param {string[]} vocabulary */
  constructor(vocabulary) {
    this.vocabulary = vocabulary;
    this.ids = new Map(vocabulary.map((token, id) => [token, id]));
  }
  get end() {
    return this.ids.get("<eos>");
  }
  /** @type {(text: string) => number[]} */
  encode(text) {
    return text
      .split(/\s+/)
      .filter(Boolean)
      .map((token) => {
        const id = this.ids.get(token);
        if (id === undefined) throw new Refusal(`${token} is no tab token of this model.`);
        return id;
      });
  }
  /** @type {(ids: Iterable<number>) => string} */
  decode(ids) {
    return Array.from(ids, (id) => this.vocabulary[id]).join(" ");
  }
}

/** @type {(from: number, to: number) => number[]} */
const upTo = (from, to) => Array.from({ length: to - from + 1 }, (_, k) => from + k);

/** The vocabulary of guitar tabs, from its settings. @type {(settings: TabSettings) => string[]} */
function tabVocabulary({ max_fret, max_position, steps_per_quarter_options: units, styles }) {
  const named = (/** @type {string} */ kind, /** @type {(string | number)[]} */ values) =>
    values.map((value) => `${kind}<${value}>`);
  const places = [6, 5, 4, 3, 2, 1].flatMap((string) =>
    upTo(0, max_fret).map((fret) => `${string},${fret}`),
  );
  const positions = upTo(1, max_position);
  const header = [
    ...TAB_TOKENS.special,
    ...named("TUNING", Object.keys(TUNINGS)),
    ...named("OPEN", upTo(...TAB_TOKENS.openPitches)),
    ...named("CAPO", upTo(0, TAB_TOKENS.maxCapo)),
    "COLUMNS",
    ...named("STEPS", units),
  ];
  return [
    ...header,
    ...named("METRE", [...TIME_SIGNATURES.map((metre) => metre.join("/")), "none"]),
    ...named("KEY", [...KEY_NAMES, "none"]),
    ...named("BAR", positions),
    "LONGER",
    "LONG",
    ...named("POS", positions),
    ...named("SAME", upTo(1, TAB_TOKENS.maxBarsBack)),
    ...named("TAB", places),
    ...named("WITH", places),
    ...(styles.length ? named("STYLE", [...styles, "none"]) : []),
  ];
}

/** The tokenizer in tokenizer.json. @type {(content: Json) => Tokenizer} */
export function readTokenizer(content) {
  const refuse = (/** @type {string} */ why) => {
    throw new Refusal(`tokenizer.json ${why}.`);
  };
  if (!isObject(content)) refuse("is no object");
  if (content.kind === "tab tokens") {
    const lists = Array.isArray(content.steps_per_quarter_options) && Array.isArray(content.styles);
    const limits = ["max_fret", "max_position"].every(
      (name) => size(0)(content[name]) && content[name] <= TAB_TOKENS.maxLimit,
    );
    if (!lists || !limits) refuse("has settings of tab tokens that cannot be used");
    return new TabTokenizer(tabVocabulary(content));
  }
  const { token_type: kind, vocabulary, merges = [] } = content;
  const types = TOKEN_TYPES.filter((type) => TOKEN_PATTERNS.has(type));
  if (!types.includes(kind))
    refuse(
      kind === undefined
        ? "is of no text and of no tabs"
        : `says token_type = ${JSON.stringify(kind)}; this page reads ${types.join(", ")}`,
    );
  if (!Array.isArray(vocabulary) || !vocabulary.length) refuse("has no vocabulary");
  const seen = new Map();
  for (let id = 0; id < vocabulary.length; id++) {
    const token = vocabulary[id];
    if (typeof token !== "string") refuse(`has a hole: id ${id} is no token`);
    if (seen.has(token)) refuse(`has the token ${JSON.stringify(token)} twice`);
    seen.set(token, id);
    if (SILENT.has(token) || token === UNK) continue;
    if (kind === "characters" && [...token].length !== 1)
      refuse(`has ${JSON.stringify(token)}, which is no single character`);
    if (kind === "bpe" && ![...token].every((c) => BYTE_OF.has(c)))
      refuse(`has ${JSON.stringify(token)}, which is no row of bytes`);
  }
  if (kind === "words" && !seen.has(UNKNOWN_WORD) && !seen.has(UNK))
    refuse(`lacks ${UNKNOWN_WORD}, which stands for every other word`);
  if (!Array.isArray(merges)) refuse("has merges that are no list");
  for (const pair of merges) {
    if (
      !Array.isArray(pair) ||
      pair.length !== 2 ||
      !seen.has(pair[0]) ||
      !seen.has(pair[1]) ||
      !seen.has(pair[0] + pair[1])
    )
      refuse(`merges ${JSON.stringify(pair)}, which has no token`);
  }
  return new TextTokenizer(kind, vocabulary, merges);
}
