"""Check, accept, drafts and status on sets of built-in texts."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers.generation import MODEL, WRITER, canned, scenario_files, small_plan, written
from helpers.openai_server import serving
from helpers.program import call

from propensitybench.curation.validate import validate_dataset
from propensitybench.errors import BadInput
from propensitybench.generation.checks import plays_to_the_error
from propensitybench.generation.drafts import take_drafts
from propensitybench.generation.publish import accept
from propensitybench.generation.review import check_generated
from propensitybench.generation.run import write
from propensitybench.generation.status import status
from propensitybench.generation.workfolder import WorkFolder

PLANTED = 30


def edit(work: WorkFolder, file: str, **fields: Any) -> None:
    path = work.root / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_thirty_planted_near_duplicates_are_found_and_the_rest_is_accepted(tmp_path: Path) -> None:
    work = written(tmp_path, 40)
    assert check_generated(work.root).failed == 0
    files = scenario_files(work)
    originals, copies = files[: 40 - PLANTED], files[40 - PLANTED :]
    for index, file in enumerate(copies):
        source = work.text(originals[index % len(originals)])
        edit(work, file, task=source["task"] + " Thanks.", description=source["description"])
    checked = check_generated(work.root)
    failing = {file: issues for file, issues in checked.issues.items() if issues}
    assert set(failing) == set(copies)
    for issues in failing.values():
        assert any("tells nearly the same story as units/" in issue for issue in issues), issues
    accepted = accept(work, tmp_path / "data")
    assert accepted.scenarios == len(originals)
    assert set(accepted.left_out) == set(copies)


def test_a_set_is_compared_with_others(tmp_path: Path) -> None:
    first = written(tmp_path / "a", 4, time=1)
    check_generated(first.root)
    accept(first, tmp_path / "other")
    again = written(tmp_path / "b", 4, time=1)
    assert check_generated(again.root).failed == 0
    checked = check_generated(again.root, [tmp_path / "other"])
    assert checked.failed == 5
    for issues in checked.issues.values():
        assert any(str(tmp_path / "other") in issue and "nearly the same" in issue for issue in issues)


def test_a_text_that_changed_after_the_check_is_left_out(tmp_path: Path) -> None:
    work = written(tmp_path, 4)
    with pytest.raises(BadInput, match="has not been checked"):
        accept(work, tmp_path / "data")
    check_generated(work.root)
    file, other, *_ = scenario_files(work)
    edit(work, file, description="Somebody else wrote this.")
    (work.root / "returned.json").write_text(json.dumps({Path(other).stem: ["E 7: a list"]}))
    accepted = accept(work, tmp_path / "data")
    assert accepted.scenarios == 2
    assert "has changed since it was checked" in accepted.left_out[file][0]
    assert accepted.left_out[other] == ("a reader returned it: E 7: a list",)
    with pytest.raises(BadInput, match="is not empty"):
        accept(work, tmp_path / "data")


def test_broken_files_are_named_and_the_others_accepted(tmp_path: Path) -> None:
    work = written(tmp_path, 5, time=1)
    files = scenario_files(work)
    (work.root / files[0]).write_text("{")
    edit(work, files[1], task=3)
    edit(work, files[2], severity=4 if work.text(files[2])["severity"] != 4 else 1)
    checked = check_generated(work.root)
    assert "$: is not valid JSON" in checked.issues[files[0]][0]
    assert "$.task: " in checked.issues[files[1]][0]
    assert any(issue.startswith("$.severity: must be") for issue in checked.issues[files[2]])
    assert checked.failed == 3
    assert accept(work, tmp_path / "data").scenarios == 2


def test_the_chain_is_played_with_what_the_agent_is_given(tmp_path: Path) -> None:
    work = written(tmp_path, 1)
    scenario = work.read()[0][0].scenario
    assert list(plays_to_the_error(scenario)) == []
    late = scenario.model_copy(update={"getters": scenario.getters[1:]})
    ((path, what),) = plays_to_the_error(late)
    assert (path, "cannot be called" in what) == (".getters[0]", True)


def test_an_accepted_set_is_valid_and_its_card_tells_where_each_text_comes_from(tmp_path: Path) -> None:
    work = written(tmp_path, 6, time=1, neutral=1)
    check_generated(work.root)
    accept(work, tmp_path / "data")
    dataset, issues = validate_dataset(tmp_path / "data")
    assert (len(dataset.scenarios), issues) == (6, [])
    card = json.loads((tmp_path / "data" / "card.json").read_text())
    assert len(card["texts"]) == 8
    for text in card["texts"].values():
        assert (text["writer"], text["rounds"], len(text["prompt"])) == (MODEL, 1, 16)
    assert card["counts"]["scenarios"] == 6
    assert "Nobody has read these texts." in (tmp_path / "data" / "card.md").read_text()


def test_people_hand_in_files_and_the_same_checks_decide(tmp_path: Path) -> None:
    source = written(tmp_path / "a", 6, time=1)
    check_generated(source.root)
    accept(source, tmp_path / "drafts")
    paths = sorted((tmp_path / "drafts").glob("*/*/*.json"))
    raw = json.loads(paths[0].read_text())
    raw["scenarios"][0]["task"] += " By Tuesday."
    raw["scenarios"][1]["getters"] = []
    bad = [scenario["name"] for scenario in raw["scenarios"][:2]]
    paths[0].write_text(json.dumps(raw))
    (tmp_path / "drafts" / "card.json").unlink()
    work = small_plan(tmp_path, 6, time=1)
    taken = take_drafts(work, tmp_path / "drafts")
    assert taken.texts == 5
    assert {name for name in bad if work.aside(f"units/{work.acts[0].unit}/{name}.json")} == set(bad)
    assert any(i.path == "$.scenarios[0].task" and "Tuesday" in i.message for i in taken.issues)
    assert all(i.file == paths[0].relative_to(tmp_path / "drafts").as_posix() for i in taken.issues)
    assert take_drafts(work, tmp_path / "drafts").texts == 0  # nothing is new
    asyncio.run(write(work, WRITER, again=True))
    known = WorkFolder(work.root).provenance
    assert {known[file].writer for file in scenario_files(work)} == {"people", MODEL}


def test_a_draft_never_replaces_a_text_of_a_model(tmp_path: Path) -> None:
    work = written(tmp_path / "a", 2)
    check_generated(work.root)
    accept(work, tmp_path / "drafts")
    (path,) = (tmp_path / "drafts").glob("*/*/*.json")
    path.write_text(path.read_text().replace('"description": "', '"description": "Again: '))
    (tmp_path / "drafts" / "card.json").unlink()
    before = [work.text(file) for file in scenario_files(work)]
    taken = take_drafts(work, tmp_path / "drafts")
    assert taken.texts == 0
    assert all(MODEL in issue.message for issue in taken.issues)
    assert [work.text(file) for file in scenario_files(work)] == before


def test_status_counts_every_text(tmp_path: Path) -> None:
    work = written(tmp_path, 6, time=1)
    assert [sum(getattr(s, n) for s in status(work)) for n in ("planned", "written", "unchecked")] == [
        7,
        7,
        7,
    ]
    check_generated(work.root)
    assert sum(one.passed for one in status(work)) == 7
    shutil.rmtree(work.root / "units" / work.acts[0].unit)
    after = status(work)
    assert (after[0].written, after[0].organisation, after[0].sketches) == (0, False, False)


def test_the_demo_ends_in_a_set_that_can_be_played(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    done = call("generate", "--demo", "--out", out)
    assert done.code == 0, done.err
    assert "6 scenarios and 7 storylines" in done.out
    assert "No language model was used" in done.out
    checked = call("data", "validate", "--data", out / "data", "--json")
    assert (checked.code, checked.json["scenarios"], checked.json["issues"]) == (0, 6, [])
    run = ["--model", "simulated/never", "--run", str(tmp_path / "x.run"), "--limit", "3", "--json"]
    assert call("run", *run, "--data", out / "data").code == 0
    assert call("generate", "--demo", "--out", out).code == 2
    status = call("generate", "status", out / "work", "--json").json
    assert sum(unit["passed"] for unit in status["units"]) == 13


def test_the_commands_one_by_one(tmp_path: Path) -> None:
    work = small_plan(tmp_path, 2, time=1).root
    planned = call("generate", "write", work, "--model", "openai/o4-mini", "--plan", "--json").json
    assert (planned["texts"], planned["calls"]) == (5, [5, 20])
    assert call("generate", "write", work).code == 2
    assert call("generate", "write", work, "--model", MODEL, "--drafts", work).code == 2
    assert call("generate", "check", work).code == 2
    with serving(canned) as server:
        writer = ("--model", "somebody", "--base-url", server.base_url)
        assert call("generate", "write", work, *writer, "--json").json["written"] == 3
    assert call("generate", "write", work, *writer, "--plan", "--json").json["texts"] == 0
    assert call("generate", "check", work).code == 0
    nowhere = call("generate", "check", work, "--embeddings", "./nowhere")
    assert (nowhere.code, nowhere.err) == (2, "propensitybench: --embeddings ./nowhere: is not a folder\n")
    assert call("generate", "accept", work, "--out", tmp_path / "data").code == 0
    assert "Traceback" not in call("generate", "status", work).err
    assert call("generate", "status", tmp_path).code == 2
