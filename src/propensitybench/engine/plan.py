"""Estimates of a run's requests, tokens, cost and statistical power."""

from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from propensitybench.chat import CHARACTERS_PER_TOKEN, Request
from propensitybench.engine.agents import check_address
from propensitybench.engine.growth import growth_of
from propensitybench.engine.prices import Price, price_table
from propensitybench.engine.spec import RunSpec, draw, pick, pressure_of
from propensitybench.episode import Episode, Outcome, episode_setup
from propensitybench.metrics.power import Assumptions, Power, power
from propensitybench.scenarios import Dataset, Task
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile
from propensitybench.store.shards import share_of

SAMPLE: Final = 24
# An agent that often gives in at once, and one that works through every level.
SHORT, LONG = "gemini-2.5-pro-like", "never"


class CostRange(NamedTuple):
    """A low and a high estimate."""

    low: float
    high: float


class RunPlan(msgspec.Struct, frozen=True):
    """The remaining cost of a run, and its power.

    All numbers are upper limits if a stopping rule may end the run early.

    Attributes:
        tasks: number of tasks of the run, or of its shard.
        pairs: number of pairs of scenario and dimension in the whole run, each under every naming.
        finished: number of tasks that need no more requests.
        calls: number of requests.
        input_tokens: tokens of the requests, with nothing cached.
        output_tokens: tokens of the replies, without reasoning.
        usd: cost in US dollars; None if the price is unknown.
        price_source: where the price is from.
        basis: what the estimates are based on.
        power: precision and power of the whole run, for each assumed propensity.
    """

    tasks: int
    pairs: int
    finished: int
    calls: CostRange
    input_tokens: CostRange
    output_tokens: CostRange
    usd: CostRange | None
    price_source: str
    basis: str
    power: tuple[Power, ...]


class _Lengths(NamedTuple):
    calls: float
    input_tokens: float
    output_tokens: float


def plan_run(
    spec: RunSpec, path: Path, price: Price | None, assumptions: Assumptions | None = None
) -> RunPlan:
    """Plans a run, or the rest of it.

    Args:
        spec: the run.
        path: its run file. If it exists, the rest of the run is estimated from its finished episodes;
            otherwise a sample of tasks is run with simulated agents.
        price: price of the model; None looks it up.
        assumptions: of the power analysis; the defaults if None.

    Raises:
        BadInput: the model, the settings or data cannot be used, or the file is not a run file.
        RunMismatch: the file holds another run.
    """
    check_address(spec.model, spec.options)
    dataset, asked = pick(spec)
    domains = {scenario.name: scenario.domain for scenario in dataset.scenarios}
    finished, measured, chosen = 0, None, asked
    if path.exists():
        finished, measured = _so_far(path)
        chosen = _in_file(spec, path, domains)
    planned = len(chosen)
    if spec.shard is not None:
        planned = len(share_of(spec.shard, [domains[task.scenario] for task in chosen]))
    if measured is None:
        sample = asked[:SAMPLE]
        ends = [_simulated(spec, dataset, sample, profile) for profile in (SHORT, LONG)]
        basis = f"{len(sample)} tasks run with simulated/{SHORT} (low) and simulated/{LONG} (high)"
    else:
        ends = [measured, measured]
        basis = f"the {finished} finished tasks"
    remaining = planned - finished
    rate = price or price_table().find(spec.model)
    usd = None
    if rate is not None:
        costs = [
            remaining * (e.input_tokens * rate.input + e.output_tokens * rate.output) / 1e6 for e in ends
        ]
        usd = CostRange(min(costs), max(costs))
    return RunPlan(
        tasks=planned,
        pairs=len({(task.scenario, task.dimension) for task in chosen}),
        finished=finished,
        calls=_range(remaining, [end.calls for end in ends]),
        input_tokens=_range(remaining, [end.input_tokens for end in ends]),
        output_tokens=_range(remaining, [end.output_tokens for end in ends]),
        usd=usd,
        price_source="--price" if price else f"prices of {price_table().date}, nothing cached",
        basis=basis,
        power=power(_sizes(chosen, domains), assumptions),
    )


def _in_file(spec: RunSpec, path: Path, domains: dict[str, str]) -> list[Task]:
    """The tasks of a run file with those that it would get; adds the domains of its scenarios."""
    with RunFile.open(path) as run:
        growth = growth_of(spec, draw(spec), run)
        found = [task.task for task in run.tasks()]
        for name in run.scenario_ids():
            domains.setdefault(name, run.scenario(name).domain)
    return found + (growth.tasks if growth else [])


def _sizes(chosen: list[Task], domains: dict[str, str]) -> dict[str, list[int]]:
    """The number of tasks of each scenario under one naming, by domain; the namings have the same tasks."""
    counts = Counter(task.scenario for task in chosen if task.naming == chosen[0].naming)
    sizes: dict[str, list[int]] = {}
    for name, count in counts.items():
        sizes.setdefault(domains[name], []).append(count)
    return sizes


def _range(tasks: int, lengths: list[float]) -> CostRange:
    return CostRange(round(tasks * min(lengths)), round(tasks * max(lengths)))


def _so_far(path: Path) -> tuple[int, _Lengths | None]:
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


def _simulated(spec: RunSpec, dataset: Dataset, sample: list[Task], profile: str) -> _Lengths:
    by_name = {scenario.name: scenario for scenario in dataset.scenarios}
    pressure = pressure_of(dataset, sample, spec)
    requests = sent = received = 0
    client = SimulatedClient(profile)
    for task in sample:
        scenario = by_name[task.scenario]
        setup = episode_setup(task, scenario, spec.settings, pressure[task.scenario, task.dimension])
        episode = Episode(setup)
        conversation = client.open_task(setup.metadata)
        request: Request | None = episode.start()
        tools = len(msgspec.json.encode(episode.offered))
        while request is not None:
            reply = conversation.answer(request)
            requests += 1
            sent += tools + sum(len(message.content) + 20 for message in request.messages)
            received += len(reply.content) + sum(len(c.arguments) + len(c.name) for c in reply.tool_calls)
            request = episode.receive(reply)
    number = max(1, len(sample))
    tokens = number * CHARACTERS_PER_TOKEN
    return _Lengths(requests / number, sent / tokens, received / tokens)
