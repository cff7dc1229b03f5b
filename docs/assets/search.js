/* The search: what a reader types, as words, is looked for in the sections of the site. It drops
   words that say nothing, allows one wrong letter, and goes straight to an equation by its number.
   The index is `search.json`, which the build writes; once fetched it is kept, so that the search
   works offline. */

/** @typedef {[place: string, title: string, text: string, kind: number, tasks: string]} Row */
/** @typedef {{ sections: Row[], equations: Record<string, [string, string]> }} Index */
/** @typedef {{ place: string, title: string, text: string, page: string, score: number }} Hit */

const SiteSearch = (() => {
  const STOP = new Set(
    (
      "a an and are as at be by can do does did for from has have how i if in into is it its me " +
      "my not of on or our should so than that the their them there this to use using want was " +
      "we what when where which who why will with you your"
    ).split(" "),
  );
  const KINDS = [1.5, 1, 0.5, 0.08]; // a chapter, a page, the index of equations, the reference
  const FIELDS = { title: 6, tasks: 9, text: 1 };

  /** A word without the endings that forms of it differ by. @type {(word: string) => string} */
  const stem = (word) => {
    if (word.length < 4 || /\d/.test(word)) return word;
    return word
      .replace(/(?:sses)$/, "ss")
      .replace(/ies$/, "y")
      .replace(/(?<![su])s$/, "")
      .replace(/(?<=\w{4})(?:ing|ed)$/, "")
      .replace(/(?<=\w{3})e$/, "");
  };
  /** The words of a text: they end at blanks and marks, at dots that are in no number, and within
     CamelCase. @type {(text: string) => string[]} */
  const words = (text) =>
    text
      .normalize("NFKD")
      .replace(/([a-z])(?=[A-Z][a-z])|([A-Z])(?=[A-Z][a-z]{2})/g, "$1$2 ")
      .toLowerCase()
      .split(/[^\p{L}\p{N}.]+|\.(?!\d)/u)
      .map((word) => word.replace(/^\.+|\.+$/g, ""))
      .filter(Boolean);

  /** The words of these that say something, or all. @type {(all: string[]) => string[]} */
  const sayers = (all) => {
    const some = all.filter((word) => !STOP.has(word));
    return some.length ? some : all;
  };
  /** Whether two words differ by one letter: another, one more, one less, or two in turn.
     @type {(a: string, b: string) => boolean} */
  const isNear = (a, b) => {
    if (Math.abs(a.length - b.length) > 1 || a === b) return false;
    let from = 0,
      to = 0;
    while (from < a.length && a[from] === b[from]) from++;
    while (to < Math.min(a.length, b.length) - from && a.at(-1 - to) === b.at(-1 - to)) to++;
    const [x, y] = [a.slice(from, a.length - to), b.slice(from, b.length - to)];
    return (
      x.length + y.length < 2 ||
      (x.length === 1 && y.length === 1) ||
      (x.length === 2 && x[0] === y[1] && x[1] === y[0])
    );
  };

  /** Prepare an index: where each word is. @type {(index: Index) => any} */
  const prepare = (index) => {
    /** @type {Map<string, Map<number, number>>} */
    const places = new Map();
    const note = (/** @type {string} */ text, /** @type {number} */ k, /** @type {number} */ w) => {
      const all = sayers(words(text)).map(stem),
        rest = { [FIELDS.text]: 1 + all.length / 120, [FIELDS.title]: 0.2 * all.length }[w],
        counts = new Map();
      for (const word of all) counts.set(word, (counts.get(word) ?? 0) + 1);
      for (const [word, count] of counts) {
        if (!places.has(word)) places.set(word, new Map());
        const own = places.get(word),
          share = (w * count) / (count + (rest ?? all.length - 1));
        own.set(k, Math.max(own.get(k) ?? 0, share));
      }
    };
    const phrases = new Map();
    /* An object's address ends with its title, which the index says once. */
    /** @type {Row[]} */
    const sections = index.sections.map(([place, title, ...more]) => {
      const page = place.split("/")[1],
        module = page?.startsWith("slp_") ? page : `slp_transformer.${page}`,
        name = place.endsWith("/#.") ? `${module}.${title}` : "";
      return [name ? place.slice(0, -1) + name : place, title, ...more];
    });
    sections.forEach(([, title, text, , tasks], k) => {
      note(title, k, FIELDS.title);
      for (const task of tasks.split("|")) {
        note(task, k, FIELDS.tasks);
        const phrase = sayers(words(task)).map(stem).join(" ");
        phrases.set(phrase, [...(phrases.get(phrase) ?? []), k]);
      }
      note(text, k, FIELDS.text);
    });
    const titles = new Map(
      sections.filter(([place]) => !place.includes("#")).map((row) => [row[0], row[1]]),
    );
    return { ...index, sections, places, titles, phrases };
  };

  /** The words of the index that a word may mean, each with how well.
     @type {(known: any, word: string, isLast: boolean) => [string, number][]} */
  const meant = ({ places }, word, isLast) => {
    const own = stem(word);
    /** @type {[string, number][]} */
    const found = places.has(own) ? [[own, 1]] : [];
    if (isLast || !found.length)
      for (const other of places.keys()) {
        if (other === own || own.length < 3) continue;
        if (other.startsWith(own)) found.push([other, (0.7 * own.length) / other.length]);
        // a form that is not typed to its end: "samplin" of "sampl", as "sampling" is kept
        else if (
          isLast &&
          other.length > 3 &&
          own.startsWith(other) &&
          own.length < other.length + 3
        )
          found.push([other, 0.5]);
      }
    if (!found.some(([, fit]) => fit > 0.5) && own.length > 3)
      for (const other of places.keys()) if (isNear(own, other)) found.push([other, 0.6]);
    return found;
  };

  /** What a query names: the equation of "8.20", "(7.20)", "equation 8.20" or "eq. 8.20", and an
     object of the package by its dotted name. @type {(known: any, query: string) => Hit | null} */
  const named = ({ equations, sections }, query) => {
    const number = /^\s*(?:eq(?:n|uation)?s?\.?\s*)?\(?\s*([\d.]+)\s*\)?\s*$/i.exec(query)?.[1];
    const found = number && Object.hasOwn(equations, number) && equations[number];
    if (found) {
      const [place, title] = found;
      return {
        place,
        title: `(${number}) ${title}`,
        text: "",
        page: place.split("#")[0],
        score: 1e9,
      };
    }
    const dotted = /^\s*(\w+(?:\.\w+){2,})\s*$/.exec(query)?.[1];
    const row = dotted && sections.find(([place]) => place.endsWith(`#${dotted}`));
    if (!row) return null;
    return { place: row[0], title: row[1], text: row[2], page: row[0].split("#")[0], score: 1e9 };
  };

  /** The sections that a query means, best first. @type {(known: any, query: string) => Hit[]} */
  const find = (known, query) => {
    const wanted = sayers(words(query));
    const scores = new Map(),
      matched = new Map();
    wanted.forEach((word, w) => {
      const best = new Map();
      for (const [other, fit] of meant(known, word, w === wanted.length - 1)) {
        const places = known.places.get(other),
          rare = Math.log(1 + known.sections.length / places.size);
        for (const [k, share] of places)
          best.set(k, Math.max(best.get(k) ?? 0, fit * rare * share));
      }
      for (const [k, score] of best) {
        scores.set(k, (scores.get(k) ?? 0) + score);
        matched.set(k, (matched.get(k) ?? 0) + 1);
      }
    });
    const task = known.phrases.get(wanted.map(stem).join(" ")); // what somebody wants to do
    // Words in a row say what is meant; one alone may be meant otherwise.
    for (const k of task ?? []) scores.set(k, (scores.get(k) ?? 0) * (wanted.length > 1 ? 30 : 3));
    const hits = [...scores].map(([k, score]) => {
      const [place, title, text, kind] = known.sections[k],
        page = place.split("#")[0];
      const whole = (matched.get(k) / wanted.length) ** 3;
      const top = place.includes("#") ? 1 : 1.2; // the page itself
      return { place, title, text, page, score: score * whole * KINDS[kind] * top };
    });
    const first = named(known, query);
    return [...(first ? [first] : []), ...hits.sort((a, b) => b.score - a.score)];
  };
  return { words, stem, isNear, prepare, find };
})();

(() => {
  if (typeof document === "undefined") return;
  const MOST_PAGES = 8,
    MOST_SECTIONS = 3,
    EXCERPT = 150;
  const place = document.querySelector(".slp-search");
  if (!place) return;
  const open = place.querySelector(".slp-search-open"),
    box = /** @type {HTMLDialogElement} */ (/** @type {Element} */ (place.querySelector("dialog"))),
    field = box.querySelector("input"),
    said = box.querySelector("[role=status]"),
    list = box.querySelector("ol");
  const address = new URL(place.dataset.index, location.href);
  let known = null;

  /** The index, as it was fetched now or, offline, the last time. */
  const load = () =>
    (known ??= (async () => {
      const kept = await globalThis.caches?.open("slp-search").catch(() => null);
      let answer = await fetch(address).catch(() => null);
      if (answer?.ok) kept?.put(address, answer.clone());
      else answer = await kept?.match(address);
      if (!answer) {
        known = null; // it can be tried again
        return null;
      }
      return SiteSearch.prepare(await answer.json());
    })());

  /** A few words of a text around the first that was looked for. */
  const excerpt = (text, query) => {
    const wanted = SiteSearch.words(query).map(SiteSearch.stem);
    const at = text
      .toLowerCase()
      .search(new RegExp(wanted.filter((word) => /^[\p{L}\p{N}]+$/u.test(word)).join("|"), "u"));
    const from = at < EXCERPT / 2 ? 0 : text.indexOf(" ", at - EXCERPT / 3) + 1;
    const part = text.slice(from, from + EXCERPT);
    return `${from ? "… " : ""}${part}${from + EXCERPT < text.length ? " …" : ""}`;
  };

  const link = (hit, query, isPage) => {
    const made = document.createElement("a");
    made.href = new URL(hit.place, new URL(".", address)).href;
    const title = document.createElement(isPage ? "strong" : "span");
    title.textContent = hit.title;
    made.append(title);
    if (hit.text) {
      const text = document.createElement("small");
      text.textContent = excerpt(hit.text, query);
      made.append(text);
    }
    made.addEventListener("click", () => box.close());
    return made;
  };

  const look = async () => {
    const query = field.value;
    const index = await load();
    if (query !== field.value) return; // more has been typed meanwhile
    list.replaceChildren();
    if (!index) {
      said.textContent = "The index of the search cannot be fetched: are you offline?";
      return;
    }
    if (!query.trim()) {
      said.textContent = "";
      return;
    }
    const hits = SiteSearch.find(index, query),
      pages = new Map();
    for (const hit of hits) {
      if (!pages.has(hit.page) && pages.size === MOST_PAGES) continue;
      const own = pages.get(hit.page) ?? [];
      pages.set(hit.page, own);
      if (own.length < MOST_SECTIONS) own.push(hit);
    }
    said.textContent = hits.length
      ? `${pages.size === MOST_PAGES ? "The best of " : ""}${hits.length} places`
      : "Nothing is found: try another word, or the number of an equation.";
    for (const [page, own] of pages) {
      const item = document.createElement("li"),
        name = document.createElement("p");
      name.textContent = index.titles.get(page) ?? "";
      item.append(name, ...own.map((hit, k) => link(hit, query, k === 0)));
      list.append(/** @type {any} */ (item));
    }
  };

  const show = () => {
    if (!box.open) box.showModal();
    field.select();
    load();
  };
  open.hidden = false;
  open.addEventListener("click", show);
  field.addEventListener("input", look);
  box.addEventListener("click", (event) => {
    if (event.target === box) box.close(); // beside it
  });
  box.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")],
      now = links.indexOf(/** @type {any} */ (document.activeElement));
    if (event.key === "Enter" && event.target === field) links[0]?.click();
    else if (event.key === "ArrowDown") links[Math.min(now + 1, links.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (links[now - 1] ?? field).focus();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const typing = /** @type {Element} */ (event.target).closest(
      "input, select, textarea, [contenteditable]",
    );
    const isKey = event.key === "/" || ((event.ctrlKey || event.metaKey) && event.key === "k");
    if (!isKey || (typing && event.key === "/") || box.open) return;
    event.preventDefault();
    show();
  });
})();
