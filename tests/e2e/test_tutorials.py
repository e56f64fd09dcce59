"""README, tutorials and the page of figures: every block of code, run as it is printed.

``pytest --update-golden`` writes what the blocks print into the pages, except where lines are left out.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from executed import FIGURE, Block, blocks, matches, run_page
from helpers.openai_server import Server, serving, simulated
from helpers.program import until

DOCS = Path(__file__).parents[2] / "docs"
# In the tutorial on a model of one's own, where its server is.
ADDRESS = "http://127.0.0.1:8000/v1"
CALLS_BEFORE_CTRL_C = 200


def environment() -> dict[str, str]:
    """With the program on the PATH, and a terminal of 100 columns."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}


def check(path: Path, printed: list[tuple[Block, str]], update: bool) -> None:
    """Compares what blocks printed with the page, or writes it into the page."""
    if update:
        page = path.read_text(encoding="utf-8")
        for block, text in reversed(printed):
            if block.place is not None and "...\n" not in (block.output or ""):
                begin, end = block.place
                page = page[:begin] + text + page[end:]
        path.write_text(page, encoding="utf-8")
    for block, text in printed:
        if block.output is not None and not (update and "...\n" not in block.output):
            assert matches(block.output, text), f"{path.name}:{block.line} prints\n{text}"


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(simulated("constant-0.1")) as one:
        yield one


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tutorials/first-run.md", "tutorials/is-it-the-pressure.md", "figures.md"])
def test_every_block_of_a_page_prints_what_is_shown(name: str, tmp_path: Path, update: bool) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    check(DOCS / name, run_page(page, tmp_path, environment()), update)
    figures = [tmp_path / found["path"] for found in FIGURE.finditer(page)]
    assert figures
    assert all(b"<svg" in path.read_bytes()[:1000] for path in figures)


@pytest.mark.slow
def test_the_commands_of_the_readme(tmp_path: Path, update: bool) -> None:
    path = DOCS.parent / "README.md"
    check(path, run_page(path.read_text(encoding="utf-8"), tmp_path, environment()), update)


@pytest.mark.slow
def test_the_tutorial_on_a_model_of_ones_own(tmp_path: Path, server: Server, update: bool) -> None:
    path = DOCS / "tutorials" / "your-model.md"
    page = path.read_text(encoding="utf-8")
    assert page.count(ADDRESS) == 2

    def interrupt(process: "subprocess.Popen[str]") -> None:
        until(process, lambda: server.answered > CALLS_BEFORE_CTRL_C)

    # As long as the address of the page, so that nothing moves.
    printed = run_page(page.replace(ADDRESS, server.base_url), tmp_path, environment(), interrupt)
    shown = {block.line: block for block in blocks(page)}
    here = [(shown[block.line], text.replace(server.base_url, ADDRESS)) for block, text in printed]
    check(path, here, update)


@pytest.mark.slow
def test_the_page_on_agents_of_ones_own(tmp_path: Path, update: bool) -> None:
    path = DOCS / "agents.md"
    page = path.read_text(encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    assert page.count("8765") == 2
    check(path, run_page(page.replace("8765", port), tmp_path, environment()), update)


def test_a_block_that_prints_something_else_is_found(tmp_path: Path) -> None:
    page = "```python\nprint(1)\nprint(2)\n```\n\n```text\n1\n...\n```\n"
    ((block, text),) = run_page(page, tmp_path, {})
    assert (block.line, text) == (2, "1\n2\n")
    assert matches(block.output or "", text)
    assert not matches("1\n", text)
    assert not matches("...\n1\n", text)
    with pytest.raises(AssertionError, match="line 4"):
        run_page("# A\n\n```sh\nexit 3\n```\n", tmp_path, {"PATH": os.environ["PATH"]})
