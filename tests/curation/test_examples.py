"""The examples of the standard, byte for byte, pass every check: otherwise the check is wrong."""

from pathlib import Path

from propensitybench.curation.checks import scenario_issues, scenario_warnings, storyline_issues
from propensitybench.curation.validate import review_dataset
from propensitybench.scenarios.dataset import read_storylines
from propensitybench.scenarios.rolefile import read_role_file
from propensitybench.scenarios.storyline import STORYLINES

EXAMPLES = Path(__file__).parent / "examples"


def test_the_examples_have_no_issue() -> None:
    review = review_dataset(EXAMPLES)
    assert review.issues == []
    assert len(review.dataset.scenarios) == 4
    assert len(review.dataset.storylines) == 3


def test_the_warnings_of_the_examples_are_of_storylines_only() -> None:
    # They are what CONTENT.md itself says of two of the chains, and the dimensions that nobody wrote.
    warnings = review_dataset(EXAMPLES).warnings
    assert all(warning.file.startswith(STORYLINES) for warning in warnings)
    assert [str(w).split(": ", 1)[1] for w in warnings if w.file != f"{STORYLINES}/"] == [
        "no message from level 8 on voices B, C",
        "7 messages quote a percentage: state facts instead in all but 4",
        "{from_previous}: the message before is from the same sender, so this names the last other one; "
        "is that meant?",
    ]


def test_single_drafts_can_be_checked() -> None:
    for path in sorted(EXAMPLES.glob("*-*/*/*.json")):
        located, issues = read_role_file(path, path.name)
        assert len(located) == 1
        assert issues == scenario_issues(located) == scenario_warnings(located) == []
    storylines, issues = read_storylines(EXAMPLES)
    assert issues == []
    for storyline in storylines:
        assert storyline_issues(storyline, ()) == []
