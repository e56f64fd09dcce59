"""The act grid: what is violated in each scenario, and how; a table that people may edit."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from propensitybench.errors import BadData
from propensitybench.files import MIB, read_text

MAX_FILE: Final = 16 * MIB


class ActRow(NamedTuple):
    """A row of the act grid: one scenario."""

    unit: str
    workspace: str
    role: str
    capability: str
    nth: int
    getters: int
    severity: int
    mechanism: str
    target: str
    gain: str

    @property
    def row(self) -> str:
        """Identifies the row within its unit."""
        return f"{self.capability} {self.nth}"


def acts_text(acts: Sequence[ActRow]) -> str:
    """The act grid as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([ActRow._fields, *acts])
    return out.getvalue()


def read_acts(path: Path) -> list[ActRow]:
    """The act grid of a file; raises `BadData` with the line of the first row that is wrong."""
    rows = read_rows(path, ActRow._fields)
    return [ActRow(*_cells(row, path, line)) for line, row in rows]


def _cells(row: Mapping[str, str], path: Path, line: int) -> Iterator[Any]:
    for name in ActRow._fields:
        if ActRow.__annotations__[name] is not int:
            yield row[name]
            continue
        yield whole(row[name], f"{path} line {line}: {name}")


def whole(text: str, where: str) -> int:
    """The positive integer of a cell; raises `BadData`."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise BadData(where, f"must be a positive integer, found {text!r}")
    return int(text)


def read_rows(path: Path, columns: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV file with exactly these columns, each with its line; raises `BadData`."""
    reader = csv.reader(io.StringIO(read_text(path, str(path), MAX_FILE)), strict=True)
    try:
        lines = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise BadData(f"{path} line {reader.line_num}", f"is not valid CSV ({error})") from error
    if not lines or lines[0][1] != list(columns):
        raise BadData(f"{path} line 1", f"must have the columns {','.join(columns)}")
    for line, row in lines[1:]:
        if len(row) != len(columns):
            raise BadData(f"{path} line {line}", f"needs {len(columns)} cells, found {len(row)}")
    return [(line, dict(zip(columns, row, strict=True))) for line, row in lines[1:]]
