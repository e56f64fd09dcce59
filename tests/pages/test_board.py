"""The board: its ranks, its versions, adding and removing runs, and what it refuses."""

import csv
import hashlib
import io
import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from helpers.boards import failing, made, other_texts, without_last
from helpers.html_page import dead_links, read_page
from helpers.records import BIO, CHEM, blocked, errored

from propensitybench.episode import PAPER
from propensitybench.errors import BadInput, UnknownName
from propensitybench.escaping import visible
from propensitybench.pages.board.folder import board as make_board
from propensitybench.pages.board.standings import BoardRow
from propensitybench.pages.page_folder import BOARD, new_folder
from propensitybench.pages.page_numbers import resolve
from propensitybench.presentation.scores import summarise
from propensitybench.runs import Run

# Without figures, which take a second a report.
update_board = partial(make_board, figures=False)

SAFE = made("lab/safe", failing((0.0, 0.1)))
HALF = made("lab/half", failing((0.5, 0.6)))
ALWAYS = made("simulated/always", failing((1.0, 1.0)))
TWO = made("lab/two", failing((0.5, 0.5), (BIO, CHEM)), digest="d2:two")


def files_of(folder: Path) -> dict[str, bytes]:
    """The contents of every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def read(board: Path) -> Any:
    return json.loads((board / "board.json").read_text(encoding="utf-8"))


def rows_of(board: Path) -> Iterator[Any]:
    for section in read(board)["versions"]:
        yield from section["rows"]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board of three models, and one with two domains missing."""
    out = tmp_path_factory.mktemp("three") / "board"
    update_board([HALF, TWO, ALWAYS, SAFE], out)
    return out


@pytest.fixture
def board(three: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(three, tmp_path / "board"))


def test_rows_are_in_order_with_hand_computed_ranks(three: Path) -> None:
    (section,) = read(three)["versions"]
    shown = {row["name"]: (row["ranks"], row["unranked"]) for row in section["rows"]}
    assert list(shown) == ["lab/safe", "lab/half", "always", "lab/two"]
    assert shown["lab/safe"][0]["harmful"] == {"propensity": 0.0, "rank": 1.0, "ci95": [1, 1]}
    assert shown["lab/half"][0]["benign"] == {"propensity": 0.6, "rank": 2.0, "ci95": [2, 2]}
    assert shown["always"][0]["harmful"] == {"propensity": 1.0, "rank": 3.0, "ci95": [3, 3]}
    assert shown["lab/two"] == ({}, f"only {BIO} and {CHEM}")
    values = {(one["first"], one["second"]): one["value"] for one in section["differences"]["harmful"]}
    assert sorted(map(abs, values.values())) == [0.5, 0.5, 1]


def test_numbers_are_those_of_score_to_the_byte(three: Path) -> None:
    raw = msgspec.json.format((three / "board.json").read_bytes(), indent=-1)
    for row in rows_of(three):
        run = {"lab/safe": SAFE, "lab/half": HALF, "always": ALWAYS, "lab/two": TWO}[row["name"]]
        scores = run.score()
        expected = msgspec.json.encode(
            msgspec.structs.replace(summarise(scores, "board"), file=row["run"]["file"])
        )
        assert raw.count(expected) == 1
        found = {name: one["value"] for name, one in row["run"]["by_domain"]["harmful"].items()}
        assert found == scores.naming["harmful"].by_domain


def test_adding_later_gives_the_same_bytes_as_making_it_at_once(three: Path, tmp_path: Path) -> None:
    for run in (ALWAYS, TWO, SAFE, HALF):
        written = update_board([run], tmp_path / "later")
        assert written.added == [run.model]
    assert files_of(tmp_path / "later") == files_of(three)


def test_page_has_every_number_without_scripts_and_no_dead_link(three: Path) -> None:
    page = read_page(three / "index.html")
    assert dead_links(page, three / "index.html") == []
    names = [row.text.strip() for row in page.all("th", role="rowheader")]
    assert [name.split("\n")[0] for name in names[:3]] == ["lab/safe", "lab/half", "always"]
    charts = [one.attributes["aria-label"] for one in page.all("svg", klass="plot")]
    assert charts[1].startswith("harmful names: 50.0%, 95% interval")
    assert "benign names: 60.0%" in charts[1]
    assert page.all("form", id="controls")[0].attributes.get("hidden") == ""
    assert (
        next(one for one in page.all("th") if one.text == "Propensity").attributes["aria-sort"] == "ascending"
    )


def test_csv_has_a_line_for_each_run_and_naming(three: Path) -> None:
    lines = list(csv.DictReader(io.StringIO((three / "board.csv").read_text(encoding="utf-8"))))
    assert [(one["model"], one["naming"], one["rank"]) for one in lines[:3]] == [
        ("lab/safe", "harmful", "1.0"),
        ("lab/safe", "benign", "1.0"),
        ("lab/half", "harmful", "2.0"),
    ]
    assert (lines[-1]["model"], lines[-1]["rank"], lines[-1]["cyber-security"]) == ("lab/two", "", "")
    assert float(lines[2]["propensity"]) == 0.5


def test_same_run_with_more_tasks_replaces_its_own_row(board: Path) -> None:
    update_board([], board, remove=["lab/half"])
    update_board([without_last(HALF, 30)], board)
    (row,) = [row for row in rows_of(board) if row["run"]["model"] == "lab/half"]
    assert not row["run"]["complete"]
    assert (row["ranks"], row["unranked"]) == ({}, "not finished")
    assert row["run"]["score"]["tasks"]["unplayed"] == 30
    assert "unfinished" in (board / "index.html").read_text(encoding="utf-8")
    written = update_board([HALF], board)
    assert (written.added, written.replaced) == ([], ["lab/half"])
    (row,) = [row for row in rows_of(board) if row["run"]["model"] == "lab/half"]
    assert row["ranks"]["harmful"]["rank"] == 2
    with pytest.raises(BadInput, match="has 130 finished tasks, and 160 are on the board"):
        update_board([without_last(HALF, 30)], board)


def test_two_runs_of_one_model_are_told_apart(tmp_path: Path) -> None:
    other = made(
        "lab/half", failing((0.4, 0.6)), file="elsewhere/again.run", created="2026-02-02T00:00:00+00:00"
    )
    twin = made(
        "lab/half", failing((0.3, 0.6)), file="elsewhere/again.run", created="2026-02-03T00:00:00+00:00"
    )
    written = update_board([HALF, other, twin], tmp_path / "board")
    names = [row.name for row in written.board.versions[0].rows]
    assert names[2] == "lab/half (half.run)"
    assert all(name.startswith("lab/half (again.run) (") for name in names[:2])
    assert len(set(names)) == 3
    with pytest.raises(BadInput, match="are the same run, or were created with the same settings"):
        update_board([HALF, HALF], tmp_path / "board")
    conflicting = made("lab/half", failing((0.9, 0.6)))
    with pytest.raises(BadInput, match="tasks ended differently"):
        update_board([conflicting], tmp_path / "board")


def test_runs_are_removed_by_model_or_id_and_the_page_is_made_again(board: Path) -> None:
    identity = next(row["run"]["id"] for row in rows_of(board) if row["name"] == "lab/half")
    assert update_board([], board, remove=["always", identity]).removed == ["simulated/always", "lab/half"]
    assert [row["name"] for row in rows_of(board)] == ["lab/safe", "lab/two"]
    assert len(list((board / "reports").iterdir())) == 2
    assert next(rows_of(board))["unranked"] == "nothing to compare with"
    before = files_of(board)
    update_board([], board)
    assert files_of(board) == before
    with pytest.raises(UnknownName, match=r"unknown run 'lab/saf'; did you mean 'lab/safe'"):
        update_board([], board, remove=["lab/saf"])
    update_board([], board, remove=["lab/safe", "lab/two"])
    assert "There are no runs on the board" in (board / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "summaries/*.json",
            "was changed since the board was written: its SHA-256 is not the one in SHA256SUMS",
        ),
        ("reports/*/index.html", "was changed since the board was written"),
    ],
)
def test_changed_file_is_refused_by_its_name(board: Path, kind: str, message: str) -> None:
    path = sorted(board.glob(kind))[0]
    path.write_bytes(path.read_bytes().replace(b"0", b"1", 1))
    before = files_of(board)
    with pytest.raises(BadInput, match=message) as caught:
        update_board([made("lab/new", failing((0.2, 0.2)))], board)
    assert str(path) in str(caught.value)
    assert files_of(board) == before


def test_missing_files_and_odd_lists_are_refused(board: Path) -> None:
    new = [made("lab/new", failing((0.2, 0.2)))]
    path = next(board.glob("summaries/*.json"))
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(BadInput, match=r"\.json: cannot be read"):
        update_board(new, board)
    path.write_bytes(content)
    sums = board / "SHA256SUMS"
    lines = sums.read_text(encoding="utf-8")
    for odd, message in (
        ("nonsense\n", "has a line that is not a digest and a path"),
        (f"{'0' * 64}  summaries/../../x.json\n", "cannot be read|not a summary"),
        (f"{'0' * 64}  summaries/evil.json\n", "names 'summaries/evil.json', which is not a summary"),
        (f"{'0' * 64}  reports/{path.stem}/../../../../etc/hostname\n", "which is not a file of this board"),
    ):
        sums.write_text(lines + odd, encoding="utf-8")
        if "../.." in odd and "summaries" in odd:
            update_board([], board)  # not below summaries/: nobody reads it
        else:
            with pytest.raises(BadInput, match=message):
                update_board(new, board)
        sums.write_text(lines, encoding="utf-8")
    sums.unlink()
    with pytest.raises(BadInput, match=r"SHA256SUMS: cannot be read"):
        update_board(new, board)


def test_damaged_summary_with_a_right_digest_is_refused(board: Path) -> None:
    path = next(board.glob("summaries/*.json"))
    good, sums = path.read_bytes(), (board / "SHA256SUMS").read_text(encoding="utf-8")
    for old, new, message in (
        (b"propensitybench-summary/1", b"propensitybench-summary/9", "this version reads"),
        (b'"tasks":[[0,', b'"tasks":[[9999,', "is not listed"),
        (b'"file":', b'"fyle":', "is not a summary that this version reads"),
        (b'{"format"', b'{"format', "is not a summary that this version reads"),
    ):
        assert old in good
        bad = good.replace(old, new, 1)
        path.write_bytes(bad)
        digests = hashlib.sha256(good).hexdigest(), hashlib.sha256(bad).hexdigest()
        (board / "SHA256SUMS").write_text(sums.replace(*digests), encoding="utf-8")
        with pytest.raises(BadInput, match=message):
            update_board([], board)


def test_only_a_board_is_replaced(board: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not empty and is not a report"), new_folder(board):
        pass
    with new_folder(tmp_path / "report") as folder:
        (folder / "index.html").write_text("a report", encoding="utf-8")
    with pytest.raises(BadInput, match="is not empty and is not a board"):
        update_board([SAFE], tmp_path / "report")
    (board / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BadInput, match=r"contains notes\.txt, which is not part of the board"):
        update_board([], board)
    with pytest.raises(BadInput, match="holds no board; give a run"):
        update_board([], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_board_that_changed_meanwhile_is_not_replaced(board: Path) -> None:
    class Slow(type(SAFE)):  # type: ignore[misc]
        @property
        def journal(self) -> Any:
            (board / "SHA256SUMS").write_text("", encoding="utf-8")  # another program
            return super().journal

    new = made("lab/new", failing((0.2, 0.2)))
    new.__class__ = Slow
    with pytest.raises(BadInput, match="another program has changed the board meanwhile"):
        update_board([new], board)


def test_data_versions_are_never_mixed(tmp_path: Path) -> None:
    shorter = msgspec.structs.replace(PAPER, levels=6)
    placebo = msgspec.structs.replace(PAPER, arm="placebo")
    written = update_board(
        [
            SAFE,
            HALF,
            TWO,
            made("lab/six", failing((0.2, 0.2)), protocol=shorter),
            made("lab/calm", failing((0.1, 0.1)), protocol=placebo),
            made("lab/new-data", failing((0.3, 0.3)), digest="d2:new"),
        ],
        tmp_path / "board",
    )
    shown = {tuple(row.name for row in one.rows): one.measure for one in written.board.versions}
    assert shown == {
        ("lab/safe", "lab/half", "lab/two"): "propensity",
        ("lab/six",): "PP@6",
        ("lab/calm",): "share under placebo",
        ("lab/new-data",): "propensity",
    }
    assert len(read_page(tmp_path / "board" / "index.html").all("nav", klass="versions")) == 1


def test_run_of_some_domains_with_other_texts_stands_alone(tmp_path: Path) -> None:
    written = update_board([SAFE, HALF, other_texts(TWO)], tmp_path / "board")
    assert [[row.name for row in one.rows] for one in written.board.versions] == [
        ["lab/safe", "lab/half"],
        ["other/model"],
    ]
    with pytest.raises(BadInput, match="have the same data digest and different texts"):
        update_board([other_texts(HALF)], tmp_path / "board")


def test_tasks_without_a_score_are_counted_and_bounded(tmp_path: Path) -> None:
    kept = [one for one in failing((0.5, 0.5)) if one.metadata.scenario not in ("bio-18", "bio-19")]
    lost = [blocked(scenario="bio-18"), errored(2, scenario="bio-19")]
    more = [blocked(scenario="bio-18", naming="benign"), errored(2, scenario="bio-19", naming="benign")]
    written = update_board([made("lab/lossy", [*kept, *lost, *more]), SAFE], tmp_path / "board")
    row: BoardRow = written.board.versions[0].rows[1]
    assert (row.run.score.tasks.blocked, row.run.score.tasks.errored, row.run.complete) == (2, 2, True)
    bounds = row.run.score.bounds["harmful"]
    assert bounds is not None
    # Two of the twenty tasks of one of four domains: 10 of 20 to 12 of 20 there.
    assert list(bounds) == pytest.approx([0.5, 0.5 + 0.1 / 4])
    page = (tmp_path / "board" / "index.html").read_text(encoding="utf-8")
    assert "2 blocked" in page
    assert "2 errored" in page


def test_shard_is_refused(tmp_path: Path) -> None:
    shard: Run = made("lab/part", failing((0.1, 0.1)))
    shard.shard = "1/3"
    with pytest.raises(BadInput, match="is shard 1/3 of a run; put all its shards together"):
        update_board([shard], tmp_path / "board")


EVIL = "../../../evil</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'\x1b[31m\u202e"
NAMES = (EVIL, "/etc/passwd", "..", "", "x" * 50_000, "CON", "=cmd()", "\u0661\u0662")


def test_hostile_names_are_harmless(tmp_path: Path) -> None:
    runs = [made(name, failing((0.1, 0.1), count=2), file=name) for name in NAMES]
    runs.append(made(EVIL, failing((0.2, 0.2), count=2), file=EVIL, created=EVIL))
    out = tmp_path / "deep" / "board"
    update_board(runs, out)
    update_board([], out)
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["board"]
    assert {path.name for path in out.iterdir()} == {
        BOARD.marker, "SHA256SUMS", "board.csv", "board.json", "index.html", "reports", "summaries",
    }  # fmt: skip
    assert len(list((out / "reports").iterdir())) == len(runs)
    assert all(len(path.name) < 80 for path in out.rglob("*"))
    page = read_page(out / "index.html")
    assert len(page.all("script")) == 4
    assert page.all("img") == []
    assert dead_links(page, out / "index.html") == []
    assert (out / "index.html").stat().st_size < 500_000
    text = (out / "board.csv").read_text(encoding="utf-8")
    cells = [cell for line in csv.reader(io.StringIO(text)) for cell in line]
    assert "'=cmd()" in cells
    assert not any(cell.startswith("=") for cell in cells)


def test_no_file_of_a_board_has_a_character_that_acts_on_its_reader(tmp_path: Path) -> None:
    odd = "=cmd|' /C calc'!A0 100 %\x1b[31m\x9b\u202e"
    run = made(odd, failing((0.1, 0.1), (odd, BIO)), file=odd, created=odd)
    update_board([run], tmp_path / "board")
    for path in (tmp_path / "board").rglob("*.*"):
        assert not {"\x1b", "\x9b", "\u202e"} & set(path.read_text(encoding="utf-8")), path
    lines = list(csv.DictReader(io.StringIO((tmp_path / "board" / "board.csv").read_text(encoding="utf-8"))))
    assert {line["created"] for line in lines} == {f"'{visible(odd)}"}
    (report,) = (tmp_path / "board" / "reports").iterdir()
    data = json.loads((report / "report.json").read_text(encoding="utf-8"))
    buttons = read_page(report / "index.html").all("button", klass="n")
    pointers = [unquote(button.attributes["data-p"]) for button in buttons]
    assert any(odd.replace("/", "~1") in one for one in pointers)
    for one in pointers:
        resolve(data, one)
