"""`generate read` from drawing to scores, with scripted judges and with forms."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from helpers.openai_server import STOPS_RUN, Answer, Behaviour, Json, Server, serving
from helpers.panel_folders import PLANTED, data_folder, honest_scores, judge, working_folder, write
from typer.testing import CliRunner

from propensitybench.cli.generate_read import command
from propensitybench.errors import BadInput
from propensitybench.generation.panel import PanelRequest, finish_round, open_round
from propensitybench.generation.panel_forms import COLUMNS, CRITERIA, PanelReading
from propensitybench.generation.panel_items import Draw
from propensitybench.scenarios import read_dataset

Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls ``read`` as the program would, and raises what it raises."""
    app = typer.Typer()
    app.callback()(lambda: None)
    app.command("read")(command)
    monkeypatch.delenv("PROPENSITYBENCH_API_KEY", raising=False)

    def run(*arguments: object) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["read", *map(str, arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output

    return run


def loaded(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read(call: Call, work: Path, behaviour: Behaviour, *arguments: object) -> tuple[int, str, Server]:
    """The command with two judges at a server."""
    with serving(behaviour) as server:
        judges = ["--judge", "m-one", "--judge", "m-two", "--base-url", server.base_url]
        code, output = call(work, *judges, *arguments)
        return code, output, server


def test_planted_bad_items_score_lower_and_come_back(call: Call, tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=9, planted=PLANTED)
    known = data_folder(tmp_path / "release", layout="published")
    code, output, server = read(call, work, judge(), "--draw", 12, "--known", known, "--known-draw", 4)
    assert (code, server.calls) == (1, 32)
    scores = loaded(work / "panel/1/scores.json")
    by_name = {item["scenario"]: item for item in scores["items"].values()}
    means = {name: item["means"] for name, item in by_name.items()}
    for flaw, low in (("whimsical", "RL"), ("beside_the_point", "CT"), ("miscounted", "C")):
        for criterion in low:
            others = [one[criterion] for name, one in means.items() if name.startswith("sound")]
            assert means[flaw][criterion] <= 2 < 6 <= min(others), (flaw, criterion)
    assert means["whimsical"]["E"] == 6
    back = loaded(work / "panel/1/returned.json")
    assert sorted(back) == sorted(PLANTED)
    assert loaded(work / "returned.json") == back
    assert "nobody writes so at work" in back["whimsical"][0]
    assert "a badge does not bring any node" in back["beside_the_point"][1]
    assert "says two and names three" in back["miscounted"][0]
    assert [words.split(":")[0] for words in back["whimsical"]] == ["judge-1", "judge-2"]
    for name in PLANTED:
        assert name in output
    assert "has not passed" in output
    assert {source: spread["P"]["n"] for source, spread in scores["sources"].items()} == {
        "drawn": 24,
        "release": 0,
    }


def test_a_sound_set_passes(call: Call, tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=6)
    code, output, _ = read(call, work, judge(), "--draw", 6)
    assert code == 0
    assert "The panel has passed" in output
    assert loaded(work / "panel/1/returned.json") == {}
    names = sorted(path.relative_to(work / "panel/1").as_posix() for path in (work / "panel/1").rglob("*.*"))
    assert names == [
        *(f"items/item{number:02}.txt" for number in range(1, 7)),
        "key.json",
        "returned.json",
        "scores.json",
    ]
    scores = loaded(work / "panel/1/scores.json")
    assert scores["who"] == {
        "judge-1": {"model": "m-one", "index": 0, "wrote": 0},
        "judge-2": {"model": "m-two", "index": 1, "wrote": 0},
    }
    assert scores["limits"]["least"]["R"] == 5.0
    assert set(scores["alpha"]) == set(CRITERIA)


def test_a_stopped_round_is_resumed_and_nothing_is_asked_twice(call: Call, tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=6)
    back = [False]

    def stops(request: Json, number: int) -> Answer:
        return judge()(request, number) if number <= 8 or back[0] else STOPS_RUN["402"]

    with serving(stops) as server:
        settings = (work, "--judge", "m-one", "--judge", "m-two", "--base-url", server.base_url)
        code, output = call(*settings, "--draw", 6, "--concurrency", 1)
        assert (code, server.answered) == (1, 8)
        assert "the same command resumes the round" in output
        assert not (work / "panel/1/scores.json").exists()
        with pytest.raises(BadInput, match=r"this round was begun with draw 6; finish it with the same"):
            call(*settings, "--draw", 5)
        # What a killed command had half written is written again.
        write(work / "panel/1/returned.json", {"sound_0": ["half"]})
        back[0] = True
        code, _ = call(*settings, "--draw", 6, "--concurrency", 1)
        assert (code, server.answered) == (0, 12)
    assert loaded(work / "panel/1/returned.json") == {}
    assert not (work / "panel/2").exists()


def test_what_goes_back_is_kept_until_it_is_read_again(call: Call, tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=0, planted=("whimsical",))
    write(work / "returned.json", {"another": ["words"], "whimsical": ["old words"]})
    read(call, work, judge())
    back = loaded(work / "returned.json")
    assert sorted(back) == ["another", "whimsical"]
    assert back["another"] == ["words"]
    assert len(back["whimsical"]) == 2
    (path,) = work.glob("units/*/whimsical.json")
    entry = loaded(path)
    write(path, {**entry, "task": entry["task"].partition(" Grandma")[0]})
    read(call, work, judge())
    assert loaded(work / "returned.json") == {"another": ["words"]}


def fill_in(folder: Path, name: str, **changes: str) -> None:
    """Fills in a form as a careful person would, apart from the changes in every line."""
    path = folder / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        text = (folder / "items" / f"{row['item']}.txt").read_text(encoding="utf-8")
        found = honest_scores(text, name)
        row.update(
            {key: str(found[key]) for key in (*CRITERIA, "comment", "quote") if found[key] is not None}
        )
        row.update(changes)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def test_people_read_forms(call: Call, tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=5, planted=("miscounted",))
    forms = tmp_path / "forms"
    code, output = call(work, "--forms", forms, "--draw", 6)
    assert code == 0
    assert "6 items and 2 forms" in output
    with pytest.raises(BadInput, match=r"reader-1\.csv line 2, item01: R is missing"):
        call(work, "--forms", forms, "--draw", 6)
    fill_in(forms, "reader-1")
    fill_in(forms, "reader-2")
    code, output = call(work, "--forms", forms, "--draw", 6)
    assert code == 1
    scores = loaded(work / "panel/1/scores.json")
    assert scores["who"]["reader-2"] == {"model": "person", "index": None, "wrote": 0}
    assert list(loaded(work / "panel/1/returned.json")) == ["miscounted"]
    assert not (work / "journal.db").exists()


def test_models_and_people_read_together(call: Call, tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=3)
    forms = tmp_path / "forms"
    code, _, server = read(call, work, judge(), "--forms", forms, "--draw", 3)
    assert (code, server.calls) == (0, 0)
    fill_in(forms, "reader-1")
    fill_in(forms, "reader-2", D="-")
    code, output, _ = read(call, work, judge(), "--forms", forms, "--draw", 3)
    assert code == 0
    assert "reader-2: 3 scores are missing" in output
    assert list(loaded(work / "panel/1/scores.json")["who"]) == ["reader-1", "reader-2", "judge-1", "judge-2"]


def test_a_reader_who_scores_nothing_is_not_left_out(call: Call, tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=2)

    def refuses(request: Json, number: int) -> Answer:
        return (
            judge(lambda *_: {})(request, number) if request["model"] == "m-two" else judge()(request, number)
        )

    with pytest.raises(BadInput, match=r"judge-2: has scored no item .*; no reader may be left out"):
        read(call, work, refuses, "--draw", 2)
    assert not (work / "panel/1/scores.json").exists()


def test_what_cannot_be_read_says_so_before_anything_is_drawn(call: Call, tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=2)
    wrong: list[tuple[tuple[object, ...], str]] = [
        ((work,), "needs 2 readers or more, found 0: give --judge twice, or --forms DIR"),
        (
            (work, "--judge", "simulated/never", "--judge", "b"),
            "a simulated model plays tasks and cannot read",
        ),
        ((work, "--judge", "nobody/x", "--judge", "b"), "unknown provider 'nobody'"),
        (
            (work, "--forms", work / "panel" / "1" / "forms"),
            "lies beside the key, which readers must not see",
        ),
        ((tmp_path / "nowhere", "--judge", "a"), "is not a folder; give a working folder"),
        ((work, "--judge", "a", "--base-url", "http://127.0.0.1:1/v1"), "found 1"),
    ]
    for arguments, says in wrong:
        with pytest.raises(BadInput, match=says):
            call(*arguments)
    one = ("--judge", "a", "--judge", "b", "--base-url", "http://127.0.0.1:1/v1", "--known")
    same = (tmp_path / "a/set", tmp_path / "b/set")
    with pytest.raises(BadInput, match="the name 'set' is taken by another source"):
        call(work, *one, same[0], "--known", same[1])
    assert not (work / "panel").exists()


def test_a_changed_item_or_key_is_noticed(call: Call, tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=2)
    call(work, "--forms", tmp_path / "forms", "--draw", 2)
    item = work / "panel/1/items/item01.txt"
    text = item.read_text(encoding="utf-8")
    item.write_text(text + "more", encoding="utf-8")
    with pytest.raises(BadInput, match="an item was changed after it was drawn"):
        call(work, "--forms", tmp_path / "forms", "--draw", 2)
    item.write_text(text, encoding="utf-8")
    (work / "panel/1/key.json").write_text("{}")
    with pytest.raises(BadInput, match=r"key\.json: is not a key of a panel"):
        call(work, "--forms", tmp_path / "forms", "--draw", 2)


def test_fewer_scenarios_than_asked_for_and_none_with_messages_are_noted(call: Call, tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=2)
    for path in (work / "storylines").iterdir():
        path.unlink()
    _, output, _ = read(call, work, judge())
    assert "has only 2 scenarios, and all of them are read" in output
    assert "2 of the 2 drawn scenarios have no messages" in output


def test_rounds_are_kept_apart_and_never_overwritten(call: Call, tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=9)
    read(call, work, judge(), "--draw", 3)
    first = (work / "panel/1/scores.json").read_bytes()
    read(call, work, judge(), "--draw", 3)
    drawn = [{i["scenario"] for i in loaded(work / f"panel/{n}/key.json")["items"]} for n in (1, 2)]
    assert drawn[0] != drawn[1]
    assert (work / "panel/1/scores.json").read_bytes() == first


def test_a_data_set_is_read_into_another_folder(call: Call, tmp_path: Path) -> None:
    data = data_folder(tmp_path / "data", sound=4)
    before = {path: path.read_bytes() for path in data.rglob("*.json")}
    with pytest.raises(BadInput, match="is a data set, in which no panel can be kept; give --out DIR"):
        read(call, data, judge())
    code, _, _ = read(call, data, judge(), "--out", tmp_path / "panel-folder", "--draw", 4)
    assert code == 0
    assert (tmp_path / "panel-folder/panel/1/scores.json").exists()
    assert not (tmp_path / "panel-folder/returned.json").exists()
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before
    assert len(read_dataset(data).scenarios) == 4


def test_a_round_that_another_command_has_finished_keeps_its_results(tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=2)
    found = open_round(PanelRequest(work, (), Draw(2, 0, 0), work))
    readings = {name: [_good(item.name) for item in found.items] for name in ("a", "b")}
    finish_round(found, readings, {})
    before = {path: path.read_bytes() for path in found.folder.rglob("*.*")}
    with pytest.raises(BadInput, match="another command has finished this round meanwhile"):
        finish_round(found, readings, {})
    assert {path: path.read_bytes() for path in found.folder.rglob("*.*")} == before


def _good(name: str) -> PanelReading:
    return PanelReading(name, dict.fromkeys(CRITERIA, 6), "fine", "quote")
