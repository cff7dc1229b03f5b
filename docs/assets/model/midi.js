/* A MIDI file's notes in bars, and as alphaTex. Bounded: what is too large, damaged or no MIDI file
   is refused in a sentence. As slp_guitar.formats.midi has it: grid, strums, bars. */

import { MIDI, SHARPS, TUPLETS } from "./constants.js";
import { Refusal } from "./refusals.js";
import { gcd, signatureOf, stretches } from "./tab.js";

const PERFORMANCE_UNITS = [2, 4, MIDI.performanceUnit]; // steps to a quarter, as people play
// where notes end in finer steps than they begin, that is how a program plays them
const MAX_UNIT_OF_ENDS = 6;
const NEAR_SECONDS = 0.05,
  NEAR_SHARE = 0.95;
const FAMILIES =
  "piano,bells,organ,guitar,bass,strings,ensemble,brass,reeds,pipe,synth lead,synth pad," +
  "synth effects,plucked,percussion,effects";
const MAX_BARS = 3000,
  MAX_BEATS = 32; // that can be drawn

/** @typedef {[number, number]} Signature */
/** @typedef {{ start: number, end: number, pitch: number, rings?: boolean }} Sounding
     One that rings is held by the sustain pedal. */
/** @typedef {Sounding & { channel: number, track: number }} Note */
/** @typedef {{ ticks: number, notes: Note[], signatures: [number, Signature][],
     tempos: [number, number][], names: Map<number, string>, programs: Map<string, number>,
     length: number }} Midi */
/** @typedef {{ name: string, notes: Note[] }} Part */
/** @typedef {{ start: number, steps: number, signature: Signature, tempo: number }} Bar */
/** @typedef {{ unit: number, bars: Bar[], notes: Sounding[] }} Barred */

/** What is in a file: notes in ticks, by track and channel from 1, time signatures, tempos,
   names. @type {(bytes: Uint8Array<ArrayBuffer>) => Midi} */
export function readMidi(bytes) {
  try {
    return readChunks(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  } catch (error) {
    if (error instanceof RangeError)
      throw new Refusal("It is damaged: it ends in the middle of its data.");
    throw error;
  }
}

/** @type {(view: DataView<ArrayBuffer>) => Midi} */
function readChunks(view) {
  const word = (/** @type {number} */ at) =>
    String.fromCharCode(...[0, 1, 2, 3].map((k) => view.getUint8(at + k)));
  if (view.byteLength < 14 || word(0) !== "MThd")
    throw new Refusal(
      view.byteLength
        ? "It is no MIDI file, whatever its name says: it does not begin with MThd."
        : "It is empty.",
    );
  const ticks = view.getUint16(12);
  if (ticks === 0 || ticks >= 0x8000)
    throw new Refusal("Its time is in seconds (SMPTE), not in quarter notes.");
  const found = {
    ticks,
    notes: [],
    signatures: [],
    tempos: [],
    names: new Map(),
    programs: new Map(),
    length: 0,
  };
  let at = 8 + view.getUint32(4);
  for (let track = 1; track <= view.getUint16(10); track++) {
    const end = at + 8 + view.getUint32(at + 4);
    if (word(at) !== "MTrk")
      throw new Refusal(`It is damaged: track ${track} does not begin where it should.`);
    if (end > view.byteLength)
      throw new Refusal(`It is damaged: it ends in the middle of track ${track}.`);
    readTrack(new DataView(view.buffer, view.byteOffset + at + 8, end - at - 8), track, found);
    at = end;
  }
  for (const changes of [found.signatures, found.tempos]) changes.sort((a, b) => a[0] - b[0]);
  return found;
}

/** @type {(view: DataView<ArrayBuffer>, track: number, found: Midi) => void} */
function readTrack(view, track, found) {
  let at = 0,
    now = 0,
    status = 0;
  const sounding = new Map();
  const number = () => {
    // of seven bits a byte, four bytes at most
    for (let value = 0, k = 0; k < 4; k++) {
      const byte = view.getUint8(at++);
      value = value * 128 + (byte & 127);
      if (byte < 128) return value;
    }
    throw new Refusal(`It is damaged: a length in track ${track} is none.`);
  };
  /** @type {Map<number, Note[]>} */
  const pedaled = new Map(); // by channel whose pedal is down
  /** @type {(channel: number, pitch: number, end: number) => void} */
  const stop = (channel, pitch, end) => {
    const start = sounding.get(channel * 128 + pitch)?.shift();
    if (start !== undefined)
      (pedaled.get(channel) ?? found.notes).push({ start, end, pitch, channel, track });
  };
  /** @type {(channel: number) => void} */
  const liftPedal = (channel) => {
    for (const note of pedaled.get(channel) ?? [])
      found.notes.push({ ...note, rings: 2 * (now - note.end) >= found.ticks });
    pedaled.delete(channel);
  };
  while (at < view.byteLength) {
    now += number();
    if (view.getUint8(at) >= 0x80) status = view.getUint8(at++);
    const kind = status >> 4,
      channel = (status & 15) + 1;
    if (status === 0xff) {
      const type = view.getUint8(at++),
        size = number(),
        begin = at;
      const inside = Array.from({ length: size }, () => view.getUint8(at++));
      if (type === 0x2f) break;
      if (type === 0x03 && !found.names.has(track))
        found.names.set(track, decodeName(view, begin, size));
      if (type === 0x51 && size === 3)
        found.tempos.push([
          now,
          Math.min(
            Math.max(
              Math.round(60e6 / Math.max(1, inside[0] * 65536 + inside[1] * 256 + inside[2])),
              1,
            ),
            1000,
          ),
        ]);
      if (type === 0x58 && inside[0] && inside[1] <= 5)
        found.signatures.push([now, [inside[0], 2 ** inside[1]]]);
    } else if (kind === 15) {
      at += number();
      if (at > view.byteLength) throw new RangeError("a message is cut");
    } else if (kind >= 8) {
      const first = view.getUint8(at++) & 127,
        second = kind === 12 || kind === 13 ? 0 : view.getUint8(at++) & 127;
      if (kind === 12 && !found.programs.has(`${track} ${channel}`))
        found.programs.set(`${track} ${channel}`, first);
      if (kind === 9 && second) {
        const key = channel * 128 + first;
        if (!sounding.has(key)) sounding.set(key, []);
        sounding.get(key).push(now);
        if (found.notes.length > MIDI.maxNotes)
          throw new Refusal(`It has more than ${MIDI.maxNotes.toLocaleString("en")} notes.`);
      } else if (kind === 8 || kind === 9) stop(channel, first, now);
      else if (kind === 11 && first === MIDI.sustainPedal) {
        if (second < 64) liftPedal(channel);
        else if (!pedaled.has(channel)) pedaled.set(channel, []);
      }
    } else
      throw new Refusal(
        `It is damaged: in track ${track} there is no message where one should begin.`,
      );
  }
  for (const [key, starts] of sounding)
    while (starts.length) stop(Math.floor(key / 128), key % 128, now);
  for (const channel of [...pedaled.keys()]) liftPedal(channel);
  found.length = Math.max(found.length, now);
}

/** @type {(view: DataView<ArrayBuffer>, at: number, size: number) => string} */
function decodeName(view, at, size) {
  const bytes = new Uint8Array(view.buffer, view.byteOffset + at, size);
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    text = new TextDecoder("windows-1252").decode(bytes);
  }
  return text
    .replace(/[\s\0]+/g, " ")
    .trim()
    .slice(0, 100);
}

/** What can be fingered: each track's instruments, and all of it; which of them is likely meant
   stands first. @type {(midi: Midi) => Part[]} */
export function partsOf({ notes, names, programs }) {
  const played = notes.filter(({ channel }) => channel !== MIDI.drumChannel),
    parts = new Map();
  for (const note of played) {
    const program = programs.get(`${note.track} ${note.channel}`) ?? 0,
      key = `${note.track} ${program}`;
    if (!parts.has(key))
      parts.set(key, { track: note.track, family: FAMILIES.split(",")[program >> 3], notes: [] });
    parts.get(key).notes.push(note);
  }
  const list = [...parts.values()].sort((a, b) => a.track - b.track);
  list.forEach((part, k) => {
    part.name =
      `${names.get(part.track) || `part ${k + 1}`} (${part.family}): ${part.notes.length} ` +
      `notes`;
  });
  if (list.length < 2) return list;
  const all = { name: `all together: ${played.length} notes`, notes: played },
    guitars = list.filter(({ family }) => family === "guitar");
  const most = list.reduce((best, part) => (part.notes.length > best.notes.length ? part : best));
  // two hands, or melody and bass
  const first = list.length === 2 && guitars.length !== 1 ? all : (guitars[0] ?? most);
  return [first, ...[...list, all].filter((part) => part !== first)];
}

/** Notes whose first ones begin within 30 ms begin together, as a strummed chord's do.
   @type {(notes: Note[], midi: Midi) => Note[]} */
function gatherStrums(notes, { tempos, ticks }) {
  let next = 0,
    first = -1,
    tempo = 120;
  return [...notes]
    .sort((a, b) => a.start - b.start || a.end - b.end)
    .map((note) => {
      while (next < tempos.length && tempos[next][0] <= note.start) tempo = tempos[next++][1];
      if (first < 0 || note.start - first > ((MIDI.strumSeconds * tempo) / 60) * ticks)
        first = note.start;
      return { ...note, start: first };
    });
}

/** The coarsest grid near which most of a performance begins, and on which no two moments become
   one. @type {(notes: Note[], midi: Midi) => number} */
function guessGrid(notes, { ticks, tempos }) {
  const starts = [...new Set(notes.map(({ start }) => start))],
    seconds = 60 / ((tempos[0]?.[1] ?? 120) * ticks);
  return (
    PERFORMANCE_UNITS.find((unit) => {
      const places = starts.map((start) => Math.round((start * unit) / ticks));
      const near = starts.filter(
        (start, k) => Math.abs(start - (places[k] * ticks) / unit) * seconds < NEAR_SECONDS,
      );
      return new Set(places).size === starts.length && near.length >= NEAR_SHARE * starts.length;
    }) ?? MIDI.performanceUnit
  );
}

const ODD_PARTS = TUPLETS.map(([notes]) => notes);

/** Whether the moments of each beat lie on a grid that a beat of notation can have.
   @type {(moments: number[], ticks: number) => boolean} */
function isNotated(moments, ticks) {
  const sizes = new Map();
  for (const moment of moments) {
    const beat = Math.floor(moment / ticks);
    sizes.set(beat, gcd(sizes.get(beat) ?? ticks, moment));
  }
  return [...sizes.values()].every((size) => {
    const grid = ticks / size;
    return grid <= MIDI.maxExactUnit && ODD_PARTS.includes(grid / (grid & -grid));
  });
}

/** Let notes end where another begins or a beat does, the nearest of these.
   @type {(notes: Note[], ticks: number) => Note[]} */
function endAtStarts(notes, ticks) {
  const starts = [...new Set(notes.map(({ start }) => start))].sort((a, b) => a - b);
  return notes.map((note) => {
    const beat = note.end - (note.end % ticks);
    let after = starts.findIndex((start) => start >= note.end);
    if (after < 0) after = starts.length;
    const near = [beat, beat + ticks, ...starts.slice(Math.max(0, after - 1), after + 1)]
      .filter((place) => place > note.start)
      .sort((a, b) => Math.abs(a - note.end) - Math.abs(b - note.end));
    return { ...note, end: near[0] };
  });
}

/** Bars of steps, and notes in steps from the beginning: on the coarsest grid that holds them, or
   the one that fits a performance; or on the one that is asked for, in steps to a quarter note.
   @type {(midi: Midi, chosen: Note[], asked?: number) => Barred} */
export function intoBars(midi, chosen, asked = 0) {
  const { ticks } = midi,
    strummed = gatherStrums(chosen, midi);
  const unitOf = (/** @type {number[]} */ moments) => ticks / moments.reduce(gcd, ticks),
    startsOf = (/** @type {Sounding[]} */ own) => own.map(({ start }) => start);
  const inQuarters = midi.signatures.every(([, [, kind]]) => kind <= 4);
  const notated = [chosen, strummed].find(
    (own) =>
      unitOf(startsOf(own)) <= (inQuarters ? MIDI.maxMixedUnit : MIDI.maxExactUnit) &&
      isNotated(startsOf(own), ticks),
  );
  /** @type {Sounding[]} */
  let notes = notated ?? strummed;
  let grid = guessGrid(strummed, midi),
    isExact = false;
  if (notated) {
    const coarse = unitOf(startsOf(notes)),
      isMixed = coarse > MIDI.maxExactUnit,
      moments = notes.flatMap(({ start, end }) => [start, end]);
    if (isMixed && !isNotated(moments, ticks)) notes = endAtStarts(notated, ticks);
    const fine = unitOf(notes.flatMap(({ start, end }) => [start, end]));
    isExact = fine === coarse || fine <= (isMixed ? MIDI.maxMixedUnit : MAX_UNIT_OF_ENDS);
    grid = isExact ? fine : coarse;
  }
  isExact &&= !asked || asked === grid;
  grid = asked || grid;
  let unit = grid; // so fine that every bar is so many steps
  while (midi.signatures.some(([, [, kind]]) => (4 * unit) % kind)) unit *= 2;
  const stepOf = (/** @type {number} */ tick) =>
    Math.floor((2 * tick * grid + ticks) / (2 * ticks)) * (unit / grid);
  const kept = new Map();
  for (const { start, end, pitch, rings } of notes) {
    const from = stepOf(start),
      to = Math.max(from + unit / grid, stepOf(end)),
      key = from * 128 + pitch;
    kept.set(key, { pitch, rings, start: from, end: Math.max(to, kept.get(key)?.end ?? 0) });
  }
  notes = [...kept.values()].sort((a, b) => a.start - b.start || a.pitch - b.pitch);
  if (!isExact) holdUntilNext(notes, unit);
  const last = Math.max(stepOf(midi.length), notes[notes.length - 1].start + unit / grid);
  const changes = midi.signatures.map(([tick, value]) => ({ step: stepOf(tick), value })),
    tempos = midi.tempos.map(([tick, value]) => ({ step: stepOf(tick), value }));
  /** @type {Bar[]} */
  const bars = [];
  /** @type {Signature} */
  let signature = [4, 4];
  for (let start = 0, tempo = 120, meter = 0, speed = 0; start < last; ) {
    while (changes[meter]?.step <= start) signature = changes[meter++].value;
    while (tempos[speed]?.step <= start) tempo = tempos[speed++].value;
    const usual = (4 * unit * signature[0]) / signature[1],
      early = (changes[meter]?.step ?? Infinity) - start;
    const steps = early < usual && signatureOf(early, unit) ? early : usual;
    const [beats, kind] = signatureOf(steps, unit, signature) ?? signature;
    if (beats > MAX_BEATS)
      throw new Refusal(
        `Bar ${bars.length + 1} has ${beats}/${kind}, ` +
          `and this page draws up to ${MAX_BEATS} beats.`,
      );
    bars.push({ start, steps, signature, tempo });
    start += steps;
    if (bars.length > MAX_BARS)
      throw new Refusal(`It has more than ${MAX_BARS.toLocaleString("en")} bars.`);
  }
  return { unit, bars, notes };
}

/** Notes as people play them: one that ends within half a beat of the next beginning ends there.
   @type {(notes: Sounding[], unit: number) => void} */
function holdUntilNext(notes, unit) {
  const starts = new Set(notes.map(({ start }) => start));
  for (const note of notes) {
    for (let away = 0; away <= unit / 2; away++) {
      const near = [note.end - away, note.end + away].find(
        (step) => step > note.start && starts.has(step),
      );
      if (near === undefined) continue;
      note.end = near;
      break;
    }
  }
}

/** The notes of a voice in alphaTex: pitches, without strings.
   @type {(notes: Sounding[], bars: Bar[], unit: number, withHeader: boolean) => string} */
function writeVoice(notes, bars, unit, withHeader) {
  /** @type {Sounding[]} */
  let sounding = [];
  let next = 0,
    before = "",
    tempo = 0;
  return bars
    .map(({ start, steps, ...bar }) => {
      const inside = [];
      while (next < notes.length && notes[next].start < start + steps) inside.push(notes[next++]);
      sounding = [...sounding.filter(({ end }) => end > start), ...inside];
      const cuts = sounding
        .flatMap((note) => [note.start - start, note.end - start])
        .filter((cut) => cut > 0 && cut < steps);
      const signature = (signatureOf(steps, unit, bar.signature) ?? bar.signature).join(" ");
      const head = withHeader
        ? (signature === before ? "" : `\\ts (${signature}) `) +
          (bar.tempo === tempo ? "" : `\\tempo ${bar.tempo} `)
        : "";
      [before, tempo] = [signature, bar.tempo];
      return (
        head +
        stretches(cuts, steps, unit)
          .flatMap(({ from, values }) => {
            let now = start + from;
            const own = sounding.filter((note) => note.start <= now && note.end > now);
            return values.map(({ size, text }) => {
              const written = own
                .map((note) => {
                  const marks = [note.start < now ? "t" : "", note.rings ? "lr" : ""].filter(
                    Boolean,
                  );
                  return pitchName(note.pitch) + (marks.length ? `{${marks.join(" ")}}` : "");
                })
                .join(" ");
              now += size;
              return `${written ? `(${written})` : "r"}${text}`;
            });
          })
          .join(" ")
      );
    })
    .join(" |\n");
}
/** @type {(pitch: number) => string} */
const pitchName = (pitch) => `${SHARPS[pitch % 12].toLowerCase()}${Math.floor(pitch / 12) - 1}`;

/** Put the note that a bar begins with into the second voice if it is as low as others there.
   @type {(voices: [Sounding[], Sounding[]], bars: Bar[]) => void} */
export function moveFirstBasses(voices, bars) {
  const [first, second] = voices,
    lowestAt = new Map([...first].reverse().map((note) => [note.start, note])),
    moved = new Set();
  let k = 0;
  for (const { start, steps } of bars) {
    while (second[k]?.start < start) k++;
    let highest = -1;
    for (let i = k; second[i]?.start < start + steps; i++)
      highest = Math.max(highest, second[i].pitch);
    const lowest = lowestAt.get(start);
    if (!lowest || lowest.pitch > highest) continue;
    if (second[k].start < lowest.end || second[k - 1]?.end > start) continue;
    moved.add(lowest);
  }
  voices[0] = first.filter((note) => !moved.has(note));
  voices[1] = [...second, ...moved].sort((a, b) => a.start - b.start);
}

/** Music in alphaTex, as pitches in two voices: a note held while higher ones begin is in the
   second. @type {(music: Barred, title: string) => string} */
export function pitchesAsTex({ unit, bars, notes }, title) {
  /** @type {[Sounding[], Sounding[]]} */
  const voices = [[], []];
  const end = bars[bars.length - 1].start + bars[bars.length - 1].steps,
    sounding = new Map();
  for (const note of notes) {
    // what sounds twice ends where it begins again
    const earlier = sounding.get(note.pitch);
    if (earlier && earlier.end > note.start) earlier.end = note.start;
    sounding.set(note.pitch, note);
    note.end = Math.min(note.end, end);
  }
  let busy = 0;
  notes.forEach((note, k) => {
    let held = note.start >= busy,
      over = 0;
    for (let i = k + 1; held && i < notes.length && notes[i].start < note.end; i++) {
      if (notes[i].start > note.start) [held, over] = [notes[i].pitch > note.pitch, over + 1];
    }
    if (held && over) busy = note.end;
    voices[held && over ? 1 : 0].push(note);
  });
  moveFirstBasses(voices, bars);
  const quoted = JSON.stringify(title.replace(/["\\]/g, "'"));
  const head =
    `\\title ${quoted}\n\\track "Guitar"\n\\staff {score tabs}\n\\tuning piano\n\\instrument ` +
    `25\n`;
  const written = voices
    .filter((voice) => voice.length)
    .map((voice, k) => `\\voice\n${writeVoice(voice, bars, unit, k === 0)}`);
  const music = written.length > 1 ? written.join("\n") : written[0].slice("\\voice\n".length);
  return `${head}${music}\n`;
}
