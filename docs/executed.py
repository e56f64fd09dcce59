"""Runs the code of a page of the documentation, as it is printed there.

Blocks are run in order, in one folder: ``sh`` with bash, ``python`` in one namespace. A ``text`` block that
follows is what they print; a line ``...`` in it stands for any number of lines. A comment before a block says
how it is run::

    <!-- shown only: REASON -->   it is not run
    <!-- Ctrl-C -->               it is interrupted as soon as `interrupt` asks for it

A comment after a block names a figure that the block has made. The site shows the figure there::

    <!-- figure: PATH | what it shows, for those who cannot see it -->
"""

import contextlib
import io
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

_BLOCKS: Final = re.compile(
    r"(?:<!-- (?P<how>shown only: .+?|Ctrl-C) -->\n)?"
    r"```(?P<language>sh|python)\n(?P<code>.*?)```\n"
    r"(?:\n?```text\n(?P<output>.*?)```\n)?",
    re.DOTALL,
)
FIGURE: Final = re.compile(r"<!-- figure: (?P<path>\S+) \| (?P<about>.+?) -->", re.DOTALL)
# Longer than any block takes on a busy machine.
_PATIENCE_S: Final = 300


class Block(NamedTuple):
    """A block of code.

    Attributes:
        line: where it begins in the page, counted from 1.
        language: ``sh`` or ``python``.
        code: what is run.
        output: what it prints; None if the page does not show that.
        place: where the output begins and ends in the page; None if it has none.
        shown_only, interrupted: from the comment before it.
    """

    line: int
    language: str
    code: str
    output: str | None
    place: tuple[int, int] | None
    shown_only: bool
    interrupted: bool


Wait = Callable[["subprocess.Popen[str]"], None]


def blocks(page: str) -> Iterator[Block]:
    """The blocks of code of a page."""
    for found in _BLOCKS.finditer(page):
        how = found["how"] or ""
        yield Block(
            line=page.count("\n", 0, found.start("code")) + 1,
            language=found["language"],
            code=found["code"],
            output=found["output"],
            place=None if found["output"] is None else found.span("output"),
            shown_only=how.startswith("shown only"),
            interrupted=how == "Ctrl-C",
        )


def run_page(
    page: str, folder: Path, environment: dict[str, str], interrupt: Wait | None = None
) -> list[tuple[Block, str]]:
    """Runs the blocks of a page in a folder; each with what it printed.

    Raises:
        AssertionError: a block failed, or an interrupted one ended by itself.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    printed = []
    for block in blocks(page):
        if block.shown_only:
            continue
        if block.language == "python":
            text = _run_python(block, folder, names)
        else:
            text = _run_shell(block, folder, environment, interrupt)
        printed.append((block, "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())))
    return printed


def matches(shown: str, printed: str) -> bool:
    """Whether output is as shown, where a line ``...`` stands for any lines."""
    parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)]
    return re.fullmatch("(?:.*\n)*?".join(parts), printed) is not None


def _run_python(block: Block, folder: Path, names: dict[str, object]) -> str:
    out = io.StringIO()
    # As many lines down as in the page, so that a traceback names the right one.
    code = compile("\n" * (block.line - 1) + block.code, "page", "exec")
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        exec(code, names)
    return out.getvalue()


def _run_shell(block: Block, folder: Path, environment: dict[str, str], interrupt: Wait | None) -> str:
    with subprocess.Popen(
        ["bash", "-euc", block.code],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if block.interrupted else subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        if block.interrupted:
            assert interrupt is not None, "this page has a block that has to be interrupted"
            interrupt(process)
            os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=_PATIENCE_S)
    assert (process.returncode == 0) is not block.interrupted, f"line {block.line}: {out}{errors}"
    return out
