"""API keys stay out of every text."""

import traceback

import pytest
from helpers.http_client import KEY, Got, ask
from helpers.openai_server import (
    MAY_PASS,
    REFUSALS,
    STOPS_RUN,
    Answer,
    always,
    error,
)
from rich.pretty import pretty_repr

from propensitybench.chat import Reply
from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.openai_chat import OpenAIChatClient


def echoing(status: int, before: int = 0, code: str = "") -> Answer:
    """An error that repeats the key that it was sent, after some text."""
    return error(status, "x" * before + f" key {KEY} is wrong", code=code)


def shown(got: Got) -> str:
    """All that anyone gets to see of a reply, or of an exception and what led to it."""
    if isinstance(got, Reply):
        return repr(got)
    return repr(got) + "".join(traceback.format_exception(got))


EVERY = {**MAY_PASS, **REFUSALS, **STOPS_RUN, "echo 400": echoing(400), "echo 500": echoing(500)}


@pytest.mark.parametrize("name", EVERY)
def test_a_key_is_in_no_text(name: str) -> None:
    got = ask(always(EVERY[name]))
    assert KEY not in str(got)
    assert KEY not in repr(got)


@pytest.mark.parametrize("status", [400, 401, 500])
def test_a_key_is_in_no_traceback(status: int) -> None:
    assert KEY not in shown(ask(always(echoing(status))))


@pytest.mark.parametrize("before", [280, 284, 288])
def test_half_a_key_is_in_no_text(before: int) -> None:
    assert KEY[:6] not in str(ask(always(echoing(400, before))))


def test_an_endpoint_does_not_show_its_keys() -> None:
    endpoint = Endpoint("prov/m", "m", "http://x", (KEY,))
    client = OpenAIChatClient(endpoint)
    assert KEY not in f"{endpoint!r} {endpoint} {client!r}"
    assert KEY not in pretty_repr(endpoint)
