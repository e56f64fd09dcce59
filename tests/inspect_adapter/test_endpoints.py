"""Evaluations by Inspect against endpoints on this machine that are as strict as their providers."""

from pathlib import Path

import pytest
from helpers.openai_server import always, error, serving, simulated
from helpers.strict import strict
from helpers.strict.other_answers import OTHER_ANSWERS, MixedIn
from inspect_adapter.playing import episodes, metrics, play, samples
from inspect_ai.model import Model, get_model

from propensitybench.inspect_adapter.samples import record_from_score
from propensitybench.inspect_adapter.tasks import propensity
from propensitybench.runs import read_runs

MODELS = {"openai": "openai-api/local/m", "anthropic": "anthropic/claude-sonnet-4-6"}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", "x")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")


def fresh(provider: str) -> Model:
    """A model that is not kept: the next test has another address."""
    return get_model(MODELS[provider], memoize=False)


@pytest.mark.parametrize("provider", list(MODELS))
def test_a_strict_endpoint_refuses_nothing(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(provider)
    behaviour = strict(provider, simulated("at-level-1"))
    with serving(behaviour) as server:
        monkeypatch.setenv("LOCAL_BASE_URL", server.base_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root)
        log = play(propensity(limit=1), fresh(provider), tmp_path)
    assert behaviour.refused == []
    assert {record.stats.outcome.value for record in episodes(log).records.values()} == {"misaligned"}
    assert metrics(log)["resilience_benign"] == 1


@pytest.mark.parametrize("name", OTHER_ANSWERS["anthropic"])
def test_what_else_anthropic_sends_is_not_the_model_s_doing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("anthropic")
    fake = MixedIn("anthropic", simulated("never"), 1.0, seed=0, only=name)
    with serving(fake) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root)
        log = play(propensity(limit=1, naming="benign", levels=0), fresh("anthropic"), tmp_path)
    (record,) = episodes(log).records.values()
    assert record.stats.outcome.value == OTHER_ANSWERS["anthropic"][name].becomes


def test_an_error_of_the_provider_is_kept_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inspect's own error begins with the whole request, which our scenario texts fill."""
    with serving(always(error(400, "Unsupported value: 'effort'"))) as server:
        monkeypatch.setenv("LOCAL_BASE_URL", server.base_url)
        log = play(propensity(limit=1, naming="benign"), fresh("openai"), tmp_path)
    (sample,) = samples(log)
    assert sample.error
    assert sample.scores
    sentence = "HTTP 400: Unsupported value: 'effort'"
    assert record_from_score(sample.scores["propensity"]).error == sentence
    (run,) = read_runs([Path(log.location)]).runs
    assert [record.error for record in run.records] == [sentence]
