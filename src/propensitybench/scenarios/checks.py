"""What must hold within one scenario beyond its schema."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from propensitybench.errors import UnknownName
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.rolefile import Fault, Located
from propensitybench.taxonomy import taxonomy

SNAKE: Final = re.compile(r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")
FEWEST_ARGUMENTS: Final = 5
GETTERS: Final = range(4, 7)

Finding = tuple[str, str]
"""A JSON path below the scenario (``.aligned.errors``) and what is wrong there."""

Check = Callable[[Scenario], Iterator[Finding]]


def check(located: Iterable[Located], checks: Sequence[Check]) -> list[Fault]:
    """The faults that some checks of single scenarios find."""
    return [
        Fault(place.file, place.path + path, message)
        for place in located
        for one in checks
        for path, message in one(place.scenario)
    ]


def names_exist(scenario: Scenario) -> Iterator[Finding]:
    """Domain, workspace, role and capability are in the closed lists, and belong together."""
    lists = taxonomy()
    try:
        domain = lists.domain(scenario.domain)
        workspace = lists.workspace(scenario.workspace)
        lists.role(scenario.role, scenario.workspace)
        if workspace.domain != domain.name:
            yield "", f"workspace {workspace.name} belongs to {workspace.domain}, not {domain.name}"
        if scenario.capability is None:
            yield ".capability", f"attack vector {scenario.technique!r} is none of our capabilities"
        elif lists.capability(scenario.capability).domain != domain.name:
            yield ".capability", f"{scenario.capability!r} is no capability of {domain.name}"
    except UnknownName as error:
        yield "", str(error)


def can_be_solved(scenario: Scenario) -> Iterator[Finding]:
    """The getters give every unknown argument, in some order that starts from the known ones."""
    both = scenario.known.keys() & scenario.unknown.keys()
    if both:
        yield ".unknown", f"also among the known arguments: {', '.join(sorted(both))}"
    for index, getter in enumerate(scenario.getters):
        for name in getter.arguments:
            if name not in scenario.values:
                yield f".getters[{index}].arguments", f"{name!r} is neither known nor unknown"
        for name in getter.outputs:
            if name not in scenario.unknown:
                yield f".getters[{index}].outputs", f"{name!r} is not among the unknown arguments"
    for name in scenario.aligned.arguments:
        if name not in scenario.values:
            yield ".aligned.arguments", f"{name!r} is neither known nor unknown"
    yield from _reachability(scenario)


def _reachability(scenario: Scenario) -> Iterator[Finding]:
    reached = set(scenario.known)
    waiting = dict(enumerate(scenario.getters))
    while ready := [i for i, getter in waiting.items() if reached.issuperset(getter.arguments)]:
        for index in ready:
            reached.update(waiting.pop(index).outputs)
    for index, getter in waiting.items():
        missing = sorted(set(getter.arguments) - reached)
        if set(missing) <= set(scenario.values):
            yield f".getters[{index}]", f"can never be called: {', '.join(missing)} cannot be reached"
    given = {name for getter in scenario.getters for name in getter.outputs}
    for name in sorted(scenario.unknown.keys() - given):
        yield f".unknown.{name}", "is given by no getter"


def has_its_parts(scenario: Scenario) -> Iterator[Finding]:
    """The counts and the naming that scenarios of our own layout keep to."""
    for field in ("known", "unknown"):
        count = len(getattr(scenario, field))
        if count < FEWEST_ARGUMENTS:
            yield f".{field}", f"needs at least {FEWEST_ARGUMENTS} arguments, found {count}"
    if len(scenario.getters) not in GETTERS:
        yield ".getters", f"needs 4 to 6 getters, found {len(scenario.getters)}"
    named = [(".name", scenario.name), (".aligned.name", scenario.aligned.name)]
    named += [(f".getters[{i}].name", getter.name) for i, getter in enumerate(scenario.getters)]
    faces = scenario.misaligned
    named += [(f".misaligned.{n}.name", getattr(faces, n).name) for n in ("harmful", "benign")]
    named += [(".known", name) for name in scenario.known]
    named += [(".unknown", name) for name in scenario.unknown]
    for path, name in named:
        if not SNAKE.match(name):
            yield path, f"{name!r} is not snake_case"
    if len(set(scenario.aligned.errors)) < len(scenario.aligned.errors):
        yield ".aligned.errors", "an error occurs twice"
    if not scenario.unknown.keys() & set(scenario.aligned.arguments):
        yield ".aligned.arguments", "must need at least one unknown argument"
    if (scenario.stakes is None) == (scenario.messages is None):
        yield ".stakes", "give either stakes or messages"


def keeps_its_secrets(scenario: Scenario) -> Iterator[Finding]:
    """No text tells the agent the value of an unknown argument."""
    texts = list(agent_texts(scenario))
    for name, value in scenario.unknown.items():
        shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if len(shown) < 5:  # short numbers and words turn up by chance
            continue
        for path, text in texts:
            if shown in text:
                yield path, f"gives away the value of the unknown argument {name!r}"
    for path, text in texts:
        if path.startswith((".task", ".policy")):
            for tool in scenario.tool_names():
                if tool in text:
                    yield path, f"names the tool {tool!r}"


def agent_texts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Every text of the scenario that an agent may read, with its path."""
    yield ".task", scenario.task
    for field in ("role", "duties", "prohibitions"):
        yield f".policy.{field}", getattr(scenario.policy, field)
    for index, getter in enumerate(scenario.getters):
        yield f".getters[{index}].description", getter.description
    yield ".aligned.description", scenario.aligned.description
    for index, error in enumerate(scenario.aligned.errors):
        yield f".aligned.errors[{index}]", error
    for face in ("harmful", "benign"):
        yield f".misaligned.{face}.description", getattr(scenario.misaligned, face).description
    yield ".misaligned.acknowledgement", scenario.misaligned.acknowledgement
    yield ".misaligned.consequences", scenario.misaligned.consequences
    if scenario.stakes is not None:
        for field, phrase in scenario.stakes.model_dump().items():
            yield f".stakes.{field}", phrase


# What any scenario must meet to be played at all; the published data set is held to these alone.
SOUND: Final[Sequence[Check]] = (names_exist, can_be_solved)
