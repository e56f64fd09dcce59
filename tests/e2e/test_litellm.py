"""LiteLLM's proxy, a real gateway, in front of strict fakes.

It needs an environment of its own, since it pins what others need newer::

    python -m venv litellm && litellm/bin/pip install 'litellm[proxy]'
    PROPENSITYBENCH_LITELLM=litellm/bin/litellm pytest -n 0 tests/e2e/test_litellm.py
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from helpers.endpoint_runs import TASKS, Outcomes, mixed, outcomes, played, spec
from helpers.openai_server import serving
from helpers.strict import Strict, strict
from helpers.strict.samples import MODELS

from propensitybench.clients.options import ModelOptions

PROVIDERS: Final = ("openai", "mistral", "groq", "deepseek")
COMMAND: Final = os.environ.get("PROPENSITYBENCH_LITELLM") or shutil.which("litellm")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        COMMAND is None,
        reason="LiteLLM is not installed: pip install 'litellm[proxy]' into an environment of its own, and "
        "put the path of its litellm command into PROPENSITYBENCH_LITELLM",
    ),
]


class Gateway(NamedTuple):
    """A running proxy, whose models are named after the providers behind it."""

    url: str
    key: str
    fakes: Mapping[str, Strict]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder, key = tmp_path_factory.mktemp("litellm"), "sk-" + secrets.token_hex(32)
    fakes = {provider: strict(provider, mixed()) for provider in PROVIDERS}
    with ExitStack() as stack:
        models = []
        for provider, fake in fakes.items():
            base_url = stack.enter_context(serving(fake)).base_url
            behind = {"model": f"{provider}/{MODELS[provider]}", "api_base": base_url, "api_key": "k"}
            models.append({"model_name": provider, "litellm_params": behind})
        config = folder / "config.yaml"
        config.write_text(json.dumps({"model_list": models}))
        yield Gateway(stack.enter_context(proxy(config, key)), key, fakes)


@contextmanager
def proxy(config: Path, key: str) -> Iterator[str]:
    """The proxy; its base URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert COMMAND
    command = [COMMAND, "--config", str(config), "--port", str(port), "--host", "127.0.0.1"]
    extra = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": key, "PYTHONPATH": ""}
    with config.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **extra}, stdout=log, stderr=log)
        try:
            while not answers(port):
                assert process.poll() is None, config.with_suffix(".log").read_text()[-2000:]
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(20)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """The outcomes without a gateway, at an endpoint that takes anything."""
    path = tmp_path_factory.mktemp("free") / "a.run"
    with serving(mixed()) as server:
        played(path, spec("m", None, ModelOptions(server.base_url)), {})
    return outcomes(path)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_run_through_the_gateway_ends_as_one_without_it(
    provider: str, gateway: Gateway, expected: Outcomes, tmp_path: Path
) -> None:
    path = tmp_path / "a.run"
    environment = {"PROPENSITYBENCH_API_KEY": gateway.key}
    result = played(path, spec(provider, None, ModelOptions(gateway.url)), environment)
    assert (result.cause, result.finished) == (None, TASKS)
    assert outcomes(path) == expected
