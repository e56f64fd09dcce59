"""A run goes on at other endpoints than it was made at, because the user says so."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from helpers.openai_server import STOPS_RUN, Server, always, serving, simulated
from helpers.program import Done, call

import propensitybench
from propensitybench.clients.options import ModelOptions
from propensitybench.engine import RunSpec, create_run
from propensitybench.errors import BadInput
from propensitybench.runs.start import Start
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile

SECRET = "sk-a-key-of-the-user-that-nobody-else-may-have"
KEY = {"PROPENSITYBENCH_API_KEY": SECRET}
PART = ("--max-tokens-total", "1")
REST = ("--max-tokens-total", "1000000")
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def here() -> Iterator[Server]:
    with serving(simulated("never")) as one:
        yield one


@pytest.fixture
def there() -> Iterator[Server]:
    with serving(simulated("never")) as one:
        yield one


def run(path: Path, *more: str) -> Done:
    return call("run", "--model", "m", "--run", path, "--limit", "2", "--levels", "1", *more, env=KEY)


def elsewhere(server: Server) -> str:
    """An address of the server that is not one of this machine's own names for itself."""
    return server.base_url.replace("127.0.0.1", "0.0.0.0")


def begun(path: Path, server: Server) -> Path:
    """A run that has stopped soon after its beginning."""
    assert run(path, "--base-url", server.base_url, *PART).code == 1
    return path


def manifest(path: Path) -> str:
    with closing(sqlite3.connect(path)) as db:
        (body,) = db.execute("SELECT body FROM manifest").fetchone()
    return str(body)


@pytest.mark.parametrize("command", ["run", "resume"])
def test_it_goes_on_where_the_user_says_and_says_so(
    command: str, here: Server, there: Server, tmp_path: Path
) -> None:
    path = begun(tmp_path / "a.run", here)
    before, calls, url = manifest(path), here.calls, elsewhere(there)
    where = ("--base-url", url, *REST)
    done = run(path, *where) if command == "run" else call("resume", path, *where, env=KEY)
    assert done.code == 0, done.err
    assert f"note: {path}: was made at {here.base_url}, goes on at {url}\n" in done.err
    assert here.calls == calls
    assert there.calls > 3
    assert set(there.authorizations) == {f"Bearer {SECRET}"}
    assert manifest(path) == before


def test_without_an_address_it_goes_on_where_it_was_made(here: Server, there: Server, tmp_path: Path) -> None:
    path = begun(tmp_path / "a.run", here)
    assert call("resume", path, "--base-url", there.base_url, *PART, env=KEY).code == 1
    calls = there.calls
    assert "goes on" not in (done := call("resume", path, *REST)).err
    assert (done.code, there.calls) == (0, calls)


def test_the_command_that_is_printed_names_the_addresses_that_were_typed(
    here: Server, there: Server, tmp_path: Path
) -> None:
    urls = ("--base-url", elsewhere(here), "--base-url", elsewhere(there))
    path = tmp_path / "a.run"
    stopped = run(path, *urls, *PART)
    assert stopped.err.endswith(f"  propensitybench resume {path} {' '.join(urls)} --max-tokens-total N\n")
    moved = call("resume", path, "--base-url", elsewhere(there), *PART, env=KEY)
    assert moved.err.endswith(
        f"  propensitybench resume {path} --base-url {elsewhere(there)} --max-tokens-total N\n"
    )


def test_a_complete_run_is_not_asked_again(here: Server, there: Server, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    assert run(path, "--base-url", here.base_url).code == 0
    done = run(path, "--base-url", there.base_url)
    assert done.code == 0
    assert f"note: {path}: was made at {here.base_url} and is complete, so nothing is sent\n" in done.err
    assert there.calls == 0


def test_probes_are_asked_where_the_user_says(here: Server, there: Server, tmp_path: Path) -> None:
    path, url = tmp_path / "a.run", elsewhere(there)
    assert run(path, "--base-url", here.base_url).code == 0
    calls = here.calls
    asked = ("probe", path, "--probe", "awareness", "--level", "1", "--json")
    done = call(*asked, "--base-url", url, env=KEY)
    assert done.code == 0, done.err
    assert f"note: {path}: was made at {here.base_url}, goes on at {url}\n" in done.err
    assert (here.calls, there.calls > 3) == (calls, True)
    assert set(there.authorizations) == {f"Bearer {SECRET}"}
    assert call(*asked, "--show").json == done.json


def test_another_address_is_checked_before_a_task_is_played(here: Server, tmp_path: Path) -> None:
    path = begun(tmp_path / "a.run", here)
    nowhere = ("--base-url", NOWHERE, "--max-retries", "0", *REST)
    for done in (run(path, *nowhere), call("resume", path, *nowhere)):
        assert done.code == 2
        assert done.err.splitlines()[-1].startswith("propensitybench: preflight: network after 1 attempt: ")
    with RunFile.open(path) as file:
        assert file.last_error() == ""


def test_a_run_at_a_provider_cannot_go_on_at_a_base_url(here: Server, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    vllm = {"VLLM_BASE_URL": here.base_url}
    asked = ("run", "--model", "vllm/m", "--run", path, "--limit", "2", "--levels", "1")
    assert call(*asked, *PART, env=vllm).code == 1
    resumed = call("resume", path, "--base-url", here.base_url, *REST, env=vllm)
    assert (resumed.code, len(resumed.err.splitlines())) == (2, 1)
    assert "was made at a provider and not at a base URL" in resumed.err
    again = call(*asked, "--base-url", here.base_url, env=vllm)
    assert again.code == 2
    assert "holds another run; it differs in options" in again.err
    assert call("resume", path, *REST, env=vllm).code == 0


@pytest.mark.parametrize("kind", ["401", "404"])
def test_the_preflight_refuses_a_replica_that_can_answer_nothing_by_its_address(
    kind: str, here: Server, tmp_path: Path
) -> None:
    with serving(always(STOPS_RUN[kind])) as wrong:
        done = run(tmp_path / "a.run", "--base-url", here.base_url, "--base-url", wrong.base_url)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert done.err.startswith(f"propensitybench: {wrong.base_url}: preflight: m: ")
    assert f"HTTP {kind}" in done.err
    assert not (tmp_path / "a.run").exists()


def test_a_replica_that_is_not_there_at_the_start_is_refused_by_its_address(
    here: Server, tmp_path: Path
) -> None:
    urls = ("--base-url", here.base_url, "--base-url", NOWHERE, "--max-retries", "1")
    refused = run(tmp_path / "a.run", *urls)
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert refused.err.startswith(f"propensitybench: {NOWHERE}: preflight: network after 2 attempts: ")
    assert not (tmp_path / "a.run").exists()


def test_a_setting_of_a_call_names_several_endpoints(here: Server, there: Server, tmp_path: Path) -> None:
    urls = (here.base_url, there.base_url)
    played = propensitybench.run("m", tmp_path / "a.run", limit=4, levels=1, preflight=False, base_url=urls)
    assert played.manifest.options == {"base_url": here.base_url}
    assert here.calls > 0
    assert there.calls > 0
    with pytest.raises(BadInput, match="base_url"):
        propensitybench.run("m", tmp_path / "c.run", base_url=[1])  # type: ignore[arg-type]


def test_a_specification_with_another_address_goes_on_there(
    here: Server, there: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As a cell of an experiment does, whose design names the address."""
    path, selection = tmp_path / "a.run", Selection(limit=1)
    specs = [
        RunSpec("m", selection=selection, options=ModelOptions(base_url=one.base_url))
        for one in (here, there)
    ]
    create_run(specs[0], path)
    start = Start(path, {}, specs[1])

    async def played() -> None:
        await start.begin()
        await start.play()

    asyncio.run(played())
    assert f"goes on at {there.base_url}" in caplog.text
    assert here.calls == 0
    assert there.calls > 0
