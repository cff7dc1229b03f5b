"""The options of each command: tyro makes flags of their fields. Nothing here needs PyTorch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from slp_transformer.guitar.fretboard import TUNINGS
from slp_transformer.guitar.theory import KEY_NAMES, TIME_SIGNATURES
from slp_transformer.tasks.base import DataSettings
from slp_transformer.tasks.flag_types import Positional, UseAppendAction, arg
from slp_transformer.tasks.run_config import RunConfig, closest_match

DataT = TypeVar("DataT", bound=DataSettings)
Checkpoint = Literal["best", "last", "average"]
TIME_SIGNATURES = tuple(f"{beats}/{unit}" for beats, unit in TIME_SIGNATURES)


def check_choice(name: str, value: str | None, choices: Any) -> None:
    """Refuse a value that is not among the choices.

    Raises:
        ValueError: naming the flag and the closest choice.
    """
    if value is not None and value not in choices:
        raise ValueError(f'--{name} has no choice "{value}": {closest_match(value, choices)}')


def check_counts(options: Any, *names: str) -> None:
    """Refuse counts below 1.

    Raises:
        ValueError: naming the flag.
    """
    for name in names:
        if (count := getattr(options, name)) is not None and count < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be 1 or more, not {count}.")


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
class Generate:
    """Continue prompts with a trained model.

    Examples:
      slp-transformer generate runs/mine --prompt "It was"
      slp-transformer generate runs/mine --prompt-file beginning.txt --max-new-tokens 2000 >
      story.txt echo "It was" | slp-transformer generate runs/mine --prompt-file - slp-transformer
      generate runs/tabs --tuning drop-D --output piece.txt slp-transformer generate runs/tabs
      --prompt-file my_riff.txt --key Am slp-transformer generate runs/tabs --output piece.gp5
      (or .mid, .musicxml, .atex)

    A model sees a window of its last tokens. Where a text is longer than that, the model continues
    from the last half window, without what came before.

    Attributes:
        run: the folder of a run, or of a published model.
        checkpoint: the one with the lowest validation loss, the last one, or the average of the
            last ones that were kept (--keep-last).
        device: cuda, mps or cpu; the first of them that is there if None.
        prompt: the text to continue; may be given several times.
        prompt_file: a file to continue, or - for standard input; for guitar an ASCII tab.
        max_new_tokens: maximum number of new tokens.
        seed: random seed.
        num_samples: samples of each prompt.
        output: a file to write to.
        json: print a list of texts as JSON.
        tuning: for guitar, the name of a tuning [standard].
        capo: for guitar, the capo fret [0].
        key: for guitar, C, C#, D ... or Am ...; the model chooses if None.
        time_signature: for guitar, 3/4, 4/4, 6/8 ...; the model chooses if None.
        style: for guitar, a style of the training data; the model chooses if None.
        temperature: below 1 the model keeps to what is likely, above 1 it varies more [0.8].
        top_k: sample from the k most probable tokens alone.
        top_p: sample from the most probable tokens that together have this probability.
        repetition_penalty: above 1, tokens that are there already become less likely.
        num_beams: beam width; None for sampling.
        length_penalty: the power of its length that a hypothesis's log probability is divided by.
    """

    run: Positional[Path]
    checkpoint: Checkpoint = "best"
    device: str | None = None
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
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float | None = None
    num_beams: int | None = None
    length_penalty: float | None = None

    def __post_init__(self):
        """Refuse impossible values.

        Raises:
            ValueError: naming the flag.
        """
        check_counts(self, "max_new_tokens", "num_samples")
        check_choice("tuning", self.tuning, TUNINGS)
        check_choice("key", self.key, KEY_NAMES)
        check_choice("time-signature", self.time_signature, TIME_SIGNATURES)

    def decoding(self) -> dict[str, Any]:
        """Return the options that are given to `slp_transformer.generation.generate`."""
        names = ("temperature", "top_k", "top_p", "repetition_penalty", "num_beams")
        names += ("length_penalty",)
        given = {name: v for name in names if (v := getattr(self, name)) is not None}
        return given if "num_beams" in given else {"temperature": 0.8} | given


@dataclass(frozen=True)
class Translate:
    """Translate sentences with a model trained on pairs.

    Examples:
      slp-transformer translate runs/en-de "A man rides a bicycle."
      slp-transformer translate runs/en-de --input captions.en --output captions.de
      cat captions.en | slp-transformer translate runs/en-de > captions.de
      slp-transformer translate runs/en-de "A man rides." --attention heads.html
      slp-transformer translate runs/en-de                     asks for sentences, on a terminal

    Each line is a sentence, and an empty line is translated by an empty line.

    Attributes:
        run: the folder of a run.
        sentences: what to translate.
        checkpoint: the one with the lowest validation loss, the last one, or the average of the
            last ones that were kept (--keep-last).
        device: cuda, mps or cpu; the first of them that is there if None.
        input: a file with a sentence in each line.
        output: a file to write to.
        num_beams: beam width; 1 takes the most probable token at each step [4].
        length_penalty: the power of its length that a log probability is divided by.
        n_best: translations of each sentence.
        scores: print each translation's log probability per token before it.
        json: print each sentence's translations as JSON.
        attention: draw the attention of every layer and head for one sentence, as .html or .svg.
        source_language: refuse a run that does not translate from this language.
        target_language: refuse a run that does not translate into this language.
    """

    run: Positional[Path]
    sentences: Positional[tuple[str, ...]] = ()
    checkpoint: Checkpoint = "best"
    device: str | None = None
    input: Path | None = None
    output: Path | None = None
    num_beams: int | None = None
    length_penalty: float = 1.0
    n_best: int = 1
    scores: bool = False
    json: bool = False
    attention: Path | None = None
    source_language: str | None = None
    target_language: str | None = None

    def __post_init__(self):
        """Refuse impossible values.

        Raises:
            ValueError: naming the flag.
        """
        check_counts(self, "n_best", "num_beams")
        if self.n_best > self.beams:
            raise ValueError(
                f"{self.num_beams} beams find at most as many translations, and not the "
                f"{self.n_best} of --n-best: give --num-beams {self.n_best}."
            )
        if self.attention is None:
            return
        if len(self.sentences) != 1 or self.input or not self.sentences[0].strip():
            raise ValueError("--attention draws one sentence: give it as the only SENTENCE.")
        if self.attention.suffix not in (".html", ".svg"):
            raise ValueError(
                f"Attention is drawn as .html or .svg, and {self.attention.name} is neither."
            )

    @property
    def beams(self) -> int:
        """The beam width."""
        return max(4, self.n_best) if self.num_beams is None else self.num_beams


@dataclass(frozen=True)
class Evaluate:
    """Measure how well a trained model predicts data that it was not trained on.

    Examples:
      slp-transformer evaluate runs/mine                 on the run's held-out data
      slp-transformer evaluate runs/mine other.txt       on another text
      slp-transformer evaluate runs/mine --samples 3     with three generated texts
      slp-transformer evaluate runs/en-de test.en --target test.de --checkpoint average

    Language models: the loss, perplexity and bits per character and byte, which unlike the loss
    compare models with different tokenizers. Translation: loss, BLEU and chrF with sacrebleu's
    signatures. Guitar tabs: bits per note beside those of n-grams and, with samples, statistics of
    generated pieces beside those of held-out ones, with and without the grammar.

    Attributes:
        run: the folder of a run, or of a published model.
        source: what to evaluate on: a file, a folder, - for standard input, the name of a corpus;
            the run's held-out data if None.
        checkpoint: the one with the lowest validation loss, the last one, or the average of the
            last ones that were kept (--keep-last).
        device: cuda, mps or cpu; the first of them that is there if None.
        json: print JSON.
        target: for pairs, the file whose lines translate those of SOURCE.
        num_beams: for pairs, the beam width [4].
        length_penalty: for pairs, the power of its length that a log probability is divided by [1].
        samples: generate this many texts too.
        temperature: of the samples [0.8].
        max_new_tokens: maximum number of tokens of a sample [500].
        seed: random seed of the samples [0].
    """

    run: Positional[Path]
    source: Positional[str | None] = None
    checkpoint: Checkpoint = "best"
    device: str | None = None
    json: bool = False
    target: str | None = None
    num_beams: int | None = None
    length_penalty: float | None = None
    samples: int | None = None
    temperature: float | None = None
    max_new_tokens: int | None = None
    seed: int | None = None

    def __post_init__(self):
        """Refuse impossible values.

        Raises:
            ValueError: naming the flag.
        """
        check_counts(self, "samples", "num_beams", "max_new_tokens")


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


@dataclass(frozen=True)
class Tab:
    """Turn a MIDI file, or a tab for another guitar, into tab that can be played.

    Examples:
      slp-transformer tab song.mid                                on the terminal
      slp-transformer tab song.mid -o song.gp5 --tuning drop-D --capo 2
      slp-transformer tab song.mid -o song.txt --position 7       around the seventh fret
      slp-transformer tab song.mid -o song.txt --alternatives 3   also song-2.txt and song-3.txt
      slp-transformer tab song.txt --tuning DADGAD                the same notes on another guitar
      slp-transformer tab song.mid --pin 3:1=2/5                  bar 3, first moment: string 2,
      fret 5

    The fingering is the one with the lowest cost for the hand over the whole piece: no model is
    needed.

    Attributes:
        song: a MIDI file, or a tab (.txt, .tab, .gp3, .gp4, .gp5).
        output: a file to write to: .txt, .mid, .gp3, .gp4, .gp5, .musicxml or .atex.
        tuning: a name, or the strings from the lowest, as in "D A D G B E" [standard].
        capo: capo fret.
        max_fret: highest fret.
        max_span: frets that a grip may reach over.
        position: preferred position, 1 to 15.
        prefer_open: use open strings more often.
        avoid_open: use open strings less often.
        pin: force this note onto a string and fret, as BAR:MOMENT=STRING/FRET; may be given several
            times.
        alternatives: ways to play the piece.
        unplayable: what to do about notes that cannot be played: refuse the piece and name them,
            move them by octaves, or drop them.
        model: fingering models, trained on written tab; their probabilities are averaged.
        tracks: tracks of a MIDI file, from 1; all if empty.
        channels: channels of a MIDI file; all but 10, drums, if empty.
        steps_per_quarter: columns of an ASCII tab in a quarter note, where the output needs time.
    """

    song: Positional[Path]
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    tuning: str | None = None
    capo: int = 0
    max_fret: int = 19
    max_span: int = 4
    position: int | None = None
    prefer_open: bool = False
    avoid_open: bool = False
    pin: UseAppendAction[tuple[str, ...]] = ()
    alternatives: int = 1
    unplayable: Literal["refuse", "octave", "drop"] = "refuse"
    model: tuple[Path, ...] = ()
    tracks: tuple[int, ...] = ()
    channels: tuple[int, ...] = ()
    steps_per_quarter: int | None = None

    def __post_init__(self):
        """Refuse open strings both more and less often.

        Raises:
            ValueError: if both are asked for.
        """
        if self.prefer_open and self.avoid_open:
            raise ValueError("--prefer-open and --avoid-open contradict each other: give one.")


COMMANDS: dict[str, type] = {
    "train": Train,
    "generate": Generate,
    "translate": Translate,
    "evaluate": Evaluate,
    "info": Info,
    "merge": Merge,
    "tab": Tab,
}
"""The options of each command; what it does is in the module of its name."""
