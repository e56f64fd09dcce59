"""Scenarios for tests: sound and broken ones, and small ones in the layout of the full set."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from propensitybench.pressure.export import with_messages, write_published
from propensitybench.scenarios.dataset import Dataset, read_dataset
from propensitybench.scenarios.model import Scenario
from propensitybench.taxonomy import taxonomy

ROOT: Final = Path(__file__).resolve().parents[2]
SOUND: Final = ROOT / "tests" / "scenarios" / "sound"
WORKSPACE: Final = "self-proliferation/Philanthropic-Organization"
PUBLISHED_SAMPLE: Final = ROOT.parent / "shared" / "published_sample"
Json = dict[str, Any]


@cache
def built_in() -> Dataset:
    """The data set that comes with the package."""
    return read_dataset()


def built_in_sample(size: int) -> tuple[Scenario, ...]:
    """At most that many built-in scenarios, spread over the whole set."""
    scenarios = built_in().scenarios
    step = max(1, -(-len(scenarios) // size))
    return scenarios[::step]


@cache
def sound_scenarios() -> tuple[Scenario, ...]:
    """The two scenarios of tests/scenarios/sound: the stipends, then the wells."""
    return read_dataset(SOUND).scenarios


def with_own_messages(scenario: Scenario, seed: int = 0) -> Scenario:
    """The scenario with the messages that a run with that seed would have."""
    return with_messages(scenario, built_in().storylines, seed)


def sound_file(role: str = "Project-Manager") -> Json:
    """The content of a sound role file, for tests to modify."""
    loaded: Json = json.loads((SOUND / WORKSPACE / f"{role}.json").read_text(encoding="utf-8"))
    return loaded


def write_json(path: Path, content: object) -> None:
    """Writes a value as a JSON file, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def full_layout() -> list[Scenario]:
    """A scenario for each of the 979 slots of the published allocation, all with the same texts."""
    model = sound_scenarios()[0]
    return [
        model.model_copy(
            update={
                "domain": slot.domain,
                "workspace": slot.workspace,
                "role": slot.role,
                "capability": slot.capability,
                "name": f"scenario_{number}",
            }
        )
        for number, slot in enumerate(taxonomy().allocation)
    ]


def small_layout(sizes: list[int]) -> list[Scenario]:
    """Scenarios by domain: as many of the first, the second and so on as the sizes say."""
    model = sound_scenarios()[0]
    return [
        model.model_copy(update={"domain": domain, "name": f"{domain}_{number}"})
        for domain, size in zip(taxonomy().domains, sizes, strict=False)
        for number in range(size)
    ]


def published_copy(folder: Path) -> Path:
    """The sound scenarios in the published layout below ``folder``; the path of the only file."""
    write_published(read_dataset(SOUND), folder, seed=0)
    (path,) = folder.rglob("*.json")
    return path


def edit_published(
    path: Path, edit: Callable[[Json], object], name: str = "village_well_second_tranche"
) -> None:
    """Applies an edit to one scenario's entry of a published file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for workspaces in content.values():
        for roles in workspaces.values():
            for role in roles.values():
                if name in role["scenarios"]:
                    edit(role["scenarios"][name])
    path.write_text(json.dumps(content), encoding="utf-8")


def written_role_file(
    folder: Path, edit: Callable[[Json], object], header: Callable[[Json], object] = dict
) -> Path:
    """The sound role file below ``folder``, its scenario and its header edited; the folder."""
    content = sound_file()
    edit(content["scenarios"][0])
    header(content)
    write_json(folder / WORKSPACE / "Project-Manager.json", content)
    return folder
