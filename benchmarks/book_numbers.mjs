/* What docs/assets/book finds in PDFs: `node book_numbers.mjs places|alone FILE.pdf …` prints a line of
   JSON for each. "alone" hides the destinations of the PDF from the finder; "layers" adds the text of
   some pages, as tests keep it. */

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

Promise.withResolvers ??= function () {
  let resolve, reject;
  const promise = new this((one, other) => ([resolve, reject] = [one, other]));
  return { promise, resolve, reject };
};
globalThis.DOMMatrix ??= class {};
globalThis.ImageData ??= class {};
globalThis.Path2D ??= class {};
const folder = new URL("../docs/assets/book/", import.meta.url);
const importHere = (name) => import(new URL(name, folder).href);
const { getDocument, GlobalWorkerOptions } = await importHere("pdfjs/pdf.min.mjs");
GlobalWorkerOptions.workerSrc = new URL("pdfjs/pdf.worker.min.mjs", folder).href;
const { choose, readPage } = await importHere("finder.js");
const { destinationsOf } = await importHere("destinations.js");

/** Anchors that a browser or an office program has made destinations: "equation-8.14". */
async function ownPlaces(pdf) {
  const found = [];
  for (const [name, target] of await pdf.getDestinations()) {
    const [, kind, chapter, index] = /^(example|equation|figure)-(\d+)-(\d+)$/.exec(name) ?? [];
    if (!kind) continue;
    const page = (await pdf.getPageIndex(target[0])) + 1;
    const [, , , up, , shift] = (await pdf.getPage(page)).getViewport({ scale: 1 }).transform;
    found.push({ kind, number: `${chapter}.${index}`, page, y: up * target[3] + shift });
  }
  return found;
}

/** @param {string} file @param {boolean} alone */
export async function find(file, alone) {
  const before = process.cpuUsage();
  const task = getDocument({ data: new Uint8Array(readFileSync(file)), verbosity: 0, fontExtraProperties: false });
  const pdf = await task.promise;
  const pages = [];
  const layers = [];
  for (let n = 1; n <= pdf.numPages; n++) {
    const page = await pdf.getPage(n);
    const view = page.getViewport({ scale: 1 });
    const { items } = await page.getTextContent();
    const given = { page: n, width: view.width, height: view.height, inExercises: pages.at(-1)?.inExercises };
    pages.push(readPage(items, view.transform, given));
    layers.push({ items, view: view.transform, ...given });
    page.cleanup();
  }
  const { user, system } = process.cpuUsage(before);
  const destinations = await destinationsOf(pdf);
  const chosen = choose(pages, alone ? [] : destinations);
  const result = {
    file,
    pages: pdf.numPages,
    cpu_s: (user + system) / 1e6,
    letters: pages.reduce((sum, page) => sum + page.letters, 0),
    unnamed: pages.reduce((sum, page) => sum + page.unnamed, 0),
    destinations,
    chosen: chosen.map(({ page, kind, chapter, index, suffix, x, end, y, weight }) =>
      ({ page, kind, number: `${chapter}.${index}${suffix}`, x, end, y, weight })),
    all: pages.flatMap(({ found }) => found).map(({ page, kind, chapter, index, x, y, end, before, after, words, blank, size }) =>
      ({ page, kind, number: `${chapter}.${index}`, x, y, end, before, after, words, blank, size })),
    own_places: await ownPlaces(pdf),
    named: (await pdf.getDestinations()).size,
  };
  await task.destroy();
  return { result, layers };
}

/** A page's text in few bytes: of each item its words, its matrix, its width and its font. */
function compact({ items, ...page }) {
  const fonts = [];
  const numberOf = (font) => (fonts.includes(font) ? fonts.indexOf(font) : fonts.push(font) - 1);
  const round = (value) => Math.round(100 * value) / 100;
  const kept = items.filter(({ str }) => str?.trim());
  return {
    ...page,
    items: kept.map((one) => [one.str, one.transform.map(round), round(one.width), numberOf(one.fontName)]),
  };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [how, ...files] = process.argv.slice(2);
  for (const file of files) {
    const { result, layers } = await find(file, how !== "places");
    if (how === "layers") result.layers = layers.map(compact);
    console.log(JSON.stringify(result));
  }
}
