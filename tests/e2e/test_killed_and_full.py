"""Programs that are stopped, killed, or find the disk full: one sentence, and nothing half written."""

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from helpers.openai_server import STALL, serving
from helpers.program import argv, call, hear_interrupts, until
from helpers.runs import finish, make

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs signals")]

# What writes files, with the name of what it writes and arguments; RUN stands for a run file.
RUN = "a.run"
WHO = ("--organization", "A", "--relationship", "other")
WRITERS: dict[str, tuple[str, list[str]]] = {
    "jsonl": ("rows.jsonl", ["export", RUN, "--transcripts", "--out", "rows.jsonl"]),
    "parquet": ("rows.parquet", ["export", RUN, "--format", "parquet", "--out", "rows.parquet"]),
    "eval": ("logs", ["export", RUN, "--format", "eval", "--out", "logs"]),
    "report": ("report", ["report", RUN, "--out", "report", "--no-figures"]),
    "figures": ("figures", ["figures", RUN, "--out", "figures"]),
    "card": ("card.md", ["record", RUN, "--as", "model-card", "--out", "card.md"]),
    "records": ("eee", ["record", RUN, "--as", "every-eval-ever", *WHO, "--out", "eee"]),
    "data own": ("data", ["data", "export", "--layout", "own", "--out", "data"]),
    "data published": ("data", ["data", "export", "--out", "data"]),
}  # fmt: skip
# One for each way in which something is put into its place.
PLACES = ("jsonl", "eval", "report", "data own")
# A shell that runs the program with files of at most 4 KB, as on a disk that is nearly full. The signal that
# would end it is ignored, as Python does. Python itself would write its bytecode cut off there, and keep it.
NEARLY_FULL = ["sh", "-c", 'ulimit -f 8; PYTHONDONTWRITEBYTECODE=1 exec "$@"', "sh"]
# A job in the background, as a shell starts it: Ctrl-C is not for it.
BACKGROUND = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A finished run file, large enough for a writer to be killed in the middle."""
    path = make(tmp_path_factory.mktemp("runs") / RUN, "simulated/never", limit=30)
    finish(path)
    return path.read_bytes()


@pytest.fixture
def folder(played: bytes, tmp_path: Path) -> Path:
    (tmp_path / RUN).write_bytes(played)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def run_in(folder: Path, program: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_one_sentence_and_nothing_half_written(name: str, folder: Path) -> None:
    done = run_in(folder, [*NEARLY_FULL, *argv(*WRITERS[name][1])])
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "File too large" in done.stderr
    assert set(contents(folder)) == {RUN}
    assert call(*WRITERS[name][1], cwd=folder).code == 0


@pytest.mark.parametrize("name", ["report", "figures"])
def test_a_full_disk_keeps_what_was_to_be_replaced(name: str, folder: Path) -> None:
    assert call(*WRITERS[name][1], cwd=folder).code == 0
    before = contents(folder)
    assert run_in(folder, [*NEARLY_FULL, *argv(*WRITERS[name][1])]).returncode == 2
    assert contents(folder) == before


def test_a_full_disk_stops_a_run_with_a_sentence(tmp_path: Path) -> None:
    new = ("run", "--model", "simulated/never", "--run", "b.run", "--limit", "2")
    done = run_in(tmp_path, [*NEARLY_FULL, *argv(*new)])
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert contents(tmp_path) == {}


def test_standard_error_that_is_full_does_not_end_a_run(tmp_path: Path) -> None:
    arguments = argv("run", "--model", "simulated/never", "--run", "b.run", "--limit", "2", "--json")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(arguments, cwd=tmp_path, stderr=full, stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0
    assert b'"unplayed":0' in done.stdout


def test_a_reader_that_has_gone_ends_the_program_quietly(folder: Path) -> None:
    program = argv("show", RUN)
    for merged in ("", "2>&1"):
        shell = ["sh", "-c", f'"$@" {merged} | head -c 1 >/dev/null', "sh", *program]
        done = run_in(folder, shell)
        assert (done.returncode, done.stderr) == (0, "")


def stopped(process: "subprocess.Popen[str]", number: int, when: Callable[[], object]) -> str:
    """Sends a signal to a program as soon as something is the case; its standard error."""
    until(process, when)
    process.send_signal(number)
    return process.communicate(timeout=60)[1]


@pytest.mark.parametrize("shell", [[], BACKGROUND])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_preflight_is_a_sentence(number: int, shell: list[str], tmp_path: Path) -> None:
    if shell and number == signal.SIGINT:
        return  # that is what the background ignores
    with serving(lambda *_: STALL) as server:
        program = argv("run", "--model", "m", "--base-url", server.base_url, "--run", "a.run", "--limit", "1")
        process = subprocess.Popen(
            [*shell, *program],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_interrupts,
        )
        err = stopped(process, number, lambda: server.calls)
    assert (process.returncode, err) == (130, "propensitybench: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def drafts(folder: Path) -> list[Path]:
    return list(folder.rglob(".*.draft"))


def start(name: str, folder: Path) -> "subprocess.Popen[str]":
    program = argv(*WRITERS[name][1])
    return subprocess.Popen(program, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("name", "number"),
    [*((name, signal.SIGKILL) for name in PLACES), ("report", signal.SIGTERM), ("eval", signal.SIGINT)],
)
def test_a_stopped_writer_leaves_nothing_that_stays(name: str, number: int, folder: Path) -> None:
    process = start(name, folder)
    err = stopped(process, number, lambda: drafts(folder))
    if process.returncode == 0:
        pytest.skip("it was faster")
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert (process.returncode, err) == (130, "propensitybench: interrupted\n")
        assert set(contents(folder)) == {RUN}
    assert not (folder / WRITERS[name][0]).exists()
    done = call(*WRITERS[name][1], cwd=folder)
    assert done.code == 0, done.err
    assert drafts(folder) == []
    assert all(path.name in (RUN, WRITERS[name][0]) for path in folder.iterdir())


@pytest.mark.parametrize("name", PLACES)
def test_two_writers_of_one_place_give_one_whole_result(name: str, folder: Path) -> None:
    alone = folder / "alone"
    alone.mkdir()
    (alone / RUN).write_bytes((folder / RUN).read_bytes())
    assert call(*WRITERS[name][1], cwd=alone).code == 0
    expected = contents(alone)
    both = [start(name, folder), start(name, folder)]
    errors = [process.communicate(timeout=120)[1] for process in both]
    codes = [process.returncode for process in both]
    assert 0 in codes, errors
    assert set(codes) <= {0, 2}, errors
    assert all(len(text.splitlines()) <= 1 for text in errors), errors
    shown = {name: body for name, body in contents(folder).items() if not name.startswith("alone/")}
    assert shown == expected


def test_two_programs_never_play_one_run_file(tmp_path: Path) -> None:
    make(tmp_path / "b.run", limit=240)
    program = argv("resume", "b.run", "--concurrency", "1")
    both = [
        subprocess.Popen(program, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    errors = [process.communicate(timeout=120)[1] for process in both]
    codes = sorted(process.returncode for process in both)
    assert codes[0] == 0, errors
    assert codes[1] == 0 or "is in use by another program" in "".join(errors)
    assert call("verify", tmp_path / "b.run").code == 0
