"""What must hold within one scenario beyond its schema."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from propensitybench.errors import UnknownName
from propensitybench.scenarios.model import MESSAGES_PER_DIMENSION, Scenario
from propensitybench.scenarios.rolefile import Finding, Located, ValidationIssue
from propensitybench.taxonomy import taxonomy

SNAKE: Final = re.compile(r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")
FEWEST_ARGUMENTS: Final = 5
GETTERS: Final = range(4, 7)

Check = Callable[[Scenario], Iterator[Finding]]


def check(located: Iterable[Located], checks: Sequence[Check]) -> list[ValidationIssue]:
    """The issues that some checks of single scenarios find."""
    return [
        place.issue(path, message)
        for place in located
        for one in checks
        for path, message in one(place.scenario)
    ]


def check_sound(located: Sequence[Located]) -> list[ValidationIssue]:
    """What keeps scenarios from being played at all: their places, once each, and `SOUND`."""
    places = {(place.file, place.header): place for place in located}
    return [issue for place in places.values() for issue in place_issues(place)] + check(located, SOUND)


def place_issues(place: Located) -> Iterator[ValidationIssue]:
    """Domain, workspace and role are in the closed lists, and belong together."""
    lists, scenario = taxonomy(), place.scenario
    at_domain, at_workspace, at_role = place.header
    home = lists.workspaces.get(scenario.workspace)
    domain_known = scenario.domain in lists.domains
    if not domain_known:
        yield ValidationIssue(
            place.file, at_domain, str(UnknownName("domain", scenario.domain, lists.domains))
        )
    if home is None:
        message = str(UnknownName("workspace", scenario.workspace, lists.workspaces))
        yield ValidationIssue(place.file, at_workspace, message)
    elif domain_known and home.domain != scenario.domain:
        message = f"workspace {home.name} belongs to {home.domain}, not {scenario.domain}"
        yield ValidationIssue(place.file, at_workspace, message)
    try:
        lists.role(scenario.role, home.name if home else None)
    except UnknownName as error:
        yield ValidationIssue(place.file, at_role, str(error))


def capability_exists(scenario: Scenario) -> Iterator[Finding]:
    """The capability is in the closed list, and one of the domain's."""
    lists = taxonomy()
    name = scenario.capability
    if name is None and scenario.technique is not None:
        yield ".capability", f"attack vector {scenario.technique!r} is none of our capabilities"
    elif name is None:
        yield ".capability", "must be one of the domain's capabilities"
    elif name not in lists.capabilities:
        yield ".capability", str(UnknownName("capability", name, lists.capabilities))
    elif scenario.domain in lists.domains and lists.capabilities[name].domain != scenario.domain:
        yield ".capability", f"{name!r} is no capability of {scenario.domain}"


def messages_are_whole(scenario: Scenario) -> Iterator[Finding]:
    """A scenario that brings its own messages has all of them, for every dimension."""
    if scenario.messages is None:
        return
    dimensions = taxonomy().dimensions
    for name in dimensions:
        if name not in scenario.messages:
            yield f".messages.{name}", f"is missing: each dimension has {MESSAGES_PER_DIMENSION} messages"
    for name, messages in scenario.messages.items():
        if name not in dimensions:
            yield f".messages.{name}", str(UnknownName("dimension", name, dimensions))
        elif len(messages) != MESSAGES_PER_DIMENSION:
            yield (
                f".messages.{name}",
                f"needs exactly {MESSAGES_PER_DIMENSION} messages, found {len(messages)}",
            )


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
    named = [(".name", scenario.name), *named_tools(scenario)]
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
        if path.startswith((".task", ".policy", ".messages")):
            for tool in scenario.tool_names():
                if tool in text:
                    yield path, f"names the tool {tool!r}"


def named_tools(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """The name of each tool, both of the misaligned one's, with its path."""
    for index, getter in enumerate(scenario.getters):
        yield f".getters[{index}].name", getter.name
    yield ".aligned.name", scenario.aligned.name
    yield ".misaligned.harmful.name", scenario.misaligned.harmful.name
    yield ".misaligned.benign.name", scenario.misaligned.benign.name


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
    for dimension, messages in (scenario.messages or {}).items():
        for index, message in enumerate(messages):
            for field, text in message._asdict().items():
                yield f".messages.{dimension}[{index}].{field}", text


# What any scenario must meet to be played at all; the published data set is held to these alone.
SOUND: Final[Sequence[Check]] = (capability_exists, can_be_solved, messages_are_whole)
