"""A task of one's own for slp_transformer: folk tunes in ABC notation, whose bars add up.

`slp-transformer train tunes FOLDER` is there once this package is installed: its pyproject.toml
names `TuneTask` as an entry point. Nothing in slp_transformer knows of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from abc_notation import METERS, Bars, fillable, length_of, notes, read_tune, read_tunes, write_abc

from slp_transformer.tasks.base import (
    Dataset,
    DataSettings,
    LoadedRun,
    Positional,
    Report,
    Task,
)
from slp_transformer.tasks.generation_session import GenerationSession

BOS, EOS = "<tune>", "<end>"


@dataclass(frozen=True)
class TuneData(DataSettings):
    """The tunes to train on.

    Attributes:
        source: an .abc file or a folder of them.
        val_split: the share of the tunes that is held out for validation.
    """

    task: ClassVar[str] = "tunes"
    paths: ClassVar[tuple[str, ...]] = ("source",)

    source: Positional[str | None] = None
    val_split: float = 0.1


class TuneTokenizer:
    """Words of ABC as ids: the beginning and the end of a tune, then all of the training data.

    Attributes:
        words: the vocabulary.
    """

    def __init__(self, words: Sequence[str]):
        """Number the words."""
        self.words = list(words)
        self.ids = {word: i for i, word in enumerate(self.words)}

    @property
    def vocab_size(self) -> int:
        """|V|."""
        return len(self.words)

    def to_json(self) -> dict[str, list[str]]:
        """Return what a run keeps."""
        return {"words": self.words}

    def encode(self, tune: Sequence[str]) -> list[int]:
        """Return a tune's ids, from its beginning to its end."""
        return [self.ids[word] for word in [BOS, *tune, EOS]]

    def decode(self, ids: Sequence[int]) -> list[str]:
        """Return the words of one tune, without the tokens that mark its ends."""
        return [self.words[i] for i in ids if self.words[i] not in (BOS, EOS)]


class TuneSession(GenerationSession):
    """Tunes that keep to the rule of `Bars`: a meter, a key, then bars that add up."""

    def __init__(self, tokenizer: TuneTokenizer):
        """Prepare the rule for a vocabulary."""
        self.tokenizer, self.stop = tokenizer, tokenizer.ids[EOS]
        self.meters = [w for w in tokenizer.words if w.startswith("M:")]
        self.keys = [w for w in tokenizer.words if w.startswith("K:")]
        self.music = [w for w in tokenizer.words if w not in (BOS, EOS, *self.meters, *self.keys)]
        lengths = {length for w in self.music if (length := length_of(w))}
        self.left = {w: fillable(lengths, METERS[w.removeprefix("M:")]) for w in self.meters}

    def allowed(self, ids: Sequence[int]) -> set[int]:
        """Return the ids that may come next."""
        words = self.tokenizer.decode(ids)
        if len(words) < 2:
            return {self.tokenizer.ids[w] for w in (self.keys if words else self.meters)}
        bars = Bars(words[0].removeprefix("M:"))
        for word in words[2:]:
            bars = bars.after(word)
        left = self.left[words[0]]
        allowed = {
            self.tokenizer.ids[w]
            for w in self.music
            if bars.allows(w) and bars.full - bars.filled - length_of(w) in left
        }
        return allowed | ({self.stop} if bars.may_end else set())

    def begin(self, prompt: str | None) -> list[int]:
        """Return the ids of an ABC tune to continue, or of the beginning of a new one.

        Raises:
            ValueError: if the prompt is no tune, or has words that the model does not know.
        """
        if prompt is None:
            return [self.tokenizer.ids[BOS]]
        words = read_tune(prompt)
        if unknown := [word for word in words if word not in self.tokenizer.ids]:
            raise ValueError(f"The model does not know {unknown[0]!r}, which the prompt has.")
        return self.tokenizer.encode(words)[:-1]

    def render(self, ids: list[int]) -> str:
        """Return a tune as ABC."""
        words = self.tokenizer.decode(ids)
        return write_abc(words) if len(words) > 1 else ""

    def writes(self, path: Path) -> bool:
        """Tell if a path's suffix is one that `write` knows."""
        return path.suffix in (".abc", ".mid")

    def write(self, path: Path, ids: list[int]) -> list[str]:
        """Write a tune as ABC or MIDI."""
        words = self.tokenizer.decode(ids)
        if path.suffix == ".abc":
            path.write_text(write_abc(words, path.stem), "utf-8")
        else:
            write_midi(words, path)
        return []


def write_midi(words: list[str], path: Path) -> None:
    """Write a tune, its repeats played, as a MIDI file at 110 quarters a minute."""
    import mido

    ticks = 480  # in a quarter, so that triplets of sixteenths are whole numbers
    track = mido.MidiTrack([mido.MetaMessage("set_tempo", tempo=mido.bpm2tempo(110))])
    wait = 0
    for pitch, length in notes(words):
        duration = int(length * Fraction(ticks, 2))
        if pitch is None:
            wait += duration
            continue
        track.append(mido.Message("note_on", note=pitch, velocity=80, time=wait))
        track.append(mido.Message("note_off", note=pitch, time=duration))
        wait = 0
    mido.MidiFile(ticks_per_beat=ticks, tracks=[track]).save(path)


class TuneTask(Task):
    """Language models of folk tunes."""

    name, Data, unit = "tunes", TuneData, "words"

    def check(self, config: Any) -> None:
        """Refuse a source that does not exist.

        Raises:
            ValueError: naming it.
        """
        source = config.data.source
        if source is None or not Path(source).exists():
            raise ValueError(f"There is no {source}: name an .abc file or a folder of them.")

    def prepare(self, config: Any, folder: Path) -> Dataset:
        """Read the tunes, hold every n-th out, and turn them into tokens.

        Raises:
            ValueError: if there are no tunes.
        """
        from slp_transformer.data.token_file import write_token_folder

        tunes, skipped = read_tunes(Path(config.data.source))
        every = max(2, round(1 / config.data.val_split))
        train = [tune for i, tune in enumerate(tunes) if i % every]
        known = sorted({word for tune in train for word in tune})
        tokenizer = TuneTokenizer([BOS, EOS, *known])
        held_out = [tune for tune in tunes[::every] if set(tune) <= set(known)]
        streams = [[i for t in part for i in tokenizer.encode(t)] for part in (train, held_out)]
        names = [f"tune {i}" for i in range(len(held_out))]
        write_token_folder(folder, tokenizer, *streams, names)
        return replace(self.open(config, folder), warnings=skipped, val_names=names)

    def open(self, config: Any, folder: Path) -> Dataset:
        """Open the tokens of a run.

        Raises:
            ValueError: if they are damaged or missing.
        """
        from slp_transformer.data.token_file import open_token_folder

        return open_token_folder(folder, self.load_tokenizer)

    def sources(self, config: Any, data: Dataset) -> tuple[Any, Any]:
        """Return windows of which half begin with a tune, and the held-out stream."""
        from slp_transformer.data.batches import DocumentWindows

        window = config.train.sequence_length or config.model.context_length
        return DocumentWindows(data.train, window, data.tokenizer.ids[BOS]), data.val

    def load_tokenizer(self, content: Any) -> TuneTokenizer:
        """Return the tokenizer that a checkpoint holds.

        Raises:
            ValueError: if it is none of this task.
        """
        if not isinstance(content, dict) or content.get("words", [])[:2] != [BOS, EOS]:
            raise ValueError("this is no vocabulary of tunes.")
        return TuneTokenizer(content["words"])

    def session(self, run: LoadedRun, options: Any) -> TuneSession:
        """Return what generates tunes."""
        return TuneSession(run.tokenizer)

    def evaluate(self, run: LoadedRun, options: Any) -> Report:
        """Measure the loss per word on the held-out tunes."""
        from slp_transformer.tasks.evaluation import measure_windows, metric_rows, with_samples

        values = measure_windows(run, self.open(run.config, run.folder / "tokens").val)
        return with_samples(self, run, options, values, metric_rows(values))
