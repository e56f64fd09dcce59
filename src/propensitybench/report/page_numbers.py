"""Numbers of the page: each stands where a JSON Pointer finds it in the report's data.

The page shows a number as a button that reveals what it was computed from; the same pointer finds it
in ``report.json``.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

from markupsafe import Markup

NOTHING: Final = "\u2013"
# Percent of tasks, and their difference in percentage points; a count or mean, and its difference; a
# place in an order; a probability of chance.
Unit = Literal["%", "pp", "", "diff", "rank", "p"]
_BUTTON: Final = Markup('<button type="button" class="n" data-p="{}" data-u="{}" data-n="{}">{}</button>')


def pointer(*parts: str | int) -> str:
    """The JSON Pointer (RFC 6901) of those keys and places."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def resolve(data: Any, path: str) -> Any:
    """What a JSON Pointer points to; raises `LookupError` if there is nothing."""
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


def written(value: float | None, unit: Unit) -> str:
    """A value in its unit."""
    if value is None:
        return NOTHING
    if unit == "p":
        return "< .001" if value < 0.001 else f"{value:.3f}".removeprefix("0")
    return _digits(value, unit) + _NAMES.get(unit, "")


def span(interval: Sequence[float] | None, unit: Unit) -> str:
    """An interval in its unit, which it leaves out."""
    return NOTHING if interval is None else " to ".join(_digits(end, unit) for end in interval)


_NAMES: Final[dict[Unit, str]] = {"%": "\u202f%", "pp": "\u202fpp"}


def _digits(value: float, unit: Unit) -> str:
    if unit == "rank":
        return f"{value:g}"
    if isinstance(value, int):
        return f"{value:,}"
    sign = "+" if unit in ("pp", "diff") else ""
    text = f"{100 * value:{sign}.1f}" if unit in _NAMES else f"{value:{sign}.2f}"
    return text.replace("-", "\u2212")


class Numbers:
    """The functions that the page's template calls.

    Args:
        data: the report as it stands in ``report.json``.
    """

    def __init__(self, data: Any) -> None:
        self._data = data

    def at(self, path: str) -> Any:
        """What stands there."""
        return resolve(self._data, path)

    def number(self, path: str, unit: Unit = "%", note: str = "") -> Markup:
        """A number, or the value of an estimate, as a button that reveals what is behind it.

        Args:
            path: where it stands.
            unit: how to write it.
            note: what it is, for a number that does not say so itself.
        """
        found = self.at(path)
        value = found["value"] if isinstance(found, dict) else found
        return _BUTTON.format(path, unit, note, written(value, unit))

    def interval(self, path: str, unit: Unit = "%", note: str = "") -> Markup:
        """An interval, as a button likewise."""
        return _BUTTON.format(path, unit, note, span(self.at(path), unit))

    def bar(self, path: str, run: int) -> Markup:
        """A share of a run and its interval on a line from 0 to 100 percent; nothing without a value."""
        found = self.at(path)
        if found["value"] is None:
            return Markup("")
        low, high = found["ci95"] or (found["value"], found["value"])
        style = f"--v:{found['value']:.4f};--l:{low:.4f};--h:{high:.4f};--c:var(--run-{run % 8})"
        return Markup('<span class="bar" style="{}" aria-hidden="true"></span>').format(style)

    def sort_key(self, path: str) -> Markup:
        """The attribute by which a cell is sorted."""
        found = self.at(path)
        value = found["value"] if isinstance(found, dict) else found
        return Markup(' data-v="{}"').format("" if value is None else value)
