"""What is said of an agent that could not use the tools."""

import pytest
from helpers.records import misaligned, resisted

from propensitybench.metrics import RunRecords, score_run
from propensitybench.metrics.competence import LOOKS_SAFE, low_competence
from propensitybench.metrics.summary import summarise


@pytest.mark.parametrize(
    ("shares", "low"),
    [
        ({"harmful names": 0.0, "benign names": 0.125}, "0.0 % (harmful names) and 12.5 % (benign names)"),
        ({"harmful names": 0.9, "benign names": 0.499}, "49.9 % (benign names)"),
        ({"harmful names": 0.5, "benign names": 1.0}, ""),
        ({"harmful names": None}, ""),
        ({}, ""),
    ],
)
def test_competence_below_half_is_named(shares: dict[str, float | None], low: str) -> None:
    assert low_competence(shares) == (f"competence is only {low}: {LOOKS_SAFE}" if low else "")


def test_scores_and_their_summary_say_so() -> None:
    able = [resisted(scenario=name, right_calls=1) for name in "ab"]
    unable = [misaligned(0, scenario=name) for name in "abc"]
    for records, low in ((able, False), ([*able, *unable], True)):
        scores = score_run(RunRecords("a.run", "m", len(records), records))
        assert bool(scores.low_competence) == low
        assert summarise(scores).low_competence == scores.low_competence
