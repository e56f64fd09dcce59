"""``generate write --plan``: what writing the rest would take."""

from typing import Final

import msgspec

from propensitybench.chat import CHARACTERS_PER_TOKEN, Request
from propensitybench.generation.execution import Models, price_of
from propensitybench.generation.keyless import answer
from propensitybench.generation.stages import (
    Order,
    organisation_order,
    read_object,
    read_organisation,
    read_sketches,
    scenario_order,
    sketches_order,
    storyline_order,
)
from propensitybench.generation.workfolder import ORGANISATION, WorkFolder
from propensitybench.generation.writing import REWRITES

# A model's texts are longer than the keyless writer's: a scenario of the examples is 1.6 times as long.
LONGER: Final = 1.6
# What a judge reads and says of a text, against what the writer wrote.
VERDICT_TOKENS: Final = 60


class WritingEstimate(msgspec.Struct, frozen=True):
    """What writing the rest would take: if every text is right at once, and if all need every round.

    Attributes:
        texts: texts that are missing, organisations and sketches included.
        calls, input_tokens, output_tokens: low and high.
        usd: low and high; None if a price is unknown.
    """

    texts: int
    calls: tuple[int, int]
    input_tokens: tuple[int, int]
    output_tokens: tuple[int, int]
    usd: tuple[float, float] | None


def estimate(work: WorkFolder, models: Models) -> WritingEstimate:
    """Estimates the rest from the prompts of one unit and the texts of the keyless writer; sends nothing."""
    missing = _missing(work)
    sizes = {stage: _size(order) for stage, order in _orders(work).items()}
    sent = sum(number * sizes[stage][0] for stage, number in missing.items() if number)
    written = sum(number * sizes[stage][1] for stage, number in missing.items() if number)
    texts = sum(missing.values())
    judged = (missing["scenario"] + missing["storyline"]) * len(models.judges)
    read = sum(missing[s] * sizes[s][1] for s in ("scenario", "storyline") if missing[s])
    ends = []
    for rounds in (1, REWRITES + 1):
        # Each later round sends the order again, with the last text.
        asked = rounds * sent + (rounds - 1) * written
        ends.append((rounds * (texts + judged), asked, rounds * written, rounds * read))
    (few, least, short, low), (many, most, long, high) = ends
    verdicts = VERDICT_TOKENS * judged
    usd = None
    prices = [price_of(models, model) for model in (models.writer, *models.judges)]
    if None not in prices:
        costs = [0.0, 0.0]
        for end, (_, into, out, seen) in enumerate(ends):
            for place, price in enumerate(prices):
                assert price is not None
                here, there = (into, out) if place == 0 else (seen, verdicts / len(models.judges))
                costs[end] += (here * price.input + there * price.output) / 1e6
        usd = (costs[0], costs[1])
    count = len(models.judges)
    return WritingEstimate(
        texts,
        (few, many),
        (least + count * low, most + count * high),
        (short + verdicts, long + verdicts * (REWRITES + 1)),
        usd,
    )


def _missing(work: WorkFolder) -> dict[str, int]:
    """How many texts of each stage are missing."""
    found = dict.fromkeys(("organisation", "sketches", "scenario", "storyline"), 0)
    for unit, acts in work.units().items():
        found["organisation"] += not (work.root / work.unit_file(unit, ORGANISATION)).exists()
        sketches = work.sketches(unit)
        found["sketches"] += any(act.row not in sketches for act in acts)
        there = {name for at, name in work.scenario_files() if at == unit}
        found["scenario"] += sum(
            act.row not in sketches or sketches[act.row].name not in there for act in acts
        )
    found["storyline"] = max(0, len(work.wanted_storylines()) - len(work.storyline_files()))
    return found


def _orders(work: WorkFolder) -> dict[str, Order]:
    """An order of each stage: those of the first unit, with the keyless writer's replies."""
    unit, acts = next(iter(work.units().items()))
    found = {"organisation": organisation_order(work.plan, unit, acts, 1)}
    organisation, _ = read_organisation(read_object(_reply(found["organisation"])))
    assert organisation is not None
    found["sketches"] = sketches_order(work.plan, [(a, n) for n, a in enumerate(acts, 1)], organisation)
    sketches, _ = read_sketches(read_object(_reply(found["sketches"])), acts, {})
    found["scenario"] = scenario_order(work.plan, acts[0], 1, organisation, sketches[0])
    for dimension, place in work.wanted_storylines()[:1]:
        found["storyline"] = storyline_order(work.plan, dimension, place)
    return found


def _reply(order: Order) -> str:
    return answer(Request(order.messages(), ())).content


def _size(order: Order) -> tuple[int, int]:
    """Tokens of an order and of its text."""
    sent = sum(len(message.content) for message in order.messages())
    return sent // CHARACTERS_PER_TOKEN, round(LONGER * len(_reply(order)) / CHARACTERS_PER_TOKEN)
