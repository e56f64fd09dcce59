"""Tables of the documents, between ``<!-- begin: NAME -->`` and ``<!-- end -->``."""

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from math import sqrt
from pathlib import Path
from typing import Final, NamedTuple

from validation.cells import Found, Sheet, simulate

LOW, HIGH = 0.93, 0.97
# Monte-Carlo errors by which a share may miss its limit; of 400 settings on it, one misses by more.
ALLOWED: Final = 3.0


class Block(NamedTuple):
    """A table.

    Attributes:
        name: of its place in the document.
        text: Markdown.
        wrong: how many of its numbers are worse than what is promised, by more than chance.
    """

    name: str
    text: str
    wrong: int = 0


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def percent(count: float, of: float) -> str:
    """A share in percent."""
    return f"{100 * count / of:.1f}"


def is_above(count: int, of: int, level: float) -> bool:
    """Whether something that must have at most this probability is more frequent, by more than chance."""
    return count / of > level + ALLOWED * sqrt(level * (1 - level) / of)


def replace(document: Path, block: Block) -> None:
    """Replaces a table in its document."""
    page = document.read_text(encoding="utf-8")
    place = re.compile(rf"(<!-- begin: {re.escape(block.name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    if len(place.findall(page)) != 1:
        raise SystemExit(f"{document}: no place for the table {block.name}")
    text = place.sub(lambda found: f"{found[1]}{block.text}\n{found[2]}", page)
    document.write_text(text, encoding="utf-8")


def blocks(prefix: str, sheets: Sequence[Sheet], pool: Executor, replicates: int) -> Iterator[Block]:
    """The tables of some sheets.

    Args:
        prefix: of their names.
        sheets: what is simulated.
        pool: plays the cells.
        replicates: usual number of simulated runs of a cell.
    """
    for sheet in sheets:
        found = list(pool.map(simulate, sheet.cells, [replicates] * len(sheet.cells)))
        name = f"{prefix}-{sheet.name.lower().replace(',', '').replace(' ', '-')}"
        yield Block(name, _table(sheet, found), sum(_is_low(one) for cell in found for one in cell.values()))


def _table(sheet: Sheet, found: Sequence[Mapping[str, Found]]) -> str:
    """The table of a sheet, with a line about its Monte-Carlo error."""
    rows: dict[tuple[str, ...], dict[str, Found]] = {}
    for cell, columns in zip(sheet.cells, found, strict=True):
        rows.setdefault(cell.row, {}).update(columns)
    names = list(dict.fromkeys(name for columns in found for name in columns))
    entries = [
        [*row, *(_entry(columns[name], sheet) if name in columns else "" for name in names)]
        for row, columns in rows.items()
    ]
    counts = sorted(
        {one.replicates for columns in found for one in columns.values() if one.is_coverage or sheet.shares}
    )
    errors = [f"{100 * sqrt(0.95 * 0.05 / count):.1f}" for count in counts]
    runs = " or ".join(f"{count:,}" for count in counts)
    note = f"{runs} runs a setting; Monte-Carlo error of a coverage of 95 %: {' or '.join(errors)} points."
    return f"{markdown([*sheet.labels, *(name.strip() for name in names)], entries)}\n\n{note}"


def _entry(found: Found, sheet: Sheet) -> str:
    """A share in percent or a mean, with the share of runs that have it if not all do."""
    if not found.shown:
        return "none"
    if not found.is_coverage and not sheet.shares:
        return f"{found.mean:,.0f}" if found.mean >= 100 else f"{found.mean:.1f}"
    text = f"{100 * found.mean:.1f}"
    if _is_low(found):
        text = f"**{text}**"
    elif found.is_coverage and found.mean > HIGH + 2 * found.error:
        text += " c"
    if found.shown == found.replicates:
        return text
    shown = 100 * found.shown / found.replicates
    return f"{text} [{shown:.{1 if shown > 99 or shown < 1 else 0}f}]"


def _is_low(found: Found) -> bool:
    return found.is_coverage and found.mean < LOW - ALLOWED * found.error
