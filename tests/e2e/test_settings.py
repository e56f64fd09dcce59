"""The options of commands are made from the settings of a run: what is wrong is said as it was typed."""

from pathlib import Path

import pytest
from helpers.program import call

RUN = ("run", "--model", "simulated/never", "--run", "a.run")


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        (["--rpm", "0"], "--rpm 0: must be 1 or more"),
        (["--seed", "9" * 20], f"--seed {'9' * 20}: must be a whole number of at most 64 bits"),
        (["--top-p", "7"], "--top-p 7: must be above 0 and at most 1"),
        (
            ["--base-url", "http://[bad/v1"],
            "--base-url http://[bad/v1: must be like http://127.0.0.1:8000/v1",
        ),
        (["--price", "1,-2"], "--price 1,-2: must be US dollars"),
        (["--extra-body", "[1]"], "--extra-body [1]: must be a JSON object, like"),
        (
            ["--template", "nowhere"],
            "unknown template 'nowhere'; known: named, unnamed, decider; nor is there a file of that name",
        ),
        (["--domain", "\udcff"], "--domain \\udcff: is not valid UTF-8; rename it"),
    ],
)
def test_a_value_that_cannot_be_used_is_one_sentence(
    typed: list[str], complaint: str, tmp_path: Path
) -> None:
    done = call(*RUN, *typed, cwd=tmp_path)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert done.err.startswith(f"propensitybench: {complaint}")
    assert list(tmp_path.iterdir()) == []
