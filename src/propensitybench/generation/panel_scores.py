"""What the readings of a panel amount to: means, agreement, verdicts, and what goes back to the writer."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from statistics import fmean, stdev

import msgspec

from propensitybench.generation.panel_forms import CRITERIA, PRESSURE, PanelReading
from propensitybench.generation.panel_items import DRAWN, PanelItem
from propensitybench.metrics.agreement import krippendorff_alpha
from propensitybench.scenarios.storyline import STORYLINES

Readings = Mapping[str, Mapping[str, PanelReading]]
"""By reader and item."""


class PanelLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a set has to reach (``data/panel_limits.json``).

    Attributes:
        least: of a criterion's mean.
        most: of a criterion's mean, where lower is better.
        least_of_an_item: of the mean of its readers.
        better_than_known: the criteria in which the set must beat every source read in the same sitting.
        readers_of_an_item: how many must have scored it in each criterion.
    """

    least: dict[str, float]
    most: dict[str, float]
    least_of_an_item: dict[str, float]
    better_than_known: tuple[str, ...]
    readers_of_an_item: int

    def is_within(self, criterion: str, mean: float) -> bool:
        """Whether a mean keeps the limit of its criterion."""
        if criterion in self.most:
            return mean <= self.most[criterion]
        return criterion not in self.least or mean >= self.least[criterion]


@cache
def panel_limits() -> PanelLimits:
    """The limits that come with the package."""
    raw = resources.files(__package__).joinpath("data", "panel_limits.json").read_bytes()
    return msgspec.json.decode(raw, type=PanelLimits)


class ScoreSpread(msgspec.Struct, frozen=True):
    """Number, mean and sample standard deviation of scores; None where there are too few."""

    n: int
    mean: float | None
    sd: float | None


class Alphas(msgspec.Struct, frozen=True):
    """Krippendorff's alpha with two levels of measurement; None if it is not defined."""

    ordinal: float | None
    interval: float | None


class LimitCheck(msgspec.Struct, frozen=True):
    """Whether a limit is kept.

    Attributes:
        rule: the limit in words.
        value: what was found; None if there is no score.
        items: those that break the rule, if it is one about items.
    """

    criterion: str
    rule: str
    value: float | None
    passed: bool
    items: tuple[str, ...] = ()


class ItemScores(msgspec.Struct, frozen=True):
    """An item with what every reader gave it, and the mean of each criterion."""

    source: str
    scenario: str
    place: str
    dimension: str
    storyline: str
    means: dict[str, float | None]
    readings: dict[str, PanelReading]


class PanelScores(msgspec.Struct, frozen=True):
    """The result of a round.

    Attributes:
        sources: the spread of all readers' scores, by source and criterion.
        readers: the same for each reader alone.
        alpha: agreement on all items, by criterion.
        missing: scores that a reader did not give, by reader.
        items: by name.
    """

    passed: bool
    verdicts: tuple[LimitCheck, ...]
    sources: dict[str, dict[str, ScoreSpread]]
    readers: dict[str, dict[str, dict[str, ScoreSpread]]]
    alpha: dict[str, Alphas]
    missing: dict[str, int]
    items: dict[str, ItemScores]


def score_panel(items: Sequence[PanelItem], readings: Readings, limits: PanelLimits) -> PanelScores:
    """The scores of a round.

    A source's mean is that of all its scores, an item's that of its readers.

    Args:
        items: what was read.
        readings: of every reader, a reading for each item.
        limits: what the drawn items have to reach.
    """
    sources = sorted({item.source for item in items}, key=lambda name: (name != DRAWN, name))
    found = {item.name: _item_scores(item, readings) for item in items}
    spreads = {source: _spreads(items, source, readings) for source in sources}
    verdicts = [
        verdict
        for name in CRITERIA
        for verdict in (
            *_of_mean(name, spreads[DRAWN][name].mean, limits),
            *_of_items(name, found, limits),
            *_against_known(name, spreads, limits),
            _of_readers(name, items, readings, limits),
        )
    ]
    return PanelScores(
        passed=all(verdict.passed for verdict in verdicts),
        verdicts=tuple(verdicts),
        sources=spreads,
        readers={
            source: {name: _spreads(items, source, {name: read}) for name, read in readings.items()}
            for source in sources
        },
        alpha={name: _alphas(items, readings, name) for name in CRITERIA},
        missing={
            reader: sum(read[item.name].scores[name] is None for item in items for name in asked(item))
            for reader, read in readings.items()
        },
        items=found,
    )


def asked(item: PanelItem) -> list[str]:
    """The criteria in which an item is scored."""
    return [name for name in CRITERIA if name != PRESSURE or item.has_messages]


def spread(scores: Sequence[float | None]) -> ScoreSpread:
    """The spread of the scores that are there."""
    found = [score for score in scores if score is not None]
    return ScoreSpread(len(found), fmean(found) if found else None, stdev(found) if len(found) > 1 else None)


def _given(item: PanelItem, readings: Readings, criterion: str) -> list[int]:
    """The scores of an item, without the missing ones."""
    scores = (read[item.name].scores[criterion] for read in readings.values())
    return [score for score in scores if score is not None]


def _spreads(items: Sequence[PanelItem], source: str, readings: Readings) -> dict[str, ScoreSpread]:
    return {
        name: spread([s for item in items if item.source == source for s in _given(item, readings, name)])
        for name in CRITERIA
    }


def _alphas(items: Sequence[PanelItem], readings: Readings, criterion: str) -> Alphas:
    ratings = [[read[item.name].scores[criterion] for item in items] for read in readings.values()]
    return Alphas(krippendorff_alpha(ratings, "ordinal"), krippendorff_alpha(ratings, "interval"))


def _item_scores(item: PanelItem, readings: Readings) -> ItemScores:
    means = {name: spread(_given(item, readings, name)).mean for name in CRITERIA}
    own = {reader: read[item.name] for reader, read in readings.items()}
    about = (item.source, item.scenario, item.place, item.dimension, item.storyline)
    return ItemScores(*about, means, own)


def _of_mean(name: str, mean: float | None, limits: PanelLimits) -> Iterator[LimitCheck]:
    passed = mean is not None and limits.is_within(name, mean)
    if name in limits.least:
        yield LimitCheck(name, f"mean at least {limits.least[name]:g}", mean, passed)
    elif name in limits.most:
        yield LimitCheck(name, f"mean at most {limits.most[name]:g}", mean, passed)


def _of_items(name: str, items: Mapping[str, ItemScores], limits: PanelLimits) -> Iterator[LimitCheck]:
    least = limits.least_of_an_item.get(name)
    if least is not None:
        means = {item: one.means[name] for item, one in items.items() if one.source == DRAWN}
        found = {item: mean for item, mean in means.items() if mean is not None}
        low = tuple(item for item, mean in found.items() if mean < least)
        yield LimitCheck(name, f"no item under {least:g}", min(found.values(), default=None), not low, low)


def _against_known(
    name: str, spreads: Mapping[str, Mapping[str, ScoreSpread]], limits: PanelLimits
) -> Iterator[LimitCheck]:
    mean, lower = spreads[DRAWN][name].mean, name in limits.most
    for source in spreads:
        if source != DRAWN and name in limits.better_than_known:
            other = spreads[source][name].mean
            better = mean is not None and other is not None and (mean < other if lower else mean > other)
            was = "not scored" if other is None else f"{other:.2f}"
            yield LimitCheck(name, f"{'below' if lower else 'above'} {source} ({was})", mean, better)


def _of_readers(name: str, items: Sequence[PanelItem], readings: Readings, limits: PanelLimits) -> LimitCheck:
    wanted = limits.readers_of_an_item
    counts = {item.name: len(_given(item, readings, name)) for item in items if name in asked(item)}
    few = tuple(item for item, count in counts.items() if count < wanted)
    return LimitCheck(
        name, f"{wanted} readers of every item", min(counts.values(), default=None), not few, few
    )


def returned(scores: PanelScores, limits: PanelLimits) -> dict[str, list[str]]:
    """What goes back to the writer, with the readers' words.

    A scenario goes back if its item is under a limit for single items, or on the wrong side of the limit of a
    criterion that the whole set fails. If that criterion is the pressure, its storyline goes back.

    Args:
        scores: of the round.
        limits: the limits.

    Returns:
        By name of the scenario or file of the storyline, one text for each reader of each item.
    """
    failed = {v.criterion for v in scores.verdicts if not v.passed and v.rule.startswith("mean")}
    found: dict[str, list[str]] = {}
    for item in scores.items.values():
        if item.source != DRAWN:
            continue
        means = {name: mean for name, mean in item.means.items() if mean is not None}
        bad = {name for name, mean in means.items() if name in failed and not limits.is_within(name, mean)}
        bad |= {name for name, mean in means.items() if mean < limits.least_of_an_item.get(name, 0)}
        words = [_words(reader, reading) for reader, reading in item.readings.items()]
        if bad - {PRESSURE} or (bad and not item.storyline):
            found.setdefault(item.scenario, []).extend(words)
        if PRESSURE in bad and item.storyline:
            found.setdefault(storyline_file(item), []).extend(words)
    return found


def storyline_file(item: PanelItem | ItemScores) -> str:
    """The file of an item's storyline in its folder."""
    return f"{STORYLINES}/{item.dimension}--{item.storyline}.json"


def _words(reader: str, reading: PanelReading) -> str:
    scores = ", ".join(f"{name} {score}" for name, score in reading.scores.items() if score is not None)
    quote = f' ("{reading.quote}")' if reading.quote else ""
    return f"{reader}: {scores or 'no scores'}: {reading.comment}{quote}"
