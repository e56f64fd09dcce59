"""``propensitybench generate read``: the reading panel."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import options, tables
from propensitybench.cli.execution import EXIT
from propensitybench.cli.generate_write import settings_of
from propensitybench.cli.output import print_note
from propensitybench.cli.text import must_be_utf8, print_json
from propensitybench.cli.waiting import result_until_stopped
from propensitybench.clients import Client
from propensitybench.engine import client_for
from propensitybench.errors import BadInput
from propensitybench.files import file_name
from propensitybench.generation.journal import ReplyJournal
from propensitybench.generation.panel import (
    MIN_READERS,
    PanelRequest,
    ReaderNote,
    Round,
    check_forms_folder,
    finish_round,
    open_round,
    output_folder,
    read_people,
    texts_by_writer,
)
from propensitybench.generation.panel_forms import CRITERIA, form_files, write_forms
from propensitybench.generation.panel_items import DRAWN, Draw
from propensitybench.generation.panel_models import ModelReadings, PanelReader, read_with
from propensitybench.generation.panel_scores import PanelScores, ScoreSpread, panel_limits, returned
from propensitybench.generation.workfolder import JOURNAL, RETURNED
from propensitybench.presentation.formats import NOTHING
from propensitybench.presentation.progress import Bar
from propensitybench.runs.settings import Settings
from propensitybench.simulated import PREFIX as SIMULATED

NOT_DONE: Final = 1
PERSON: Final = "person"

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
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder of the panel, if WORK is a data set. Default: WORK."),
]


@options.takes(
    "ladder",
    "base_url",
    "temperature",
    "max_tokens",
    "concurrency",
    "timeout",
    "max_retries",
    "rpm",
    "tpm",
    concurrency="Requests in flight.  [default: 8]",
)
def command(
    work: Work,
    judge: Judges = None,
    forms: Forms = None,
    draw: Drawn = 24,
    known: Known = None,
    known_draw: KnownDrawn = 8,
    seed: options.Seed = 0,
    out: Out = None,
    *,
    settings: Settings,
    as_json: options.AsJson = False,
) -> None:
    """Have scenarios and their messages read and scored by models or people who don't know their source."""
    must_be_utf8({"WORK": work, "--out": out, "--forms": forms})
    spec, execution = settings_of("", settings, 8)
    drawn = Draw(draw, known_draw, seed, spec.protocol.ladder)
    request = PanelRequest(work, tuple(known or ()), drawn, output_folder(work, out))
    for model in judge or ():
        if model.startswith(SIMULATED):
            raise BadInput(f"--judge {model}: a simulated model plays tasks and cannot read")
    judges = [client_for(model, spec.options, execution.transport) for model in judge or ()]
    raise typer.Exit(read_panel(request, judges, forms, as_json=as_json))


def read_panel(request: PanelRequest, judges: Sequence[Client], forms: Path | None, *, as_json: bool) -> int:
    """Reads a round with models and forms, and prints its scores; the exit code.

    Args:
        request: what to read.
        judges: the models.
        forms: folder of forms, which are written if there are none.
        as_json: whether to print JSON.
    """
    readers = [PanelReader(f"judge-{index + 1}", index, client) for index, client in enumerate(judges)]
    filled = forms is not None and check_forms_folder(forms, request.out)
    if forms is None or filled:
        people = len(form_files(forms)) if forms is not None else 0
        if len(readers) + people < MIN_READERS:
            raise BadInput(
                f"a panel needs {MIN_READERS} readers or more, found {len(readers) + people}: give "
                "--judge twice, or --forms DIR"
            )
    found = open_round(request)
    _note_draw(found, request)
    if forms is not None and not filled:
        write_forms(forms, found.items, MIN_READERS)
        print(f"{len(found.items)} items and {MIN_READERS} forms: {file_name(forms)}")
        print("Have each form filled in by one person alone, then type the same command again.")
        return 0
    readings = {} if forms is None else read_people(found, forms)
    if taken := readings.keys() & {reader.name for reader in readers}:
        raise BadInput(f"--forms {forms}: rename the form {min(taken)}.csv; a model has that name")
    who = {name: ReaderNote(PERSON) for name in readings}
    if readers:
        read = _read_models(found, readers, request.out)
        if read.stop.cause is not None or read.failures:
            why = (
                read.stop.reason
                or f"{read.failures} requests had no reply, the last one: {read.last_failure}"
            )
            print_note(f"stopped: {why}")
            print_note("the replies so far are kept; the same command resumes the round")
            return NOT_DONE if read.stop.cause is None else EXIT[read.stop.cause]
        readings |= read.readings
    who |= {reader.name: _note_of(reader, request) for reader in readers}
    scores = finish_round(found, readings, who)
    _print(found, scores, who, as_json=as_json)
    return 0 if scores.passed else NOT_DONE


def _note_of(reader: PanelReader, request: PanelRequest) -> ReaderNote:
    model = reader.client.model
    if wrote := texts_by_writer(request.work)[model]:
        print_note(
            f"note: {reader.name} ({model}) wrote {wrote} of the texts; take a reader who wrote none of them"
        )
    return ReaderNote(model, reader.index, wrote)


def _note_draw(found: Round, request: PanelRequest) -> None:
    drawn = [item for item in found.items if item.source == DRAWN]
    if len(drawn) < request.draw.drawn:
        print_note(
            f"note: {file_name(request.work)} has only {len(drawn)} scenarios, and all of them are read"
        )
    if not request.known:
        print_note(
            "note: nothing of known quality is mixed in, so there is nothing to compare with; see --known"
        )
    if silent := sum(not item.has_messages for item in drawn):
        print_note(
            f"note: {silent} of the {len(drawn)} drawn scenarios have no messages, since no storyline suits"
        )


def _read_models(found: Round, readers: Sequence[PanelReader], out: Path) -> ModelReadings:
    with ReplyJournal(out / JOURNAL) as journal, Bar("readings", keep=True) as bar:
        done, total = count(1), len(readers) * len(found.items)
        return result_until_stopped(
            lambda stop: read_with(readers, found, journal, lambda: bar.count(next(done), total), stop)
        )


def _print(found: Round, scores: PanelScores, who: Mapping[str, ReaderNote], *, as_json: bool) -> None:
    back = returned(scores, panel_limits())
    if as_json:
        about = {"folder": file_name(found.folder), "round": found.number, "who": who, "returned": back}
        print_json({**about, **msgspec.structs.asdict(scores)})
        return
    title = f"Round {found.number}: means (standard deviations)"
    tables.show(tables.table(title, ("source", "reader", *CRITERIA), _means(scores, who), names=2))
    tables.show(_verdicts(scores))
    for reader, number in scores.missing.items():
        if number:
            print(f"{reader}: {number} scores are missing")
    print(f"The panel has {'passed' if scores.passed else 'not passed'}. Scores: {file_name(found.folder)}")
    if back:
        print(f"{len(back)} texts go back to the writer ({RETURNED}): {', '.join(back)}")


def _means(scores: PanelScores, who: Mapping[str, ReaderNote]) -> Iterator[Sequence[str]]:
    for source, spreads in scores.sources.items():
        for reader, of_reader in scores.readers[source].items():
            yield source, f"{reader} ({who[reader].model})", *map(_spread, of_reader.values())
        yield source, "all", *map(_spread, spreads.values())
        yield ()
    for scale in ("ordinal", "interval"):
        yield "alpha", scale, *(_number(getattr(scores.alpha[name], scale)) for name in CRITERIA)


def _verdicts(scores: PanelScores) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Limits", title_justify="left")
    for title in ("criterion", "limit", "found", "kept", "items"):
        table.add_column(title, justify="right" if title == "found" else "left", overflow="fold")
    for verdict in scores.verdicts:
        criterion = f"{verdict.criterion} {CRITERIA[verdict.criterion]}"
        kept = "yes" if verdict.passed else "NO"
        items = ", ".join(verdict.items)
        table.add_row(criterion, verdict.rule, _number(verdict.value), kept, items)
    return table


def _spread(spread: ScoreSpread) -> str:
    return f"{_number(spread.mean)} ({_number(spread.sd)})" if spread.n else NOTHING


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"
