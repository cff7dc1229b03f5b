/* The worker of the page "Write with it": it holds a model, reads a text with it, and writes on. */

import { readRun } from "./checkpoint.js";
import { KVCache, Tensor, headsOff, lmHead, norm, softmax } from "./engine.js";
import { Refusal } from "./refusals.js";
import { filterLogits, sample, seeded } from "./sampling.js";
import { isPlayableGrip } from "./hand.js";
import { allowedNext, alphaTex, headerAfter, plainTab, riffTokens, tabOf } from "./tab.js";

/** @import { Logits, LanguageModel } from "./engine.js" */
/** @import { Tokenizer } from "./tokenizer.js" */
/** @typedef {Record<string, number>} Options Sampling options, by their names. */
/** @typedef {{ alpha: Logits[][], stream: Logits[], u: Logits }} Row */
/** @typedef {{ ids: number[], text: string, ended: boolean }} Written */
/** @typedef {{ asked: Record<string, string>, riff: string }} Begun */

/** A text as a model reads it, token by token: what each one looks at, and the stream above it. */
export class Reading {
  rows = []; // of each token: alpha [L][A], the stream [L+1], the logits u
  begin = 0;
  ids = [];
  cache = new KVCache();
  constructor(model, off = []) {
    this.model = model;
    this.hook = headsOff(off);
  }
  /** Read a text; what it begins with is not read again. A text beyond the window loses its
     beginning, half a window at a time. @type {(ids: number[]) => Reading} */
  read(ids) {
    const N = this.model.config.context_length,
      half = Math.ceil(N / 2);
    const begin = Math.ceil(Math.max(0, ids.length - N) / half) * half,
      shown = ids.slice(begin);
    let same = 0;
    if (begin === this.begin)
      while (same < this.rows.length && this.ids[same] === shown[same]) same++;
    Object.assign(this, { begin, ids: shown });
    this.rows.length = this.cache.length = same;
    if (same === shown.length) return this;
    const alpha = [],
      stream = [];
    const hook = (name, X, l) => {
      const Y = this.hook(name, X, l) ?? X;
      if (name === "alpha") alpha[l] = Y;
      if (name === "X" && l === 0) stream.push(Y);
      if (name === "H") stream.push(Y);
      return Y;
    };
    const U = this.model.forward(shown.slice(same), { cache: this.cache, hook });
    for (let i = 0; i < U.rows; i++) {
      this.rows.push({
        alpha: alpha.map((heads) =>
          [...Array(heads.shape[0]).keys()].map((c) => heads.matrix(c).row(i)),
        ),
        stream: stream.map((X) => X.row(i)),
        u: U.row(i),
      });
    }
    return this;
  }
  /** The mean of −log y of some tokens, each after those before it. */
  loss(from = 1, to = this.ids.length) {
    let sum = 0;
    for (let i = from; i < to; i++) sum -= Math.log(probabilities(this.rows[i - 1].u)[this.ids[i]]);
    return to > from ? sum / (to - from) : null;
  }
  /** What the model would say if the stream ended below the first block, or after each one.
     Source: `logit-lens` */
  lens() {
    const { stack, E_out } = this.model.weights;
    if (!stack.final_norm) return null; // post-norm: no stream that is only added to
    const H = this.rows.at(-1).stream;
    return H.map((h) => {
      const X = new Tensor([1, h.length], h),
        read = norm(X, stack.final_norm, this.model.sizes);
      return probabilities(lmHead(read, E_out ?? this.model.E).row(0));
    });
  }
  /** How many tokens before its end the text repeats itself; 0 if it doesn't, for at least 8. */
  period() {
    const { ids } = this;
    for (let p = Math.floor(ids.length / 2); p >= 8; p--)
      if (ids.slice(-p).every((id, k) => id === ids[ids.length - 2 * p + k])) return p;
    return 0;
  }
  /** The mean weight of each head on what followed this token the last time. Source: `induction`
     @type {(period: number) => number[][]} */
  induction(period) {
    const rows = this.rows.slice(-period),
      first = this.rows.length - period;
    return this.rows[0].alpha.map((heads, l) =>
      heads.map(
        (_, c) =>
          rows.reduce((sum, row, k) => sum + row.alpha[l][c][first + k - period + 1], 0) / period,
      ),
    );
  }
}

/** @type {(u: Logits) => Logits} */
const probabilities = (u) => softmax(new Tensor([1, u.length], u)).data;

let model,
  tokenizer,
  whole,
  changed,
  off = [];

/** The token after a text: the same for the same seed.
   @type {(u: Logits, ids: number[], options: Options, seed: number) => number} */
export function chosen(u, ids, options, seed) {
  const random = seeded(Math.imul(seed + 1, 0x9e3779b1) + ids.length);
  return sample(filterLogits(u, options, ids), random);
}

const isTab = () => tokenizer.kind === "tab tokens";

/** @type {(ids: number[]) => Logits} */
function nextLogits(ids) {
  const u = (off.length ? changed : whole).read(ids).rows.at(-1).u;
  if (!isTab()) return u;
  const allowed = new Set(allowedNext(tokenizer, ids, isPlayableGrip));
  return u.map((x, id) => (allowed.has(id) ? x : -Infinity));
}

/** @type {(ids: number[], count: number, options: Options, seed: number) => Written} */
function write(ids, count, ...how) {
  const written = [];
  while (written.length < count) {
    const text = [...ids, ...written];
    if (isTab() && text.length >= model.config.context_length) break;
    if (isTab() && text.at(-1) === tokenizer.end) break;
    const id = chosen(nextLogits(text), text, ...how);
    if (!isTab() && id === tokenizer.end) break;
    written.push(id);
  }
  return { ids: written, text: tokenizer.decode(written), ended: written.length < count };
}

/** The header of a piece: what was asked for, what a riff needs, and for the rest what the model
   says; then the riff. @type {(given: Begun, options: Options, seed: number) => number[]} */
function beginTab({ asked, riff }, ...how) {
  const tokens = riffTokens(riff),
    ids = tokenizer.encode("<bos>"),
    wanted = { CAPO: "0", ...(tokens.length ? { STEPS: "4", METRE: "4/4" } : {}), ...asked };
  for (
    let kinds = headerAfter(tokenizer, ids);
    !kinds.includes("BAR");
    kinds = headerAfter(tokenizer, ids)
  ) {
    const kind = kinds.find((one) => one in wanted);
    ids.push(...(kind ? tokenizer.encode(`${kind}<${wanted[kind]}>`) : write(ids, 1, ...how).ids));
  }
  return [...ids, ...tokenizer.encode(tokens.join(" "))];
}

export const ANSWERS = {
  async load({ files, address }) {
    if (address) {
      const names = ["config.json", "tokenizer.json", "model.safetensors"];
      const contents = await Promise.all(
        names.map(async (name) => {
          const answer = await fetch(`${address}${name}`);
          if (!answer.ok) throw new Refusal(`${name} cannot be fetched.`);
          return new Uint8Array(await answer.arrayBuffer());
        }),
      );
      files = Object.fromEntries(names.map((name, k) => [name, contents[k]]));
    }
    const run = readRun(files);
    ({ model, tokenizer } = run);
    off = [];
    whole = new Reading(model);
    return {
      kind: tokenizer.kind,
      vocabulary: tokenizer.vocabulary,
      config: model.config,
      A: model.sizes.A,
      weights: countOf(model.weights),
    };
  },
  encode: ({ text }) => ({ ids: tokenizer.encode(text) }),
  decode: ({ ids }) => ({ text: tokenizer.decode(ids) }),
  beginTab: ({ options, seed, asked, riff }) => ({
    ids: beginTab({ asked, riff }, options, seed),
  }),
  write: ({ ids, count, options, seed }) => {
    if (!ids.length) throw new Refusal("A model goes on from one token at least.");
    return write(ids, count, options, seed);
  },
  music: ({ ids }) => {
    const tab = tabOf(tokenizer, ids);
    return {
      bars: tab.bars.length,
      key: tab.key,
      tex: tab.bars.length ? alphaTex(tab) : "",
      text: plainTab(tab),
    };
  },
  /** Everything that the page shows of a text. */
  look: ({ ids, off: heads }) => {
    if (!ids.length) throw new Refusal("A model goes on from one token at least.");
    if (
      String(heads.map(({ block, head }) => [block, head])) !==
      String(off.map(({ block, head }) => [block, head]))
    )
      changed = new Reading(model, heads);
    off = heads;
    const u = nextLogits(ids),
      reading = (off.length ? changed : whole).read(ids);
    const period = reading.period(),
      end = reading.ids.length;
    return {
      u,
      begin: reading.begin,
      ids: reading.ids,
      alpha: reading.rows.at(-1).alpha,
      lens: reading.lens()?.map(best) ?? null,
      loss: reading.loss(),
      wholeLoss: off.length ? whole.read(ids).loss() : null,
      period,
      induction: period ? reading.induction(period) : null,
      alike: period
        ? reading.ids.slice(-period).reduce((sum, _, k) => sum + 1 / (end - period + k + 1), 0) /
          period
        : null,
      copies: period
        ? [2, 1].map((back) => reading.loss(end - back * period + 1, end - (back - 1) * period))
        : null,
    };
  },
};

const best = (y) =>
  [...y.keys()]
    .sort((a, b) => y[b] - y[a])
    .slice(0, 3)
    .map((id) => [id, y[id]]);

function countOf(weights) {
  return Object.values(weights).reduce(
    (sum, W) => sum + (W instanceof Tensor ? W.data.length : countOf(W)),
    0,
  );
}

/** In the worker: answer one question after the other. */
if (typeof document === "undefined") {
  addEventListener("message", async ({ data: { number, what, given } }) => {
    try {
      postMessage({ number, answer: await ANSWERS[what](given) });
    } catch (error) {
      postMessage({
        number,
        refused:
          error instanceof Refusal ? error.message : `Something went wrong: ${error.message}.`,
      });
    }
  });
}
