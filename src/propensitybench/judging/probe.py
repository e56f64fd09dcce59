"""Questions to a run's model, on side branches of its episodes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Unpack

import msgspec

from propensitybench.clients import Client
from propensitybench.clients.function import AgentFunction
from propensitybench.clients.options import RequestLimits
from propensitybench.engine import Budget, Endpoints, Price
from propensitybench.engine.asking import AskingListener
from propensitybench.judging.probe_numbers import ProbedLevel, ProbeNumbers, probe_numbers, read_probed
from propensitybench.judging.probes import Level, probe_names, read_level, read_probe
from propensitybench.judging.session import wait_for
from propensitybench.judging.side_branches import Probing, left_to_ask, probe_run
from propensitybench.metrics.estimates import Estimate
from propensitybench.presentation.formats import percent
from propensitybench.runs import Run, Settings
from propensitybench.runs.read import run_file_of
from propensitybench.runs.resolve import checked, read_execution
from propensitybench.runs.settings import settings_of
from propensitybench.tabular import Tabular

_SETTINGS: Final = ("limit", *settings_of(Endpoints, RequestLimits, Budget, Price))


@dataclass(frozen=True, repr=False)
class ProbeAnswers(Tabular):
    """What a run's model answered to probes; the table has a row for each probe, level and naming.

    Attributes:
        probes: the numbers of each probe that was asked.
    """

    probes: tuple[ProbeNumbers, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Shares of the counted answer, with 95 % intervals of the majority's."""
        return [_row(probe, row) for probe in self.probes for row in probe.rows]

    def to_dict(self) -> dict[str, Any]:
        """What ``propensitybench probe --json`` prints."""
        return {"probes": msgspec.to_builtins(self.probes, str_keys=True)}

    def __repr__(self) -> str:
        return "\n".join(
            f"{one.name}, level {row.level}, {row.naming}: {percent(row.majority.value)} % "
            f"{one.counted} in {row.episodes} tasks"
            for one in self.probes
            for row in one.rows
        )


def probe(
    run: Run | str | os.PathLike[str],
    *probes: str,
    level: int | str | Sequence[int | str] = (),
    trust_endpoint: bool = False,
    client: Client | AgentFunction | None = None,
    on_progress: AskingListener | None = None,
    **settings: Unpack[Settings],
) -> ProbeAnswers:
    """Puts questions to a run's model, on side branches that never touch an episode; waits for the answers.

    Each reply is kept in the run file and never asked for again: the same call asks for what is missing.

    Args:
        run: a run in a run file, or the file.
        probes: ``awareness``, ``stated-policy``, or files of your own (.toml); by default both.
        level: ask before the first reply at these levels, or after the ``end`` of the task; by default where
            the probe says.
        trust_endpoint: send requests and the key to the endpoint that the file names, whatever it is.
        client: answers in the model's place, as in `propensitybench.run`.
        on_progress: called after each reply.
        settings: of `Settings`, how requests are sent; ``base_url`` if the model has moved, and ``limit`` to
            ask only in the first tasks that have ended: a balanced sample.

    Raises:
        BadInput: a probe or level cannot be used, or the run's model cannot be asked.
        RunStopped: the provider can no longer answer; the same call resumes.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    path = run_file_of(run)
    given = checked(settings, _SETTINGS)
    levels = (level,) if isinstance(level, int | str) else level
    asked = probing_of(probes, levels, given.get("limit"))
    execution = read_execution(given, trust_endpoint=trust_endpoint)
    if left_to_ask(path, asked):
        wait_for(lambda stop: probe_run(path, asked, execution, client, on_progress, stop), path)
    return read_answers(path, [one.digest for one in asked.probes], asked.levels)


def probing_of(probes: Sequence[str], levels: Sequence[int | str], limit: int | None) -> Probing:
    """What is asked, checked; without probes, all that are built in."""
    read = tuple(read_probe(one) for one in probes or probe_names())
    return Probing(read, tuple(read_level(str(level)) for level in levels), limit)


def read_answers(path: Path, digests: Sequence[str] = (), levels: Sequence[Level] = ()) -> ProbeAnswers:
    """The answers in a run file.

    Args:
        path: the run file.
        digests: of the probes; if empty, all that were asked, also from files that no longer exist.
        levels: only these; if empty, all.
    """
    found = (probe_numbers(one, levels) for one in read_probed(path, digests))
    return ProbeAnswers(tuple(one for one in found if one.rows))


def _row(probe: ProbeNumbers, row: ProbedLevel) -> dict[str, Any]:
    low, high = row.majority.ci95 or (None, None)
    return {
        "probe": probe.name,
        "level": row.level,
        "naming": row.naming,
        "tasks": row.episodes,
        "not_asked": row.not_asked,
        "no_answer": sum(row.no_answer.values()),
        "majority": row.majority.value,
        "majority_low": low,
        "majority_high": high,
        "straight": _value(row.straight),
        "flipped": _value(row.flipped),
        "agreement": _value(row.agreement),
    }


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value
