"""What the readings of a panel amount to: means, agreement, verdicts, and what goes back to the writer."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from statistics import fmean

import msgspec

from propensitybench.generation.agreement import Alphas, ScoreSpread, agreement, spread
from propensitybench.generation.panel_forms import CRITERIA, PRESSURE, PanelReading
from propensitybench.generation.panel_items import DRAWN, PanelItem
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
    scores = _Scores(items, readings)
    verdicts = tuple(_Judgement(scores, limits).verdicts())
    return PanelScores(
        passed=all(verdict.passed for verdict in verdicts),
        verdicts=verdicts,
        sources={source: scores.spreads(source, list(readings)) for source in scores.sources},
        readers={
            source: {reader: scores.spreads(source, [reader]) for reader in readings}
            for source in scores.sources
        },
        alpha={name: agreement(scores.ratings(name)) for name in CRITERIA},
        missing={reader: scores.missing(reader) for reader in readings},
        items={item.name: scores.of_item(item) for item in items},
    )


class _Scores:
    """Readings, looked up by reader, item and criterion."""

    def __init__(self, items: Sequence[PanelItem], readings: Readings) -> None:
        self.items = items
        self.readings = readings
        self.sources = sorted({item.source for item in items}, key=lambda name: (name != DRAWN, name))

    def drawn(self) -> list[PanelItem]:
        return [item for item in self.items if item.source == DRAWN]

    def given(self, item: PanelItem, criterion: str, readers: Sequence[str] | None = None) -> list[int]:
        """The scores of an item, without the missing ones."""
        found = [self.readings[reader][item.name].scores[criterion] for reader in readers or self.readings]
        return [score for score in found if score is not None]

    def mean(self, item: PanelItem, criterion: str) -> float | None:
        found = self.given(item, criterion)
        return fmean(found) if found else None

    def spreads(self, source: str, readers: Sequence[str]) -> dict[str, ScoreSpread]:
        of_source = [item for item in self.items if item.source == source]
        return {
            name: spread([score for item in of_source for score in self.given(item, name, readers)])
            for name in CRITERIA
        }

    def ratings(self, criterion: str) -> list[list[float | None]]:
        return [
            [of_reader[item.name].scores[criterion] for item in self.items]
            for of_reader in self.readings.values()
        ]

    def missing(self, reader: str) -> int:
        return sum(
            self.readings[reader][item.name].scores[name] is None
            for item in self.items
            for name in asked(item)
        )

    def of_item(self, item: PanelItem) -> ItemScores:
        return ItemScores(
            item.source,
            item.scenario,
            item.place,
            item.dimension,
            item.storyline,
            {name: self.mean(item, name) for name in CRITERIA},
            {reader: of_reader[item.name] for reader, of_reader in self.readings.items()},
        )


def asked(item: PanelItem) -> list[str]:
    """The criteria in which an item is scored."""
    return [name for name in CRITERIA if name != PRESSURE or item.has_messages]


class _Judgement:
    def __init__(self, scores: _Scores, limits: PanelLimits) -> None:
        self._scores = scores
        self._limits = limits
        readers = list(scores.readings)
        self._means = {
            source: {name: one.mean for name, one in scores.spreads(source, readers).items()}
            for source in scores.sources
        }

    def verdicts(self) -> list[LimitCheck]:
        found = []
        for name in CRITERIA:
            found += self._of_mean(name)
            found += self._of_items(name)
            found += self._against_known(name)
            found.append(self._of_readers(name))
        return found

    def _of_mean(self, name: str) -> list[LimitCheck]:
        mean, limits = self._means[DRAWN][name], self._limits
        if name in limits.least:
            rule = f"mean at least {limits.least[name]:g}"
        elif name in limits.most:
            rule = f"mean at most {limits.most[name]:g}"
        else:
            return []
        return [LimitCheck(name, rule, mean, mean is not None and limits.is_within(name, mean))]

    def _of_items(self, name: str) -> list[LimitCheck]:
        least = self._limits.least_of_an_item.get(name)
        if least is None:
            return []
        means = {item.name: self._scores.mean(item, name) for item in self._scores.drawn()}
        found = {item: mean for item, mean in means.items() if mean is not None}
        low = tuple(item for item, mean in found.items() if mean < least)
        return [LimitCheck(name, f"no item under {least:g}", min(found.values(), default=None), not low, low)]

    def _against_known(self, name: str) -> list[LimitCheck]:
        if name not in self._limits.better_than_known:
            return []
        mean, lower = self._means[DRAWN][name], name in self._limits.most
        found = []
        for source, means in self._means.items():
            other = means[name]
            if source == DRAWN:
                continue
            scored = mean is not None and other is not None
            lead = (mean or 0) - (other or 0)
            better = scored and (lead < 0 if lower else lead > 0)
            was = "not scored" if other is None else f"{other:.2f}"
            rule = f"{'below' if lower else 'above'} {source} ({was})"
            found.append(LimitCheck(name, rule, mean, better))
        return found

    def _of_readers(self, name: str) -> LimitCheck:
        wanted = self._limits.readers_of_an_item
        counts = {
            item.name: len(self._scores.given(item, name))
            for item in self._scores.items
            if name in asked(item)
        }
        few = tuple(item for item, count in counts.items() if count < wanted)
        rule = f"{wanted} readers of every item"
        return LimitCheck(name, rule, min(counts.values(), default=None), not few, few)


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
