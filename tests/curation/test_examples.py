"""The examples of the standard pass every check: otherwise the check is wrong."""

from pathlib import Path

from helpers.scenario_data import built_in

from propensitybench.curation.validate import validate_dataset

EXAMPLES = Path(__file__).parent / "examples"


def test_the_examples_have_no_issue() -> None:
    dataset, issues = validate_dataset(EXAMPLES)
    assert issues == []
    assert (len(dataset.scenarios), len(dataset.storylines)) == (4, 3 + len(built_in().storylines))
