/* A reader's own run: its folder is chosen or dropped, and its best checkpoint is read. */

import { MAX_BYTES } from "./checkpoint.js";
import { Refusal, readJSON } from "./refusals.js";

/** The files of a run's best checkpoint, out of a folder's.
   @type {(files: [string, File][]) => Promise<Record<string, Uint8Array>>} */
export async function bestCheckpoint(files) {
  const folders = new Map();
  for (const [path, file] of files) {
    const cut = path.lastIndexOf("/"),
      folder = path.slice(0, Math.max(cut, 0));
    if (!folders.has(folder)) folders.set(folder, {});
    folders.get(folder)[path.slice(cut + 1)] = file;
  }
  const steps = [...folders]
    .filter(([, own]) => own["config.json"])
    .sort(([a], [b]) => (a < b ? -1 : 1));
  if (!steps.length)
    throw new Refusal(
      `There is no config.json in these ${files.length} files: take a run's folder, or one ` +
        `of its step-… folders.`,
    );
  const bytes = async (file) => new Uint8Array(await file.arrayBuffer());
  let [, chosen] = steps.at(-1);
  if (steps.length > 1 && chosen["training.json"]) {
    const history =
      readJSON(await bytes(chosen["training.json"]), "training.json").eval_history ?? [];
    const best = history.reduce(
      (low, one) => (low && low.val_loss <= one.val_loss ? low : one),
      null,
    );
    chosen =
      steps.find(([folder]) => best && Number(folder.split("step-").at(-1)) === best.step)?.[1] ??
      chosen;
  }
  const names = ["config.json", "tokenizer.json", "model.safetensors", "lora.safetensors"].filter(
    (name) => chosen[name],
  );
  for (const name of names)
    if (chosen[name].size > MAX_BYTES)
      throw new Refusal(
        `${name} has ${chosen[name].size} bytes; this page reads up to ${MAX_BYTES}.`,
      );
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await bytes(chosen[name])])),
  );
}

/** All files of what was dropped, with their paths.
   @type {(items: Iterable<DataTransferItem>) => Promise<[string, File][]>} */
async function dropped(items) {
  const found = [];
  const walk = async (entry) => {
    if (entry.isFile)
      found.push([
        entry.fullPath.slice(1),
        await new Promise((done, fail) => entry.file(done, fail)),
      ]);
    if (!entry.isDirectory) return;
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((done, fail) => reader.readEntries(done, fail));
      if (!some.length) return;
      for (const one of some) await walk(one);
    }
  };
  for (const entry of [...items].map((item) => item.webkitGetAsEntry()).filter(Boolean))
    await walk(entry);
  return found;
}

/** Call `own` with a promise of a folder's files, when it is dropped on an element or chosen.
   @type {(place: HTMLElement, input: HTMLInputElement, 
     own: (files: [string, File][] | Promise<[string, File][]>) => void) => void} */
export function offered(place, input, own) {
  input.addEventListener("change", () =>
    own([...input.files].map((file) => [file.webkitRelativePath || file.name, file])),
  );
  for (const name of ["dragover", "dragleave", "drop"]) {
    place.addEventListener(name, (event) => {
      event.preventDefault();
      place.classList.toggle("slp-over", name === "dragover");
    });
  }
  place.addEventListener("drop", (event) => own(dropped(event.dataTransfer.items)));
}
