"""Writes every record that has a validator, for `validate_records.py`; part of ``make records``."""

import shutil
import sys
from pathlib import Path

from helpers.program import call
from records.sample_runs import evil_run, partial_run, stopped_run, whole_run

from propensitybench.inspect_adapter.eval_export import export_logs
from propensitybench.store import RunFile

WHO = ("--organization", 'A "safety" institute', "--relationship", "third_party")
SHEETS = {"model-card": "md", "bibtex": "bib"}


def record(*arguments: str | Path) -> None:
    """Calls ``propensitybench record``; ends the program if it fails."""
    done = call("record", *arguments)
    if done.code:
        sys.exit(done.err)


def main(out: Path) -> None:
    """Writes to a folder, which is emptied first."""
    shutil.rmtree(out, ignore_errors=True)
    runs = out / "runs"
    runs.mkdir(parents=True)
    paths = [
        whole_run(runs / "whole.run"),
        partial_run(runs / "partial.run"),
        evil_run(runs / "evil.run"),
        stopped_run(runs / "stopped.run"),
    ]
    with RunFile.open(paths[0]) as run:
        export_logs(run, runs / "logs")
    for path in (*paths, runs / "logs"):
        named = ("--model-id", "a-lab/its model: 2") if path.stem == "evil" else ()
        record(path, "--as", "every-eval-ever", "--out", out / "eee" / path.stem, *WHO, *named)
        for kind, suffix in SHEETS.items():
            record(path, "--as", kind, "--out", out / f"{path.stem}.{kind}.{suffix}")
    record(*paths, "--as", "bibtex", "--out", out / "all.bibtex.bib")
    done = call("data", "export", "--layout", "own", "--out", out / "data")
    done = done if done.code else call("data", "croissant", "--out", out / "data" / "croissant.json")
    if done.code:
        sys.exit(done.err)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
