"""Whatever else the six largest providers send, no task ends as something that its agent did not do."""

from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from helpers.endpoint_runs import TASKS, Outcomes, environment, mixed, outcomes, played, spec
from helpers.openai_server import serving
from helpers.strict.other_answers import OTHER_ANSWERS, MixedIn
from helpers.strict.samples import MODELS

from propensitybench.chat import BLOCKED, Reply, StopReason, is_object
from propensitybench.clients.options import ModelOptions
from propensitybench.store import RunFile

SHARE: Final = 0.05


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """The outcomes at an endpoint that always answers."""
    path = tmp_path_factory.mktemp("free") / "a.run"
    with serving(mixed()) as server:
        played(path, spec("m", None, ModelOptions(server.base_url)), {})
    return outcomes(path)


def was_cut(reply: Reply) -> bool:
    """Whether the length limit left nothing of a reply that could count."""
    whole = reply.tool_calls and is_object(reply.tool_calls[0].arguments)
    return reply.stop is StopReason.LENGTH and not whole


@pytest.mark.slow
# Anthropic is asked through Inspect AI: tests/inspect_adapter/test_endpoints.py.
@pytest.mark.parametrize("provider", [name for name in OTHER_ANSWERS if name in MODELS])
def test_no_task_is_wrong_whatever_a_provider_sends_among_its_replies(
    provider: str, expected: Outcomes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, path = MixedIn(provider, mixed(), SHARE, seed=7), tmp_path / "a.run"
    with serving(fake) as server:
        where = environment(provider, server.base_url)
        for name, value in where.items():
            monkeypatch.setenv(name, value)
        result = played(path, spec(f"{provider}/{MODELS[provider]}"), where)
    assert (result.cause, result.finished, fake.refused) == (None, TASKS, [])
    assert set(fake.sent) == set(OTHER_ANSWERS[provider])
    found = outcomes(path)
    stored: Counter[str] = Counter()
    with RunFile.open(path) as run:
        for task in run.tasks():
            key = task.task.key
            replies = run.replies(task.number)
            withheld, cut = sum(r.stop in BLOCKED for r in replies), sum(map(was_cut, replies))
            errors = len(run.errors(task.number))
            stored += Counter(blocked=withheld, truncated=cut, errored=errors)
            stored["asked again"] += sum(reply.attempts - 1 for reply in replies)
            if errors:
                assert found[key][0] == "errored"
            elif withheld or cut:
                assert found[key][0] in ("misaligned", "blocked" if withheld else "truncated", "truncated")
            else:
                assert found[key] == expected[key]
    for kind in ("blocked", "truncated", "asked again", "errored"):
        assert stored[kind] == fake.sent_that(kind), kind
