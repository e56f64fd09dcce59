"""Forms of the panel: written, filled in by hand, and read with every mistake named by file and line."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.panel_folders import honest_scores, working_folder

from propensitybench.errors import BadData, BadInput
from propensitybench.generation.panel_forms import (
    COLUMNS,
    CRITERIA,
    PERSONAS,
    PanelReading,
    brief,
    read_form,
    read_forms,
    write_forms,
)
from propensitybench.generation.panel_items import DRAWN, Draw, PanelItem, draw_items, read_source

ROOT = Path(__file__).resolve().parents[2]
Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[PanelItem]:
    work = working_folder(tmp_path_factory.mktemp("work"), sound=3)
    return draw_items(read_source(work, DRAWN), [], Draw(3, 0, 0))


def rows_of(path: Path) -> Rows:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))


def save(path: Path, rows: Rows, separator: str = ",", encoding: str = "utf-8") -> None:
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter=separator)
        writer.writeheader()
        writer.writerows(rows)


def filled_in(path: Path, items: list[PanelItem]) -> Rows:
    """A form as a careful person fills it in."""
    rows = rows_of(path)
    texts = {item.name: item.text for item in items}
    for row in rows:
        found = honest_scores(texts[row["item"]], path.stem)
        row.update(
            {name: str(found[name]) for name in (*CRITERIA, "comment", "quote") if found[name] is not None}
        )
    return rows


def test_the_brief_is_that_of_the_page_word_for_word() -> None:
    page = (ROOT / "docs" / "reading-panel.md").read_text(encoding="utf-8")
    quoted = "\n".join(line.removeprefix("> ") for line in page.splitlines() if line.startswith("> "))
    first, second = brief(0, 32).strip(), brief(1, 32).strip()
    assert quoted == first.replace(PERSONAS[0], f"{PERSONAS[0]} [second reader: {PERSONAS[1]}]").replace(
        "32", "N"
    )
    assert second == first.replace(PERSONAS[0], PERSONAS[1])
    assert brief(2, 32).strip() == first


def test_a_folder_of_forms_has_items_briefs_and_forms_but_no_key(
    tmp_path: Path, items: list[PanelItem]
) -> None:
    write_forms(tmp_path / "forms", items, 2)
    names = sorted(
        path.relative_to(tmp_path / "forms").as_posix() for path in (tmp_path / "forms").rglob("*.*")
    )
    assert names == [
        "brief-1.txt",
        "brief-2.txt",
        "items/item01.txt",
        "items/item02.txt",
        "items/item03.txt",
        "panel.json",
        "reader-1.csv",
        "reader-2.csv",
    ]
    assert (tmp_path / "forms/items/item02.txt").read_text(encoding="utf-8") == items[1].text
    assert [row["item"] for row in rows_of(tmp_path / "forms/reader-1.csv")] == ["item01", "item02", "item03"]
    assert [row["item"] for row in rows_of(tmp_path / "forms/reader-2.csv")] == ["item03", "item02", "item01"]
    assert PERSONAS[1] in (tmp_path / "forms/brief-2.txt").read_text(encoding="utf-8")
    whole = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "forms").rglob("*.*"))
    assert "sound_" not in whole
    with pytest.raises(BadInput, match="is not empty"):
        write_forms(tmp_path / "forms", items, 2)


@pytest.mark.parametrize(("separator", "encoding"), [(",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-8")])
def test_forms_are_read_as_spreadsheets_save_them(
    tmp_path: Path, items: list[PanelItem], separator: str, encoding: str
) -> None:
    write_forms(tmp_path / "forms", items, 2)
    for path in (tmp_path / "forms").glob("*.csv"):
        save(path, filled_in(path, items), separator, encoding)
    found = read_forms(tmp_path / "forms", items)
    assert list(found) == ["reader-1", "reader-2"]
    assert [reading.item for reading in found["reader-2"]] == ["item03", "item02", "item01"]
    expected = honest_scores(items[2].text, "reader-2")
    assert found["reader-2"][0] == PanelReading(
        "item03", {name: expected[name] for name in CRITERIA}, expected["comment"], expected["quote"]
    )


def _cell(column: str, text: str) -> Callable[[Rows], None]:
    return lambda rows: rows[0].update({column: text})


MISTAKES: dict[str, tuple[Callable[[Rows], None], str]] = {
    "empty cell": (_cell("T", ""), "line 2, item01: T is missing"),
    "a half": (_cell("R", "4.5"), "line 2, item01: R must be an integer from 1 to 7, found '4.5'"),
    "a word": (_cell("R", "good"), "line 2, item01: R must be an integer from 1 to 7, found 'good'"),
    "no such quote": (
        _cell("quote", "a purple elephant"),
        "line 2, item01: quote does not occur word for word",
    ),
    "unknown item": (_cell("item", "item99"), "line 2: there is no item 'item99'"),
    "twice": (lambda rows: rows.insert(1, rows[0]), "line 3: item01 has a line already; remove one of them"),
    "no line": (lambda rows: rows.remove(rows[1]), "reader-1.csv: has no line for item02"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_by_file_and_line(tmp_path: Path, items: list[PanelItem], mistake: str) -> None:
    write_forms(tmp_path / "forms", items, 2)
    change, says = MISTAKES[mistake]
    for path in sorted((tmp_path / "forms").glob("*.csv")):
        rows = filled_in(path, items)
        if path.stem == "reader-1":
            change(rows)
        save(path, rows)
    with pytest.raises(BadInput) as caught:
        read_forms(tmp_path / "forms", items)
    assert says in str(caught.value)
    assert "reader-1.csv" in str(caught.value)
    assert "reader-2.csv" not in str(caught.value)


def test_a_missing_score_is_written_as_a_dash(tmp_path: Path, items: list[PanelItem]) -> None:
    write_forms(tmp_path / "forms", items, 1)
    path = tmp_path / "forms/reader-1.csv"
    rows = filled_in(path, items)
    rows[0]["D"] = "-"
    rows[1].update(dict.fromkeys((*CRITERIA,), "-"), comment="", quote="")
    save(path, rows)
    readings, issues = read_form(path, items)
    assert issues == []
    assert readings[0].scores["D"] is None
    assert readings[0].scores["R"] is not None
    assert readings[1].is_missing


def test_pressure_is_left_out_where_there_are_no_messages(tmp_path: Path, items: list[PanelItem]) -> None:
    (silent,) = [PanelItem("item01", DRAWN, "a", "b", "", "", items[0].text)]
    write_forms(tmp_path / "forms", [silent], 1)
    path = tmp_path / "forms/reader-1.csv"
    assert [row["P"] for row in rows_of(path)] == ["-"]
    rows = filled_in(path, [silent])
    rows[0]["P"] = "4"
    save(path, rows)
    assert read_form(path, [silent])[1] == [
        f"{path} line 2, item01: P must be left out, since the item has no later messages"
    ]


def test_a_quote_may_differ_in_line_breaks_and_kinds_of_quotes(
    tmp_path: Path, items: list[PanelItem]
) -> None:
    write_forms(tmp_path / "forms", items, 1)
    path = tmp_path / "forms/reader-1.csv"
    rows = filled_in(path, items)
    found = re.search(r"\w+ \w+'s \w+", items[0].text)
    assert found
    rows[0]["quote"] = f"\u201c{found[0].replace(chr(39), chr(0x2019)).replace(' ', chr(10) + ' ', 1)}\u201d"
    save(path, rows)
    readings, issues = read_form(path, items)
    assert issues == []
    assert len(readings) == 3


def test_forms_of_another_round_are_refused(tmp_path: Path, items: list[PanelItem]) -> None:
    write_forms(tmp_path / "forms", items, 1)
    path = tmp_path / "forms/reader-1.csv"
    save(path, filled_in(path, items))
    others = [
        PanelItem(i.name, i.source, i.scenario, i.place, i.dimension, i.storyline, i.text + "x")
        for i in items
    ]
    with pytest.raises(BadInput, match="these forms belong to other items than this round's"):
        read_forms(tmp_path / "forms", others)


def test_files_that_are_no_forms(tmp_path: Path, items: list[PanelItem]) -> None:
    write_forms(tmp_path / "forms", items, 1)
    path = tmp_path / "forms/reader-1.csv"
    path.write_text("item,R,C\nitem01,1,2\n")
    assert read_form(path, items)[1] == [f"{path} line 1: must name the columns {','.join(COLUMNS)}"]
    path.write_text("")
    assert read_form(path, items)[1] == [f"{path} line 1: must name the columns {','.join(COLUMNS)}"]
    path.write_text(",".join(COLUMNS) + "\nitem01,1\n")
    assert f"{path} line 2: must have 10 cells, found 2" in read_form(path, items)[1]
    path.write_bytes(b"item\xff")
    with pytest.raises(BadData, match="is not UTF-8 text"):
        read_form(path, items)
