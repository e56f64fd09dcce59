"""The page on which people answer, in a real browser by keyboard; skipped if none is installed."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
from helpers.browser import BROWSER, TIMEOUT_S, Tab, tab_of
from helpers.hostile_runs import MARKUP, hostile
from helpers.people import QUESTION, answers_of, left, misaligned_run
from helpers.program import call

from propensitybench.judging.people import PersonsAnswer

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]

CTRL: Final = 2
CODES: Final = {"ArrowLeft": 37, "ArrowRight": 39, "Tab": 9, "Enter": 13}
# A script that would act, and a control character, which is shown and still quoted as it is.
HOSTILE: Final = f"{MARKUP}<script>window.acted = true</script><img src=x onerror=window.acted=1>\x1b[31m"
STATUS: Final = "document.getElementById('status').textContent"


async def press(tab: Tab, key: str, modifiers: int = 0) -> None:
    """A key as a person presses it."""
    code = CODES.get(key, ord(key[0].upper()))
    params = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
    text = (
        {"text": "\r" if key == "Enter" else key}
        if (len(key) == 1 or key == "Enter") and not modifiers
        else {}
    )
    await tab.ask("Input.dispatchKeyEvent", type="keyDown", **params, **text)
    await tab.ask("Input.dispatchKeyEvent", type="keyUp", **params)


async def saved(tab: Tab, folder: Path, name: str) -> Path:
    """The file that the page saves."""
    await tab.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    await press(tab, "s", CTRL)
    path = folder / name
    while not path.exists():
        await tab.when("true")
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    good = misaligned_run(tmp_path / "good.run", limit=2)
    return hostile(good, tmp_path / "a.run", "reply", HOSTILE)


def write(run: Path, *more: str) -> Path:
    """The page that the command writes."""
    path = run.parent / f"page{len(more)}.html"
    assert call("label", run, "--question", "justification", "--page", path, *more).code == 0
    return path


def in_browser(page: Path, steps: Callable[[Tab], Awaitable[None]]) -> list[str]:
    """Opens the page in a new browser; what the browser complains of."""

    async def run_steps() -> list[str]:
        async with tab_of(page.parent / "profile") as tab:
            await tab.load(page)
            await steps(tab)
            return tab.complaints

    return asyncio.run(asyncio.wait_for(run_steps(), TIMEOUT_S))


def test_three_answers_by_keyboard_saved_and_read_back(run: Path) -> None:
    tasks = left(run, "Ann")
    page = write(run, "--as", "Ann")

    async def steps(tab: Tab) -> None:
        assert await tab.run(STATUS) == "0 of 4 answered"
        await press(tab, "4")
        assert await tab.run("document.querySelector('[name=category]:checked').value") == "3"
        while await tab.run("document.activeElement.className") != "mark":
            await press(tab, "Tab")
        assert await tab.run("document.activeElement.matches(':focus-visible')")
        assert await tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        await press(tab, "Enter")
        assert await tab.run("document.activeElement.getAttribute('aria-pressed')") == "true"
        await press(tab, "ArrowRight")
        assert await tab.run("document.activeElement.textContent") == "Episode 2 of 4"
        await press(tab, "1")
        await press(tab, "0")
        assert await tab.run(STATUS) == "1 of 4 answered, not saved yet"
        await tab.run("document.querySelector('.mark').click()")
        await press(tab, "7")  # says that there is nothing to mark
        assert await tab.run("document.querySelector('[aria-pressed=true]') === null")
        await press(tab, "ArrowRight")
        await press(tab, "ArrowRight")
        await press(tab, "2")
        await press(tab, "ArrowRight")  # there is none after it
        await press(tab, "9")  # there is no such answer
        assert await tab.run(STATUS) == "3 of 4 answered, not saved yet"
        assert await tab.run("window.acted") is None
        await saved(tab, run.parent, "labels-justification-Ann.json")
        assert await tab.run(STATUS) == "Answers saved as labels-justification-Ann.json: 3"

    assert in_browser(page, steps) == []
    done = call("label", run, "--read", run.parent / "labels-justification-Ann.json")
    assert done.out == "answers of Ann stored: 3; there already: 0\n", done
    answers = answers_of(run, "Ann")
    assert [answers[task].category for task in (tasks[0], tasks[1], tasks[3])] == [
        "necessity", "none stated", "authority",
    ]  # fmt: skip
    assert answers[tasks[0]].quote == HOSTILE.strip()
    assert answers[tasks[1]] == PersonsAnswer("none stated")
    assert left(run, "Ann") == [tasks[2]]


def test_answers_survive_a_closed_page_and_can_be_taken_from_a_file(run: Path) -> None:
    page = write(run)

    async def steps(tab: Tab) -> None:
        await press(tab, "2")
        await tab.load(page)
        assert await tab.run(STATUS) == "Answers kept by this browser: 1; save them when you are done"
        assert await tab.run("document.getElementById('episode').textContent") == "Episode 2 of 4"
        await press(tab, "s", CTRL)
        assert await tab.run(STATUS) == "Enter your name first"
        await tab.ask("Input.insertText", text="Bob 2")
        await press(tab, "1")  # typed into the name
        path = await saved(tab, run.parent, "labels-justification-Bob-21.json")
        await tab.run("localStorage.clear()")
        await tab.load(page)
        assert await tab.run(STATUS) == "0 of 4 answered"
        for file, note in (
            (path, "Answers loaded from the file: 1"),
            (run, "That file was not saved by this page"),
        ):
            document = await tab.ask("DOM.getDocument")
            node = await tab.ask("DOM.querySelector", nodeId=document["root"]["nodeId"], selector="#load")
            await tab.ask("DOM.setFileInputFiles", files=[str(file)], nodeId=node["nodeId"])
            await tab.when(f"{STATUS} === {json.dumps(note)}")
        assert await tab.run("document.getElementById('person').value") == "Bob 21"
        assert await tab.run("document.querySelector('[name=category]:checked').value") == "1"

    assert in_browser(page, steps) == []
    assert call("label", run, "--read", run.parent / "labels-justification-Bob-21.json").code == 0
    assert [one.category for one in answers_of(run, "Bob 21").values()] == ["authority"]


def test_the_page_fits_a_phone_and_shows_text_as_text(run: Path) -> None:
    page = write(run)

    async def steps(tab: Tab) -> None:
        for width in (1280, 360):
            await tab.load(page, width)
            assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        shown = await tab.run("document.querySelector('article pre').textContent")
        assert shown == HOSTILE.strip().replace("\x1b", "\\x1b")
        assert await tab.run("document.querySelector('main script, main img') === null")
        assert await tab.run("window.acted") is None
        assert await tab.run("document.querySelectorAll('[name=category]').length") == len(QUESTION.names)

    assert in_browser(page, steps) == []
