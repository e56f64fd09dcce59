"""Writes the records that ``propensitybench record`` is asked for."""

from collections.abc import Sequence
from pathlib import Path

from propensitybench.cli.output import tell, write_new
from propensitybench.cli.text import safe
from propensitybench.errors import BadInput
from propensitybench.records.every_eval_ever import Submitter, datastore_folders, write_record
from propensitybench.records.facts import facts
from propensitybench.records.sheets import ASKED, Sheet, sheet
from propensitybench.runs import Run


def print_sheet(runs: Sequence[Run], kind: Sheet, out: Path | None) -> None:
    """Prints a record that is a text, or writes it to a new file."""
    if len(runs) > 1 and kind != "bibtex":
        raise BadInput(f"--as {kind}: is about one run, found {len(runs)}; call it once for each")
    text, asked = sheet(kind, [facts(run) for run in runs])
    if out is None:
        print(text, end="")
        return
    write_new(out, text)
    print(f"{safe(str(out))}: {asked} places need a person: search for [{ASKED}")


def write_records(runs: Sequence[Run], by: Submitter, out: Path, created: int, *, instances: bool) -> None:
    """Writes the Every Eval Ever records of runs, and prints what each file holds."""
    if out.exists() and not out.is_dir():
        raise BadInput(f"--out {out}: is a file; give a folder")
    if by.model_id and len({run.model for run in runs}) > 1:
        raise BadInput("--model-id: is one model, but the runs are of several; call it once for each model")
    for run in runs:  # nothing is written if one of them cannot be
        datastore_folders(by.model_id or run.model)
    for run in runs:
        if instances and not run.has_transcripts:
            tell(f"note: {run.file}: Inspect logs are read without conversations, so no instance records")
        written = write_record(facts(run), by, out, created, instances=instances and run.has_transcripts)
        rows = "" if written.instances is None else f", {written.instances} instance records"
        left = f"; {written.unscored} tasks without a score have none" if rows and written.unscored else ""
        print(f"{safe(str(written.path))}: {written.results} results{rows}{left}")
