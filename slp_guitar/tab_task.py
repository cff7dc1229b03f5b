"""The task of modeling guitar tablature."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from slp_guitar import TUNINGS, TabTokenizer, Tuning, encode_all_tabs
from slp_guitar.formats.registry import check_writable_suffix, find_format
from slp_guitar.fretboard import MAX_CAPO
from slp_guitar.plugin import EXTRA
from slp_guitar.tab_session import TabSession, is_music_file
from slp_guitar.theory import KEY_NAMES, TIME_SIGNATURES
from slp_transformer._internal.config_checks import OPEN_SHARE, suggest_closest_match, within
from slp_transformer._internal.plugins import Libraries
from slp_transformer._internal.settings import setting, settings
from slp_transformer.data.dataset import Dataset
from slp_transformer.data.text_files import is_stream
from slp_transformer.tasks.base import (
    EvaluateOptions,
    LoadedRun,
    Report,
    SavedRun,
    Task,
    check_windows,
)
from slp_transformer.tasks.data_settings import DataSettings, NoFlags, Positional
from slp_transformer.tasks.generation_session import GenerationSession
from slp_transformer.tasks.run_config import RunConfig


@settings
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

    source: Positional[str | None] = setting(None, no_example="a file")
    val_split: float = setting(0.1, OPEN_SHARE, example=0.3)
    val_data: str | None = setting(None, no_example="a file")


@settings
@dataclass(frozen=True)
class GenerateTabs:
    """The piece.

    Examples:
      slp-transformer generate runs/tabs --tuning drop-D --output piece.txt
      slp-transformer generate runs/tabs --prompt-file my_riff.txt --key Am
      slp-transformer generate runs/tabs --output piece.gp5     (or .mid, .musicxml, .atex)

    Attributes:
        tuning: the name of a tuning.
        capo: the capo fret.
        key: C, C#, D ... or Am ...; new notes are of its scale, in minor with the raised seventh
            too, but may suggest another key, as 45 of 72 pieces of one model did; the model chooses
            if None.
        time_signature: 3/4, 4/4, 6/8 ...; the model chooses if None.
        style: a style of the training data; the model chooses if None.
        ending: "tonic" gives a piece that breaks off, or that the model ends on another bass note
            than the tonic of its key (--key, or an estimate), its first four bars again, if there
            are eight, and two bars with a dominant seventh chord and a tonic chord, both in root
            position; "any" leaves the ending to the model.
        one_channel: write MIDI with one channel in place of one for each string.
    """

    tuning: str = setting("standard", example="drop-D")
    capo: int = setting(0, within(0, MAX_CAPO), example=3)
    key: str | None = setting(None, example="Am")
    time_signature: str | None = setting(None, example="3/4")
    style: str | None = setting(None, example="Jazz")
    ending: Literal["tonic", "any"] = setting("tonic", example="any", given={"key": "F#"})
    one_channel: bool = setting(False, no_example="of MIDI files alone")


class TabTask(Task[TabData, GenerateTabs, NoFlags]):
    """Language models of guitar tablature."""

    name = "tabs"
    Data, GenerateFlags = TabData, GenerateTabs

    def libraries(self, output: Path | None = None) -> Libraries:
        """Return what writes a file of music."""
        found = find_format(output) if output else None
        return EXTRA if found and found.library else {}

    def check(self, config: RunConfig[TabData]) -> None:
        """Refuse a source that does not exist or is a pipe.

        Raises:
            ValueError: naming it.
        """
        super().check(config)
        source, val_data = config.data.source, config.data.val_data
        if source is not None and not Path(source).exists():
            raise ValueError(f"There is no folder {source}: name one with .txt or .tab files.")
        if pipes := [path for path in (source, val_data) if path is not None and is_stream(path)]:
            raise ValueError(f"{pipes[0]} is no file or folder: tabs are not read from a pipe.")

    def prepare(self, config: RunConfig[TabData], folder: Path) -> Dataset:
        """Read tabs, hold whole pieces out, and turn them into tokens.

        Raises:
            ValueError: if there are none, or too few for a window.
        """
        from slp_guitar.tab_dataset import collect_styles, describe_tab, read_train_val_tabs
        from slp_transformer.data.token_file import write_token_folder

        data = config.data
        train, val, skipped = read_train_val_tabs(data.source, data.val_data or data.val_split)
        warnings = [f"skipped: {problem}" for problem in skipped]
        tokenizer = self.initial_tokenizer(config)
        if tokenizer is None:
            styles, remarks = collect_styles(train)
            tokenizer = TabTokenizer(styles=styles)
            warnings = remarks + warnings
        names = [describe_tab(tab) for tab in val]
        train_ids, val_ids = (encode_all_tabs(part, tokenizer) for part in (train, val))
        made = Dataset(tokenizer, train_ids, val_ids)
        check_windows(made, config.window(), None if data.val_data else data.val_split)
        write_token_folder(folder, tokenizer, train_ids, val_ids, names)
        return replace(self.open(config, folder), warnings=warnings, val_names=names)

    def sources(self, config: RunConfig[TabData], data: Dataset) -> tuple[Any, Any]:
        """Return windows of which half begin with a piece, and the held-out stream."""
        from slp_transformer.data.batches import DocumentWindowSource

        return DocumentWindowSource(data.train, config.window(), data.tokenizer.bos_id), data.val

    def load_tokenizer(self, content: Any) -> Any:
        """Return the tokenizer that a checkpoint holds as JSON."""
        return TabTokenizer.from_json(content)

    def check_generate(self, run: SavedRun, output: Path | None, flags: GenerateTabs) -> None:
        """Refuse a tuning, key or time signature that is not known, and files of another kind.

        Raises:
            ValueError: naming the first one, and what is nearest.
        """
        time_signatures = [f"{beats}/{unit}" for beats, unit in TIME_SIGNATURES]
        known = {"tuning": TUNINGS, "key": KEY_NAMES, "time-signature": time_signatures}
        for flag, choices in known.items():
            value = getattr(flags, flag.replace("-", "_"))
            if value is not None and value not in choices:
                raise ValueError(
                    f'--{flag} has no choice "{value}": {suggest_closest_match(value, choices)}'
                )
        if output is not None:
            is_music_file(output)
        if flags.one_channel:
            check_writable_suffix(output or "standard output", one_channel=True)

    def session(self, run: LoadedRun, flags: GenerateTabs) -> GenerationSession:
        """Return what generates tabs.

        Raises:
            ValueError: if the model does not know what is asked for.
        """
        header = {"KEY": flags.key, "METRE": flags.time_signature, "STYLE": flags.style}
        known = {kind: value for kind, value in header.items() if value is not None}
        tuning = Tuning(TUNINGS[flags.tuning].open_pitches, flags.capo)
        session = TabSession(run.tokenizer, tuning, known)
        session.kept_tokens = 20 if flags.ending == "tonic" else 0
        session.one_channel = flags.one_channel
        return session

    def evaluate(self, run: LoadedRun, options: EvaluateOptions[NoFlags]) -> Report:
        """Measure the loss and bits per note; with samples, statistics of generated pieces.

        Raises:
            ValueError: if there are no tabs, or too few.
        """
        import torch

        from slp_guitar import tab_evaluation as tabs
        from slp_guitar.tab_dataset import read_tab_source
        from slp_transformer.tasks import evaluation

        if options.source is None:
            stream = evaluation.open_run_data(run).val
        else:
            found, _ = read_tab_source(options.source)
            stream = torch.tensor(encode_all_tabs(found, run.tokenizer))
        values = evaluation.compute_window_metrics(run, stream)
        val = tabs.split_stream_into_pieces(stream, run.tokenizer.bos_id)
        train = tabs.load_training_pieces(run)
        values["bits_per_note"] = tabs.compute_bits_per_note(run, val, train)
        table = evaluation.format_table(evaluation.format_rows(values))
        if options.samples is None:
            return Report(values, table)
        session = self.session(run, GenerateTabs(ending="any"))
        free = TabSession(run.tokenizer, TUNINGS["standard"], constrained=False)
        groups = {
            "model": evaluation.generate_samples(session, run, options),
            "unconstrained": evaluation.generate_samples(free, run, options),
        }
        statistics = tabs.compute_statistics(run.tokenizer, val, train, groups)
        text = f"{table}\n\n{tabs.format_statistics(statistics)}"
        report = Report(values | {"statistics": statistics}, text)
        return evaluation.add_samples_to_report(report, run, session, groups["model"], options.seed)
