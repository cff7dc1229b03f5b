/* Keeps an open page up to date while the site is built, without loading it again: the blocks of its
   article that differ from those it was made of are replaced, and nothing else is touched.

   The server puts this right behind the article, so it runs before any script has changed a block. */

(() => {
  const me = document.currentScript;
  const article = me.previousElementSibling;
  const CONTAINERS = "div, section, details, article";
  const FIELDS = "input, select, textarea";
  const STAGES = "#slp-sentence, #slp-write, #slp-fingering, #slp-hear"; // have a script
  const MAX_DEPTH = 5; // an article, a chapter, what the path leaves out, a fold, a box in it
  const STAY_MS = 5000;
  const MAX_COMPARED = 1000; // blocks that differ, on one level
  let digest = me.dataset.digest;

  /* --- what a reader has done: folds, fields, the place --------------------------------------- */

  const headings = () => [...article.querySelectorAll("h1, h2, h3, h4")].filter((one) => one.id);

  /* A name for each fold and field that outlives new blocks around it: its heading, and which it is. */
  const named = (selector) => {
    const found = new Map();
    let heading = "";
    const counts = new Map();
    for (const one of article.querySelectorAll(`h1, h2, h3, h4, ${selector}`)) {
      if (one.matches("h1, h2, h3, h4")) heading = one.id;
      else {
        const isFold = one.localName === "details";
        const what = isFold ? one.querySelector("summary")?.textContent : one.type;
        const name = `${heading} ${what}`;
        counts.set(name, (counts.get(name) ?? 0) + 1);
        found.set(`${name} ${counts.get(name)}`, one);
      }
    }
    return found;
  };

  const valueOf = (field) => (/^(checkbox|radio)$/.test(field.type) ? field.checked : field.value);
  const setValue = (field, value) => {
    if (field.type === "file" || valueOf(field) === value) return;
    if (typeof value === "boolean") field.checked = value;
    else field.value = value;
    for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
  };

  const remember = () => {
    const folds = [...named("details")].map(([name, fold]) => [name, fold.open]);
    const fields = [...named(FIELDS)]
      .filter(([, field]) => field.type !== "file")
      .map(([name, field]) => [name, valueOf(field)]);
    return { folds, fields };
  };
  const restore = ({ folds, fields }) => {
    const foldOf = named("details");
    for (const [name, open] of folds) if (foldOf.has(name)) foldOf.get(name).open = open;
    const fieldOf = named(FIELDS);
    for (const [name, value] of fields) if (fieldOf.has(name)) setValue(fieldOf.get(name), value);
  };

  /** @typedef {{ one: Element, top: number }[]} Place  what is on the screen, and where it stands */

  const leavesOf = (node) => (node.kids?.length ? node.kids.flatMap(leavesOf) : [node.live]);
  const measured = (elements) =>
    elements
      .map((one) => ({ one, box: one.getBoundingClientRect() }))
      .filter(({ box }) => box.height);
  const headingAbove = () =>
    measured(headings())
      .filter(({ box }) => box.top < innerHeight / 2)
      .at(-1);

  /* How far what is read stands below its place: a browser scrolls by whole pixels, and what is left
     of each patch would add up. */
  let off = 0;

  /* The blocks on the screen: what is read is the topmost that is whole; others stand in for it where
     that is replaced, and at last a heading. @type {() => Place} */
  const place = () => {
    const edge = document.querySelector(".md-header")?.getBoundingClientRect().bottom ?? 0;
    const seen = measured(leavesOf(blocks)).filter(
      ({ box }) => box.bottom > edge && box.top < innerHeight,
    );
    const isWhole = ({ box }) => box.top >= edge - 1;
    const heading = headingAbove();
    return [
      ...seen.filter(isWhole),
      ...seen.filter((one) => !isWhole(one)),
      ...(heading ? [heading] : []),
    ].map(({ one, box }) => ({ one, top: box.top - off }));
  };
  /* The element that is still there, and how far it has moved. @type {(where: Place) => number} */
  const movedBy = (where) => {
    for (const { one, top } of where) {
      const box = one.isConnected ? one.getBoundingClientRect() : null;
      if (box?.height) return box.top - top;
    }
    return 0;
  };
  const goTo = (where) => {
    const moved = movedBy(where);
    if (Math.abs(moved) >= 1) scrollBy({ top: moved, behavior: "instant" });
    const rest = movedBy(where);
    off = Math.abs(rest) < 1 ? rest : 0; // more where the page ends
  };

  /* A place as it can be found on the same page when that is loaded again: by words below a heading. */
  const words = (one) => one.textContent.trim().slice(0, 80);
  const noted = () => {
    const [first] = place();
    const heading = headingAbove();
    if (!first || !heading) return null;
    const { id } = heading.one;
    return { id, headTop: heading.box.top, text: words(first.one), top: first.top };
  };
  const found = (kept) => {
    const heading = kept && document.getElementById(kept.id);
    if (!heading) return [];
    const below = leavesOf(blocks).filter(
      (one) => heading.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING,
    );
    const same = below.find((one) => kept.text && words(one) === kept.text);
    const own = same ? [{ one: same, top: kept.top }] : [];
    return [...own, { one: heading, top: kept.headTop }];
  };

  /* Stay there while what is above it grows, before anything is drawn: figures get their controls,
     fonts come. Until the reader does something. */
  let letGo = () => {};
  const stayAt = (where) => {
    letGo();
    const { style } = document.documentElement;
    style.overflowAnchor = "none"; // the browser would move what we have moved
    goTo(where);
    const watcher = new ResizeObserver(() => goTo(where));
    const timer = setTimeout(() => end(), STAY_MS);
    const ends = ["wheel", "touchstart", "pointerdown", "keydown"];
    const end = (letGo = () => {
      watcher.disconnect();
      style.overflowAnchor = "";
      clearTimeout(timer);
      for (const one of ends) removeEventListener(one, end, true);
    });
    for (const one of ends) addEventListener(one, end, true);
    watcher.observe(article);
  };

  const key = `slp-live ${location.pathname}`;
  addEventListener("pagehide", () => {
    try {
      sessionStorage.setItem(key, JSON.stringify({ ...remember(), place: noted() }));
    } catch {
      /* a browser that keeps nothing */
    }
  });
  addEventListener("load", () => {
    let kept = null;
    try {
      kept = JSON.parse(sessionStorage.getItem(key));
    } catch {
      /* as above */
    }
    const [visit] = performance.getEntriesByType("navigation");
    const how = /** @type {PerformanceNavigationTiming | undefined} */ (visit)?.type;
    if (!kept || (how !== "reload" && how !== "back_forward")) return;
    restore(kept);
    if (!location.hash) requestAnimationFrame(() => stayAt(found(kept.place)));
  });

  /* --- blocks ---------------------------------------------------------------------------------- */

  /* The elements on the screen, in the form of the page as it came: `kids` of one are its blocks. */
  const capture = (live, depth) => ({
    live,
    kids:
      depth < MAX_DEPTH && live.matches(CONTAINERS)
        ? [...live.children].map((one) => capture(one, depth + 1))
        : null,
  });
  const blocks = capture(article, 0);

  const shell = (element) => {
    const empty = element.cloneNode(false);
    empty.classList.remove("slp-stale"); // set and taken away on the container, whose blocks stay
    return empty.outerHTML;
  };
  const hasText = (element) =>
    [...element.childNodes].some((one) => one.nodeType === Node.TEXT_NODE && one.data.trim());

  /* Which of the new blocks are the old ones: a longest common subsequence of their HTML. */
  const align = (before, after) => {
    let start = 0;
    while (start < before.length && start < after.length && before[start] === after[start]) start++;
    let end = 0;
    const room = Math.min(before.length, after.length) - start;
    while (end < room && before.at(-1 - end) === after.at(-1 - end)) end++;
    const [a, b] = [before, after].map((list) => list.slice(start, list.length - end));
    const pairs = [];
    for (let k = 0; k < start; k++) pairs.push([k, k]);
    if (a.length <= MAX_COMPARED && b.length <= MAX_COMPARED) {
      const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
      for (let i = a.length - 1; i >= 0; i--)
        for (let j = b.length - 1; j >= 0; j--)
          best[i][j] =
            a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
      for (let i = 0, j = 0; i < a.length && j < b.length; )
        if (a[i] === b[j]) pairs.push([start + i++, start + j++]);
        else if (best[i + 1][j] >= best[i][j + 1]) i++;
        else j++;
    }
    for (let k = end; k > 0; k--) pairs.push([before.length - k, after.length - k]);
    return pairs;
  };

  /* An element as it stands among the children of its container: some are wrapped by other scripts. */
  const within = (element, container) => {
    let one = element;
    while (one && one.parentElement !== container) one = one.parentElement;
    return one;
  };

  /* Make the blocks of one container those of its new version; returns the elements that are new. */
  const patch = (node, before, after, depth) => {
    const [old, fresh] = [before, after].map((element) => [...element.children]);
    const pairs = align(...[old, fresh].map((list) => list.map((one) => one.outerHTML)));
    pairs.push([old.length, fresh.length]);
    const kids = [];
    const added = [];
    let [i, j] = [0, 0];
    for (const [nextOld, nextFresh] of pairs) {
      while (i < nextOld || j < nextFresh) {
        const [a, b] = [i < nextOld ? old[i] : null, j < nextFresh ? fresh[j] : null];
        const kid = a && node.kids[i];
        const same = a && b && kid.kids && shell(a) === shell(b) && !hasText(a) && !hasText(b);
        if (same) {
          kid.live.classList.toggle("slp-stale", b.matches(".slp-stale"));
          added.push(...patch(kid, a, b, depth + 1));
          kids.push(kid);
        } else {
          const here = kid && within(kid.live, node.live);
          if (b) {
            const made = document.importNode(b, true);
            const next = here ?? (node.kids[i] && within(node.kids[i].live, node.live)) ?? null;
            node.live.insertBefore(made, next);
            kids.push(capture(made, depth + 1));
            added.push(made);
          }
          here?.remove();
        }
        if (a) i++;
        if (b) j++;
      }
      if (nextOld < old.length) kids.push(node.kids[i++]);
      j++;
    }
    node.kids = kids;
    return added;
  };

  /* --- the server ------------------------------------------------------------------------------ */

  const parse = (html) => new DOMParser().parseFromString(html, "text/html");

  /* Scripts and styles that only the new version of the page asks for, as for figures to touch. */
  const addToHead = (page) => {
    for (const one of page.head.querySelectorAll("script[src], link[rel=stylesheet]")) {
      const name = one.matches("script") ? "src" : "href";
      const url = one.getAttribute(name);
      if (document.querySelector(`${one.localName}[${name}="${CSS.escape(url)}"]`)) continue;
      const made = document.createElement(one.localName);
      for (const { name: key, value } of one.attributes) made.setAttribute(key, value);
      document.head.append(made);
    }
  };

  let busy = Promise.resolve();
  const update = async () => {
    const answer = await fetch(location.pathname, { cache: "no-store" });
    const now = answer.headers.get("X-Page-Digest");
    if (!answer.ok || !now || now === digest) return;
    const [fresh, base] = await Promise.all(
      [now, digest].map((one) => fetch(`/_live/page/${one}`, { cache: "no-store" })),
    );
    if (!fresh.ok) return;
    const page = parse(await fresh.text());
    const after = page.querySelector("article");
    const before = base.ok ? parse(await base.text()).querySelector("article") : null;
    if (!before || !after) return location.reload();
    digest = now;
    const [state, where] = [remember(), place()];
    article.className = after.className;
    document.title = page.title;
    const added = patch(blocks, before, after, 0);
    const hasStage = (one) => one.matches(STAGES) || one.querySelector(STAGES);
    // A script that has run knows the old stage alone; one that comes now will find the new one.
    if (before.querySelector(STAGES) && added.some(hasStage)) return location.reload();
    addToHead(page);
    document.dispatchEvent(new CustomEvent("slp:replaced", { detail: added }));
    restore(state);
    stayAt(where);
    const { dataset } = document.documentElement;
    dataset.updates = String(1 + Number(dataset.updates ?? 0));
  };
  const soon = () => {
    busy = busy.then(update).catch(() => {}); // the server is being started again
  };

  const mount = me.dataset.mount ?? "/";
  const own = location.pathname.slice(mount.length).replace(/index\.html$/, "") || "./";
  let events = null;
  const listen = () => {
    if (document.visibilityState !== "visible") {
      events?.close(); // a browser has few connections for all its tabs
      events = null;
    } else if (!events) {
      events = new EventSource("/_live/events");
      events.onmessage = ({ data }) => {
        const urls = data.split(" ").map(decodeURIComponent);
        if (data === "*" || urls.includes(own)) soon();
      };
    }
  };
  /* What runs cells comes to those alone who have the terminal's link. */
  const loadCells = () => {
    const script = document.createElement("script");
    script.src = "/_live/cells.js";
    document.head.append(script);
  };

  document.addEventListener("DOMContentLoaded", loadCells);
  document.addEventListener("visibilitychange", listen);
  addEventListener("load", listen);
})();
