"""Shards: which tasks each plays, and run files that play only those."""

import shutil
from pathlib import Path

import pytest
from helpers.run_edits import edit
from helpers.runs import finish, journal
from helpers.shards import domains, make_shard, rows
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.engine import RunSpec, create_run, is_complete
from propensitybench.episode import Protocol
from propensitybench.errors import BadInput, NotARunFile, RunMismatch
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile, Shard, StoppingRule, mismatches, read_shard
from propensitybench.store.shards import share_of

# A task of another shard.
OTHER = "(SELECT min(number) FROM task WHERE number NOT IN share)"
SPEC = RunSpec("simulated/o3-like", selection=Selection(limit=7), protocol=Protocol(levels=1))


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished second of three shards."""
    path = tmp_path_factory.mktemp("shards") / "2.run"
    create_run(with_shard(Shard(2, 3)), path)
    finish(path)
    return path


@pytest.fixture
def copy(shard: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(shard, tmp_path / "copy.run"))


def with_shard(shard: Shard | None) -> RunSpec:
    return RunSpec(SPEC.model, selection=SPEC.selection, protocol=SPEC.protocol, shard=shard)


def problems(path: Path) -> list[str]:
    with RunFile.open(path) as run:
        return [difference.what for difference in mismatches(run)]


@given(st.lists(st.sampled_from("abcd"), max_size=60), st.integers(1, 70))
def test_shards_are_a_balanced_partition(domains: list[str], of: int) -> None:
    shares = [share_of(Shard(number, of), domains) for number in range(1, of + 1)]
    assert sorted(number for share in shares for number in share) == list(range(len(domains)))
    assert all(share == sorted(share) for share in shares)
    for part in (domains, *([domain] for domain in set(domains))):
        sizes = [sum(domains[number] in part for number in share) for share in shares]
        assert max(sizes) - min(sizes) <= 1


def test_tasks_are_dealt_by_domain_in_rounds() -> None:
    order = ["b", "a", "b", "a", "a"]  # of a: 1 | 3, then 4 to the first shard; of b: 0 | 2
    assert [share_of(Shard(number, 2), order) for number in (1, 2)] == [[0, 3, 4], [1, 2]]


def test_every_shard_has_both_namings() -> None:
    # The namings of a pair follow each other, so they are the even and the odd numbers.
    for number in range(1, 65):
        share = share_of(Shard(number, 64), ["a"] * 640)
        assert sum(number % 2 for number in share) == 5


@pytest.mark.parametrize(
    "text", ["", "3", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b", " 1/2", "1/1000001", "\u0661/\u0662"]
)
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"^shard ") as caught:
        read_shard(text)
    assert "\n" not in str(caught.value)
    assert str(read_shard("1/1000000")) == "1/1000000"


def test_a_shard_has_all_tasks_and_plays_its_share(shard: Path) -> None:
    share = share_of(Shard(2, 3), domains(shard))
    with RunFile.open(shard) as run:
        assert run.shard == Shard(2, 3)
        assert len(list(run.tasks())) == run.manifest.tasks == 14
        assert [task.number for task in run.own_tasks()] == share
        assert run.planned == run.finished() == len(share)
        assert is_complete(run)
        keys = run.task_keys()
    assert {task for task, _ in journal(shard)} == set(keys)
    assert problems(shard) == []


def test_a_shard_without_tasks_is_complete_at_once(tmp_path: Path) -> None:
    create_run(with_shard(Shard(15, 15)), tmp_path / "a.run")
    assert finish(tmp_path / "a.run") == (0, 0, None, "")
    with RunFile.open(tmp_path / "a.run") as run:
        assert is_complete(run)


def test_a_file_of_another_part_of_the_run_is_refused(shard: Path) -> None:
    for other in (None, Shard(1, 3), Shard(2, 4)):
        with pytest.raises(RunMismatch, match="holds shard 2/3 of the run, not "):
            create_run(with_shard(other), shard)
    create_run(with_shard(Shard(2, 3)), shard)


def test_a_shard_has_no_stopping_rule(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot have a stopping rule"):
        create_run(
            RunSpec("simulated/never", stopping_rule=StoppingRule(0.1), shard=Shard(1, 2)), tmp_path / "a"
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM shard", "the file is no shard"),
        ("UPDATE shard SET number = 1", "the share is not that of shard 1/3"),
        ("UPDATE shard SET count = 4", "the share is not that of shard 2/4"),
        ("DELETE FROM share", "the share is not that of shard 2/3"),
        ("INSERT INTO share SELECT number FROM task WHERE number NOT IN share", "the share is not that"),
        ("INSERT INTO share VALUES (900)", "the share is not that of shard 2/3"),
        (f"INSERT INTO reply SELECT {OTHER}, 0, body FROM reply LIMIT 1", "rows of 'reply' that"),
        (
            f"INSERT INTO outcome SELECT {OTHER}, outcome, record, 'f' FROM outcome LIMIT 1",
            "of 'outcome' that",
        ),
        (
            f"INSERT INTO error VALUES (NULL, {OTHER}, 0, 'x')",
            "rows of 'error' that belong to other shards: 1",
        ),
        (f"INSERT INTO annotation VALUES (NULL, {OTHER}, 'a', '', 'b', 'c')", "rows of 'annotation' that"),
    ],
)
def test_verify_finds_wrong_shares_and_rows_of_other_shards(
    statement: str, expected: str, copy: Path
) -> None:
    edit(copy, statement)
    assert any(expected in what for what in problems(copy))


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO shard VALUES (1, 3)",
        "UPDATE shard SET number = 0",
        "UPDATE shard SET number = 4",
        "UPDATE shard SET count = 1000001",
        "UPDATE shard SET number = 'x'",
        "UPDATE shard SET count = 2.5",
        "UPDATE manifest SET body = json_set(body, '$.stopping_rule', json('{\"half_width\":0.1}'))",
    ],
)
def test_a_shard_that_cannot_be_is_refused(statement: str, copy: Path) -> None:
    edit(copy, statement)
    with pytest.raises(NotARunFile, match="is damaged"):
        RunFile.open(copy)


def test_a_share_made_by_hand_is_the_one_that_is_computed(shard: Path, tmp_path: Path) -> None:
    create_run(with_shard(None), tmp_path / "whole.run")
    make_shard(tmp_path / "whole.run", Shard(2, 3), shard)
    assert rows(tmp_path / "whole.run", "share") == rows(shard, "share")
