/* The stage on which alphaTab draws and plays: the piece that is chosen on the page "Hear it", a
   tab of a chapter, or what `show(tex)` is given, as on "Write with it". alphaTab and
   its font are fetched for the first piece, its sounds for the first "Play". */

(() => {
  const page = document.getElementById("slp-hear");
  if (!page) return;
  const find = (name) => document.getElementById(`slp-hear-${name}`);
  const pieces = JSON.parse(find("pieces")?.textContent ?? "[]");
  const assets = new URL(page.dataset.assets, document.baseURI).href;
  const choices = [...page.querySelectorAll("[data-piece]")];
  const play = find("play"),
    stop = find("stop"),
    time = find("time"),
    seek = find("seek");
  const DEEDS = [
    ...["pointermove", "pointerdown", "keydown", "wheel", "touchstart", "scroll", "focusin"],
    ...["dragenter", "change"],
  ];
  const clock = (ms) =>
    `${Math.floor(ms / 60000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, "0")}`;
  let api = null,
    isWanted = false, // to play, before a piece is drawn
    isAsked = false; // to play, before the sounds are there
  /** @type {Promise<unknown> | null} */
  let loaded = null;

  const pause = () => new Promise((done) => setTimeout(done)); // for a key that was pressed
  const load = () =>
    (loaded ??= new Promise((done, fail) => {
      const script = document.createElement("script");
      script.src = `${assets}alphaTab.min.js`;
      script.addEventListener("load", done);
      script.addEventListener("error", fail);
      document.head.append(script);
    })
      .then(pause)
      .then(begin)
      .then(pause));
  page.show = async (tex, how = "") => {
    find("how").textContent = how;
    page.dataset.drawn = "";
    await load();
    api.stop();
    api.tex(tex);
  };
  /** alphaTab's own interface, for a page that hands it more than alphaTex. */
  page.open = async () => {
    await load();
    return api;
  };
  /** The reader's first deed: alphaTab lays a score out for half a second, so until then a piece
     stands on a page as text. */
  page.firstDeed = () =>
    new Promise((done) => {
      const wake = (event) => {
        // A pointer that lies over the page is told of at load, without having moved.
        if (event.type === "pointermove" && !event.movementX && !event.movementY) return;
        for (const deed of DEEDS) removeEventListener(deed, wake, true);
        done();
      };
      for (const deed of DEEDS) addEventListener(deed, wake, { capture: true, passive: true });
    });
  /** The piece that is shown, as Guitar Pro 7 saves it. */
  page.guitarPro = () => new alphaTab.exporter.Gp7Exporter().export(api.score, api.settings);

  /* On paper: alphaTab draws the lines of a score that are in sight and takes away those that no
     longer are, so all are drawn before printing, and the score is as wide as the narrower of A4
     and Letter. */
  const PAPER_WIDTH = 680;
  const linesOfScore = () =>
    [...find("stage").querySelectorAll(".at-surface > div")].filter((each) => each.layoutResultId);
  const drawAll = () => {
    for (const line of linesOfScore().filter((each) => each.resultState === 0)) {
      line.resultState = 1; // as alphaTab marks what it has asked for
      api.renderer.renderResult(line.layoutResultId);
    }
  };
  const print = async () => {
    drawAll();
    while (!linesOfScore().every((line) => line.renderedResult))
      await new Promise((done) => setTimeout(done, 30));
    window.print();
  };
  addEventListener("beforeprint", () => {
    if (!api) return;
    const lines = linesOfScore(),
      isWhole = lines.length > 0 && lines.every((line) => line.renderedResult);
    page.toggleAttribute("data-paper", isWhole); // else the page is printed, with its text
    for (const line of lines) line.replaceChildren(...(line.renderedResult ?? []));
    const zoom = Math.min(1, PAPER_WIDTH / Math.max(1, find("stage").clientWidth));
    page.style.setProperty("--slp-paper-zoom", String(zoom));
  });

  const choose = (number) => {
    choices.forEach((button, i) => button.setAttribute("aria-pressed", String(i === number)));
    const { tex, how, files } = pieces[number];
    for (const link of page.querySelectorAll("[data-kind]"))
      link.href = `${files}.${link.dataset.kind}`;
    return page.show(tex, how);
  };

  const begin = () => {
    api = new alphaTab.AlphaTabApi(find("stage"), {
      core: { fontDirectory: assets, scriptFile: `${assets}alphaTab.min.js` },
      display: { layoutMode: "page", scale: 0.9 },
      // on a phone it would be cut; the page has it above
      notation: { elements: { scoreTitle: false } },
      player: {
        playerMode: "disabled", // until the first "Play": sounds are large, few pieces are heard
        scrollMode: alphaTab.ScrollMode.Off, // else the page jumps when a piece is drawn
        scrollElement: document.documentElement,
        scrollOffsetY: -150, // below the page's header and the controls, which stay
      },
    });
    api.scoreLoaded.on((score) => {
      find("title").textContent = score.title;
    });
    api.postRenderFinished.on(() => find("still")?.remove());
    api.renderFinished.on(() => {
      page.dataset.drawn = "yes";
      setTimeout(drawAll, 500); // for who prints by the browser's own menu
      find("print").disabled = play.disabled = false;
      if (isWanted) playPause();
      isWanted = false;
    });
    api.playerReady.on(() => {
      stop.disabled = play.disabled = seek.disabled = false;
      page.dataset.ready = "yes";
      play.textContent = "Play";
      if (isAsked) api.play();
      isAsked = false;
    });
    api.playerStateChanged.on((now) => {
      const playing = now.state === 1,
        modes = alphaTab.ScrollMode;
      play.textContent = playing ? "Pause" : "Play";
      api.settings.player.scrollMode = playing ? modes.Continuous : modes.Off;
      api.updateSettings();
    });
    api.playerPositionChanged.on((now) => {
      if (!now.endTime) return; // no player yet, so no length
      page.dataset.position = String(now.currentTime);
      time.textContent = `${clock(now.currentTime)} / ${clock(now.endTime)}`;
      seek.max = now.endTime;
      if (!seek.matches(":active")) seek.value = now.currentTime;
      seek.setAttribute("aria-valuetext", time.textContent);
    });
    api.error.on(() => {
      rest();
      find("how").textContent = "The tab cannot be drawn here; it stands below as text.";
    });
    stop.addEventListener("click", () => api.stop());
    find("print").addEventListener("click", print);
    find("speed").addEventListener("change", (event) => {
      api.playbackSpeed = Number(event.target.value);
    });
    seek.addEventListener("input", () => {
      api.timePosition = Number(seek.value);
    });
    find("volume").addEventListener("input", (event) => {
      api.masterVolume = Number(event.target.value);
    });
    find("loop").addEventListener("change", (event) => {
      api.isLooping = event.target.checked;
    });
    find("metronome").addEventListener("change", (event) => {
      api.metronomeVolume = event.target.checked ? 1 : 0;
    });
    page.hidden = false;
  };

  const rest = () => {
    isWanted = isAsked = play.disabled = false;
    play.textContent = "Play";
  };
  const playPause = async () => {
    const modes = alphaTab.PlayerMode;
    const setPlayer = (mode) => {
      api.settings.player.playerMode = mode;
      api.updateSettings();
    };
    if (api.settings.player.playerMode !== modes.Disabled) return api.playPause();
    isAsked = play.disabled = true;
    play.textContent = "Fetching sounds …";
    setPlayer(modes.EnabledSynthesizer); // before waiting: a browser lets only a click make sound
    try {
      const answer = await fetch(`${assets}sonivox.sf3`);
      if (!answer.ok) throw new TypeError(answer.statusText);
      api.loadSoundFont(new Uint8Array(await answer.arrayBuffer()), false);
    } catch {
      setPlayer(modes.Disabled);
      rest();
      find("how").textContent = "The sounds cannot be fetched now; “Play” tries again.";
    }
  };
  /* The first tap counts, even where it is what wakes the page. */
  play.addEventListener("click", () => {
    if (page.dataset.drawn === "yes") return void playPause();
    isWanted = play.disabled = true;
    play.textContent = "Fetching …";
    load().catch(() => {
      loaded = null; // it can be tried again
      rest();
      find("how").textContent = "The player cannot be fetched now; “Play” tries again.";
    });
  });

  /* In a chapter the stage comes to the tab that is heard; on the home page it has its place. */
  for (const button of document.querySelectorAll("button[data-tex]")) {
    const offer = button.closest(".slp-hear-this");
    offer.hidden = false;
    button.addEventListener("click", () => {
      if (offer !== button) offer.after(page);
      page.hidden = false;
      page.show(button.dataset.tex);
      find("stage").scrollIntoView({ block: "nearest" });
    });
  }

  /* On the page "Hear it" a tab as text can be dropped. */
  const showText = async (file) => {
    const { MAX_FILE_BYTES } = await import(`${assets}../model/constants.js`);
    const { alphaTex } = await import(`${assets}../model/tab.js`);
    const { decodeText, NO_ROWS, readTextTab } = await import(`${assets}../model/text_tab.js`);
    const isText = /\.(?:txt|tab)$/i.test(file.name) && file.size <= MAX_FILE_BYTES.text;
    const { tab, remarks } = isText
      ? readTextTab(decodeText(new Uint8Array(await file.arrayBuffer())))
      : { tab: null, remarks: [] };
    if (tab) {
      choices.forEach((button) => button.setAttribute("aria-pressed", "false"));
      const how = [file.name, ...remarks].join("; ");
      await page.show(`\\title "${file.name.replace(/["\\]/g, "")}" ${alphaTex(tab)}`, `${how}.`);
    } else
      find("how").textContent = isText
        ? `${file.name} cannot be read. ${NO_ROWS}`
        : `${file.name} is no text of tab (.txt, .tab), or larger than ` +
          `${MAX_FILE_BYTES.text / 2 ** 20} MB; ` +
          "“Finger a piece” takes other files.";
  };
  if (pieces.length) {
    page.firstDeed().then(() => {
      if (page.dataset.drawn === undefined) choose(0).catch(() => {}); // which "Play" tries again
    });
    choices.forEach((button, i) => button.addEventListener("click", () => choose(i)));
    for (const name of ["dragover", "drop"])
      document.addEventListener(name, (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      const file = event.dataTransfer?.files[0];
      if (file) showText(file);
    });
  }
})();
