"""Logs read back: the same records and scores as from the run file, whoever wrote them."""

import zipfile
from pathlib import Path

import msgspec
import pytest
from helpers.runs import finish, make
from inspect_adapter.exporting import export, mixed_run, scores_of
from inspect_adapter.playing import play
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import includes

from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import EpisodeRecord, Outcome, Protocol
from propensitybench.errors import BadInput
from propensitybench.inspect_adapter.tasks import propensity, stated_policy
from propensitybench.metrics import ScoredRun
from propensitybench.runs import Run, comparable, read_runs
from propensitybench.scenarios import Selection
from propensitybench.store import Manifest, RunFile, StoppingRule


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mixed_run(tmp_path_factory.mktemp("run") / "a.run")


@pytest.fixture(scope="module")
def logs(run: Path) -> list[Path]:
    return export(run, run.parent / "logs")


def told(path: Path) -> tuple[Manifest, dict[str, EpisodeRecord]]:
    with RunFile.open(path) as file:
        return file.manifest, {record.metadata.task: record for record in file.records()}


def by_task(found: Run) -> dict[str, EpisodeRecord]:
    return {record.metadata.task: record for record in found.records}


def read(*paths: Path) -> list[Run]:
    return read_runs(paths).runs


def read_scores(*paths: Path) -> ScoredRun:
    (run,) = read(*paths)
    return msgspec.structs.replace(run.score(), file="run")


def test_records_and_manifest_come_back_as_they_were(run: Path, logs: list[Path]) -> None:
    (found,) = read(logs[0].parent)
    manifest, records = told(run)
    assert found.manifest == manifest
    assert by_task(found) == records
    assert found.journal.models["o3-2026"] == 2
    assert (found.journal.scenarios, found.journal.drawn) == (6, {"self-proliferation": 12})


def test_the_scores_are_the_same_from_the_run_file_its_folder_and_its_logs(
    run: Path, logs: list[Path]
) -> None:
    expected = scores_of(run)
    assert expected.tasks.errored == 4
    assert read_scores(run) == expected
    assert read_scores(logs[0].parent) == expected
    assert read_scores(*logs) == read_scores(*reversed(logs)) == expected


def test_a_stopping_rule_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    rule = StoppingRule(half_width=0.2, batch=5, least=10)
    create_run(RunSpec("simulated/always", selection=Selection(limit=40), stopping_rule=rule), path)
    finish(path)
    logs = export(path, tmp_path / "logs")
    expected = scores_of(path)
    assert expected.tasks.not_drawn > 0
    assert read_scores(*logs) == expected
    assert read_scores(logs[0]).stopping_rule is None


def test_what_was_not_played_is_unplayed_and_a_later_export_counts_instead(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run")
    early = export(path, tmp_path / "early")
    assert read_scores(*early).tasks.unplayed == 12
    finish(path)
    late = export(path, tmp_path / "late")
    assert read_scores(*early, *late) == read_scores(*late, *early) == scores_of(path)


@pytest.mark.slow
def test_logs_of_two_runs_in_one_folder_are_two_runs(tmp_path: Path) -> None:
    for seed in (1, 2):
        finish(make(tmp_path / f"{seed}.run", seed=seed))
        export(tmp_path / f"{seed}.run", tmp_path / "logs")
    found = read(tmp_path / "logs")
    assert {log.manifest.seed: by_task(log) for log in found} == {
        seed: told(tmp_path / f"{seed}.run")[1] for seed in (1, 2)
    }
    assert len({log.file for log in found}) == 2
    runs, notes = comparable(read_runs([tmp_path / "logs"]).runs)
    assert len(runs) == 2
    assert all("no finished task in common" in note or "have different seeds" in note for note in notes)


@pytest.mark.slow
def test_what_inspect_wrote_gives_the_scores_of_our_own_engine(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    spec = RunSpec(
        "simulated/constant-0.3", selection=Selection(limit=2, epochs=2), protocol=Protocol(levels=2)
    )
    create_run(spec, path)
    finish(path)
    for naming in ("harmful", "benign"):
        task = propensity(naming=naming, limit=2, levels=2)
        play(task, "simulated/constant-0.3", tmp_path / "logs", epochs=2)
    assert read_scores(tmp_path / "logs") == scores_of(path)
    (found,) = read(tmp_path / "logs")
    manifest, records = told(path)
    assert by_task(found) == records
    assert found.manifest.namings == manifest.namings
    assert comparable(read_runs([path, tmp_path / "logs"]).runs).notes == []


def test_logs_in_which_a_scenario_has_another_text_are_of_two_runs(tmp_path: Path) -> None:
    first, second = (
        play(propensity(naming=naming, limit=1, levels=0), "simulated/never", tmp_path)
        for naming in ("harmful", "benign")
    )
    assert len(read(tmp_path)) == 1
    for sample in second.samples or ():
        sample.metadata["scenario_id"] = "s1:another"
    write_eval_log(second, second.location)
    one, other = read(tmp_path)
    assert one.contents.keys() == other.contents.keys()
    assert {one.file, other.file} == {first.location, second.location}


def test_a_sample_that_inspect_could_not_finish_is_errored_and_one_never_begun_unplayed(
    tmp_path: Path,
) -> None:
    def answer(*_: object) -> ModelOutput:
        raise RuntimeError("out of order")

    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    task = propensity(limit=3, naming="benign", levels=1)
    # As with `--no-score-on-error`: the first error ends the evaluation.
    log = play(task, model, tmp_path, max_samples=1, score_on_error=False)
    assert log.status == "error"
    (found,) = read(Path(log.location))
    (record,) = found.records
    assert record.stats.outcome is Outcome.ERRORED
    assert "out of order" in record.error
    tasks = read_scores(Path(log.location)).tasks
    assert (tasks.total, tasks.errored, tasks.unplayed) == (3, 1, 2)


def test_another_tasks_log_gets_one_sentence(tmp_path: Path) -> None:
    log = play(Task([Sample("Say hi", target="hi")], scorer=includes()), "mockllm/model", tmp_path)
    with pytest.raises(BadInput, match=r"is an Inspect log of .*, not of propensitybench/propensity"):
        read(Path(log.location))


def test_other_logs_in_a_folder_are_skipped_and_named(run: Path, logs: list[Path], tmp_path: Path) -> None:
    for path in logs:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    other = play(Task([Sample("Say hi", target="hi")], scorer=includes()), "mockllm/model", tmp_path)
    stated = play(stated_policy(limit=1), "simulated/never", tmp_path)
    (tmp_path / "logs.json").write_text('{"version": 2, "files": []}')
    runs, skipped = read_runs([tmp_path])
    assert [msgspec.structs.replace(one.score(), file="run") for one in runs] == [scores_of(run)]
    assert len(skipped) == 2
    for log in (other, stated):
        assert [note for note in skipped if log.location in note and "not of propensitybench/" in note]
    for path in logs:
        (tmp_path / path.name).unlink()
    with pytest.raises(BadInput, match=r"is an Inspect log of .*; skipped; .*; skipped"):
        read_runs([tmp_path])


def test_logs_in_the_json_format_are_read(run: Path, logs: list[Path], tmp_path: Path) -> None:
    for path in logs:
        write_eval_log(read_eval_log(str(path)), str((tmp_path / path.name).with_suffix(".json")))
    written = sorted(tmp_path.glob("*.json"))
    expected = scores_of(run)
    assert read_scores(tmp_path) == expected
    assert read_scores(*written) == expected
    renamed = tmp_path / "a.run"
    written[0].rename(renamed)
    with pytest.raises(BadInput, match=r"is an Inspect log, but .* its name ends in \.json"):
        read(renamed)


def test_a_log_of_a_like_name_that_says_nothing_of_our_run_gets_one_sentence(tmp_path: Path) -> None:
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="somebody/propensity",
        dataset=EvalDataset(name="x"),
        model="mockllm/model",
        config=EvalConfig(),
    )
    path = tmp_path / "a.eval"
    write_eval_log(EvalLog(eval=spec, samples=[]), str(path))
    with pytest.raises(BadInput, match="cannot be read as an Inspect log of propensitybench/propensity"):
        read(path)


def test_damaged_logs_get_one_sentence(logs: list[Path], tmp_path: Path) -> None:
    whole = logs[0].read_bytes()
    path = tmp_path / "a.eval"
    for eighth in range(8):
        path.write_bytes(whole[: len(whole) * eighth // 8])
        with pytest.raises(BadInput):
            read(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("letter.txt", "no log")
    with pytest.raises(BadInput, match=f"{path}: cannot be read as an Inspect log"):
        read(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="holds neither a run file nor an Inspect log"):
        read(tmp_path / "empty")


def test_a_run_is_like_its_logs_to_compare_with(run: Path, logs: list[Path]) -> None:
    found = comparable(read_runs([run, *logs]).runs)
    assert (len(found.runs), found.notes) == (2, [])
