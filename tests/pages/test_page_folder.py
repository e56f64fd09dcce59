"""The report's folder: replaced completely or not at all, and never at the cost of other files."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from propensitybench.errors import BadInput
from propensitybench.pages.page_folder import REPORT, new_folder


def write_into(out: Path, **files: str) -> None:
    """Makes a small report folder of those files."""
    with new_folder(out) as folder:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")


def test_earlier_report_is_replaced_completely(tmp_path: Path) -> None:
    write_into(tmp_path / "deep" / "out", old="1", both="1")
    write_into(tmp_path / "deep" / "out", both="2", new="2")
    assert sorted(path.name for path in (tmp_path / "deep" / "out").iterdir()) == [
        REPORT.marker,
        "both",
        "new",
    ]
    assert (tmp_path / "deep" / "out" / "both").read_text(encoding="utf-8") == "2"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_other_files_are_never_touched(tmp_path: Path) -> None:
    write_into(tmp_path / "out", page="1")
    (tmp_path / "out" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BadInput, match=r"contains notes\.txt, which is not part of the report"):
        write_into(tmp_path / "out", page="2")
    (tmp_path / "out" / REPORT.marker).unlink()
    with pytest.raises(BadInput, match="is not empty and is not a report"):
        write_into(tmp_path / "out", page="2")
    with pytest.raises(BadInput, match="is a file"):
        write_into(tmp_path / "out" / "notes.txt", page="2")
    with pytest.raises(BadInput, match="cannot be written"):
        write_into(tmp_path / "out" / "notes.txt" / "below", page="2")
    assert (tmp_path / "out" / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "out" / "page").read_text(encoding="utf-8") == "1"


@contextmanager
def folders_read() -> Iterator[list[Path]]:
    """The folders whose entries are listed in the block; an audit hook cannot be removed."""
    read: list[Path] = []
    active = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if active and event in ("os.scandir", "os.listdir") and isinstance(arguments[0], str):
            read.append(Path(arguments[0]))

    sys.addaudithook(hook)
    try:
        yield read
    finally:
        active = False


def test_a_folder_of_others_is_refused_without_looking_through_it(tmp_path: Path) -> None:
    (tmp_path / "home" / "deep" / "deeper").mkdir(parents=True)
    with folders_read() as read, pytest.raises(BadInput, match="is not empty and is not a report"):
        write_into(tmp_path / "home", page="1")
    assert tmp_path / "home" in read
    assert not [path for path in read if tmp_path / "home" in path.parents]
    write_into(tmp_path / "report", page="1")
    (tmp_path / "home").rename(tmp_path / "report" / "home")
    with folders_read() as read, pytest.raises(BadInput, match="contains home, which is not part"):
        write_into(tmp_path / "report", page="2")
    assert not [path for path in read if path.name in ("home", "deep", "deeper")]


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
