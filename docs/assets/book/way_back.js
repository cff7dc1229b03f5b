/* From a chapter's equation to its place in the reader's own PDF, which another tab of this browser
   shows, or the page around this frame. Between them go our own names of equations alone. */

(() => {
  const EQUATIONS = ".eq[id^='eq-']";
  const WORDS = "in your PDF";
  const PATIENCE_MS = 2000;
  const SAID_MS = 4000;
  if (!document.querySelector(EQUATIONS)) return;
  const channel = new BroadcastChannel("slp-pdf");
  const isFramed = document.documentElement.matches(".slp-framed");
  const tabs = new Map(); // by their names, which equations each has; who spoke last is last
  let silence = 0;

  /* The tab that opened this one alone can be brought to the front. */
  const nearest = () => {
    try {
      return (isFramed ? parent : opener)?.name;
    } catch {
      return ""; // it has gone elsewhere
    }
  };
  const tabWith = (slug) => {
    const having = [...tabs.keys()].filter((tab) => tabs.get(tab).includes(slug));
    return having.find((tab) => tab === nearest()) ?? having.at(-1);
  };

  const say = (link, words) => {
    link.textContent = words;
    setTimeout(() => (link.textContent = WORDS), SAID_MS);
  };
  const turn = (link, slug) => {
    const tab = tabWith(slug);
    channel.postMessage({ kind: "turn", tab, slug, isFramed });
    if (tab === nearest()) {
      if (!isFramed) window.open("", tab);
      return;
    }
    silence = setTimeout(() => {
      say(link, "The tab of your PDF does not answer.");
      tabs.delete(tab);
      setTimeout(show, SAID_MS);
    }, PATIENCE_MS);
  };

  const show = () => {
    for (const label of document.querySelectorAll(EQUATIONS)) {
      const slug = label.id.slice(3);
      const next = label.nextElementSibling;
      const ways = next?.matches(".slp-ways-on") ? next : label;
      const own = `.slp-in-pdf[data-of="${CSS.escape(label.id)}"]`;
      const before = ways.parentElement.querySelector(own);
      if (!tabWith(slug)) before?.remove();
      if (before || !tabWith(slug)) continue;
      const link = document.createElement("button");
      Object.assign(link, { type: "button", className: "slp-in-pdf", textContent: WORDS });
      link.dataset.of = label.id;
      link.addEventListener("click", () => turn(link, slug));
      ways.after(" ", link);
    }
  };

  channel.addEventListener("message", ({ data }) => {
    if (isFramed && data.tab !== nearest()) return;
    if (data.kind === "here") {
      tabs.delete(data.tab);
      if (data.slugs.length) tabs.set(data.tab, data.slugs);
      show();
    } else if (data.kind === "turned" && silence) {
      clearTimeout(silence);
      silence = 0;
      const own = `.slp-in-pdf[data-of="${CSS.escape(`eq-${data.slug}`)}"]`;
      const link = document.querySelector(own);
      if (link) say(link, "shown in the tab of your PDF");
    }
  });
  document.addEventListener("slp:replaced", show);
  addEventListener("pageshow", () => channel.postMessage({ kind: "ask" }));
})();
