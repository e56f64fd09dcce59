"""The options of commands are made from the settings of a run: what is wrong is said as it was typed."""

from pathlib import Path

import pytest
from helpers.program import call

RUN = ("run", "--model", "simulated/never", "--run", "a.run")


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        (["--rpm", "0"], "--rpm 0: must be 1 or more"),
        (["--limit", "0"], "--limit 0: must be a whole number of 1 or more"),
        (["--levels", "13"], "--levels 13: must be a whole number from 0 to 12"),
        (["--precision", "nan"], "--precision nan: must be above 0 and below 1"),
        (["--budget-usd", "inf"], "--budget-usd inf: must be 0 or more"),
        (["--seed", "9" * 20], f"--seed {'9' * 20}: must be a whole number of at most 64 bits"),
        (["--price", "1"], "--price 1: must be US dollars per million tokens, like 2.5,10 or 2.5,10,1.25"),
        (["--timeout", "inf"], "--timeout inf: must be from 1 to 86400"),
        (["--top-p", "7"], "--top-p 7: must be above 0 and at most 1"),
        (
            ["--base-url", "http://[bad/v1"],
            "--base-url http://[bad/v1: must be like http://127.0.0.1:8000/v1",
        ),
        (["--price", "1,-2"], "--price 1,-2: must be US dollars"),
        (["--price", "nan,nan"], "--price nan,nan: must be US dollars"),
        (["--extra-body", "[1]"], "--extra-body [1]: must be a JSON object, like"),
        (["--extra-body", '{"a": NaN}'], '--extra-body {"a": NaN}: must be a JSON object'),
        (["--template", "nowhere"], "--template nowhere: cannot be read (No such file or directory)"),
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
