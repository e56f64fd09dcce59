"""Data files and Inspect logs of others: every bad one gets one sentence, soon, and harms nothing."""

import ast
import json
import os
import random
import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from helpers.data_mutations import mutated_bytes, mutated_json
from helpers.fuzzing import no_hang, use_each
from helpers.program import call
from helpers.runs import finish
from helpers.scenario_data import WORKSPACE, Json, edit_published, published_copy, sound_file

import propensitybench
from propensitybench.curation.validate import validate_dataset
from propensitybench.engine import RunSpec, create_run
from propensitybench.errors import BadInput
from propensitybench.pressure.export import write_own
from propensitybench.runs import StoredRun, read_runs
from propensitybench.runs.comparison import read_index
from propensitybench.runs.settings import read_template
from propensitybench.scenarios import Selection, read_dataset, scenario_id
from propensitybench.store import RunFile, mismatches

SOURCE = Path(propensitybench.__file__).parent
OWN = f"{WORKSPACE}/Project-Manager.json"
PUBLISHED = "workspace/scenarios_messages.json"


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_link_to_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def make_sparse_terabyte(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**40)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (make_pipe, r"cannot be read \(a pipe, not a regular file\)"),
    "link to a pipe": (make_link_to_pipe, r"cannot be read \(a pipe, not a regular file\)"),
    "link to /dev/zero": (make_link_to_zeros, r"cannot be read \(a device, not a regular file\)"),
    "socket": (make_socket, r"cannot be read \(a socket, not a regular file\)"),
    "sparse terabyte": (make_sparse_terabyte, r"is larger than \d+ MiB"),
    "folder": (Path.mkdir, r"cannot be read \(Is a directory\)"),
    "nothing": (lambda path: path.symlink_to("nowhere"), r"cannot be read \(No such file or directory\)"),
}
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "role file": (OWN, lambda path: read_dataset(path.parents[2])),
    "published file": (PUBLISHED, lambda path: read_dataset(path.parents[1])),
    "--template": ("template", lambda path: read_template(str(path))),
    "--index": ("index", read_index),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_only_regular_files_up_to_a_size_are_read(
    tmp_path: Path, kind: str, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, read = READERS[reader]
    make, reason = KINDS[kind]
    monkeypatch.chdir(tmp_path)  # a socket's path has at most 108 characters
    path = Path("data", name)
    path.parent.mkdir(parents=True)
    make(path)
    with no_hang(), pytest.raises(BadInput, match=f"{path.name}.*{reason}") as caught:
        read(path)
    assert "\n" not in str(caught.value).removeprefix("data: 1 issue in the data:\n")


@pytest.mark.parametrize(
    ("command", "kind"),
    [("score", "pipe"), ("verify", "link to /dev/zero"), ("show", "socket"), ("resume", "folder")],
)
def test_what_is_not_a_file_is_not_a_run(
    tmp_path: Path, kind: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    KINDS[kind][0](Path("a.run"))
    done = call(command, "a.run")  # which kills what hangs
    assert done.code == 2
    assert len(done.err.splitlines()) == 1


def test_a_pipe_in_a_folder_of_runs_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.eval")
    os.mkfifo(tmp_path / "b.json")
    with no_hang(), pytest.raises(BadInput, match="holds neither a run file nor an Inspect log"):
        read_runs([tmp_path])


def unknown_output(tools: Json) -> None:
    tools["getter_functions"][1]["output_arguments"].append("stranger")


def unknown_argument(tools: Json) -> None:
    tools["getter_functions"][1]["input_arguments"].append("stranger")


def unknown_aligned_argument(tools: Json) -> None:
    tools["target_function"]["input_arguments"].append("stranger")


def misaligned_is_a_getter(tools: Json) -> None:
    tools["trigger_function"]["harmful_name"] = tools["getter_functions"][0]["name"]


def misaligned_is_aligned(tools: Json) -> None:
    tools["trigger_function"]["neutral_name"] = tools["target_function"]["name"]


def aligned_is_a_getter(tools: Json) -> None:
    tools["getter_functions"][2]["name"] = tools["target_function"]["name"]


NAMED_TWICE = "two tools of this scenario are called"
UNPLAYABLE: dict[str, tuple[Callable[[Json], None], str, str]] = {
    "output": (
        unknown_output,
        "getter_functions[1].output_arguments",
        "'stranger' is neither known nor unknown",
    ),
    "argument": (
        unknown_argument,
        "getter_functions[1].input_arguments",
        "'stranger' is neither known nor unknown",
    ),
    "aligned argument": (
        unknown_aligned_argument,
        "target_function.input_arguments",
        "'stranger' is neither known nor unknown",
    ),
    "harmful name": (
        misaligned_is_a_getter,
        "trigger_function.harmful_name",
        NAMED_TWICE,
    ),
    "benign name": (
        misaligned_is_aligned,
        "trigger_function.neutral_name",
        NAMED_TWICE,
    ),
    "aligned name": (aligned_is_a_getter, "target_function.name", NAMED_TWICE),
}


@pytest.mark.parametrize("case", UNPLAYABLE)
def test_a_published_scenario_that_cannot_be_played_is_refused_with_its_place(
    tmp_path: Path, case: str
) -> None:
    edit, place, words = UNPLAYABLE[case]
    path = published_copy(tmp_path / "data")
    edit_published(path, lambda entry: edit(entry["functions"]))
    with pytest.raises(BadInput) as caught:
        read_dataset(tmp_path / "data")
    assert f"village_well_second_tranche.functions.{place}: " in str(caught.value)
    assert words in str(caught.value)


def test_an_unplayable_scenario_that_the_filters_leave_out_does_no_harm(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    edit_published(path, lambda entry: unknown_output(entry["functions"]))
    selection = Selection(roles=("Portfolio-Manager",))
    assert len(read_dataset(tmp_path, selection.takes).scenarios) == 1


def test_a_getter_twice_is_a_warning(tmp_path: Path) -> None:
    path = published_copy(tmp_path)

    def repeat(entry: Json) -> None:
        getters = entry["functions"]["getter_functions"]
        getters.append(dict(getters[0]))

    edit_published(path, repeat)
    (warning,) = read_dataset(tmp_path).warnings
    assert "getter_functions[5].name: " in warning
    assert NAMED_TWICE in warning


@cache
def published_content() -> Json:
    with TemporaryDirectory() as folder:
        loaded: Json = json.loads(published_copy(Path(folder)).read_text(encoding="utf-8"))
        return loaded


def use_damaged_data(folder: Path, seed: int) -> None:
    """Validates, exports and plays a data folder with a damaged file; raises `BadInput` if it is refused."""
    rng = random.Random(seed)
    is_own = rng.random() < 0.5
    path = folder / "data" / (OWN if is_own else PUBLISHED)
    content = sound_file() if is_own else published_content()
    path.parent.mkdir(parents=True)
    if rng.random() < 0.25:
        path.write_bytes(mutated_bytes(json.dumps(content).encode(), rng))
    else:
        path.write_bytes(mutated_json(content, rng, rng.choice((1, 1, 1, 2, 4))))
    validate_dataset(folder / "data")
    dataset = read_dataset(folder / "data")
    write_own(dataset, folder / "own")
    assert sorted(map(scenario_id, read_dataset(folder / "own").scenarios)) == sorted(
        map(scenario_id, dataset.scenarios)
    )
    run = folder / "a.run"
    create_run(RunSpec("simulated/o3-like", folder / "data", Selection(limit=2)), run)
    finish(run)
    tasks = StoredRun(run).score().tasks
    assert (tasks.total, tasks.errored, tasks.unplayed) == (4, 0, 0)
    with RunFile.open(run) as file:
        assert list(mismatches(file)) == []


@pytest.mark.slow
def test_damaged_data_is_refused_or_can_be_played(tmp_path: Path) -> None:
    found = use_each(tmp_path, range(30), use_damaged_data)
    assert found.failures == {}
    assert 3 < found.accepted < 27


ROOMS = ("scenarios", "curation", "taxonomy", "pressure", "inspect_adapter", "runs", "cli")


def test_no_other_code_reads_a_file_that_a_user_names() -> None:
    """Everything else is read with `propensitybench.files`, or is the package's own data."""
    found = []
    for path in sorted(file for room in ROOMS for file in (SOURCE / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            reads = called.endswith((".read_text", ".read_bytes")) and "resources." not in called
            modes = [ast.unparse(value) for value in node.args]
            writes = [m for m in modes if m.startswith(("'w", "'x", "'a"))]
            opens = (called in ("open", "io.open") and not writes) or (
                called.endswith(".open") and modes[:1] in (["'rb'"], ["'r'"])
            )
            if reads or opens:
                found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert found == []
