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
from propensitybench.store import RunFile, Shard, merge, verify
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
        return [difference.what for difference in verify(run)]


@given(data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_partition_however_far_it_has_come_gives_the_run_made_in_one_piece(
    whole: Path, data: st.DataObject
) -> None:
    ended = lengths(whole)
    of = data.draw(st.integers(1, TASKS + 2), label="shards")
    # Some shards more than once, as copies that went their own ways; `None` is a whole run file.
    numbers = data.draw(st.lists(st.none() | st.integers(1, of), min_size=1, max_size=5), label="files")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        best = dict.fromkeys(range(TASKS), (False, 0))
        paths, errors = [], set()
        for place, number in enumerate(numbers):
            shard = None if number is None else Shard(number, of)
            states = {}
            for task in share(whole, shard):
                error = data.draw(st.sampled_from(["", "429", f"reset {place}"]))
                count = data.draw(st.integers(0, ended[task] - bool(error)))
                if count or error:
                    states[task] = State(count, error)
                best[task] = max(best[task], (count == ended[task], count))
                errors |= {(task, count, error)} if error else set()
            paths.append(part(whole, folder / f"{place}.run", states, shard))
        before = [path.read_bytes() for path in paths]

        merged = merge(paths, folder / "merged.run")

        assert [path.read_bytes() for path in paths] == before
        assert merged.finished == sum(finished for finished, _ in best.values())
        assert merged.tasks == TASKS
        assert problems(folder / "merged.run") == []
        kept = [row for row in played(whole)[0] if row[1] < best[row[0]][1]]
        assert rows(folder / "merged.run", "reply") == kept
        assert set(rows(folder / "merged.run", "error", "task, turn, body")) == errors
        finish(folder / "merged.run")
        assert played(folder / "merged.run") == played(whole)
        assert scores(folder / "merged.run") == scores(whole)


def share(whole: Path, shard: Shard | None) -> list[int]:
    return list(range(TASKS)) if shard is None else share_of(shard, domains(whole))


def test_missing_shards_are_named_and_their_tasks_unplayed(whole: Path, tmp_path: Path) -> None:
    paths = []
    for number in (1, 3):
        states = {task: done(whole)[task] for task in share(whole, Shard(number, 4))}
        paths.append(part(whole, tmp_path / f"{number}.run", states, Shard(number, 4)))
    merged = merge(paths, tmp_path / "merged.run")
    assert merged == (2, TASKS, 4, 0, (Shard(2, 4), Shard(4, 4)))
    with RunFile.open(tmp_path / "merged.run") as run:
        assert run.shard is None
        assert run.planned == TASKS
        assert len(list(run.unfinished())) == 4
    again = merge([tmp_path / "merged.run", paths[0]], tmp_path / "again.run")
    assert (again.finished, again.missing) == (4, ())


def test_an_errored_task_that_was_played_anew_elsewhere_is_finished_and_its_error_kept(
    whole: Path, tmp_path: Path
) -> None:
    count = lengths(whole)[0]
    errored = part(whole, tmp_path / "errored.run", {0: State(count - 1, "the endpoint is gone")})
    # Other replies, and more of them than the task has in the end.
    edit(errored, "UPDATE reply SET body = json_set(body, '$.content', 'other') WHERE turn = 0")
    edit(errored, "INSERT INTO reply SELECT task, 900, body FROM reply WHERE turn = 0")
    edit(errored, "UPDATE error SET turn = 901")
    finished = part(whole, tmp_path / "finished.run", {0: State(count)})
    for number, order in enumerate([(errored, finished), (finished, errored)]):
        merge(order, tmp_path / f"{number}.run")
        assert played(tmp_path / f"{number}.run") == played(finished)
        assert rows(tmp_path / f"{number}.run", "error") == [(1, 0, count, "the endpoint is gone")]
        assert problems(tmp_path / f"{number}.run") == []


def test_the_last_error_of_a_task_stays_that_of_its_outcome(whole: Path, tmp_path: Path) -> None:
    count = lengths(whole)[0]
    longer = part(whole, tmp_path / "longer.run", {0: State(count - 1, "last")})
    edit(longer, "INSERT INTO error SELECT 0, task, 0, 'last' FROM error")
    edit(longer, "INSERT INTO error SELECT -1, task, turn, body FROM error LIMIT 1")
    shorter = part(whole, tmp_path / "shorter.run", {0: State(0, "last")})
    edit(shorter, "INSERT INTO error SELECT -7, task, 0, 'first' FROM error")
    for number, order in enumerate([(longer, shorter), (shorter, longer)]):
        merge(order, tmp_path / f"{number}.run")
        found = rows(tmp_path / f"{number}.run", "error", "number, turn, body")
        assert [row[1:] for row in found] == [(0, "first"), (0, "last"), (0, "last"), (count - 1, "last")]
        assert problems(tmp_path / f"{number}.run") == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE reply SET body = json_set(body, '$.content', 'other') WHERE task = 0 AND turn = 0",
        "UPDATE outcome SET fingerprint = 'other' WHERE task = 0",
        "UPDATE outcome SET record = replace(record, ':', ': ') WHERE task = 0",
        "DELETE FROM reply WHERE task = 0 AND turn = 0",
    ],
)
def test_files_that_contradict_each_other_are_refused_with_the_task_and_both_names(
    statement: str, whole: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copy(whole, tmp_path / "other.run"))
    edit(other, statement)
    with RunFile.open(whole) as run:
        key = run.task_keys()[0]
    with pytest.raises(RunMismatch) as caught:
        merge([whole, other], tmp_path / "merged.run")
    for word in (str(whole), str(other), key):
        assert word in str(caught.value)
    assert list(tmp_path.iterdir()) == [other]


def test_an_unfinished_task_with_other_replies_is_refused(whole: Path, tmp_path: Path) -> None:
    begun = part(whole, tmp_path / "begun.run", {3: State(1)})
    edit(begun, "UPDATE reply SET body = json_set(body, '$.content', 'other')")
    with pytest.raises(RunMismatch, match="hold different replies"):
        merge([begun, whole], tmp_path / "merged.run")


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE manifest SET body = json_set(body, '$.seed', 7)", r"differs in seed \(was 0, now 7\)"),
        ("UPDATE pressure SET body = body || ' '", "pressure messages differ"),
        ("UPDATE scenario SET body = body || ' '", "pressure messages differ"),
        ("UPDATE task SET epoch = 2, key = key || 2 WHERE number = 0", "its task 0 is another"),
        ("DELETE FROM task WHERE number = 7", "pressure messages differ"),
    ],
)
def test_a_file_of_another_run_is_refused(statement: str, sentence: str, whole: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(whole, tmp_path / "other.run"))
    edit(other, statement)
    with pytest.raises(RunMismatch, match=sentence) as caught:
        merge([whole, other], tmp_path / "merged.run")
    assert str(caught.value).startswith(str(other))


def test_what_differs_from_file_to_file_of_a_run_does_not_matter(whole: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(whole, tmp_path / "other.run"))
    edit(other, "UPDATE manifest SET body = json_set(body, '$.created', '2020-01-01T00:00:00+00:00')")
    merge([whole, other], tmp_path / "merged.run")
    assert rows(tmp_path / "merged.run", "manifest") == rows(whole, "manifest")


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
        "UPDATE manifest SET body = json_set(body, '$.tasks', 9223372036854775807)",
    ],
)
def test_a_damaged_file_is_refused_and_leaves_nothing(statement: str, whole: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(whole, tmp_path / "other.run"))
    edit(other, statement)
    with pytest.raises(NotARunFile, match="is damaged"):
        merge([other], tmp_path / "merged.run")
    assert list(tmp_path.iterdir()) == [other]


def test_rows_of_another_shards_tasks_are_refused_not_dropped(whole: Path, tmp_path: Path) -> None:
    shard = part(whole, tmp_path / "1.run", {}, Shard(1, 2))
    edit(shard, "INSERT INTO reply SELECT min(number), 0, 'x' FROM task WHERE number NOT IN share")
    with pytest.raises(NotARunFile, match="which it does not play"):
        merge([shard], tmp_path / "merged.run")


def test_annotations_are_merged(whole: Path, tmp_path: Path) -> None:
    paths = [Path(shutil.copy(whole, tmp_path / f"{name}.run")) for name in "ab"]
    for path, tasks in zip(paths, [(0, 1), (1, 2)], strict=True):
        edit(path, "INSERT INTO question VALUES ('q', '{}')")
        edit(path, "INSERT INTO rater VALUES ('judge', '{}')")
        for task in tasks:
            edit(path, f"INSERT INTO annotation VALUES (NULL, {task}, 'q', '', 'judge', '{{\"{task}\":1}}')")
    merge(paths, tmp_path / "merged.run")
    assert rows(tmp_path / "merged.run", "annotation", "task, body") == [
        (n, f'{{"{n}":1}}') for n in range(3)
    ]
    for table in ("question", "rater"):
        assert rows(tmp_path / "merged.run", table) == rows(paths[0], table)
    for table, named in (
        ("annotation", "question q about the task"),
        ("question", "question q"),
        ("rater", "judge"),
    ):
        other = Path(shutil.copy(paths[1], tmp_path / f"{table}.run"))
        edit(other, f"UPDATE {table} SET body = 'x'")
        with pytest.raises(RunMismatch, match=named) as caught:
            merge([paths[0], other], tmp_path / "refused.run")
        assert str(caught.value).startswith(f"{paths[0]} and {other}: ")


def test_a_file_that_is_being_played_is_refused(whole: Path, tmp_path: Path) -> None:
    shard = part(whole, tmp_path / "1.run", {}, Shard(1, 2))
    with RunFile.open(shard, write=True), pytest.raises(BadInput, match="is being written to"):
        merge([whole, shard], tmp_path / "merged.run")
    assert [path.name for path in tmp_path.iterdir()] == ["1.run"]
    merge([whole, shard], tmp_path / "merged.run")


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
