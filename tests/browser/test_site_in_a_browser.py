"""The documentation site in a real browser, read from the disk; skipped if none is installed."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from helpers.browser import BROWSER, TIMEOUT_S, tab_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]

ROOT: Final = Path(__file__).parents[2]
HITS: Final = "[...document.querySelectorAll('.md-search-result__link')].map(link => link.href)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site with two of its pages, which takes a tenth of the time of all."""
    folder = tmp_path_factory.mktemp("site")
    pages = folder / "docs"
    shutil.copytree(ROOT / "docs" / "assets", pages / "assets")
    shutil.copy(ROOT / "docs" / "hooks.py", pages)
    shutil.copy(ROOT / "docs" / "executed.py", pages)
    for name in ("rules.md", "simulated-agents.md"):
        shutil.copy(ROOT / "docs" / name, pages)
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"):
        (folder / name).write_text("# A page\n", encoding="utf-8")
    config = f"INHERIT: {ROOT / 'mkdocs.yml'}\nnav: [index.md, rules.md]\nplugins: [offline, search]\n"
    (folder / "mkdocs.yml").write_text(config, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet"],
        cwd=folder,
        check=True,
        capture_output=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    return folder / "site"


def test_pages_work_from_the_disk_with_search_and_nothing_from_elsewhere(site: Path) -> None:
    async def steps() -> tuple[list[str], list[str], list[str]]:
        async with tab_of(site.parent / "profile") as tab:
            await tab.prefer("dark")
            await tab.load(site / "rules.html", 390)
            assert await tab.run("document.documentElement.scrollWidth") <= 390
            await tab.load(site / "rules.html")
            assert await tab.run("document.body.dataset.mdColorScheme") == "slate"
            violations = await tab.findings()
            await tab.run("document.querySelector('label[for=__search]').click()")
            await tab.run("document.querySelector('.md-search__input').focus()")
            await tab.ask("Input.insertText", text="moved-by-nothing")
            await tab.when("document.querySelector('.md-search-result__link')")
            return violations, await tab.run(HITS), tab.complaints

    violations, hits, complaints = asyncio.run(asyncio.wait_for(steps(), TIMEOUT_S))
    assert violations == complaints == []
    assert any("simulated-agents.html" in hit for hit in hits)
