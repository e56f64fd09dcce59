"""The functions of Python that do what a command does give what it prints."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.generation import scenario_files, written
from helpers.judging import played
from helpers.openai_server import error, serving
from helpers.people import saved_labels
from helpers.program import call

import propensitybench as pb
from propensitybench.errors import BadInput, RunStopped
from propensitybench.judging.people import PersonsAnswer
from propensitybench.tabular import Tabular


def as_printed(found: Tabular) -> Any:
    return msgspec.json.decode(msgspec.json.encode(found.to_dict()))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("kept") / "study.run", 4, "simulated/at-level-1", levels=2)


@pytest.fixture
def run(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(kept, tmp_path / "study.run"))


def test_judge(run: Path, kept: Path) -> None:
    found = pb.judge(run, "keyless/words")
    assert as_printed(found) == call("judge", run, "--json").json
    assert found.to_polars()["question"].n_unique() == 3
    assert {row["category"] for row in pb.judge(pb.open(run), question="awareness").rows()} == {
        "plain", "hint", "none",
    }  # fmt: skip
    assert "spoken awareness of being tested, 8 of 8 episodes read: plain 0.0 %" in repr(found)
    with pytest.raises(BadInput, match="holds no answers; ask with: propensitybench judge"):
        pb.judge(kept)


def test_a_judge_that_cannot_be_reached_is_noted(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    nowhere = {"base_url": "http://127.0.0.1:9/v1", "max_retries": 0}
    pb.judge(run, "keyless/words", question="awareness")
    pb.judge(run, "m", question="awareness", **nowhere)  # type: ignore[arg-type]
    assert "8 of 8 replies are missing; " in caplog.text
    assert "the same call asks for them" in caplog.text


def test_probe(run: Path) -> None:
    found = pb.probe(run, "awareness", level=[1, "end"], limit=6)
    printed = call("probe", run, "--probe", "awareness", "--level", "1", "--level", "end", "--json").json
    assert as_printed(found) != printed  # two more tasks
    assert as_printed(pb.probe(run, "awareness", level=[1, "end"])) == printed
    assert found.to_polars()["tasks"].to_list() == [3, 3, 3, 3]
    assert repr(found).startswith("awareness, level 1, harmful: 0.0 % test in 3 tasks\n")


def test_label(run: Path, tmp_path: Path) -> None:
    sample = pb.label(run, "justification", number=6)
    assert sample.write_page(tmp_path / "a.html", by="Ann") == 6
    call("label", run, "--question", "justification", "--page", tmp_path / "b.html", "--as", "Ann")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    first = sample.rows()[0]["task"]
    for person in ("Ann", "Bob"):
        given = {task: PersonsAnswer("none stated") for task in sample.sample.read_twice}
        sample = sample.read(saved_labels(run, given, person))
    assert sample.to_polars().filter(task=first)["person"].to_list() == ["Ann", "Bob"]
    assert repr(sample) == "justification: 2 of 6 read by Ann, Bob"
    assert sample.agreement is not None
    assert sample.agreement.alpha.items == 2


def test_report_and_export(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "page"
    written = pb.report([run], out, figures=False, publishable=True)
    page = written.page.read_bytes()
    assert f"{written}\n" == call("report", run, "--out", out, "--no-figures", "--publishable").out
    assert page == written.page.read_bytes()
    table = pb.export(pb.open(run), tmp_path / "a.jsonl", transcripts=True)
    assert table == ((tmp_path / "a.jsonl",), 8)
    assert f"{table}\n" == call("export", run, "--out", tmp_path / "b.jsonl", "--transcripts").out.replace(
        "b.jsonl", "a.jsonl"
    )
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_board(run: Path, tmp_path: Path) -> None:
    written = pb.board([run], tmp_path / "board", figures=False)
    printed = call("board", run, "--out", tmp_path / "other", "--json", "--no-figures").json
    assert written.to_dict() == {**printed, "page": str(written.page)}
    assert written.to_polars()["naming"].to_list() == ["harmful", "benign"]
    assert repr(pb.board([], tmp_path / "board", remove=["at-level-1"])).endswith("0 runs (1 removed)")


def test_check_generated(tmp_path: Path) -> None:
    work = written(tmp_path, 2)
    (work.root / scenario_files(work)[0]).write_text("{}")
    found = pb.check_generated(work.root)
    assert as_printed(found) == call("generate", "check", work.root, "--json").json
    assert found.failed == len({row["file"] for row in found.rows()}) == 1
    assert repr(found) == "2 texts, 1 of them fail"


def test_a_provider_that_refuses_the_key_stops_it(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROPENSITYBENCH_API_KEY", "sk-wrong")
    with (
        serving(lambda *_: error(401, "Incorrect API key", code="invalid_api_key")) as server,
        pytest.raises(RunStopped, match=r"replies are missing; .*Incorrect API key"),
    ):
        pb.judge(run, "m", question="awareness", base_url=server.base_url)
