/* Shows a PDF: pages are drawn as they come into sight, and let go of when they leave it. pdf.js
   does the work, most of it in threads of its own, which are ended when they do not answer. */

import { readPage } from "./finder.js";

const MAX_BYTES = 200 * 2 ** 20;
const MAX_PAGES = 2000;
const MAX_ITEMS = 12_000; // of text on a page
const MAX_LETTERS = 60_000; // in them
const MAX_DRAWN = 300_000; // operations of a page that was slow to read, and numbers in them
const [SLOW_MS, TOO_SLOW_MS] = [1500, 5000]; // to read a page's text; a plain one takes some 20
const MAX_TEXT = 20_000_000; // letters of all pages, for the search
const MAX_LINKS = 300; // on a page
const MAX_PIXELS = 2 ** 24; // of a drawn page
const MAX_SIDE = 20_000; // points
const PATIENCE_MS = 15_000;
const MAX_SKIPPED = 20; // pages that cannot be read, before one gives up
const GAP = 14;
const [LEAST_SCALE, MOST_SCALE] = [0.3, 4];

/** A PDF that is not shown, and why, in a sentence. */
export class Refused extends Error {}

let coming = null;
const load = () =>
  (coming ??= import(new URL("pdfjs/pdf.min.mjs", import.meta.url).href).catch((error) => {
    coming = null;
    throw error;
  }));

/** What a promise comes to, unless that takes too long. */
const within = (promise, ms = PATIENCE_MS) => {
  let timer = 0;
  const late = new Promise((_, fail) => {
    timer = setTimeout(
      () => fail(new Refused("This PDF keeps its reader busy without an end.")),
      ms,
    );
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

/** A page that has left the screen while it was drawn. */
class Gone extends Error {}

const nextFrame = () => new Promise((go) => setTimeout(go));

/** How many numbers and other things arguments of operations have. */
const countNumbers = (list) => {
  let count = 0;
  for (const args of list)
    for (const one of args ?? [])
      for (const part of Array.isArray(one) ? one : [one]) count += part?.length ?? 1;
  return count;
};

export class Viewer {
  /** @param {HTMLElement} box where pages scroll @param {(page: number) => void} onPage */
  constructor(box, onPage) {
    this.box = box;
    this.onPage = onPage;
    this.pages = [];
    this.scale = 1;
    this.fit = "page";
    /** @type {{ start: number, end: number }[] | null} */
    this.columns = null; // where the text of even and of odd pages begins and ends
    this.observer = new IntersectionObserver((entries) => this.#seen(entries), {
      root: box,
      rootMargin: "60% 0px",
    });
    box.addEventListener("scroll", () => this.#soon(), { passive: true });
    new ResizeObserver(() => this.refit()).observe(box);
  }

  /** Open a file, show its first page; throws `Refused` where it is none that can be shown. */
  async open(file) {
    this.close();
    if (file.size > MAX_BYTES)
      throw new Refused(
        `${file.name} has ${Math.round(file.size / 2 ** 20)} MB; a PDF may have ` +
          `${MAX_BYTES / 2 ** 20} MB here.`,
      );
    const data = new Uint8Array(await file.arrayBuffer());
    const start = new TextDecoder("latin1").decode(data.subarray(0, 1024));
    if (!start.includes("%PDF-")) throw new Refused(`${file.name} is not a PDF.`);
    const pdfjs = (this.pdfjs = await load());
    const opening = (this.opening = Symbol());
    this.thread = new Worker(new URL("pdfjs/pdf.worker.min.mjs", import.meta.url), {
      type: "module",
    });
    const worker = new pdfjs.PDFWorker({ port: this.thread });
    this.task = pdfjs.getDocument({
      data,
      worker,
      enableXfa: false, // nothing of a form is made
      useWasm: false,
      maxImageSize: 2 ** 25,
      canvasMaxAreaInBytes: 4 * MAX_PIXELS,
      verbosity: 0,
    });
    try {
      this.pdf = await within(this.task.promise);
      if (this.pdf.numPages > MAX_PAGES)
        throw new Refused(
          `${file.name} has ${this.pdf.numPages.toLocaleString("en")} pages; a PDF may ` +
            `have ${MAX_PAGES.toLocaleString("en")} here.`,
        );
      const first = await within(this.pdf.getPage(1));
      const { width, height } = this.#sizeOf(first);
      if (opening !== this.opening) return false;
      this.#lay(width, height);
      return true;
    } catch (error) {
      this.close();
      if (error instanceof Refused) throw error;
      throw new Refused(
        error?.name === "PasswordException"
          ? `${file.name} asks for a password. Save a copy without one in the program that ` +
              `opens it, and open that.`
          : `${file.name} is damaged: no page of it can be read.`,
      );
    }
  }

  /** Let go of the file, and of all that came of it. */
  close() {
    this.opening = null;
    for (const page of this.pages) this.#release(page);
    this.observer.disconnect();
    this.task?.destroy().catch(() => {});
    const { thread } = this;
    setTimeout(() => thread?.terminate(), 500); // a thread that hangs would not end by itself
    this.task = this.pdf = this.thread = this.columns = null;
    this.pages = [];
    this.queue = [];
    this.box.replaceChildren();
  }

  #sizeOf(page) {
    const view = page.getViewport({ scale: 1 });
    const isSane = [view.width, view.height].every((side) => side > 1 && side < MAX_SIDE);
    if (!isSane) throw new Refused("A page of this PDF has no size that can be shown.");
    return view;
  }

  #lay(width, height) {
    this.pages = Array.from({ length: this.pdf.numPages }, (_, at) => {
      const element = document.createElement("section");
      element.className = "b-page";
      element.setAttribute("aria-label", `Page ${at + 1}`);
      const marks = document.createElement("div");
      marks.className = "b-marks";
      element.append(marks);
      return { number: at + 1, element, marks, width, height, drawn: 0, canvas: null, text: "" };
    });
    this.box.replaceChildren(...this.pages.map(({ element }) => element));
    for (const page of this.pages) this.#size(page);
    this.box.scrollTop = 0;
    this.refit(true);
    this.box.scrollTop = 0;
    for (const { element } of this.pages) this.observer.observe(element);
  }

  /**
   * The text of all pages, one after the other, each as the finder has read it.
   * @returns {AsyncGenerator<import("./finder.js").PageText>}
   */
  async *read() {
    const { pdf, opening } = this;
    let inExercises = false,
      letters = 0,
      skipped = 0;
    for (const page of this.pages) {
      let read = null;
      const began = performance.now();
      try {
        const own = await within(pdf.getPage(page.number));
        const view = this.#sizeOf(own);
        const { items, isCut } = await within(this.#itemsOf(own));
        const given = { page: page.number, width: view.width, height: view.height, inExercises };
        read = readPage(items, view.transform, given);
        Object.assign(page, { width: view.width, height: view.height, view, isCut });
        if (!page.drawn) own.cleanup();
      } catch {
        if (opening !== this.opening) return;
        page.isDamaged = true;
        if (++skipped > MAX_SKIPPED)
          throw new Refused("Too many pages of this PDF cannot be read.");
        read = readPage([], [1, 0, 0, 1, 0, 0], {
          page: page.number,
          width: 1,
          height: 1,
          inExercises,
        });
      }
      if (opening !== this.opening) return;
      page.readMs = performance.now() - began;
      if (page.isSeen) this.#drawSoon();
      inExercises = read.inExercises;
      letters += read.text.length;
      page.text = letters < MAX_TEXT ? read.text : "";
      read.text = page.number === 1 ? read.text : "";
      yield read;
      if (page.number % 8 === 0) await nextFrame();
      // While a page is drawn it cannot.
      if (page.number % 64 === 0) await pdf.cleanup(true).catch(() => {});
    }
  }

  async #itemsOf(page) {
    const reader = page.streamTextContent().getReader();
    const items = [];
    let letters = 0;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return { items, isCut: false };
      for (const item of value.items) {
        letters += item.str?.length ?? 0;
        if (items.length >= MAX_ITEMS || letters > MAX_LETTERS) {
          reader.cancel(new Error("enough")).catch(() => {});
          return { items, isCut: true };
        }
        if (item.str) items.push(item);
      }
    }
  }

  /* --- drawing -------------------------------------------------------------------------------- */

  #seen(entries) {
    for (const { target, isIntersecting } of entries) {
      const page = this.pages.find(({ element }) => element === target);
      if (!page) continue;
      page.isSeen = isIntersecting;
      if (!isIntersecting) this.#release(page);
    }
    this.#drawSoon();
  }

  #release(page) {
    page.leave?.(new Gone());
    page.rendering?.cancel();
    page.layer?.cancel();
    page.canvas?.remove();
    page.layerBox?.remove();
    page.links?.remove();
    if (page.canvas) page.canvas.width = page.canvas.height = 0; // its memory, at once
    page.proxy?.cleanup();
    Object.assign(page, { canvas: null, layerBox: null, links: null, layer: null, proxy: null });
    Object.assign(page, { drawn: 0, rendering: null });
  }

  #drawSoon() {
    this.drawing ??= this.#drawAll().finally(() => {
      this.drawing = null;
    });
  }

  async #drawAll() {
    for (;;) {
      const middle = this.box.scrollTop + this.box.clientHeight / 2;
      const away = ({ element }) => Math.abs(element.offsetTop + element.offsetHeight / 2 - middle);
      const waiting = this.pages.filter(
        (page) =>
          page.isSeen &&
          page.drawn !== this.scale &&
          !page.isUndrawn &&
          (page.readMs >= 0 || page.number > 3),
      );
      const [page] = waiting.sort((one, other) => away(one) - away(other));
      if (!page) return;
      const { opening } = this;
      await this.#draw(page).catch((error) => {
        if (opening !== this.opening || error instanceof Gone || !page.isSeen) return;
        page.isUndrawn = true;
        page.element.dataset.note =
          error instanceof Refused
            ? "There is too much on this page to draw it here."
            : "This page cannot be drawn.";
      });
      await nextFrame();
    }
  }

  async #draw(page) {
    const { pdfjs, scale } = this;
    page.drawn = scale;
    const gone = new Promise((_, fail) => (page.leave = fail));
    gone.catch(() => {}); // where nobody waits any more
    const here = (promise, ms = PATIENCE_MS) => Promise.race([within(promise, ms), gone]);
    if (page.readMs > TOO_SLOW_MS) throw new Refused("too much");
    const proxy = (page.proxy = await here(this.pdf.getPage(page.number)));
    const plain = this.#sizeOf(proxy);
    if (plain.width !== page.width || plain.height !== page.height) {
      Object.assign(page, { width: plain.width, height: plain.height });
      this.#size(page);
    }
    // A page that was made to be slow would keep the reader's own thread busy while it is drawn.
    if (page.readMs > SLOW_MS) {
      const { fnArray, argsArray } = await here(proxy.getOperatorList());
      if (fnArray.length + countNumbers(argsArray) > MAX_DRAWN) throw new Refused("too much");
    }
    const wanted = scale * Math.min(devicePixelRatio, 2);
    const most = Math.sqrt(MAX_PIXELS / (plain.width * plain.height));
    const viewport = proxy.getViewport({ scale: Math.min(wanted, most) });
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(viewport.width);
    canvas.height = Math.ceil(viewport.height);
    canvas.setAttribute("aria-hidden", "true"); // its text stands above it
    page.rendering = proxy.render({ canvas, viewport });
    await here(page.rendering.promise, 2 * PATIENCE_MS).catch((error) => {
      page.rendering?.cancel();
      throw error;
    });
    if (!page.isSeen || page.drawn !== scale) return;
    page.canvas?.remove();
    page.canvas = canvas;
    page.element.prepend(canvas);
    if (page.layerBox) return; // it follows the scale by itself
    const layerBox = document.createElement("div");
    layerBox.className = "b-text";
    page.layerBox = layerBox;
    canvas.after(layerBox);
    const { items, isCut } = await here(this.#itemsOf(proxy));
    if (!isCut && page.layerBox === layerBox) {
      const content = await here(proxy.getTextContent());
      page.layer = new pdfjs.TextLayer({
        textContentSource: content,
        container: layerBox,
        viewport: plain,
      });
      if (items.length) await here(page.layer.render());
    }
    await here(this.#link(page, proxy, plain));
    if (this.words) this.#highlight();
  }

  /* Links of the PDF: to a place of its own, or to a page of the web. */
  async #link(page, proxy, view) {
    const found = await within(proxy.getAnnotations({ intent: "display" }));
    const links = document.createElement("div");
    links.className = "b-links";
    for (const one of found.filter(({ subtype }) => subtype === "Link").slice(0, MAX_LINKS)) {
      const url = /^(?:https?|mailto):/.test(one.url ?? "") ? one.url : "";
      if (!url && !one.dest) continue;
      const [x1, y1, x2, y2] = view.convertToViewportRectangle(one.rect);
      const link = document.createElement("a");
      this.place(
        link,
        page,
        Math.min(x1, x2),
        Math.min(y1, y2),
        Math.max(x1, x2),
        Math.max(y1, y2),
      );
      link.tabIndex = -1; // there are hundreds, and each place has its number in the text
      link.href = url || "#";
      link.setAttribute("aria-label", url || "A place in this PDF");
      if (url) Object.assign(link, { target: "_blank", rel: "noopener noreferrer" });
      else
        link.addEventListener("click", (event) => {
          event.preventDefault();
          this.#follow(one.dest);
        });
      links.append(link);
    }
    if (!page.layerBox) return;
    page.links?.remove();
    page.links = links;
    page.layerBox.after(links);
  }

  async #follow(dest) {
    const target = typeof dest === "string" ? await this.pdf.getDestination(dest) : dest;
    if (!Array.isArray(target)) return;
    const number =
      typeof target[0] === "number" ? target[0] : await this.pdf.getPageIndex(target[0]);
    const page = this.pages[number];
    if (!page) return;
    const [, , , left, top] = [null, null, null, target[2], target[3]];
    const view = (await this.pdf.getPage(number + 1)).getViewport({ scale: 1 });
    const [, y] = typeof top === "number" ? view.convertToViewportPoint(left ?? 0, top) : [0, 0];
    this.goTo(number + 1, y);
  }

  /* --- places --------------------------------------------------------------------------------- */

  /** Put an element at a place of a page, in points from its top left. */
  place(element, page, left, top, right, bottom) {
    const part = (value, of) => `${((100 * value) / of).toFixed(3)}%`;
    Object.assign(element.style, {
      left: part(left, page.width),
      top: part(top, page.height),
      width: part(right - left, page.width),
      height: part(bottom - top, page.height),
    });
  }

  goTo(number, y = 0) {
    const page = this.pages[number - 1];
    if (!page) return;
    const top = page.element.offsetTop + y * this.scale - (y ? this.box.clientHeight / 3 : GAP);
    this.box.scrollTo({ top: Math.max(0, top), behavior: "instant" });
    this.#soon();
  }

  /** The page in the middle. */
  get current() {
    const middle = this.box.scrollTop + this.box.clientHeight / 2;
    const after = this.pages.findIndex(({ element }) => element.offsetTop > middle);
    return after < 0 ? this.pages.length : Math.max(1, after);
  }

  #soon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (this.pages.length) this.onPage(this.current);
    });
  }

  #size({ element, width, height }) {
    element.style.width = `${width * this.scale}px`;
    element.style.height = `${height * this.scale}px`;
  }

  setScale(wanted) {
    const scale = Math.max(LEAST_SCALE, Math.min(MOST_SCALE, wanted));
    if (!this.pages.length) return;
    const middle = this.box.scrollTop + this.box.clientHeight / 2;
    const held = this.pages[this.current - 1];
    const share = (middle - held.element.offsetTop) / (held.height * this.scale);
    this.scale = scale;
    this.box.style.setProperty("--total-scale-factor", String(scale));
    for (const page of this.pages) this.#size(page);
    this.box.scrollTop =
      held.element.offsetTop + share * held.height * scale - this.box.clientHeight / 2;
    this.#drawSoon();
    this.onPage(this.current);
  }

  zoom(by) {
    this.fit = "";
    this.setScale(this.scale * by);
  }

  /** A page, or where that would be too small its text, as wide as there is room. */
  refit(isNew = false) {
    const [first] = this.pages;
    if (!first || (!this.fit && !isNew) || !this.box.clientWidth) return;
    const room = this.box.clientWidth - 2 * GAP;
    const whole = Math.min(1.5, room / first.width);
    const { columns } = this;
    const text = room / (Math.max(...(columns ?? []).map(({ start, end }) => end - start)) + 12);
    const isText = columns && (this.fit === "text" || (this.fit === "page" && whole < 0.95));
    const scale = isText ? Math.min(1.5, Math.max(whole, text)) : whole;
    if (Math.abs(scale - this.scale) > 0.002 || isNew) this.setScale(scale);
    // Columns of text stand below each other, though the margins of left and right pages differ.
    const start = isText ? Math.max(...columns.map((column) => column.start)) : 0;
    for (const { element, number } of this.pages) {
      const shift = isText ? (start - columns[number % 2].start) * this.scale : 0;
      element.style.marginLeft = isText ? `${shift}px` : "";
    }
    if (isText) this.box.scrollLeft = Math.max(0, start * this.scale - 6 * this.scale);
  }

  /* --- search --------------------------------------------------------------------------------- */

  /** Look for words on all pages; the number of places, and goes to the next one from here. */
  search(words, step = 1) {
    const text = words.trim().replace(/\s+/g, " ").slice(0, 200);
    const isNew = text !== this.words;
    this.words = text;
    if (!text) {
      this.hits = [];
      this.#highlight();
      return null;
    }
    const pattern = new RegExp(
      text
        .split(" ")
        .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
        .join("(?:-?\\s+|\\s*)"),
      "gi",
    );
    if (isNew) {
      this.pattern = pattern;
      this.hits = this.pages.flatMap((page) =>
        [...page.text.matchAll(pattern)].slice(0, 500).map(() => page.number),
      );
      const from = this.hits.findIndex((number) => number >= this.current);
      this.at = Math.max(from, 0);
    } else if (this.hits.length) this.at = (this.at + step + this.hits.length) % this.hits.length;
    if (this.hits.length) {
      this.goTo(this.hits[this.at]);
      this.wantsHit = this.at - this.hits.indexOf(this.hits[this.at]);
    }
    this.#highlight();
    return { count: this.hits.length, at: this.at + 1, page: this.hits[this.at] };
  }

  #highlight() {
    if (!("highlights" in CSS)) return;
    CSS.highlights.delete("book-words");
    if (!this.words) return;
    const ranges = [];
    for (const page of this.pages) {
      if (!page.layerBox) continue;
      const nodes = [];
      let text = "";
      const walker = document.createTreeWalker(page.layerBox, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const node = /** @type {Text} */ (walker.currentNode);
        nodes.push([text.length, node]);
        text += node.data;
      }
      const find = (at) => {
        const [start, node] = nodes.findLast(([first]) => first <= at) ?? [0, null];
        return [node, at - start];
      };
      for (const match of [...text.matchAll(this.pattern)].slice(0, 200)) {
        const [first, from] = find(match.index),
          [last, to] = find(match.index + match[0].length - 1);
        if (!first || !last) continue;
        const range = new Range();
        range.setStart(first, from);
        range.setEnd(last, Math.min(to + 1, last.data.length));
        ranges.push(range);
        if (page.number === this.hits[this.at] && this.wantsHit !== null && ranges.length) {
          const own = ranges.filter((one) => page.layerBox.contains(one.startContainer));
          if (own.length - 1 !== this.wantsHit) continue;
          const { top, bottom } = range.getBoundingClientRect();
          const box = this.box.getBoundingClientRect();
          if (top < box.top || bottom > box.bottom)
            this.box.scrollTop += top - box.top - box.height / 3;
          this.wantsHit = null;
        }
      }
    }
    if (ranges.length) CSS.highlights.set("book-words", new Highlight(...ranges));
  }
}
