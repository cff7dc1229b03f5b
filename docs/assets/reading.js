/* How much of a chapter is read and how long the rest takes, remembered for the next time. */

const Reading = {
  /** The minutes that a chapter says it takes; 0 where it doesn't say. @param {string} text */
  minutesIn(text) {
    const stated = /(?:about|honest time:?)?\s*(\d+) minutes|(two) hours/i.exec(text);
    return stated ? Number(stated[1] ?? 120) : 0;
  },
  /**
   * What the label says, and where it leads.
   * @param {number} share the share of the chapter that is above the lower edge of the screen
   * @param {number} minutes of the whole chapter
   * @param {{ share: number, place: string, title: string } | undefined} before the last visit
   * @param {boolean} moved whether the reader has scrolled
   */
  label(share, minutes, before, moved) {
    if (!moved && before?.place && before.share < 0.97 && before.share > share + 0.05)
      return { text: `Go on at “${before.title}”`, place: before.place };
    const left = Math.ceil((1 - share) * minutes);
    return { text: !minutes ? "" : left ? `${left} min left` : "read", place: "" };
  },
};

(() => {
  if (typeof document === "undefined") return;
  const KEY = "slp-read";
  /** @type {() => Record<string, { share: number, place: string, title: string }>} */
  const kept = () => {
    try {
      return JSON.parse(localStorage.getItem(KEY) ?? "{}");
    } catch {
      return {};
    }
  };

  /* On the first page each card says how much of its chapter is read. */
  for (const card of document.querySelectorAll(".slp-cards a")) {
    const own = kept()[new URL(card.href).pathname];
    if (!own) continue;
    const percent = Math.round(100 * own.share),
      said = document.createElement("span");
    card.style.setProperty("--read", `${percent}%`);
    said.className = "slp-only-read";
    said.textContent = `, ${percent} % read`;
    card.querySelector("strong").append(said); // the card is a grid of its own children
  }

  const chapter = document.querySelector(".slp-chapter");
  if (!chapter || document.documentElement.matches(".slp-framed")) return;
  const stated = Reading.minutesIn(chapter.textContent.slice(0, 6000));
  const minutes = () => {
    const path = /** @type {HTMLElement | null} */ (chapter.querySelector(".slp-path"));
    if (!path) return stated;
    const all = path.querySelector("[data-all]");
    const isWhole = all?.getAttribute("aria-pressed") !== "false";
    return Number(isWhole ? path.dataset.whole : path.dataset.short);
  };
  const headings = [...chapter.querySelectorAll("h2[id], h3[id]")];
  const bar = document.createElement("div"),
    left = document.createElement("span");
  bar.className = "slp-progress";
  left.className = "slp-left";
  bar.setAttribute("aria-hidden", "true");
  document.body.append(bar);
  document.querySelector(".md-header__title").after(left); // there it lies over no text

  const before = kept()[location.pathname];
  let frame = 0,
    moved = false;
  const draw = () => {
    frame = 0;
    const { top, height } = chapter.getBoundingClientRect(),
      share = Math.min(1, Math.max(0, (innerHeight - top) / height));
    const { text, place } = Reading.label(share, minutes(), before, moved);
    bar.style.setProperty("--share", String(share));
    if (left.textContent !== text || Boolean(left.firstElementChild) !== Boolean(place)) {
      left.textContent = place ? "" : text;
      if (place) {
        const link = document.createElement("a");
        Object.assign(link, { href: `#${place}`, textContent: text });
        left.append(link);
      }
    }
    if (!moved) return;
    const isAbove = (one) => one.getBoundingClientRect().top < innerHeight / 2;
    const now = headings.filter((one) => !one.closest("details:not([open])")).findLast(isAbove);
    if (!now) return;
    const title = now.firstChild?.textContent ?? "";
    try {
      const all = kept();
      const most = Math.max(share, all[location.pathname]?.share ?? 0);
      all[location.pathname] = { share: most, place: now.id, title };
      localStorage.setItem(KEY, JSON.stringify(all));
    } catch {
      // nothing is remembered where nothing may be
    }
  };
  const soon = () => {
    if (!frame) frame = requestAnimationFrame(draw);
  };
  addEventListener(
    "scroll",
    () => {
      moved ||= scrollY > 40;
      soon();
    },
    { passive: true },
  );
  addEventListener("resize", soon);
  addEventListener("load", soon);
  addEventListener("click", soon); // which may have chosen another length
  soon();
})();
