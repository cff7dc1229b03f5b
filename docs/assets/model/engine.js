/* The Transformer of the book in a page: its letters, its order, no library.
   The slug after "Source:" names an equation, as everywhere in slp_transformer; in the site's index
   of equations it has its numbers. A matrix has a token in each row, as X [N×d].

   A runtime for exported models would bring megabytes, and show none of the matrices between; tests
   hold this equal to PyTorch. */

import { Refusal } from "./refusals.js";

/** @import { Config, RopeScaling } from "./constants.js" */
/** @import { Json } from "./refusals.js" */
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
/** @typedef {{ row?: (model: LanguageModel, i: number) => Float32Array,
     angles?: (model: LanguageModel) => Float32Array }} Positions */

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
export const STRETCHES = {
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
export const NORMALIZATIONS = {
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
export const ACTIVATIONS = {
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
export const NORM_ORDERS = {
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
export const POSITIONS = {
  learned: { row: (model, i) => model.weights.embedding.positions.P.row(i) },
  sinusoidal: { row: (model, i) => sinusoid(i, model.config.model_dim) },
  rotary: {
    angles: ({ sizes, config }) => rotaryAngles(sizes.dk, config.rope_base, config.rope_scaling),
  },
};

/** @type {(config: Config) => Sizes} */
export function sizesOf(config) {
  const { model_dim: d, num_heads: A, activation, norm, normalization, eps } = config;
  const dk = config.key_dim ?? d / A,
    dv = config.value_dim ?? d / A,
    G = config.num_kv_heads ?? A;
  const hidden =
    config.hidden_dim ?? (ACTIVATIONS[activation].isGated ? Math.ceil((8 * d) / 3) : 4 * d);
  return { A, G, dk, dv, hidden, activation, norm, normalization, eps };
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
