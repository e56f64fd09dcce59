"""The endpoints that a user gives."""

import pytest

from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import Endpoints, client_at
from propensitybench.errors import BadInput

A, B = "http://a.example/v1", "http://b.example:8000/v1"


def test_each_address_counts_once() -> None:
    assert Endpoints((A, B, A + "/")).read() == (A, B)


def test_what_cannot_be_an_endpoint_is_refused() -> None:
    with pytest.raises(BadInput, match="must be an address"):
        Endpoints(())
    with pytest.raises(BadInput, match="--base-url nowhere: must be like"):
        Endpoints((A, "nowhere"))


def test_several_addresses_have_the_policy_of_the_first() -> None:
    gemini = "https://generativelanguage.googleapis.com/v1beta/openai"
    client = client_at(Endpoints((gemini, A)), "m", ModelOptions(), RequestLimits(), {})
    assert isinstance(client, OpenAIChatClient)
    assert client.dialect.name == "gemini"


def test_shards_divide_the_rates() -> None:
    whole = RequestLimits(rpm=90, tpm=None, concurrency=7)
    assert whole.divided(60) == RequestLimits(rpm=1.5, tpm=None, concurrency=7)
    assert whole.divided(360).rpm == 0.25
