"""Tables on a terminal: text from run files is shown, and does nothing."""

import io
import sys

import pytest

from propensitybench.cli.tables import show, table


def test_unsafe_characters_are_escaped_before_they_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", out := io.StringIO())
    rows = [("a\x1b[31m\u202e", "1.0"), (), ("[bold]b", "22.0")]
    show(table("A \x07title", ["model\x00", "share"], rows))
    lines = out.getvalue().splitlines()
    assert lines[0].rstrip() == r"A \x07title"
    body = {line.split()[0]: line.rstrip() for line in lines if line.rstrip().endswith("0")}
    assert set(body) == {r"a\x1b[31m\u202e", "[bold]b"}
    assert len({len(line) for line in body.values()}) == 1
    assert r"model\x00" in out.getvalue()
