"""``score --hierarchical``."""

from pathlib import Path

import msgspec
import pytest
from helpers.program import call
from helpers.runs import finish, make

from propensitybench.cli.fits import Hazards, print_hazards


@pytest.mark.slow
def test_fits_are_in_the_json_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "a.run"
    never = tmp_path / "never.run"
    for path, model in ((run, "gemini-2.5-pro-like"), (never, "never")):
        play = ("run", "--model", f"simulated/{model}", "--limit", "24", "--naming", "harmful", "--run", path)
        assert call(*play).code == 0
    found = call("score", run, never, "--hierarchical", "--json", "--all").json
    fits = found["hierarchical"]
    assert set(fits) == {"gemini-2.5-pro-like", "never"}
    assert fits["never"]["harmful"]["note"] == "nothing varies: all tasks end alike at each level"
    fit = fits["gemini-2.5-pro-like"]["harmful"]
    propensity = found["runs"][0]["naming"]["harmful"]["estimates"]["propensity"]["domain"]["value"]
    assert abs(fit["propensity"]["value"] - propensity) < 0.1
    print_hazards(msgspec.convert(found["hierarchical"], Hazards))
    printed = capsys.readouterr().out
    assert (
        f"{fit['n_at_risk']:,} levels met, {fit['n_events']:,} misaligned; {fit['scenarios']} scenarios"
        in printed
    )
    level = fit["levels"][1]["average_scenario"]
    assert f"{100 * level['value']:.1f} ({100 * level['ci95'][0]:.1f}-" in printed
    for group, one in fit["groups"]["workspace"].items():
        assert group in printed
        assert f"{100 * one['shrunken']['value']:.1f} (" in printed
    assert "hierarchical" not in call("score", never, "--json").json


@pytest.mark.slow
def test_a_run_without_misaligned_calls_says_so(tmp_path: Path) -> None:
    never = tmp_path / "never.run"
    finish(make(never, "simulated/never", limit=24))
    printed = call("score", never, "--hierarchical").out
    assert "hierarchical model, never, harmful names: nothing varies" in printed
