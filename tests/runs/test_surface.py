"""What Python shows of the public objects: short texts, data frames, readable transcripts, figures."""

import dataclasses
import io
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import propensitybench as pb
from propensitybench.clients import calls, says
from propensitybench.episode import replay
from propensitybench.errors import BadInput

# A table with its remarks, which name the file, or a line.
MAX_REPR = 800
# They hold nothing, are not made by users, or are shown by the tests of experiments.
WITHOUT_DATA = {
    "Client",
    "Conversation",
    "ExperimentAnalysis",
    "ExperimentPlan",
    "PropensityBenchError",
    "Settings",
}
LONG = "<b>" + "word " * 200


SMALL: dict[str, Any] = {"limit": 12, "levels": 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> pb.Run:
    client = pb.ScriptedClient([calls(LONG, text=LONG), says(LONG), says("<script>", done=True)])
    return pb.run("scripted", tmp_path_factory.mktemp("surface") / "a.run", client=client, **SMALL)


def held(value: object, depth: int = 0) -> Iterator[object]:
    """An object of ours and those that it holds."""
    if type(value).__module__.startswith("propensitybench"):
        yield value
    if isinstance(value, msgspec.Struct):
        inner: list[object] = [getattr(value, name) for name in value.__struct_fields__]
    elif dataclasses.is_dataclass(value):
        inner = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, Mapping):
        inner = list(value.values())[:3]
    elif isinstance(value, list | tuple):
        inner = list(value[:3])
    else:
        return
    for one in inner if depth < 5 else ():
        yield from held(one, depth + 1)


def test_no_public_object_fills_a_notebook(run: pb.Run, tmp_path: Path) -> None:
    other = pb.run("simulated/always", tmp_path / "other.run", **SMALL)
    scores, transcript, data = run.score(), run.transcript(run.tasks[0]), pb.read_dataset()
    with pb.RunFile.open(Path(run.file)) as file:
        task = next(iter(file.tasks()))
        episode, reply = replay(file.job(task)).episode, next(iter(file.replies(task.number)))
    tool = pb.ToolSpec(LONG, LONG, {"type": "object", "properties": {LONG: {}}})
    shown = [
        run, scores, transcript, data, file, episode, reply, tool, run.journal, run.manifest, run.records[0],
        scores.naming["harmful"], data.scenarios[0], transcript.messages[0], reply.tool_calls[0],
        pb.compare(run, other), pb.findings([run, other]), pb.gate(run, other), pb.plan_gate(run),
        pb.RunSpec(LONG[:200], template="{{policy}}" + LONG), pb.Protocol(), pb.Outcome.RESISTED,
        pb.Selection(), pb.ScriptedClient([]), pb.FunctionConversation(lambda messages, _: str(messages)),
        pb.Request(transcript.messages, (tool,)), pb.ConversationContext(LONG, 1),
        pb.figures(run, tmp_path, only="missing"), pb.Environment(limit=1),
        pb.monitor(run, lambda _: 0.5),
    ]  # fmt: skip
    found = [inner for one in shown for inner in held(one)]
    public = {name for name in pb.__all__ if isinstance(getattr(pb, name), type)} - WITHOUT_DATA
    assert public <= {kind.__name__ for one in found for kind in type(one).__mro__}
    for one in found:
        assert len(repr(one)) <= MAX_REPR, (type(one), repr(one))


def test_results_are_pandas_frames_if_there_is_pandas(run: pb.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Pandas(ModuleType):
        DataFrame: type = list

    for result in (run, run.score(), pb.compare(run, run)):
        monkeypatch.setitem(sys.modules, "pandas", Pandas("pandas"))
        assert result.to_pandas() == list(result.rows())
        assert len(result.to_pandas()) == result.to_polars().height
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(BadInput, match="pandas is not installed; type: pip install pandas"):
            result.to_pandas()


def test_a_transcript_in_a_notebook_is_text_and_nothing_else(run: pb.Run) -> None:
    shown = run.transcript(run.tasks[0])._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "&lt;b&gt;word" in shown
    assert "<script" not in shown
    assert "<b>word" not in shown
    assert shown.count("<details") == len(run.transcript(run.tasks[0]).messages)


def test_figures_are_shown_in_a_notebook(run: pb.Run, tmp_path: Path) -> None:
    figures = pb.figures(run.file, tmp_path, only=["missing"], formats=["png"])
    assert repr(figures) == f"<1 figures in {tmp_path}: missing>"
    assert "data:image/png;base64,iVBOR" in figures._repr_html_()
    assert [path.name for path in figures[0].files] == ["missing.png"]
    with pytest.raises(BadInput, match="no figure is called 'overvew'"):
        pb.figures([run], tmp_path, only="overvew")
    with pytest.raises(BadInput, match="formats: must be of svg, png, found 'pdf'"):
        pb.figures([run], tmp_path, formats=["pdf"])  # type: ignore[list-item]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("settings", "shows"), [({}, True), ({"progress": False}, False)])
def test_a_bar_is_shown_in_a_terminal_unless_it_is_off(
    settings: dict[str, Any], shows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    pb.run("simulated/never", "a.run", **settings, **SMALL)
    assert ("simulated/never" in terminal.getvalue()) is shows
    assert shows or terminal.getvalue() == ""


def test_the_program_is_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "propensitybench", "score", "nowhere.run"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "propensitybench: nowhere.run: does not exist\n")
