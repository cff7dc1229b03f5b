"""What the tab model of the page "Write with it" writes, beside what people wrote.

    python benchmarks/written_tabs.py runs/mutopia
    python benchmarks/written_tabs.py runs/mutopia --model OTHER-FOLDER --top-p 1
    python benchmarks/written_tabs.py runs/mutopia --piece piece.atex
    python benchmarks/written_tabs.py runs/mutopia --form --pieces 60 --tokens 1000

The folder is that of `mutopia_tabs.py`. The model (config.json, model.safetensors) is read in the
precision in which it is kept. Printed as JSON: bits a note of whole held-out pieces, and of the
held-out practice pieces; of pieces of at most so many tokens, seeds from 0: what
`slp-transformer evaluate` has of written pieces, people's held-out and training pieces beside them;
how many bars fill their time signature, how many chords no hand takes, and how many writes in each
format are refused. With `--form`, only bits a note and the form of the pieces: which bars return,
and how pieces end (`describe_form`), with people's pieces in their own keys and 95% intervals of a
bootstrap over pieces. With `--piece` one is kept for the site: of those with forty moments or more,
a fifth of them chords, the first with the smallest share of chords with a semitone.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from page_model import FOLDERS, load_rounded

from slp_guitar import Tab, TabTokenizer
from slp_guitar.bar_lengths import list_bar_steps
from slp_guitar.corpus_statistics import CopyDetector, compute_corpus_statistics
from slp_guitar.formats.registry import write_tab
from slp_guitar.fretboard import is_playable_grip
from slp_guitar.tab_dataset import prepare_tab_dataset, read_tab_source
from slp_guitar.tab_evaluation import compute_bits_per_note
from slp_guitar.tab_session import TabSession
from slp_guitar.tab_task import GenerateTabs, TabTask
from slp_guitar.theory import ends_on_tonic, estimate_key, parse_pitch_class
from slp_transformer.tasks.generation_session import BATCH_SIZE, GeneratedText, continue_prompts

TITLE, TEMPO_BPM = "A small piece by a model", 90
FORMATS = "gp5", "musicxml", "mid", "atex"
BEGINNING = 4  # bars
RESAMPLES = 2000


def count_faults(tab: Tab) -> Counter[str]:
    """Count the bars and chords of a piece, and those that do not fill it or suit no hand."""
    found: Counter[str] = Counter()
    signature = None
    for bar in tab.bars:
        signature = bar.time_signature or signature
        fitting = list_bar_steps(signature, tab.steps_per_quarter) if signature else ()
        found["bars"] += 1
        found["bars of another length"] += bool(fitting) and bar.steps not in fitting
        for event in bar.events:
            if len(event.notes) > 1:
                found["chords"] += 1
                playable = is_playable_grip(event.notes, tuning=tab.tuning)
                found["chords that no hand takes"] += not playable
    return found


def count_refused(session: TabSession, texts: list[GeneratedText]) -> dict[str, int]:
    """Count the pieces that each format refuses."""
    refused: Counter[str] = Counter()
    with TemporaryDirectory() as folder:
        for text in texts:
            for suffix in FORMATS:
                try:
                    session.write(Path(folder, f"piece.{suffix}"), text.ids)
                except ValueError:
                    refused[suffix] += 1
    return {suffix: refused[suffix] for suffix in FORMATS}


def describe_form(tab: Tab) -> dict[str, float]:
    """Return what a piece with more than four bars of notes returns to, and how it ends.

    A bar of the first four *returns* if a bar after them equals it: in all (its length, notes and
    steps), transposed (all of its pitches by one interval), or in its rhythm alone. The tonic is
    that of the key that all notes suggest. The bass is the lowest note of each half bar: *dominant
    before tonic* means that a piece ends on the tonic, and the last bass note that is not the tonic
    is its dominant. A last moment is *held* if its bar goes on for twice as long as moments mostly
    are apart, since tokens have no lengths of notes.
    """
    tuning, key = tab.tuning, estimate_key(tab)
    exact, moved, rhythm, bass = [], [], [], []
    times = [0]
    for bar in tab.bars:
        moments = [(event.step, event.sounding_notes()) for event in bar.events]
        moments = [(step, notes) for step, notes in moments if notes]
        if not moments:
            continue
        pitches = [(step, sorted(map(tuning.pitch_of, notes))) for step, notes in moments]
        first = pitches[0][1][0]
        exact.append((bar.steps, *moments))
        moved.append(str((bar.steps, [(step, [p - first for p in ps]) for step, ps in pitches])))
        rhythm.append((bar.steps, *(step for step, _ in moments)))
        for half in (0, 1):
            lowest = [ps[0] for step, ps in pitches if (2 * step >= bar.steps) == bool(half)]
            bass += [min(lowest) % 12] if lowest else []
        times += [(len(exact) - 1) * bar.steps + step for step, _ in moments]
        left = bar.steps - moments[-1][0]
    if len(exact) <= BEGINNING or key is None:
        return {}
    tonic = parse_pitch_class(key.removesuffix("m"))
    others = [pitch for pitch in bass if pitch != tonic]
    on_tonic = ends_on_tonic(tab, key)
    return {
        "bars": len(exact),
        "distinct bars": len(set(exact)) / len(exact),
        "distinct rhythms": len(set(rhythm)) / len(exact),
        **{
            f"a first bar returns{how}": not set(bars[:BEGINNING]).isdisjoint(bars[BEGINNING:])
            for how, bars in (("", exact), (", transposed", moved), (" in its rhythm", rhythm))
        },
        "ends on the tonic": on_tonic,
        "ends in the bass it began with": bass[-1] == bass[0],
        "dominant before tonic": on_tonic and others[-1:] == [(tonic + 7) % 12],
        "last moment is held": left >= 2 * median(b - a for a, b in pairwise(times) if b > a),
    }


def is_own_key(tab: Tab) -> bool:
    """Return whether a piece has been read in the key that it was written in."""
    return tab.source.endswith("+0.atex")


def compute_form(tabs: Sequence[Tab]) -> dict[str, Any]:
    """Return the means over pieces of what `describe_form` has, and their 95% intervals."""
    forms = [form for tab in tabs if (form := describe_form(tab))]
    draw = random.Random(0)
    found: dict[str, Any] = {"pieces": len(forms)}
    for name in forms[0] if forms else ():
        values = [float(form[name]) for form in forms]
        means = sorted(fmean(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
        low, high = means[RESAMPLES // 40], means[-RESAMPLES // 40 - 1]
        found[name] = [round(value, 3) for value in (fmean(values), low, high)]
    return found


def choose_piece(statistics: list[dict[str, Any]]) -> int:
    """Return the seed of the piece that the site lets people hear, by the rule above."""
    return min(
        (
            seed
            for seed, own in enumerate(statistics)
            if own["length"] >= 40 and own["chords"] >= 0.2
        ),
        key=lambda seed: statistics[seed]["clashes"],
    )


def main() -> None:
    """Measure a model, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="the folder that mutopia_tabs.py wrote")
    parser.add_argument("--model", type=Path, default=FOLDERS["tab"])
    parser.add_argument("--pieces", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=280, help="most tokens of a piece [280]")
    parser.add_argument("--top-p", type=float, default=0.95, help="as the page begins")
    parser.add_argument("--temperature", type=float, default=0.8, help="as it begins")
    parser.add_argument("--min-p", type=float, default=None)
    parser.add_argument("--seed", type=int, default=0, help="of the first piece [0]")
    parser.add_argument("--ending", choices=("any", "tonic"), default="any", help="as `generate`")
    parser.add_argument("--form", action="store_true", help="measure only the form of pieces")
    parser.add_argument("--piece", type=Path, metavar="FILE", help="keep a piece for the site")
    arguments = parser.parse_args()
    model, tokenizer = load_rounded(arguments.model), TabTokenizer()
    people = {part: read_tab_source(arguments.data / part)[0] for part in ("valid", "train")}
    held_out = {"mutopia": people["valid"], "practice": prepare_tab_dataset().val_tabs}
    run: Any = SimpleNamespace(model=model, tokenizer=tokenizer)
    session: Any = TabTask().session(run, GenerateTabs(ending=arguments.ending))
    bits = {
        name: compute_bits_per_note(run, list(map(tokenizer.encode, tabs)), [])["model"]
        for name, tabs in held_out.items()
    }
    names = ("temperature", "top_p", "min_p")
    how = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    texts: list[GeneratedText] = []
    while (left := arguments.pieces - len(texts)) > 0:
        begins = [session.begin(None)] * min(left, BATCH_SIZE)
        seed = arguments.seed + len(texts)
        texts += continue_prompts(model, session, begins, arguments.tokens, seed, **how)
    tabs = [tokenizer.decode(text.ids).tab for text in texts]
    copies = CopyDetector(people["train"])
    ended = [text.finish_reason == "stop" for text in texts]
    table = {"model": compute_corpus_statistics(tabs, copies, ended)}
    if arguments.form:
        groups = {part: [tab for tab in own if is_own_key(tab)] for part, own in people.items()}
        groups |= {
            "model": tabs,
            "model, ended": [t for t, e in zip(tabs, ended, strict=True) if e],
        }
        form = {name: compute_form(own) for name, own in groups.items()}
        print(
            json.dumps(
                {"bits_per_note": bits, "form": form, "statistics": table["model"]}, indent=1
            )
        )
        return
    table |= {part: compute_corpus_statistics(own) for part, own in people.items()}
    faults = sum(map(count_faults, tabs), Counter[str]())
    refused = count_refused(session, texts)
    result = {"bits_per_note": bits, "faults": faults, "refused": refused, "statistics": table}
    if arguments.piece:
        own = [compute_corpus_statistics([tab]) for tab in tabs]
        result["piece"] = choose_piece(own)
        tab = tabs[result["piece"]]
        bars = (replace(tab.bars[0], tempo_bpm=TEMPO_BPM), *tab.bars[1:])  # tokens have no tempo
        write_tab(replace(tab, title=TITLE, bars=bars), arguments.piece)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
