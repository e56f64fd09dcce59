"""The report in a real browser; skipped if none is installed."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from helpers.clients import TaskScript
from helpers.readings import annotate, answer
from helpers.runs import finish, make

from propensitybench.chat import Reply, StopReason
from propensitybench.judging.labels import Items, episodes_about
from propensitybench.judging.questions import Question, read_question
from propensitybench.report.page_numbers import resolve
from propensitybench.report.page_write import write_report
from propensitybench.runs import StoredRun, comparable, read_runs

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER: Final = next((path for name in NAMES if (path := shutil.which(name))), None)
TIMEOUT_S: Final = 60
OPTIONS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-port=0", "about:blank",
)  # fmt: skip

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]

# Resolves to the value of an expression once that is truthy, checking every frame.
WHEN: Final = """new Promise((done) => {
  const check = () => { const value = (() => %s)(); value ? done(value) : requestAnimationFrame(check); };
  check();
})"""


class PageLeft(Exception):
    """The browser left the page while a script was running in it."""


class Tab:
    """A tab of the browser: loads pages, runs scripts, and records errors and network requests."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.complaints: list[str] = []

    async def ask(self, method: str, **params: Any) -> Any:
        """Sends a command of the DevTools protocol; its result."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json(timeout=TIMEOUT_S)
            if message.get("id") == self._number:
                if "error" in message:
                    raise PageLeft(message)
                return message["result"]
            self._record(message)

    def _record(self, message: Any) -> None:
        method, params = message["method"], message["params"]
        if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(json.dumps(params))
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(
            ("file:", "data:", "about:")
        ):
            self.complaints.append(params["request"]["url"])

    async def run(self, expression: str) -> Any:
        """The value of a JavaScript expression, or of the promise that it returns."""
        answer = await self.ask(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def when(self, expression: str) -> Any:
        """The value of an expression once that is truthy."""
        while True:
            with suppress(PageLeft):
                return await self.run(WHEN % expression)

    async def load(self, path: Path, width: int = 1280) -> None:
        """Opens a file at a width."""
        await self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        await self.ask("Page.navigate", url=path.as_uri())
        await self.when(
            f"location.href === {json.dumps(path.as_uri())} && document.readyState === 'complete'"
        )


@asynccontextmanager
async def tab_of(profile: Path) -> AsyncIterator[Tab]:
    """A tab of a new browser with an empty profile."""
    assert BROWSER is not None
    command = [BROWSER, f"--user-data-dir={profile}", *OPTIONS]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ
    ) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, b"")
            address = next(line.split()[-1].decode() for line in lines if b"DevTools listening on" in line)
            root = address.replace("ws://", "http://").partition("/devtools")[0]
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{root}/json/list") as answer:
                    targets = await answer.json()
                page = next(target for target in targets if target["type"] == "page")
                async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    tab = Tab(socket)
                    for domain in ("Page", "Runtime", "Log", "Network"):
                        await tab.ask(f"{domain}.enable")
                    yield tab
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=TIMEOUT_S)
            process.kill()


def quotes_of(path: Path, question: Question) -> Iterator[tuple[str, str]]:
    """Thoughts of a run's agent, by the key of the task: they are folded on the page."""
    run = StoredRun(path)
    items = Items(run, question)
    for record in episodes_about(run, question):
        thoughts = [one.text for one in items[record.metadata.task].passages if one.part == "thoughts"]
        if thoughts:
            yield record.metadata.task, thoughts[0]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    paths = [make(folder / f"{name}.run", f"simulated/{name}", limit=30) for name in ("o3-like", "always")]
    for path in paths:
        finish(path)
    awareness = read_question("awareness")
    thoughts = {task: answer("hint", quote) for task, quote in quotes_of(paths[0], awareness)}
    annotate(paths[0], awareness, "judge/a", thoughts)
    paths.append(make(folder / "never.run", "simulated/never", limit=4))
    finish(paths[-1], TaskScript(lambda _: [Reply(stop=StopReason.LENGTH)] * 13, "simulated/never"))
    return write_report(comparable(read_runs(paths).runs), folder / "report", figures=False).page


async def _draws_and_fits(tab: Tab, page: Path) -> None:
    for width in (1280, 360):
        await tab.load(page, width)
        await tab.when("document.querySelector('[data-chart=summary] circle')")
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
    for name in ("cumulative", "survival", "hazard", "naming", "pairs"):
        assert await tab.when(f"document.querySelector('[data-chart={name}] svg [aria-label]')") is not None


async def _shows_card(tab: Tab, page: Path) -> None:
    await tab.load(page)
    await tab.run("document.querySelector('#summary .n').click()")
    card = await tab.when("card.matches(':popover-open') && card.textContent")
    data = json.loads((page.parent / "report.json").read_text(encoding="utf-8"))
    path = "/analysis/runs/0/scores/naming/harmful/estimates/propensity/domain"
    assert resolve(data, path)["estimand"] in card
    assert path in card
    await tab.run(
        "[...document.querySelectorAll('.n')].filter((_, place) => place % 9 === 0).forEach((button) => {"
        " button.click(); if (!card.textContent.includes('in report.json')) throw Error(button.dataset.p); })"
    )


async def _sorts_and_filters(tab: Tab, page: Path) -> None:
    await tab.load(page)
    await tab.run("document.getElementById('tab-capability').click()")
    assert await tab.run("document.getElementById('part-domain').hidden")
    table = "document.querySelector('#part-capability > .tabular')"
    rows = f"[...{table}.querySelectorAll('tbody tr')]"
    values = f"{rows}.map((row) => row.cells[3].dataset.v).map((v) => v === '' ? null : Number(v))"
    before = await tab.run(values)
    await tab.run(f"{table}.querySelector('th:nth-child(4) button').click()")
    known = [value for value in before if value is not None]
    assert await tab.run(values) == [*sorted(known), *[None] * (len(before) - len(known))]
    await tab.run(
        f"(() => {{ const choice = {table}.querySelector('select');"
        " choice.value = 'always'; choice.dispatchEvent(new Event('change')); })()"
    )
    runs = await tab.run(f"{rows}.filter((row) => !row.hidden).map((row) => row.cells[1].textContent.trim())")
    assert set(runs) == {"always"}


async def _lists_transcripts(tab: Tab, page: Path) -> None:
    await tab.load(page)
    await tab.when("document.querySelector('.tabulator-row a')")
    assert await tab.run("document.getElementById('episode-count').textContent") == "128 of 128 episodes"
    await tab.run("document.querySelector('.go[data-run=always][data-naming=benign]').click()")
    await tab.when("document.getElementById('episode-count').textContent === '30 of 128 episodes'")
    await tab.run("document.querySelector('.tabulator-row a').click()")
    await tab.when("document.getElementById('misaligned-call')")
    assert not await tab.run("document.querySelector('details').open")
    await tab.run("document.querySelector('[data-fold]').click()")
    assert await tab.run("[...document.querySelectorAll('details')].every((fold) => fold.open)")
    await tab.run("document.querySelector('.links a').click()")
    await tab.when("document.getElementById('transcripts') && document.querySelector('.tabulator-row')")


async def _filters_by_outcome(tab: Tab, page: Path) -> None:
    await tab.load(page)
    await tab.when("document.querySelector('.tabulator-row a')")
    await tab.run(
        "(() => { const choice = [...document.querySelectorAll('#episode-filters label')]"
        ".find((label) => label.firstChild.textContent === 'outcome').querySelector('select');"
        " choice.value = 'truncated'; choice.dispatchEvent(new Event('change')); })()"
    )
    await tab.when("document.getElementById('episode-count').textContent === '8 of 128 episodes'")
    cell = "document.querySelector('.tabulator-row .truncated')"
    colours = f"[{cell}, {cell}.parentElement].map((element) => getComputedStyle(element).color)"
    label, ink = await tab.run(colours)
    assert label != ink


async def _turns_dark(tab: Tab, page: Path) -> None:
    await tab.load(page)
    colour = "getComputedStyle(document.body).backgroundColor"
    before = await tab.run(colour)
    await tab.run("document.getElementById('theme').click()")
    assert await tab.run(colour) != before
    await tab.load(page)
    assert await tab.run(colour) != before  # the choice is stored


async def _leads_to_the_quoted_words(tab: Tab, page: Path) -> None:
    await tab.load(page)
    link = "document.querySelector('#judged .quotes a')"
    await tab.run(f"{link}.closest('details').open = true")
    words = await tab.run(f"{link}.closest('li').querySelector('blockquote').textContent")
    await tab.run(f"{link}.click()")
    shown = "document.querySelector('article:target mark')"
    assert await tab.when(f"{shown} && {shown}.checkVisibility() && {shown}.textContent") == words
    await tab.run("document.querySelector('article:target sup a').click()")
    assert "hint" in await tab.when("document.querySelector('li:target')?.textContent")


CHECKS: Final = (
    _leads_to_the_quoted_words,
    _draws_and_fits,
    _shows_card,
    _sorts_and_filters,
    _lists_transcripts,
    _filters_by_outcome,
    _turns_dark,
)


def test_page_works_offline(report: Path, tmp_path: Path) -> None:
    async def run_checks() -> list[str]:
        async with tab_of(tmp_path / "profile") as tab:
            for check in CHECKS:
                await check(tab, report)
            return tab.complaints

    assert asyncio.run(run_checks()) == []
