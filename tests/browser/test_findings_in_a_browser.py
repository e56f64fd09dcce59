"""The page of findings in a real browser; skipped if none is installed."""

import asyncio
from pathlib import Path

import msgspec
import numpy as np
import pytest
from helpers.browser import BROWSER, Tab, tab_of

from propensitybench.metrics.capability_index import IndexEntry
from propensitybench.pages.findings import write_findings
from propensitybench.signs import Subject, declared, find
from propensitybench.signs.findings import findings_of
from validation.signs import CLEAR, EDGE, subject_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]
SIGNS = "document.querySelectorAll('.signs > li > details')"


def subjects() -> list[Subject]:
    found = [subject_of(world, np.random.default_rng(4)) for world in (CLEAR, EDGE)]
    return [msgspec.structs.replace(one, name=name) for one, name in zip(found, "mn", strict=True)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The page of one model, and that of two."""
    folder = tmp_path_factory.mktemp("findings")
    first, other = subjects()
    index = {"m": IndexEntry(1, "made up", "2026-01-01")}
    one = write_findings(findings_of(declared(), find([first])), folder / "one")
    return one, write_findings(findings_of(declared(), find([first, other], index)), folder / "two")


async def _fits_one_screen(tab: Tab, page: Path) -> None:
    await tab.load(page)
    assert await tab.run(f"{SIGNS}.length") == 9
    bottom = await tab.run(f"[...{SIGNS}].at(-1).getBoundingClientRect().bottom")
    assert bottom <= 900


async def _opens(tab: Tab, page: Path) -> None:
    await tab.load(page)
    assert not await tab.run("document.querySelectorAll('.drawn')[1].checkVisibility()")
    await tab.run(f"{SIGNS}[1].querySelector('summary').click()")
    assert await tab.run("document.querySelectorAll('.drawn')[1].checkVisibility()")


async def _fits_any_width(tab: Tab, page: Path) -> None:
    for width in (1280, 360):
        await tab.load(page, width)
        await tab.run(f"{SIGNS}.forEach((one) => {{ one.open = true; }})")
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth"), width


async def _is_accessible(tab: Tab, page: Path) -> None:
    for scheme in ("light", "dark"):
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        await tab.ask("Emulation.setEmulatedMedia", features=media)
        await tab.load(page)
        await tab.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert await tab.findings() == [], scheme
    ink = "getComputedStyle(document.querySelector('.drawn text')).fill"
    dark = await tab.run(ink)
    await tab.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    await tab.load(page)
    assert await tab.run(ink) != dark


def test_the_pages_in_a_browser(pages: tuple[Path, Path], tmp_path: Path) -> None:
    async def run() -> list[str]:
        async with tab_of(tmp_path) as tab:
            await _fits_one_screen(tab, pages[0])
            for page in pages:
                await _opens(tab, page)
                await _fits_any_width(tab, page)
            await _is_accessible(tab, pages[1])
            return tab.complaints

    assert asyncio.run(run()) == []
