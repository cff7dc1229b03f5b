/* The page "Finger a piece": a file's notes on strings and frets, the moments where another way is
   almost as good, and the reader's choice between them. alphaTab reads, draws, plays and writes the
   score; the hand is in hand.js. */

import { FILE_KINDS, FINGERING, MAX_FILE_BYTES, TUNINGS } from "./constants.js";
import { make } from "./elements.js";
import { Refusal } from "./refusals.js";
import {
  Lattice,
  chooseFingers,
  findPlayableGrips,
  findRepeats,
  fitMoment,
  formatPitch,
  rankQuestions,
  ringingOf,
  spreadAnswers,
} from "./hand.js";
import { intoBars, partsOf, pitchesAsTex, readMidi } from "./midi.js";
import { alphaTex, gcd, plainTab } from "./tab.js";
import { decodeText, NO_ROWS, readTextTab } from "./text_tab.js";

const stage = document.getElementById("slp-fingering"),
  player = document.getElementById("slp-hear");
const find = (name) => document.getElementById(`f-${name}`);
const example = JSON.parse(find("example").textContent);
const MAX_WAYS = 5,
  MOMENTS_PER_QUESTION = 16,
  LEAST_QUESTIONS = 3,
  MOST_QUESTIONS = 40,
  MAX_REMARKS = 3;
const button = (text, action, given = {}) =>
  make("button", { type: "button", ...given, onclick: action }, text);
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

const pause = () => new Promise((done) => setTimeout(done)); // for a key, a drawing

let api = null; // alphaTab's
// { title, parts: [{ name, score() }] }: a part's score is made anew, because fingering changes it
let file = null;
let drawn = null, // the piece that alphaTab has
  piece = null; // { score, staff, guitar, moments, remarks, own: the places in the file }
let pins = new Map(),
  found = null, // { lattice, path, hands, prices, repeats, held, grips, doubts }; null in a search
  refreshed = {}, // changes with each change of the reader's
  at = 0; // the choices that are made, what is fingered with them, the moment that is shown

// --- Files -------------------------------------------------------------------------------------

async function readFile(given) {
  const name = given.name,
    kind = FILE_KINDS[`.${name.split(".").at(-1).toLowerCase()}`],
    most = MAX_FILE_BYTES[kind];
  if (!kind)
    throw new Refusal(
      `${name} is none of the files that this page reads: ${Object.keys(FILE_KINDS).join(", ")}.`,
    );
  if (given.size > most)
    throw new Refusal(
      `${name} has ${(given.size / 2 ** 20).toFixed(1)} MB; a file of this kind may have ` +
        `${most / 2 ** 20} MB.`,
    );
  const bytes = new Uint8Array(await given.arrayBuffer()),
    title = name.replace(/\.\w+$/, "");
  if (!bytes.length) throw new Refusal(`${name} is empty.`);
  let parts,
    leftOut = [];
  try {
    if (kind === "midi") parts = midiParts(bytes, title);
    else if (kind === "text") {
      const { tab, remarks } = readTextTab(decodeText(bytes));
      if (!tab) throw new Refusal(NO_ROWS);
      parts = scoreParts(() => texScore(alphaTex(tab)));
      leftOut = remarks;
    } else {
      const read = await readScore(bytes, kind);
      parts = scoreParts(() => alphaTab.model.JsonConverter.jsObjectToScore(read, api.settings));
    }
  } catch (error) {
    if (error instanceof Refusal && error.message)
      throw new Refusal(`${name} cannot be read. ${error.message}`);
    throw new Refusal(
      `${name} cannot be read: it is damaged, or no ` +
        `${kind === "gp" ? "Guitar Pro" : "MusicXML"} file, whatever its name says.`,
    );
  }
  if (!parts.length) throw new Refusal(`${name} has no notes that a guitar could play.`);
  return { title, parts, isMidi: kind === "midi", leftOut };
}

const MOST_SECONDS = 10; // that a file may take to be read

/** A score as alphaTab reads it, in a worker that is ended when it takes too long.
   @type {(bytes: Uint8Array, kind: string) => Promise<object>} */
function readScore(bytes, kind) {
  const worker = new Worker(new URL("score_reader.js", import.meta.url));
  const alphaTabAt = new URL("../alphatab/alphaTab.min.js", import.meta.url).href;
  return new Promise((done, fail) => {
    const late = `It takes more than ${MOST_SECONDS} seconds to read.`;
    const timer = setTimeout(() => fail(new Refusal(late)), 1000 * MOST_SECONDS);
    worker.onmessage = ({ data: { score, refused } }) => {
      clearTimeout(timer);
      if (score) done(score);
      else fail(new Refusal(refused));
    };
    worker.onerror = () => fail(new Refusal(""));
    worker.postMessage({ bytes, kind, alphaTabAt });
  }).finally(() => worker.terminate());
}

const texScore = (tex) => alphaTab.importer.ScoreLoader.loadAlphaTex(tex, api.settings);

function midiParts(bytes, title) {
  const midi = readMidi(bytes);
  return partsOf(midi).map(({ name, notes }) => ({
    name,
    score: () => {
      const score = texScore(
        pitchesAsTex(intoBars(midi, notes, Number(find("grid").value)), title),
      );
      return { score, staff: score.tracks[0].staves[0] };
    },
  }));
}

/** The tracks of a score with notes, guitars' first; a piano's staves together. */
function scoreParts(load) {
  const joined = (track) => {
    const [first, ...others] = track.staves;
    for (const staff of others)
      staff.bars.forEach((bar, k) => bar.voices.forEach((voice) => first.bars[k].addVoice(voice)));
    track.staves.splice(1);
    return first;
  };
  let first = load(); // which need not be read twice
  const used = first.tracks
    .filter((track) => !track.staves[0].isPercussion)
    .map((track) => ({ track, staff: joined(track) }))
    .filter(({ staff }) => momentsOf(staff).length);
  return used
    .sort((a, b) => b.staff.isStringed - a.staff.isStringed)
    .map(({ track, staff }, k) => ({
      name: `${track.name || `part ${k + 1}`}: ${plural(momentsOf(staff).length, "moment")}`,
      score: () => {
        const score = first ?? load();
        first = null;
        return { score, staff: joined(score.tracks[track.index]) };
      },
    }));
}

// --- Notes of a score --------------------------------------------------------------------------

const isStruck = (note) =>
  !note.isDead && !note.isPercussion && !(note.isTieDestination && note.tieOrigin);
/** A note with those that it is held on in. */
const chain = (note) => (note?.tieDestination ? [note, ...chain(note.tieDestination)] : [note]);

/** The notes of a staff that begin together, in order; a grace note is a moment of its own. */
function momentsOf(staff) {
  return staff.bars.flatMap((bar) => {
    const moments = new Map();
    for (const beat of bar.voices.flatMap((voice) => voice.beats)) {
      const notes = beat.notes.filter(isStruck),
        start = beat.absoluteDisplayStart,
        grace = beat.graceType ? beat.index - 1000 : 0;
      if (!notes.length) continue;
      const key = `${start} ${grace}`;
      if (!moments.has(key)) moments.set(key, { bar, beat, start, grace, notes: [] });
      moments.get(key).notes.push(...notes);
    }
    return [...moments.values()].sort((a, b) => a.start - b.start || a.grace - b.grace);
  });
}

/** How a guitarist says where a moment is. */
function placeName({ bar, start }) {
  const beat = 1 + ((start - bar.masterBar.start) * bar.masterBar.timeSignatureDenominator) / 3840;
  return `bar ${bar.index + 1}, beat ${Number(beat.toFixed(2))}`;
}

/** Make a part of a file fit for the guitar that is asked for. */
function takePart(from, part = Number(find("part").value)) {
  const { score, staff } = from.parts[part].score(),
    wasStringed = staff.isStringed;
  const asked = find("tuning").value,
    capo = find("capo").value;
  const guitar = {
    open: asked ? TUNINGS[asked] : wasStringed ? [...staff.stringTuning.tunings] : TUNINGS.standard,
    capo: capo === "" ? (wasStringed ? staff.capo : 0) : Number(capo),
    maxFret: Number(find("frets").value),
    maxSpan: FINGERING.maxSpan,
  };
  const isOwn =
    wasStringed &&
    `${guitar.open}` === `${staff.stringTuning.tunings}` &&
    guitar.capo === staff.capo;
  const remarks = [],
    kept = [];
  for (const moment of momentsOf(staff)) {
    const pitches = moment.notes.map(
      (note) => note.realValueWithoutHarmonic + (wasStringed ? staff.transpositionPitch : 0),
    );
    const { notes, changes } = fitMoment(pitches, guitar, find("octaves").checked);
    if (changes.length) remarks.push(`${placeName(moment)}: ${changes.join(", ")}`);
    const own = notes.map(([pitch, k]) => ({
      pitch,
      note: moment.notes[k],
      old: isOwn ? [guitar.open.length + 1 - moment.notes[k].string, moment.notes[k].fret] : null,
    }));
    for (const note of moment.notes.filter((each) => !own.some(({ note: left }) => left === each)))
      chain(note).forEach((each) => each.beat.removeNote(each));
    if (own.length) kept.push({ ...moment, notes: own });
  }
  if (!kept.length)
    throw new Refusal("There is nothing to play: no note of this part is on this guitar.");
  for (const { notes } of kept) {
    for (const one of notes)
      one.leads = {
        hammer: one.note.isHammerPullOrigin && one.note.hammerPullDestination,
        slide: one.note.slideOutType,
        slideTo: one.note.slideTarget,
        finger: one.note.leftHandFinger,
      };
  }
  staff.stringTuning = new alphaTab.model.Tuning("", guitar.open, false);
  staff.capo = guitar.capo;
  staff.showTablature = true;
  if (!wasStringed) {
    [staff.transpositionPitch, staff.displayTranspositionPitch] = [0, -12];
    for (const bar of staff.bars)
      [bar.clef, bar.clefOttava] = [alphaTab.model.Clef.G2, alphaTab.model.Ottavia.Regular];
  }
  const own = kept.map(({ notes }, t) => [t, notes.map(({ old }) => old)]);
  return {
    score,
    staff,
    guitar,
    moments: kept,
    remarks,
    own: isOwn ? own.filter(([, grip]) => isGrip(grip)) : null,
  };
}

/** Whether each note of a grip has a string of its own. */
const isGrip = (grip) => new Set(grip.map(([string]) => string)).size === grip.length;

/** Put the fingering into the score. Fingers of the file stay where all notes of a moment do. */
function placeNotes() {
  const { guitar, moments } = piece,
    strings = guitar.open.length,
    { Unknown } = alphaTab.model.Fingers,
    beats = new Set();
  found.refingered = 0;
  moments.forEach(({ notes }, t) => {
    const grip = found.grips[t],
      isNamed = notes.some(({ leads }) => leads.finger >= alphaTab.model.Fingers.Thumb),
      stays = isNamed && notes.every(({ old }, k) => `${old}` === `${grip[k]}`),
      fingers = chooseFingers(grip, found.hands[t], guitar);
    if (isNamed && !stays) found.refingered++;
    notes.forEach(({ note, leads }, k) => {
      const [string, fret] = grip[k];
      for (const each of chain(note)) {
        [each.string, each.fret, each.octave, each.tone] = [strings + 1 - string, fret, -1, -1];
        each.leftHandFinger = Unknown;
        beats.add(each.beat);
      }
      note.leftHandFinger = stays ? leads.finger : fingers[k] || Unknown;
    });
  });
  for (const beat of beats)
    beat.noteStringLookup = new Map(beat.notes.map((note) => [note.string, note]));
  for (const { note, leads } of moments.flatMap(({ notes }) => notes)) {
    // a slide or a hammer-on needs one string
    note.isHammerPullOrigin = Boolean(leads.hammer) && leads.hammer.string === note.string;
    note.slideOutType = leads.slideTo && leads.slideTo.string !== note.string ? 0 : leads.slide;
  }
}

// --- Fingering ---------------------------------------------------------------------------------

/** The fingerings with what is chosen, and with the file's own places if they are kept; but free at
   one moment. */
function makeLattice(freeAt = -1) {
  const moments = piece.moments.map(({ notes }) => notes.map(({ pitch }) => pitch)),
    repeats = findRepeats(moments),
    own = new Map(pins);
  own.delete(freeAt);
  const pinned = new Map([
    ...(find("keep").checked && piece.own ? piece.own : []),
    ...spreadAnswers(own, repeats),
  ]);
  const easy = find("easy").checked ? FINGERING.easy : null,
    guitar = { ...piece.guitar, maxSpan: easy?.maxSpan ?? piece.guitar.maxSpan };
  pinned.delete(freeAt);
  const choices = moments.map((pitches, t) => {
    const grips = findPlayableGrips(pitches, guitar, pinned.get(t));
    // a file may go beyond the last fret
    return grips.length ? grips : findPlayableGrips(pitches, guitar);
  });
  const preference = Number(find("open").value) || (easy?.openStringPreference ?? 0);
  const asked = {
    position: easy?.position ?? null,
    openStringCost: -FINGERING.openStringCost * preference,
  };
  /** By bar and pitch: when it comes next, until which a note rings that rings on.
      @type {Map<string, number>} */
  const struck = new Map();
  const lasting = [...piece.moments]
    .reverse()
    .map(({ notes, bar, start }) => {
      const end = bar.masterBar.start + bar.masterBar.calculateDuration(),
        keys = notes.map(({ pitch }) => `${bar.masterBar.index} ${pitch}`);
      const own = notes.map(({ note }, i) => {
        const written = chain(note).reduce((all, { beat }) => all + beat.displayDuration, 0);
        return note.isLetRing ? Math.max(written, (struck.get(keys[i]) ?? end) - start) : written;
      });
      for (const key of keys) struck.set(key, start);
      return own;
    })
    .reverse();
  const onsets = piece.moments.map(({ start }) => start);
  return new Lattice(moments, choices, ringingOf(onsets, lasting), asked);
}

/** What finds the cheapest fingering with the choices that are made, and where an answer helps
   most: in steps, so that the page can answer in between.
   @type {() => (() => void)[]} */
function stepsToSolve() {
  const count = piece.moments.length;
  const asked = Math.min(
    MOST_QUESTIONS,
    Math.max(LEAST_QUESTIONS, Math.ceil(count / MOMENTS_PER_QUESTION)),
  );
  let lattice, path, hands, prices;
  return [
    () => (lattice = makeLattice()),
    () => ({ path, hands } = lattice.findPath()),
    () => (prices = lattice.prices()),
    () => {
      const repeats = findRepeats(lattice.moments);
      found = {
        lattice,
        path,
        hands,
        prices,
        repeats,
        held: spreadAnswers(pins, repeats),
        grips: path.map((k, t) => lattice.choices[t][k]),
        doubts: rankQuestions(prices, repeats).slice(0, asked),
      };
      placeNotes();
    },
  ];
}

/** The ways to play a moment, and its repeats: paths of grips, the one that is taken first. Each
   takes a while. */
function* findWays(t) {
  const isFixed = found.lattice.choices[t].length === 1,
    free = isFixed ? makeLattice(t) : found.lattice;
  const again = free.placesLike(t, found.repeats);
  const prices = isFixed ? free.prices() : found.prices;
  const taken = free.choices[t].findIndex((grip) => `${grip}` === `${found.grips[t]}`);
  const base = isFixed ? free.findPath(again, taken) : free.findPath();
  const others = free.alternatives(t, base.path, prices, MAX_WAYS);
  for (const grip of [null, ...others]) {
    const { path, cost } = grip === null ? base : free.findPath(again, grip);
    const grips = path.map((own, i) => free.choices[i][own]);
    yield {
      grips,
      extra: cost - base.cost,
      changed: grips.filter((own, i) => `${own}` !== `${found.grips[i]}`).length,
    };
  }
}

// --- Showing -----------------------------------------------------------------------------------

const note = (text) => {
  find("note").textContent = text;
};
const inWords = (grip) =>
  grip
    .map(([string, fret]) => (fret ? `string ${string} fret ${fret}` : `string ${string} open`))
    .join(", ");

/** A few moments as tab, the one that is asked for in the middle. */
function drawWay(grips, t) {
  const shown = [t - 1, t, t + 1].filter((i) => i >= 0 && i < grips.length),
    names = piece.guitar.open.map((pitch) => formatPitch(pitch).replace(/\d+$/, "").padEnd(2));
  const fretOf = (/** @type {number} */ i, /** @type {number} */ string) =>
    String(grips[i].find((place) => place[0] === string)?.[1] ?? "").padEnd(2, "-");
  return names
    .map((name, s) => `${name}|-${shown.map((i) => fretOf(i, s + 1)).join("--")}-`)
    .join("\n");
}

function showMoment(ways = [...findWays(at)]) {
  const moment = piece.moments[at];
  const count = found.repeats[at].length - 1,
    again = count ? `, ${plural(count, "more place")} like it` : "";
  const known = pins.has(at)
    ? "your choice"
    : found.held.has(at)
      ? "follows your choice at the same notes"
      : found.doubts.includes(at)
        ? "uncertain"
        : "fairly sure";
  find("where").textContent = `${placeName(moment)}: ${known}${again}`;
  const hadFocus = find("ways").contains(document.activeElement);
  find("ways").replaceChildren(
    ...ways.map(({ grips, extra, changed }, k) => {
      const cost =
        Math.abs(extra) < 0.05
          ? "costs as little"
          : `costs ${Math.abs(extra).toFixed(1)} ${extra < 0 ? "less" : "more"}`;
      const said = k
        ? `${cost}, ${plural(changed, "moment")} change${changed === 1 ? "s" : ""}`
        : "as it is";
      const own = button("", () => choose(grips[at]), { "aria-pressed": String(k === 0) });
      const drawn = make(
        "span",
        { class: at ? "f-way" : "f-way f-first", "aria-hidden": "true" },
        drawWay(grips, at),
      );
      const spoken = make("span", { class: "slp-only-read" }, `${inWords(grips[at])}: `);
      own.append(drawn, spoken, said);
      return own;
    }),
  );
  find("ways").scrollLeft = 0;
  if (hadFocus) find("ways").firstElementChild.focus({ preventScroll: true });
  find("free").disabled = !pins.has(at);
  find("back").disabled = at === 0;
  find("on").disabled = at === piece.moments.length - 1;
  find("question").disabled = !found.doubts.length;
  find("all").disabled = !pins.size;
  for (const mark of find("marks").children)
    mark.setAttribute("aria-current", String(Number(mark.dataset.t) === at));
  markCurrent();
}

function showText() {
  const { moments, guitar, score, staff } = piece,
    notes = found.grips.flat();
  const frets = notes.map(([, fret]) => fret).filter(Boolean);
  const fretted = frets.length
    ? `frets ${Math.min(...frets)} to ${Math.max(...frets)}`
    : "open strings alone";
  const kept = moments.flatMap(({ notes: own }, t) =>
    own.filter(({ old }, k) => `${old}` === `${found.grips[t][k]}`),
  ).length;
  const chosen = pins.size ? `; you chose ${plural(pins.size, "time")}` : "";
  const places = `${plural(kept, "note")} ${kept === 1 ? "is" : "are"} where the file has them.`;
  find("summary").textContent =
    `${plural(notes.length, "note")} at ${plural(moments.length, "moment")}, ${fretted}. ` +
    `${plural(found.doubts.length, "moment")} could well be played otherwise${chosen}.` +
    (piece.own && file.title ? ` ${places}` : "");
  const anew = found.refingered
    ? [`the file’s fingers are found anew where notes move (${plural(found.refingered, "moment")})`]
    : [];
  const remarks = [...file.leftOut, ...anew, ...piece.remarks],
    more = remarks.length - MAX_REMARKS;
  const others = more > 0 ? `; and ${more.toLocaleString("en")} more like this` : "";
  find("changes").textContent = remarks.length
    ? `Not as written: ${remarks.slice(0, MAX_REMARKS).join("; ")}${others}.`
    : "";
  const unit = [
    ...moments.map(({ start }) => start),
    ...staff.bars.map((bar) => bar.masterBar.calculateDuration()),
  ].reduce(gcd, 960);
  const bars = staff.bars.map((bar) => ({
    steps: bar.masterBar.calculateDuration() / unit,
    moments: [],
  }));
  moments.forEach(({ bar, start }, t) =>
    bars[bar.index].moments.push({
      step: (start - bar.masterBar.start) / unit,
      notes: found.grips[t],
    }),
  );
  const names = [...guitar.open]
    .reverse()
    .map((pitch) => formatPitch(pitch).replace(/\d+$/, ""))
    .join(" ");
  const head = [
    ...(score.title ? [score.title] : []),
    `tuning: ${names}`,
    ...(guitar.capo ? [`capo: ${guitar.capo}`] : []),
  ];
  find("plain").tabIndex = 0; // it may scroll
  find("plain").textContent = `${head.join("\n")}\n\n${plainTab({ open: guitar.open, bars })}\n`;
}

/** Buttons on the score: the uncertain moments, and those that the reader has chosen. */
function drawMarks() {
  if (!found) return;
  const asked = [...found.doubts, ...pins.keys()];
  const marks = [...new Set(asked)]
    .sort((a, b) => a - b)
    .map((t) => {
      const place = boundsOf(t);
      if (!place) return null;
      const rank = found.doubts.indexOf(t);
      const mark = button(pins.has(t) ? "✓" : "?", () => show(t), {
        "aria-label":
          `${placeName(piece.moments[t])}: ` +
          (pins.has(t) ? "chosen" : `uncertain, number ${rank + 1}`),
        "aria-current": String(t === at),
        "data-t": t,
        class: pins.has(t) ? "f-chosen" : "f-asked",
      });
      Object.assign(mark.style, place);
      return mark;
    });
  const focused = document.activeElement?.dataset?.t;
  find("marks").replaceChildren(...marks.filter(Boolean));
  if (focused) find("marks").querySelector(`[data-t="${focused}"]`)?.focus({ preventScroll: true });
  markCurrent();
}

/** Where a moment is drawn: as wide as its notes, over the staff of the tab. */
function boundsOf(t) {
  const all = piece.moments[t].notes.flatMap(
    ({ note: own }) => api.boundsLookup?.findBeats(own.beat) ?? [],
  );
  if (!all.length) return null;
  const { visualBounds: own, barBounds } = all.reduce((low, one) =>
    one.realBounds.y > low.realBounds.y ? one : low,
  );
  const surface = document.querySelector("#slp-hear-stage .at-surface"),
    width = Math.max(24, own.w + 8),
    top = barBounds.visualBounds;
  return {
    left: `${surface.offsetLeft + own.x + own.w / 2 - width / 2}px`,
    top: `${surface.offsetTop + top.y - 18}px`,
    width: `${width}px`,
    height: `${top.h + 26}px`,
  };
}

function markCurrent() {
  const place = boundsOf(at);
  find("current").hidden = !place;
  if (place) Object.assign(find("current").style, place);
}

// --- What the reader does ----------------------------------------------------------------------

/** Do something, and say in a sentence what cannot be done. */
const tried =
  (action) =>
  async (...given) => {
    try {
      note("");
      await action(...given);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      note(error.message);
    }
  };

/** Show a moment in the panel, and its place in the score. */
function show(t, scrolls = false) {
  stage.classList.add("f-asked"); // until then the score has the room
  if (!found) return; // it is still looked for
  at = t;
  showMoment();
  if (scrolls)
    find("current").scrollIntoView({
      block: "center",
      behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
    });
}

/** Finger anew and show it, a step at a time unless the reader has changed something meanwhile;
   the score is drawn by alphaTab when it comes to it. */
async function refresh() {
  const mine = (refreshed = {}),
    isNew = drawn !== piece;
  if (isNew) found = null;
  const steps = [
    ...stepsToSolve(),
    () => {
      find("keep").closest("label").hidden = !piece.own || !file.title;
      if (isNew) at = found.doubts[0] ?? 0;
      showText();
    },
  ];
  const isLeft = async () => {
    await pause();
    return mine !== refreshed;
  };
  for (const step of steps) {
    step();
    if (await isLeft()) return;
  }
  const shown = at,
    ways = [];
  for (const way of findWays(shown)) {
    ways.push(way);
    if (await isLeft()) return;
  }
  if (at === shown) showMoment(ways); // else the reader has gone on
  player.dataset.drawn = "";
  drawn = piece;
  if (isNew) api.renderScore(piece.score, [piece.staff.track.index]);
  else api.render({ reuseViewport: true });
}

function choose(grip) {
  if (!found) return; // of a piece that is no longer there
  pins.set(at, grip);
  refresh();
}

const restart = tried(async () => {
  piece = takePart(file);
  pins = new Map();
  await refresh();
});

/** Say what is being done, and let the page show it before it is. */
function tell(text) {
  find("summary").textContent = text;
  return new Promise((done) => setTimeout(done, 30));
}

const open = tried(async (given) => {
  const before = find("summary").textContent;
  if (given) await tell(`Reading ${given.name} …`);
  try {
    await take(given);
  } catch (error) {
    find("summary").textContent = before;
    throw error;
  }
});

/** Take a file, or the example where there is none. */
async function take(given) {
  const read =
    given instanceof File
      ? await readFile(given)
      : { title: "", parts: scoreParts(() => texScore(example)), leftOut: [] };
  await (given ? tell("Finding strings and frets …") : pause());
  [piece, file, pins] = [takePart(read, 0), read, new Map()];
  find("part").replaceChildren(...file.parts.map(({ name }, k) => new Option(name, k)));
  find("part").closest("label").hidden = file.parts.length < 2;
  find("grid").closest("label").hidden = !file.isMidi;
  find("name").textContent = given?.name ?? "An example: Ode to Joy";
  await refresh();
}

/** The next uncertain moment after the one that is shown, the one first where an answer helps
   most. */
function askNext() {
  if (!found) return;
  const rank = found.doubts.indexOf(at);
  show(found.doubts[(rank + 1) % found.doubts.length], true);
}

const WRITERS = {
  gp: () => new alphaTab.exporter.Gp7Exporter().export(piece.score, api.settings),
  atex: () => new alphaTab.exporter.AlphaTexExporter().exportToString(piece.score, api.settings),
  txt: () => find("plain").textContent,
};

function download(kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([WRITERS[kind]()]));
  link.download = `${file.title || "ode-to-joy"}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function start() {
  if (!find("file").files.length) await player.firstDeed(); // a browser may have kept a file
  api = await player.open();
  alphaTab.Logger.logLevel = alphaTab.LogLevel.None; // what cannot be read is said on the page
  stage.classList.add("f-alive");
  const marks = document.createElement("div");
  marks.id = "f-marks";
  marks.setAttribute("role", "group");
  marks.setAttribute("aria-label", "Moments that could be played otherwise");
  const current = document.createElement("div");
  current.id = "f-current";
  document.getElementById("slp-hear-stage").append(current, marks);
  api.postRenderFinished.on(() => {
    drawMarks();
    stage.dataset.shown = String(Number(stage.dataset.shown ?? 0) + 1);
  });
  api.beatMouseDown.on((beat) => {
    const t = piece.moments.findIndex(({ notes }) =>
      notes.some(({ note: own }) => chain(own).some((each) => each.beat === beat)),
    );
    if (t >= 0) show(t);
  });
  find("file").addEventListener("change", () => {
    if (find("file").files[0]) open(find("file").files[0]);
    find("file").value = "";
  });
  for (const name of ["part", "tuning", "capo", "frets", "octaves", "grid"])
    find(name).addEventListener("change", restart);
  for (const name of ["open", "keep", "easy"])
    find(name).addEventListener("change", () => refresh());
  find("back").addEventListener("click", () => show(at - 1));
  find("on").addEventListener("click", () => show(at + 1));
  find("question").addEventListener("click", askNext);
  find("free").addEventListener("click", () => {
    pins.delete(at);
    refresh();
  });
  find("all").addEventListener("click", () => {
    pins.clear();
    refresh();
  });
  await open(find("file").files[0] ?? null);
  for (const kind of Object.keys(WRITERS)) {
    find(`save-${kind}`).addEventListener("click", () => download(kind));
    find(`save-${kind}`).disabled = false;
  }
}

const started = start();
for (const name of ["dragover", "dragleave", "drop"])
  document.addEventListener(name, (event) => {
    event.preventDefault();
    find("drop").classList.toggle("slp-over", name === "dragover");
  });
document.addEventListener("drop", async (event) => {
  const [given] = event.dataTransfer.files;
  await started;
  if (given) open(given);
});
