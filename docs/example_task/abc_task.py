"""Folk tunes in ABC notation, whose bars add up: a task that slp_transformer finds by `PLUGIN`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from abc_notation import METERS, Bars, fillable, length_of, read_tune, read_tunes, write_abc

from slp_transformer.tasks import base
from slp_transformer.tasks.base import DataSettings, LoadedRun, NoFlags, Plugin, Positional
from slp_transformer.tasks.generation_session import GenerationSession

BOS, EOS = "<tune>", "<end>"
USAGE = "train tunes my-tunes --out-dir runs/tunes", "folk tunes in ABC"
PLUGIN = Plugin({"tunes": base.TaskEntry("abc_task:TuneTask", USAGE)})


@dataclass(frozen=True)
class TuneData(DataSettings):
    """The tunes to train on.

    Attributes:
        source: an .abc file or a folder of them.
        val_split: the share of the tunes that is held out for validation.
    """

    task: ClassVar[str] = "tunes"
    paths: ClassVar[tuple[str, ...]] = ("source",)
    source: Positional[str] = "my-tunes"
    val_split: float = base.setting(0.1, base.OPEN_SHARE, example=0.3)


class TuneTokenizer:
    """Words of ABC as ids: the beginning and the end of a tune, then all of the training data."""

    def __init__(self, words: Sequence[str]):
        self.words, self.vocab_size = list(words), len(words)
        self.ids = {word: i for i, word in enumerate(self.words)}

    def to_json(self) -> dict[str, list[str]]:
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
        bars, left = Bars(METERS[words[0].removeprefix("M:")]), self.left[words[0]]
        for word in words[2:]:
            bars = bars.after(word)
        fitting = (w for w in self.music if bars.full - bars.filled - length_of(w) in left)
        allowed = {self.tokenizer.ids[w] for w in fitting if bars.allows(w)}
        return allowed | ({self.stop} if bars.may_end else set())

    def begin(self, prompt: str | None) -> list[int]:
        """Return the ids of an ABC tune to continue, or of the beginning of a new one."""
        words = [] if prompt is None else read_tune(prompt)
        if unknown := [word for word in words if word not in self.tokenizer.ids]:
            raise ValueError(f"The model does not know {unknown[0]!r}, which the prompt has.")
        return self.tokenizer.encode(words)[:-1]

    def render(self, ids: list[int]) -> str:
        """Return a tune as ABC."""
        words = self.tokenizer.decode(ids)
        return write_abc(words) if len(words) > 1 else ""

    def writes(self, path: Path) -> bool:
        """Tell if each tune is to be a file of its own."""
        return path.suffix == ".abc"

    def write(self, path: Path, ids: list[int]) -> list[str]:
        """Write a tune as ABC."""
        path.write_text(write_abc(self.tokenizer.decode(ids), path.stem), "utf-8")
        return []


class TuneTask(base.Task[TuneData, NoFlags, NoFlags]):
    """Language models of folk tunes."""

    name, Data, unit = "tunes", TuneData, "words"

    def prepare(self, config: base.RunConfig[TuneData], folder: Path) -> base.Dataset:
        """Read the tunes, hold every n-th out, and turn them into tokens."""
        from slp_transformer.data.token_file import write_token_folder

        tunes, skipped = read_tunes(Path(config.data.source))
        every = max(2, round(1 / config.data.val_split))
        train = [tune for i, tune in enumerate(tunes) if i % every]
        known = sorted({word for tune in train for word in tune})
        tokenizer = TuneTokenizer([BOS, EOS, *known])
        held_out = [tune for tune in tunes[::every] if set(tune) <= set(known)]
        streams = [[i for t in part for i in tokenizer.encode(t)] for part in (train, held_out)]
        write_token_folder(folder, tokenizer, *streams, [])
        return replace(self.open(config, folder), warnings=skipped)

    def sources(self, config: base.RunConfig[TuneData], data: base.Dataset) -> tuple[Any, Any]:
        """Return windows of which half begin with a tune, and the held-out stream."""
        from slp_transformer.data.batches import DocumentWindowSource

        return DocumentWindowSource(data.train, config.window(), data.tokenizer.ids[BOS]), data.val

    def load_tokenizer(self, content: Any) -> TuneTokenizer:
        """Return the tokenizer that a checkpoint holds."""
        return TuneTokenizer(content["words"])

    def session(self, run: LoadedRun, flags: NoFlags) -> TuneSession:
        return TuneSession(run.tokenizer)

    def evaluate(self, run: LoadedRun, options: base.EvaluateOptions[NoFlags]) -> base.Report:
        """Measure the loss per word on the held-out tunes."""
        from slp_transformer.tasks import evaluation

        values = evaluation.compute_window_metrics(run, evaluation.open_run_data(run).val)
        return evaluation.build_report(self, run, options, values)
