/* Choosing the next word, and a text word by word, as slp_transformer.sampling has it. The slug
   after "Source:" names an equation. */

import { KVCache, Tensor, softmax } from "./engine.js";
import { Refusal } from "./refusals.js";

/** @import { How, LanguageModel, Logits } from "./engine.js" */
/** @typedef {{ count?: number, options?: Record<string, number>, stop?: number[],
     random?: () => number, allowed?: ((ids: number[]) => Iterable<number>) | null }} Writing */

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
