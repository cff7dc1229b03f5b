/* Text as ids and back, with the tokenizer that a training run keeps. */

import {
  END_TOKEN,
  KEY_NAMES,
  SILENT_TOKENS,
  TAB_TOKENS,
  TIME_SIGNATURES,
  TOKEN_TYPES,
  TUNINGS,
  UNKNOWN_TOKENS,
} from "./constants.js";
import { Refusal, isObject, size } from "./refusals.js";

/** @import { Json } from "./refusals.js" */
/** @typedef {{ kind: string, vocabulary: string[], end: number | undefined,
     encode: (text: string) => number[], decode: (ids: Iterable<number>) => string }} Tokenizer */
/** @typedef {{ max_fret: number, max_position: number, steps_per_quarter_options: number[],
     styles: string[] }} TabSettings */

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
