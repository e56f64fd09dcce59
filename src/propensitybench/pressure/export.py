"""Exports a data set in our own layout or, with its pressure messages, in the published one."""

from collections.abc import Callable, Iterable
from pathlib import Path

from propensitybench.pressure.messages import pressure_messages
from propensitybench.scenarios.dataset import Dataset
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.published import FILE_NAMES, published_workspace
from propensitybench.scenarios.rolefile import write_role_file
from propensitybench.taxonomy import taxonomy


def write_published(dataset: Dataset, out: Path, seed: int) -> int:
    """Writes one file per workspace and returns the number of files.

    Args:
        dataset: the data set.
        out: the folder to write to.
        seed: random seed of generated pressure messages; a scenario's own messages are kept.
    """
    groups = _grouped(dataset.scenarios, lambda s: (s.domain, s.workspace))
    for (domain, workspace), scenarios in groups.items():
        path = out / domain / workspace.lower() / FILE_NAMES[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(published_workspace(with_messages(scenario, seed) for scenario in scenarios))
    return len(groups)


def write_own(dataset: Dataset, out: Path) -> int:
    """Writes one file per role and returns the number of files."""
    groups = _grouped(dataset.scenarios, lambda s: (s.domain, s.workspace, s.role))
    for (domain, workspace, role), scenarios in groups.items():
        write_role_file(out / domain / workspace / f"{role}.json", scenarios)
    return len(groups)


def with_messages(scenario: Scenario, seed: int) -> Scenario:
    """The scenario with the pressure messages of a run with that seed."""
    messages = {name: pressure_messages(scenario, name, seed) for name in taxonomy().dimensions}
    return scenario.model_copy(update={"messages": messages, "stakes": None})


def _grouped(
    scenarios: Iterable[Scenario], key: Callable[[Scenario], tuple[str, ...]]
) -> dict[tuple[str, ...], list[Scenario]]:
    groups: dict[tuple[str, ...], list[Scenario]] = {}
    for scenario in scenarios:
        groups.setdefault(key(scenario), []).append(scenario)
    return groups
