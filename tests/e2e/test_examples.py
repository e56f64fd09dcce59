"""The examples for clusters, run by stand-ins: the test is the scheduler, and the machines are folders."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]
from helpers.installing import install
from helpers.openai_server import STALL, Answer, Json, Server, serving, simulated
from helpers.program import call, hear_interrupts, until
from helpers.runs import journal, scores

from propensitybench.store import RunFile

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")]
EXAMPLES: Final = Path(__file__).parents[2] / "examples"
SHARDS: Final = 3
CONCURRENCY: Final = 2


class World:
    """An endpoint, a shared folder, and programs on the PATH.

    Attributes:
        answers: how many replies the endpoint gives before it keeps everybody waiting.
    """

    def __init__(self, tmp_path: Path) -> None:
        self.tmp, self.shared, self.bin = tmp_path, tmp_path / "shared", tmp_path / "bin"
        self.shared.mkdir()
        self.answers = 10**9
        self.processes: list[subprocess.Popen[str]] = []
        self._inner = simulated("never")

    def answer(self, body: Json, number: int) -> Answer:
        return self._inner(body, number) if number <= self.answers else STALL

    def start(self, program: Sequence[object], env: Mapping[str, str] = {}) -> "subprocess.Popen[str]":
        """Starts a program in a session of its own."""
        process = subprocess.Popen(
            list(map(str, program)),
            cwd=self.tmp,
            env={
                **os.environ,
                "PATH": f"{self.bin}:{os.environ['PATH']}",
                "COLUMNS": "120",
                "KEEP_EVERY": "0.2",
                "HOSTNAME": "node",
                **env,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=hear_interrupts,
        )
        self.processes.append(process)
        return process

    def run(self, program: Sequence[object], env: Mapping[str, str] = {}) -> tuple[int, str]:
        """The exit code and the output of a program."""
        process = self.start(program, env)
        out = process.communicate(timeout=300)[0]
        return process.returncode, out

    def played(self) -> int:
        """The replies in the shards of the shared folder."""
        count = 0
        for path in self.shared.glob("shard-*.run"):
            with RunFile.open(path) as run:
                count += run.count("reply")
        return count


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    for process in world.processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def options(server: Server) -> list[str]:
    text = "--limit 24 --naming harmful --levels 1 --no-preflight"
    return [*text.split(), "--base-url", server.base_url, "--concurrency", str(CONCURRENCY)]


def check_whole(world: World, server: Server, whole: Path) -> None:
    """The merged run is the run that is played in one piece."""
    alone = world.tmp / "alone.run"
    assert call("run", "--model", "m", "--run", alone, *options(server)).code == 0
    assert journal(whole) == journal(alone)
    assert scores(whole) == scores(alone)


def element(world: World, job: Sequence[str], index: int, attempt: int = 1) -> "subprocess.Popen[str]":
    """An element of a job array, on a node of its own: bash runs the script, as `slurmstepd` does."""
    node = world.tmp / f"node-{index}-{attempt}"
    node.mkdir()
    env = {
        "SLURM_ARRAY_TASK_ID": str(index),
        "SLURM_ARRAY_TASK_COUNT": str(SHARDS),
        "SLURM_TMPDIR": str(node),
    }
    submitted = {"SLURM_ARRAY_JOB_ID": "77", "RESULTS": str(world.shared), "MODEL": "m"}
    return world.start(["bash", *job], {**env, **submitted})


def test_slurm_requeues_what_was_stopped_and_merges(world: World) -> None:
    """One element is signalled before its time is over, one dies with its node, one is cancelled."""
    log = world.tmp / "log"
    record = f"echo \"$0 $*\" >>'{log}'"
    install(
        world.bin,
        sbatch=f"{record}; echo RESULTS=$RESULTS MODEL=$MODEL >>'{log}'; echo '77;cluster'",
        scontrol=record,
    )
    with serving(world.answer) as server:
        submit = [EXAMPLES / "slurm/submit.sh", world.shared, "m", str(SHARDS), *options(server)]
        assert world.run(submit)[0] == 0
        array, names, merge, _ = log.read_text().splitlines()
        assert names == f"RESULTS={world.shared} MODEL=m"
        _, parsable, elements, *job = array.split()
        assert (parsable, elements) == ("--parsable", f"--array=0-{SHARDS - 1}")
        _, after, script = merge.split()
        assert after == "--dependency=afterany:77"
        log.unlink()

        world.answers = 20
        first = [element(world, job, index) for index in range(SHARDS)]
        in_flight = SHARDS * CONCURRENCY
        until(first[0], lambda: server.calls == 20 + in_flight and world.played() == 20)
        first[0].send_signal(signal.SIGUSR1)  # the script only, as `--signal=B:USR1`
        os.killpg(first[1].pid, signal.SIGKILL)
        os.killpg(first[2].pid, signal.SIGTERM)  # every process, as `scancel`
        for process in first:
            process.communicate(timeout=60)
        assert log.read_text().split()[1:] == ["requeue", "77_0"]
        assert first[0].returncode == first[2].returncode == 130
        merging = {"RESULTS": str(world.shared), "TMPDIR": str(world.tmp)}
        code, out = world.run(["bash", script], merging)
        assert code == 0, out
        assert "submit.sh with the same options continues the run" in out
        assert "resume" not in out
        world.answers = 10**9
        for process in [element(world, job, index, attempt=2) for index in range(SHARDS)]:
            out = process.communicate(timeout=300)[0]
            assert process.returncode == 0, out
        assert server.calls == world.played() + in_flight, "a reply was asked for again"

        code, out = world.run(["bash", script], merging)
        assert code == 0, out
        check_whole(world, server, world.shared / "whole.run")
    assert json.loads((world.shared / "scores.json").read_text())["runs"][0]["tasks"]["total"] == 24
    left = {path.name for path in world.shared.iterdir()}
    assert left == {"scores.json", "shard-0.run", "shard-1.run", "shard-2.run", "whole.run"}
    assert not list(world.tmp.glob("merge.*"))
    assert [path.parent.name for path in world.tmp.glob("node-*/*")] == ["node-1-1"], "only of the dead node"


def objects(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / "kubernetes" / name).read_text(encoding="utf-8"))


def container(job: Any) -> Any:
    (one,) = job["spec"]["template"]["spec"]["containers"]
    return one


def test_kubernetes_plays_a_shard_in_each_pod_and_merges(world: World) -> None:
    install(world.bin)
    shards, merge = container(objects("shards.yaml")), container(objects("merge.yaml"))
    with serving(world.answer) as server:

        def pod(one: Any, index: int) -> "subprocess.Popen[str]":
            given = {variable["name"]: variable["value"] for variable in one["env"]}
            assert given["RESULTS"] != given["SCRATCH"]
            scratch = tempfile.mkdtemp(dir=world.tmp)
            env = {**given, "RESULTS": str(world.shared), "SCRATCH": scratch, "MODEL": "m", "SHARDS": "2"}
            env |= {"OPTIONS": " ".join(options(server)), "JOB_COMPLETION_INDEX": str(index)}
            return world.start([*one["command"], *one["args"]], env)

        world.answers = 5
        evicted = pod(shards, 0)
        until(evicted, lambda: server.calls == 5 + CONCURRENCY)
        evicted.send_signal(signal.SIGTERM)  # the first process of the pod only
        evicted.communicate(timeout=60)
        assert evicted.returncode == 130
        world.answers = 10**9
        for one, index in ((shards, 0), (shards, 1), (merge, 0)):
            process = pod(one, index)
            out = process.communicate(timeout=300)[0]
            assert process.returncode == 0, out
        assert server.calls == world.played() + CONCURRENCY, "a reply was asked for again"
        check_whole(world, server, world.shared / "whole.run")


def test_the_kubernetes_objects_fit_together() -> None:
    shards, merge, results = (objects(name) for name in ("shards.yaml", "merge.yaml", "results.yaml"))
    spec, pod, one = shards["spec"], shards["spec"]["template"]["spec"], container(shards)
    env = {variable["name"]: variable["value"] for variable in one["env"]}
    assert spec["completionMode"] == "Indexed", "only then a pod has JOB_COMPLETION_INDEX"
    assert str(spec["completions"]) == env["SHARDS"]
    assert pod["restartPolicy"] == "Never", "podFailurePolicy demands it"
    for rule in spec["podFailurePolicy"]["rules"]:
        assert rule.get("onExitCodes", {"containerName": one["name"]})["containerName"] == one["name"]
    for job in (shards, merge):
        pod, one = job["spec"]["template"]["spec"], container(job)
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        places = {mount["name"]: mount["mountPath"] for mount in one["volumeMounts"]}
        env = {variable["name"]: variable["value"] for variable in one["env"]}
        assert volumes.keys() == places.keys()
        assert (places["results"], places["scratch"]) == (env["RESULTS"], env["SCRATCH"])
        assert volumes["results"]["persistentVolumeClaim"]["claimName"] == results["metadata"]["name"]
        assert "emptyDir" in volumes["scratch"]


def test_ssh_plays_a_shard_on_each_host_and_merges(world: World) -> None:
    hosts = world.tmp / "hosts"
    for name in ("ada", "bert"):
        (hosts / name).mkdir(parents=True)
    install(
        world.bin, ssh=f'[ "$1" = -n ] || exit 255\ncd \'{hosts}\'/"$2" || exit 255\nshift 2\nexec sh -c "$*"'
    )
    (world.tmp / "hosts.txt").write_text("ada\nbert\ncleo\n")
    quoted = ["--extra-body", '{"user": "it\'s $HOME"}']
    with serving(world.answer) as server:
        command = [
            EXAMPLES / "ssh/run.sh",
            "hosts.txt",
            world.shared,
            "--model",
            "m",
            *options(server),
            *quoted,
        ]
        code, out = world.run(command, {"REMOTE": "runs"})
        assert code == 1
        assert "shard 3 is not finished, see" in out
        assert "the same command again continues" in out
        asked = server.calls
        (hosts / "cleo").mkdir()
        code, out = world.run(command, {"REMOTE": "runs"})
        assert code == 0, out
        assert server.calls == world.played() > asked
        assert {request["user"] for request in server.requests()} == {"it's $HOME"}
        check_whole(world, server, world.shared / "whole.run")
