"""Numbers as text: shares in percent, their differences in percentage points, p-values."""

from typing import Final

from propensitybench.metrics.estimates import Estimate
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.measures import DescribedNumber

NOTHING: Final = "-"


def percent(share: float | None) -> str:
    """A share in percent, to one decimal place."""
    return NOTHING if share is None else f"{100 * share:.1f}"


def span(interval: Interval | None) -> str:
    """An interval in percent."""
    return NOTHING if interval is None else f"{percent(interval.low)}-{percent(interval.high)}"


def with_interval(share: float | None, interval: Interval | None) -> str:
    """A share with its interval, in percent."""
    return percent(share) + (f" ({span(interval)})" if interval else "")


def points(value: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    # Adding zero makes a rounded -0.0 positive.
    return NOTHING if value is None else f"{round(100 * value, 1) + 0.0:+.1f}"


def points_with_interval(estimate: Estimate) -> str:
    """A difference of shares with its interval, in percentage points."""
    ci95 = estimate.ci95
    return points(estimate.value) + (f" ({points(ci95.low)} to {points(ci95.high)})" if ci95 else "")


def p_value(p: float | None) -> str:
    """A p-value to three decimal places."""
    return NOTHING if p is None else "< .001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def number(value: float | None) -> str:
    """A number to two decimal places."""
    return NOTHING if value is None else f"{value:.2f}"


def signed(value: float | None) -> str:
    """A difference to two decimal places, with its sign."""
    return NOTHING if value is None else f"{value:+.2f}"


def measured(measure: DescribedNumber, value: float | None) -> str:
    """The value of a metric: in percent if it is a share, or else to two decimal places."""
    return percent(value) if measure.unit == "proportion" else number(value)


def measured_with_interval(measure: DescribedNumber, estimate: Estimate) -> str:
    """The value of a metric with its interval, if it has one."""
    if measure.unit == "proportion":
        return with_interval(estimate.value, estimate.ci95)
    ends = estimate.ci95 and f" ({number(estimate.ci95.low)} to {number(estimate.ci95.high)})"
    return number(estimate.value) + (ends or "")


def dollars(usd: float | None) -> str:
    """A cost; an unknown one is not 0."""
    return "price unknown" if usd is None else f"${usd:.2f}"


def counted(number: int, noun: str) -> str:
    """A number of things, in the singular for one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def capitalised(text: str) -> str:
    """A text with a capital first letter."""
    return text[:1].upper() + text[1:]
