/** Make an element of a page: its attributes, what its events call, and what is inside.
   @type {(tag: string, given?: Record<string, any>, ...inside: (string | Node)[]) =>
     HTMLElement} */
export function make(tag, given = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
}
