"""The items of a reading panel: drawn scenarios, shown as an agent sees them."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from propensitybench.digests import seed_from, shuffled
from propensitybench.episode.prompt import built_in_template, forwarded, system_message
from propensitybench.episode.tools import Toolbox
from propensitybench.errors import BadData, BadInput
from propensitybench.generation.workfolder import PLAN, WorkFolder
from propensitybench.pressure import fit, suitable
from propensitybench.scenarios import read_dataset
from propensitybench.scenarios.model import PressureMessage, Scenario
from propensitybench.scenarios.storyline import Storyline
from propensitybench.taxonomy import PAPER_LADDER, LadderName, taxonomy

DRAWN: Final = "drawn"
"""The source of the items to be judged; that of items of known quality is the name of their folder."""


class Source(msgspec.Struct, frozen=True):
    """Scenarios to draw from.

    Attributes:
        name: `DRAWN`, or the folder's name.
        layout: of a data set; ``working`` for a working folder.
    """

    name: str
    layout: str
    scenarios: tuple[Scenario, ...]
    storylines: tuple[Storyline, ...] = ()


class PanelItem(msgspec.Struct, frozen=True):
    """One text of a panel.

    Attributes:
        name: what readers know it by, e.g. ``item01``.
        source: name of the source.
        scenario: the scenario's name.
        place: its domain, workspace and role.
        dimension: of the chain; empty without messages.
        storyline: of the chain; empty without messages, and for a scenario's own.
        text: what an agent sees.
    """

    name: str
    source: str
    scenario: str
    place: str
    dimension: str
    storyline: str
    text: str

    @property
    def has_messages(self) -> bool:
        """Whether there is pressure to judge."""
        return bool(self.dimension)


class Draw(msgspec.Struct, frozen=True):
    """How many items to draw.

    Attributes:
        drawn: of the set that is judged.
        known: of all sources of known quality together.
        seed: random seed.
        ladder: of the messages.
    """

    drawn: int
    known: int
    seed: int
    ladder: LadderName = PAPER_LADDER


def is_working_folder(folder: Path) -> bool:
    """Whether a folder is one of ``propensitybench generate``, rather than a data set."""
    return (folder / PLAN).is_file()


def read_source(folder: Path, name: str) -> Source:
    """The scenarios and storylines of a working folder or of a data set in either layout.

    Raises:
        BadData: a file cannot be read, or holds no valid scenario or storyline.
        BadInput: there is nothing to read.
    """
    if is_working_folder(folder):
        return _working_folder(WorkFolder(folder), name)
    found = read_dataset(folder)
    return Source(name, found.layout, found.scenarios, found.storylines)


def _working_folder(work: WorkFolder, name: str) -> Source:
    located, storylines, issues = work.read()
    if issues:
        raise BadData(f"{work.root / issues[0].file} {issues[0].path}", issues[0].message)
    if not located:
        raise BadInput(f"{work.root}: contains no scenario; write some first")
    names = Counter(place.scenario.name for place in located)
    if repeated := [name for name, uses in names.items() if uses > 1]:
        raise BadInput(f"{work.root}: two scenarios have the name {repeated[0]!r}; rename one of them")
    return Source(name, "working", tuple(place.scenario for place in located), tuple(storylines))


def draw_items(judged: Source, known: Sequence[Source], draw: Draw) -> list[PanelItem]:
    """The items of a panel, in random order and named in that order.

    Scenarios are drawn evenly over the workspaces of their source, dimensions and storylines evenly over the
    drawn scenarios. A scenario that no storyline suits, and every one in the published layout among the
    known, has no messages.

    Raises:
        BadInput: a source has no scenario, or a storyline cannot be fitted.
    """
    items = [
        item
        for source, number in [(judged, draw.drawn), *_shares(known, draw.known)]
        for item in _of_source(source, number, draw, own=source is judged)
    ]
    width = max(2, len(str(len(items))))
    order = shuffled(range(len(items)), draw.seed, "order of the items")
    return [
        msgspec.structs.replace(items[index], name=f"item{place:0{width}}")
        for place, index in enumerate(order, start=1)
    ]


def _shares(known: Sequence[Source], number: int) -> list[tuple[Source, int]]:
    each, more = divmod(number, len(known)) if known else (0, 0)
    return [(source, each + (index < more)) for index, source in enumerate(known)]


def _of_source(source: Source, number: int, draw: Draw, *, own: bool) -> list[PanelItem]:
    chains = _Chains(source.storylines, draw)
    items = []
    for scenario in drawn_scenarios(source.scenarios, number, draw.seed):
        silent = not own and source.layout == "published"
        dimension, storyline, messages = ("", "", ()) if silent else chains.next_for(scenario)
        text = as_agent_sees(scenario, messages)
        items.append(PanelItem("", source.name, scenario.name, scenario.place, dimension, storyline, text))
    return items


def drawn_scenarios(scenarios: Sequence[Scenario], number: int, seed: int) -> list[Scenario]:
    """That many scenarios, or all if there are fewer, drawn at random and evenly over the workspaces."""
    if not scenarios:
        raise BadInput("the panel: a source has no scenario to draw")
    by_workspace: dict[str, list[Scenario]] = {}
    for scenario in sorted(scenarios, key=lambda one: one.name):
        by_workspace.setdefault(scenario.workspace, []).append(scenario)
    ordered = sorted(
        (place, seed_from(seed, workspace, "workspace"), scenario.name)
        for workspace, group in by_workspace.items()
        for place, index in enumerate(shuffled(range(len(group)), seed, workspace))
        for scenario in [group[index]]
    )
    by_name = {scenario.name: scenario for scenario in scenarios}
    return [by_name[name] for _, _, name in ordered[:number]]


class _Chains:
    """Gives each scenario the chain that was used least so far."""

    def __init__(self, storylines: Sequence[Storyline], draw: "Draw") -> None:
        self._storylines = sorted(storylines, key=lambda one: one.file)
        self._seed = draw.seed
        self._ladder = draw.ladder
        self._uses: Counter[str] = Counter()

    def next_for(self, scenario: Scenario) -> tuple[str, str, tuple[PressureMessage, ...]]:
        """Dimension, storyline and messages; empty if no storyline suits."""
        offered = {name: self._suiting(scenario, name) for name in taxonomy().dimensions}
        own: Mapping[str, tuple[PressureMessage, ...]] = scenario.messages or {}
        dimensions = [name for name in offered if name in own or offered[name]]
        if not dimensions:
            return "", "", ()
        dimension = self._least_used(dimensions, scenario)
        if dimension in own:
            return dimension, "", own[dimension]
        by_file = {storyline.file: storyline for storyline in offered[dimension]}
        storyline = by_file[self._least_used(list(by_file), scenario)]
        return dimension, storyline.name, fit(storyline, scenario, self._seed)

    def _suiting(self, scenario: Scenario, dimension: str) -> list[Storyline]:
        return suitable(self._storylines, scenario, dimension, self._ladder)

    def _least_used(self, names: Sequence[str], scenario: Scenario) -> str:
        chosen = min(names, key=lambda name: (self._uses[name], seed_from(self._seed, scenario.name, name)))
        self._uses[chosen] += 1
        return chosen


def as_agent_sees(scenario: Scenario, messages: Sequence[PressureMessage]) -> str:
    """System message, tools, task and later messages, with the benign name of the misaligned tool."""
    tools = [msgspec.structs.asdict(tool) for tool in Toolbox(scenario, "benign").specs]
    parts = [
        ("SYSTEM", system_message(built_in_template(), scenario, "benign")),
        ("TOOLS", json.dumps(tools, indent=1, ensure_ascii=False)),
        ("USER", scenario.task),
    ]
    parts += [(f"LATER MESSAGE {number}", forwarded(one)) for number, one in enumerate(messages, start=1)]
    return "\n\n".join(f"{title}\n\n{text.strip()}" for title, text in parts) + "\n"
