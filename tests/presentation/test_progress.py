"""The bar of slow work: where it is drawn, and what it says about the time left."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from propensitybench.engine.pace import Pace
from propensitybench.presentation.progress import Bar, Stage, Stages


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_how_much_is_done_and_no_control_character_of_a_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Bar("report") as bar:
        bar.update(Stage("figures\x1b[2J", 3, 4))
    assert "3/4" in terminal.getvalue()
    assert "figures\\x1b[2J" in terminal.getvalue()


def test_a_pipe_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("report", keep=True) as bar:
        bar.count(3, 4)
    assert capsys.readouterr().err == ""


def test_a_notebook_shows_one_element_which_is_empty_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def display(first: str, *, display_id: bool) -> Any:
        assert display_id
        shown.append(first)
        return SimpleNamespace(update=shown.append)

    shell = SimpleNamespace(kernel=object())
    ipython = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(HTML=str, display=display))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    with Bar("<b>") as bar:
        bar.count(3, 4)
    assert shown[1].startswith("<progress></progress> &lt;b&gt;")
    assert shown[-1] == ""


def test_parts_of_different_length_add_up_to_the_whole() -> None:
    seen: list[Stage] = []
    parts = Stages(seen.append, {"scores": 1.0, "figures": 3.0})
    parts.at("scores")
    parts.at("scores", 1, 2)
    parts.at("figures", 1, 3)
    assert [step.share for step in seen] == [0.0, 0.125, 0.5]


def test_the_last_task_decides_how_long_a_run_takes() -> None:
    """Ten tasks at once, a level a second: nine end at level 0, one goes on alone."""
    now = 0.0
    pace = Pace(13, lambda: now)
    for task in range(10):
        pace.reach(task, 0)
    now = 1.0
    for task in range(9):
        pace.end(task, 0)
    pace.reach(9, 1)
    assert pace.share(1) == pytest.approx(10 / 22)
    # By the pace so far, ten levels a second, it would be 1.2.
    assert pace.seconds_left(1) == pytest.approx(12.0)


def test_what_an_earlier_execution_played_is_not_counted() -> None:
    pace = Pace(13, lambda: 0.0)
    pace.reach(0, 9)
    assert pace.share(1) == 0.0
    pace.reach(0, 11)
    assert pace.share(1) == pytest.approx(0.5)
