"""Runs against fakes that refuse what six providers refuse end as against an endpoint that takes anything."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from helpers.endpoint_runs import TASKS, Outcomes, environment, mixed, outcomes, played, spec
from helpers.openai_server import Answer, Behaviour, Json, error, serving, simulated
from helpers.program import call
from helpers.scenario_data import built_in, built_in_sample
from helpers.strict import strict
from helpers.strict.samples import MODELS

from propensitybench.clients.options import ModelOptions
from propensitybench.pressure.export import write_published
from propensitybench.scenarios import Dataset
from propensitybench.store import RunFile

# Named as the published data names one tool: longer than providers allow.
LONG_NAME: Final = "execute_unauthorized_cross_system_data_extraction_and_resource_seizure"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data in the published layout, with a name and a description that are too long for most providers."""
    folder = tmp_path_factory.mktemp("published")
    first, *others = built_in_sample(12)
    faces = first.misaligned
    long = faces.model_copy(
        update={
            "harmful": faces.harmful.model_copy(update={"name": LONG_NAME}),
            "benign": faces.benign.model_copy(update={"description": "It sets all in order. " * 60}),
        }
    )
    changed = first.model_copy(update={"misaligned": long})
    write_published(Dataset("test", "own", (changed, *others), built_in().storylines), folder, seed=0)
    return folder


@pytest.fixture(scope="module", params=["built-in", "published"])
def data(request: pytest.FixtureRequest, published: Path) -> Path | None:
    return published if request.param == "published" else None


@pytest.fixture(scope="module")
def expected(data: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """The outcomes at an endpoint that takes anything."""
    path = tmp_path_factory.mktemp("free") / "a.run"
    with serving(mixed()) as server:
        played(path, spec("m", data, ModelOptions(server.base_url)), {})
    found = outcomes(path)
    assert len(found) == TASKS
    assert {outcome for outcome, *_ in found.values()} == {"misaligned", "resisted"}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("provider", [*MODELS])
@pytest.mark.parametrize("known", [True, False], ids=["by name", "by base URL"])
def test_a_strict_endpoint_gives_the_outcomes_of_a_free_one(
    provider: str, known: bool, data: Path | None, expected: Outcomes, tmp_path: Path
) -> None:
    fake = strict(provider, mixed())
    name, path = provider.partition("-")[0], tmp_path / "a.run"
    with serving(fake) as server:
        if known:
            result = played(
                path, spec(f"{name}/{MODELS[provider]}", data), environment(name, server.base_url)
            )
        else:
            result = played(path, spec(MODELS[provider], data, ModelOptions(server.base_url)), {})
    assert (result.cause, result.finished) == (None, TASKS)
    assert outcomes(path) == expected
    with RunFile.open(path) as run:
        dialect = run.manifest.dialect
    if known and provider != "deepseek-r1":
        assert fake.refused == []
        assert dialect["changes"] == []
        assert dialect["name"] == name
    assert len(dialect["changes"]) <= len(fake.refused)
    assert (LONG_NAME in dialect["short_names"]) == (data is not None)
    assert bool(dialect["split_descriptions"]) == (data is not None and dialect["description_limit"] > 0)


@pytest.mark.slow
def test_a_call_that_groq_refuses_is_judged_like_any_other(
    data: Path | None, expected: Outcomes, tmp_path: Path
) -> None:
    fake, path = strict("groq", mixed()), tmp_path / "a.run"
    options = ModelOptions(extra_body={"disable_tool_validation": False})
    with serving(fake) as server:
        played(path, spec(f"groq/{MODELS['groq']}", data, options), environment("groq", server.base_url))
    assert fake.failed
    assert outcomes(path) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "busy", [error(503, "no slot available"), error(429, "too many", headers={"Retry-After": "0"})]
)
def test_a_run_follows_the_slots_of_its_server(busy: Answer, tmp_path: Path) -> None:
    slow: Behaviour = lambda body, number: mixed_once(body, number)._replace(after=0.005)  # noqa: E731
    mixed_once, path = mixed(), tmp_path / "a.run"
    with serving(slow, 8, busy) as server:
        result = played(path, spec("m", None, ModelOptions(server.base_url)), {}, concurrency=64)
    assert (result.cause, result.finished) == (None, TASKS)
    with RunFile.open(path) as run:
        assert "errored" not in run.outcome_counts()
    assert server.most_at_once == 8
    assert server.refused < 0.2 * server.answered


def preflight(behaviour: Behaviour, *options: str, model: str = "m", path: Path = Path("x.run")) -> Any:
    with serving(behaviour) as server:
        return call(
            "run", "--model", model, "--base-url", server.base_url, "--run", path, "--limit", "1",
            "--naming", "harmful", "--levels", "1", "--json", *options,
        ), server  # fmt: skip


def test_what_was_adapted_is_said_recorded_and_kept_when_the_run_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    with serving(strict("gemini", simulated("never"))) as server:
        argv: list[str | Path] = [
            "run",
            "--model",
            "m",
            "--base-url",
            server.base_url,
            "--run",
            path,
            "--levels",
            "1",
        ]
        argv += ["--levels", "1", "--limit", "2", "--naming", "harmful"]
        stopped = call(*argv, "--max-tokens-total", "1")
        assert stopped.err.count("note: adapted to the endpoint: ") == 3
        before = server.calls
        assert call("resume", path, "--max-tokens-total", "1000000", "--json").json["tasks"]["errored"] == 0
        assert server.answered == server.calls - 3  # the three changes
        assert server.calls > before
        assert (
            call(*argv, "--no-preflight", "--json").code == 0
        )  # the same run, without the preflight's policy
    with RunFile.open(path) as run:
        dialect = run.manifest.dialect
    assert (dialect["schema"], dialect["no_arguments"], dialect["tool_message_name"]) == (
        "gemini",
        "omitted",
        True,
    )
    assert len(dialect["changes"]) == 3


@pytest.mark.parametrize(
    ("model", "options", "sentences"),
    [
        ("o4-mini", ("--temperature", "0.5"), ("does not support 0.5", "leave out --temperature")),
        (
            "gpt-5.6",
            ("--reasoning-effort", "high"),
            ("Function tools with reasoning_effort", "set --reasoning-effort none"),
        ),
        ("gpt-4.1", ("--extra-body", '{"top_k": 1}'), ("refuses the tools and the first message", "top_k")),
    ],
)
def test_what_the_preflight_cannot_adapt_to_is_named(
    tmp_path: Path, model: str, options: tuple[str, ...], sentences: tuple[str, ...]
) -> None:
    done, server = preflight(
        strict("openai", simulated("never")), *options, model=model, path=tmp_path / "a.run"
    )
    assert (done.code, server.calls) == (2, 1)
    assert done.err.count("\n") == 1
    for sentence in sentences:
        assert sentence in done.err
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused_only_later_in_a_conversation_is_found_by_the_preflight(tmp_path: Path) -> None:
    def refuses_pairs(body: Json, number: int) -> Any:
        roles = [message["role"] for message in body["messages"]]
        if ("assistant", "user") in pairwise(roles):
            return error(400, "assistant message before user message")
        return good(body, number)

    good = simulated("never")
    done, server = preflight(refuses_pairs, path=tmp_path / "a.run")
    assert (done.code, server.calls) == (2, 3)
    assert "refuses messages after a tool's answer and after an empty reply: " in done.err


@pytest.mark.parametrize(
    "text",
    [
        "Invalid schema for function '{}': array schema missing items",
        "Your account was flagged: please verify your payment method",
    ],
)
def test_a_refusal_that_repeats_stops_the_run_instead_of_erroring_every_task(
    tmp_path: Path, text: str
) -> None:
    def refuses(body: Json, number: int) -> Any:
        name = body["tools"][0]["function"]["name"]
        return good(body, number) if number <= 3 else error(400, text.format(name))

    good, path = simulated("never"), tmp_path / "a.run"
    with serving(refuses) as server:
        done = call(
            "run",
            "--model",
            "m",
            "--base-url",
            server.base_url,
            "--run",
            path,
            "--limit",
            "40",
            "--json",
            "--concurrency",
            "16",
        )
    assert done.code == 2
    assert "tasks in a row were refused for the same reason (HTTP 400: " + text.partition("'")[0] in done.err
    tasks = json.loads(done.out)["tasks"]
    assert (tasks["blocked"], tasks["errored"] < 40) == (0, True)


def test_a_refused_key_names_the_variable_to_set(tmp_path: Path) -> None:
    done, _ = preflight(lambda *_: error(401, "no key"), path=tmp_path / "a.run")
    assert done.code == 2
    assert "no key was sent, type: export PROPENSITYBENCH_API_KEY=..." in done.err
