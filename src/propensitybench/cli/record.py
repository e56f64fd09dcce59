"""``propensitybench record``: records of runs for others."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.cli.output import print_note
from propensitybench.cli.text import must_be_utf8, write_new
from propensitybench.errors import BadInput
from propensitybench.records.every_eval_ever import Relationship, Submitter, datastore_folders, write_record
from propensitybench.records.facts import facts
from propensitybench.records.sheets import ASKED, Sheet, sheet
from propensitybench.runs import Run
from propensitybench.runs.read import runs_in

Kind = Literal["every-eval-ever", "checklist", "model-card", "bibtex"]


def command(
    files: options.RunPaths,
    kind: Annotated[
        Kind,
        typer.Option(
            "--as",
            help="Every Eval Ever (JSON in its schema), a reporting checklist, a section and metadata "
            "for a model card, or BibTeX.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="PATH",
            help="File that does not exist yet; default: standard output. For Every Eval Ever the folder "
            "that contains, or will contain, its folder `data`.",
        ),
    ] = None,
    organization: Annotated[
        str | None, typer.Option("--organization", help="For Every Eval Ever: who ran the evaluation.")
    ] = None,
    relationship: Annotated[
        Relationship | None,
        typer.Option(
            "--relationship",
            help="For Every Eval Ever: of that organization to the model; first_party made it.",
        ),
    ] = None,
    model_id: Annotated[
        str | None,
        typer.Option(
            "--model-id",
            metavar="DEVELOPER/NAME",
            help="For Every Eval Ever: the model, as on the Hugging Face Hub. Default: its address.",
        ),
    ] = None,
    instances: Annotated[
        bool,
        typer.Option(
            "--instances/--no-instances",
            help="For Every Eval Ever: also write a record of each scored task, with its conversation.",
        ),
    ] = True,
) -> None:
    given = {"--organization": organization, "--relationship": relationship, "--model-id": model_id}
    must_be_utf8({name: value for name, value in given.items() if value is not None})
    if kind != "every-eval-ever":
        for name, value in given.items():
            if value is not None:
                raise BadInput(f"{name}: only applies with --as every-eval-ever")
        _print_sheet(runs_in(files), kind, out)
        return
    if not (organization or "").strip() or relationship is None:
        raise BadInput(
            "--as every-eval-ever: needs --organization NAME and --relationship first_party, third_party, "
            "collaborative or other: a run file does not say who made it"
        )
    if out is None:
        raise BadInput("--as every-eval-ever: needs --out DIR, the folder for its folder `data`")
    by = Submitter((organization or "").strip(), relationship, (model_id or "").strip())
    _write_records(runs_in(files), by, out, instances=instances)


def _print_sheet(runs: Sequence[Run], kind: Sheet, out: Path | None) -> None:
    if len(runs) > 1 and kind != "bibtex":
        raise BadInput(f"--as {kind}: is about one run, found {len(runs)}; call it once for each")
    text, asked = sheet(kind, [facts(run) for run in runs])
    if out is None:
        print(text, end="")
        return
    write_new(out, text)
    print(f"{out}: {asked} places need a person: search for [{ASKED}")


def _write_records(runs: Sequence[Run], by: Submitter, out: Path, *, instances: bool) -> None:
    if out.exists() and not out.is_dir():
        raise BadInput(f"--out {out}: is a file; give a folder")
    if by.model_id and len({run.model for run in runs}) > 1:
        raise BadInput("--model-id: is one model, but the runs are of several; call it once for each model")
    for run in runs:  # nothing is written if one of them cannot be
        datastore_folders(by.model_id or run.model)
    created = int(datetime.now(UTC).timestamp())
    for run in runs:
        if instances and not run.has_transcripts:
            print_note(
                f"note: {run.file}: Inspect logs are read without conversations, so no instance records"
            )
        written = write_record(facts(run), by, out, created, instances=instances and run.has_transcripts)
        rows = "" if written.instances is None else f", {written.instances} instance records"
        left = f"; {written.unscored} tasks without a score have none" if rows and written.unscored else ""
        print(f"{written.path}: {written.results} results{rows}{left}")
