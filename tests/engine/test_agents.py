"""From an address to a client: which key goes where, and how requests are written."""

from typing import Any

import pytest

from propensitybench.clients.compatible import dialects, endpoint_at, providers
from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions
from propensitybench.engine import client_for
from propensitybench.engine.agents import dialect_of, kind_of, use_recorded_dialect, variables_of
from propensitybench.errors import BadInput, UnknownName

KEYS = {"OPENAI_API_KEY": "openai-1, openai-2", "PROPENSITYBENCH_API_KEY": "own"}


def test_a_provider_s_key_goes_to_that_provider_and_several_take_turns() -> None:
    endpoint = endpoint_at("openai/some/model", None, KEYS)
    assert endpoint.name == "some/model"
    assert endpoint.base_url == providers()["openai"].base_url
    assert endpoint.keys == ("openai-1", "openai-2")


def test_to_any_other_address_goes_the_key_that_is_meant_for_it_and_no_provider_s() -> None:
    assert endpoint_at("m", "http://somewhere.example/v1", KEYS).keys == ("own",)
    assert endpoint_at("m", "http://somewhere.example/v1", {"OPENAI_API_KEY": "x"}).keys == ()


def test_a_server_on_this_machine_needs_no_key_and_may_stand_elsewhere() -> None:
    assert endpoint_at("vllm/m", None, {}).keys == ()
    moved = endpoint_at("llama-cpp/m", None, {"LLAMA_CPP_BASE_URL": "http://127.0.0.1:9/v1"})
    assert moved.base_url == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize("name", ["vllm", "sglang", "ollama", "llama-cpp"])
def test_a_server_on_this_machine_may_have_a_key(name: str) -> None:
    variable = f"{name.upper().replace('-', '_')}_API_KEY"
    endpoint = endpoint_at(f"{name}/m", None, {variable: "secret"})
    assert (endpoint.keys, endpoint.key_variable) == (("secret",), variable)


@pytest.mark.parametrize(
    ("model", "base_url", "dialect"),
    [
        ("openai/gpt", None, "openai"),
        ("gemini/gemini-3-pro", None, "gemini"),
        ("openrouter/openai/gpt", None, "compatible"),
        ("vllm/m", None, "compatible"),
        ("m", "http://127.0.0.1:8000/v1", "compatible"),
        ("gpt", "https://api.openai.com/v1/", "openai"),
        ("simulated/never", None, None),
    ],
)
def test_requests_are_written_as_the_endpoint_is_known_to_want_them(
    model: str, base_url: str | None, dialect: str | None
) -> None:
    found = dialect_of(model, base_url)
    assert (found and found.name) == dialect


def test_every_provider_has_a_policy_and_no_policy_sends_a_gateway_s_fields() -> None:
    assert {provider.dialect for provider in providers().values()} <= dialects().keys()
    for dialect in dialects().values():
        assert "provider_specific_fields" not in (*dialect.echo, *dialect.echo_in_calls)
        assert "strict" not in dialect.extra


def test_a_resumed_run_writes_its_requests_as_it_did() -> None:
    client = client_for("openai/gpt", environment=KEYS)
    assert isinstance(client, OpenAIChatClient)
    use_recorded_dialect(client, {})
    assert client.dialect == dialects()["openai"]
    use_recorded_dialect(client, {"name": "gemini", "schema": "gemini"})
    assert (client.dialect.name, client.dialect.schema) == ("gemini", "gemini")
    with pytest.raises(BadInput, match="dialect"):
        use_recorded_dialect(client, {"of_another_version": 1})


def test_a_run_file_brings_no_pattern_of_its_own() -> None:
    client = client_for("m", ModelOptions(base_url="http://127.0.0.1:9/v1"), environment={})
    with pytest.raises(BadInput, match="dialect"):
        use_recorded_dialect(client, {"call_id": "(a+)+$"})


@pytest.mark.parametrize("key", ["sk-a\nsk-b", "sk\x00", "sk-\x7f"])
def test_a_key_with_a_control_character_is_bad_input_and_not_shown(key: str) -> None:
    with pytest.raises(BadInput, match="PROPENSITYBENCH_API_KEY: a key has a line break") as caught:
        endpoint_at("m", "http://127.0.0.1:9/v1", {"PROPENSITYBENCH_API_KEY": key})
    assert "sk" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://me:pass@[::1", "ftp://me:pass@h", "http://me:pass@h/v1", "me:pass@h"]
)
def test_an_address_with_a_password_is_bad_input_and_not_shown(url: str) -> None:
    with pytest.raises(BadInput, match="--base-url") as caught:
        endpoint_at("m", url, {})
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "url", "complaint"),
    [
        ("gpt", None, "give provider/name, for example openai/o4-mini"),
        ("openai/gpt", None, "type: export OPENAI_API_KEY"),
        ("openai/", None, "give provider/name"),
        ("m", "http://[bad/v1", "must be like http://127.0.0.1:8000/v1"),
        ("m", "http://host:99999/v1", "must be like http://127.0.0.1:8000/v1"),
        ("m", "localhost:8000", "must be like http://127.0.0.1:8000/v1"),
        ("m", "http://user:pass@host/v1", "must hold no user, password"),
        ("m", "http://host/v1?key=1", "must hold no user, password"),
    ],
)
def test_what_cannot_be_asked_is_said(model: str, url: str | None, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        client_for(model, ModelOptions(url), environment={})


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("opnai/gpt", "did you mean 'openai'"),
        ("simulted/never", "'simulated'"),
        ("anthropic/x", "known: openai"),
    ],
)
def test_an_unknown_provider_lists_the_known_ones_and_where_to_read_of_others(model: str, hint: str) -> None:
    with pytest.raises(UnknownName, match=f"{hint}.*Other providers.*docs/models.md"):
        client_for(model, environment={})


@pytest.mark.parametrize(
    ("model", "base_url", "is_free", "variables"),
    [
        ("simulated/never", None, True, []),
        ("vllm/m", None, True, ["VLLM_BASE_URL"]),
        ("openai/gpt", None, False, ["OPENAI_API_KEY"]),
        ("m", "http://127.0.0.1:8000/v1", False, ["PROPENSITYBENCH_API_KEY"]),
    ],
)
def test_a_kind_knows_what_is_free_and_what_another_machine_needs(
    model: str, base_url: str | None, is_free: bool, variables: list[str]
) -> None:
    kind = kind_of(model, base_url)
    assert kind is not None
    assert kind.is_free(model) == is_free
    assert list(variables_of(model, base_url, {**KEYS, "VLLM_BASE_URL": "x"})) == variables


def test_a_model_of_no_kind_has_a_policy_and_needs_nothing() -> None:
    assert kind_of("mine/first") is None
    assert (dialect_of("mine/first"), variables_of("mine/first", None)) == (dialects()["compatible"], {})


def test_sampling_options_are_not_for_simulated_models() -> None:
    with pytest.raises(BadInput, match="no sampling options; remove temperature"):
        client_for("simulated/never", ModelOptions(temperature=1.0))


@pytest.mark.parametrize("extra", [{"model": "x"}, {"messages": []}, {"tools": []}, {"stream": True}])
def test_the_extra_body_may_not_set_what_the_program_sets(extra: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="is set by the program"):
        ModelOptions(extra_body=extra)


def test_the_client_has_the_address_as_its_name() -> None:
    client = client_for("openai/gpt", environment=KEYS)
    assert isinstance(client, OpenAIChatClient)
    assert client.model == "openai/gpt"
    assert "openai-1" not in repr(vars(client).get("_endpoint"))
