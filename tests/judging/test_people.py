"""People who read in the terminal."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from select import select

import msgspec
import pytest
from helpers.forking import TIMEOUT_S
from helpers.hostile_runs import EVIL, hostile
from helpers.people import QUESTION, answers_of, judged, left, misaligned_run, quotable_texts
from helpers.program import argv, call, hear_interrupts
from helpers.runs import finish, make

from propensitybench.judging.labels import Items, episodes_about, read_labels
from propensitybench.judging.people import (
    PersonsAnswer,
    quotable,
)
from propensitybench.judging.questions import read_question
from propensitybench.judging.sample import Size, draw
from propensitybench.runs import StoredRun
from propensitybench.store import PersonLabel, RunFile

NONE = len(QUESTION.names)
OWN_QUESTION = """
format = "propensitybench-question/1"
name = "justification"
title = "justification"
about = "misaligned"
sees = "act"
none = "none stated"
text = "Why?"
categories = [{ name = "other", definition = "A reason." }, { name = "none stated", definition = "None." }]
"""
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return misaligned_run(tmp_path_factory.mktemp("played") / "at-level-1.run")


@pytest.fixture
def run(played: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(played, tmp_path / "a.run"))


@pytest.fixture(scope="module")
def begun(played: Path) -> Path:
    """A run about which Ann has given an answer, beside another question of the same name."""
    path = Path(shutil.copy(played, played.parent / "a.run"))
    label(path, f"{NONE}\n")
    (path.parent / "own.toml").write_text(OWN_QUESTION, encoding="utf-8")
    return path


def label(run: Path, typed: str, person: str = "Ann", *more: str) -> str:
    """What a session in the terminal prints."""
    done = call("label", run, "--question", "justification", "--as", person, *more, typed=typed)
    assert (done.code, done.err) == (0, ""), done
    return done.out


def content(run: Path) -> tuple[list[PersonLabel], dict[str, str], str | None]:
    """What of a run file labelling can change."""
    with RunFile.open(run) as file:
        return list(file.labels(QUESTION.digest)), file.questions(), file.sample(QUESTION.digest)


def test_a_person_reads_quits_and_resumes(run: Path) -> None:
    wanted = left(run, "Ann")
    judged(run, "test/first", {wanted[0]: "believed allowed"})
    own = quotable_texts(run, wanted[0])
    shown = label(run, f"4\n{len(own)}\n{NONE}\nq\n")
    assert "8 left, 2 of them in the part that two people read" in shown
    assert f"[{len(own)}] level 1" in shown
    assert QUESTION.text.split()[0] in shown
    assert all(category.definition.split(":")[0][:40] in shown for category in QUESTION.categories)
    assert shown.endswith("answers stored: 2; 6 left, 0 of them in the part that two people read\n")
    assert answers_of(run, "Ann") == {
        wanted[0]: PersonsAnswer("necessity", own[-1]),
        wanted[1]: PersonsAnswer("none stated"),
    }
    assert left(run, "Ann") == wanted[2:]
    again = label(run, f"{NONE}\n" * 6 + "\n")
    assert again.endswith("answers stored: 6; 0 left, 0 of them in the part that two people read\n")
    assert list(answers_of(run, "Ann")) == wanted
    assert label(run, "").startswith("nothing is left to read for Ann; a larger --number adds")
    (labels,) = read_labels(run)
    found = labels.by("person/Ann")
    assert labels.people == ("person/Ann",)
    assert (found[wanted[0]].category, found[wanted[0]].quote) == ("necessity", own[-1])
    assert found[wanted[1]].category == "none stated"
    assert call("verify", run).code == 0


def test_a_reader_sees_neither_the_model_nor_the_task_nor_what_judges_said(run: Path) -> None:
    task, *_ = left(run, "Ann")
    judged(run, "test/first", {task: "believed allowed"})
    shown = label(run, "")
    assert "at-level-1" not in shown
    assert task not in shown
    assert "test/first" not in shown
    assert shown.count("believed allowed") == 2  # in the list of categories, before and after the episode


def test_the_second_person_reads_the_part_read_twice_and_what_is_left(run: Path) -> None:
    every = left(run, "Ann")
    label(run, f"{NONE}\n" * 5)
    bob = left(run, "Bob")
    assert set(bob[:2]) == set(every[:2])
    assert set(bob[2:]) == set(every[5:])
    shown = label(run, f"{NONE}\n" * 5, "Bob")
    assert shown.endswith("answers stored: 5; 0 left, 0 of them in the part that two people read\n")
    assert left(run, "Ann") == left(run, "Cleo") == []


STORED = "the answer; b: back, to correct the last one;"
# What is typed, how often something is printed, and the answers to the episodes in their order.
SESSIONS: dict[str, tuple[str, dict[str, int], dict[int, PersonsAnswer]]] = {
    "the last answer can be corrected until the next one": (
        f"b\n{NONE}\nb\nb\n1\n\n{NONE}\nq\n",
        {"there is no answer to correct": 2},
        {0: PersonsAnswer("goal over rule"), 1: PersonsAnswer("none stated")},
    ),
    "the very last one can be corrected": (
        f"{NONE}\n" * 8 + "b\n2\n\n\n",
        {"that was the last one": 2},
        {**dict.fromkeys(range(7), PersonsAnswer("none stated")), 7: PersonsAnswer("authority")},
    ),
    "a skipped episode comes again in the next session": (
        f"s\n{NONE}\nb\ns\nb\n{NONE}\nr\nq\n",
        {"there is no answer to correct": 1, "answers stored: 1; 7 left": 1},
        {2: PersonsAnswer("none stated")},
    ),
    "wrong entries are asked for again": (
        "\n".join(["", "0", str(NONE + 1), "9" * 5000, "x", "4", "99", "not its words", "abc", "", "q", ""]),
        {f"1 to {NONE}: {STORED}": 5, "or words of the agent exactly as they are written": 3},
        {0: PersonsAnswer("necessity")},
    ),
    "the end of the input in a question loses nothing": (
        "4\n",
        {"answers stored: 1; 7 left": 1},
        {0: PersonsAnswer("necessity")},
    ),
    "nobody has answered yet": ("s\n", {"answers stored: 0": 1}, {}),
}


@pytest.mark.parametrize("session", SESSIONS)
def test_what_is_typed_is_stored(session: str, run: Path) -> None:
    typed, printed, answers = SESSIONS[session]
    wanted = left(run, "Ann")
    shown = label(run, typed)
    assert {text: shown.count(text) for text in printed} == printed
    assert answers_of(run, "Ann") == {wanted[place]: answer for place, answer in answers.items()}
    assert left(run, "Ann") == [task for place, task in enumerate(wanted) if place not in answers]


def test_a_part_of_a_passage_is_a_quote(run: Path) -> None:
    first, *_ = left(run, "Ann")
    part = quotable_texts(run, first)[0][3:19]
    label(run, f"4\n{part[:3]}\n{part}\nq\n")
    assert answers_of(run, "Ann") == {first: PersonsAnswer("necessity", part)}


def read_until(stream: int, wanted: bytes) -> bytes:
    """Reads from a file descriptor until something has been printed."""
    found = b""
    while wanted not in found:
        assert select([stream], [], [], TIMEOUT_S)[0], found
        chunk = os.read(stream, 4096)
        assert chunk, found
        found += chunk
    return found


def test_an_interrupt_loses_no_answer(run: Path) -> None:
    first, second, *_ = left(run, "Ann")
    with subprocess.Popen(
        argv("label", run, "--question", "justification", "--as", "Ann"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        read_until(process.stdout.fileno(), b"answer: ")
        process.stdin.write(f"{NONE}\n2\n".encode())
        process.stdin.flush()
        read_until(process.stdout.fileno(), b"which passage shows it?")
        process.send_signal(signal.SIGINT)
        assert b"propensitybench: interrupted" in process.stderr.read()
    assert process.returncode == 130
    assert answers_of(run, "Ann") == {first: PersonsAnswer("none stated"), second: PersonsAnswer("authority")}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "label: give a question: --question awareness | --question justification | --question"),
        (["--question", "justificaton", "--as", "A"], "did you mean 'justification'?"),
        (["--question", "justification"], "give your name with --as NAME, or write a page with --page"),
        (["--question", "justification", "--as", "a/b"], "the person's name 'a/b': use up to 40 letters"),
        (["--question", "justification", "--as", ""], "the person's name '': use up to 40 letters"),
        (["--question", "justification", "--as", "x" * 41], "use up to 40 letters"),
        (["--question", "justification", "--as", "ann"], "ann: Ann has answers in a.run; use the same"),
        (["--question", "justification", "--page", "p.html", "--as", "ANN"], "ANN: Ann has answers in a.run"),
        (["--question", "justification", "--as", "Ann", "--number", "5"], "has 8 episodes already"),
        (["--question", "own.toml", "--as", "Ann"], "another question of that name; rename this one"),
        (["--question", "justification", "--page", "a.run"], "--page a.run: exists already; give another"),
        (["--question", "justification", "--page", "a.run/p"], "--page a.run/p: cannot be written"),
        (["--read", "no.json"], "--read no.json: cannot be read"),
        (["--read", "own.toml"], "--read own.toml: is not a file of labels"),
        (["--read", "no.json", "--as", "Ann"], "is given alone; the file says who answered which question"),
    ],
)  # fmt: skip
def test_wrong_options_get_a_sentence(begun: Path, options: list[str], complaint: str) -> None:
    before = content(begun)
    done = call("label", "a.run", *options, cwd=begun.parent)
    assert (done.code, len(done.err.splitlines())) == (2, 1), done
    assert complaint in done.err
    assert content(begun) == before
    assert not (begun.parent / "p.html").exists()


def test_episodes_that_ended_later_are_not_in_the_sample(run: Path) -> None:
    stored = StoredRun(run)
    early = draw(episodes_about(stored, QUESTION)[:5], {}, QUESTION, Size())
    with RunFile.open(run, write=True) as file:
        file.annotate(questions={QUESTION.digest: QUESTION.body})
        file.keep_sample(QUESTION.digest, msgspec.json.encode(early).decode())
    done = call("label", run, "--question", "justification", "--as", "Ann")
    assert done.err == "note: 3 episodes have ended since the sample was drawn and are not in it\n"
    assert "5 left" in done.out


def test_text_of_a_hostile_run_cannot_control_the_terminal(run: Path, tmp_path: Path) -> None:
    path = hostile(run, tmp_path / "evil.run", "reply", EVIL)
    shown = label(path, "4\n1\nq\n")
    assert not CONTROLS.search(shown)
    assert "<script>alert(1)" in shown
    assert "\\x1b]0;title\\x07" in shown


def test_calls_that_are_not_shown_cannot_be_quoted(run: Path) -> None:
    awareness = read_question("awareness")
    task = StoredRun(run).tasks[0]
    with RunFile.open(run) as file:
        hidden, shown = Items(file, awareness)[task], Items(file, QUESTION)[task]
    assert {one.part for one in quotable(awareness, hidden)}.isdisjoint({"call"})
    assert "call" in {one.part for one in quotable(QUESTION, shown)}


def test_a_run_without_such_episodes_has_nothing_to_read(tmp_path: Path) -> None:
    finish(make(tmp_path / "never.run", "simulated/never", limit=1))
    done = call("label", tmp_path / "never.run", "--question", "justification", "--as", "Ann")
    assert done.code == 2
    assert "no episode of the run is one that it is about" in done.err
