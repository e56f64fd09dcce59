"""From a model address to a client, and which key is sent where."""

from typing import Any

import pytest

from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions
from propensitybench.engine import client_for
from propensitybench.engine.agents import _endpoint, providers, through_inspect
from propensitybench.errors import BadInput, UnknownName

KEYS = {"OPENAI_API_KEY": "openai-1, openai-2", "PROPENSITYBENCH_API_KEY": "own"}


def test_a_provider_s_key_goes_to_that_provider_and_several_take_turns() -> None:
    endpoint = _endpoint("openai/some/model", None, KEYS)
    assert endpoint.name == "some/model"
    assert endpoint.base_url == providers()["openai"].base_url
    assert endpoint.keys == ("openai-1", "openai-2")


def test_to_any_other_address_goes_the_key_that_is_meant_for_it_and_no_provider_s() -> None:
    assert _endpoint("m", "http://somewhere.example/v1", KEYS).keys == ("own",)
    assert _endpoint("m", "http://somewhere.example/v1", {"OPENAI_API_KEY": "x"}).keys == ()


def test_a_server_on_this_machine_needs_no_key_and_may_stand_elsewhere() -> None:
    assert _endpoint("vllm/m", None, {}).keys == ()
    moved = _endpoint("llama-cpp/m", None, {"LLAMA_CPP_BASE_URL": "http://127.0.0.1:9/v1"})
    assert moved.base_url == "http://127.0.0.1:9/v1"


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
def test_an_unusable_address_is_refused_with_the_reason(model: str, url: str | None, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        client_for(model, ModelOptions(url), environment={})


def test_an_unknown_provider_lists_the_near_ones() -> None:
    with pytest.raises(UnknownName, match="did you mean 'anthropic'"):
        client_for("antropic/claude", environment={})
    assert "anthropic" in through_inspect()


def test_sampling_options_are_not_for_simulated_models() -> None:
    with pytest.raises(BadInput, match="takes no base URL and no sampling options"):
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
