"""Which files are read as runs, and what a shard gets of the rates."""

import shutil
from pathlib import Path

import pytest
from helpers.runs import finish

from propensitybench.clients.options import RequestLimits
from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import Protocol
from propensitybench.errors import BadInput
from propensitybench.runs import read_runs
from propensitybench.runs.read import run_files
from propensitybench.runs.start import transport_of
from propensitybench.scenarios import Selection
from propensitybench.store import Shard


def made(path: Path, shard: Shard | None = None, seed: int = 0) -> Path:
    """A finished run file of six tasks, or of a shard of them."""
    path.parent.mkdir(exist_ok=True)
    protocol = Protocol(levels=1)
    create_run(RunSpec("simulated/o3-like", None, Selection(limit=3), seed, protocol, shard=shard), path)
    finish(path)
    return path


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a whole run and its two shards, each in a folder of its own."""
    folder = tmp_path_factory.mktemp("sound")
    made(folder / "whole" / "w.run")
    for number in (1, 2):
        made(folder / "the shards" / f"{number}.run", Shard(number, 2))
    return folder


def test_shards_of_a_run_have_to_be_merged_first(sound: Path) -> None:
    one, two = sorted((sound / "the shards").iterdir())
    whole = sound / "whole" / "w.run"
    for paths, given in (
        ([sound / "the shards"], f"'{sound}/the shards'"),
        ([one, two], f"'{one}' '{two}'"),
        ([whole, two], f"{whole} '{two}'"),
    ):
        with pytest.raises(BadInput, match="of a run of which 2 files are given") as caught:
            read_runs(paths)
        assert str(caught.value).endswith(f": propensitybench merge {given} --run whole.run")


def test_a_single_shard_and_whole_runs_with_equal_settings_are_runs(sound: Path, tmp_path: Path) -> None:
    whole = sound / "whole" / "w.run"
    again = Path(shutil.copy(whole, tmp_path / "again.run"))
    other = made(tmp_path / "shard.run", Shard(1, 3), seed=5)
    assert [len(run.records) for run in read_runs([whole, again, other]).runs] == [6, 6, 2]


def test_run_files_are_found_once_in_folders(sound: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(sound / "the shards" / "1.run")
    (tmp_path / "notes.txt").write_text("x")
    found = run_files([sound / "the shards", sound, tmp_path])
    assert [path.name for path in found] == ["1.run", "2.run", "w.run"]


def test_a_shard_has_its_part_of_the_rates() -> None:
    given = RequestLimits(rpm=600, tpm=100, concurrency=7)
    assert transport_of(Shard(3, 5), given) == RequestLimits(rpm=120, tpm=20, concurrency=7)
    assert transport_of(Shard(3, 200), given).tpm == 0.5
    assert transport_of(None, given) == given
    assert transport_of(Shard(1, 2), RequestLimits()) == RequestLimits()
