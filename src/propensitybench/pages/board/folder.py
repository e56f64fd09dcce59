"""The board's folder: adds runs to it, takes runs from it, and checks what it keeps."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from propensitybench.errors import BadData, BadInput, UnknownName
from propensitybench.escaping import json_document
from propensitybench.files import MIB, file_name, open_regular, read_file, read_text
from propensitybench.pages.board.page import render_board
from propensitybench.pages.board.standings import (
    Board,
    Signed,
    as_csv,
    report_folder,
    standings,
    summary_file,
    table_rows,
)
from propensitybench.pages.board.summary import (
    ROW_ID,
    RunSummary,
    contradict,
    decode,
    encode,
    finished,
    summarise_run,
)
from propensitybench.pages.page_folder import BOARD, files_below, new_folder
from propensitybench.pages.page_write import write_report
from propensitybench.pages.publishing import PublishableRun
from propensitybench.pages.transcripts import TranscriptChoice
from propensitybench.presentation.progress import OnStage, Stage, shown_stages
from propensitybench.runs import ComparableRuns, Run
from propensitybench.runs.read import Runs, runs_of
from propensitybench.simulated import PREFIX
from propensitybench.tabular import Tabular

# In the format of sha256sum, which can check the folder: `sha256sum --check SHA256SUMS`.
SUMS: Final = "SHA256SUMS"
MAX_BYTES: Final = 64 * MIB
# From the folder of a report.
BACK: Final = "../../index.html"
_LINE: Final = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True, repr=False)
class WrittenBoard(Tabular):
    """A written board; its table has one row for each run and naming.

    Attributes:
        page: its path.
        board: what it shows.
        added, replaced, removed: names of rows.
        sha256: digest of the file ``SHA256SUMS``, and so of everything in the folder.
    """

    page: Path
    board: Board
    added: list[str]
    replaced: list[str]
    removed: list[str]
    sha256: str

    def rows(self) -> list[dict[str, Any]]:
        """The rows of ``board.csv``."""
        return table_rows(self.board)

    def to_dict(self) -> dict[str, Any]:
        """What ``propensitybench board --json`` prints."""
        ids = [row.run.id for section in self.board.versions for row in section.rows]
        return {"page": file_name(self.page), "runs": ids, **self._changes(), "sha256": self.sha256}

    def _changes(self) -> dict[str, list[str]]:
        return {"added": self.added, "replaced": self.replaced, "removed": self.removed}

    def __repr__(self) -> str:
        number = sum(len(section.rows) for section in self.board.versions)
        done = (f"{len(names)} {what}" for what, names in self._changes().items() if names)
        what = ", ".join(done) or "none changed"
        return f"{self.page}: {number} {'run' if number == 1 else 'runs'} ({what})"


def board(
    runs: Runs,
    folder: str | os.PathLike[str],
    *,
    remove: Sequence[str] = (),
    transcripts: TranscriptChoice = "none",
    figures: bool = True,
    on_progress: OnStage | None = None,
) -> WrittenBoard:
    """Makes a board, or adds runs to the one that is there and removes runs from it.

    Args:
        runs: one or more, or their files or folders; a run that is on the board already replaces its own row.
        folder: does not exist yet, is empty, or holds a board.
        remove: models, or ids of runs, to take off first.
        transcripts: which transcripts the new reports have: ``all``, ``failed`` or ``none``.
        figures: whether the new reports have figures.
        on_progress: is told each stage; None shows a bar in a terminal or a notebook.

    Raises:
        BadInput: the folder cannot be used, something in it was changed, a run cannot be added, or there is
            no such run to remove.
    """
    given, out = runs_of(runs), Path(folder)
    with new_folder(out, BOARD) as draft:
        old = _Old.read(out)
        gone = _chosen(old.summaries, remove, out)
        kept = {key: one for key, one in old.summaries.items() if key not in gone}
        new = _summaries(given, kept)
        if not (given or remove or old.summaries):
            raise BadInput(f"--out {out}: holds no board; give a run")
        summaries = {**kept, **{key: one for key, (_, one) in new.items()}}
        signed = [_write_summary(draft, one) for one in summaries.values()]
        for identity in kept:
            if identity not in new:
                old.copy_report(identity, draft)
        reports = [
            (PublishableRun(run), draft / report_folder(identity)) for identity, (run, _) in new.items()
        ]
        _write_reports(reports, transcripts, figures=figures, on_progress=on_progress)
        made = standings(signed)
        (draft / "board.json").write_text(json_document(made) + "\n", encoding="utf-8", newline="\n")
        (draft / "board.csv").write_text(as_csv(made), encoding="utf-8", newline="")
        (draft / "index.html").write_text(render_board(made), encoding="utf-8", newline="\n")
        sums = "".join(f"{_sha256(draft / name)}  {name}\n" for name in sorted(files_below(draft)))
        (draft / SUMS).write_text(sums, encoding="utf-8", newline="\n")
        if _Old.sums_text(out) != old.text:
            raise BadInput(f"--out {out}: another program has changed the board meanwhile; try again")
    return WrittenBoard(
        out / "index.html",
        made,
        [one.run.model for key, (_, one) in new.items() if key not in kept],
        [one.run.model for key, (_, one) in new.items() if key in kept],
        [old.summaries[key].run.model for key in gone],
        hashlib.sha256(sums.encode()).hexdigest(),
    )


def _write_reports(
    reports: Sequence[tuple[Run, Path]],
    transcripts: TranscriptChoice,
    *,
    figures: bool,
    on_progress: OnStage | None,
) -> None:
    """Writes the report of each run into its folder."""
    with shown_stages("board", on_progress) as tell:
        for number, (run, folder) in enumerate(reports):
            comparable, told = ComparableRuns([run], []), _one_of(len(reports), number, tell)
            write_report(comparable, folder, transcripts, figures=figures, board=BACK, on_progress=told)


def _one_of(count: int, before: int, tell: OnStage) -> OnStage:
    """Tells the stages of one report among several."""

    def told(stage: Stage) -> None:
        what = f"report {before + 1} of {count}, {stage.what}"
        tell(stage._replace(what=what, share=(before + (stage.fraction or 0.0)) / count))

    return told


def _summaries(runs: Sequence[Run], kept: Mapping[str, RunSummary]) -> dict[str, tuple[Run, RunSummary]]:
    """The summaries of runs, by id."""
    found: dict[str, tuple[Run, RunSummary]] = {}
    for run in runs:
        summary = summarise_run(run)
        identity = summary.run.id
        if identity in found:
            raise BadInput(
                f"{found[identity][0].file} and {run.file}: are the same run, or were created with the same "
                "settings in the same second; give one of them"
            )
        if identity in kept and contradict(kept[identity], summary):
            raise BadInput(
                f"{run.file}: was created with the same settings and in the same second as {identity} on the "
                "board, and tasks ended differently; take that one off with --remove first"
            )
        if identity in kept and finished(summary) < finished(kept[identity]):
            raise BadInput(
                f"{run.file}: has {finished(summary)} finished tasks, and {finished(kept[identity])} are on "
                f"the board; give the newer file, or take the row off with --remove {identity} first"
            )
        found[identity] = run, summary
    return found


def _chosen(summaries: Mapping[str, RunSummary], names: Iterable[str], out: Path) -> list[str]:
    """The ids of the runs to remove."""
    known = {key: (key, one.run.model, one.run.model.removeprefix(PREFIX)) for key, one in summaries.items()}
    chosen: dict[str, None] = {}
    for name in names:
        matching = [key for key, own in known.items() if name in own]
        if not matching:
            raise UnknownName(
                "run", name, sorted({*known, *(own[1] for own in known.values())}), f"--out {out}"
            )
        chosen |= dict.fromkeys(matching)
    return list(chosen)


def _write_summary(folder: Path, summary: RunSummary) -> Signed:
    path, raw = folder / summary_file(summary.run.id), encode(summary)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(raw)
    return Signed(summary, hashlib.sha256(raw).hexdigest())


class _Old(NamedTuple):
    """The board that is there.

    Attributes:
        out: its folder.
        text: its file of digests; empty without a board.
        digests: digest of each file, by its path.
        summaries: by the id of the run.
    """

    out: Path
    text: str
    digests: dict[str, str]
    summaries: dict[str, RunSummary]

    @staticmethod
    def sums_text(out: Path) -> str:
        """The file of digests."""
        path = out / SUMS
        if not (out / BOARD.marker).exists():
            return ""
        return read_text(path, str(path), MAX_BYTES)

    @classmethod
    def read(cls, out: Path) -> "_Old":
        """Reads the summaries of a board and checks them against their digests."""
        text = cls.sums_text(out)
        digests: dict[str, str] = {}
        for line in text.splitlines():
            match = _LINE.fullmatch(line)
            if match is None:
                raise BadData(str(out / SUMS), f"has a line that is not a digest and a path ({line[:60]!r})")
            digests[match[2]] = match[1]
        old = cls(out, text, digests, {})
        for name in digests:
            path = PurePosixPath(name)
            if path.parent.as_posix() == "summaries":
                old.summaries[path.stem] = old._summary(name)
        return old

    def _summary(self, name: str) -> RunSummary:
        path = self.out / name
        if ROW_ID.fullmatch(path.stem) is None or name != summary_file(path.stem):
            raise BadData(str(self.out / SUMS), f"names {name!r}, which is not a summary")
        raw = read_file(path, str(path), MAX_BYTES)
        self._must_match(name, hashlib.sha256(raw).hexdigest())
        summary = decode(raw, str(path))
        if summary.run.id != path.stem:
            raise BadData(str(path), f"is the summary of {summary.run.id}")
        return summary

    def copy_report(self, identity: str, folder: Path) -> None:
        """Copies a run's report into a new folder, unchanged."""
        for name in self.digests:
            parts = PurePosixPath(name).parts
            if parts[:2] != ("reports", identity):
                continue
            source, target = self.out / name, folder / name
            if ".." in parts or source.resolve() != self.out.resolve() / name:
                raise BadData(str(self.out / SUMS), f"names {name!r}, which is not a file of this board")
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open_regular(source) as file, target.open("wb") as copy:
                    shutil.copyfileobj(file, copy)
            except OSError as error:
                raise BadData(str(source), f"cannot be read ({error.strerror or error})") from error
            self._must_match(name, _sha256(target))

    def _must_match(self, name: str, sha256: str) -> None:
        if self.digests[name] != sha256:
            raise BadData(
                str(self.out / name),
                f"was changed since the board was written: its SHA-256 is not the one in {SUMS}; put the "
                "original back, or make the board again from the run files",
            )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
