"""Rules of accessibility, checked by axe-core in a real browser."""

import json
from functools import cache
from pathlib import Path

import axe_core_python  # type: ignore[import-untyped]
from helpers.browser import Tab

GRAVE = ("serious", "critical")


@cache
def _source() -> str:
    (path,) = Path(axe_core_python.__path__[0]).rglob("axe.min.js")
    return path.read_text(encoding="utf-8")


async def serious(tab: Tab) -> list[str]:
    """The ids of serious and critical findings on the page that a tab shows."""
    await tab.run(f"{_source()}; true")
    found = await tab.run("axe.run().then((found) => JSON.stringify(found.violations))")
    return [one["id"] for one in json.loads(found) if one["impact"] in GRAVE]
