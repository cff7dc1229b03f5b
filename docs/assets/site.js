// Formulas: $…$ and $$…$$ in chapters, \(…\) and \[…\] in pages that Python-Markdown renders.
document$.subscribe(() => {
  renderMathInElement(document.body, {
    delimiters: [
      { left: "$$", right: "$$", display: true },
      { left: "\\[", right: "\\]", display: true },
      { left: "$", right: "$", display: false },
      { left: "\\(", right: "\\)", display: false },
    ],
    throwOnError: false,
    strict: false,
  });
});

// A label such as "head-par · 8.33 · 7.34" links to itself, so that it can be copied.
document$.subscribe(() => {
  for (const label of document.querySelectorAll(".eq[id]")) {
    if (label.querySelector("a")) continue;
    const link = document.createElement("a");
    link.href = "#" + label.id;
    link.title = "Link to this equation";
    link.append(...label.childNodes);
    label.append(link);
  }
});
