/* What a training run keeps: its settings and weights, each checked, as a model. */

import { BOOK, ROPE_TYPES, SETTINGS } from "./constants.js";
import {
  ACTIVATIONS,
  LanguageModel,
  NORMALIZATIONS,
  NORM_ORDERS,
  POSITIONS,
  STRETCHES,
  Tensor,
  sizesOf,
} from "./engine.js";
import { Refusal, isObject, readJSON, size } from "./refusals.js";
import { readTokenizer } from "./tokenizer.js";

/** @import { Config, Setting } from "./constants.js" */
/** @import { Json } from "./refusals.js" */
/** @import { Tokenizer } from "./tokenizer.js" */
/** @typedef {{ model: LanguageModel, tokenizer: Tokenizer }} Run */

export const MAX_BYTES = 1 << 28; // of a file of weights

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
