"""The board in a real browser: widths, colours, keyboard, accessibility; skipped if none is installed."""

import asyncio
import re
from pathlib import Path
from typing import Final

import pytest
from helpers.boards import failing, made, played, without_last
from helpers.browser import BROWSER, LOOKS, Tab, tab_of
from helpers.records import BIO, CHEM

from propensitybench.pages.board.folder import board as update_board
from propensitybench.runs import Run, read_runs

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]

WIDTHS: Final = (360, 768, 1280)
MODELS: Final = ("o3-like", "always", "never", "concealing")
FIRST: Final = "document.querySelector('table.main')"
NAMES: Final = f"[...{FIRST}.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.dataset.name)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The board of five simulated models, one without two domains, and of an older data version."""
    folder = tmp_path_factory.mktemp("board")
    paths = [played(folder / f"{name}.run", f"simulated/{name}", dimensions=("time",)) for name in MODELS]
    paths.append(played(folder / "two.run", "simulated/moved-by-time", (BIO, CHEM), ("time",)))
    other: list[Run] = [made("lab/other", failing((0.2, 0.4))), made("lab/more", failing((0.4, 0.4)))]
    other.append(without_last(made("lab/unfinished", failing((0.4, 0.4))), 20))
    return update_board([*read_runs(paths).runs, *other], folder / "board", transcripts="failed").page


async def _fits_and_is_accessible(tab: Tab, page: Path) -> None:
    for width in WIDTHS:
        await tab.load(page, width)
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth"), width
    for width, scheme in LOOKS:
        await tab.prefer(scheme)
        await tab.load(page, width)
        dark = await tab.run("getComputedStyle(document.body).backgroundColor === 'rgb(20, 22, 26)'")
        assert dark == (scheme == "dark")
        assert await tab.findings() == []
    await tab.prefer("light")


async def _is_sorted_from_the_keyboard(tab: Tab, page: Path) -> None:
    await tab.load(page)
    before = await tab.run(NAMES)
    assert (before[0], before[-1]) == ("never", "always")
    head = f"[...{FIRST}.tHead.rows[0].cells].find((one) => one.textContent === 'Propensity')"
    await _tab_to(tab, f"document.activeElement === {head}.firstChild")
    await tab.press("Enter")
    assert await tab.run(f"{head}.getAttribute('aria-sort')") == "descending"
    assert (await tab.run(NAMES))[0] == "always"
    assert (
        await tab.run("document.getElementById('status').textContent")
        == "sorted by Propensity, highest first"
    )
    await tab.press(" ")
    assert await tab.run(NAMES) == before
    await tab.press("Tab")  # no column of the chart between
    await tab.press("Enter")
    heads = f"[...{FIRST}.querySelectorAll('[aria-sort]')].map((one) => one.textContent)"
    assert await tab.run(heads) == ["Zero-pressure"]


async def _row_opens_to_its_report(tab: Tab, page: Path) -> None:
    await tab.load(page)
    name = (await tab.run(NAMES))[0]
    await _tab_to(tab, f"document.activeElement.closest('tr')?.dataset.name === {name!r}")
    await tab.press("Enter")
    await tab.when("document.getElementById('summary')")
    assert name in await tab.when("document.title")


async def _is_filtered_from_the_keyboard(tab: Tab, page: Path) -> None:
    await tab.load(page)
    await _tab_to(tab, "document.activeElement.id === 'naming'")
    await tab.press("b")  # the first option that begins so
    assert await tab.run("document.body.dataset.naming") == "benign"
    hidden = f"getComputedStyle({FIRST}.querySelector('.line.harmful')).display === 'none'"
    assert await tab.run(hidden)
    await tab.press("Tab")
    await tab.press("c")
    parts = "[...document.querySelector('table.parts').tHead.rows[0].cells].filter((one) => !one.hidden)"
    assert await tab.run(f"{parts}.map((one) => one.textContent)") == ["Model", "chemical-security"]
    column = f"{parts}[1].cellIndex"
    rows = "[...document.querySelector('table.parts').tBodies[0].rows]"
    values = f"{rows}.map((row) => row.cells[{column}].dataset.benign)"
    shown = await tab.run(values)
    assert len(shown) == 5
    assert [float(one) for one in shown] == sorted(map(float, shown))
    await tab.press("Tab")
    await tab.press("Tab")
    for letter in "never":
        await tab.press(letter)
    assert await tab.run(NAMES) == ["never"]
    assert await tab.run("document.getElementById('status').textContent") == "1 of 8 runs"


async def _sorts_cards_of_a_phone(tab: Tab, page: Path) -> None:
    await tab.load(page, 360)
    await tab.run("document.getElementById('sort').focus()")
    await tab.press("z")
    status = await tab.run("document.getElementById('status').textContent")
    assert status == "sorted by Zero-pressure, lowest first"
    keys = await tab.run(
        f"[...{FIRST}.querySelectorAll('.zero[data-harmful]')].map((one) => one.dataset.harmful)"
    )
    assert [float(one) for one in keys] == sorted(map(float, keys))
    # Cards are still rows of a table to a screen reader, each value with its label.
    tree = (await tab.ask("Accessibility.getFullAXTree"))["nodes"]
    roles = [node["role"]["value"] for node in tree if not node["ignored"]]
    assert roles.count("row") >= 8
    texts = [node.get("name", {}).get("value", "") for node in tree]
    assert any(text.startswith("harmful names: ") for text in texts)
    assert any(text.startswith("harmful names: 100.0%, 95% interval") for text in texts)


async def _tab_to(tab: Tab, expression: str) -> None:
    """Presses Tab until something has the focus."""
    for _ in range(60):
        await tab.press("Tab")
        if await tab.run(expression):
            return
    raise AssertionError(expression)


CHECKS: Final = (
    _fits_and_is_accessible,
    _is_sorted_from_the_keyboard,
    _row_opens_to_its_report,
    _is_filtered_from_the_keyboard,
    _sorts_cards_of_a_phone,
)


def test_board_works_offline(page: Path, tmp_path: Path) -> None:
    async def run_checks() -> list[str]:
        async with tab_of(tmp_path / "profile") as tab:
            for check in CHECKS:
                await check(tab, page)
            return tab.complaints

    assert asyncio.run(run_checks()) == []


def test_board_is_complete_and_sorted_without_scripts(page: Path, tmp_path: Path) -> None:
    bare = page.with_name("bare.html")
    bare.write_text(
        re.sub("<script>.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL),
        encoding="utf-8",
    )

    async def look() -> None:
        async with tab_of(tmp_path / "profile") as tab:
            await tab.load(bare)
            assert not await tab.run("document.getElementById('controls').checkVisibility()")
            cells = (
                f"[...{FIRST}.tBodies[0].rows].map((row) => row.querySelector('.propensity').dataset.harmful)"
            )
            keys = [float(one) for one in await tab.run(cells)]
            assert keys == sorted(keys)
            assert not await tab.run("document.querySelector('th button')")

    asyncio.run(look())
