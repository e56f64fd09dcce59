"""``propensitybench record``: records of runs for others."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.errors import BadInput

Kind = Literal["every-eval-ever", "stream", "nist", "model-card", "bibtex"]


def command(
    files: options.RunPaths,
    kind: Annotated[
        Kind,
        typer.Option(
            "--as",
            help="Every Eval Ever (JSON in its schema), a STREAM-style sheet, a NIST-style summary, "
            "a section and metadata for a model card, or BibTeX.",
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
        Literal["first_party", "third_party", "collaborative", "other"] | None,
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
    from propensitybench.cli.reading import read
    from propensitybench.cli.recording import print_sheet, write_records
    from propensitybench.cli.text import must_be_utf8
    from propensitybench.records.every_eval_ever import Submitter

    given = {"--organization": organization, "--relationship": relationship, "--model-id": model_id}
    must_be_utf8({name: value for name, value in given.items() if value is not None})
    if kind != "every-eval-ever":
        for name, value in given.items():
            if value is not None:
                raise BadInput(f"{name}: goes with --as every-eval-ever")
        print_sheet(read(files), kind, out)
        return
    if not (organization or "").strip() or relationship is None:
        raise BadInput(
            "--as every-eval-ever: needs --organization NAME and --relationship first_party, third_party, "
            "collaborative or other: a run file does not say who made it"
        )
    if out is None:
        raise BadInput("--as every-eval-ever: needs --out DIR, the folder for its folder `data`")
    by = Submitter((organization or "").strip(), relationship, (model_id or "").strip())
    write_records(read(files), by, out, int(datetime.now(UTC).timestamp()), instances=instances)
