"""Run files that are read as one run, and those that are not."""

import asyncio
import shutil
from pathlib import Path

import pytest
from helpers.run_edits import edit
from helpers.runs import finish
from helpers.shards import State, part

import propensitybench as pb
from propensitybench.cli.options import DEFAULTS
from propensitybench.clients.options import Transport
from propensitybench.engine import ExecutionOptions, RunSpec, create_run
from propensitybench.episode import Protocol
from propensitybench.errors import RunMismatch, UnknownName
from propensitybench.judging import keyless
from propensitybench.judging.asking import judge_run
from propensitybench.judging.plan import Judging
from propensitybench.judging.questions import read_question
from propensitybench.pages.judged import answers_in
from propensitybench.runs import ShardedRun, StoredRun, read_runs
from propensitybench.runs.read import run_files
from propensitybench.runs.start import transport_of
from propensitybench.scenarios import Selection
from propensitybench.store import Shard


def made(path: Path, shard: Shard | None = None, seed: int = 0) -> Path:
    """A finished run file of six tasks, or of a shard of them."""
    path.parent.mkdir(exist_ok=True)
    selection = Selection(limit=3)
    create_run(
        RunSpec("simulated/o3-like", None, selection, seed, Protocol(levels=1), shard=shard),
        path,
    )
    finish(path)
    return path


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a whole run and its two shards, each in a folder of its own."""
    folder = tmp_path_factory.mktemp("sound")
    made(folder / "whole" / "w.run")
    for number in (1, 2):
        made(folder / "shards" / f"{number}.run", Shard(number, 2))
    return folder


def names(*paths: Path) -> list[tuple[str, int]]:
    return [(run.file, len(run.records)) for run in read_runs(paths).runs]


def test_shards_of_a_run_are_one_run_in_the_place_of_the_first(sound: Path, tmp_path: Path) -> None:
    other = [made(tmp_path / f"{number}.run", Shard(number, 3), seed=5) for number in (1, 2)]
    one, two = sorted((sound / "shards").iterdir())
    assert names(one, other[0], two) == [("2 shards", 6), (str(other[0]), 2)]
    assert names(other[0], sound / "shards", other[1]) == [("2 shards", 4), (str(sound / "shards"), 6)]


def test_whole_runs_with_equal_settings_are_two_runs_unless_there_is_a_shard_of_them(
    sound: Path, tmp_path: Path
) -> None:
    whole = sound / "whole" / "w.run"
    again = Path(shutil.copy(whole, tmp_path / "again.run"))
    assert [count for _, count in names(whole, again)] == [6, 6]
    assert names(whole, again, sound / "shards") == [("4 shards", 6)]


def test_a_task_that_is_finished_in_one_file_and_begun_in_another_counts_once(
    sound: Path, tmp_path: Path
) -> None:
    whole = sound / "whole" / "w.run"
    early = part(whole, tmp_path / "early.run", {0: State(1), 1: State(1, "429"), 5: State(1)})
    for paths in ((early, sound / "shards"), (sound / "shards", early)):
        (run,) = read_runs(paths).runs
        assert run.records == StoredRun(whole).records
        assert run.journal == StoredRun(whole).journal
        assert [str(run.transcript(task)) for task in run.tasks] == [
            str(StoredRun(whole).transcript(task)) for task in run.tasks
        ]


def test_what_has_begun_in_any_file_is_unfinished(sound: Path, tmp_path: Path) -> None:
    early = part(sound / "whole" / "w.run", tmp_path / "1.run", {}, Shard(1, 2))
    edit(early, 'INSERT INTO reply SELECT min(task), 0, \'{"content":"no"}\' FROM share')
    (run,) = read_runs([early, sound / "shards" / "2.run"]).runs
    counts = run.score().tasks
    assert (counts.total, counts.unfinished, counts.unplayed) == (6, 1, 2)


def test_a_sharded_run_has_no_other_tasks(sound: Path) -> None:
    run = pb.open(sound / "shards")
    assert isinstance(run, ShardedRun)
    assert run.paths == sorted((sound / "shards").iterdir())
    with pytest.raises(UnknownName, match="unknown task 'nothing'"):
        run.transcript("nothing")


def test_files_that_contradict_each_other_are_refused(sound: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(sound / "shards" / "1.run", tmp_path / "other.run"))
    edit(other, "UPDATE outcome SET fingerprint = 'other'")
    with pytest.raises(RunMismatch, match=r"other\.run: hold different replies or outcomes of the task"):
        read_runs([sound / "shards", other])


def test_a_report_has_the_answers_about_the_transcripts_of_all_shards(sound: Path, tmp_path: Path) -> None:
    judging = Judging((read_question("awareness"),), (keyless.MODEL,))
    whole = Path(shutil.copy(sound / "whole" / "w.run", tmp_path / "whole.run"))
    shards = Path(shutil.copytree(sound / "shards", tmp_path / "shards"))
    assert answers_in(pb.open(shards)) == []
    for path in (whole, *shards.iterdir()):
        asyncio.run(judge_run(path, judging, ExecutionOptions()))
    ((of_shards,), (of_whole,)) = answers_in(pb.open(shards)), answers_in(pb.open(whole))
    assert of_shards.results.read == 6
    assert of_shards.results == of_whole.results


def test_run_files_are_found_once_in_folders(sound: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(sound / "shards" / "1.run")
    (tmp_path / "notes.txt").write_text("x")
    found = run_files([sound / "shards", sound, tmp_path])
    assert [path.name for path in found] == ["1.run", "2.run", "w.run"]


def test_a_shard_has_its_part_of_the_rates() -> None:
    given = Transport(rpm=600, tpm=100, concurrency=7)
    assert transport_of(Shard(3, 5), given) == Transport(rpm=120, tpm=20, concurrency=7)
    assert transport_of(Shard(3, 200), given).tpm == 0.5
    assert transport_of(None, given) == given
    assert transport_of(Shard(1, 2), DEFAULTS) == DEFAULTS
