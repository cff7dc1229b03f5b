"""What each command takes; nothing here needs PyTorch, so help and typos are answered at once."""

import argparse
from pathlib import Path

from slp_transformer.cli.flags import add_setting, add_settings
from slp_transformer.guitar.fretboard import TUNINGS
from slp_transformer.guitar.keys import KEYS
from slp_transformer.guitar.token_names import METRES
from slp_transformer.tasks import BUILT_IN
from slp_transformer.tasks.setting_fields import Setting, make_setting, read_signature

# --- train ---------------------------------------------------------------------------------------

TRAIN_USAGE = "slp-transformer train [SOURCE] --run FOLDER [--recipe RECIPE] [--guitar] [settings]"
TRAIN_EXAMPLES = """examples:
  slp-transformer train my-texts --run runs/mine
  slp-transformer train novel.txt --run runs/novel --tokenizer bpe --steps 5000
  cat *.txt | slp-transformer train - --run runs/mine
  slp-transformer train my-tabs --guitar --run runs/tabs
  slp-transformer train --translation train.en --target train.de --run runs/en-de
  slp-transformer train --translation pairs.csv --run runs/pairs
  slp-transformer train --run runs/mine --resume
  slp-transformer train --run runs/mine --resume --steps 9000     a finished run goes further
  slp-transformer train other-texts --from runs/mine --run runs/other
  slp-transformer train other-texts --from runs/mine --lora 4 --run runs/other

Ctrl-C stops after the current step and keeps everything: --resume goes on from there, with the
same result as if nothing had happened. The run's folder holds recipe.toml, which repeats it."""


def add_train(parser: argparse.ArgumentParser) -> None:
    """Say what `train` takes."""
    parser.usage, parser.epilog = TRAIN_USAGE, TRAIN_EXAMPLES
    parser.add_argument(
        "source",
        nargs="?",
        metavar="SOURCE",
        help="what to learn from: a file, a folder, - for standard input, or the name of a corpus "
        "(`slp-transformer info` lists them); with --guitar a folder of ASCII tabs, or nothing "
        "for a practice corpus; with --translation a table of pairs (.csv, .tsv), a file that "
        "--target translates line by line, or nothing for numbers and dates",
    )
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="where the run is kept")
    parser.add_argument(
        "--recipe",
        metavar="RECIPE",
        help=f"{', '.join(BUILT_IN)}, or a TOML file; flags win",
    )
    parser.add_argument(
        "--guitar",
        action="store_const",
        const="guitar",
        dest="data.kind",
        default=argparse.SUPPRESS,
        help="learn guitar tablature rather than text",
    )
    parser.add_argument(
        "--translation",
        action="store_const",
        const="translation",
        dest="data.kind",
        default=argparse.SUPPRESS,
        help="learn to translate pairs of sentences",
    )
    parser.add_argument("--resume", action="store_true", help="go on with the run in the folder")
    parser.add_argument(
        "--show-recipe", action="store_true", help="print all settings as a recipe, and stop"
    )
    parser.add_argument("--tensorboard", action="store_true", help="keep curves for TensorBoard")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    add_settings(parser)


# --- What commands share -------------------------------------------------------------------------


def add_run(parser: argparse.ArgumentParser) -> None:
    """Say which run a command takes, and where it is to compute."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder that train kept it in")
    parser.add_argument(
        "--checkpoint",
        choices=("best", "last", "average"),
        default="best",
        help="by held-out loss; or the average of the last ones that are kept (--keep-last) [best]",
    )
    parser.add_argument(
        "--device", metavar="NAME", help="cuda, mps or cpu; the first of them that is there"
    )


TEMPERATURE = 0.8  # unless another is asked for


def add_writing(parser: argparse._ActionsContainer) -> None:
    """Say how long a text may get, and which one it is."""
    parser.add_argument(
        "--tokens",
        type=int,
        metavar="N",
        help="how many tokens to write, unless the piece ends before [500]",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="another seed, another text [0]")


# --- generate ------------------------------------------------------------------------------------

HOW = "top_k", "top_p", "repetition_penalty", "num_beams", "length_penalty"
"""Arguments of `slp_transformer.generation.generate` that are flags of the same meaning."""

GENERATE_USAGE = "slp-transformer generate RUN [--prompt TEXT] [--tokens N] [--seed N] [more]"
GENERATE_EXAMPLES = """examples:
  slp-transformer generate runs/mine --prompt "It was"
  slp-transformer generate runs/mine --prompt-file beginning.txt --tokens 2000 > story.txt
  echo "It was" | slp-transformer generate runs/mine --prompt-file -
  slp-transformer generate runs/tabs --tuning drop-D --output piece.txt
  slp-transformer generate runs/tabs --continue my_riff.txt --key Am
  slp-transformer generate runs/tabs --output piece.gp5    (or .mid, .musicxml, .atex)

A model sees a window of its last tokens. Where a text is longer than that, the model goes on with
the last half window as its prompt, and forgets what was before."""


def add_generate(parser: argparse.ArgumentParser) -> None:
    """Say what `generate` takes."""
    parser.usage, parser.epilog = GENERATE_USAGE, GENERATE_EXAMPLES
    add_run(parser)
    parser.add_argument(
        "--prompt",
        action="append",
        metavar="TEXT",
        help="what to go on from; may be given several times, and all are written on at once",
    )
    parser.add_argument(
        "--prompt-file",
        "--continue",
        metavar="FILE",
        help="a file to go on from, or - for standard input; for guitar an ASCII tab",
    )
    add_writing(parser)
    parser.add_argument(
        "--num-samples", type=int, default=1, metavar="N", help="of each prompt [1]"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to a file instead")
    parser.add_argument("--json", action="store_true", help="print a list of texts as JSON")
    guitar = parser.add_argument_group("guitar")
    guitar.add_argument("--tuning", choices=tuple(TUNINGS), metavar="NAME",
                        help=f"{', '.join(TUNINGS)} [standard]")  # fmt: skip
    guitar.add_argument("--capo", type=int, metavar="FRET", help="of a capo [0]")
    guitar.add_argument("--key", choices=KEYS, metavar="KEY",
                        help="C, C#, D, Eb ... or Am ... [as the model will]")  # fmt: skip
    metres = tuple(f"{beats}/{kind}" for beats, kind in METRES)
    guitar.add_argument("--metre", choices=metres, metavar="METRE",
                        help="3/4, 4/4, 6/8 ... [as the model will]")  # fmt: skip
    guitar.add_argument("--style", metavar="STYLE",
                        help="one that it learned from [as the model will]")  # fmt: skip
    group = parser.add_argument_group("how a word is chosen")
    for setting in choosing():
        add_setting(group, setting, {"temperature": str(TEMPERATURE)}.get(setting.name))


def choosing() -> list[Setting]:
    """The options of decoding, explained as `generate` explains them."""
    parameters = read_signature("slp_transformer.generation.decoding", "generate")
    return [make_setting("decoding", name, *parameters[name]) for name in ("temperature", *HOW)]


# --- translate ------------------------------------------------------------------------------------

TRANSLATE_USAGE = "slp-transformer translate RUN [SENTENCE ...] [--input FILE] [--n-best N] [more]"
TRANSLATE_EXAMPLES = """examples:
  slp-transformer translate runs/en-de "A man rides a bicycle."
  slp-transformer translate runs/en-de --input captions.en --output captions.de
  cat captions.en | slp-transformer translate runs/en-de > captions.de
  slp-transformer translate runs/en-de "A man rides." --attention heads.html
  slp-transformer translate runs/en-de                     asks for sentences, on a terminal

Each line is a sentence, and an empty line is translated by an empty line."""


def add_beams(parser: argparse._ActionsContainer) -> None:
    """Say how translations are searched for."""
    parser.add_argument(
        "--num-beams",
        type=int,
        metavar="N",
        help="hypotheses of the beam search; 1 takes the most probable word at each step [4]",
    )
    parser.add_argument(
        "--length-penalty",
        type=float,
        metavar="X",
        help="the power of its length that a log probability is divided by [1]",
    )


def add_translate(parser: argparse.ArgumentParser) -> None:
    """Say what `translate` takes."""
    parser.usage, parser.epilog = TRANSLATE_USAGE, TRANSLATE_EXAMPLES
    add_run(parser)
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE", help="what to translate")
    parser.add_argument("--input", type=Path, metavar="FILE", help="a sentence in each line")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to a file instead")
    add_beams(parser)
    parser.add_argument(
        "--n-best", type=int, default=1, metavar="N", help="translations of each sentence [1]"
    )
    parser.add_argument(
        "--scores", action="store_true", help="print each one's log probability a token before it"
    )
    parser.add_argument("--json", action="store_true", help="print each sentence's as JSON")
    parser.add_argument(
        "--attention",
        type=Path,
        metavar="FILE",
        help="draw where every layer and head looked, for one sentence, as .html or .svg",
    )
    for side, way in (("source", "from"), ("target", "into")):
        parser.add_argument(
            f"--{side}-language",
            metavar="NAME",
            help=f"make sure that the run translates {way} it",
        )


# --- evaluate and info ---------------------------------------------------------------------------

EVALUATE_USAGE = "slp-transformer evaluate RUN [SOURCE] [--samples N] [--json]"
EVALUATE_EXAMPLES = """examples:
  slp-transformer evaluate runs/mine                 on what the run held out
  slp-transformer evaluate runs/mine other.txt       on another text
  slp-transformer evaluate runs/mine --samples 3     and three texts that the model writes
  slp-transformer evaluate runs/mine --json
  slp-transformer evaluate runs/en-de test.en --target test.de --checkpoint average

Of a run with --translation: loss, BLEU and chrF with sacrebleu's signatures, and N of the sources
with reference and prediction. Of others, the samples are those of `generate` with its defaults, the
same --tokens and the same --seed. Of guitar tabs: bits a note beside those of n-grams and, with
samples, how much of them one hand can play, and a table of what they are like beside the tabs that
were held out, written with the grammar kept to and without.

A loss in nats per token depends on what a token is. Bits per character and per byte do not: they
compare models with different tokenizers. They are left out where a model of words was measured on
words that it does not know: what <unk> stands for, it need not predict."""


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Say what `evaluate` takes."""
    parser.usage, parser.epilog = EVALUATE_USAGE, EVALUATE_EXAMPLES
    add_run(parser)
    parser.add_argument(
        "source",
        nargs="?",
        metavar="SOURCE",
        help="what to measure on, all of it: a file, a folder, - for standard input, the name of a "
        "corpus; what the run held out, if there is none",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    pairs = parser.add_argument_group("translation")
    pairs.add_argument(
        "--target", metavar="FILE", help="the file whose lines translate those of SOURCE"
    )
    add_beams(pairs)
    group = parser.add_argument_group("samples")
    group.add_argument(
        "--samples", type=int, metavar="N", help="also have the model write N texts, and show them"
    )
    group.add_argument(
        "--temperature",
        type=float,
        metavar="X",
        help=f"below 1 the model keeps to what is likely, above 1 it dares more [{TEMPERATURE}]",
    )
    add_writing(group)


INFO_USAGE = "slp-transformer info [RUN] [--json]"


def add_info(parser: argparse.ArgumentParser) -> None:
    """Say what `info` takes."""
    parser.usage = INFO_USAGE
    parser.add_argument(
        "run", nargs="?", type=Path, metavar="RUN", help="the folder that train kept it in"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


# --- merge ---------------------------------------------------------------------------------------

MERGE_USAGE = "slp-transformer merge RUN --run MERGED [--checkpoint best|last]"
MERGE_ABOUT = """A run of `train --lora` keeps A and B alone, and needs the run that it began with.
Merged, it has all weights of its own, and writes the same. Both runs stay as they are."""


def add_merge(parser: argparse.ArgumentParser) -> None:
    """Say what `merge` takes."""
    parser.usage, parser.epilog = MERGE_USAGE, MERGE_ABOUT
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run with --lora")
    parser.add_argument(
        "--run",
        type=Path,
        dest="merged",
        metavar="MERGED",
        help="where the whole model is to be kept",
    )
    parser.add_argument(
        "--checkpoint", choices=("best", "last"), default="best", help="by held-out loss [best]"
    )


# --- tab -----------------------------------------------------------------------------------------

TAB_USAGE = "slp-transformer tab SONG [-o FILE] [--tuning NAME] [--capo FRET] [more]"
TAB_EXAMPLES = """examples:
  slp-transformer tab song.mid                                on the terminal
  slp-transformer tab song.mid -o song.gp5 --tuning drop-D --capo 2
  slp-transformer tab song.mid -o song.txt --position 7       where the hand would rather be
  slp-transformer tab song.mid -o song.txt --alternatives 3   also song-2.txt and song-3.txt
  slp-transformer tab song.txt --tuning DADGAD                the same notes on another guitar
  slp-transformer tab song.mid --pin 3:1=2/5                  bar 3, first moment: string 2, fret 5

The fingering is the one that asks least of a hand, over the whole piece: no model is needed."""


def add_tab(parser: argparse.ArgumentParser) -> None:
    """Say what `tab` takes."""
    parser.usage, parser.epilog = TAB_USAGE, TAB_EXAMPLES
    parser.add_argument(
        "song",
        type=Path,
        metavar="SONG",
        help="a MIDI file, or a tab (.txt, .tab, .gp3, .gp4, .gp5)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write to a file: .txt, .mid, .gp3, .gp4, .gp5, .musicxml or .atex",
    )
    guitar = parser.add_argument_group("the guitar")
    guitar.add_argument("--tuning", metavar="NAME", help=f"{', '.join(TUNINGS)}, or the strings "
                        "from the lowest, as in \"D A D G B E\" [standard]")  # fmt: skip
    guitar.add_argument("--capo", type=int, default=0, metavar="FRET", help="of a capo [0]")
    guitar.add_argument("--max-fret", type=int, default=19, metavar="FRET", help="the last [19]")
    hand = parser.add_argument_group("the hand")
    hand.add_argument(
        "--max-span", type=int, default=4, metavar="FRETS", help="that a grip may reach over [4]"
    )
    hand.add_argument(
        "--position", type=int, metavar="FRET", help="where it would rather be, 1 to 15"
    )
    opens = hand.add_mutually_exclusive_group()
    opens.add_argument("--prefer-open", action="store_true", help="take open strings more often")
    opens.add_argument("--avoid-open", action="store_true", help="take them less often")
    hand.add_argument(
        "--pin",
        action="append",
        metavar="BAR:MOMENT=STRING/FRET",
        help="a place that is settled; may be given several times",
    )
    hand.add_argument(
        "--alternatives", type=int, default=1, metavar="N", help="ways to play the piece [1]"
    )
    hand.add_argument(
        "--out-of-reach",
        choices=("refuse", "octave", "drop"),
        default="refuse",
        help="what to do about notes that cannot be played: refuse the piece and name them, move "
        "them by octaves, or leave them out [refuse]",
    )
    group = parser.add_argument_group("more")
    group.add_argument(
        "--model",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="models of the hand, trained on written tab; several agree by their mean",
    )
    group.add_argument(
        "--tracks", type=int, nargs="+", metavar="N", help="of a MIDI file, from 1 [all]"
    )
    group.add_argument(
        "--channels", type=int, nargs="+", metavar="N", help="of a MIDI file [all but 10, drums]"
    )
    group.add_argument(
        "--steps-per-quarter",
        type=int,
        metavar="N",
        help="columns of an ASCII tab that last a quarter note, where the output needs time",
    )


COMMANDS = {
    "train": ("Train a model on text, on guitar tabs, or on pairs of sentences", add_train),
    "generate": ("Have a trained model write on after a prompt", add_generate),
    "translate": ("Have a model that learned from pairs translate", add_translate),
    "evaluate": (
        "Measure how well a trained model predicts what it did not learn from",
        add_evaluate,
    ),
    "info": (
        "Tell what a run is made of; without a run, what there is on this machine",
        add_info,
    ),
    "merge": ("Make a run that was fine-tuned by LoRA whole", add_merge),
    "tab": ("Turn a MIDI file, or a tab for another guitar, into tab that can be played", add_tab),
}
"""What each command is for, and what it takes; what it does is in the module of its name."""
