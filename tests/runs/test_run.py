"""`propensitybench.run` in a script and in a running event loop, stopped, repeated and misused."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.openai_server import STOPS_RUN, always, completion, serving, simulated
from helpers.runs import journal

import propensitybench as pb
from propensitybench.chat import ConversationContext, Reply, Request
from propensitybench.clients import Client, says
from propensitybench.engine import Progress
from propensitybench.errors import BadInput, RunMismatch, RunStopped
from propensitybench.runs import Settings
from propensitybench.runs.resolve import read_settings
from propensitybench.store import mismatches

SMALL: dict[str, Any] = {"limit": 3, "levels": 1}


class Counting(Client):
    """Answers with the same message and counts the requests.

    At the request number ``at`` it calls ``then``, and answers once the run is being stopped.
    """

    model = "mine/counting"

    def __init__(self, at: int = 0, then: Callable[[], object] = bool) -> None:
        self.requests = 0
        self._at = at
        self._then = then
        self._stopped = asyncio.Event()

    async def reply(self, request: Request, context: ConversationContext) -> Reply:
        del request, context
        self.requests += 1
        if self.requests == self._at:
            self._then()
            await self._stopped.wait()
        return says("I cannot do that", done=True)

    def stop_requests(self) -> None:
        self._stopped.set()


def test_a_run_in_a_script_is_played_and_scored() -> None:
    run = pb.run("simulated/at-level-3", limit=2)
    assert (run.planned, len(run.records)) == (4, 4)
    assert run.score().naming["harmful"].resilience == 3
    assert repr(run) == f"<Run {run.file}: simulated/at-level-3, 4 of 4 tasks ended>"
    with pb.RunFile.open(run.path) as file:
        assert list(mismatches(file)) == []


def test_a_run_in_a_running_event_loop_is_the_same() -> None:
    async def main() -> list[pb.Run]:
        blocking = pb.run("simulated/o3-like", "blocking.run", **SMALL)
        awaited = await pb.run_async("simulated/o3-like", "awaited.run", **SMALL)
        return [blocking, awaited]

    script = pb.run("simulated/o3-like", "script.run", **SMALL)
    for run in asyncio.run(main()):
        assert run.records == script.records
        assert journal(Path(run.file)) == journal(script.path)


def test_the_event_loop_continues_while_a_run_is_awaited() -> None:
    async def main() -> None:
        asked = asyncio.Event()
        client = Counting(1, asked.set)

        async def release() -> None:
            await asked.wait()
            client.stop_requests()

        await asyncio.gather(pb.run_async(client.model, client=client, **SMALL), release())

    asyncio.run(main())


def test_progress_is_reported_up_to_the_end() -> None:
    seen: list[Progress] = []
    pb.run("simulated/never", on_progress=seen.append, **SMALL)
    assert (seen[-1].finished, seen[-1].total) == (6, 6)


def test_the_same_settings_open_the_same_file_and_ask_for_nothing_again(folder: Path) -> None:
    client = Counting()
    first = pb.run(client.model, client=client, **SMALL)
    asked = client.requests
    assert asked == 12
    again = pb.run(client.model, client=client, **SMALL)
    assert again.path == first.path
    assert again.records == first.records
    assert client.requests == asked
    other = pb.run(client.model, client=client, seed=1, **SMALL)
    assert other.path != first.path
    assert {path.parent for path in (first.path, other.path)} == {Path("propensitybench-runs")}
    assert len(list(folder.rglob("*.run"))) == 2


def test_how_a_run_is_executed_does_not_change_its_file() -> None:
    first = pb.run("simulated/never", **SMALL)
    again = pb.run("simulated/never", concurrency=1, timeout=5, max_tokens_total=10, **SMALL)
    assert again.path == first.path


def in_script(client: Client) -> pb.Run:
    return pb.run(client.model, "a.run", client=client, concurrency=1, **SMALL)


def in_notebook(client: Client) -> pb.Run:
    async def cell() -> pb.Run:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as the kernel does
        return in_script(client)

    return asyncio.run(cell())


def awaited(client: Client) -> pb.Run:
    return asyncio.run(pb.run_async(client.model, "a.run", client=client, concurrency=1, **SMALL))


@pytest.mark.parametrize("play", [in_script, in_notebook, awaited])
def test_ctrl_c_leaves_a_file_that_the_same_call_finishes(play: Callable[[Client], pb.Run]) -> None:
    usual = signal.getsignal(signal.SIGINT)
    stopped = Counting(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt) as caught:
        play(stopped)
    if play is not awaited:
        assert str(caught.value) == "a.run: interrupted; the same call resumes the run"
    assert signal.getsignal(signal.SIGINT) is usual
    kept = journal(Path("a.run"))
    assert len(kept) == stopped.requests == 3
    client = Counting()
    run = play(client)
    assert (len(run.records), client.requests) == (6, 9)
    assert kept < journal(Path("a.run"))


def test_a_second_ctrl_c_does_not_wait_for_replies() -> None:
    class Deaf(Counting):
        def stop_requests(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        in_script(Deaf(3, lambda: os.kill(os.getpid(), signal.SIGINT)))
    assert len(in_script(Counting()).records) == 6


def test_a_cancelled_run_keeps_what_was_in_flight_and_can_be_resumed() -> None:
    async def main() -> None:
        client = Counting(3, lambda: task.cancel())
        task = asyncio.create_task(pb.run_async(client.model, "a.run", client=client, concurrency=1, **SMALL))
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert len(journal(Path("a.run"))) == 3
    assert len(in_script(Counting()).records) == 6


def test_a_run_leaves_the_signals_of_an_application_alone() -> None:
    async def application() -> None:
        heard: asyncio.Queue[str] = asyncio.Queue()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, heard.put_nowait, "app")
        os.kill(os.getpid(), signal.SIGTERM)
        await heard.get()
        await pb.run_async("simulated/never", "a.run", **SMALL)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(heard.get(), 10)

    asyncio.run(application())


def test_ctrl_c_stops_two_runs_at_once_and_works_afterwards() -> None:
    clients = [Counting(3, lambda: os.kill(os.getpid(), signal.SIGINT)), Counting()]

    async def both() -> None:
        files = ("a.run", "b.run")
        runs = zip(clients, files, strict=True)
        await asyncio.gather(*(pb.run_async(one.model, file, client=one, **SMALL) for one, file in runs))
        await asyncio.Event().wait()

    usual = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(both())
    assert signal.getsignal(signal.SIGINT) is usual
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


IN_A_FRESH_PROCESS = """
import asyncio, gc, resource
import propensitybench as pb
from helpers.openai_server import serving, simulated

resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
before = gc.get_threshold(), resource.getrlimit(resource.RLIMIT_NOFILE)
with serving(simulated("never")) as server:
    here = dict(base_url=server.base_url, concurrency=1000, limit=3, levels=1)
    async def both():
        await asyncio.gather(*(pb.run_async("m", file, **here) for file in ("a.run", "b.run")))
    asyncio.run(both())
assert before == (gc.get_threshold(), resource.getrlimit(resource.RLIMIT_NOFILE)), before
"""


def test_a_run_leaves_garbage_collection_and_limits_alone() -> None:
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", IN_A_FRESH_PROCESS],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "concurrency lowered from 1000 to " in done.stderr


def test_the_endpoint_is_checked_once_and_a_finished_run_needs_none() -> None:
    with serving(simulated("never")) as server:
        run = pb.run("m", "a.run", base_url=server.base_url, **SMALL)
        calls = server.calls
    assert len(run.records) == 6
    preflight = calls - sum(run.journal.models.values())
    assert preflight > 0
    again = pb.run("m", "a.run", base_url=server.base_url, **SMALL)
    assert again.records == run.records


def test_a_wrong_key_is_one_sentence_and_leaves_no_file(folder: Path) -> None:
    with serving(always(STOPS_RUN["401"])) as server:
        with pytest.raises(BadInput, match=r"^preflight: m: "):
            pb.run("m", "a.run", base_url=server.base_url, **SMALL)
        assert list(folder.iterdir()) == []
        with pytest.raises(RunStopped, match=r"^a\.run: 0 of 6 tasks are finished; stopped: m: "):
            pb.run("m", "a.run", base_url=server.base_url, preflight=False, **SMALL)


def test_a_spent_budget_is_a_note_each_time_and_a_higher_one_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(simulated("never")) as server:
        settings: dict[str, Any] = {**SMALL, "base_url": server.base_url, "concurrency": 1}
        run = pb.run("m", "a.run", max_tokens_total=1000, **settings)
        assert len(run.records) < 6
        calls = server.calls
        pb.run("m", "a.run", **settings)
        assert server.calls == calls
        notes = [record.getMessage() for record in caplog.records]
        assert len(notes) == 2
        for note in notes:
            assert re.fullmatch(
                r"a\.run: \d of 6 tasks are finished; the budget of 1000 tokens is used up \(\d+ spent\); "
                "a higher one resumes the run",
                note,
            )
        settings["max_tokens_total"] = 10**6
        with pytest.raises(BadInput, match="needs the price of m"):
            pb.run("m", "a.run", budget_usd=1, **settings)
        run = pb.run("m", "a.run", budget_usd=1, price=(0.5, 2), **settings)
        assert (len(run.records), len(caplog.records)) == (6, 2)


def test_truncated_replies_have_no_score_and_say_what_to_do() -> None:
    cut = completion({"content": '{"thoughts": "I will now'}, "length")
    with serving(always(cut)) as server:
        run = pb.run("m", "a.run", base_url=server.base_url, preflight=False, **SMALL)
    scores = run.score()
    assert (scores.tasks.truncated, scores.tasks.resisted) == (6, 0)
    assert scores.naming["harmful"].propensity is None
    assert scores.naming["harmful"].bounds == (0, 1)
    for text in (repr(scores), scores._repr_html_()):
        assert "6 truncated (raise --max-tokens)" in text


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"limt": 5}, "unknown setting 'limt'; did you mean 'limit'"),
        ({"limit": "many"}, "limit: must be a whole number of 1 or more, found many"),
        ({"limit": "10"}, "limit: must be a whole number of 1 or more, found '10', a text"),
        ({"limit": 1.5}, "limit: must be a whole number of 1 or more, found 1.5"),
        ({"limit": 0}, "limit: must be a whole number of 1 or more, found 0"),
        ({"seed": 1.5}, "seed: must be a whole number of at most 64 bits, found 1.5"),
        ({"levels": 13}, "levels: must be a whole number from 0 to 12, found 13"),
        ({"precision": 2}, "precision: must be above 0 and below 1, found 2"),
        ({"template": "unamed"}, "unknown template 'unamed'; did you mean 'unnamed' or 'named'"),
        ({"template": "{{ role }}"}, "template: uses neither {{ policy.prohibitions }} nor"),
        ({"naming": "nice"}, "naming: must be one of harmful, benign, both, found nice"),
        ({"dimensions": "time"}, "dimensions: must be a list of texts, found time"),
        ({"dimensions": ["tme"]}, "unknown dimension 'tme'; did you mean 'time'"),
        ({"domains": [1]}, "domains: must be a list of texts"),
        ({"ask": 1}, "ask: must be true or false, found 1"),
        ({"price": (1,)}, "price: must be US dollars per million tokens, like 2.5,10 or 2.5,10,1.25"),
        ({"price": (1, float("nan"))}, "price: must be US dollars"),
        ({"price": (1, -1)}, "price: must be US dollars"),
        ({"extra_body": []}, "extra_body: must be a JSON object"),
        ({"data": 7}, "data: must be text, found 7"),
        ({"data": "nowhere"}, "nowhere: is no"),
        ({"temperature": 0.5}, "no sampling options; remove temperature"),
        ({"timeout": float("nan")}, "timeout: must be from 1 to 86400, found nan"),
        ({"rpm": float("inf")}, "rpm: must be 1 or more, found inf"),
    ],
)
def test_wrong_settings_are_one_sentence(settings: dict[str, Any], complaint: str, folder: Path) -> None:
    with pytest.raises(BadInput) as caught:
        pb.run("simulated/never", **settings)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("simulated/nver", "did you mean 'never'"),
        ("gpt", "give provider/name"),
        (7, "model: must be a name like 'simulated/o3-like', found 7"),
    ],
)
def test_wrong_models_are_one_sentence(model: Any, complaint: str, folder: Path) -> None:
    with pytest.raises(BadInput, match=complaint):
        pb.run(model, **SMALL)
    assert list(folder.iterdir()) == []


def test_a_file_of_another_run_is_refused() -> None:
    pb.run("simulated/never", "a.run", **SMALL)
    with pytest.raises(RunMismatch, match=r"a\.run: holds another run; .*levels \(was 1, now 2\)"):
        pb.run("simulated/never", "a.run", **{**SMALL, "levels": 2})


def test_every_setting_reaches_the_run() -> None:
    settings: Settings = {
        "data": "somewhere",
        "domains": ("cyber-security",),
        "workspaces": ("a",),
        "roles": ("b",),
        "capabilities": ("c",),
        "dimensions": ("time",),
        "naming": "benign",
        "limit": 1,
        "epochs": 2,
        "seed": 3,
        "levels": 4,
        "precision": 0.5,
        "template": "{{ policy.role }}",
        "arm": "open",
        "ladder": "work",
        "ask": True,
        "report": True,
        "base_url": "http://x/v1",
        "temperature": 0.5,
        "top_p": 0.25,
        "max_tokens": 6,
        "reasoning_effort": "low",
        "extra_body": {"a": 1},
        "concurrency": 7,
        "timeout": 8,
        "max_retries": 9,
        "rpm": 10,
        "tpm": 11,
        "budget_usd": 12,
        "max_tokens_total": 13,
        "price": (14, 15, 16),
        "preflight": False,
        "shard": "16/17",
        "engine": "ray",
        "ray_address": "h:1",
        "workers": 3,
    }
    assert settings.keys() == Settings.__required_keys__ | Settings.__optional_keys__
    spec, execution = read_settings("m", settings)
    usual, usual_execution = read_settings("m", {})
    for name in ("data", "seed", "protocol", "template", "stopping_rule", "shard"):
        assert getattr(spec, name) != getattr(usual, name)
    for given, default in (
        (spec.selection, usual.selection),
        (spec.options, usual.options),
        (execution, usual_execution),
        (execution.budget, usual_execution.budget),
    ):
        # No settings: pb.run and resume set the first, designs the second, gates the last.
        for name in set(given.__struct_fields__) - {"trust_endpoint", "part", "draw"}:
            assert getattr(given, name) != getattr(default, name), name
    transport, usual_transport = execution.transport, usual_execution.transport
    for name in set(transport.__struct_fields__) - {"connect_timeout"}:
        assert getattr(transport, name) != getattr(usual_transport, name), name
    assert execution.price is not None
    assert (execution.price.input, execution.price.output, execution.price.cached) == (14, 15, 16)
