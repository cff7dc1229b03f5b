/* What the short path leaves out is folded. Of two buttons below the title one shows all of it,
   here and on the next pages; whatever leads into a fold opens it. What the chosen draft of the
   book has and others do not is open on the path, too. */

(() => {
  const KEY = "slp-sections",
    ALL = "all",
    FOLD = "details.slp-more",
    SWITCH = ".slp-lengths button";
  const kept = (/** @type {string} */ key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  };
  const wantsAll = () => kept(KEY) === ALL;
  const remember = (/** @type {boolean} */ all) => {
    try {
      localStorage.setItem(KEY, all ? ALL : "path");
    } catch {
      // nothing is remembered where nothing may be
    }
  };

  /** @param {(Element | Document)[]} places @param {boolean} all */
  const show = (places, all) => {
    const draft = kept("slp-draft") || "none";
    for (const place of places) {
      const own = place instanceof Element && place.matches(FOLD) ? [place] : [];
      for (const fold of [...own, ...place.querySelectorAll(FOLD)])
        fold.toggleAttribute("open", all || fold.getAttribute("data-draft") === draft);
    }
    for (const one of document.querySelectorAll(SWITCH))
      one.setAttribute("aria-pressed", String(one.hasAttribute("data-all") === all));
  };

  /** The element that an address ends with; none where that is damaged. @param {string} hash */
  const named = (hash) => {
    try {
      return document.getElementById(decodeURIComponent(hash.slice(1)));
    } catch {
      return null;
    }
  };

  /* The place that an address names is shown, and what is folded around it opens. */
  const reveal = (/** @type {string} */ hash) => {
    const target = named(hash);
    const fold = target?.closest(FOLD);
    if (!fold || fold.hasAttribute("open")) return;
    fold.setAttribute("open", "");
    target.scrollIntoView();
  };

  if (wantsAll() || kept("slp-draft")) {
    show([document], wantsAll());
    named(location.hash)?.scrollIntoView();
  }
  reveal(location.hash);
  addEventListener("hashchange", () => reveal(location.hash));
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a[href*='#']");
    if (!(link instanceof HTMLAnchorElement)) return;
    if (link.pathname === location.pathname && link.host === location.host)
      setTimeout(() => reveal(link.hash)); // after the browser has gone there
  });
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest(SWITCH);
    if (!button) return;
    const all = button.hasAttribute("data-all");
    const heading = [...document.querySelectorAll("article h2, article h3")].find(
      (one) => one.getBoundingClientRect().bottom > 0,
    );
    const before = heading?.getBoundingClientRect().top ?? 0;
    remember(all);
    show([document], all);
    scrollBy(0, (heading?.getBoundingClientRect().top ?? 0) - before);
  });
  // What a server has put into an open page is folded or not as all else.
  document.addEventListener("slp:replaced", (event) => {
    show(/** @type {CustomEvent<Element[]>} */ (event).detail, wantsAll());
  });
})();
