"""The file that a page saves: stored all or not at all, and only where it belongs."""

import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from helpers.hostile_runs import EVIL
from helpers.people import QUESTION, answers_of, left, misaligned_run, quotable_texts, saved_labels
from helpers.program import call

from propensitybench.judging.people import PersonsAnswer
from propensitybench.judging.questions import read_question
from propensitybench.judging.sample import Size, stored_sample
from propensitybench.runs import StoredRun
from propensitybench.store import RunFile


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return misaligned_run(tmp_path_factory.mktemp("played") / "at-level-1.run")


@pytest.fixture
def run(played: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(played, tmp_path / "a.run"))


def as_saved(category: str, quote: str = "") -> dict[str, str]:
    return {"category": category, "quote": quote}


def test_a_saved_file_is_stored_once(run: Path) -> None:
    first, second, third, *_ = left(run, "Ann")
    own = quotable_texts(run, first)[-1]
    given = {first: as_saved("NECESSITY", own), second: as_saved("none stated", "words that nobody needs")}
    path = saved_labels(run, given)
    assert call("label", run, "--read", path).out == "answers of Ann stored: 2; there already: 0\n"
    expected = {first: PersonsAnswer("necessity", own), second: PersonsAnswer("none stated")}
    assert answers_of(run, "Ann") == expected
    path = saved_labels(run, {**given, third: {"category": "authority"}})
    assert call("label", run, "--read", path).out == "answers of Ann stored: 1; there already: 2\n"
    assert answers_of(run, "Ann") == {**expected, third: PersonsAnswer("authority")}


OTHER: Final = read_question("awareness").digest
# The task about which Ann has answered stands as TASK.
WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"run": "0"}, "its answers are about another run than"),
    ({"question": OTHER}, "no sample was drawn in"),
    ({"format": "propensitybench-labels/2"}, "is not a file of labels (Invalid enum value"),
    ({"more": 1}, "is not a file of labels (Object contains unknown field `more`)"),
    ({"person": ""}, "the person's name ''"),
    ({"person": "ANN"}, "ANN: Ann has answers in"),
    ({"answers": [1]}, "is not a file of labels (Expected `object`, got `array`"),
    ({"answers": {"TASK": as_saved("authority")}}, "task TASK: Ann has answered otherwise in"),
    ({"answers": {EVIL: as_saved("none stated")}}, "is not in the sample of"),
    ({"answers": {"TASK": as_saved("greed")}}, "task TASK: there is no category 'greed'; use one of"),
    ({"answers": {"TASK": as_saved("")}}, "task TASK: there is no category ''; use one of"),
    ({"answers": {"TASK": as_saved("authority", "No.")}}, "the quote 'No.' is not in the agent's words"),
)


def test_of_a_wrong_file_nothing_is_stored(run: Path) -> None:
    first, second, *_ = left(run, "Ann")
    call("label", run, "--read", saved_labels(run, {first: as_saved("none stated")}))
    for changes, sentence in WRONG:
        body, complaint = dict(changes), sentence.replace("TASK", first)
        if isinstance(given := body.get("answers"), dict):
            wrong = {first if task == "TASK" else task: answer for task, answer in given.items()}
            body["answers"] = {second: as_saved("none stated"), **wrong}
        path = saved_labels(run, {second: as_saved("none stated")}, changes=body)
        done = call("label", run, "--read", path)
        assert (done.code, len(done.err.splitlines())) == (2, 1), done
        assert f"--read {path}: " in done.err
        assert complaint in done.err
        assert answers_of(run, "Ann") == {first: PersonsAnswer("none stated")}


def test_an_episode_outside_the_sample_is_refused(run: Path) -> None:
    left(run, "Ann", Size(3))
    with RunFile.open(run) as file:
        sample = stored_sample(file, QUESTION)
    assert sample is not None
    other = next(task for task in StoredRun(run).tasks if task not in sample.drawn)
    done = call("label", run, "--read", saved_labels(run, {other: as_saved("none stated")}))
    assert done.code == 2
    assert f"task '{other}' is not in the sample of" in done.err


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"{" * 5000, "is not a file of labels"), (b"[" * 100_000, "is not a file of labels"),
     (b"\xff", "is not UTF-8 text"), (b" " * (16 * 2**20 + 1), "is larger than 16 MiB")],
)  # fmt: skip
def test_a_hostile_file_is_refused(run: Path, content: bytes, complaint: str) -> None:
    path = run.parent / "labels.json"
    path.write_bytes(content)
    done = call("label", run, "--read", path)
    assert (done.code, len(done.err.splitlines())) == (2, 1), done
    assert complaint in done.err
