/* What hyperref has written into a PDF: the places of its equations and figures, by name. */

/** @import { Destination } from "./finder.js" */

/* Of "equation.2.1.3" the first is the chapter and the last the number in it; between them is a
   section. */
const NAMED = /^(equation|figure)\.(\d{1,2}|[A-Z])\.(?:\d+\.)*(\d{1,3})$/;
const MAX_DESTINATIONS = 5000;

/**
 * The places that a PDF has names for, as they are shown.
 * @param {any} pdf pdf.js' document
 * @returns {Promise<Destination[]>}
 */
export async function destinationsOf(pdf) {
  /** @type {Map<string, any[]>} */
  const all = await pdf.getDestinations();
  const found = [];
  const pages = new Map();
  for (const [name, target] of all) {
    const match = NAMED.exec(name);
    if (!match || !Array.isArray(target) || found.length >= MAX_DESTINATIONS) continue;
    const [ref, , left, top] = target;
    if (typeof top !== "number") continue;
    const key = JSON.stringify(ref);
    if (!pages.has(key)) pages.set(key, await placeOf(pdf, ref));
    const place = pages.get(key);
    if (!place) continue;
    const [, , , , , shift] = place.transform;
    const y = place.transform[1] * (left ?? 0) + place.transform[3] * top + shift;
    found.push({ page: place.page, y, kind: match[1], number: `${match[2]}.${match[3]}` });
  }
  return found;
}

/** @param {any} pdf @param {any} ref of a page, or its index */
const placeOf = async (pdf, ref) => {
  try {
    const page = (typeof ref === "number" ? ref : await pdf.getPageIndex(ref)) + 1;
    const { transform } = (await pdf.getPage(page)).getViewport({ scale: 1 });
    return { page, transform };
  } catch {
    return null; // it leads nowhere
  }
};
