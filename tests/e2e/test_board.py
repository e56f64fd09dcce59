"""``propensitybench board`` as a user calls it, with run files, folders, shards and Inspect logs."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.boards import played
from helpers.program import call
from helpers.records import BIO, CHEM


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three run files, one of them without two domains."""
    folder = tmp_path_factory.mktemp("runs")
    played(folder / "o3.run", "simulated/o3-like")
    played(folder / "always.run", "simulated/always")
    played(folder / "two.run", "simulated/never", (BIO, CHEM))
    return folder


def test_board_is_made_and_added_to(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "board"
    done = call("board", runs / "o3.run", runs / "two.run", "--out", out)
    assert done.code == 0, done.err
    assert done.out.startswith(f"{out}/index.html: 2 runs (2 added)\n")
    moved = tmp_path / "moved"
    out.rename(moved)  # the run files of the first two are not needed any more
    done = call("board", runs / "always.run", "--out", moved, "--transcripts", "failed", "--json")
    assert done.json["added"] == ["simulated/always"]
    assert len(done.json["runs"]) == 3
    if shutil.which("sha256sum"):
        check = ["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"]
        assert subprocess.run(check, cwd=moved, check=False, capture_output=True).returncode == 0
        sums = subprocess.run(
            ["sha256sum", "SHA256SUMS"], cwd=moved, check=True, capture_output=True, text=True
        )
        assert sums.stdout.startswith(done.json["sha256"])
    transcripts = list(moved.glob("reports/*/transcripts/1/*.html"))
    assert transcripts
    assert all("always" in path.as_posix() for path in transcripts)
    done = call("board", "--out", moved, "--remove", "always")
    assert done.out.startswith(f"{moved}/index.html: 2 runs (1 removed)\n")
    assert not list(moved.glob("reports/always*"))
    (section,) = json.loads((moved / "board.json").read_text(encoding="utf-8"))["versions"]
    assert [row["unranked"] for row in section["rows"]] == [
        "nothing to compare with",
        f"only {BIO} and {CHEM}",
    ]


def test_what_cannot_be_done_is_one_sentence(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "board"
    for arguments, message in (
        (["--out", out], "holds no board; give a run"),
        ([runs / "none.run", "--out", out], "none.run"),
        ([runs / "o3.run", runs / "o3.run", "--out", out], "is given twice"),
        ([runs / "o3.run", "--out", out, "--remove", "x"], "unknown run 'x'"),
        ([runs / "o3.run", "--out", runs], "is not empty and is not a board"),
        ([runs / "o3.run"], "Missing option '--out'"),
    ):
        done = call("board", *arguments)
        assert done.code == 2, arguments
        assert message in done.err
    assert not out.exists()
