"""Every Eval Ever: records valid in its schema, complete, and without anything invented or private.

``make records`` calls its validator. The schemas here are copies under its licence.
"""

import hashlib
import json
import shutil
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from helpers.clients import TaskScript
from helpers.program import Done, call
from helpers.runs import finish
from records.sample_runs import EVIL, create, stopped_run

from propensitybench.chat import Reply, StopReason
from propensitybench.clients import says
from propensitybench.engine import RunSpec
from propensitybench.inspect_adapter.eval_export import export_logs
from propensitybench.metrics.measures import shown_in
from propensitybench.records.every_eval_ever import SCHEMA
from propensitybench.runs import StoredRun
from propensitybench.scenarios import Selection
from propensitybench.scenarios.model import CANARY
from propensitybench.store import RunFile

SCHEMAS: Final = Path(__file__).parent / "every_eval_ever"
WHO: Final = ("--organization", "An institute", "--relationship", "third_party")


@cache
def schema(name: str) -> Any:
    content = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    assert content["version"] == SCHEMA
    return import_module("jsonschema").Draft7Validator(content)


def record(run: Path, out: Path, *more: str) -> Done:
    return call("record", run, "--as", "every-eval-ever", "--out", out, *WHO, *more)


def read(out: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The only aggregate record below a folder and its instances, both checked against their schemas."""
    (path,) = out.glob("data/propensitybench/*/*/*.json")
    aggregate = json.loads(path.read_text(encoding="utf-8"))
    assert list(schema("eval.schema.json").iter_errors(aggregate)) == []
    details = aggregate.get("detailed_evaluation_results")
    if details is None:
        assert not list(out.glob("data/*/*/*/*.jsonl"))
        return aggregate, []
    raw = (out / details["file_path"]).read_bytes()
    rows = [json.loads(line) for line in raw.decode().splitlines()]
    assert details["checksum"] == hashlib.sha256(raw).hexdigest()
    assert details["total_rows"] == len(rows)
    for row in rows:
        assert list(schema("instance_level_eval.schema.json").iter_errors(row)) == []
        assert row["evaluation_id"] == aggregate["evaluation_id"]
    return aggregate, rows


@pytest.fixture(scope="module")
def written(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each run's records."""
    folder = tmp_path_factory.mktemp("eee")
    for name, run in runs.items():
        named = ("--model-id", "a-lab/its model: 2") if name == "evil" else ()
        done = record(run, folder / name, *named)
        assert done.code == 0, done
    return {name: folder / name for name in runs}


def by_metric(aggregate: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (one["evaluation_name"], one["metric_config"]["metric_id"]): one
        for one in aggregate["evaluation_results"]
    }


def test_a_result_for_each_measure_with_its_uncertainty(
    written: dict[str, Path], runs: dict[str, Path]
) -> None:
    aggregate, _ = read(written["whole"])
    scores = StoredRun(runs["whole"]).score()
    results = by_metric(aggregate)
    assert len(results) == len(aggregate["evaluation_results"]) == 2 * (len(shown_in("records")) + 4) + 1
    estimate = scores.naming["harmful"].estimates["propensity"].domain
    one = results["propensitybench.harmful", "propensitybench.propensity"]
    assert one["score_details"]["score"] == estimate.value
    uncertainty = one["score_details"]["uncertainty"]
    assert uncertainty["standard_error"]["value"] == estimate.errors.scenario
    assert estimate.ci95 is not None
    interval = uncertainty["confidence_interval"]
    assert (interval["lower"], interval["upper"]) == tuple(estimate.ci95)
    assert uncertainty["num_samples"] == 24
    assert one["metric_config"]["lower_is_better"] is True
    levels = results["propensitybench.benign", "propensitybench.withstood"]["metric_config"]
    assert (levels["min_score"], levels["max_score"], levels["lower_is_better"]) == (0, 13, False)


def test_settings_are_stated_and_what_is_private_or_unknown_is_not(written: dict[str, Path]) -> None:
    aggregate, _ = read(written["partial"])
    (folder,) = written["partial"].glob("data/propensitybench/local/*")
    assert folder.name == "model_2025"
    generation = aggregate["evaluation_results"][0]["generation_config"]
    arguments = generation["generation_args"]
    assert (arguments["temperature"], arguments["reasoning"]) == (0.5, True)
    assert generation["additional_details"]["option reasoning_effort"] == "low"
    assert "top_p" not in arguments
    assert "max_tokens" not in arguments
    details = aggregate["model_info"]["additional_details"]
    assert (details["deployment_type"], details["model_availability"]) == ("unknown", "unknown")
    text = json.dumps(aggregate)
    assert "secret.internal" not in text
    assert "/tmp" not in text


def test_an_instance_for_each_scored_task_and_none_for_the_others(written: dict[str, Path]) -> None:
    aggregate, rows = read(written["evil"])
    # Of 48 tasks, each sixth is blocked, truncated or errored: none of them counts as safe, or at all.
    assert len(rows) == 24
    assert aggregate["detailed_evaluation_results"]["additional_details"]["tasks_without_a_score"] == "24"
    results = {one["evaluation_result_id"]: one for one in aggregate["evaluation_results"]}
    for naming in ("harmful", "benign"):
        mine = [row for row in rows if row["metadata"]["naming"] == naming]
        result = results[mine[0]["evaluation_result_id"]]
        assert {row["evaluation_result_id"] for row in mine} == {result["evaluation_result_id"]}
        shares = [row["evaluation"]["score"] for row in mine]
        assert sum(shares) / len(shares) == pytest.approx(result["score_details"]["score"])
    for row in rows:
        failed = row["metadata"]["outcome"] == "misaligned"
        assert row["evaluation"]["is_correct"] is not failed
        assert row["metadata"]["canary"] == CANARY
        (answer,) = row["answer_attribution"]
        at = row["messages"][answer["turn_idx"]]
        if failed:
            assert at["tool_calls"][0]["name"] == answer["extracted_value"]
            # Not valid JSON for everybody, so as the model wrote it.
            assert at["tool_calls"][0]["arguments"] == {"(as written)": '{"a": "\\ud800", "b": [1, 1e400]}'}
            assert row["token_usage"]["total_tokens"] == 120
        else:
            assert answer["extracted_value"] == "no call of the misaligned tool"
            assert row["messages"][2]["tool_calls"][0]["arguments"] == {"why": EVIL}
            assert row["token_usage"] is None


def test_an_unfinished_run_says_so_and_leaves_out_what_it_cannot_compute(written: dict[str, Path]) -> None:
    aggregate, rows = read(written["stopped"])
    details = aggregate["source_metadata"]["additional_details"]
    assert details["state"].startswith("incomplete")
    assert int(details["tasks_unplayed"]) > 40
    assert "Preliminary" in details["caveats"]
    assert len(rows) == 2
    without_interval = [
        one for one in aggregate["evaluation_results"]
        if "confidence_interval" not in one["score_details"]["uncertainty"]
    ]  # fmt: skip
    assert without_interval


def test_what_has_no_value_is_named_and_not_zero(tmp_path: Path) -> None:
    """Every reply of a naming withheld: no propensity, and no result for it."""
    create(RunSpec("lab/m", selection=Selection(limit=8)), tmp_path / "half.run")
    blocked = Reply(stop=StopReason.CONTENT_FILTER)
    script = TaskScript(lambda task: [says("no", done=True) if task.naming == "benign" else blocked], "lab/m")
    finish(tmp_path / "half.run", script)
    assert record(tmp_path / "half.run", tmp_path / "out").code == 0
    aggregate, rows = read(tmp_path / "out")
    assert "harmful.propensity" in aggregate["source_metadata"]["additional_details"]["not_computable"]
    assert not [one for one in by_metric(aggregate) if one[0].startswith("propensitybench.harmful")]
    assert {row["metadata"]["naming"] for row in rows} == {"benign"}


def test_a_log_gives_the_same_results_without_instances(runs: dict[str, Path], tmp_path: Path) -> None:
    with RunFile.open(runs["whole"]) as run:
        export_logs(run, tmp_path / "logs")
    done = record(tmp_path / "logs", tmp_path / "from-logs")
    assert done.code == 0
    assert "without conversations" in done.err
    assert record(runs["whole"], tmp_path / "from-run", "--no-instances").err == ""
    ours, logged = (read(tmp_path / name)[0]["evaluation_results"] for name in ("from-run", "from-logs"))
    assert len(ours) == len(logged)
    for one, other in zip(ours, logged, strict=True):
        assert one["score_details"] == other["score_details"]


def test_nothing_is_written_twice_or_half(runs: dict[str, Path], tmp_path: Path) -> None:
    assert record(runs["whole"], tmp_path).code == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    again = record(runs["whole"], tmp_path)
    assert (again.code, "this run is recorded" in again.err) == (2, True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    # Another run of the same model goes into the same folder of a checkout.
    assert record(runs["stopped"], tmp_path).code == 0
    assert len(list(tmp_path.glob("data/propensitybench/simulated/o4-mini-like/*"))) == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "needs --organization NAME and --relationship"),
        (("--organization", " ", "--relationship", "other"), "needs --organization NAME"),
        (WHO, "needs --out DIR"),
        ((*WHO, "--out", "whole.run"), "is a file"),
        ((*WHO, "--out", "new", "--model-id", "flat"), "--model-id DEVELOPER/NAME"),
        ((*WHO, "--out", "new", "--model-id", "a/../b"), "--model-id DEVELOPER/NAME"),
        ((*WHO, "--out", "new", "--model-id", "nul/b"), "--model-id DEVELOPER/NAME"),
        ((*WHO, "--out", "new", "--model-id", "/b"), "--model-id DEVELOPER/NAME"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], sentence: str, runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copy(runs["whole"], tmp_path / "whole.run")
    done = call("record", "whole.run", "--as", "every-eval-ever", *arguments, cwd=tmp_path)
    assert done.code == 2
    assert sentence in done.err
    assert len(done.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["whole.run"]


def test_runs_of_several_models_need_names_of_their_own(runs: dict[str, Path], tmp_path: Path) -> None:
    both = (runs["whole"], runs["partial"])
    done = call("record", *both, "--as", "every-eval-ever", *WHO, "--out", tmp_path, "--model-id", "a/b")
    assert (done.code, "are of several" in done.err) == (2, True)
    done = call("record", *both, runs["evil"], "--as", "every-eval-ever", *WHO, "--out", tmp_path)
    assert (done.code, "does not name a developer" in done.err) == (2, True)
    assert list(tmp_path.iterdir()) == []
    done = call("record", *both, "--as", "every-eval-ever", *WHO, "--out", tmp_path)
    assert (done.code, len(done.out.splitlines())) == (0, 2)


def test_a_run_without_any_number_is_refused(tmp_path: Path) -> None:
    done = record(stopped_run(tmp_path / "none.run", replies=0), tmp_path / "out")
    assert (done.code, "has no number yet" in done.err) == (2, True)
    assert not (tmp_path / "out").exists()
