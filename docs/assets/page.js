/* What every page does: it makes what scrolls reachable, and prints answers last. */

/* What is shown without scripts alone goes before anything is drawn: the theme takes it away at the
   page's end, where that would move what is being read. */
document.documentElement.classList.replace("no-js", "js");

/* Beside a reader's PDF a chapter stands in a frame, which has no need of what is around it. */
if (window.name === "slp-panel" && parent !== window)
  document.documentElement.classList.add("slp-framed");

/* A box that scrolls can be reached by the keyboard, and shows that there is more; others are no
   stop. */
(() => {
  const boxes =
    ".slp-text, .slp-figure, .slp-drawing, .slp-wide, .md-typeset__scrollwrap, " +
    ".slp-touched, .katex-display, .slp-preview-formula, .md-typeset pre > code";
  const near = new Set();
  let frame = 0;
  const mark = (found) => {
    // all are read before any is changed, or each change would be laid out
    const read = found.map((box) => ({
      box,
      scrolls:
        box.scrollWidth > box.clientWidth + 1 ||
        (box.matches(".slp-cell-output *") && box.scrollHeight > box.clientHeight + 1),
    }));
    for (const { box, scrolls } of read) {
      box.classList.toggle("slp-scrolls", scrolls);
      if (scrolls) box.setAttribute("tabindex", "0");
      else box.removeAttribute("tabindex");
    }
  };
  /* What is off the screen, or folded, is not laid out yet, and looking at it would do that: each
     is looked at as it comes near. */
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries)
        if (isIntersecting) near.add(target);
        else near.delete(target);
      mark(entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target));
    },
    { rootMargin: "100%" },
  );
  const look = () => {
    frame = 0;
    for (const box of document.querySelectorAll(boxes)) seen.observe(box);
    mark([...near].filter((box) => box.isConnected));
  };
  const soon = () => {
    if (!frame) frame = requestAnimationFrame(look);
  };
  // Keys may go far at once.
  const all = () => mark([...document.querySelectorAll(boxes)]);
  addEventListener("keydown", () => requestAnimationFrame(all), { capture: true, once: true });
  addEventListener("DOMContentLoaded", soon);
  addEventListener("load", soon);
  addEventListener("resize", soon);
  addEventListener("toggle", soon, true); // what was folded, and a preview
  document.fonts.addEventListener("loadingdone", soon); // letters have other widths now
  addEventListener("slp:replaced", soon, true); // what a server has changed on an open page
})();

/* A browser fetches a font when it lays out a letter of it. What is far off the screen is laid out
   on paper for the first time, too late: so the fonts of all formulas come with the page, once it
   is shown. */
(() => {
  const fetchFonts = () => {
    for (const sheet of document.styleSheets) {
      // From a file none can be read.
      if (!/katex/.test(sheet.href ?? "") || location.protocol === "file:") continue;
      for (const rule of sheet.cssRules) {
        if (!(rule instanceof CSSStyleRule)) continue;
        const { fontFamily, fontStyle, fontWeight } = rule.style;
        const isOther = fontFamily.includes("KaTeX_") || fontStyle === "italic" || fontWeight;
        if (!isOther || !document.querySelector(rule.selectorText)) continue;
        const face = `${fontStyle} ${fontWeight} 1em ${fontFamily || "KaTeX_Main"}`;
        document.fonts.load(face.trim()).catch(() => {}); // offline
      }
    }
  };
  const soon = () => setTimeout(fetchFonts, 500);
  addEventListener("load", soon);
  addEventListener("slp:replaced", soon, true);
})();

/* On paper a chapter's answers stand at the back, each with the place that it was folded at. */
(() => {
  const back = document.createElement("section"),
    moved = [],
    opened = [];
  back.className = "slp-back";
  addEventListener("beforeprint", () => {
    const article = document.querySelector("article:has(.slp-map)");
    const headings = article?.querySelectorAll("h2, h3") ?? [];
    const chapters = article?.querySelectorAll(".slp-chapter").length;
    back.innerHTML = "<h2>Answers</h2>";
    for (const fold of article?.querySelectorAll("li > details, details.slp-solution") ?? []) {
      const before = (heading) =>
        heading.compareDocumentPosition(fold) & Node.DOCUMENT_POSITION_FOLLOWING;
      const heading = [...headings].filter(before).at(-1).firstChild.textContent;
      const item = fold.closest("li"),
        number = item ? [...item.parentNode.children].indexOf(item) + 1 : "";
      const title = document.createElement("h4"),
        place = document.createComment("");
      const chapter =
        chapters > 1
          ? `${fold.closest(".slp-chapter").querySelector("h1").textContent.split(" ")[0]} · `
          : "";
      title.textContent = `${chapter}${heading} ${number}`;
      fold.replaceWith(place);
      moved.push([place, fold, fold.className, fold.open]);
      fold.className = "slp-answer";
      fold.open = true;
      back.append(title, fold);
    }
    const closed = "article details:not([open], .slp-map-small, .mkdocstrings-source)";
    for (const fold of document.querySelectorAll(closed)) {
      fold.open = true;
      opened.push(fold);
    }
    if (moved.length) article.append(back);
  });
  addEventListener("afterprint", () => {
    for (const fold of opened.splice(0)) fold.open = false;
    for (const [place, fold, name, open] of moved.splice(0)) {
      place.replaceWith(fold);
      Object.assign(fold, { className: name, open });
    }
    back.remove();
  });
})();
