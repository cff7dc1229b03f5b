"""Every setting of the guitar acts: its example changes a tab that is printed, drawn or split."""

from dataclasses import MISSING
from pathlib import Path

import pytest

from slp_guitar import TabTokenizer, make_practice_corpus, write_tab
from slp_guitar.commands.song_options import ConvertOptions, FitOptions, SongOptions, TabOptions
from slp_guitar.tab_task import GenerateTabs, TabData, TabTask
from slp_transformer._internal.settings import DECLARED, settings_of
from slp_transformer.cli import main
from slp_transformer.tasks.base import LoadedRun
from slp_transformer.tasks.run_config import ModelSettings, RunConfig
from slp_transformer.training.train_config import TrainConfig

mido = pytest.importorskip("mido", reason="MIDI files need the guitar extra")


def fingered(folder, capsys, **changes):
    """What `tab` prints, or says, of two tracks on channels of their own."""
    melody, bass = ((64, 67, 71, 62, 76, 79), (48, 52))
    file = mido.MidiFile(ticks_per_beat=480)
    for channel, pitches in enumerate((melody, bass)):
        track = mido.MidiTrack()
        for pitch in pitches:
            for kind, ticks in (("note_on", 0), ("note_off", 240)):
                for interval, each in ((0, ticks), (-7, 0)):
                    how = {"note": pitch + interval, "time": each, "channel": channel}
                    track.append(mido.Message(kind, **how))
        file.tracks.append(track)
    file.save(folder / "two.mid")
    words = []
    for name, value in changes.items():
        flag = f"--{name.replace('_', '-')}"
        for each in value if isinstance(value, tuple) else (value,):
            words += [flag] if each is True else [flag, str(each)]
    return main(["tab", str(folder / "two.mid"), *words]), capsys.readouterr()


def drawn(folder, capsys, **changes):
    """The first notes that are allowed, and what follows if they are all."""
    tokenizer = TabTokenizer(styles=("Blues", "Jazz"))
    run = LoadedRun(TabTask(), Path("run"), model=None, tokenizer=tokenizer)
    session = TabTask().session(run, GenerateTabs(**changes))
    ids = session.begin(None)
    while len(ids) < 40 and (allowed := session.allowed(ids)):
        ids.append(min(allowed, key=lambda i: (session.kinds[i] != "TAB", i)))
    return session.render(ids), session.reopen([*ids, tokenizer.eos_id])


def split(folder, capsys, **changes):
    if not (folder / "tabs").exists():
        (folder / "tabs").mkdir()
        for number, tab in enumerate(make_practice_corpus(seed=3, num_pieces=9)):
            write_tab(tab, folder / "tabs" / f"{number}.txt")
    config = RunConfig(
        TabData(str(folder / "tabs"), **changes),
        ModelSettings(context_length=9),
        TrainConfig(steps=1),
    )
    return TabTask().prepare(config, folder).val_names


COMPUTED = {
    TabOptions: fingered,
    GenerateTabs: drawn,
    TabData: split,
    **dict.fromkeys((SongOptions, ConvertOptions, FitOptions)),  # those of the first, or none
}


@pytest.mark.parametrize(
    ("made", "name", "about"),
    [
        pytest.param(made, name, about, id=f"{made.__name__}.{name}")
        for made, compute in COMPUTED.items()
        for name, about in settings_of(made).items()
        if compute and about.example is not MISSING
    ],
)
def test_the_example_of_a_setting_changes_what_is_computed(made, name, about, tmp_path, capsys):
    usual = COMPUTED[made](tmp_path, capsys, **about.given)
    assert COMPUTED[made](tmp_path, capsys, **about.given | {name: about.example}) != usual


def test_every_class_of_settings_takes_part():
    assert {*COMPUTED} == {made for made in DECLARED if made.__module__.startswith("slp_guitar")}
