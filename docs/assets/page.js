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
  let frame = 0,
    isUsed = false; // whether the reader has done anything
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
  /* What is off the screen is not laid out yet (content-visibility), and looking at it would do
     that. Until the reader does something, what is near the screen will do. */
  const isNear = (box) => {
    const { top, bottom } = box.getBoundingClientRect();
    return bottom > -innerHeight && top < 2 * innerHeight;
  };
  const look = () => {
    frame = 0;
    const found = [...document.querySelectorAll(boxes)];
    mark(isUsed ? found : found.filter(isNear));
  };
  const soon = () => {
    if (!frame) frame = requestAnimationFrame(look);
  };
  const use = () => {
    if (!isUsed) soon();
    isUsed = true;
  };
  for (const deed of ["keydown", "pointerdown", "wheel", "touchstart", "scroll", "resize"])
    addEventListener(deed, use, { capture: true, passive: true });
  addEventListener("DOMContentLoaded", soon);
  addEventListener("load", soon);
  addEventListener("resize", soon);
  addEventListener("toggle", soon, true); // what was folded, and a preview
  document.fonts.addEventListener("loadingdone", soon); // letters have other widths now
  addEventListener("slp:replaced", soon, true); // what a server has changed on an open page
  addEventListener("contentvisibilityautostatechange", soon, true); // what was off the screen
})();

/* A browser fetches a font when it lays out a letter of it. What is far off the screen is laid out
   on paper for the first time, too late: so the fonts of all formulas come with the page. */
(() => {
  const fetchFonts = () => {
    const used = new Set();
    for (const sheet of document.styleSheets) {
      // From a file none can be read.
      if (!/katex/.test(sheet.href ?? "") || location.protocol === "file:") continue;
      for (const rule of sheet.cssRules) {
        if (!(rule instanceof CSSStyleRule) || !/KaTeX_/.test(rule.style.fontFamily)) continue;
        if (document.querySelector(rule.selectorText)) used.add(rule.style.fontFamily);
      }
    }
    for (const face of document.fonts)
      if ([...used].some((families) => families.includes(face.family.replaceAll('"', ""))))
        face.load().catch(() => {}); // offline
  };
  addEventListener("load", fetchFonts);
  addEventListener("slp:replaced", fetchFonts, true);
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
