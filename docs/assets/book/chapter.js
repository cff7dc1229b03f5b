/* Which draft of the book a PDF is, and what there is to say of it. */

/** @import { Found, PageText } from "./finder.js" */

/**
 * @typedef {{ key: string, name: string, number: string, title: string, months: string[] }}
 *   DraftInfo
 *   its own chapter's number and title, and the months that its first page may say
 * @typedef {{ slug: string, title: string, drafts: Record<string, string[]> }} Equation
 * @typedef {DraftInfo & { numbers: Map<string, Equation> }} Draft
 * @typedef {{ title: boolean, number: string, month: string, isBook: boolean }} FirstPage
 * @typedef {{ draft: Draft | null, how: "" | "choice" | "first page" | "numbers", agreement:
 *   number }} Recognized
 * @typedef {{ text: string, missing: { number: string, equation: Equation }[], chapterPage:
 *   number }} Report
 */

const MONTHS =
  "January February March April May June July August September October November December".split(
    " ",
  );
const DATE = new RegExp(`(${MONTHS.join("|")})\\s+(?:\\d{1,2},?\\s+)?(20\\d\\d)`);
const BOOK = "speechandlanguageprocessing";
const AGREE = 0.6; // of the numbers of both, how many are in both
const CONTRADICT = 0.2;
const FEW = 8;

/**
 * The drafts with what each number stands for.
 * @param {DraftInfo[]} drafts @param {Equation[]} equations
 * @returns {Draft[]}
 */
export function withNumbers(drafts, equations) {
  return drafts.map((draft) => {
    const numbers = new Map();
    for (const equation of equations)
      for (const number of equation.drafts[draft.key] ?? [])
        if (!numbers.has(number)) numbers.set(number, equation);
    return { ...draft, numbers };
  });
}

/** Letters alone, as a heading may be spaced and broken. @param {string} text */
const lettersOf = (text) => text.toLowerCase().replace(/[^a-z]/g, "");

/**
 * What the first page says of itself.
 * @param {string} text its lines @param {DraftInfo[]} drafts
 * @returns {FirstPage & { drafts: string[] }} drafts: those whose chapter has this title and number
 */
export function readFirstPage(text, drafts) {
  const lines = text.split("\n").slice(0, 40);
  const date = DATE.exec(lines.join(" "));
  const month = date ? `${date[2]}-${String(MONTHS.indexOf(date[1]) + 1).padStart(2, "0")}` : "";
  const spaced = /c\s*h\s*a\s*p\s*t\s*e\s*r\s*(\d{1,2})\b/i.exec(lines.join("\n"));
  const heading =
    spaced?.[1] ?? lines.map((line) => /^\s*(\d{1,2})\s*$/.exec(line)?.[1]).find(Boolean);
  const titles = new Set();
  for (const [k, line] of lines.entries()) {
    const own = lettersOf(line).replace(/^chapter/, "");
    titles.add(own);
    titles.add(own + lettersOf(lines[k + 1] ?? ""));
  }
  // A chapter's number may stand before its title, on the same line.
  const numbered = lines
    .map((line) => /^\s*(\d{1,2})\s+([A-Z].*)$/.exec(line))
    .filter((one) => one !== null);
  const number = (/** @type {DraftInfo} */ draft) =>
    heading ??
    numbered.find((one) => lettersOf(draft.title).startsWith(lettersOf(one[2])))?.[1] ??
    "";
  const found = drafts.filter((draft) => titles.has(lettersOf(draft.title)));
  return {
    title: found.length > 0,
    number: heading ?? "",
    month,
    isBook: lettersOf(text).includes(BOOK),
    drafts: found.filter((draft) => number(draft) === draft.number).map(({ key }) => key),
  };
}

/** Own numbers of equations. @param {Found[]} chosen */
const numbersOf = (chosen) =>
  new Set(
    chosen
      .filter(({ kind }) => kind === "equation" || kind === "example")
      .map(({ chapter, index }) => `${chapter}.${index}`),
  );

/**
 * How far the numbers of a PDF are those of a draft's own chapter. A part of them would also be in
 * another chapter that has the same number in another draft.
 * @param {Set<string>} numbers @param {Draft} draft
 */
export function agreementOf(numbers, draft) {
  const isOwn = (/** @type {string} */ number) => number.startsWith(`${draft.number}.`);
  const mine = [...numbers].filter(isOwn),
    theirs = [...draft.numbers.keys()].filter(isOwn);
  const both = theirs.filter((number) => numbers.has(number)).length;
  return both / (mine.length + theirs.length - both || 1);
}

/**
 * Which draft it is.
 * @param {Found[]} chosen @param {Draft[]} drafts @param {string} firstText @param {string} wanted
 * @returns {Recognized}
 */
export function recognize(chosen, drafts, firstText, wanted) {
  const numbers = numbersOf(chosen);
  const scores = drafts
    .map((draft) => ({ draft, agreement: agreementOf(numbers, draft) }))
    .sort((one, other) => other.agreement - one.agreement);
  const best = scores[0];
  const agreement = best?.agreement ?? 0;
  const choice = drafts.find(({ key }) => key === wanted);
  if (choice) return { draft: choice, how: "choice", agreement };
  const page = readFirstPage(firstText, drafts);
  for (const { draft, agreement: own } of scores) {
    const isDated = draft.months.includes(page.month);
    const isSame = page.drafts.includes(draft.key);
    const contradicts = isSame && numbers.size >= FEW && own < CONTRADICT;
    if (isDated && (isSame || page.isBook) && !contradicts)
      return { draft, how: "first page", agreement: own };
  }
  if (agreement > AGREE) return { draft: best.draft, how: "numbers", agreement };
  return { draft: null, how: "", agreement };
}

/** Chapters that have several own numbers, as they are read. @param {Found[]} chosen */
export function chaptersOf(chosen) {
  const found = new Map();
  for (const one of chosen) {
    if (one.kind !== "equation" && one.kind !== "figure") continue;
    const entry = found.get(one.chapter) ?? { chapter: one.chapter, page: one.page, count: 0 };
    entry.count += 1;
    found.set(one.chapter, entry);
  }
  return [...found.values()].filter(({ count }) => count > 2);
}

/** @param {number} count @param {string} word */
const some = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

/**
 * What is said of a PDF whose pages have been read so far.
 * @param {{ pages: PageText[], total: number, chosen: Found[], recognized: Recognized, drafts:
 *   Draft[] }} given
 * @returns {Report}
 */
export function reportOn({ pages, total, chosen, recognized, drafts }) {
  const { draft, how } = recognized;
  const isDone = pages.length >= total;
  const progress = isDone ? "" : ` Reading page ${pages.length} of ${total} …`;
  const numbers = numbersOf(chosen);
  const chapters = chaptersOf(chosen);
  const isWhole = chapters.length > 2;
  /** @type {Report} */
  const report = { text: "", missing: [], chapterPage: 0 };
  if (draft) {
    const here = new Set(
      isWhole ? [draft.number] : [...numbers].map((number) => number.split(".")[0]),
    );
    if (
      !draft.numbers.size ||
      ![...draft.numbers.keys()].some((number) => here.has(number.split(".")[0]))
    )
      here.add(draft.number);
    const own = [...draft.numbers].filter(([number]) => here.has(number.split(".")[0]));
    report.missing = own
      .filter(([number]) => !numbers.has(number))
      .map(([number, equation]) => ({ number, equation }));
    const found = own.length - report.missing.length;
    const known =
      how === "choice" ? "your choice" : how === "numbers" ? "by its numbers" : "by its first page";
    report.text = `${found} of ${some(own.length, "equation")} found · ${draft.name} (${known})`;
    if (isWhole) {
      const first = chosen.find((one) => one.chapter === draft.number && one.kind === "equation");
      report.chapterPage = first?.page ?? 0;
      report.text += ` · a whole book, of which chapter ${draft.number} is the Transformer’s`;
    } else if (isDone && !here.has(draft.number))
      report.text += ` · not the Transformer’s chapter, which is ${draft.number} in this draft`;
    else if (isDone && how === "choice" && found * 2 < own.length)
      report.text += " · few of its numbers are in this PDF: is it that draft?";
    report.text += progress ? `.${progress}` : ".";
    return report;
  }
  const letters = pages.reduce((sum, page) => sum + page.letters, 0);
  const unnamed = pages.reduce((sum, page) => sum + page.unnamed, 0);
  const names = drafts.map(({ name }) => name).join(" and the ");
  const ways =
    `Drafts that are known here are the ${names}. Is it one of them? Then choose it under ` +
    `“Draft”.`;
  const page = readFirstPage(pages[0]?.text ?? "", drafts);
  if (!isDone) report.text = progress.trim();
  else if (letters < 20 * pages.length)
    report.text =
      "These pages are pictures: they have no text in which a number could be found. Open " +
      "the chapter as its authors offer it.";
  else if (unnamed > 0.3 * letters)
    report.text =
      "The letters of this PDF have no names, so its numbers cannot be read. Open the " +
      "chapter as its authors offer it, not a copy that another program has saved.";
  else if (!numbers.size)
    report.text = `No numbered equation was found on ${some(pages.length, "page")}.`;
  else if (page.title && page.month)
    report.text =
      `${some(numbers.size, "numbered equation")}. The first page names the Transformer’s ` +
      `chapter, but this draft (${page.month}) is not known here, and its numbers are ` +
      `others. ${ways}`;
  else if (isWhole)
    report.text =
      `${some(numbers.size, "numbered equation")} in ${some(chapters.length, "chapter")}, ` +
      `but no chapter has the numbers of the Transformer’s. ${ways}`;
  else {
    const where = chapters.map(({ chapter }) => chapter).join(", ");
    const said = where ? ` (chapter ${where})` : "";
    report.text =
      `${some(numbers.size, "numbered equation")}${said}, but they are not those of the ` +
      `Transformer’s chapter: this is another chapter, another book or another draft. ` +
      `${ways}`;
  }
  return report;
}
