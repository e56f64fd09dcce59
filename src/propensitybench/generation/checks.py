"""What a text must meet. The one place that knows where the checks are."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from propensitybench.chat import Reply, Request, ToolCall
from propensitybench.curation.checks import scenario_issues, storyline_issues
from propensitybench.curation.cross_checks import (
    acts_differ,
    alike_stories,
    alike_tools,
    repeated_names,
    shared_sentences,
)
from propensitybench.curation.fitted_checks import FittedScenario
from propensitybench.episode import Episode, EpisodeSettings, Event, episode_setup
from propensitybench.generation.blueprint import ActRow
from propensitybench.pressure import Chain
from propensitybench.scenarios.issues import Finding, Issue, Located
from propensitybench.scenarios.model import MESSAGES_PER_DIMENSION, PressureMessage, Scenario
from propensitybench.scenarios.selection import Task
from propensitybench.scenarios.soundness import storyline_names_exist
from propensitybench.scenarios.storyline import Storyline
from propensitybench.taxonomy import taxonomy


def issues_of_scenario(place: Located, act: ActRow | None) -> list[Issue]:
    """Everything that must be corrected in a scenario by itself.

    Args:
        place: the scenario.
        act: its row of the act grid; None if it has none.
    """
    issues = scenario_issues([place], taxonomy())
    if act is None:
        issues.append(place.issue(".capability", "no row of the act grid is left for this scenario"))
    else:
        issues += [place.issue(path, what) for path, what in follows_plan(place.scenario, act)]
    if not issues:  # a broken scenario cannot be played
        issues += [place.issue(path, what) for path, what in plays_to_the_error(place.scenario)]
    return list(dict.fromkeys(issues))


def issues_of_storyline(
    storyline: Storyline, domain: str, scenarios: Sequence[FittedScenario]
) -> list[Issue]:
    """Everything that must be corrected in a storyline, also as fitted into these scenarios."""
    findings = [*_belongs(storyline, domain), *storyline_issues(storyline, scenarios)]
    return list(dict.fromkeys(Issue(storyline.file, "$" + path, what) for path, what in findings))


def issues_of_set(located: Sequence[Located], others: Sequence[Located] = ()) -> list[Issue]:
    """What scenarios may not have in common: stories, tool descriptions, sentences, names, acts.

    Args:
        located: the scenarios of the set.
        others: of other sets, whose texts must not come again; names and acts may.
    """
    issues = [issue for find in (repeated_names, acts_differ) for issue in find(located)]
    both = [*others, *located]
    return issues + [issue for find in (alike_stories, alike_tools, shared_sentences) for issue in find(both)]


def follows_plan(scenario: Scenario, act: ActRow) -> Iterator[Finding]:
    """A scenario has the capability, severity, act and number of getters of its row."""
    planned = {
        ".capability": (scenario.capability, act.capability),
        ".severity": (scenario.severity, act.severity),
        ".act.mechanism": (scenario.act and scenario.act.mechanism, act.mechanism),
        ".act.target": (scenario.act and scenario.act.target, act.target),
        ".act.gain": (scenario.act and scenario.act.gain, act.gain),
    }
    for path, (found, wanted) in planned.items():
        if found != wanted:
            yield path, f"must be {wanted!r} as in the act grid, found {found!r}"
    if len(scenario.getters) != act.getters:
        yield ".getters", f"the act grid asks for {act.getters} getters, found {len(scenario.getters)}"


def _belongs(storyline: Storyline, domain: str) -> Iterator[Finding]:
    yield from storyline_names_exist(storyline, taxonomy())
    if domain not in storyline.domains:
        yield ".domains", f"must contain {domain!r}"


def plays_to_the_error(scenario: Scenario) -> Iterator[Finding]:
    """A real episode, played with nothing but what the agent is given, comes to the backend error."""
    task = Task(scenario.name, next(iter(taxonomy().dimensions)), "benign", 1)
    quiet = (PressureMessage("", "", ""),) * MESSAGES_PER_DIMENSION
    episode = Episode(episode_setup(task, scenario, EpisodeSettings(), Chain("", quiet)))
    request: Request | None = episode.start()
    has: dict[str, Any] = dict(scenario.known)
    waiting = list(enumerate(scenario.getters))
    while waiting:
        ready = next((at for at in waiting if all(name in has for name in at[1].arguments)), None)
        if ready is None:
            index, getter = waiting[0]
            yield f".getters[{index}]", f"{getter.name!r} cannot be called with what the agent has been given"
            return
        waiting.remove(ready)
        index, getter = ready
        request, text = _call(episode, getter.name, {name: has[name] for name in getter.arguments})
        if episode.turns[-1].event is not Event.GETTER_CALLED or request is None:
            yield f".getters[{index}]", f"called with its arguments, it answers: {text[:200]!r}"
            return
        has |= {name: entry["value"] for name, entry in msgspec.json.decode(text).items()}
    arguments = {name: has[name] for name in scenario.aligned.arguments}
    _, text = _call(episode, scenario.aligned.name, arguments)
    if episode.turns[-1].event is not Event.ALIGNED_CALLED or text != scenario.aligned.errors[0]:
        yield ".aligned", f"called with its arguments, it answers: {text[:200]!r}"


def _call(episode: Episode, tool: str, arguments: dict[str, Any]) -> tuple[Request | None, str]:
    call = ToolCall("call", tool, msgspec.json.encode(arguments).decode())
    request = episode.receive(Reply(tool_calls=(call,)))
    results = [message.content for message in episode.messages if message.role == "tool"]
    return request, results[-1] if results else ""
