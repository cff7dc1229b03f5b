/* Figures to touch: native controls above a still figure, and what they have done, in words.
   The numbers come with the figure, from the chapter's own tensors. No library. */

const Figures = {
  /* A few round numbers from the least to the largest. */
  ticks(low, high) {
    const rough = (high - low || 1) / 4,
      ten = 10 ** Math.floor(Math.log10(rough));
    const step = ten * [1, 2, 5, 10].find((s) => s * ten >= rough);
    const count = Math.floor(high / step) - Math.ceil(low / step) + 1;
    return Array.from(
      { length: count },
      (_, k) => +((Math.ceil(low / step) + k) * step).toFixed(6),
    );
  },
  softmax(u) {
    const top = Math.max(...u),
      powers = u.map((x) => Math.exp(x - top));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((x) => x / sum);
  },
  /* What each sampling option leaves of words in falling order of y: Python's table SAMPLING. */
  filters: {
    top_k: (kept, k) => kept.slice(0, k),
    top_p(kept, p, y) {
      let before = 0;
      return kept.filter((w) => {
        const stays = before < p;
        before += y[w];
        return stays;
      });
    },
    min_p: (kept, p, y) => kept.filter((w) => y[w] >= p * y[kept[0]] * (1 - 1e-9)),
  },
  /* Probabilities at a temperature, cut by the other options in their order. */
  filtered(u, { temperature: tau = 1, ...options }) {
    let kept = u.map((_, w) => w).sort((a, b) => u[b] - u[a] || a - b);
    if (tau === 0) return u.map((_, w) => Number(w === kept[0]));
    const cut = () => Figures.softmax(u.map((x, w) => (kept.includes(w) ? x / tau : -Infinity)));
    for (const [name, value] of Object.entries(options))
      kept = Figures.filters[name](kept, value, cut());
    return cut();
  },
  /* The scores of row i with the rows up to itself. */
  scores(X, i) {
    return X.slice(0, i + 1).map((row) => row.reduce((sum, x, f) => sum + x * X[i][f], 0));
  },
};

(() => {
  if (typeof document === "undefined") return;
  const make = (tag, given = {}, ...inside) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(given)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (name === "style") made.style.cssText = value;
      else made.setAttribute(name, value);
    }
    made.append(...inside);
    return made;
  };
  const svg = (tag, given, ...inside) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  };
  let count = 0;
  const labelled = (name, control) => {
    control.id = `slp-touch-${++count}`;
    return make("div", { class: "slp-control" }, make("label", { for: control.id }, name), control);
  };
  const choice = (name, options, chosen, change) => {
    const select = make(
      "select",
      { onchange: change },
      ...options.map((text, k) =>
        make("option", k === chosen ? { value: k, selected: "" } : { value: k }, text),
      ),
    );
    return [select, labelled(name, select)];
  };
  const slide = (name, from, to, step, value, change, labels = {}) => {
    const shown = make("output");
    const tell = () => {
      shown.value = labels[input.value] ?? input.value;
      input.setAttribute("aria-valuetext", shown.value);
    };
    const input = make("input", {
      type: "range",
      min: from,
      max: to,
      step,
      value,
      oninput: () => {
        tell();
        change();
      },
    });
    tell();
    const control = labelled(name, input);
    input.before(shown);
    return [input, control];
  };
  /* One bar or cell for each word, its share as a color and as a number. */
  const strip = (words, shares, more = (/** @type {number} */ _) => "") =>
    make(
      "ul",
      { class: "slp-strip" },
      ...words.map((word, k) =>
        make(
          "li",
          { style: `--share: ${(100 * shares[k]).toFixed(1)}%` },
          make("span", {}, word),
          make("i"),
          make("b", {}, more(k)),
          make("span", {}, shares[k].toFixed(2)),
        ),
      ),
    );
  const most = (words, shares) =>
    shares
      .map((share, k) => [share, words[k]])
      .sort((a, b) => b[0] - a[0])
      .filter(([share]) => share >= 0.005)
      .slice(0, 3)
      .map(([share, word]) => `${word} ${share.toFixed(2)}`)
      .join(", ");

  const kinds = {
    weights({ alpha, words, start }, place, say) {
      const numbered = words.map((word, k) => `${k + 1}. ${word}`);
      const draw = () => {
        const c = Number(head.value),
          i = Number(token.value);
        const row = alpha[c][i].slice(0, i + 1),
          seen = words.slice(0, i + 1);
        place.replaceChildren(strip(seen, row));
        say(`Through head ${c + 1}, ${words[i]} reads ${most(seen, row)}.`);
      };
      const [token, one] = choice("Token that reads", numbered, start, draw);
      const [head, two] = choice(
        "Head",
        alpha.map((_, c) => `head ${c + 1}`),
        0,
        draw,
      );
      return [[one, two], draw];
    },
    sampling({ u, words, options }, place, say) {
      const draw = () => {
        const values = inputs.map(([input], n) => [options[n].name, Number(input.value)]);
        const y = Figures.filtered(u, Object.fromEntries(values));
        const kept = y.filter((share) => share > 0).length;
        place.replaceChildren(strip(words, y, (w) => (y[w] > 0 ? "" : "cut")));
        say(
          `${values.map(([name, value]) => `${name} ${value}`).join(", ")}: ` +
            `${kept} of ${words.length} words stay; ${most(words, y)}.` +
            (kept === 1 ? " With one word left, no temperature changes anything." : ""),
        );
      };
      const inputs = options.map(({ label, low, high, step, off }) =>
        slide(label, low, high, step, off, draw),
      );
      return [inputs.map(([, control]) => control), draw];
    },
    scores({ X, words, features, start }, place, say) {
      const numbered = words.map((word, k) => `${k + 1}. ${word}`);
      const inputs = features.map((name, f) => {
        const input = make("input", {
          type: "number",
          step: 1,
          oninput: () => {
            X[Number(changed.value)][f] = Number(input.value) || 0;
            draw();
          },
        });
        return [input, labelled(name, input)];
      });
      const fill = () =>
        inputs.forEach(([input], f) => {
          input.value = X[Number(changed.value)][f];
        });
      const draw = () => {
        const i = Number(reader.value),
          scores = Figures.scores(X, i),
          shares = Figures.softmax(scores);
        const seen = words.slice(0, i + 1);
        place.replaceChildren(strip(seen, shares, (j) => `score ${+scores[j].toFixed(2)}`));
        say(`${words[i]} reads ${most(seen, shares)}.`);
      };
      const [changed, one] = choice("Row to change", numbered, start, () => {
        fill();
      });
      const [reader, two] = choice("Token that reads", numbered, start, draw);
      fill();
      return [[one, ...inputs.map((pair) => pair[1]), two], draw];
    },
    steps({ name, labels, said, start }, place, say, figures) {
      const draw = () => {
        const k = Number(at.value),
          shown = figures[k].cloneNode(true);
        shown.setAttribute("role", "img");
        shown.setAttribute("aria-label", said[k]);
        place.replaceChildren(shown);
        say(said[k]);
      };
      const [at, control] =
        labels.length > 2
          ? slide(name, 0, labels.length - 1, 1, start, draw, labels)
          : choice(name, labels, start, draw);
      return [[control], draw];
    },
    lines({ curves, x, y }, place, say) {
      const colors = ["#2f7fc1", "#dd7a2a", "#4f9d69", "#a566b0", "#8a8f3c", "#c8556b"];
      const style = (k) => ({
        fill: "none",
        stroke: colors[k % 6],
        "stroke-width": 2,
        "stroke-dasharray": ["", "6 3", "2 3"][Math.floor(k / 6) % 3],
      });
      const boxes = curves.map(({ name, shown }, k) => {
        const box = make("input", {
          type: "checkbox",
          ...(shown && { checked: "" }),
          onchange: () => draw(),
        });
        const control = labelled(name, box);
        control.append(
          svg(
            "svg",
            { width: 24, height: 8, "aria-hidden": "true" },
            svg("path", { d: "M0 4H24", ...style(k) }),
          ),
        );
        return [box, control];
      });
      const text = (words, across, up, anchor) =>
        svg(
          "text",
          { x: across, y: up, "text-anchor": anchor, fill: "currentColor", "font-size": 12 },
          words,
        );
      const draw = () => {
        const seen = curves
          .map((curve, k) => ({ ...curve, k }))
          .filter((curve) => boxes[curve.k][0].checked);
        const points = seen.flatMap((curve) => curve.points),
          xs = points.map((p) => p[0]),
          ys = points.map((p) => p[1]);
        const [least, most] = [Math.min(...xs, 0), Math.max(...xs, 0)],
          [low, high] = [Math.min(...ys), Math.max(...ys)];
        const across = (value) => 40 + ((value - least) / (most - least || 1)) * 305,
          up = (value) => 200 - ((value - low) / (high - low || 1)) * 175;
        place.replaceChildren(
          svg(
            "svg",
            { width: 360, height: 250, role: "img", "aria-label": `${y} against ${x}` },
            text(y, 0, 12, "start"),
            text(x, 350, 244, "end"),
            ...(points.length ? Figures.ticks(low, high) : []).map((value) =>
              text(value, 34, up(value) + 4, "end"),
            ),
            ...Figures.ticks(least, most).map((value) => text(value, across(value), 222, "middle")),
            ...seen.map((curve) =>
              svg("path", {
                d: `M${curve.points.map(([a, b]) => `${across(a)} ${up(b)}`).join("L")}`,
                ...style(curve.k),
              }),
            ),
          ),
        );
        const ends = seen
          .map((curve) => [curve.points.at(-1)[1], curve.name])
          .sort((a, b) => a[0] - b[0]);
        say(
          ends.length
            ? `At its end: ${ends.map(([end, name]) => `${name} ${end.toFixed(2)}`).join("; ")}.`
            : "No curve is chosen.",
        );
      };
      return [boxes.map((pair) => pair[1]), draw];
    },
  };

  const enliven = (figure) => {
    const values = JSON.parse(figure.dataset.values);
    const place = make("div", {
      class: "slp-touched",
      tabindex: "0",
      role: "group",
      "aria-label": "What comes out",
    });
    const said = make("p", { class: "slp-said", role: "status" });
    const steps = figure.querySelector("template")?.content.children;
    const [controls, draw] = kinds[figure.dataset.kind](
      values,
      place,
      (text) => {
        said.textContent = text;
      },
      steps,
    );
    const box = make("div", { class: "slp-controls" }, ...controls);
    figure.prepend(box, place, said);
    figure.classList.add("slp-alive");
    draw();
  };
  const enlivenAll = () => document.querySelectorAll(".slp-touch:not(.slp-alive)").forEach(enliven);
  enlivenAll();
  document.addEventListener("slp:replaced", enlivenAll); // while the site is edited
})();
