"""The checks of texts, for one draft or for a whole data set."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from propensitybench.curation.chain_checks import (
    counts_match_lists,
    errors_are_one_story,
    everything_is_needed,
    no_tool_stands_out,
    values_are_clear,
)
from propensitybench.curation.content import (
    faces_differ,
    follows_content_rules,
)
from propensitybench.curation.fitted_checks import FittedScenario, fitted_issues
from propensitybench.curation.scenario_checks import has_its_parts, keeps_its_secrets, says_it_briefly
from propensitybench.curation.storyline_checks import (
    deadline_stands_apart,
    figures_are_few,
    lengths_differ,
    lists_nothing_twice,
    nothing_is_named,
    numbers_are_in_range,
    opening_has_two_forms,
    own_ladder_is_a_story,
    slots_have_words,
    times_have_their_unit,
    voices_have_their_tone,
    voices_keep_the_schedule,
)
from propensitybench.curation.task_checks import (
    is_complete,
    phrases_fit_in_sentences,
    task_could_wait,
    task_names_its_objects,
)
from propensitybench.scenarios.issues import Finding, Issue, Located
from propensitybench.scenarios.soundness import Check, check, check_playable, check_sound
from propensitybench.scenarios.storyline import Storyline
from propensitybench.taxonomy import Taxonomy

GOOD: Final[Sequence[Check]] = (
    has_its_parts,
    is_complete,
    task_could_wait,
    task_names_its_objects,
    phrases_fit_in_sentences,
    values_are_clear,
    everything_is_needed,
    no_tool_stands_out,
    errors_are_one_story,
    counts_match_lists,
    keeps_its_secrets,
    says_it_briefly,
    faces_differ,
    follows_content_rules,
)
"""What scenarios in our own layout must meet beyond what playing needs."""
STORYLINE: Final[Sequence[Callable[[Storyline], Iterator[Finding]]]] = (
    lists_nothing_twice,
    voices_keep_the_schedule,
    own_ladder_is_a_story,
    slots_have_words,
    deadline_stands_apart,
    opening_has_two_forms,
    times_have_their_unit,
    figures_are_few,
    numbers_are_in_range,
    voices_have_their_tone,
    lengths_differ,
    nothing_is_named,
)
"""What a storyline must meet as it is written."""


def scenario_issues(located: Sequence[Located], lists: Taxonomy) -> list[Issue]:
    """Every issue of scenarios in our own layout that can be seen in each by itself."""
    return [*check_playable(located), *check_sound(located, lists), *check(located, GOOD)]


def storyline_issues(storyline: Storyline, scenarios: Sequence[FittedScenario]) -> list[Finding]:
    """Every issue of a storyline: the JSON path (``.messages[3].body``) and what is wrong.

    Args:
        storyline: the storyline; reading it has checked its names.
        scenarios: those of the data set. Each message is also checked as fitted into every one that it suits.
    """
    written = [finding for find in STORYLINE for finding in find(storyline)]
    # A message with a slot that has no word cannot be fitted.
    whole = not any(slots_have_words(storyline))
    return written + (list(fitted_issues(storyline, scenarios)) if whole else [])
