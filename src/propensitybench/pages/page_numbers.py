"""Numbers on the page, each linked to its place in the report's data.

A number is a button that opens a card with what it was computed from and its JSON Pointer in
``report.json``.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal
from urllib.parse import quote

from markupsafe import Markup

from propensitybench.escaping import visible
from propensitybench.metrics.measures import DescribedNumber
from propensitybench.presentation import formats

# Percent of tasks, and a difference of those in percentage points; a count or mean, and a difference of
# means; a rank; a p-value.
Unit = Literal["%", "pp", "", "diff", "rank", "p"]
MINUS: Final = "\u2212"
_SUFFIXES: Final[dict[Unit, str]] = {"%": "%", "pp": "\u202fpp"}
_BUTTON: Final = Markup('<button type="button" class="n" data-p="{}" data-u="{}" data-n="{}">{}</button>')
# Printable ASCII but the percent sign, which begins an escape.
_PLAIN: Final = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


def pointer(*parts: str | int) -> str:
    """The JSON Pointer (RFC 6901) of these keys and indices."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def resolve(data: Any, path: str) -> Any:
    """The value at a JSON Pointer; raises `LookupError` if there is none."""
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


def unit_of(quantity: DescribedNumber) -> Unit:
    """How values of a metric are formatted."""
    if quantity.unit == "proportion":
        return "%"
    return "pp" if quantity.unit == "difference of proportions" else ""


def format_number(value: float | None, unit: Unit) -> str:
    """A value with its unit."""
    return formats.NOTHING if value is None else _digits(value, unit) + _SUFFIXES.get(unit, "")


def format_interval(interval: Sequence[float] | None, unit: Unit) -> str:
    """An interval without its unit."""
    return formats.NOTHING if interval is None else " to ".join(_digits(end, unit) for end in interval)


def _digits(value: float, unit: Unit) -> str:
    match unit:
        case "p":
            return formats.p_value(value)
        case "%":
            text = formats.percent(value)
        case "pp":
            text = formats.points(value)
        case "rank":
            text = f"{value:g}"
        case "diff":
            text = f"{value:+.2f}"
        case _:
            text = f"{value:,}" if isinstance(value, int) else formats.number(value)
    return text.replace("-", MINUS)


class Numbers:
    """The functions that the page's template calls.

    Args:
        data: the contents of ``report.json``.
    """

    def __init__(self, data: Any) -> None:
        self._data = data

    def at(self, path: str) -> Any:
        """The value at a JSON Pointer."""
        return resolve(self._data, path)

    def number(self, path: str, unit: Unit = "%", note: str = "") -> Markup:
        """A number, or the value of an estimate, as a button.

        Args:
            path: its JSON Pointer.
            unit: how to format it.
            note: what it is; not needed for an estimate, which carries its own description.
        """
        return _button(path, unit, note, format_number(self._value(path), unit))

    def interval(self, path: str, unit: Unit = "%", note: str = "") -> Markup:
        """An interval as a button."""
        return _button(path, unit, note, format_interval(self.at(path), unit))

    def bar(self, path: str, run: int) -> Markup:
        """An estimated share and its interval on a line from 0 to 100 %; empty without a value."""
        estimate = self.at(path)
        value = estimate["value"]
        if value is None:
            return Markup("")
        low, high = estimate["ci95"] or (value, value)
        style = f"--v:{value:.4f};--l:{low:.4f};--h:{high:.4f};--c:var(--run-{run % 8})"
        return Markup('<span class="bar" style="{}" aria-hidden="true"></span>').format(style)

    def sort_key(self, path: str) -> Markup:
        """The attribute by which a table cell is sorted."""
        value = self._value(path)
        return Markup(' data-v="{}"').format("" if value is None else value)

    def _value(self, path: str) -> Any:
        value = self.at(path)
        return value["value"] if isinstance(value, dict) else value


def _button(path: str, unit: Unit, note: str, text: str) -> Markup:
    """A number with its JSON Pointer, percent-encoded as in a URI fragment: keys may be any text."""
    return _BUTTON.format(quote(path, safe=_PLAIN), unit, visible(note), text)
