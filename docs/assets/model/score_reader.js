/* The worker that reads Guitar Pro and MusicXML for the page "Finger a piece": a file that makes
   alphaTab work forever stops a worker that can be ended, not the page. */

/* A number beyond these is no music, and alphaTab would make as many staves or voices of it. */
const LIMITS = {
  duration: 1e6,
  divisions: 1e5,
  beats: 32,
  "beat-type": 64,
  staves: 8,
  staff: 8,
  "staff-lines": 20,
  voice: 64,
  octave: 12,
  "multiple-rest": 1000,
  "measure-repeat": 1000,
  "actual-notes": 64,
  "normal-notes": 64,
  "per-minute": 1000,
};
const MOST_REPEATS = 100,
  MOST_BARS = 3000,
  MOST_BEATS = 100_000;

/** Why a MusicXML file cannot be taken for music; "" if it can.
   @type {(text: string) => string} */
function findExcess(text) {
  for (const [, tag, number] of text.matchAll(/<([\w-]+)\b[^<>]*>\s*([-+.\de]+)\s*</gi)) {
    const most = Object.hasOwn(LIMITS, tag) ? LIMITS[tag] : Infinity;
    if (Math.abs(Number(number)) > most)
      return `It says ${tag} = ${number}, and this page reads up to ${most.toLocaleString("en")}`;
    if (tag === "divisions" && !(Number(number) > 0))
      return "It divides a quarter note into 0 parts";
  }
  for (const [, times] of text.matchAll(/<repeat\b[^<>]*\btimes\s*=\s*["']\s*(\d+)/g))
    if (Number(times) > MOST_REPEATS)
      return `It repeats bars ${times} times, and this page reads up to ${MOST_REPEATS}`;
  return "";
}

/** Why a score is too large to be drawn; "" if it isn't. */
function findExcessOf(score) {
  if (score.masterBars.length > MOST_BARS)
    return `It has more than ${MOST_BARS.toLocaleString("en")} bars`;
  let beats = 0;
  for (const track of score.tracks)
    for (const staff of track.staves)
      for (const bar of staff.bars) for (const voice of bar.voices) beats += voice.beats.length;
  if (beats > MOST_BEATS) return `It has more than ${MOST_BEATS.toLocaleString("en")} beats`;
  const repeated = score.masterBars.find((bar) => bar.repeatCount > MOST_REPEATS);
  if (repeated) return `It repeats bars ${repeated.repeatCount} times`;
  const long = score.masterBars.find((bar) => bar.timeSignatureNumerator > 32);
  if (long)
    return `It has a bar of ${long.timeSignatureNumerator}/${long.timeSignatureDenominator}`;
  return "";
}

/** alphaTab takes a fingering 1 of MusicXML for a pianist's thumb; a guitarist's is the index. */
function renumberFingers(score) {
  const { Thumb, LittleFinger, Unknown } = alphaTab.model.Fingers;
  for (const track of score.tracks)
    for (const staff of track.staves)
      for (const bar of staff.bars)
        for (const { notes } of bar.voices.flatMap((voice) => voice.beats))
          for (const note of notes)
            if (note.leftHandFinger >= Thumb)
              note.leftHandFinger =
                note.leftHandFinger < LittleFinger ? note.leftHandFinger + 1 : Unknown;
}

addEventListener("message", ({ data: { bytes, kind, alphaTabAt } }) => {
  if (!alphaTabAt) return; // alphaTab's own messages
  try {
    if (kind === "xml" && bytes[0] !== 0x50) {
      const why = findExcess(new TextDecoder().decode(bytes)); // else it is packed: PK
      if (why) return postMessage({ refused: `${why}.` });
    }
    importScripts(alphaTabAt);
    alphaTab.Logger.logLevel = alphaTab.LogLevel.None;
    const settings = new alphaTab.Settings();
    const score = alphaTab.importer.ScoreLoader.loadScoreFromBytes(bytes, settings);
    const why = findExcessOf(score);
    if (why) return postMessage({ refused: `${why}.` });
    if (kind === "xml") renumberFingers(score);
    postMessage({ score: alphaTab.model.JsonConverter.scoreToJsObject(score) });
  } catch {
    postMessage({ refused: "" });
  }
});
