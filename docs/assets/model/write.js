/* The page "Write with it": a beginning, sliders, and what the model makes of them. The model
   itself is in a worker. */

import { Tensor, softmax } from "./engine.js";
import { Refusal } from "./refusals.js";
import { filterLogits } from "./sampling.js";
import { make } from "./elements.js";
import { bestCheckpoint, offered } from "./run_folder.js";

const stage = document.getElementById("slp-write"),
  assets = new URL(stage.dataset.assets, document.baseURI);
const find = (name) => document.getElementById(`w-${name}`);

const worker = new Worker(new URL("writer.js", assets), { type: "module" }),
  waiting = new Map();
worker.onmessage = ({ data: { number, answer, refused } }) => {
  const { done, fail } = waiting.get(number);
  waiting.delete(number);
  if (refused === undefined) done(answer);
  else fail(new Refusal(refused));
};
let asked = 0;
const ask = (what, given = {}) =>
  new Promise((done, fail) => {
    waiting.set(asked, { done, fail });
    worker.postMessage({ number: asked++, what, given });
  });

let about = null,
  ids = [],
  seen = null,
  off = [],
  begun = null,
  unread = "", // why the field cannot be read; "" if it can
  busy = 0; // busy counts up: a text that is written while another begins is given up
const isTab = () => about.kind === "tab tokens";
const note = (text) => {
  find("note").textContent = text;
};

// --- Tokens ------------------------------------------------------------------------------------

/** A token as it is shown: blanks are seen, and tab tokens are short. */
function shown(id) {
  const token = about.vocabulary[id];
  if (isTab()) return token.replace(/^(?:TAB|WITH)<(.*)>$/, "$1").replace(/^POS<(.*)>$/, "@$1");
  return token.replace(/[ Ġ]/g, "␣").replace(/[\nĊ]/g, "⏎");
}
const sliders = [...stage.querySelectorAll("[data-option]")];
const isOff = (slider) => slider.value === slider.dataset.off;
/** The sampling options that the sliders ask for, by Python's names. */
const options = () =>
  Object.fromEntries(
    sliders.filter((one) => !isOff(one)).map((one) => [one.dataset.option, Number(one.value)]),
  );
const seed = () => Math.max(0, Math.floor(Number(find("seed").value)) || 0);

// --- Drawing -----------------------------------------------------------------------------------

/** The next token's probabilities, as the sliders leave them. */
function drawNext() {
  for (const one of sliders)
    one.nextElementSibling.textContent = isOff(one)
      ? "off"
      : one.value === one.dataset.greedy
        ? "0: the best"
        : one.value;
  find("chosen").textContent = [...sliders.filter((one) => !isOff(one)), find("seed")]
    .map((one) => `${one.id.slice(2).replaceAll("_", "-")} ${one.value}`)
    .join(", ");
  if (!seen) return;
  const u = filterLogits(seen.u, options(), seen.ids);
  const y = softmax(new Tensor([1, u.length], u)).data,
    plain = softmax(new Tensor([1, u.length], seen.u)).data;
  const best = [...plain.keys()]
    .filter((id) => plain[id] > 0)
    .sort((a, b) => y[b] - y[a] || plain[b] - plain[a])
    .slice(0, 12);
  const place = stage.querySelector(".w-next"),
    focused = [...place.children].indexOf(document.activeElement);
  place.replaceChildren(
    ...best.map((id) =>
      make(
        "button",
        {
          type: "button",
          style: `--share:${(100 * y[id]).toFixed(1)}%; --was:${(100 * plain[id]).toFixed(1)}%`,
          onclick: () => add([id]),
        },
        make("span", {}, shown(id)),
        make("span", {}, y[id] ? y[id].toFixed(2) : "removed"),
      ),
    ),
  );
  place.children[focused]?.focus();
  find("kept").textContent = best.length
    ? `${y.filter((x) => x > 0).length} of ${about.vocabulary.length} tokens remain; the ` +
      `mark at the foot of each is its probability without the sliders.`
    : "The piece is at its end.";
}

/** A row for each head: a switch, the last tokens as it looks at them, and the same in words. */
function drawHeads() {
  const across = (isTab() ? 14 : 48) >> (innerWidth < 700 ? 1 : 0),
    from = Math.max(0, seen.ids.length - across);
  const focused = document.activeElement?.dataset?.head;
  stage.querySelectorAll(".w-induction").forEach((cell) => {
    cell.hidden = !seen.period;
  });
  const rows = seen.alpha.flatMap((heads, l) =>
    heads.map((alpha, c) => {
      const top = Math.max(...alpha);
      const strip = make(
        "span",
        { class: "w-strip", "aria-hidden": "true" },
        ...seen.ids
          .slice(from)
          .map((id, k) =>
            make("span", { style: `--a:${Math.round((50 * alpha[from + k]) / top)}%` }, shown(id)),
          ),
      );
      const most = [...alpha.keys()]
        .sort((a, b) => alpha[b] - alpha[a])
        .slice(0, 2)
        .map(
          (i) => `${shown(seen.ids[i])} ${placed(seen.ids.length - 1 - i)}: ${alpha[i].toFixed(2)}`,
        )
        .join("; ");
      const on = make("input", {
        type: "checkbox",
        "data-head": `${l} ${c}`,
        "aria-label": `block ${l + 1}, head ${c + 1} is on`,
        onchange: toggle,
      });
      on.checked = !off.some(({ block, head }) => block === l && head === c);
      const score = seen.period
        ? [make("td", { class: "w-induction" }, seen.induction[l][c].toFixed(2))]
        : [];
      return make(
        "tr",
        {},
        make("td", {}, on),
        make("th", { scope: "row" }, `${l + 1}.${c + 1}`),
        make("td", {}, strip),
        make("td", {}, most),
        ...score,
      );
    }),
  );
  stage.querySelector(".w-heads tbody").replaceChildren(...rows);
  if (focused) stage.querySelector(`[data-head="${focused}"]`)?.focus();
  const nats = (x) => `${x.toFixed(3)} nats a token`;
  const whole = seen.wholeLoss === null ? "" : `; with all heads it is ${nats(seen.wholeLoss)}`;
  find("loss").textContent =
    seen.loss === null ? "" : `The loss of this text is ${nats(seen.loss)}${whole}.`;
  find("copies").textContent = copiesSaid();
}
const placed = (back) => (back ? `${back} back` : "itself");

/** What a repetition shows: the loss of both copies, and the head that looks at what came next the
   last time. */
function copiesSaid() {
  if (!seen.period)
    return (
      "Repeat the text: a head that then looks at what followed last time is an induction " +
      "head."
    );
  const all = seen.induction.flatMap((heads, l) => heads.map((score, c) => ({ score, l, c })));
  const top = all.reduce((best, one) => (one.score > best.score ? one : best));
  const [first, second] = seen.copies.map((x) => x.toFixed(2));
  return (
    `The last ${seen.period} tokens are a repetition. The loss is ${first} in the first copy ` +
    `and ${second} in the second. Most of all, head ${top.l + 1}.${top.c + 1} looks at what ` +
    `followed the same token last time: ${top.score.toFixed(2)} of its weight on average, ` +
    `where looking everywhere alike would give ${seen.alike.toFixed(2)}.`
  );
}

function drawLens() {
  const names = seen.lens?.map((_, k) => (k ? `after block ${k}` : "before block 1"));
  const rows = seen.lens
    ? seen.lens.map((best, k) =>
        make(
          "tr",
          {},
          make("th", { scope: "row" }, names[k]),
          ...best.map(([id, y]) =>
            make("td", { style: `--a:${Math.round(50 * y)}%` }, `${shown(id)} ${y.toFixed(2)}`),
          ),
        ),
      )
    : [
        make(
          "tr",
          {},
          make(
            "td",
            {},
            "This model is post-norm: its stream is normalized anew after each sublayer, " +
              "and nothing can be read below its top.",
          ),
        ),
      ];
  stage.querySelector(".w-lens tbody").replaceChildren(...rows);
}

/** Let the model read what there is, and show it. */
async function look() {
  const now = ids;
  if (!now.length) return;
  const found = await ask("look", { ids: now, off });
  if (now !== ids) return; // another text has come meanwhile
  seen = found;
  drawNext();
  drawHeads();
  drawLens();
}

/** What was written: in the text's field, or as tab. */
async function drawText() {
  offer({});
  if (!isTab()) {
    find("text").value = (await ask("decode", { ids })).text;
    find("text").scrollTop = find("text").scrollHeight;
    return;
  }
  const music = await ask("music", { ids });
  find("plain").textContent = music.text;
  find("music").hidden = !music.bars;
  return music;
}

/** Offer what was written as files. */
function offer(files) {
  for (const link of find("files").children) URL.revokeObjectURL(link.href);
  const links = Object.entries(files).map(([kind, content]) =>
    make(
      "a",
      { href: URL.createObjectURL(new Blob([content])), download: `written.${kind}` },
      `.${kind}`,
    ),
  );
  find("files").replaceChildren(...links);
  find("files").parentElement.hidden = !links.length;
}

// --- What the reader does ----------------------------------------------------------------------

/** Do something, and say in a sentence what cannot be done. */
const tried =
  (action) =>
  async (...given) => {
    try {
      note("");
      await action(...given);
    } catch (error) {
      halt();
      if (!(error instanceof Refusal)) throw error;
      note(error.message);
    }
  };

const add = tried(async (more) => {
  halt();
  unread = "";
  ids = [...ids, ...more];
  await drawText();
  await look();
});

/** Give up what is being written. */
function halt() {
  busy++;
  working(false);
}

/** While it writes it can be stopped, and readers of the screen wait for the end. */
function working(yes) {
  find("stop").disabled = !yes;
  stage.setAttribute("aria-busy", String(yes));
}

/** Read what a text or piece begins with. What cannot be read is not written on from, either: the
   text before it is gone. */
function beginning(action) {
  return tried(async () => {
    halt();
    unread = "";
    try {
      await action();
    } catch (error) {
      if (error instanceof Refusal) unread = error.message;
      throw error;
    }
  });
}

/** Write on, a few tokens at a time, so that the page follows and can be stopped; then let the tab
   be heard. */
const write = tried(async (count) => {
  if (unread) throw new Refusal(unread);
  const mine = ++busy;
  working(true);
  share(count);
  let left = count,
    music = null;
  while (left > 0) {
    const { ids: more, ended } = await ask("write", {
      ids,
      count: Math.min(8, left),
      options: options(),
      seed: seed(),
    });
    if (mine !== busy) return;
    ids = [...ids, ...more];
    left = ended ? 0 : left - more.length;
    music = await drawText();
    await look();
    if (mine !== busy) return;
  }
  working(false);
  if (!isTab()) offer({ txt: find("text").value });
  if (!music?.tex || count === 1) return;
  const player = document.getElementById("slp-hear"),
    files = { txt: music.text, atex: music.tex };
  await player
    .show(music.tex)
    .then(() => {
      files.gp = player.guitarPro();
    })
    .catch(() => note("The score cannot be drawn here; the tab stands below as text."));
  if (mine === busy) offer(files);
});

/** Begin a piece: what is asked for, and the riff. */
const piece = beginning(async () => {
  begun = null;
  const riff = find("riff").value,
    wanted = Object.fromEntries(
      ["TUNING", "KEY"].map((kind) => [kind, find(kind).value]).filter(([, value]) => value),
    );
  ({ ids } = await ask("beginTab", { asked: wanted, riff, options: options(), seed: seed() }));
  begun = riff;
  for (const kind of ["TUNING", "KEY"]) {
    const own = ids.map((id) => about.vocabulary[id]).find((token) => token.startsWith(`${kind}<`));
    find(kind).options[0].textContent =
      wanted[kind] || !own ? "any" : `any: ${own.slice(kind.length + 1, -1)}`;
  }
  off = [];
  await drawText();
  await look();
});

const typed = beginning(async () => {
  ({ ids } = await ask("encode", { text: find("text").value }));
  if (!ids.length) throw new Refusal("Write one character at least.");
  await look();
});

const toggle = tried(async () => {
  off = [...stage.querySelectorAll("[data-head]")]
    .filter((box) => !box.checked)
    .map((box) => {
      const [block, head] = box.dataset.head.split(" ").map(Number);
      return { block, head };
    });
  await look();
});

/** Write the text twice, so that a head can find in the first copy what comes next in the
   second. */
const repeat = tried(async () => {
  halt();
  if (unread) throw new Refusal(unread);
  const room = Math.floor(about.config.context_length / 2),
    begin = isTab() ? ids.findIndex((id) => /^BAR/.test(about.vocabulary[id])) : 0;
  const line = ids
    .slice(Math.max(begin, 0))
    .filter((id) => !/^<eos>$/.test(about.vocabulary[id]))
    .slice(-(room - Math.max(begin, 0)));
  if (line.length < 8) throw new Refusal("Write eight tokens at least, to repeat them.");
  ids = [...(begin > 0 ? ids.slice(0, begin) : []), ...line, ...line];
  await drawText();
  await look();
});

// --- Models ------------------------------------------------------------------------------------

/** Take a model: show what it is, and a beginning. Both come at once: what a reader writes as soon
   as the model is named would be overwritten by a beginning that comes later. */
async function take(given, name, first = null) {
  halt();
  about = await ask("load", given);
  [ids, seen, off] = [[], null, []];
  first ??= isTab() ? "" : (await ask("decode", { ids: firstIds() })).text;
  find("text").value = first;
  const { num_blocks, context_length } = about.config;
  find("about").textContent =
    `${name}: ${about.weights.toLocaleString("en")} weights, ${num_blocks} blocks of ` +
    `${about.A} heads, ${about.vocabulary.length} ${about.kind}; it sees ${context_length} ` +
    `at a time.`;
  find("for-text").hidden = isTab();
  find("for-tab").hidden = find("new").hidden = !isTab();
  find("music").hidden = find("share").hidden = true;
  find("many").textContent = isTab() ? "Write to the end" : "Write 200";
  stage.dataset.model = given.name ?? "own";
  for (const kind of isTab() ? ["TUNING", "KEY"] : []) {
    const values = about.vocabulary
      .filter((token) => token.startsWith(`${kind}<`))
      .map((token) => token.slice(kind.length + 1, -1));
    find(kind).replaceChildren(
      make("option", { value: "" }, "any"),
      ...values
        .filter((value) => value !== "none")
        .map((value) => make("option", { value }, value)),
    );
  }
}
async function begin() {
  if (isTab()) return piece();
  return typed();
}

const choose = tried(async (name, text = null) => {
  const radio = stage.querySelector(`[name=w-model][value=${name}]`);
  await take(
    { address: new URL(`${name}/`, assets).href, name },
    radio.parentElement.textContent.trim(),
    text ?? radio.dataset.first,
  );
  radio.checked = true;
  await begin();
});

const own = tried(async (given) => {
  await take({ files: await bestCheckpoint(await given) }, "Your run");
  for (const radio of stage.querySelectorAll("[name=w-model]")) radio.checked = false;
  await begin();
});
/** A few tokens that any model of text has, to begin with. */
const firstIds = () => {
  const id = about.vocabulary.findIndex((token) => /^\p{L}/u.test(token));
  return [Math.max(id, 0)];
};

// --- The address -------------------------------------------------------------------------------

const FIELDS = [...sliders.map((one) => one.dataset.option), "seed"];
const OLD_FIELDS = { tau: "temperature", k: "top_k", p: "top_p" }; // of addresses already shared

/** Put into the address what makes this text again: the model, the beginning, the sliders and the
   seed. */
function share(count) {
  find("share").hidden = stage.dataset.model === "own";
  if (stage.dataset.model === "own") return;
  const given = new URLSearchParams({ model: stage.dataset.model });
  for (const name of FIELDS) given.set(name, find(name).value);
  if (isTab()) for (const name of ["TUNING", "KEY", "riff"]) given.set(name, find(name).value);
  else given.set("text", find("text").value.slice(-400));
  given.set("write", count);
  find("share").href = `#${given}`;
  history.replaceState(null, "", `#${given}`);
}

/** Write what the address asks for. */
async function follow() {
  const given = new URLSearchParams(location.hash.slice(1)),
    model = given.get("model");
  if (!stage.querySelector(`[name=w-model][value="${CSS.escape(model ?? "")}"]`))
    return choose("text");
  for (const [old, name] of Object.entries(OLD_FIELDS))
    if (given.has(old)) find(name).value = given.get(old);
  for (const name of [...FIELDS, "riff"]) if (given.has(name)) find(name).value = given.get(name);
  await choose(model, given.get("text"));
  if (model === "tab") {
    for (const name of ["TUNING", "KEY"]) find(name).value = given.get(name) ?? "";
    await piece();
  }
  const count = Math.min(400, Number(given.get("write")) || 0);
  if (count) await write(count);
}

function listen() {
  for (const radio of stage.querySelectorAll("[name=w-model]"))
    radio.addEventListener("change", () => choose(radio.value));
  for (const one of [...sliders, find("seed")]) one.addEventListener("input", drawNext);
  find("text").addEventListener("input", typed);
  find("one").addEventListener("click", () => write(1));
  find("many").addEventListener("click", async () => {
    if (isTab() && (begun !== find("riff").value || about.vocabulary[ids.at(-1)] === "<eos>"))
      await piece();
    if (isTab() && begun === null) return; // the riff cannot be read, and the note says why
    await write(isTab() ? about.config.context_length : 200);
  });
  find("new").addEventListener("click", async () => {
    find("seed").value = String((seed() + 1) % 1000000);
    await piece();
    await write(about.config.context_length);
  });
  find("stop").addEventListener("click", halt);
  find("repeat").addEventListener("click", repeat);
  find("riffs").addEventListener("change", () => {
    find("riff").value = find("riffs").value;
    piece();
  });
  for (const name of ["riff", "TUNING", "KEY"]) find(name).addEventListener("input", piece);
  offered(find("drop"), find("folder"), own);
}

async function start() {
  listen();
  await follow();
  if (!about) throw new Error(find("note").textContent);
  for (const hidden of stage.querySelectorAll(".w-live")) hidden.hidden = false;
  stage.classList.add("w-alive");
}

export const ready = start().catch((error) => {
  stage.prepend(make("p", { class: "w-note" }, `The model could not be loaded: ${error.message}`));
});
