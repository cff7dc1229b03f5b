/* Cells of a chapter that run where they stand, on the reader's machine, by the server that showed
   the page. Nothing runs without a click or a key: neither a link nor what is kept can start it. */

(() => {
  const TOKEN = "slp-live-token";
  const keep = (name, value) => {
    try {
      if (value === null) localStorage.removeItem(name);
      else localStorage.setItem(name, value);
    } catch {
      /* a browser that keeps nothing: the page works until it is closed */
    }
  };
  const kept = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  };

  const given = /^#live=([\w-]+)$/.exec(location.hash);
  if (given) {
    keep(TOKEN, given[1]);
    history.replaceState(null, "", location.pathname + location.search); // it stays in no history
  }
  const token = given?.[1] ?? kept(TOKEN);
  const stem = /\/chapters\/([^/]+)\/(?:index\.html)?$/.exec(location.pathname)?.[1];
  if (!stem) return;

  const make = (tag, attributes = {}, ...inside) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else made.setAttribute(name, value);
    made.append(...inside);
    return made;
  };

  if (!token) {
    // At the first cell, which is where one would run it: above, it would move the page.
    const how = "Cells can be run here by whoever opens the link that the terminal shows.";
    document.querySelector(".slp-cell")?.append(make("p", { class: "slp-cell-status" }, how));
    return;
  }

  let editorIsLoaded = null;
  const loadEditor = () => {
    editorIsLoaded ??= new Promise((done, failed) => {
      const script = make("script", { src: "/_live/editor.js", onload: done, onerror: failed });
      document.head.append(script);
    });
    return editorIsLoaded;
  };

  /* A short name of a text, under which what a reader made of it is kept. */
  const hash = (text) => {
    let sum = 5381;
    for (const letter of text) sum = (Math.imul(sum, 33) ^ letter.codePointAt(0)) >>> 0;
    return sum.toString(36);
  };

  const CHANGED_SINCE = "Changed since it ran: what is below is of its text before.";
  const cells = new Map(); // by their marks
  const numberOf = (mark) => Number(mark.dataset.cell);
  const ordered = () => [...document.querySelectorAll(".slp-cell")].map((mark) => cells.get(mark));

  const changedTexts = () => {
    const texts = {};
    for (const cell of ordered())
      if (cell && cell.text !== cell.built) texts[cell.number] = cell.text;
    return texts;
  };

  /* What the page shows of a cell as it was built: its code, and below that its outputs. */
  const shownOf = (mark) => {
    const found = { code: null, codes: [], outputs: [] };
    for (let one = mark.nextElementSibling; one; one = one.nextElementSibling) {
      if (one.matches(".slp-cell, h1, h2, h3, h4, p, ul, ol, .slp-solution")) break;
      if (!found.code && one.querySelector("pre")) found.code = one;
      if (!found.code) continue;
      if (one.matches(".highlight, .slp-fold")) found.codes.push(one);
      if (one.matches(".slp-output, .slp-fig")) found.outputs.push(one);
    }
    return found;
  };
  const textOf = (shown) =>
    shown.code?.querySelector("pre code, pre")?.textContent.replace(/\n$/, "") ?? "";

  class Cell {
    constructor(mark) {
      this.mark = mark;
      this.number = numberOf(mark);
      this.hasRun = this.isShown = this.isRunning = this.isWaiting = false;
      // What its result rests on of what was changed above: as the page has it, and by now.
      this.shownBasis = this.basis = "";
      this.shownText = ""; // the text that made it
      this.hasFailedSince = false; // run for a cell below
      this.leave = new AbortController();
      /** @type {any} */
      this.editor = null;
      this.readPage();
      this.status = make("p", { class: "slp-cell-status", role: "status" });
      this.place = make("div", { class: "slp-cell-editor" });
      this.output = make("div", { class: "slp-output slp-cell-output", hidden: "" });
      const button = (words, title, act) =>
        make("button", { type: "button", title, onclick: act }, words);
      this.runButton = button("Run", "Run this cell, and what is above it if it has not run", () =>
        this.run(),
      );
      this.stopButton = button("Stop", "Stop what runs", () => this.stop());
      this.editButton = button("Edit", "Change this cell in the page", () => this.edit(true));
      this.backButton = button("Put back", "Take back what you changed here", () => this.putBack());
      this.restartButton = button("Restart", "End the kernel: the next run begins afresh", () =>
        this.restart(),
      );
      for (const one of [this.stopButton, this.backButton, this.restartButton])
        this.setShown(one, false);
      // From the right edge: who clicks twice clicks the same button twice.
      this.bar = make(
        "div",
        { class: "slp-cell-bar", role: "group", "aria-label": `Cell ${this.number + 1}` },
        ...[this.restartButton, this.backButton, this.stopButton, this.editButton, this.runButton],
      );
      mark.id = `cell-${this.number + 1}`;
      // An editor draws the lines on the screen alone.
      this.paper = make("pre", { class: "slp-cell-paper" }, make("code"));
      mark.append(this.bar, this.place, this.paper, this.status, this.output);
      const own = kept(this.key);
      if (own !== null && own !== this.built) {
        this.changed(own);
        this.edit(false);
        this.say("This is your text of an earlier visit. It runs when you say so.");
      }
    }

    /* The page may have been built again since. */
    readPage() {
      const shown = shownOf(this.mark);
      const built = textOf(shown);
      const follows = this.built !== undefined && this.built !== built && this.text === this.built;
      this.built = built;
      this.shown = shown;
      this.text ??= built;
      if (follows) this.setText(built);
      else this.hideShown();
    }

    /* A button that is not there keeps its place, so that no other one moves under the pointer. */
    setShown(button, isShown) {
      if (!isShown && document.activeElement === button) this.runButton.focus();
      button.style.visibility = isShown ? "" : "hidden";
    }

    get key() {
      return `slp-cell ${stem} ${hash(this.built)}`;
    }

    get isOpen() {
      return this.mark.classList.contains("is-open");
    }

    /* The editor stands for the code; the outputs of the build stay until there are others. */
    hideShown() {
      const isOld = this.shownBasis !== this.basis;
      for (const one of this.shown.codes) one.hidden = this.isOpen;
      for (const one of this.shown.outputs) {
        one.hidden = this.hasRun;
        one.classList.toggle("slp-outdated", this.isRunning || this.text !== this.built);
        one.classList.toggle("slp-before-change", isOld);
      }
      if (!this.output) return;
      this.output.classList.toggle("slp-before-change", isOld);
      // A verdict is on the text that ran.
      const isOther = this.hasRun && this.text !== this.shownText;
      const isNext = this.isRunning && !this.isShown;
      this.output.classList.toggle("slp-outdated", isOther || isNext || this.hasFailedSince);
      if (this.isRunning) return;
      if (isOther) this.say(CHANGED_SINCE);
      else if (this.status.textContent === CHANGED_SINCE) this.say("");
    }

    /* What is said already is not said again: a reader who listens would hear it each second. */
    say(words, link) {
      if (!link && this.status.textContent === words) return;
      this.status.replaceChildren(words, ...(link ? [" ", link] : []));
    }

    async edit(focus) {
      this.mark.classList.add("is-open");
      this.hideShown();
      this.setShown(this.editButton, false);
      if (!this.editor) {
        const on = {
          run: () => this.run(),
          runAndGoOn: () => this.run().then((ok) => ok && this.goOn()),
          leave: () => this.runButton.focus(),
          change: (text) => this.changed(text),
        };
        const label = `Code of cell ${this.number + 1}`;
        await loadEditor();
        this.editor ??= window.slpEditor(this.place, this.text, label, on);
      }
      if (focus) this.editor.focus();
    }

    changed(text) {
      this.text = text;
      keep(this.key, text === this.built ? null : text);
      this.setShown(this.backButton, text !== this.built);
      this.hideShown();
    }

    /* Give the cell another text, as one change, which the editor can take back. */
    setText(text) {
      if (!this.editor) return this.changed(text);
      const { length } = this.editor.state.doc;
      this.editor.dispatch({ changes: { from: 0, to: length, insert: text } });
    }

    putBack() {
      const more = this.hasRun ? " The kernel keeps what yours did: Restart begins afresh." : "";
      this.hasRun = false;
      this.shownBasis = "";
      this.output.hidden = true;
      this.output.replaceChildren();
      this.setText(this.built);
      this.compareBases(changedTexts(), false);
      this.say(`This is the page's text again. Ctrl+Z, or ⌘Z, brings yours back.${more}`);
      this.editor?.focus();
    }

    goOn() {
      const all = ordered();
      const next = all[all.indexOf(this) + 1];
      if (next) (next.editor ?? next.runButton).focus();
    }

    async ask(action, more = {}, signal = null) {
      return fetch(`/_live/${action}`, {
        method: "POST",
        signal,
        headers: { "Content-Type": "application/json", "X-Live-Token": token },
        body: JSON.stringify({ chapter: stem, cell: this.number, ...more }),
      });
    }

    async restart() {
      await this.ask("restart");
      if (this.isRunning) return; // its end is said by the run
      this.say("The kernel has ended. The next run begins afresh.");
      this.setShown(this.restartButton, false);
    }

    stop() {
      // What runs is another cell, while this one waits.
      if (this.isWaiting) this.leave.abort();
      else this.ask("stop");
    }

    /* Run the cell; if it follows a wrong function, this takes its part's place in a model, too. */
    async run(follows = false) {
      if (this.isRunning) return false;
      this.isRunning = true;
      this.isShown = false; // what this run puts out
      const texts = changedTexts();
      this.runText = this.text;
      this.follows = follows;
      await this.edit(false);
      this.setBusy(true);
      this.say("Starting …");
      this.leave = new AbortController();
      let end = { state: "dead", text: "The server has stopped: start it again." };
      try {
        const answer = await this.ask("run", { texts, follows }, this.leave.signal);
        if (!answer.ok) end = { state: "dead", text: await answer.text() };
        else for await (const event of eventsOf(answer)) end = this.take(event) ?? end;
      } catch {
        if (this.leave.signal.aborted) end = { state: "stopped", text: "You stopped it." };
      }
      this.isRunning = this.isWaiting = false;
      this.setBusy(false);
      this.finish(end, texts);
      return end.state === "ok";
    }

    setBusy(busy) {
      this.mark.setAttribute("aria-busy", String(busy));
      this.setShown(this.stopButton, busy);
      this.setShown(this.restartButton, true);
      this.runButton.setAttribute("aria-disabled", String(busy)); // it keeps the focus
      this.hideShown();
    }

    take(event) {
      if (event.kind === "end") return event;
      if (event.kind !== "tick") this.isWaiting = event.kind === "waiting";
      if (event.kind === "waiting") this.say("Waiting for another cell of this chapter …");
      if (event.kind === "running") this.say("Running …");
      if (event.kind === "note") this.say(event.text);
      if (event.kind === "progress") {
        const bar = make("progress", { max: event.of, value: event.done });
        this.say(`Above it, cell ${event.done + 1} of ${event.of} runs `, bar);
      }
      if (event.kind === "html") {
        this.show(event.html);
      }
      return null;
    }

    show(html) {
      this.hasRun = this.isShown = true;
      this.shownText = this.runText;
      this.hasFailedSince = false;
      this.hideShown();
      const page = new DOMParser().parseFromString(html, "text/html");
      const inner = page.querySelector(".slp-output");
      this.output.hidden = !inner;
      this.output.replaceChildren(
        ...(inner ? [...inner.childNodes].map((one) => document.importNode(one, true)) : []),
      );
      document.dispatchEvent(new CustomEvent("slp:replaced", { detail: [this.output] }));
    }

    /* After "Not yet": what the function does, where it is a part of the model. */
    followButton(hasPart) {
      const said = this.output.querySelector(".slp-verdict > strong")?.textContent;
      if (said !== "Not yet." || this.follows || !hasPart) return null;
      const title = "Train chapter 5's model with it, beside the right one";
      const onclick = () => {
        this.runButton.focus(); // this one goes
        return this.run(true);
      };
      return make("button", { type: "button", title, onclick }, "See what it does");
    }

    finish(end, texts) {
      const hasRun = end.state === "ok" || end.state === "error";
      if (hasRun && !this.isShown) this.show("");
      const seconds = end.seconds === undefined ? "" : ` in ${end.seconds.toFixed(1)} s`;
      const more = end.text ? ` ${end.text}` : "";
      if (end.state === "ok") this.say(`Ran${seconds}.${more}`, this.followButton(end.has_part));
      else if (end.state === "error") this.say(`It raised an error.${more}`);
      else if (end.state === "failed above") {
        const link = make("a", { href: `#cell-${end.at + 1}` }, `Cell ${end.at + 1}`);
        this.say("It was not run, since a cell above raised an error:", link);
        const failed = ordered().find((cell) => cell?.number === end.at);
        if (failed) failed.hasFailedSince = true;
        failed?.say(`It raised an error, which cell ${this.number + 1} shows.`);
      } else this.say(end.text ?? "It was not run.");
      this.compareBases(texts, this.isShown);
    }

    /* Mark what was made before a change above: outputs that rest on it by the names they use. */
    async compareBases(texts, hasRun) {
      const answer = await this.ask("bases", { texts }).catch(() => null);
      if (!answer?.ok) return;
      const { bases } = await answer.json();
      if (hasRun) this.shownBasis = bases[this.number];
      for (const cell of ordered()) {
        if (!cell || !(cell.number in bases)) continue;
        cell.basis = bases[cell.number];
        cell.hideShown();
      }
    }
  }

  /* Lines of JSON, as they come. */
  async function* eventsOf(answer) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.trim()) yield JSON.parse(line);
    }
  }

  const scan = () => {
    for (const mark of document.querySelectorAll(".slp-cell")) {
      if (cells.has(mark)) cells.get(mark).readPage();
      else cells.set(mark, new Cell(mark));
    }
  };
  scan();
  addEventListener("beforeprint", () => {
    for (const { paper, isOpen, text } of cells.values())
      paper.firstChild.textContent = isOpen ? text : "";
  });
  addEventListener("storage", ({ key, newValue }) => {
    for (const cell of cells.values()) {
      const text = newValue ?? cell.built;
      if (cell.key !== key || cell.text === text) continue;
      cell.setText(text);
      cell.edit(false);
      cell.say("This was changed in another tab.");
    }
  });
  document.addEventListener("slp:replaced", (event) => {
    if (!event.detail.every((one) => one.classList?.contains("slp-cell-output"))) scan();
  });

  /* The notebook of the chapter with what the reader has changed. */
  const download = async () => {
    const notebook = await (await fetch(`${stem}.ipynb`)).json();
    const code = notebook.cells.filter((cell) => cell.cell_type === "code");
    for (const cell of ordered()) {
      const blank = code[cell.number]?.metadata.blank;
      if (code[cell.number] && (cell.text !== cell.built || blank !== undefined)) {
        code[cell.number].source = cell.text;
        code[cell.number].outputs = [];
      }
    }
    const url = URL.createObjectURL(new Blob([JSON.stringify(notebook, null, 1)]));
    make("a", { href: url, download: `${stem}_with_my_cells.ipynb` }).click();
    URL.revokeObjectURL(url);
  };
  if (document.querySelector(".slp-cell"))
    document.querySelector(".slp-path .slp-rest")?.append(
      // In the fold, where it moves nothing that is on the screen already.
      make(
        "button",
        { type: "button", class: "slp-cell-download", onclick: download },
        "Notebook with your cells",
      ),
    );
})();
