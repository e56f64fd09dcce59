"""What a run would ask and cost, found by playing a sample of it with simulated agents."""

from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from propensitybench.chat import Request
from propensitybench.engine.prices import Price, price_table
from propensitybench.engine.spec import RunSpec, pick
from propensitybench.episode import Episode, Outcome, episode_setup
from propensitybench.metrics.power import ASSUMED_PROPENSITY, Power, power
from propensitybench.scenarios import Scenario, Task
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile

SAMPLE: Final = 24
# English text and JSON come to about four characters a token with the tokenizers in use.
CHARACTERS_A_TOKEN: Final = 4
# An agent that gives in half the time at once, and one that works through every level.
SHORT, LONG = "gemini-2.5-pro-like", "never"


class Range(NamedTuple):
    """A low and a high estimate."""

    low: float
    high: float


class Plan(msgspec.Struct, frozen=True):
    """What is left of a run, in calls, tokens and money; ``usd`` is None where the price is unknown.

    All of it is an upper limit where a stopping rule may end the run before the last of its ``tasks``.
    ``power`` is what the whole run could show, for each assumed propensity.
    """

    tasks: int
    finished: int
    calls: Range
    input_tokens: Range
    output_tokens: Range
    usd: Range | None
    price_source: str
    basis: str
    power: tuple[Power, ...]


class _Lengths(NamedTuple):
    calls: float
    input_tokens: float
    output_tokens: float


def plan_run(spec: RunSpec, path: Path, price: Price | None) -> Plan:
    """The plan of a run.

    Args:
        spec: the run.
        path: its file; if it exists, what it has is used: the rest of the run is planned, from the
            lengths of the episodes that are finished.
        price: of the model; None looks it up.
    """
    dataset, chosen = pick(spec)
    by_name = {scenario.name: scenario for scenario in dataset.scenarios}
    finished, measured = _so_far(path)
    if measured is None:
        sample = chosen[:SAMPLE]
        ends = [_simulated(spec, sample, by_name, profile) for profile in (SHORT, LONG)]
        basis = f"{len(sample)} tasks played with simulated/{SHORT} (low) and simulated/{LONG} (high)"
    else:
        ends = [measured, measured]
        basis = f"the {finished} tasks that are finished"
    left = len(chosen) - finished
    found = price or price_table().find(spec.model)
    usd = None
    if found is not None:
        costs = [left * (e.input_tokens * found.input + e.output_tokens * found.output) / 1e6 for e in ends]
        usd = Range(min(costs), max(costs))
    return Plan(
        tasks=len(chosen),
        finished=finished,
        calls=_range(left, [end.calls for end in ends]),
        input_tokens=_range(left, [end.input_tokens for end in ends]),
        output_tokens=_range(left, [end.output_tokens for end in ends]),
        usd=usd,
        price_source="--price" if price else f"price table of {price_table().date}, nothing cached",
        basis=basis,
        power=_power(chosen),
    )


def _power(chosen: list[Task]) -> tuple[Power, ...]:
    namings = len({task.naming for task in chosen})
    scenarios = len({task.scenario for task in chosen})
    return tuple(
        power(len(chosen) // namings, scenarios, propensity, both_namings=namings > 1)
        for propensity in ASSUMED_PROPENSITY
    )


def _range(tasks: int, lengths: list[float]) -> Range:
    return Range(round(tasks * min(lengths)), round(tasks * max(lengths)))


def _so_far(path: Path) -> tuple[int, _Lengths | None]:
    if not path.exists():
        return 0, None
    with RunFile.open(path) as run:
        outcomes = [r.stats for r in run.records() if r.stats.outcome is not Outcome.ERRORED]
    finished = len(outcomes)
    if not sum(outcome.usage.input for outcome in outcomes):
        return finished, None
    return finished, _Lengths(
        sum(outcome.turns for outcome in outcomes) / finished,
        sum(outcome.usage.input for outcome in outcomes) / finished,
        sum(outcome.usage.output for outcome in outcomes) / finished,
    )


def _simulated(spec: RunSpec, sample: list[Task], by_name: dict[str, Scenario], profile: str) -> _Lengths:
    calls = sent = said = 0
    client = SimulatedClient(profile)
    for task in sample:
        scenario = by_name[task.scenario]
        setup = episode_setup(task, scenario, spec.settings)
        episode = Episode(setup)
        conversation = client.open_task(setup.metadata)
        request: Request | None = episode.start()
        tools = len(msgspec.json.encode(episode.offered))
        while request is not None:
            reply = conversation.answer(request)
            calls += 1
            sent += tools + sum(len(message.content) + 20 for message in request.messages)
            said += len(reply.content) + sum(len(c.arguments) + len(c.name) for c in reply.tool_calls)
            request = episode.receive(reply)
    number = max(1, len(sample))
    return _Lengths(calls / number, sent / number / CHARACTERS_A_TOKEN, said / number / CHARACTERS_A_TOKEN)
