/* The page "Open your chapter": a reader's own PDF, with what we have for its equations beside it.
   Of the file nothing is kept and nothing is sent. */

import { recognize, reportOn, withNumbers } from "./chapter.js";
import { destinationsOf } from "./destinations.js";
import { choose, columnsOfText } from "./finder.js";
import { Refused, Viewer } from "./viewer.js";

const CALM = /** @type {FocusOptions} */ ({ preventScroll: true, focusVisible: false });
const KEY = "slp-draft"; // as on all pages
const SETTLE_EVERY = 25; // pages
const PATIENCE_MS = 5000; // for a chapter
const LOOK_MS = 60; // between looks whether it is there
const site = new URL("../..", import.meta.url);
const find = (name) => document.getElementById(`b-${name}`);
const make = (tag, given = {}, ...inside) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
};
const fetchJson = async (name) => (await fetch(new URL(name, site))).json();

let known = null; // { drafts, figures }, once a file is opened
const loadKnown = () =>
  (known ??= Promise.all([fetchJson("equations.json"), fetchJson("figures.json")]).then(
    ([equations, figures]) => ({
      drafts: withNumbers(JSON.parse(find("drafts").textContent), equations),
      figures,
    }),
  ));

const viewer = new Viewer(find("pages"), (page) => {
  if (document.activeElement !== find("page")) find("page").value = String(page);
  find("zoom").value = `${Math.round(100 * viewer.scale)} %`;
});

// What is open: { pages, destinations, drafts, figures, draft, marks, chosen }
let book = null;
let shown = null; // the mark whose place is beside the page
let last = null; // the mark that was shown last
let opener = null; // what had the focus before

/* By this name a chapter's tab finds the one that it came from. It is new each time, so that two
   tabs never have the same. */
window.name = `slp-pdf-${Math.random().toString(36).slice(2)}`;
const channel = new BroadcastChannel("slp-pdf");

/* The stage takes what the site's header leaves. */
const below = () => {
  const height =
    /** @type {HTMLElement} */ (document.querySelector(".md-header"))?.offsetHeight ?? 0;
  find("stage").style.setProperty("--b-top", `${height}px`);
};
addEventListener("resize", below);

/* --- opening --------------------------------------------------------------------------------- */

const refuse = (text) => {
  find("refused").textContent = text;
  leave();
  find("file").focus();
};

async function open(file) {
  find("refused").textContent = "";
  shut();
  find("stage").hidden = false;
  document.documentElement.classList.add("slp-book-open");
  below();
  // Keys of the theme that lead to the next page would lose the file.
  for (const link of document.querySelectorAll("link[rel=prev], link[rel=next]")) link.remove();
  find("says").replaceChildren(`Opening ${file.name} …`);
  find("hits").textContent = find("words").value = "";
  book = null;
  try {
    const [{ drafts, figures }, isOpen] = await Promise.all([loadKnown(), viewer.open(file)]);
    if (!isOpen) return;
    const own = (book = {
      pages: [],
      total: viewer.pages.length,
      destinations: [],
      drafts,
      figures,
      draft: null,
      marks: [],
      chosen: [],
    });
    find("page").max = String(own.total);
    find("count").textContent = `of ${own.total}`;
    find("pages").focus(CALM);
    const destinations = destinationsOf(viewer.pdf).catch(() => []);
    const ready = await Promise.race([destinations, new Promise((go) => setTimeout(go, 5000, []))]);
    if (own === book) own.destinations = ready;
    for await (const page of viewer.read()) {
      if (own !== book) return;
      own.pages.push(page);
      if (own.pages.length % SETTLE_EVERY === 0 || own.pages.length === own.total) settle();
      else if (own.pages.length === 1) say(report());
    }
  } catch (error) {
    if (!(error instanceof Refused)) {
      console.error(error);
      refuse("This PDF could not be shown.");
    } else if (book?.pages.length) say({ text: error.message, missing: [], chapterPage: 0 });
    else refuse(error.message);
  }
}

function leave() {
  viewer.close();
  book = null;
  tell();
  shut();
  find("frame").removeAttribute("src");
  find("stage").hidden = true;
  document.documentElement.classList.remove("slp-book-open");
  find("file").value = "";
}

/* --- which draft, and what there is of it ---------------------------------------------------- */

const recognized = () =>
  recognize(book.chosen, book.drafts, book.pages[0]?.text ?? "", find("draft").value);
const report = () => {
  const { pages, total, chosen, drafts } = book;
  return reportOn({ pages, total, chosen, recognized: recognized(), drafts });
};

function settle() {
  book.chosen = choose(book.pages, book.destinations);
  const { draft } = recognized();
  const before = book.draft;
  book.draft = draft;
  viewer.columns = columnsOfText(book.pages);
  if (viewer.fit === "page") viewer.refit();
  if (draft && draft !== before) keepDraft(draft.key);
  mark(draft !== before);
  say(report());
  tell();
  noteOnFrame();
}

/* The draft is that of the whole site: chapters show its numbers. */
function keepDraft(key) {
  try {
    if (localStorage.getItem(KEY) === key) return;
    localStorage.setItem(KEY, key);
  } catch {
    return; // nothing is remembered where nothing may be
  }
  if (shown) find("frame").contentWindow?.location.reload();
}

function say({ text, missing, chapterPage }) {
  const parts = [make("span", {}, text)];
  if (chapterPage)
    parts.push(
      make(
        "button",
        { type: "button", onclick: () => viewer.goTo(chapterPage) },
        `Go to page ${chapterPage}`,
      ),
    );
  if (missing.length && book?.pages.length === book?.total) {
    const list = missing.map(({ number, equation }) =>
      make(
        "a",
        { href: addressOf(equation.chapters[0]), target: "slp-chapter", title: equation.title },
        number,
      ),
    );
    const inside = list.flatMap((link, k) => (k ? [", ", link] : [link]));
    const fold = make(
      "details",
      {},
      make("summary", {}, `Not found: ${missing.length}`),
      ...inside,
    );
    parts.push(fold);
  }
  const isSame = find("says").textContent === parts.map((part) => part.textContent).join("");
  if (!isSame) find("says").replaceChildren(...parts);
}

/* --- markers --------------------------------------------------------------------------------- */

const addressOf = (place) => new URL(place, site).href;

/* What we have for a number of the draft, if anything. */
function entryOf(one) {
  const number = `${one.chapter}.${one.index}`;
  const { key, numbers } = book.draft;
  if (one.kind === "figure" || one.kind === "exercise") {
    const found = book.figures[`${one.kind}s`][key]?.[number];
    if (!found) return null;
    const name = one.kind === "figure" ? `Figure ${number}` : `Exercise ${number}`;
    return {
      number,
      name,
      title: found[0].title,
      places: found.map(({ at }) => at),
      equation: null,
    };
  }
  const equation = numbers.get(number);
  return (
    equation && {
      number,
      name: `(${number})`,
      title: equation.title,
      places: equation.chapters,
      equation,
    }
  );
}

/* Markers that are there already stay, so that none goes from under a pointer. */
function mark(isOther) {
  const before = new Map(isOther ? [] : book.marks.map((one) => [one.key, one]));
  for (const one of isOther ? book.marks : []) one.button.remove();
  const marks = [];
  for (const one of book.draft ? book.chosen : []) {
    const entry = entryOf(one);
    if (!entry) continue;
    const key = `${one.page} ${one.kind} ${entry.number} ${one.y}`;
    const kept = before.get(key);
    before.delete(key);
    marks.push(kept ?? { ...entry, key, found: one, button: buttonFor(entry, one) });
  }
  for (const one of before.values()) one.button.remove();
  book.marks = marks;
}

function buttonFor(entry, one) {
  const page = viewer.pages[one.page - 1];
  const button = make("button", {
    type: "button",
    class: `b-mark b-${one.kind}`,
    title: entry.title,
    "aria-label": `${entry.name}, ${entry.title}`,
    "aria-expanded": "false",
    onclick: () => show(book.marks.find((own) => own.button === button)),
  });
  viewer.place(
    button,
    page,
    one.x - 1,
    one.y - 0.85 * one.size,
    one.end + 1,
    one.y + 0.3 * one.size,
  );
  page.marks.append(button);
  return button;
}

/* --- beside the page ------------------------------------------------------------------------- */

/* `isThere`: the frame has the place already. */
function show(one, place = 0, isThere = false) {
  const isFirst = find("panel").hidden;
  if (isFirst) opener = one.button;
  for (const other of book.marks) other.button.setAttribute("aria-expanded", String(other === one));
  if (document.activeElement.matches(".b-mark")) one.button.focus({ preventScroll: true });
  shown = last = one;
  find("title").replaceChildren(make("span", { class: "b-number" }, one.name), ` ${one.title}`);
  find("panel").hidden = false;
  find("both").classList.add("b-two");
  const address = addressOf(one.places[place]);
  const ways = [make("a", { href: address, target: "slp-chapter" }, "Open in the chapter")];
  if (one.places.length > 1)
    one.places.forEach((_, k) =>
      ways.push(
        make(
          "button",
          { type: "button", "aria-pressed": String(k === place), onclick: () => show(one, k) },
          `${one.equation ? "Chapter" : "Place"} ${k + 1}`,
        ),
      ),
    );
  find("ways").replaceChildren(...ways);
  if (!isThere) go(address);
  noteOnFrame();
  const { found } = one;
  if (isFirst) viewer.refit();
  const page = viewer.pages[found.page - 1];
  const top = page.element.offsetTop + found.y * viewer.scale;
  const { scrollTop, clientHeight } = find("pages");
  if (top < scrollTop + 40 || top > scrollTop + clientHeight - 60 || isFirst)
    viewer.goTo(found.page, found.y);
}

/* Exercises of the PDF that ask for this equation have markers of their own; ours come from the
   chapter. */
const exercisesIn = (doc, slug) => {
  const found = [];
  for (const heading of doc.querySelectorAll("h3[id^=exercise]")) {
    for (
      let next = heading.nextElementSibling;
      next && !next.matches("h2, h3");
      next = next.nextElementSibling
    ) {
      if (
        ![...next.querySelectorAll("a[href*='#eq-']")].some(
          (link) => decodeURIComponent(link.hash) === `#eq-${slug}`,
        )
      )
        continue;
      const name = heading.firstChild?.textContent.split(" · ")[0] ?? "Exercise";
      found.push(
        make(
          "button",
          { type: "button", onclick: () => go(new URL(`#${heading.id}`, doc.location.href).href) },
          name,
        ),
      );
      break;
    }
  }
  return found;
};

/* Within a chapter the frame stays, with what a reader has written into its cells. */
function go(address) {
  const frame = find("frame"),
    there = frameDocument();
  const [path, hash] = address.split("#");
  if (there && there.location.href.split("#")[0] === path && there.readyState !== "loading") {
    if (there.location.hash === `#${hash}`)
      there.getElementById(decodeURIComponent(hash))?.scrollIntoView();
    else there.location.replace(address);
    return;
  }
  if (frame.contentWindow && frame.src) frame.contentWindow.location.replace(address);
  else frame.src = address;
  arrive(address);
}

/* A chapter is shown once it stands at its place and stays there, not its beginning before. */
let coming = "";
async function arrive(address) {
  const frame = find("frame"),
    id = decodeURIComponent(address.split("#")[1] ?? "");
  coming = address;
  frame.classList.add("b-coming");
  let before = null,
    still = 0,
    waited = 0;
  while (still < 2 && waited < PATIENCE_MS) {
    await new Promise((go) => setTimeout(go, LOOK_MS));
    if (coming !== address) return;
    waited += LOOK_MS;
    const doc = frameDocument();
    if (doc?.location.href !== address || doc.readyState !== "complete") continue;
    const top = doc.getElementById(id)?.getBoundingClientRect().top ?? 0;
    still = top === before ? still + 1 : 0;
    before = top;
  }
  frame.classList.remove("b-coming");
  noteOnFrame();
}

const frameDocument = () => {
  try {
    const doc = find("frame").contentDocument;
    return doc?.location.href.startsWith(site.href) ? doc : null;
  } catch {
    return null; // it has gone elsewhere
  }
};

function shut() {
  if (!shown) return;
  shown.button.setAttribute("aria-expanded", "false");
  const target = shown.button.isConnected ? shown.button : opener;
  shown = null;
  find("panel").hidden = true;
  find("both").classList.remove("b-two");
  viewer.refit();
  if (book && target?.isConnected) target.focus({ preventScroll: true });
}

function isInSight(one) {
  if (!one?.button.isConnected) return false;
  const { top, bottom } = find("pages").getBoundingClientRect();
  const own = one.button.getBoundingClientRect();
  return own.bottom > top && own.top < bottom;
}

/* From what is open, or was until now; else from the page in the middle. */
function step(by) {
  if (!book?.marks.length) return;
  const list = book.marks;
  const focused = list.find(({ button }) => button === document.activeElement);
  const at = list.indexOf(shown ?? focused ?? (isInSight(last) ? last : null));
  const here = viewer.current;
  const first =
    by > 0
      ? list.findIndex(({ found }) => found.page >= here)
      : list.findLastIndex(({ found }) => found.page <= here);
  const next = at < 0 ? first : at + by;
  if (next >= 0 && next < list.length) show(list[next]);
}

/* --- from the chapter back to the PDF -------------------------------------------------------- */

/* Which of our equations have markers here: chapters ask, in the frame and in tabs of their own. */
function tell() {
  const equations = (book?.marks ?? []).flatMap(({ equation }) => equation?.slug ?? []);
  channel.postMessage({ kind: "here", tab: window.name, slugs: [...new Set(equations)] });
}

channel.addEventListener("message", ({ data }) => {
  if (data.kind === "ask" && book) tell();
  if (data.kind !== "turn" || data.tab !== window.name) return;
  const one = book?.marks.find(({ equation }) => equation?.slug === data.slug);
  if (!one) return tell();
  if (shown) {
    const here = frameDocument()?.location.href.split("#")[0];
    const place = one.places.findIndex((own) => addressOf(own).split("#")[0] === here);
    show(one, Math.max(0, place), data.isFramed);
    const isCovered = getComputedStyle(find("panel")).position === "absolute";
    if (isCovered) shut(); // on a small screen
  }
  viewer.goTo(one.found.page, one.found.y);
  flash(one.button);
  channel.postMessage({ kind: "turned", tab: window.name, slug: data.slug });
});
addEventListener("pagehide", () => {
  channel.postMessage({ kind: "here", tab: window.name, slugs: [] });
});
addEventListener("pageshow", tell);

/* What is said above the frame of what is in it. */
function noteOnFrame() {
  const doc = frameDocument();
  const note = [];
  const has = (selector) => doc?.querySelector(selector);
  if (find("frame").matches(".b-coming")) note.push("Opening the chapter …");
  else if (has(".slp-chapter") && !has(".slp-cell")) {
    const how = make("a", { href: addressOf("#read-it"), target: "slp-chapter" }, "mkdocs serve");
    note.push("Its cells run under ", how, ".");
  } else if (has(".slp-cell") && !has(".slp-cell-bar"))
    note.push("Its cells can be changed and run from the link that the terminal shows.");
  else if (has(".slp-cell") && !has(".slp-cell-output:not([hidden])"))
    note.push("The first run of a cell also runs those above it.");
  find("note").replaceChildren(...note);
  if (!shown?.equation || !doc) return;
  const texts = [...find("ways").children].map((child) => child.textContent);
  for (const button of exercisesIn(doc, shown.equation.slug))
    if (!texts.includes(button.textContent)) find("ways").append(button);
}

function flash(button) {
  button.classList.add("b-flash");
  setTimeout(() => button.classList.remove("b-flash"), 1500);
}

find("frame").addEventListener("load", () => {
  const doc = frameDocument();
  if (!doc?.querySelector("article")) return;
  doc.addEventListener("keydown", onKey);
  doc.addEventListener("slp:replaced", noteOnFrame);
  noteOnFrame();
});

/* --- controls -------------------------------------------------------------------------------- */

const EDITORS = "input, select, textarea, [contenteditable], .cm-editor";
function onKey(event) {
  if (!book || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.(EDITORS)) return;
  if (event.key === "Escape") shut();
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else return;
  event.preventDefault();
}
document.addEventListener("keydown", onKey);

/* Another page of the site would take the place of the PDF: it comes in the chapter's tab. */
document.addEventListener("click", (event) => {
  const link = /** @type {HTMLElement} */ (event.target).closest("a[href]");
  if (!book || !(link instanceof HTMLAnchorElement) || link.target) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (link.href.split("#")[0] === location.href.split("#")[0]) return;
  event.preventDefault();
  window.open(link.href, "slp-chapter");
});

/* Who comes back finds no PDF, and is told why. */
const [visit] = performance.getEntriesByType("navigation");
if (/reload|back/.test(/** @type {PerformanceNavigationTiming} */ (visit)?.type))
  find("refused").textContent =
    "A PDF that was open here is gone with its page, since nothing of it is kept. Choose it again.";

find("file").addEventListener("change", ({ target }) => {
  const [file] = target.files;
  if (file) open(file);
  target.value = ""; // the same one may be chosen again
});
find("other").addEventListener("click", () => find("file").click());
find("leave").addEventListener("click", () => {
  leave();
  find("file").focus();
});
find("shut").addEventListener("click", shut);
find("next").addEventListener("click", () => step(1));
find("before").addEventListener("click", () => step(-1));
find("in").addEventListener("click", () => viewer.zoom(1.2));
find("out").addEventListener("click", () => viewer.zoom(1 / 1.2));
find("fit").addEventListener("click", () => {
  viewer.fit = viewer.fit === "text" ? "whole" : "text";
  viewer.refit();
});
find("page").addEventListener("change", ({ target }) => viewer.goTo(Number(target.value)));
find("draft").addEventListener("change", () => {
  if (!book?.pages.length) return;
  settle();
  if (!find("draft").value || !shown) return;
  if (!book.marks.includes(shown)) shut();
});
find("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const found = viewer.search(find("words").value);
  find("hits").textContent = !found
    ? ""
    : found.count
      ? `${found.at} of ${found.count}`
      : "not found";
});

for (const kind of ["dragenter", "dragover"])
  document.addEventListener(kind, (event) => {
    const { dataTransfer } = /** @type {DragEvent} */ (event);
    if (!dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    dataTransfer.dropEffect = "copy";
  });
document.addEventListener("drop", (event) => {
  const [file] = /** @type {DragEvent} */ (event).dataTransfer?.files ?? [];
  if (!file) return;
  event.preventDefault();
  open(file);
});
