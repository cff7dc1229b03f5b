"""What the guitar adds. Names only: nothing here is imported before it is used."""

from slp_transformer._internal.plugins import CheckFlag, Command, Plugin, TaskEntry

HERE = "slp_guitar"
EXTRA = {"slp-transformer[guitar]": ("tyro", "mido", "guitarpro")}
PLUGIN = Plugin(
    tasks={
        "tabs": TaskEntry(
            f"{HERE}.tab_task:TabTask", ("train tabs --out-dir runs/tabs", "guitar tabs")
        )
    },
    commands={
        "tab": Command(
            f"{HERE}.commands.song_options:TabOptions",
            f"{HERE}.commands.tab:execute",
            ("tab song.mid", "guitar tab that can be played"),
            EXTRA,
            any_bytes=True,
            loads_torch=False,
        ),
        "fit-costs": Command(
            f"{HERE}.commands.song_options:FitOptions",
            f"{HERE}.commands.fit_costs:execute",
            ("fit-costs my-tabs -o costs.json", "what `tab` decides by, from your tabs"),
            EXTRA,
            any_bytes=True,
        ),
        "convert": Command(
            f"{HERE}.commands.song_options:ConvertOptions",
            f"{HERE}.commands.convert:execute",
            ("convert song.gp5 -o song.musicxml", "guitar music as another kind of file"),
            EXTRA,
            any_bytes=True,
            loads_torch=False,
        ),
    },
    checks=(f"{HERE}.checks",),
    check_flags={
        "tabs": CheckFlag(
            f"{HERE}.own_tabs:begin_lesson",
            "my_tab.mid",
            "learns the tabs of chapter 12, and writes a piece to play (default: my_tab.mid)",
        )
    },
    presets=HERE,
    models={"guitar": f"{HERE}:model"},
)
