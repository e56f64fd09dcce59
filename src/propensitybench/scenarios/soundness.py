"""What a scenario must meet beyond its schema.

A scenario that violates `PLAYABLE` cannot be played. A published one that violates `SOUND` is played, with a
warning.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from propensitybench.errors import UnknownName
from propensitybench.scenarios.issues import Finding, Issue, Located
from propensitybench.scenarios.model import MESSAGES_PER_DIMENSION, RANKS, Scenario
from propensitybench.scenarios.storyline import NEUTRAL, Storyline
from propensitybench.taxonomy import LISTS_FILE, Taxonomy, taxonomy

Check = Callable[[Scenario], Iterator[Finding]]


def check(located: Iterable[Located], checks: Sequence[Check]) -> list[Issue]:
    """The issues that the checks find in the scenarios."""
    return [
        place.issue(path, message)
        for place in located
        for find in checks
        for path, message in find(place.scenario)
    ]


def check_sound(located: Sequence[Located], lists: Taxonomy) -> list[Issue]:
    """Issues of scenarios that can be played as they are: unknown names, and `SOUND`."""
    places = {(place.file, place.header): place for place in located}
    return [
        *(issue for place in places.values() for issue in place_issues(place, lists)),
        *check(located, (partial(capability_exists, lists=lists), partial(messages_are_whole, lists=lists))),
        *check(located, SOUND),
    ]


def check_playable(located: Sequence[Located]) -> list[Issue]:
    """Issues that make it impossible to play a scenario, in either layout."""
    return check(located, PLAYABLE)


def place_issues(place: Located, lists: Taxonomy) -> Iterator[Issue]:
    """Domain, workspace and role exist and belong together."""
    scenario = place.scenario
    at_domain, at_workspace, at_role = place.header
    home = lists.workspaces.get(scenario.workspace)
    domain_known = scenario.domain in lists.domains
    if not domain_known:
        yield Issue(place.file, at_domain, _unknown("domain", scenario.domain, lists.domains))
    if home is None:
        yield Issue(place.file, at_workspace, _unknown("workspace", scenario.workspace, lists.workspaces))
    elif domain_known and home.domain != scenario.domain:
        message = f"workspace {home.name} belongs to {home.domain}, not {scenario.domain}"
        yield Issue(place.file, at_workspace, message)
    roles = home.roles if home else [role for one in lists.workspaces.values() for role in one.roles]
    if scenario.role not in roles:
        yield Issue(place.file, at_role, _unknown("role", scenario.role, dict.fromkeys(roles)))


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    text = str(UnknownName(kind, name, known))
    return text if "did you mean" in text else f"{text}; use one of these, or declare it in {LISTS_FILE}"


def capability_exists(scenario: Scenario, lists: Taxonomy) -> Iterator[Finding]:
    """The capability exists and belongs to the domain."""
    name = scenario.capability
    if name is None and scenario.technique is not None:
        yield ".capability", f"attack vector {scenario.technique!r} is not a known capability"
    elif name is None:
        yield ".capability", "must be one of the domain's capabilities"
    elif name not in lists.capabilities:
        yield ".capability", _unknown("capability", name, lists.capabilities)
    elif scenario.domain in lists.domains and lists.capabilities[name].domain != scenario.domain:
        yield ".capability", f"{name!r} is not a capability of {scenario.domain}"


def messages_are_whole(scenario: Scenario, lists: Taxonomy) -> Iterator[Finding]:
    """A scenario with its own messages has all of them, for every built-in dimension."""
    if scenario.messages is None:
        return
    for name in taxonomy().dimensions:
        if name not in scenario.messages:
            yield f".messages.{name}", f"is missing: every dimension needs {MESSAGES_PER_DIMENSION} messages"
    for name, messages in scenario.messages.items():
        if name not in lists.dimensions:
            yield f".messages.{name}", _unknown("dimension", name, lists.dimensions)
        elif len(messages) != MESSAGES_PER_DIMENSION:
            yield (
                f".messages.{name}",
                f"needs exactly {MESSAGES_PER_DIMENSION} messages, found {len(messages)}",
            )


def storyline_names_exist(storyline: Storyline, lists: Taxonomy) -> Iterator[Finding]:
    """Dimension and domains exist."""
    if storyline.dimension != NEUTRAL and storyline.dimension not in lists.dimensions:
        yield ".dimension", _unknown("dimension", storyline.dimension, (*lists.dimensions, NEUTRAL))
    for index, domain in enumerate(storyline.domains):
        if domain not in lists.domains:
            yield f".domains[{index}]", _unknown("domain", domain, lists.domains)


def arguments_have_values(scenario: Scenario) -> Iterator[Finding]:
    """Every argument and every output of a tool has a value."""
    for index, getter in enumerate(scenario.getters):
        for field, names in (("arguments", getter.arguments), ("outputs", getter.outputs)):
            for name in names:
                if name not in scenario.values:
                    yield f".getters[{index}].{field}", f"{name!r} is neither known nor unknown"
    for tool, names in (
        ("aligned", scenario.aligned.arguments),
        ("misaligned", scenario.misaligned.arguments),
    ):
        for name in names:
            if name not in scenario.values:
                yield f".{tool}.arguments", f"{name!r} is neither known nor unknown"


def named_twice(tool: str) -> str:
    """What is wrong with the second tool of that name."""
    return f"two tools of this scenario are called {tool!r}"


def outcome_tools_differ(scenario: Scenario) -> Iterator[Finding]:
    """The aligned and the misaligned tool share no name with another tool: a name decides the outcome."""
    getters = {getter.name for getter in scenario.getters}
    aligned, faces = scenario.aligned.name, scenario.misaligned
    if aligned in getters:
        yield ".aligned.name", named_twice(aligned)
    for face, name in (("harmful", faces.harmful.name), ("benign", faces.benign.name)):
        if name in getters or name == aligned:
            yield f".misaligned.{face}.name", named_twice(name)


def getters_differ(scenario: Scenario) -> Iterator[Finding]:
    """No two getters have the same name."""
    seen: set[str] = set()
    for index, getter in enumerate(scenario.getters):
        if getter.name in seen:
            yield f".getters[{index}].name", named_twice(getter.name)
        seen.add(getter.name)


def can_be_solved(scenario: Scenario) -> Iterator[Finding]:
    """The getters return every unknown argument, called in some order that starts from the known ones."""
    both = scenario.known.keys() & scenario.unknown.keys()
    if both:
        yield ".unknown", f"also among the known arguments: {', '.join(sorted(both))}"
    for index, getter in enumerate(scenario.getters):
        for name in getter.outputs:
            if name in scenario.known.keys() - scenario.unknown.keys():
                yield f".getters[{index}].outputs", f"{name!r} is not among the unknown arguments"
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
            yield f".getters[{index}]", f"can never be called: {', '.join(missing)} cannot be obtained"
    given = {name for getter in scenario.getters for name in getter.outputs}
    for name in sorted(scenario.unknown.keys() - given):
        yield f".unknown.{name}", "no getter returns it"


def organisation_has_senders(scenario: Scenario) -> Iterator[Finding]:
    """An organisation has one sender of each rank, in order."""
    if scenario.organisation and [s.rank for s in scenario.organisation.senders] != list(RANKS):
        yield (
            ".organisation.senders",
            f"must have the ranks {RANKS.start} to {RANKS.stop - 1}, once each, in order",
        )


def has_pressure(scenario: Scenario) -> Iterator[Finding]:
    """A scenario has words for storylines, or messages of its own."""
    if scenario.messages is None and (scenario.situation is None or scenario.organisation is None):
        yield ".situation", "is missing: a scenario needs organisation and situation, or its own messages"


PLAYABLE: Final[Sequence[Check]] = (
    arguments_have_values,
    outcome_tools_differ,
    organisation_has_senders,
    has_pressure,
)
SOUND: Final[Sequence[Check]] = (getters_differ, can_be_solved)
