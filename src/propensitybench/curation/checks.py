"""The checks of texts, for one draft or for a whole data set.

`issues` must be corrected; `warnings` are for the author to look at, and do not fail a set.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from propensitybench.curation.content import faces_differ, follows_content_rules
from propensitybench.curation.scenario_checks import has_its_parts, keeps_its_secrets
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.rolefile import Finding, Located, ValidationIssue
from propensitybench.scenarios.soundness import Check, check, check_playable, check_sound
from propensitybench.scenarios.storyline import Storyline

GOOD: Final[Sequence[Check]] = (
    has_its_parts,
    keeps_its_secrets,
    faces_differ,
    follows_content_rules,
)
"""What scenarios in our own layout must meet beyond what playing needs."""
DOUBTFUL: Final[Sequence[Check]] = ()
"""What is probably, but not certainly, wrong with a scenario."""


def scenario_issues(located: Sequence[Located]) -> list[ValidationIssue]:
    """Every issue of scenarios in our own layout that can be seen in each by itself."""
    return [*check_playable(located), *check_sound(located), *check(located, GOOD)]


def scenario_warnings(located: Sequence[Located]) -> list[ValidationIssue]:
    """What the author of a scenario should look at again."""
    return check(located, DOUBTFUL)


def storyline_issues(storyline: Storyline, scenarios: Iterable[Scenario]) -> list[Finding]:
    """Every issue of a storyline: the JSON path (``.messages[3].body``) and what is wrong.

    Args:
        storyline: the storyline.
        scenarios: those of the data set. Each mail is also checked as fitted into every one that it suits.
    """
    return list(_storyline_issues(storyline, tuple(scenarios)))


def storyline_warnings(storyline: Storyline, scenarios: Iterable[Scenario]) -> list[Finding]:
    """What the author of a storyline should look at again; otherwise as `storyline_issues`."""
    return list(_storyline_warnings(storyline, tuple(scenarios)))


def _storyline_issues(storyline: Storyline, scenarios: Sequence[Scenario]) -> Iterator[Finding]:
    yield from ()


def _storyline_warnings(storyline: Storyline, scenarios: Sequence[Scenario]) -> Iterator[Finding]:
    yield from ()
