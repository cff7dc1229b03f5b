"""What the tab model of the page "Write with it" writes, beside what people wrote.

    python benchmarks/written_tabs.py runs/mutopia
    python benchmarks/written_tabs.py runs/mutopia --model OTHER-FOLDER --top-p 1
    python benchmarks/written_tabs.py runs/mutopia --piece piece.atex

The folder is that of `mutopia_tabs.py`. The model (config.json, model.safetensors) is read in the
precision in which it is kept. Printed as JSON: bits a note of whole held-out pieces, and of the
held-out practice pieces; of pieces of at most so many tokens, seeds from 0: what
`slp-transformer evaluate` has of written pieces, people's held-out and training pieces beside them;
how many bars fill their time signature, how many chords no hand takes, and how many writes in each
format are refused. With `--piece` one is kept for the site: of those with forty moments or more, a
fifth of them chords, the first with the smallest share of chords with a semitone.
"""

import argparse
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from page_model import FOLDERS, load_rounded

from slp_guitar import Tab, TabTokenizer
from slp_guitar.bar_lengths import list_bar_steps
from slp_guitar.corpus_statistics import CopyDetector, compute_corpus_statistics
from slp_guitar.formats.registry import write_tab
from slp_guitar.fretboard import TUNINGS, is_playable_grip
from slp_guitar.tab_dataset import prepare_tab_dataset, read_tab_source
from slp_guitar.tab_evaluation import compute_bits_per_note
from slp_guitar.tab_session import TabSession
from slp_transformer.tasks.generation_session import GeneratedText, continue_prompts

TITLE, TEMPO_BPM = "A small piece by a model", 90
FORMATS = "gp5", "musicxml", "mid", "atex"


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
    parser.add_argument("--piece", type=Path, metavar="FILE", help="keep a piece for the site")
    arguments = parser.parse_args()
    model, tokenizer = load_rounded(arguments.model), TabTokenizer()
    session = TabSession(tokenizer, TUNINGS["standard"])
    people = {part: read_tab_source(arguments.data / part)[0] for part in ("valid", "train")}
    held_out = {"mutopia": people["valid"], "practice": prepare_tab_dataset().val_tabs}
    run: Any = SimpleNamespace(model=model, tokenizer=tokenizer)
    bits = {
        name: compute_bits_per_note(run, list(map(tokenizer.encode, tabs)), [])["model"]
        for name, tabs in held_out.items()
    }
    texts = []
    for seed in range(arguments.pieces):
        how = {"temperature": arguments.temperature, "top_p": arguments.top_p, "seed": seed}
        texts += continue_prompts(model, session, [session.begin(None)], arguments.tokens, **how)
    tabs = [tokenizer.decode(text.ids).tab for text in texts]
    copies = CopyDetector(people["train"])
    ended = [text.finish_reason == "stop" for text in texts]
    table = {"model": compute_corpus_statistics(tabs, copies, ended)}
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
