"""``propensitybench generate read``: the reading panel."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.clients.options import Transport
from propensitybench.runs.resolve import read_settings
from propensitybench.runs.settings import Settings

Work = Annotated[
    Path, typer.Argument(metavar="WORK", help="A working folder, or a data set.", show_default=False)
]
Judges = Annotated[
    list[str] | None,
    typer.Option("--judge", metavar="MODEL", help="A model that reads; give two or more."),
]
Forms = Annotated[
    Path | None,
    typer.Option(
        "--forms",
        metavar="DIR",
        help="Forms for people: written if the folder is empty, otherwise read as they are filled in.",
    ),
]
Drawn = Annotated[int, typer.Option("--draw", min=1, help="Items to draw.")]
Known = Annotated[
    list[Path] | None,
    typer.Option(
        "--known", metavar="DIR", help="Data set of known quality, to mix with the items; may be repeated."
    ),
]
KnownDrawn = Annotated[
    int, typer.Option("--known-draw", min=1, help="Items of known quality to draw, over all --known.")
]
RoundNumber = Annotated[
    int | None,
    typer.Option("--round", min=1, help="Default: the last round if it is unfinished, else the next."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder of the panel, if WORK is a data set. Default: WORK."),
]
Batch = Annotated[int, typer.Option("--batch", min=1, max=8, help="Items in a request.")]


@options.takes(
    "base_url",
    "temperature",
    "max_tokens",
    *options.settings_of(Transport),
    concurrency="Requests in flight for each judge.  [default: 8]",
)
def command(
    work: Work,
    settings: Settings,
    judge: Judges = None,
    forms: Forms = None,
    draw: Drawn = 24,
    known: Known = None,
    known_draw: KnownDrawn = 8,
    round_: RoundNumber = None,
    seed: options.Seed = 0,
    out: Out = None,
    batch: Batch = 1,
    as_json: options.AsJson = False,
) -> None:
    """Have scenarios and their messages read and scored by models or people who don't know their source."""
    from propensitybench.cli.panel import read_panel
    from propensitybench.cli.text import must_be_utf8
    from propensitybench.generation.items import Draw
    from propensitybench.generation.panel import PanelRequest, output_folder

    must_be_utf8({"WORK": work, "--out": out, "--forms": forms})
    settings = Settings(**{"concurrency": 8, **settings})
    drawn = Draw(draw, known_draw, seed)
    request = PanelRequest(work, tuple(known or ()), drawn, output_folder(work, out), round_)
    judges = []
    for model in judge or ():
        spec, execution = read_settings(model, settings)
        judges.append((model, spec.options, execution.transport))
    raise typer.Exit(read_panel(request, judges, forms, batch, as_json=as_json))
