"""Merging run files of one run: its shards, however far each has come, give the run made in one piece."""

import shutil
import tempfile
from pathlib import Path

import pytest
from helpers.clients import at
from helpers.run_edits import edit
from helpers.runs import client_of, finish, journal, make, scores
from helpers.shards import State, domains, lengths, part, played, rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from propensitybench.engine import RunSpec, create_run, run_tasks
from propensitybench.episode import Protocol
from propensitybench.errors import BadInput, NotARunFile, RunMismatch
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile, Shard, merge, mismatches
from propensitybench.store.shards import share_of

TASKS = 8


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of eight tasks."""
    path = tmp_path_factory.mktemp("whole") / "whole.run"
    selection = Selection(limit=TASKS // 2)
    create_run(RunSpec("simulated/o3-like", selection=selection, protocol=Protocol(levels=2)), path)
    finish(path)
    return path


def done(whole: Path) -> dict[int, State]:
    return {number: State(count) for number, count in enumerate(lengths(whole))}


def problems(path: Path) -> list[str]:
    with RunFile.open(path) as run:
        return [difference.what for difference in mismatches(run)]


@given(data=st.data())
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_shards_however_far_they_have_come_give_the_run_made_in_one_piece(
    whole: Path, data: st.DataObject
) -> None:
    ended = lengths(whole)
    of = data.draw(st.integers(1, TASKS + 2), label="shards")
    numbers = data.draw(st.permutations(range(1, of + 1)), label="files")
    states: dict[int, State] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = []
        for number in numbers:
            own = share_of(Shard(number, of), domains(whole))
            for task in own:
                error = data.draw(st.sampled_from(["", "429", "reset"]))
                states[task] = State(data.draw(st.integers(0, ended[task] - bool(error))), error)
            begun = {task: states[task] for task in own if states[task] != (0, "")}
            paths.append(part(whole, folder / f"{number}.run", begun, Shard(number, of)))
        before = [path.read_bytes() for path in paths]

        merged = merge(paths, folder / "merged.run")

        assert [path.read_bytes() for path in paths] == before
        finished = sum(state.replies == ended[task] for task, state in states.items())
        assert merged == (of, TASKS, finished, sum(bool(state.error) for state in states.values()), ())
        assert problems(folder / "merged.run") == []
        kept = [row for row in played(whole)[0] if row[1] < states[row[0]].replies]
        assert rows(folder / "merged.run", "reply") == kept
        errors = {(task, *state) for task, state in states.items() if state.error}
        assert set(rows(folder / "merged.run", "error", "task, turn, body")) == errors
        finish(folder / "merged.run")
        assert played(folder / "merged.run") == played(whole)
        assert scores(folder / "merged.run") == scores(whole)


def test_missing_shards_are_named_and_can_be_added_or_played(whole: Path, tmp_path: Path) -> None:
    paths = []
    for number in range(1, 5):
        states = {task: done(whole)[task] for task in share_of(Shard(number, 4), domains(whole))}
        paths.append(part(whole, tmp_path / f"{number}.run", states, Shard(number, 4)))
    merged = merge(paths[::2], tmp_path / "merged.run")
    assert merged == (2, TASKS, 4, 0, (Shard(2, 4), Shard(4, 4)))
    with RunFile.open(tmp_path / "merged.run") as run:
        assert run.shard is None
        assert run.planned == TASKS
        assert len(list(run.unfinished())) == 4
    assert merge([tmp_path / "merged.run", *paths[1::2]], tmp_path / "all.run").finished == TASKS
    assert played(tmp_path / "all.run") == played(whole)


def test_a_task_that_two_files_have_played_is_refused_with_its_name_and_theirs(
    whole: Path, tmp_path: Path
) -> None:
    for name, state in {"finished": done(whole)[3], "begun": State(1), "errored": State(0, "429")}.items():
        other = part(whole, tmp_path / f"{name}.run", {3: state})
        with RunFile.open(other) as run:
            key = run.task_keys()[3]
        with pytest.raises(RunMismatch) as caught:
            merge([whole, other], tmp_path / "merged.run")
        assert str(caught.value).startswith(f"{whole} and {other}: have both played the task {key};")
    assert not (tmp_path / "merged.run").exists()


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE manifest SET body = json_set(body, '$.seed', 7)", r"differs in seed \(was 0, now 7\)"),
        ("UPDATE pressure SET body = body || ' '", "differs in its tasks, scenarios or pressure messages"),
        ("UPDATE scenario SET body = body || ' '", "differs in its tasks, scenarios or pressure messages"),
        ("UPDATE task SET epoch = 2, key = key || 2 WHERE number = 0", "pressure messages"),
        ("DELETE FROM task WHERE number = 7", "differs in its tasks, scenarios or pressure messages"),
    ],
)
def test_a_file_of_another_run_is_refused(statement: str, sentence: str, whole: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(whole, tmp_path / "other.run"))
    edit(other, statement)
    with pytest.raises(RunMismatch, match=sentence) as caught:
        merge([whole, other], tmp_path / "merged.run")
    assert str(caught.value).startswith(str(other))


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO reply VALUES (900, 0, 'x')",
        "INSERT INTO reply VALUES (-1, 0, 'x')",
        "INSERT INTO outcome SELECT 900, outcome, record, fingerprint FROM outcome LIMIT 1",
        "INSERT INTO error VALUES (NULL, 900, 0, 'x')",
        "INSERT INTO annotation VALUES (NULL, 900, 'a', '', 'b', 'c')",
        "UPDATE reply SET body = x'00' WHERE task = 1",
        "UPDATE task SET number = 900 WHERE number = 0",
    ],
)
def test_a_damaged_file_is_refused_and_leaves_nothing(statement: str, whole: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(whole, tmp_path / "other.run"))
    edit(other, statement)
    with pytest.raises(NotARunFile, match="is damaged"):
        merge([other], tmp_path / "merged.run")
    assert list(tmp_path.iterdir()) == [other]


def test_rows_of_another_shards_tasks_are_refused_and_not_dropped(whole: Path, tmp_path: Path) -> None:
    shard = part(whole, tmp_path / "1.run", {}, Shard(1, 2))
    edit(shard, "INSERT INTO reply SELECT min(number), 0, 'x' FROM task WHERE number NOT IN share")
    with pytest.raises(NotARunFile, match="belong to other shards: 1"):
        merge([shard], tmp_path / "merged.run")


def test_annotations_are_merged(whole: Path, tmp_path: Path) -> None:
    paths = []
    for number in (1, 2):
        states = {task: done(whole)[task] for task in share_of(Shard(number, 2), domains(whole))}
        path = part(whole, tmp_path / f"{number}.run", states, Shard(number, 2))
        edit(path, "INSERT INTO question VALUES ('q', '{}')")
        edit(path, "INSERT INTO rater VALUES ('judge', '{}')")
        edit(path, "INSERT INTO annotation SELECT NULL, task, 'q', '', 'judge', task FROM share")
        paths.append(path)
    merge(paths, tmp_path / "merged.run")
    found = rows(tmp_path / "merged.run", "annotation", "task, body")
    assert found == [(number, str(number)) for number in range(TASKS)]
    for table in ("question", "rater"):
        assert rows(tmp_path / "merged.run", table) == rows(paths[0], table)
        other = Path(shutil.copy(paths[1], tmp_path / f"{table}.run"))
        edit(other, f"UPDATE {table} SET body = 'x'")
        with pytest.raises(RunMismatch, match=f"has another {table} '"):
            merge([paths[0], other], tmp_path / "refused.run")


def test_a_file_that_is_being_played_is_refused(whole: Path, tmp_path: Path) -> None:
    shard = part(whole, tmp_path / "1.run", {}, Shard(1, 2))
    with RunFile.open(shard, write=True), pytest.raises(BadInput, match="is being written to"):
        merge([whole, shard], tmp_path / "merged.run")
    assert [path.name for path in tmp_path.iterdir()] == ["1.run"]
    merge([whole, shard], tmp_path / "merged.run")  # nothing has begun in the shard


def test_nothing_is_overwritten(whole: Path, tmp_path: Path) -> None:
    for name in ("a.run", "folder"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "a.run").write_text("mine")
        with pytest.raises(BadInput, match="exists already"):
            merge([whole], tmp_path / name)
    assert (tmp_path / "a.run").read_text() == "mine"
    same = Path(shutil.copy(whole, tmp_path / "same.run"))
    with pytest.raises(BadInput, match="exists already"):
        merge([same], same)


def test_a_killed_shard_with_a_log_beside_it_is_merged_with_what_is_in_the_log(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", limit=2)
    copy = tmp_path / "killed"
    copy.mkdir()
    with RunFile.open(path, write=True) as run:
        run_tasks(run, client_of(run.manifest.model), at(2))
        for beside in ("a.run", "a.run-wal"):  # what a kill leaves
            shutil.copy(tmp_path / beside, copy / beside)
    assert (copy / "a.run-wal").stat().st_size
    merge([copy / "a.run"], tmp_path / "merged.run")
    assert journal(tmp_path / "merged.run") == journal(path) != set()
