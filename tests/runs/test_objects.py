"""A run as an object: opened from files and folders, scored, compared, read."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers.runs import make

import propensitybench as pb
from propensitybench.chat import Reply, StopReason
from propensitybench.clients import ScriptedClient, calls, says
from propensitybench.errors import BadInput, NotARunFile, UnknownName
from propensitybench.runs import StoredRun, read_runs
from propensitybench.simulated import CAVEAT

SMALL: dict[str, Any] = {"limit": 3, "levels": 2}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pb.Run]:
    folder = tmp_path_factory.mktemp("runs")
    models = ("never", "always", "o3-like")
    return {model: pb.run(f"simulated/{model}", folder / f"{model}.run", **SMALL) for model in models}


def test_scores_are_short_in_text_a_table_in_notebooks_and_a_frame(runs: dict[str, pb.Run]) -> None:
    scores = runs["always"].score()
    lines = repr(scores).splitlines()
    assert len(lines) <= 30
    *table, notice = lines
    assert max(map(len, table)) <= 120
    assert notice == f"{runs['always'].file}: {CAVEAT}"
    for part in ("zero-pressure", "resilience", "persistence", "competence", "harmful", "benign"):
        assert part in repr(scores)
        assert part in scores._repr_html_()
    assert scores._repr_html_().startswith("<table>")
    frame = scores.to_polars()
    row = frame.row(by_predicate=(pl.col("estimand") == "propensity") & (pl.col("part") == "all") & (
        pl.col("naming") == "harmful"
    ), named=True)  # fmt: skip
    assert (row["value"], row["n"], row["scenarios"]) == (1.0, 3, 3)


def test_low_competence_stands_beside_the_scores(tmp_path: Path) -> None:
    run = pb.run("simulated/incompetent", tmp_path / "incompetent.run", **SMALL)
    sentence = f"{run.file}: C{run.score().low_competence[1:]}."
    for one in (run.score(), pb.compare(run, run)):
        assert sentence in repr(one)
        assert sentence in one._repr_html_()


def test_missing_tasks_stand_beside_the_scores(tmp_path: Path) -> None:
    make(tmp_path / "a.run", limit=2)
    scores = pb.open(tmp_path / "a.run").score()
    assert "of 4 tasks, 4 not begun" in repr(scores)
    assert "of 4 tasks, 4 not begun" in scores._repr_html_()


def test_a_run_is_a_frame_with_a_row_for_each_task(runs: dict[str, pb.Run]) -> None:
    frame = runs["never"].to_polars()
    assert frame["task"].to_list() == runs["never"].tasks
    assert frame["outcome"].unique().to_list() == ["resisted"]
    assert frame.height == 6


def test_runs_are_compared(runs: dict[str, pb.Run]) -> None:
    comparison = pb.compare(runs["never"], runs["always"])
    assert "always - never" in repr(comparison)
    assert "+100.0" in repr(comparison)
    assert comparison._repr_html_().startswith("<table>")
    frame = comparison.to_polars()
    assert frame.select("first", "second", "naming", "value").rows() == [
        ("never", "always", "harmful", 1.0),
        ("never", "always", "benign", 1.0),
    ]
    assert repr(pb.compare([runs["never"], runs["always"]])) == repr(comparison)
    with pytest.raises(BadInput, match="needs two runs or more"):
        pb.compare(runs["never"])


def test_a_run_is_given_as_an_object_or_as_its_file_and_as_nothing_else(
    runs: dict[str, pb.Run], tmp_path: Path
) -> None:
    run = runs["never"]
    assert isinstance(run, StoredRun)
    edited = tmp_path / "edited.run"
    edited.write_bytes(run.path.read_bytes())
    with sqlite3.connect(edited) as db:
        db.execute("DELETE FROM outcome WHERE task = 0")
    db.close()
    with pb.RunFile.open(edited) as file:
        (difference,) = pb.verify(file)
    assert pb.verify(edited) == pb.verify(str(edited)) == pb.verify(pb.open(edited)) == (difference,)
    assert pb.verify(run) == ()
    assert pb.report(run.path, tmp_path / "page", figures=False, transcripts="none").runs == 1
    nothing: Any = 3
    calls: tuple[Callable[[], object], ...] = (
        lambda: pb.verify(nothing),
        lambda: pb.open(nothing),
        lambda: pb.compare(run, nothing),
        lambda: pb.report([run, nothing], tmp_path / "other"),
        lambda: pb.export(nothing),
    )
    for call in calls:
        with pytest.raises(BadInput, match=r"^3 is neither a run nor the path of one$"):
            call()
    with pytest.raises(BadInput, match="must be the key of a task, found 3"):
        run.transcript(nothing)


def test_differences_between_compared_runs_are_noted(runs: dict[str, pb.Run], tmp_path: Path) -> None:
    template = "<b>{{ misaligned.name }}</b>\n{{ known }}"
    other = pb.run("simulated/never", tmp_path / "other.run", template=template, **SMALL)
    comparison = pb.compare(runs["never"], other)
    (note,) = comparison.notes
    assert note.endswith("differ in: system message template")
    assert f"note: {note}" in repr(comparison)
    assert note in comparison._repr_html_()


def test_other_seeds_and_what_they_leave_in_common_are_noted(tmp_path: Path) -> None:
    runs = [
        pb.run("simulated/never", tmp_path / f"{seed}.run", limit=60, seed=seed, levels=0) for seed in (0, 1)
    ]
    (note,) = pb.compare(*runs).notes
    assert "have different seeds (0 and 1)" in note
    assert "they share 2 begun tasks" in note


def test_a_run_of_which_little_is_compared_is_noted(tmp_path: Path) -> None:
    short, half, whole = (
        pb.run("simulated/never", tmp_path / f"{limit}.run", limit=limit, naming="harmful", levels=0)
        for limit in (4, 10, 20)
    )
    (note,) = pb.compare(short, whole).notes
    assert "share 4 begun tasks (of 4 and 20); only these are compared" in note
    assert pb.compare(half, whole).notes == ()


def test_the_run_in_a_file_or_a_folder_is_opened(runs: dict[str, pb.Run], tmp_path: Path) -> None:
    run = runs["o3-like"]
    assert pb.open(run.file).records == run.records
    (tmp_path / "copy.run").write_bytes(Path(run.file).read_bytes())
    (tmp_path / "notes.txt").write_text("not a run")
    hidden = tmp_path / ".cache"
    hidden.mkdir()
    (hidden / "draft.run").write_bytes(Path(run.file).read_bytes())
    opened = pb.open(tmp_path)
    assert (opened.file, opened.records) == (str(tmp_path / "copy.run"), run.records)


def test_the_runs_of_a_folder_are_read(runs: dict[str, pb.Run]) -> None:
    folder = Path(runs["never"].file).parent
    found = read_runs([folder]).runs
    assert [run.model for run in found] == ["simulated/always", "simulated/never", "simulated/o3-like"]


def test_what_cannot_be_opened_is_one_sentence(runs: dict[str, pb.Run], tmp_path: Path) -> None:
    folder = Path(runs["never"].file).parent
    with pytest.raises(BadInput, match=r"holds 3 runs; open one of them: .*always\.run, .*o3-like\.run$"):
        pb.open(folder)
    with pytest.raises(BadInput, match=r"neither a run file nor an Inspect log \(\*\.eval, \*\.json\)$"):
        pb.open(tmp_path)
    with pytest.raises(BadInput, match=r"nowhere\.run: does not exist$"):
        pb.open("nowhere.run")
    (tmp_path / "text.run").write_text("text")
    with pytest.raises(NotARunFile, match=r"text\.run: is not a run file"):
        pb.open(tmp_path / "text.run")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(NotARunFile, match=r"other\.db: is not a run file of propensitybench"):
        pb.open(tmp_path / "other.db")


def test_a_transcript_has_every_message_under_its_level_and_turn(tmp_path: Path) -> None:
    """Empty, blocked and truncated replies are turns, too; a pressure message never is."""
    replies = [
        Reply(),
        Reply(stop=StopReason.CONTENT_FILTER),
        Reply('{"thoughts": "cut', stop=StopReason.LENGTH),
        says("one"),
        calls("no_such_tool"),
        says("done", done=True),
    ]
    client = ScriptedClient(replies, "scripted")
    run = pb.run("scripted", tmp_path / "a.run", client=client, limit=1, levels=4, naming="harmful")
    (task,) = run.tasks
    transcript = run.transcript(task)
    titles = [entry.title for entry in transcript]
    assert titles == [
        "system",
        "user",
        "assistant, level 0, turn 1: empty reply",
        "pressure, level 1 begins",
        "assistant, level 1, turn 1: blocked reply",
        "pressure, level 2 begins",
        "assistant, level 2, turn 1: truncated reply",
        "pressure, level 3 begins",
        "assistant, level 3, turn 1: message",
        "user",
        "assistant, level 3, turn 2: unknown tool called",
        "tool",
        "assistant, level 3, turn 3: terminated",
        "pressure, level 4 begins",
        "assistant, level 4, turn 1: terminated",
    ]
    assert [entry.level for entry in transcript] == [0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4]
    assert str(transcript).endswith("blocked at level 4 after 7 turns, 0 aligned calls")
    assert repr(transcript).startswith(f"<Transcript {task}: 15 messages, blocked at level 4")
    with pytest.raises(UnknownName, match=f"did you mean '{task}'"):
        run.transcript(task.replace("harmful", "harmfull"))


def test_a_transcript_marks_the_prohibited_call(runs: dict[str, pb.Run]) -> None:
    text = str(runs["always"].transcript(runs["always"].tasks[0]))
    assert text.count(": misaligned tool called  <<< GAVE IN\n") == 1


def test_a_transcript_names_the_errors_of_an_unfinished_task(tmp_path: Path) -> None:
    client = ScriptedClient([], "scripted")
    run = pb.run("scripted", tmp_path / "a.run", client=client, limit=1, naming="harmful")
    assert "error: the script is empty" in str(run.transcript(run.tasks[0]))


def test_a_journal_is_summed_up(tmp_path: Path) -> None:
    blocked = Reply(stop=StopReason.REFUSAL, model="m-2026")
    client = ScriptedClient([blocked], "scripted")
    run = pb.run("scripted", tmp_path / "a.run", client=client, limit=2, levels=1)
    journal = run.journal
    assert journal.models == {"m-2026": 8}
    assert journal.stops == dict.fromkeys(run.tasks, "refusal")
    assert (journal.scenarios, journal.drawn) == (2, {"bio-security": 2, "chemical-security": 2})
