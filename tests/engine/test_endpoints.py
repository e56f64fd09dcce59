"""The endpoints that a user gives: typed, or in a file."""

from pathlib import Path

import pytest

from propensitybench.clients.fleet import FleetClient
from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.engine import Endpoints, client_at
from propensitybench.errors import BadInput

A, B = "http://a.example/v1", "http://b.example:8000/v1"


def test_a_file_has_an_address_a_line_each_once_and_comments(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text(f"# both\r\n\n  {A}\t# the first\n{B}\n{A}/\n#{B}x\n")
    assert Endpoints(file=file).read() == (A, B)
    assert Endpoints((A, B, A + "/")).read() == (A, B)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "holds no address; write one base URL on each line"),
        ("# nothing\n", "holds no address"),
        (f"{A}\n\nb.example\n", "hosts, line 3 b.example: must be like http://127.0.0.1:8000/v1"),
        (f"{A} {B}\n", "hosts, line 1 http://a.example/v1 http"),
        ("http://user:hush@a.example/v1", "line 1: must hold no user"),
    ],
)
def test_a_file_of_something_else_is_refused_with_the_place(
    text: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "hosts").write_text(text)
    with pytest.raises(BadInput) as refused:
        Endpoints(file=tmp_path / "hosts").read()
    assert complaint in str(refused.value)
    assert "hush" not in str(refused.value)


def test_what_cannot_be_an_endpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        Endpoints(file=tmp_path / "nothing").read()
    with pytest.raises(BadInput, match="cannot be combined"):
        Endpoints((A,), tmp_path / "hosts")
    with pytest.raises(BadInput, match="must be an address"):
        Endpoints()
    with pytest.raises(BadInput, match="--base-url nowhere: must be like"):
        Endpoints((A, "nowhere"))


def test_one_address_has_the_ordinary_client_and_several_or_a_file_have_a_fleet(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text(A)
    kinds = [
        type(client_at(endpoints, "m", ModelOptions(base_url=A), Transport(), {}))
        for endpoints in (Endpoints((A,)), Endpoints((A, B)), Endpoints(file=file))
    ]
    assert kinds == [OpenAIChatClient, FleetClient, FleetClient]


def test_the_policy_of_a_fleet_is_that_of_its_addresses() -> None:
    gemini = "https://generativelanguage.googleapis.com/v1beta/openai"
    client = client_at(Endpoints((gemini, A)), "m", ModelOptions(), Transport(), {})
    assert isinstance(client, FleetClient)
    assert client.wire.name == "gemini"


def test_shards_divide_the_rates() -> None:
    whole = Transport(rpm=90, tpm=None, concurrency=7)
    assert whole.divided(60) == Transport(rpm=1.5, tpm=None, concurrency=7)
    assert whole.divided(360).rpm == 0.25
