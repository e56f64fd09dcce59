"""Proxies from the environment, with a strict proxy on this machine."""

import asyncio
import json
import os
import traceback
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from helpers.http_client import CONTEXT, REQUEST
from helpers.openai_server import Behaviour, Json, always, in_thread, running, says, simulated
from helpers.program import call
from hostile.endpoint_server import http, listening

from propensitybench.chat import Reply
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.clients.proxies import Proxy, proxy_for
from propensitybench.engine.agents import client_for
from propensitybench.errors import BadInput, PropensityBenchError

KEY, PASSWORD = "sk-sentinel-4d1f0c", "pass/word-77ab"
GOOD = always(says())
FAR = "http://model.example/v1"


class StrictProxy:
    """Answers requests for http addresses itself, and refuses every tunnel.

    Attributes:
        port: on 127.0.0.1.
        seen: first line and headers of each request.
    """

    def __init__(self, behaviour: Behaviour) -> None:
        self.port = 0
        self.seen: list[tuple[str, dict[str, str]]] = []
        self._behaviour = behaviour

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            self.seen.append((first, headers))
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            if first.startswith("CONNECT"):
                writer.write(f"HTTP/1.1 407 {PASSWORD}\r\nContent-Length: 0\r\n\r\n".encode())
            elif first.startswith(f"POST {FAR}/"):
                decoded: Json = json.loads(body)
                writer.write(b"".join(http(self._behaviour(decoded, len(self.seen))).parts))
            else:
                writer.write(b"HTTP/1.1 400 relative\r\nContent-Length: 0\r\n\r\n")


@asynccontextmanager
async def proxying(behaviour: Behaviour = GOOD) -> AsyncIterator[StrictProxy]:
    """A proxy on the running event loop."""
    proxy = StrictProxy(behaviour)
    async with listening(proxy.serve) as proxy.port:
        yield proxy


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def proxy_at(url: str, environment: Mapping[str, str]) -> Proxy | None:
    """The proxy for an address under these variables."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        return proxy_for(url)


async def ask(url: str, environment: Mapping[str, str]) -> Reply | PropensityBenchError:
    """What comes of one request to an endpoint."""
    transport = RequestLimits(timeout=10, max_retries=0)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        client = client_for("m", ModelOptions(base_url=url), transport, {"PROPENSITYBENCH_API_KEY": KEY})
    try:
        return await client.open(CONTEXT).reply(REQUEST)
    except PropensityBenchError as error:
        return error
    finally:
        await client.close()


def test_requests_go_through_the_proxy_and_it_is_said_that_it_can_read_the_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def talk() -> None:
        async with proxying() as proxy:
            address = f"http://me:{PASSWORD.replace('/', '%2F')}@127.0.0.1:{proxy.port}"
            got = await ask(FAR, {"HTTP_PROXY": address, "HTTPS_PROXY": "http://127.0.0.1:1"})
            (note,) = caplog.messages
            assert "can read the key and the conversation" in note
            assert PASSWORD not in note
            assert isinstance(got, Reply)
            ((first, headers),) = proxy.seen
        assert first == f"POST {FAR}/chat/completions HTTP/1.1"
        assert headers["authorization"] == f"Bearer {KEY}"
        assert headers["proxy-authorization"] == "Basic " + b64encode(f"me:{PASSWORD}".encode()).decode()

    asyncio.run(talk())


def test_a_tunnel_carries_no_key_and_its_refusal_shows_no_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def talk() -> PropensityBenchError:
        async with proxying() as proxy:
            environment = {"all_proxy": f"http://me:{PASSWORD.replace('/', '%2F')}@127.0.0.1:{proxy.port}"}
            got = await ask("https://model.example/v1", environment)
            ((first, headers),) = proxy.seen
            assert first == "CONNECT model.example:443 HTTP/1.1"
            assert "authorization" not in headers
            assert (
                f"the proxy answered HTTP 407, through the proxy http://127.0.0.1:{proxy.port} (ALL_PROXY)"
                in str(got)
            )
            assert isinstance(got, PropensityBenchError)
            return got

    shown = "".join(traceback.format_exception(asyncio.run(talk())))
    assert caplog.messages == []
    assert PASSWORD not in shown
    assert KEY not in shown


def test_a_request_to_this_machine_never_goes_to_a_proxy() -> None:
    async def talk() -> None:
        async with proxying() as proxy, running(always(says())) as server:
            environment = {"HTTP_PROXY": f"http://127.0.0.1:{proxy.port}", "ALL_PROXY": "http://127.0.0.1:1"}
            for host in ("127.0.0.1", "localhost", "LocalHost"):
                got = await ask(server.base_url.replace("127.0.0.1", host), environment)
                assert isinstance(got, Reply), got
            assert (server.calls, proxy.seen) == (3, [])

    asyncio.run(talk())


@pytest.mark.parametrize(
    "url",
    ["http://127.9.9.9/v1", "http://[::1]:80/v1", "http://0.0.0.0/v1", "http://[::ffff:127.0.0.1]/v1",
     "https://a.localhost/v1"],
)  # fmt: skip
def test_addresses_of_this_machine(url: str) -> None:
    assert proxy_at(url, {"http_proxy": "http://p", "https_proxy": "http://p"}) is None


@pytest.mark.parametrize(
    ("names", "url", "direct"),
    [
        ("*", FAR, True),
        ("model.example", FAR, True),
        ("other, .example", FAR, True),
        ("MODEL.EXAMPLE:80", "http://model.example:80/v1", True),
        ("model.example:81", "http://model.example:80/v1", False),
        ("del.example", FAR, False),
        ("", FAR, False),
        (",", FAR, False),
        ("10.0.0.0/8", "http://10.2.3.4/v1", True),
        ("10.0.0.0/8", "http://11.2.3.4/v1", False),
        ("fd00::/8", "http://[fd00::7]/v1", True),
    ],
)
def test_no_proxy(names: str, url: str, *, direct: bool) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        found = proxy_at(url, {"HTTP_PROXY": "http://p:3128", variable: names})
        assert (found is None) == direct


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({"HTTP_PROXY": "p", "http_proxy": "q", "ALL_PROXY": "r"}, "http://q"),
        ({"HTTP_PROXY": "p", "all_proxy": "r"}, "http://p"),
        ({"ALL_PROXY": "r", "HTTPS_PROXY": "s"}, "http://r"),
        ({"HTTPS_PROXY": "s"}, None),
        ({"HTTP_PROXY": ""}, None),
        ({"HTTP_PROXY": "p", "REQUEST_METHOD": "GET"}, None),
    ],
)
def test_which_variable_counts(environment: dict[str, str], url: str | None) -> None:
    found = proxy_at(FAR, environment)
    assert (found and found.url) == url


@pytest.mark.parametrize(
    "address", ["socks5://u:{}@h:1", "http://", "http://u:{}@[h", "ftp://{}@h", "http://h:99999"]
)
def test_an_address_that_is_not_an_http_proxy_is_bad_input_and_not_shown(address: str) -> None:
    with pytest.raises(BadInput, match="ALL_PROXY: must be an HTTP proxy") as caught:
        proxy_at(FAR, {"ALL_PROXY": address.format(PASSWORD)})
    assert PASSWORD not in str(caught.value)


@pytest.mark.slow
def test_a_run_through_a_proxy(tmp_path: Path) -> None:
    path, netrc = tmp_path / "a.run", tmp_path / "netrc"
    netrc.write_text("machine model.example login me password theirs\n")
    netrc.chmod(0o600)
    with in_thread(proxying(simulated("always"))) as proxy:
        address = f"http://me:{PASSWORD.replace('/', '%2F')}@127.0.0.1:{proxy.port}"
        environment = {"http_proxy": address, "PROPENSITYBENCH_API_KEY": KEY, "NETRC": str(netrc)}
        done = call("run", "--model", "m", "--base-url", FAR, "--run", path, "--limit", "2", env=environment)
        assert done.code == 0, done.err
        assert {headers["authorization"] for _, headers in proxy.seen} == {f"Bearer {KEY}"}
    assert "can read the key" in done.err
    assert PASSWORD not in done.out + done.err
    assert PASSWORD.encode() not in path.read_bytes()
