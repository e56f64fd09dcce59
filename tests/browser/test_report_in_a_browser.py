"""The report in a real browser; skipped if none is installed."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from helpers.browser import BROWSER, LOOKS, Tab, tab_of
from helpers.clients import TaskScript
from helpers.readings import annotate, answer
from helpers.runs import finish, make

from propensitybench.chat import Reply, StopReason
from propensitybench.judging.labels import Items, episodes_about
from propensitybench.judging.questions import Question, read_question
from propensitybench.pages.page_numbers import resolve
from propensitybench.pages.page_write import report as write_report
from propensitybench.runs import StoredRun
from propensitybench.store import RunFile

# Texts of figures that overlap another one or are cut off, however the browser's font is.
OVERLAPPING: Final = """[...document.querySelectorAll('.drawn')].flatMap((svg) => {
  const level = [...svg.querySelectorAll('text:not([transform])')]
    .map((one) => [one, one.getBoundingClientRect()]);
  const { left, right } = svg.getBoundingClientRect();
  return level.filter(([one, a], place) => a.left < left || a.right > right || (
    a.width && level.slice(place + 1).some(([, b]) =>
      a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4)
  )).map(([one]) => `${svg.getAttribute('aria-label')}: ${one.textContent}`);
})"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]


def quotes_of(path: Path, question: Question) -> Iterator[tuple[str, str]]:
    """Thoughts of a run's agent, by the key of the task: they are folded on the page."""
    run = StoredRun(path)
    with RunFile.open(path) as file:
        items = Items(file, question)
        for record in episodes_about(run, question):
            thoughts = [one.text for one in items[record.metadata.task].passages if one.part == "thoughts"]
            if thoughts:
                yield record.metadata.task, thoughts[0]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    paths = [make(folder / f"{name}.run", f"simulated/{name}", limit=12) for name in ("o3-like", "always")]
    for path in paths:
        finish(path)
    awareness = read_question("awareness")
    thoughts = {task: answer("hint", quote) for task, quote in quotes_of(paths[0], awareness)}
    annotate(paths[0], awareness, "judge/a", thoughts)
    paths.append(make(folder / "never.run", "simulated/never", limit=4))
    finish(paths[-1], TaskScript(lambda _: [Reply(stop=StopReason.LENGTH)] * 13, "simulated/never"))
    return write_report(paths, folder / "report").page


async def _draws_and_fits(tab: Tab, page: Path) -> None:
    for width in (1280, 360):
        await tab.load(page, width)
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        assert await tab.run(OVERLAPPING) == []
        # Text of figures is legible: at least 10 pixels high.
        smallest = (
            "Math.min(...[...document.querySelectorAll('.drawn text')].filter((one) => one.checkVisibility())"
        )
        assert await tab.run(f"{smallest}.map((one) => one.getBoundingClientRect().height))") >= 10
    assert await tab.run("document.querySelectorAll('.drawn').length") > 20
    assert "95% CI" in await tab.run("document.querySelector('.drawn title').textContent")


async def _is_accessible(tab: Tab, page: Path) -> None:
    for width, scheme in LOOKS:
        await tab.prefer(scheme)
        await tab.load(page, width)
        await tab.when("document.querySelector('#episodes td a')")
        await tab.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert await tab.findings() == []
    await tab.load(next(page.parent.glob("transcripts/1/[0-9]*.html")))
    assert await tab.findings() == []
    await tab.prefer("light")


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
    await tab.when("document.querySelector('#episodes td a')")
    assert await tab.run("document.querySelector('#episodes [role=status]').textContent") == "56 of 56 rows"
    await tab.run("document.querySelector('.go[data-run=always][data-naming=benign]').click()")
    await tab.when("document.querySelector('#episodes [role=status]').textContent === '12 of 56 rows'")
    await tab.run("document.querySelector('#episodes td a').click()")
    await tab.when("document.getElementById('misaligned-call')")
    assert not await tab.run("document.querySelector('details').open")
    await tab.run("document.querySelector('[data-fold]').click()")
    assert await tab.run("[...document.querySelectorAll('details')].every((fold) => fold.open)")
    await tab.run("document.querySelector('.links a').click()")
    await tab.when("document.getElementById('transcripts') && document.querySelector('#episodes td')")


async def _filters_by_outcome(tab: Tab, page: Path) -> None:
    await tab.load(page)
    await tab.when("document.querySelector('#episodes td a')")
    await tab.run(
        "(() => { const choice = [...document.querySelectorAll('#episodes label')]"
        ".find((label) => label.firstChild.textContent === 'outcome').querySelector('select');"
        " choice.value = 'truncated'; choice.dispatchEvent(new Event('change')); })()"
    )
    await tab.when("document.querySelector('#episodes [role=status]').textContent === '8 of 56 rows'")
    cell = "document.querySelector('#episodes .truncated')"
    colours = f"[{cell}, {cell}.parentElement].map((element) => getComputedStyle(element).color)"
    label, ink = await tab.run(colours)
    assert label != ink


async def _shows_long_tables_in_parts(tab: Tab, page: Path) -> None:
    await tab.load(page)
    await tab.run(
        "window.long = document.querySelector('main').appendChild(document.createElement('table'));"
        "long.innerHTML = `<thead><tr><th>number</th></tr></thead><tbody>${"
        "[...Array(450).keys()].map((number) => `<tr><td>${number}</td></tr>`).join('')}</tbody>`;"
        "new RowTable(long); 0"
    )
    shown = "[...long.tBodies[0].rows].map((row) => Number(row.textContent))"
    more = "long.nextElementSibling"
    assert await tab.run(shown) == list(range(200))
    assert await tab.run(f"{more}.textContent") == "Show more: 200 of 450"
    await tab.run(f"{more}.click(), {more}.click()")
    assert await tab.run(shown) == list(range(450))
    assert await tab.run(f"{more}.hidden")
    await tab.run("long.querySelector('button').click(), long.querySelector('button').click()")
    assert await tab.run(shown) == list(range(449, 249, -1))


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
    _is_accessible,
    _shows_card,
    _sorts_and_filters,
    _lists_transcripts,
    _filters_by_outcome,
    _shows_long_tables_in_parts,
    _turns_dark,
)


def test_page_works_offline(report: Path, tmp_path: Path) -> None:
    async def run_checks() -> list[str]:
        async with tab_of(tmp_path / "profile") as tab:
            for check in CHECKS:
                await check(tab, report)
            return tab.complaints

    assert asyncio.run(run_checks()) == []
