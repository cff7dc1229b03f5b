/* What a reader is told when something cannot be used, and what a file says, checked. */

/** @typedef {any} Json What a file says, before it is checked. */

/** What a reader is told, in one sentence, when something cannot be used. */
export class Refusal extends Error {}

/** @type {(x: Json) => boolean} */
export const isObject = (x) => typeof x === "object" && x !== null && !Array.isArray(x);

/** @type {(least?: number) => (x: Json) => boolean} */
export const size =
  (least = 1) =>
  (x) =>
    Number.isSafeInteger(x) && x >= least;

/** The JSON in a file. @type {(bytes: Uint8Array, name: string) => Json} */
export function readJSON(bytes, name) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new Refusal(`${name} is no JSON.`);
  }
}
