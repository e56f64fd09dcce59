"""The report's folder: replaced completely or not at all, and never at the cost of other files."""

from pathlib import Path

import pytest

from propensitybench.errors import BadInput
from propensitybench.report.page_folder import MARKER, new_folder


def write_into(out: Path, **files: str) -> None:
    """Makes a small report folder of those files."""
    with new_folder(out) as folder:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")


def test_earlier_report_is_replaced_completely(tmp_path: Path) -> None:
    write_into(tmp_path / "deep" / "out", old="1", both="1")
    write_into(tmp_path / "deep" / "out", both="2", new="2")
    assert sorted(path.name for path in (tmp_path / "deep" / "out").iterdir()) == [MARKER, "both", "new"]
    assert (tmp_path / "deep" / "out" / "both").read_text(encoding="utf-8") == "2"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_other_files_are_never_touched(tmp_path: Path) -> None:
    write_into(tmp_path / "out", page="1")
    (tmp_path / "out" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BadInput, match=r"contains notes\.txt, which is not part of the report"):
        write_into(tmp_path / "out", page="2")
    (tmp_path / "out" / MARKER).unlink()
    with pytest.raises(BadInput, match="is not empty and is not a report"):
        write_into(tmp_path / "out", page="2")
    with pytest.raises(BadInput, match="is a file"):
        write_into(tmp_path / "out" / "notes.txt", page="2")
    with pytest.raises(BadInput, match="cannot be written"):
        write_into(tmp_path / "out" / "notes.txt" / "below", page="2")
    assert (tmp_path / "out" / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "out" / "page").read_text(encoding="utf-8") == "1"


def interrupted(out: Path) -> None:
    """Fails after writing one file of a report."""
    with new_folder(out) as folder:
        (folder / "page").write_text("2", encoding="utf-8")
        raise KeyboardInterrupt


def test_interrupted_report_leaves_the_earlier_one(tmp_path: Path) -> None:
    write_into(tmp_path / "out", page="1")
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "out")
    assert (tmp_path / "out" / "page").read_text(encoding="utf-8") == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
