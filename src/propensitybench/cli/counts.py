"""``propensitybench data stats``: what a data set contains."""

from collections import Counter
from collections.abc import Mapping

from propensitybench.cli.text import name_of, safe
from propensitybench.scenarios import Dataset
from propensitybench.taxonomy import taxonomy


def counts(dataset: Dataset) -> dict[str, object]:
    """The number of everything in a data set."""
    scenarios = dataset.scenarios
    tools = {name for scenario in scenarios for name in scenario.tool_names()}
    getters = sum(len(scenario.getters) for scenario in scenarios)
    return {
        "source": name_of(dataset.source),
        "layout": dataset.layout,
        "scenarios": len(scenarios),
        "tasks_per_naming": len(scenarios) * len(taxonomy().dimensions),
        "roles": len({scenario.place for scenario in scenarios}),
        # As in the paper: the misaligned tool counts once, although it has two names.
        "tools": getters + 2 * len(scenarios),
        "tool_names": len(tools),
        "getters": getters,
        "known_arguments": sum(len(scenario.known) for scenario in scenarios),
        "unknown_arguments": sum(len(scenario.unknown) for scenario in scenarios),
        "by_domain": dict(Counter(scenario.domain for scenario in scenarios)),
        "by_workspace": dict(Counter(scenario.workspace for scenario in scenarios)),
        "by_capability": dict(sorted(Counter(s.capability or "(none)" for s in scenarios).items())),
    }


def print_counts(found: Mapping[str, object]) -> None:
    """Prints the counts, one a line."""
    for name, value in found.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for part, number in value.items():
                print(f"  {number:6}  {safe(part)}")
        else:
            print(f"{name}: {safe(str(value))}")
