/* Links to equations, symbols and figures: each is shown while one points at its link; numbers are
   those of the draft that is chosen; the index of equations is filtered. */

(() => {
  const LINK =
    'a:is([href*="#eq-"], [href*="#fig-"], .slp-symbol):not(.eq a, figcaption a, ' +
    ".slp-equations a, svg a, .slp-preview a)";
  const base = () =>
    new URL(`${JSON.parse(document.getElementById("__config").textContent).base}/`, location.href);
  const slugOf = (link) => decodeURIComponent(link.hash.slice(1)).replace(/^eq-/, "");
  let asked = null;
  const known = () =>
    (asked ??= fetch(new URL("previews.json", base())).then((answer) => answer.json()));

  /* A page without formulas has no styles for them: its first preview waits for them. */
  let coming = null;
  const styled = () => {
    if (document.querySelector('link[href$="katex.min.css"]')) return coming;
    const styles = Object.assign(document.createElement("link"), {
      rel: "stylesheet",
      href: new URL("assets/katex/katex.min.css", base()),
    });
    document.head.prepend(styles);
    return (coming = new Promise((go) => (styles.onload = styles.onerror = go)));
  };

  /* The preview stands after its link, so that the keyboard goes from one to the other. */
  const box = document.createElement("span");
  box.className = "slp-preview";
  box.popover = "manual";
  let shownFor = null,
    timer = 0,
    wanted = null;

  const fill = (equation) => {
    const links = equation.links.map(([words, url]) => {
      const link = document.createElement("a");
      link.href = new URL(url, base()).href;
      link.textContent = words;
      return link;
    });
    const title = Object.assign(document.createElement("b"), { innerHTML: equation.title });
    const formula = Object.assign(document.createElement("span"), {
      innerHTML: equation.formula,
      className: "slp-preview-formula",
    });
    const place = Object.assign(document.createElement("span"), {
      textContent: equation.place,
      className: "slp-preview-place",
    });
    const ways = Object.assign(document.createElement("span"), { className: "slp-preview-ways" });
    ways.append(...links);
    box.replaceChildren(title, formula, place, ways);
  };
  const stand = (link) => {
    const [line] = link.getClientRects(),
      room = document.documentElement.clientWidth;
    if (!line) return;
    box.style.left = `${Math.max(8, Math.min(line.left, room - box.offsetWidth - 8))}px`;
    const below = line.bottom + 6,
      above = line.top - box.offsetHeight - 6;
    box.style.top = `${below + box.offsetHeight > innerHeight && above > 0 ? above : below}px`;
  };
  const show = async (link) => {
    wanted = link;
    // of a figure of this page
    const picture = document.getElementById(slugOf(link))?.closest(".slp-fig");
    const equation = picture ?? (await known()).equations[slugOf(link)];
    if (equation?.formula) await styled();
    if (!equation || wanted !== link || shownFor === link) return;
    hide();
    wanted = shownFor = link;
    if (picture)
      box.replaceChildren(
        ...[".slp-figure, .slp-drawing", "figcaption"].map((part) =>
          picture.querySelector(part).cloneNode(true),
        ),
      );
    else fill(equation);
    link.after(box);
    box.showPopover();
    stand(link);
  };
  const hide = () => {
    clearTimeout(timer);
    wanted = shownFor = null;
    if (box.isConnected) box.remove();
  };
  const soon = (act, ms) => {
    clearTimeout(timer);
    timer = setTimeout(act, ms);
  };
  const within = (target) =>
    target instanceof Node && (box.contains(target) || shownFor?.contains(target));

  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const link = event.target.closest?.(LINK);
    if (link && link !== shownFor) soon(() => show(link), 150);
    else if (within(event.target)) clearTimeout(timer);
    else if (shownFor) soon(hide, 250);
    else clearTimeout(timer);
  });
  document.addEventListener("focusin", (event) => {
    const link = event.target.closest?.(LINK);
    if (link?.matches(":focus-visible")) show(link);
    else if (!within(event.target)) hide();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
  document.addEventListener(
    "click",
    (event) => {
      // a finger's first tap shows, its second goes there
      const link = event.target.closest?.(LINK);
      if (link && event.pointerType === "touch" && shownFor !== link) {
        event.preventDefault();
        event.stopPropagation();
        show(link);
      } else if (!box.contains(/** @type {Node} */ (event.target))) hide();
    },
    true,
  );
  addEventListener(
    "scroll",
    () => {
      if (shownFor) stand(shownFor);
    },
    { passive: true },
  );

  /* Who arrives at an equation sees its picture too, where both fit on the screen. */
  const arrive = () => {
    const label = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const picture = label?.matches(".eq") && label.closest("p")?.previousElementSibling;
    if (!picture?.matches?.(".slp-fig")) return;
    const from = picture.getBoundingClientRect().top,
      to = label.getBoundingClientRect().bottom;
    if (to - from < innerHeight - 120) picture.scrollIntoView({ block: "start" });
  };
  /* The numbers of one draft, if a reader has chosen it, in links, labels, formulas and lists. */
  const NUMBERED =
    'a[href*="#eq-"]:not(svg a), .eq, .katex-tag, .katex-mathml mtext, ' +
    ".slp-equations .slp-quiet";
  const OTHERS = /section|Fig|prose|exercise|footnote|chapter/i; // these have numbers of their own
  const chosen = () => {
    try {
      return localStorage.getItem("slp-draft") ?? "";
    } catch {
      return "";
    }
  };
  const renumber = async (draft) => {
    const { numbers } = await known();
    const of = (part) =>
      OTHERS.test(part) ? part : part.replace(/\d+\.\d+/g, (n) => numbers[n]?.twins[draft] ?? n);
    for (const place of document.querySelectorAll(NUMBERED)) {
      const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        const text = /** @type {Text} */ (texts.currentNode);
        const now = text.data.split(/( · )/).map(of).join("");
        text.data = now.replace(/(\d+\.\d+(?:[-–, ]+\d+\.\d+)*)(?: · |, )\1(?![\d.])/g, "$1");
      }
    }
    for (const card of document.querySelectorAll(".slp-card-eq"))
      card.textContent = card.getAttribute(`data-of-${draft}`) ?? card.textContent;
    document.documentElement.dataset.draft = draft;
  };
  const renumberAll = () => chosen() && renumber(chosen());
  renumberAll();
  document.addEventListener("slp:replaced", renumberAll);

  /* The choice of a draft, where a page has it: Home's begins with the newest. */
  const draft = document.querySelector("#slp-draft");
  if (draft) {
    draft.value = chosen() || draft.options[0].value;
    draft.addEventListener("change", () => {
      localStorage.setItem("slp-draft", draft.value);
      location.reload();
    });
  }

  /* The index: by number, symbol, words and chapter. */
  const filter = document.querySelector(".slp-filter:has(#slp-filter-words)");
  if (filter) {
    const [words, chapter, count] = ["words", "chapter", "count"].map((name) =>
      filter.querySelector(`#slp-filter-${name}`),
    );
    const rows = [...document.querySelectorAll(".slp-equations tbody tr")];
    const textOf = (row) =>
      [...row.cells]
        .slice(0, -1)
        .map((cell) => cell.textContent)
        .join(" ")
        .toLowerCase(); // less its tests
    const texts = new Map(); // of rows, once they are asked for
    const look = () => {
      if (!texts.size) for (const row of rows) texts.set(row, textOf(row));
      const wantedWords = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const isIn = !chapter.value || row.dataset.in.split(" ").includes(chapter.value);
        row.hidden = !isIn || !wantedWords.every((word) => texts.get(row).includes(word));
      }
      count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    };
    if (words.value || chapter.value) look(); // which a browser remembers
    filter.addEventListener("input", look);
    filter.addEventListener("submit", (event) => event.preventDefault());
  }

  addEventListener("load", () => requestAnimationFrame(arrive));
  addEventListener("hashchange", () => requestAnimationFrame(arrive));
})();
