"""The file in which everything stands that was answered about a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from propensitybench.runs import Run, ShardedRun, StoredRun
from propensitybench.store import RunFile, merge


@contextmanager
def annotated_file(run: Run) -> Iterator[Path | None]:
    """A file with all that was answered about a run; None if nothing was."""
    if isinstance(run, StoredRun) and _is_annotated(run.path):
        yield run.path
    elif isinstance(run, ShardedRun) and any(map(_is_annotated, run.paths)):
        with TemporaryDirectory() as folder:
            merge(run.paths, merged := Path(folder, "merged.run"))
            yield merged
    else:
        yield None


def _is_annotated(path: Path) -> bool:
    with RunFile.open(path) as file:
        return file.count("annotation") > 0
