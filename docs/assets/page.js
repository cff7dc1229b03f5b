/* What every page does: it fetches the search's index late, and makes what scrolls reachable. */

/* The index is the heaviest file of a first visit, and the theme asks for it at once, so the request
   waits until someone turns to the search. This stands before the theme's own script. */
(() => {
  const { open, send } = XMLHttpRequest.prototype;
  const waiting = [];
  let wanted = /[?&][qh]=/.test(location.search); // a search, or words found by one to be marked
  const want = () => { wanted = true; waiting.splice(0).forEach((go) => go()); };
  XMLHttpRequest.prototype.open = function (method, url, ...more) {
    this.late = /search_index\.json$/.test(url);
    return open.call(this, method, url, ...more);
  };
  XMLHttpRequest.prototype.send = function (...body) {
    const go = () => send.apply(this, body);
    if (this.late && !wanted) waiting.push(go);
    else go();
  };
  for (const kind of ["focusin", "pointerover"]) {
    document.addEventListener(kind, (event) => {
      if (event.target.closest?.(".md-search, label[for=__search]")) want();
    });
  }
})();

/* A box that scrolls can be reached by the keyboard, and shows that there is more; others are no stop. */
(() => {
  const boxes = ".slp-text, .slp-figure, .slp-drawing, .slp-wide, .slp-touched, .katex-display, .md-typeset pre > code";
  const look = () => {
    for (const box of document.querySelectorAll(boxes)) {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      box.classList.toggle("slp-scrolls", scrolls);
      if (scrolls) box.setAttribute("tabindex", "0");
      else box.removeAttribute("tabindex");
    }
  };
  addEventListener("DOMContentLoaded", look);
  addEventListener("load", look);
  addEventListener("resize", look);
  addEventListener("toggle", look, true); // what was folded
})();
