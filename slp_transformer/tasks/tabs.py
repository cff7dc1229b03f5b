"""The task of modeling guitar tablature."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from slp_transformer.tasks.base import (
    Dataset,
    DataSettings,
    LoadedRun,
    Report,
    Task,
    check_split,
    check_windows,
    keep_tokenizer,
)
from slp_transformer.tasks.flag_types import Positional
from slp_transformer.tasks.text import check_no_pair_batches, window_of


@dataclass(frozen=True)
class TabData(DataSettings):
    """The guitar tabs to train on.

    Attributes:
        source: a file or folder of ASCII tabs, or GuitarSet; a generated practice corpus if None.
        val_split: the share of the pieces that is held out for validation, always the same.
        val_data: other tabs to validate on, in place of a share of the first.
    """

    task: ClassVar[str] = "tabs"
    paths: ClassVar[tuple[str, ...]] = ("source", "val_data")

    source: Positional[str | None] = None
    val_split: float = 0.1
    val_data: str | None = None

    def __post_init__(self):
        """Refuse what cannot be split.

        Raises:
            ValueError: naming the setting.
        """
        check_split(self.val_split)


class TabTask(Task):
    """Language models of guitar tablature."""

    name = "tabs"
    Data = TabData

    def check(self, config: Any) -> None:
        """Refuse a source that does not exist.

        Raises:
            ValueError: naming it.
        """
        check_no_pair_batches(config)
        source = config.data.source
        if source is not None and not Path(source).exists():
            raise ValueError(f"There is no folder {source}: name one with .txt or .tab files.")

    def prepare(self, config: Any, folder: Path | None) -> Dataset:
        """Read tabs, hold whole pieces out, and turn them into tokens.

        Raises:
            ValueError: if there are none, or too few for a window.
        """
        import torch

        from slp_transformer.data.token_file import write_token_folder
        from slp_transformer.guitar import TabTokenizer, encode_all_tabs
        from slp_transformer.guitar.tab_dataset import (
            collect_styles,
            describe_tab,
            read_train_val_tabs,
        )
        from slp_transformer.guitar.tab_tokenizer import DEFAULT_STEPS_PER_QUARTER
        from slp_transformer.tasks.loaded_run import load_tokenizer_of

        data = config.data
        train, val, skipped = read_train_val_tabs(data.source, data.val_data or data.val_split)
        warnings = [f"skipped: {problem}" for problem in skipped]
        if config.init_from is None:
            styles, remarks = collect_styles(train)
            tokenizer = TabTokenizer(
                steps_per_quarter_options=DEFAULT_STEPS_PER_QUARTER, scheme="placed", styles=styles
            )
            warnings = remarks + warnings
        else:
            tokenizer = load_tokenizer_of(Path(config.init_from))
        rows = [encode_all_tabs(part, tokenizer) for part in (train, val)]
        streams = map(torch.tensor, rows)
        made = Dataset(tokenizer, *streams, warnings, [describe_tab(tab) for tab in val])
        check_windows(made, window_of(config), None if data.val_data else data.val_split)
        if folder is None:
            return made
        content = self.tokenizer_to_json(tokenizer)
        write_token_folder(folder, content, tokenizer.vocab_size, *rows, made.val_names)
        opened = self.open(config, folder)
        return Dataset(tokenizer, opened.train, opened.val, warnings, made.val_names)

    def open(self, config: Any, folder: Path) -> Dataset:
        """Open the tokens of a run.

        Raises:
            ValueError: if they are damaged or missing.
        """
        from slp_transformer._internal.atomic_write import read_json
        from slp_transformer.data.token_file import (
            TOKENIZER_FILE,
            TRAIN_TOKENS_FILE,
            VAL_TOKENS_FILE,
            TokenStore,
        )

        if not (folder / TOKENIZER_FILE).exists():
            return self.prepare(keep_tokenizer(config, folder), folder)
        tokenizer = self.load_tokenizer(read_json(folder / TOKENIZER_FILE))
        files = TRAIN_TOKENS_FILE, VAL_TOKENS_FILE
        return Dataset(tokenizer, *(TokenStore(folder / f, tokenizer.vocab_size) for f in files))

    def sources(self, config: Any, data: Dataset) -> tuple[Any, Any]:
        """Return windows of which half begin with a piece, and the held-out stream."""
        from slp_transformer.data.batches import DocumentWindows

        return DocumentWindows(data.train, window_of(config), data.tokenizer.bos_id), data.val

    def load_tokenizer(self, content: Any) -> Any:
        """Return the tokenizer that a checkpoint holds as JSON."""
        from slp_transformer.guitar import TabTokenizer

        return TabTokenizer.from_json(content)

    def tokenizer_info(self, content: Any) -> dict[str, Any]:
        """Return how many tokens there are."""
        return {"kind": "guitar tablature", "tokens": self.load_tokenizer(content).vocab_size}

    def check_generate(self, options: Any) -> None:
        """Accept all options."""

    def session(self, run: LoadedRun, options: Any) -> Any:
        """Return what generates tabs.

        Raises:
            ValueError: if the model does not know what is asked for.
        """
        from slp_transformer.guitar import TUNINGS, Tuning
        from slp_transformer.tasks.tab_session import TabSession

        fields = {"KEY": "key", "METRE": "time_signature", "STYLE": "style"}
        header = {kind: getattr(options, name, None) for kind, name in fields.items()}
        header = {kind: value for kind, value in header.items() if value is not None}
        tuning = TUNINGS[getattr(options, "tuning", None) or "standard"]
        tuning = Tuning(tuning.open_pitches, getattr(options, "capo", None) or 0)
        return TabSession(run.tokenizer, tuning, **header)

    def evaluate(self, run: LoadedRun, options: Any) -> Report:
        """Measure the loss and bits per note; with samples, statistics of generated pieces.

        Raises:
            ValueError: if there are no tabs, or too few.
        """
        import torch

        from slp_transformer.guitar import TUNINGS, encode_all_tabs
        from slp_transformer.guitar.tab_dataset import read_tab_source
        from slp_transformer.tasks import evaluate_tabs as tabs
        from slp_transformer.tasks.base import format_table
        from slp_transformer.tasks.evaluation import loss_rows, mean_window_loss, sample, val_data
        from slp_transformer.tasks.generation_session import format_samples, samples_to_json
        from slp_transformer.tasks.tab_session import TabSession

        if options.source is None:
            stream = val_data(run).val
        else:
            tabs_read, _ = read_tab_source(options.source)
            stream = torch.tensor(encode_all_tabs(tabs_read, run.tokenizer))
        values = mean_window_loss(run, stream)
        rows = loss_rows(values)
        val = tabs.split_pieces(stream, run.tokenizer.bos_id)
        train = tabs.training_pieces(run)
        values["bits_per_note"] = tabs.bits_per_note(run, val, train)
        rows |= {f"bits per note, {n}": f"{b:.3f}" for n, b in values["bits_per_note"].items()}
        if options.samples is None:
            return Report(values, format_table(rows))
        session = self.session(run, options)
        free = TabSession(run.tokenizer, TUNINGS["standard"], constrained=False)
        groups = {
            "model": sample(session, run, options),
            "unconstrained": sample(free, run, options),
        }
        decoded = [run.tokenizer.decode(text.ids).tab for text in groups["model"]]
        shares = tabs.playable_shares(decoded)
        for what in ("events", "chords"):
            share = shares[f"playable_{what}"]
            rows[f"playable {what}"] = (
                "none generated" if share is None else f"{share:.1%} of {shares[what]:,}"
            )
        values |= shares
        values["statistics"] = tabs.compute_statistics(run.tokenizer, val, train, groups)
        values["samples"] = samples_to_json(session, groups["model"], options.seed or 0)
        parts = format_table(rows), tabs.format_statistics(values["statistics"])
        return Report(values, "\n\n".join([*parts, format_samples(session, groups["model"])]))
