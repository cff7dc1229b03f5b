"""The options of each command: tyro makes flags of their fields. Nothing here needs PyTorch.

`parse` returns them checked, so far as that is possible without PyTorch.
"""

import argparse
import contextlib
import difflib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from slp_transformer._internal.atomic_write import check_place, require_extra
from slp_transformer._internal.choices import tyro_registry
from slp_transformer._internal.config_checks import Range, check_ranges
from slp_transformer.cli.console import EXIT_OK, PROGRAM, command, plural, print_result, rank
from slp_transformer.data.text_files import STANDARD_INPUT
from slp_transformer.modern.published_folders import is_pretrained_folder
from slp_transformer.tasks.base import (
    TASKS,
    DataSettings,
    Positional,
    UseAppendAction,
    arg,
    load_task,
)
from slp_transformer.tasks.run_config import (
    CONFIG_FILE,
    GROUPS,
    TOKENIZER_SETTINGS,
    RunConfig,
    closest_match,
    config_from_run,
    find_task,
    load_config,
)
from slp_transformer.training.run_folder import (
    CheckpointChoice,
    checkpoint_folder,
    delete_old_checkpoints,
    find_checkpoints,
    load_model_spec,
    load_trainer_state,
    run_lock,
)
from slp_transformer.training.train_config import RESUMABLE_SETTINGS

DataT = TypeVar("DataT", bound=DataSettings)
COUNT: Range = (lambda n: n >= 1), "1 or more"
RANGES: dict[str, Range] = {
    **dict.fromkeys(("max_new_tokens", "num_samples", "samples", "num_beams", "n_best"), COUNT),
    "temperature": ((lambda x: x >= 0), "0 or more"),
    "top_p": ((lambda x: 0 < x <= 1), "above 0 and at most 1"),
    "seed": ((lambda n: 0 <= n < 2**63), "from 0 to 2**63 - 1"),
}


@dataclass(frozen=True)
class RunOptions:
    """A trained model, and where it is to compute.

    Attributes:
        run: the folder of a run, or of a published model.
        checkpoint: the one with the lowest validation loss, the last one, or the average of the
            last ones that were kept (--keep-last).
        device: cuda, mps or cpu; the first of them that is there if None.
    """

    run: Positional[Path]
    checkpoint: CheckpointChoice = "best"
    device: str | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that no model can use, and a file that cannot be written.

        Raises:
            ValueError: naming the flag.
        """
        check_ranges(self, RANGES, flags=True)
        if (output := getattr(self, "output", None)) is not None:
            check_place(output)


@dataclass(frozen=True)
class Train(Generic[DataT]):
    """Train a model.

    Examples:
      slp-transformer train text my-texts --out-dir runs/mine
      slp-transformer train text novel.txt --out-dir runs/novel --tokenizer bpe --steps 5000
      cat *.txt | slp-transformer train text - --out-dir runs/mine
      slp-transformer train text --config shakespeare --out-dir runs/plays
      slp-transformer train tabs my-tabs --out-dir runs/tabs
      slp-transformer train pairs train.en --target train.de --out-dir runs/en-de
      slp-transformer train --out-dir runs/mine --resume
      slp-transformer train --out-dir runs/mine --resume --steps 9000     trains further
      slp-transformer train text other-texts --init-from runs/mine --lora-rank 4 --out-dir
      runs/other

    Ctrl-C stops after the current step and saves everything; --resume continues from there, with
    the same result as if nothing had happened. The run's folder holds config.toml, which repeats
    it.

    Attributes:
        run: what is trained, and how.
        out_dir: the folder of the run.
        config: a preset (`slp-transformer info` lists them) or a TOML file; flags override it.
        resume: continue the run in the folder.
        print_config: print all settings as TOML, and stop.
        tensorboard: write curves for TensorBoard.
        quiet: show no progress.
    """

    run: RunConfig[DataT]
    out_dir: Path | None = None
    config: str | None = None
    resume: bool = False
    print_config: bool = False
    tensorboard: bool = False
    quiet: bool = False


@dataclass(frozen=True)
class Generate(RunOptions):
    """Continue prompts with a trained model.

    Examples:
      slp-transformer generate runs/mine --prompt "the "
      slp-transformer generate runs/mine --prompt-file beginning.txt --max-new-tokens 2000
      echo "the " | slp-transformer generate runs/mine --prompt-file -
      slp-transformer generate runs/tabs --tuning drop-D --output piece.txt
      slp-transformer generate runs/tabs --prompt-file my_riff.txt --key Am
      slp-transformer generate runs/tabs --output piece.gp5     (or .mid, .musicxml, .atex)

    A model sees a window of its last tokens. Where a text is longer than that, the model continues
    from the last half window, without what came before.

    Attributes:
        prompt: the text to continue; may be given several times.
        prompt_file: a file to continue, or - for standard input; for guitar an ASCII tab.
        max_new_tokens: maximum number of new tokens.
        seed: random seed.
        num_samples: samples of each prompt.
        output: a file to write to.
        json: print a list of texts as JSON.
        tuning: for guitar, the name of a tuning [standard].
        capo: for guitar, the capo fret [0].
        key: for guitar, C, C#, D ... or Am ...; new notes are of its scale, in minor with the
            raised seventh too, but may suggest another key, as 45 of 72 pieces of one model did;
            the model chooses if None.
        time_signature: for guitar, 3/4, 4/4, 6/8 ...; the model chooses if None.
        style: for guitar, a style of the training data; the model chooses if None.
        ending: for guitar, "tonic" gives a piece that the model ends on another bass note than the
            tonic of its key (--key, or an estimate) one more bar, with a tonic chord in root
            position; "any" leaves the ending to the model [tonic].
        one_channel: for guitar, write MIDI with one channel in place of one for each string.
        temperature: below 1 the model keeps to what is likely, above 1 it varies more; 0 always
            takes the most probable token.
        top_k: sample from the k most probable tokens alone.
        top_p: sample from the most probable tokens that together have this probability.
        repetition_penalty: above 1, tokens that are there already become less likely.
    """

    prompt: UseAppendAction[tuple[str, ...]] = ()
    prompt_file: str | None = None
    max_new_tokens: int = 500
    seed: int = 0
    num_samples: int = 1
    output: Path | None = None
    json: bool = False
    tuning: str | None = None
    capo: int | None = None
    key: str | None = None
    time_signature: str | None = None
    style: str | None = None
    ending: Literal["tonic", "any"] | None = None
    one_channel: bool = False
    temperature: float = 0.8
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float = 1.0


@dataclass(frozen=True)
class Translate(RunOptions):
    """Translate sentences with a model trained on pairs.

    Examples:
      slp-transformer translate runs/en-de "A man rides a bicycle."
      slp-transformer translate runs/en-de --input captions.en --output captions.de
      cat captions.en | slp-transformer translate runs/en-de > captions.de
      slp-transformer translate runs/en-de "A man rides." --attention heads.html
      slp-transformer translate runs/en-de                     reads sentences, a line each

    Each line is a sentence, and an empty line is translated by an empty line.

    Attributes:
        sentences: what to translate.
        input: a file with a sentence in each line.
        output: a file to write to.
        num_beams: beam width; 1 takes the most probable token at each step.
        length_penalty: the power of its length that a log probability is divided by.
        n_best: translations of each sentence.
        scores: print each translation's log probability per token before it.
        json: print each sentence's translations as JSON.
        attention: draw the attention of every layer and head for one sentence, as .html or .svg.
    """

    sentences: Positional[tuple[str, ...]] = ()
    input: Path | None = None
    output: Path | None = None
    num_beams: int = 4
    length_penalty: float = 1.0
    n_best: int = 1
    scores: bool = False
    json: bool = False
    attention: Path | None = None

    def __post_init__(self) -> None:
        """Refuse impossible values.

        Raises:
            ValueError: naming the flag.
        """
        super().__post_init__()
        if self.n_best > self.num_beams:
            raise ValueError(
                f"{self.num_beams} beams find at most as many translations, and not the "
                f"{self.n_best} of --n-best: give --num-beams {self.n_best}."
            )
        if self.attention is None:
            return
        if len(self.sentences) != 1 or self.input or not self.sentences[0].strip():
            raise ValueError("--attention draws one sentence: give it as the only SENTENCE.")
        if self.attention.suffix.lower() not in (".html", ".svg"):
            raise ValueError(
                f"Attention is drawn as .html or .svg, and {self.attention.name} is neither."
            )


@dataclass(frozen=True)
class Evaluate(RunOptions):
    """Measure how well a trained model predicts data that it was not trained on.

    Examples:
      slp-transformer evaluate runs/mine                 on the run's held-out data
      slp-transformer evaluate runs/mine other.txt       on another text
      slp-transformer evaluate runs/mine --samples 3     with three generated texts
      slp-transformer evaluate runs/en-de test.en --target test.de --checkpoint average

    Language models: the loss, perplexity and bits per character and byte, which unlike the loss
    compare models with different tokenizers. Translation: loss, BLEU and chrF with sacrebleu's
    signatures. Guitar tabs: bits per note compared with n-grams and, with samples, statistics of
    generated pieces compared with held-out ones, with and without the grammar.

    Attributes:
        source: what to evaluate on: a file, a folder, - for standard input, the name of a corpus;
            the run's held-out data if None.
        json: print JSON.
        target: for pairs, the file whose lines translate those of SOURCE.
        num_beams: for pairs, the beam width [4].
        samples: generate this many texts too.
        temperature: of the samples [0.8].
        max_new_tokens: maximum number of tokens of a sample [500].
        seed: random seed of the samples [0].
    """

    source: Positional[str | None] = None
    json: bool = False
    target: str | None = None
    num_beams: int | None = None
    samples: int | None = None
    temperature: float | None = None
    max_new_tokens: int | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Info:
    """Show a run's model, tokenizer and progress; without a run, this machine and the presets.

    Attributes:
        run: the folder of a run, or of a published model.
        json: print JSON.
    """

    run: Positional[Path | None] = None
    json: bool = False


@dataclass(frozen=True)
class Merge:
    """Merge a LoRA run with its base into a run with all weights of its own.

    A run of `train --lora-rank` keeps A and B alone, and needs the run that it began with. Both
    runs stay as they are.

    Attributes:
        run: the folder of a LoRA run.
        out_dir: the folder of the merged run.
        checkpoint: the one with the lowest validation loss, or the last one.
    """

    run: Positional[Path]
    out_dir: Path
    checkpoint: Literal["best", "last"] = "best"


@dataclass(frozen=True, kw_only=True)
class SongOptions:
    """A file with notes, how to read it, and how to write another.

    Attributes:
        song: an ASCII tab, Guitar Pro 3 to 8, MusicXML, MIDI or alphaTex.
        tracks: tracks to read, from 1; all of them if empty, but `tab` then takes the first, except
            of a MIDI file.
        channels: channels of a MIDI file; all but 10, drums, if empty.
        quantize: steps to a quarter note to which the notes of a MIDI file are moved.
        one_channel: write MIDI with one channel for each guitar, in place of one for each string.
        steps_per_quarter: steps of an ASCII tab in a quarter note, where the output needs time; a
            step is the number of columns in which all its notes are spaced.
    """

    song: Positional[Path]
    tracks: tuple[int, ...] = ()
    channels: tuple[int, ...] = ()
    quantize: int | None = None
    one_channel: bool = False
    steps_per_quarter: int | None = None


@dataclass(frozen=True, kw_only=True)
class Tab(SongOptions):
    """Turn notes without strings, or a tab for another guitar, into tab that can be played.

    Examples:
      slp-transformer tab song.mid                                on the terminal
      slp-transformer tab song.mid -o song.gp5 --tuning drop-D --capo 2
      slp-transformer tab song.mid -o song.txt --position 7       around the seventh fret
      slp-transformer tab song.mid -o song.txt --alternatives 3   also song-2.txt and song-3.txt
      slp-transformer tab song.txt --tuning DADGAD                the same notes on another guitar
      slp-transformer tab song.mid --review 5                     where another way is as good
      slp-transformer tab song.mid --pin 3:1=2/5                  bar 3, first moment: string 2,
      fret 5

    The fingering is the one with the lowest cost for the hand over the whole piece: no model is
    needed. A tab keeps the fingering that it has, unless --refinger or another flag asks for a new
    one.

    Attributes:
        output: a file to write to: .txt, .mid, .gp3, .gp4, .gp5, .musicxml or .atex.
        tuning: a name, or the strings from the lowest, as in "D A D G B E" [the file's, or
            standard].
        capo: capo fret [the file's, or none].
        max_fret: highest fret.
        max_span: frets that a grip may reach over.
        position: preferred position, 1 to 15.
        open_strings: use open strings more often, or less often.
        pin: force notes onto a string and fret, as BAR:MOMENT=STRING/FRET, or several of a moment
            as BAR:MOMENT=4/5,2/6; the rest follows. May be given several times.
        review: show so many moments where another grip is almost as good, the least certain first,
            each with its two best alternatives and what pins them.
        alternatives: ways to play the piece.
        unplayable: what to do about notes that cannot be played: refuse the piece and name them,
            move them by octaves, or drop them.
        model: fingering models, trained on written tab; their probabilities are averaged.
        refinger: find a new fingering for a tab.
    """

    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    tuning: str | None = None
    capo: int | None = None
    max_fret: int = 19
    max_span: int = 4
    position: int | None = None
    open_strings: Literal["more", "less"] | None = None
    pin: UseAppendAction[tuple[str, ...]] = ()
    review: int = 0
    alternatives: int = 1
    unplayable: Literal["refuse", "octave", "drop"] = "refuse"
    model: tuple[Path, ...] = ()
    refinger: bool = False


@dataclass(frozen=True, kw_only=True)
class Convert(SongOptions):
    """Convert guitar music from one kind of file into another.

    Examples:
      slp-transformer convert song.gp5 -o song.musicxml
      slp-transformer convert band.gp5 -o bass.txt --tracks 3
      slp-transformer convert song.txt -o song.gp5 --steps-per-quarter 2

    Strings and frets, tuning, capo, playing techniques, repeats, tracks and voices are kept, and
    what the new file cannot hold is listed. Notes without strings are fingered as by `tab`.

    Attributes:
        output: a file to write to: .txt, .mid, .gp3, .gp4, .gp5, .musicxml or .atex.
        no_capo: write open strings as the capo has them, for programs that ignore capos.
    """

    output: Annotated[Path, arg(aliases=["-o"])]
    no_capo: bool = False


KINDS: tuple[type, ...] = (Train, Generate, Translate, Evaluate, Info, Merge, Tab, Convert)
COMMANDS = {kind.__name__.lower(): kind for kind in KINDS}
"""The options of each command; what it does is in the module of its name."""


# --- Parsing -------------------------------------------------------------------------------------


def parse(args: Sequence[str]) -> tuple[str, Any]:
    """Parse the words after the program's name.

    Returns:
        The command's name, and its options.

    Raises:
        SystemExit: with 0 after help, or if there is nothing to train.
        ValueError: if an option is unknown, impossible, or has no effect on this run.
    """
    name, rest = args[0], args[1:]
    if name not in COMMANDS:
        raise ValueError(f'There is no command "{name}": {closest_match(name, COMMANDS)}')
    if name == "train":
        return name, parse_train(rest)
    options = parse_flags(COMMANDS[name], name, rest)
    if getattr(options, "run", None) is not None:
        check_run(name, options)
    return name, options


def parse_flags(options: Any, name: str, args: Sequence[str], default: Any = None) -> Any:
    """Parse flags with tyro.

    Args:
        options: the class of the options.
        name: the command's name.
        args: the words after it.
        default: the values of what is not among them, instead of the class's own.

    Raises:
        SystemExit: with 0 after help.
        ValueError: with what tyro says of a mistake, in one sentence.
    """
    tyro = require_extra("tyro", "Options", "guitar" if name in ("tab", "convert") else "text")
    how: dict[str, Any] = {"prog": f"{PROGRAM} {name}", "config": (tyro.conf.OmitArgPrefixes,)}
    if default is not None:
        how["default"] = default
    else:  # only `train` has presets, whose values None takes back
        how["config"] += (tyro.conf.DisallowNone, tyro.conf.FlagCreatePairsOff)
    try:
        with contextlib.redirect_stderr(io.StringIO()) as printed:
            return tyro.cli(
                options, args=args, console_outputs=rank() == 0, registry=tyro_registry(), **how
            )
    except SystemExit as ended:
        if not ended.code or rank() > 0:
            raise
        box = re.sub(r"[│╭╮╰╯]", " ", printed.getvalue())
        sentence = " ".join(box.partition("\n")[2].partition("─────")[0].split())
        if found := re.fullmatch(r"Error parsing (?!-)[^:]+: (.*)", sentence):
            raise ValueError(found[1]) from None  # one of our own sentences
        groups = [options] if default is None else [default, default.run]
        groups += [getattr(default.run, group) for group in GROUPS] if default else []
        known = [f"--{field.name.replace('_', '-')}" for group in groups for field in fields(group)]
        meant: list[str] = []
        if unknown := re.match(r"Unrecognized options: (--[\w-]+)", sentence):
            sentence = f"There is no option {unknown[1]}"
            meant = difflib.get_close_matches(unknown[1], known, n=1)  # tyro's are less close
        end = f": did you mean {meant[0]}?" if meant else f" (see {PROGRAM} {name} --help)."
        raise ValueError(sentence.rstrip(".") + end) from None


def check_run(name: str, options: Any) -> None:
    """Refuse a folder without a trained model, and options that its task has no use for.

    Raises:
        ValueError: saying what is wrong.
    """
    task = find_task(options.run)
    if name == "generate":
        task.check_generate(options)
    elif name == "evaluate":
        task.check_evaluate(options)
    if is_pretrained_folder(options.run):
        return
    state = load_trainer_state(
        checkpoint_folder(options.run, getattr(options, "checkpoint", "last"))
    )
    if name in ("generate", "translate") and state is not None and state.step == 0:
        raise ValueError(
            f"The model in {options.run} has not been trained yet: its run ended before the first "
            "evaluation."
        )


def parse_train(args: Sequence[str]) -> Train[Any]:
    """Parse the options of `train`: a preset, configuration files and flags, in layers.

    Raises:
        SystemExit: with 0 after help, or if there is nothing to train.
        ValueError: if they are wrong, or contradict each other, the run to be resumed, or what
            there is.
    """
    if "" in args:
        raise ValueError("One of the arguments is empty: name a file, a folder or a value.")
    name, rest = (args[0], args[1:]) if args and args[0] in TASKS else (None, args)
    peek = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for flag in ("--out-dir", "--config", "--init-from"):
        peek.add_argument(flag)
    peek.add_argument("--resume", action="store_true")
    try:
        given, _ = peek.parse_known_args(list(rest))
    except argparse.ArgumentError as error:
        raise ValueError(f"{error}.") from None
    saved = Path(given.out_dir) / CONFIG_FILE if given.out_dir and given.resume else None
    if saved is not None and not saved.exists():
        kept = find_checkpoints(given.out_dir)
        held = f", but a {load_model_spec(kept[-1]).model} without a {CONFIG_FILE}" if kept else ""
        raise ValueError(f"There is no run in {given.out_dir} to resume{held}.")
    files = [file for file in (saved, given.config) if file is not None]
    if name is None and not files:
        if not {"-h", "--help"} & set(rest):
            wrong = (
                f"There is no task {rest[0]}" if rest and rest[0][:1] != "-" else "Name the task"
            )
            raise ValueError(
                f"{wrong}: {PROGRAM} train {'|'.join(TASKS)} (see {PROGRAM} train --help)."
            )
        name = "text"
    layered = load_config(*files, task=name)
    task = load_task(layered.data.task)
    if given.init_from is not None and saved is None:
        layered = config_from_run(layered, task, Path(given.init_from))
    flags: Any = Train[task.Data]  # type: ignore[name-defined]  # a class at run time
    options = parse_flags(flags, f"train {task.name}", rest, Train(layered))
    config = options.run.resolve_paths(Path())
    if options.print_config:
        print_result(config.to_toml(), end="")
        raise SystemExit(EXIT_OK)
    if options.out_dir is None:
        raise ValueError("Name the folder of the run: --out-dir FOLDER.")
    if saved is not None:
        config = check_resume(load_config(saved), config, options.out_dir)
        return replace(options, run=config)
    if config.init_from is not None:
        check_init_from(layered, config)
    task.check(config)
    return replace(options, run=config)


def check_resume(saved: RunConfig[Any], config: RunConfig[Any], folder: Path) -> RunConfig[Any]:
    """Return the configuration that a run resumes with.

    Raises:
        ValueError: if a setting differs that determines the result, or the run has made more steps
            than it should.
        SystemExit: with 0 if the run is finished.
    """
    if getattr(config.data, "source", None) == STANDARD_INPUT:
        config = replace(config, data=saved.data)
    for name, (before, after) in saved.changes(config).items():
        if name not in RESUMABLE_SETTINGS:
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"The run was started with {name} {before}, not {after}: resume it without {flag}, "
                "or start another run in another folder."
            )
    state = load_trainer_state(checkpoint_folder(folder)) if find_checkpoints(folder) else None
    if state is None:
        return config
    steps, state = config.train.steps, replace(state, config=config.train)
    state.check_steps(steps, folder)
    if not state.finished():
        return config
    with contextlib.suppress(ValueError), run_lock(folder):  # unless another process is at it
        delete_old_checkpoints(folder, config.train.keep_last)
    why, more = f"it has made {plural(steps, 'step')}", ("--steps", str(2 * steps))
    if state.step < steps:
        why = f"it stopped early, after step {state.step:,} of {steps:,}"
        more = ("--early-stopping-patience", "None")
    further = command("train", "--out-dir", folder, "--resume", *more)
    print_result(f"The run in {folder} is finished: {why}. To train it further:\n  {further}")
    raise SystemExit(EXIT_OK)


def check_init_from(before: RunConfig[Any], config: RunConfig[Any]) -> None:
    """Refuse another model or tokenizer than those of the run to begin with.

    Raises:
        ValueError: naming the setting.
    """
    fixed = {*vars(config.model), *TOKENIZER_SETTINGS} - {"dropout"}
    for name, (kept, asked) in before.changes(config).items():
        if name in fixed:
            raise ValueError(
                f"{config.init_from} has {name} {kept}, not {asked}: leave out "
                f"--{name.replace('_', '-')}, or begin without --init-from."
            )
