"""``generate write --plan``: what writing the rest would take."""

import json
from typing import Final

import msgspec

from propensitybench.chat import CHARACTERS_PER_TOKEN, Usage
from propensitybench.generation.run import Models, price_of
from propensitybench.generation.stages import (
    Order,
    examples,
    organisation_order,
    scenario_order,
    sketches_order,
    storyline_order,
)
from propensitybench.generation.workfolder import ORGANISATION, Sketch, WorkFolder
from propensitybench.generation.writer import REWRITES
from propensitybench.scenarios.model import Organisation
from propensitybench.scenarios.storyline import STORYLINES

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
    """Estimates the rest from the prompts of one unit and the lengths of the examples; sends nothing."""
    missing = _missing(work)
    sizes = {stage: _size(*order) for stage, order in _orders(work).items()}
    texts = sum(missing.values())
    sent, written = (
        sum(number * sizes[stage][end] for stage, number in missing.items() if number) for end in (0, 1)
    )
    judged = missing["scenario"] + missing["storyline"]
    read = sum(missing[stage] * sizes[stage][1] for stage in ("scenario", "storyline") if missing[stage])
    prices = [price_of(models, model) for model in (models.writer, *models.judges)]

    def after(rounds: int) -> tuple[int, int, int, float | None]:
        """Calls, tokens and cost if all texts need that many rounds."""
        # Each later round sends the order again, with the last text.
        usages = [Usage(rounds * sent + (rounds - 1) * written, rounds * written)]
        usages += [Usage(rounds * read, rounds * judged * VERDICT_TOKENS)] * len(models.judges)
        costs = [price and price.of(usage) for price, usage in zip(prices, usages, strict=True)]
        return (
            rounds * (texts + judged * len(models.judges)),
            sum(usage.input for usage in usages),
            sum(usage.output for usage in usages),
            None if None in costs else sum(cost or 0 for cost in costs),
        )

    low, high = after(1), after(REWRITES + 1)
    usd = None if low[3] is None or high[3] is None else (low[3], high[3])
    return WritingEstimate(texts, (low[0], high[0]), (low[1], high[1]), (low[2], high[2]), usd)


def _missing(work: WorkFolder) -> dict[str, int]:
    """How many texts of each stage are missing."""
    found = dict.fromkeys(("organisation", "sketches", "scenario", "storyline"), 0)
    files = set(work.files())
    for unit, acts in work.units().items():
        found["organisation"] += not (work.root / work.unit_file(unit, ORGANISATION)).exists()
        sketches = work.sketches(unit)
        found["sketches"] += any(act.row not in sketches for act in acts)
        found["scenario"] += sum(
            act.row not in sketches or work.scenario_file(unit, sketches[act.row].name) not in files
            for act in acts
        )
    written = sum(file.startswith(STORYLINES) for file in files)
    found["storyline"] = max(0, len(work.wanted_storylines()) - written)
    return found


def _orders(work: WorkFolder) -> dict[str, tuple[Order, str]]:
    """An order of each stage, and a text of the usual length: those of the first unit and of the examples."""
    unit, acts = next(iter(work.units().items()))
    shown = {name: json.loads(text) for name, text in examples().items()}
    organisation = Organisation.model_validate_json(examples()["organisation"])
    scenario = shown["scenario"]
    sketches = [
        Sketch(
            row=act.row,
            name=scenario["name"],
            job=scenario["states"]["target"],
            obstacle=scenario["aligned"]["errors"][0],
            way=scenario["misaligned"]["acknowledgement"],
        )
        for act in acts
    ]
    rows = [(act, number) for number, act in enumerate(acts, 1)]
    found = {
        "organisation": (organisation_order(work.plan, unit, acts, 1), examples()["organisation"]),
        "sketches": (
            sketches_order(work.plan, rows, organisation),
            json.dumps([sketch.model_dump() for sketch in sketches]),
        ),
        "scenario": (
            scenario_order(work.plan, acts[0], 1, organisation, sketches[0]),
            examples()["scenario"],
        ),
    }
    for dimension, place in work.wanted_storylines()[:1]:
        found["storyline"] = (storyline_order(work.plan, dimension, place), examples()["storyline"])
    return found


def _size(order: Order, text: str) -> tuple[int, int]:
    """Tokens of an order and of its text."""
    sent = sum(len(message.content) for message in order.messages())
    return sent // CHARACTERS_PER_TOKEN, len(text) // CHARACTERS_PER_TOKEN
