/* The page "One sentence, every number": chapter 5's model or a reader's own, its matrices drawn,
   and the number that the reader touches explained. */

import { readModel, readRun } from "./checkpoint.js";
import { BOOK } from "./constants.js";
import { Refusal, readJSON } from "./refusals.js";
import { greedy } from "./sampling.js";
import { make } from "./elements.js";
import { bestCheckpoint, offered } from "./run_folder.js";
import {
  BY_BLOCK,
  BY_HEAD,
  EXPLAIN,
  MATRICES,
  OVER_VOCABULARY,
  OVER_WORDS,
  at,
  compareWithNow,
  compute,
  escaped,
  labels,
  look,
  model,
  now,
  numbers,
  placeOf,
  placeOfHead,
  shown,
  takeModel,
  tokenizer,
  value,
  valueBefore,
  vocabulary,
  was,
} from "./sentence_numbers.js";

const stage = document.getElementById("slp-sentence");
const find = (name) => document.getElementById(`sl-${name}`);
let chosen = null,
  lit = [],
  before = []; // the number that is explained, what made it, and those looked at before it

// what record_activations keeps under these names
const HOOKED = new Set(["T1", "T2", "T3", "T4", "T5", "H", "Q", "K", "V", "alpha", "head"]);
const LETTERS = Object.fromEntries(
  [...document.querySelectorAll(".sl-matrix[data-matrix]")].map((box) => [
    box.dataset.matrix,
    box.querySelector(".sl-letter").innerHTML,
  ]),
);

// --- Drawing ---------------------------------------------------------------------------------

const nameOf = (name, l, c) => {
  const where = [
    BY_BLOCK.has(name) ? `block ${l + 1}` : "",
    BY_HEAD.has(name) ? `head ${c + 1}` : "",
  ].filter(Boolean);
  return where.length ? `, ${where.join(", ")}` : "";
};

/** Draw the matrix of a box that is open. */
function drawMatrix(box) {
  const name = box.dataset.matrix,
    M = look(name),
    { rows, columns } = labels(name, M);
  box.querySelector(".sl-size").textContent = `${M.rows} × ${M.columns}`;
  if (!box.open) return;
  const place = box.querySelector(".sl-place"),
    hadFocus = place.contains(document.activeElement) && document.activeElement.dataset;
  const finite = M.data.filter(Number.isFinite),
    top = name === "alpha" || name === "y" ? 1 : Math.max(...finite.map(Math.abs)) || 1;
  const old = look(name, {}, was),
    litHere = new Set(
      lit
        .filter(
          (cell) => cell.name === name && (cell.l ?? at.l) === at.l && (cell.c ?? at.c) === at.c,
        )
        .map(({ i, j }) => `${i} ${j}`),
    );
  const mine =
    chosen && chosen.name === name && (chosen.l ?? at.l) === at.l && (chosen.c ?? at.c) === at.c
      ? chosen
      : null;
  const head = columns
    .map((label) => `<th scope="col"><span>${escaped(label)}</span></th>`)
    .join("");
  const body = rows.map((label, i) => {
    const cells = columns.map((_, j) => {
      const x = M.row(i)[j],
        text = shown(x),
        once = i < old.rows && j < old.columns ? shown(old.row(i)[j]) : "not there";
      const kinds = [
        x < 0 ? "sl-neg" : "",
        litHere.has(`${i} ${j}`) ? "sl-lit" : "",
        mine?.i === i && mine.j === j ? "sl-chosen" : "",
        once !== text ? "sl-new" : "",
      ]
        .filter(Boolean)
        .join(" ");
      const share = Number.isFinite(x) ? Math.round((50 * Math.abs(x)) / top) : 0;
      const named = kinds ? ` class="${kinds}"` : "",
        marked = once === text ? "" : ` title="was ${once}"`,
        read = once === text ? "" : `<span class="slp-only-read">, was ${once}</span>`;
      return (
        `<td tabindex="-1" data-i="${i}" data-j="${j}" style="--a:${share}%"${named}${marked}>` +
        `${text}${read}</td>`
      );
    });
    return `<tr><th scope="row">${escaped(label)}</th>${cells.join("")}</tr>`;
  });
  const said =
    `${box.querySelector(".sl-letter").textContent}${nameOf(name, at.l, at.c)}, ${M.rows} by ` +
    `${M.columns}`;
  let scroll = place.querySelector(".sl-scroll");
  if (!scroll) place.append((scroll = make("div", { class: "sl-scroll" })));
  const upright = OVER_WORDS.has(name) || OVER_VOCABULARY.has(name) ? " sl-upright" : "";
  scroll.innerHTML =
    `<table class="sl-table${upright}" role="grid" aria-label="${said}">` +
    `<thead><tr><td></td>${head}</tr></thead><tbody>${body.join("")}</tbody></table>`;
  const [i, j] = hadFocus ? [hadFocus.i, hadFocus.j] : mine ? [mine.i, mine.j] : [0, 0];
  const cell =
    scroll.querySelector(`td[data-i="${i}"][data-j="${j}"]`) ?? scroll.querySelector("td[data-i]");
  cell.tabIndex = 0;
  if (hadFocus) cell.focus({ preventScroll: true });
}

function drawMatrices() {
  for (const box of stage.querySelectorAll(".sl-matrix[data-matrix]")) drawMatrix(box);
}

function drawTokens() {
  stage
    .querySelector(".sl-tokens")
    .replaceChildren(
      ...now.words.map((word, i) => make("li", {}, make("b", {}, word), ` id ${now.ids[i]}`)),
    );
}

function drawNext() {
  const y = now.Y.row(now.words.length - 1),
    once = was.Y.row(was.words.length - 1);
  const full = now.ids.length >= most();
  const place = stage.querySelector(".sl-next"),
    focused = [...place.children].indexOf(document.activeElement);
  place.replaceChildren(
    ...likely(y).map((w) => {
      const word = vocabulary[w],
        changed = shown(y[w]) !== shown(once[w]);
      return make(
        "button",
        {
          type: "button",
          disabled: full ? "" : false,
          style: `--share:${(100 * y[w]).toFixed(1)}%; --was:${(100 * once[w]).toFixed(1)}%`,
          class: changed ? "sl-changed" : "",
          onclick: () => write([...now.ids, w]),
        },
        make("span", {}, word),
        make(
          "span",
          {},
          shown(y[w]),
          ...(changed ? [make("span", { class: "slp-only-read" }, `, was ${shown(once[w])}`)] : []),
        ),
      );
    }),
  );
  place.children[focused]?.focus();
  const best = [...y.keys()]
    .sort((a, b) => y[b] - y[a])
    .slice(0, 2)
    .filter((w) => y[w] >= 0.005)
    .map((w) => `${vocabulary[w]} ${shown(y[w])}`);
  stage.querySelector(".sl-said").textContent =
    `After “${now.words.at(-1)}” the model expects ` +
    `${best.join(", ")}.${full ? " It has no position for another." : ""}`;
  const altered = describe(was.switches),
    same = was.words.join(" ") === now.words.join(" ") && altered === describe(now.switches);
  stage.querySelector(".sl-compared").textContent = same
    ? "Change the sentence or the model: every number that differs will be underlined."
    : `Underlined: what differs from “${was.words.join(" ")}”, ${altered}.`;
}

/** All words if they are few; otherwise the most probable. */
const likely = (y) =>
  y.length <= 24 ? [...y.keys()] : [...y.keys()].sort((a, b) => y[b] - y[a]).slice(0, 24);

function describe({ causal, scaled, finalNorm, off, tau }) {
  const changes = [
    causal ? "" : "without the mask",
    scaled ? "" : "without √dₖ",
    finalNorm ? "" : "without the final norm",
    off === null
      ? ""
      : `with head ${placeOfHead(off).head + 1} of block ${placeOfHead(off).block + 1} off`,
    tau === 1 ? "" : `at τ = ${tau}`,
  ].filter(Boolean);
  return changes.join(", ") || "as trained";
}

/** What made the number that was touched: figures, equation, code, and its row and column. */
function drawDock() {
  const dock = stage.querySelector(".sl-dock");
  dock.hidden = !chosen;
  document.documentElement.classList.toggle("sl-docked", Boolean(chosen));
  if (!chosen) return;
  const made = EXPLAIN[chosen.name](chosen),
    x = value(chosen),
    once = valueBefore(chosen);
  lit = made.strips.flat();
  const title = make("p", { class: "sl-title" });
  title.innerHTML =
    `<b>${LETTERS[chosen.name]}</b> <span></span> ` + `<b class="sl-value">= ${shown(x, 4)}</b>`;
  title.children[1].textContent = `${placeOf(chosen)}${nameOf(chosen.name, chosen.l, chosen.c)}`;
  if (once === undefined || shown(once) !== shown(x))
    title.append(
      make(
        "span",
        { class: "sl-was" },
        once === undefined ? " was not there" : ` was ${shown(once)}`,
      ),
    );
  const buttons = make(
    "span",
    { class: "sl-buttons" },
    make(
      "button",
      {
        type: "button",
        disabled: before.length ? false : "",
        onclick: () => select(before.pop(), false),
      },
      "Back",
    ),
    make("button", { type: "button", onclick: close }, "Close"),
  );
  const from = document.querySelector(`#m-${chosen.name} .sl-equation`);
  const about = make("div", { class: "sl-about" });
  if (from) about.append(...[...from.children].map((one) => one.cloneNode(true)));
  const hooked =
    HOOKED.has(chosen.name) &&
    `trace[${chosen.l}]["${chosen.name}"]` +
      (BY_HEAD.has(chosen.name) ? `[${chosen.c}]` : "") +
      `[${chosen.i}, ${chosen.j}]`;
  if (hooked && tokenizer.python)
    about.append(
      make("p", { class: "sl-code" }, "in Python, as below: ", make("code", {}, hooked)),
    );
  const figures = make("p", { class: "sl-figures", role: "status" });
  figures.innerHTML = `${made.figures} = ${shown(x)}`;
  dock.replaceChildren(
    make("div", { class: "sl-head" }, title, buttons),
    figures,
    make(
      "p",
      { class: "sl-say" },
      `${made.say ?? ""} ` +
        (made.strips.length
          ? "Figures are rounded, the result is not made from rounded ones."
          : ""),
    ),
    ...(made.strips.length ? [strips(made)] : []),
    about,
  );
}

/** The row and the column as two strips of numbers to follow, and their products. */
function strips({ strips: cells, products }) {
  const table = make("table", { class: "sl-table sl-strips" });
  cells.forEach((strip) => {
    const tops = Math.max(
        ...strip.map((cell) => Math.abs(value(cell))).filter(Number.isFinite),
        1e-9,
      ),
      { name } = strip[0];
    const label = make("th", { scope: "row" });
    label.innerHTML = strip.some((cell) => cell.c !== strip[0].c)
      ? `all ${LETTERS[name]}`
      : LETTERS[strip.find((cell) => cell.name === "masked")?.name ?? name];
    table.append(
      make(
        "tr",
        {},
        label,
        ...strip.map((cell) => {
          const x = value(cell),
            share = Number.isFinite(x) ? Math.round((50 * Math.abs(x)) / tops) : 0;
          const where =
            `${document.querySelector(`#m-${name} .sl-letter`).textContent} ` +
            `${placeOf(cell)}${nameOf(name, cell.l, cell.c)}: ${shown(x)}`;
          return make(
            "td",
            { style: `--a:${share}%`, class: x < 0 ? "sl-neg" : "" },
            make(
              "button",
              {
                type: "button",
                "aria-label": where,
                title: where,
                onclick: () => select({ l: at.l, c: at.c, ...cell }),
              },
              shown(x),
            ),
          );
        }),
      ),
    );
  });
  if (products && cells[0].length > 1)
    table.append(
      make(
        "tr",
        {},
        make("th", { scope: "row" }, "product"),
        ...products.map((x) => make("td", {}, shown(x))),
      ),
    );
  return make(
    "div",
    { class: "sl-scroll", tabindex: "0", role: "group", "aria-label": "The numbers that made it" },
    table,
  );
}

/** Explain a number, and show its matrix. */
function select(cell, remember = true) {
  if (!cell) return;
  if (remember && chosen) before.push(chosen);
  chosen = cell;
  if (BY_BLOCK.has(cell.name)) at.l = cell.l ?? at.l;
  if (BY_HEAD.has(cell.name)) at.c = cell.c ?? at.c;
  chosen = { ...cell, l: cell.l ?? at.l, c: cell.c ?? at.c };
  radios();
  drawDock();
  const box = document.getElementById(`m-${cell.name}`);
  for (let /** @type {HTMLElement} */ up = box; up && up !== stage; up = up.parentElement)
    if (up instanceof HTMLDetailsElement) up.open = true;
  drawMatrices();
  const there = box.querySelector(".sl-chosen");
  there?.scrollIntoView({
    block: "nearest",
    inline: "nearest",
    behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
  });
}

function close() {
  const { name, i, j } = chosen;
  chosen = null;
  lit = [];
  before = [];
  drawDock();
  drawMatrices();
  document
    .querySelector(`#m-${name} td[data-i="${i}"][data-j="${j}"]`)
    ?.focus({ preventScroll: true });
}

// --- What the reader changes -----------------------------------------------------------------

const switches = () => ({
  causal: find("causal").checked,
  scaled: find("scaled").checked,
  finalNorm: find("finalNorm").checked,
  off: find("off").value === "" ? null : Number(find("off").value),
  tau: Number(find("tau").value),
});

function refresh(ids = now.ids) {
  compute(ids, switches());
  if (chosen) {
    // what is explained may be gone
    const M = look(chosen.name, chosen);
    if (chosen.i >= M.rows || chosen.j >= M.columns) [chosen, lit, before] = [null, [], []];
    before = before.filter(
      (cell) => cell.i < look(cell.name, cell).rows && cell.j < look(cell.name, cell).columns,
    );
  }
  stage.querySelector(".sl-switches output").textContent = now.switches.tau.toFixed(1);
  find("back").disabled = ids.length < 2;
  drawTokens();
  drawNext();
  drawDock();
  drawMatrices();
}

/** Show what the field holds, or say in a sentence why not. */
function read() {
  let wrong = "",
    ids = [];
  try {
    ids = tokenizer.encode(find("text").value);
    if (!ids.length) wrong = "Write one word at least.";
    if (ids.length > most())
      wrong = `There are ${most()} positions here, and these are ${ids.length} tokens.`;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    wrong = error.message;
  }
  find("note").textContent = wrong;
  find("text").setAttribute("aria-invalid", String(Boolean(wrong)));
  if (!wrong) refresh(ids);
}

function write(ids) {
  find("text").value = tokenizer.decode(ids);
  find("note").textContent = "";
  find("text").setAttribute("aria-invalid", "false");
  refresh(ids);
}

function radios() {
  for (const input of stage.querySelectorAll("#sl-block input"))
    input.checked = Number(input.value) === at.l;
  for (const input of stage.querySelectorAll("#sl-head input"))
    input.checked = Number(input.value) === at.c;
}

/** Offer the blocks and heads of a model. */
function offerHeads() {
  const { num_blocks: L } = model.config,
    { A } = model.sizes;
  const choices = (id, count, key) =>
    find(id).replaceChildren(
      find(id).firstElementChild,
      ...numbers(count).map((label, k) =>
        make(
          "label",
          {},
          make("input", {
            type: "radio",
            name: `sl-${id}`,
            value: k,
            onchange: () => {
              at[key] = k;
              drawMatrices();
            },
          }),
          ` ${label}`,
        ),
      ),
    );
  choices("block", L, "l");
  choices("head", A, "c");
  radios();
  find("off").replaceChildren(
    make("option", { value: "" }, "none"),
    ...Array.from({ length: L * A }, (_, k) =>
      make(
        "option",
        { value: k },
        `block ${placeOfHead(k).block + 1}, head ${placeOfHead(k).head + 1}`,
      ),
    ),
  );
}

function listen() {
  find("text").addEventListener("input", read);
  find("back").addEventListener("click", () => write(now.ids.slice(0, -1)));
  for (const name of ["causal", "scaled", "finalNorm", "off", "tau"])
    find(name).addEventListener("input", () => refresh());
  find("trained").addEventListener("click", () => {
    for (const name of ["causal", "scaled", "finalNorm"]) find(name).checked = true;
    find("off").value = "";
    find("tau").value = "1";
    refresh();
  });
  find("pin").addEventListener("click", () => {
    compareWithNow();
    refresh();
  });
  for (const box of stage.querySelectorAll(".sl-matrix[data-matrix]")) {
    box.addEventListener("toggle", () => drawMatrix(box));
    const cellOf = (event) => event.target.closest("td[data-i]");
    box.addEventListener("click", (event) => {
      const cell = cellOf(event);
      if (cell)
        select({
          name: box.dataset.matrix,
          ...at,
          i: Number(cell.dataset.i),
          j: Number(cell.dataset.j),
        });
    });
    box.addEventListener("keydown", (event) => {
      const cell = cellOf(event);
      if (!cell) return;
      const i = Number(cell.dataset.i),
        j = Number(cell.dataset.j),
        M = look(box.dataset.matrix);
      const to = {
        ArrowUp: [i - 1, j],
        ArrowDown: [i + 1, j],
        ArrowLeft: [i, j - 1],
        ArrowRight: [i, j + 1],
        Home: [i, 0],
        End: [i, M.columns - 1],
      }[event.key];
      if (to) {
        const next = box.querySelector(`td[data-i="${to[0]}"][data-j="${to[1]}"]`);
        if (next) {
          cell.tabIndex = -1;
          next.tabIndex = 0;
          next.focus();
        }
      } else if (event.key === "Enter" && cell.classList.contains("sl-chosen"))
        (
          stage.querySelector(".sl-strips button") ?? stage.querySelector(".sl-dock button:enabled")
        ).focus();
      else if (event.key === "Enter" || event.key === " ") cell.click();
      else return;
      event.preventDefault();
    });
  }
  offered(find("drop"), find("folder"), ownRun);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chosen) close();
  });
  addEventListener("hashchange", follow);
}

/** Open the matrix that the address names. */
function follow() {
  const box = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (box?.matches(".sl-matrix")) {
    box.open = true;
    box.scrollIntoView();
  }
}

// --- Models ----------------------------------------------------------------------------------

const LONGEST = 16,
  LARGEST = 40000; // tokens in a row, and numbers in a matrix, that can still be read
const most = () => Math.min(model.config.context_length, LONGEST);
const MADE_OF = [
  "positions",
  "norm",
  "normalization",
  "activation",
  "tied",
  "qk_norm",
  "attention_bias",
  "ffn_bias",
  "scaled_embeddings",
]; // settings that this page explains the book's choice of

/** Refuse a model whose numbers are made in other ways than the book's, or are too many to be
   shown. */
function check({ config, sizes, E }) {
  const other = MADE_OF.find((name) => config[name] !== BOOK[name]);
  if (other)
    throw new Refusal(
      `This page shows the book's own block, with ${other} = ${BOOK[other]}; this model ` +
        `has ${config[other]}. “Write with it” reads it.`,
    );
  if (sizes.G !== sizes.A || sizes.dk !== sizes.dv)
    throw new Refusal(
      "This page shows heads with keys, values and queries of one size, as many of each. " +
        "“Write with it” reads this model.",
    );
  const numbers = Math.max(config.model_dim * sizes.hidden, E.data.length);
  if (numbers > LARGEST)
    throw new Refusal(
      `A matrix of this model has ${numbers} numbers; this page shows up to ${LARGEST}. ` +
        `“Write with it” reads it.`,
    );
}

/** Take a model, and show a first text. */
function take(given, first) {
  takeModel(given, given.tokenizer.encode(first), switches());
  [chosen, lit, before] = [null, [], []];
  offerHeads();
  find("text").value = first;
  read();
}

const ownRun = async (files) => {
  try {
    const run = readRun(await bestCheckpoint(await files));
    check(run.model);
    const words = run.tokenizer.vocabulary.map((token) =>
      token.replace(/[ Ġ]/g, "␣").replace(/[\nĊ]/g, "⏎"),
    );
    const ids = [
      Math.max(
        0,
        words.findIndex((word) => /^\p{L}/u.test(word)),
      ),
    ]; // a letter or a word, and what follows
    while (ids.length < Math.min(run.model.config.context_length, 10))
      ids.push(greedy(run.model.forward(ids, { last: true }).row(0)));
    find("which").textContent =
      `Your run: ${run.model.config.num_blocks} blocks of ${run.model.sizes.A} heads, ` +
      `${words.length} ${run.tokenizer.kind}. Your text:`;
    take({ ...run, vocabulary: words }, run.tokenizer.decode(ids));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    find("note").textContent = error.message;
  }
};

/** Chapter 5's words: in lower case, between blanks. */
const wordsOf = (known) => ({
  encode: (text) =>
    text
      .toLowerCase()
      .replace(/\./g, " . ")
      .split(/\s+/)
      .filter(Boolean)
      .map((word) => {
        if (!known.includes(word))
          throw new Refusal(`The model has never read “${word}”. It knows ${known.join(" ")}`);
        return known.indexOf(word);
      }),
  decode: (ids) => ids.map((id) => known[id]).join(" "),
  python: true, // chapter 5 computes the same
});

async function begin() {
  const fetched = ["config.json", "words.json", "model.safetensors"].map(async (name) => {
    const answer = await fetch(`${stage.dataset.assets}chapter5/${name}`);
    if (!answer.ok) throw new Error(`${name} cannot be fetched`);
    return new Uint8Array(await answer.arrayBuffer());
  });
  const [config, words, weights] = await Promise.all(fetched);
  const { vocabulary: known } = readJSON(words, "words.json");
  listen();
  take(
    {
      model: readModel(readJSON(config, "config.json"), weights),
      vocabulary: known,
      tokenizer: wordsOf(known),
    },
    stage.dataset.first,
  );
  for (const hidden of stage.querySelectorAll(".sl-live")) hidden.hidden = false;
  stage.classList.add("sl-alive");
  document.getElementById("m-alpha").open = true;
  drawMatrices();
  follow();
}

export const inside = {
  EXPLAIN,
  MATRICES,
  LETTERS,
  value,
  look,
  select,
  sizes: () => [model.config.num_blocks, model.sizes.A],
}; // for tests
export const ready = begin().catch((error) => {
  stage.prepend(
    make("p", { class: "sl-note" }, `The model could not be loaded: ${error.message}.`),
  );
});
