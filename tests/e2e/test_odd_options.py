"""Every option of every command with values that make no sense: a sentence and an exit code, never a bug."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import typer
from helpers.program import argv, call
from helpers.runs import finish, make
from helpers.scenario_data import SOUND

from propensitybench.cli.app import COMMANDS, build

EEE: Final = ("--as", "every-eval-ever", "--organization", "A", "--relationship", "other", "--out", "eee")
# What a command needs beside the option that is tried.
NEEDS: Final[Mapping[str, Sequence[str]]] = {
    "demo": ["--out", "demo"],
    "run": ["--model", "simulated/never", "--run", "new.run", "--data", "data", "--limit", "1"],
    "resume": ["good.run"],
    "score": ["good.run"],
    "compare": ["good.run"],
    "findings": ["good.run"],
    "gate": ["good.run", "good.run"],
    "figures": ["good.run", "--out", "figures", "--format", "svg"],
    "report": ["good.run", "--out", "report", "--no-figures"],
    "board": ["good.run", "--out", "board"],
    "record": ["good.run", *EEE],
    "merge": ["good.run", "--run", "merged.run"],
    "verify": ["good.run"],
    "show": ["good.run"],
    "watch": ["good.run"],
    "judge": ["good.run", "--judge", "keyless/words", "--question", "awareness"],
    "monitor": ["good.run", "--monitor", "keyless/words"],
    "label": ["good.run", "--question", "awareness", "--as", "Ann"],
    "export": ["good.run"],
    "data validate": [],
    "data stats": [],
    "data list": [],
    "data show": ["close_books"],
    "data croissant": ["--data", "data"],
    "data export": ["--out", "exported"],
    "play": [],
    "probe": ["good.run"],
    "experiment new": ["new.toml"],
    "experiment plan": ["small.toml", "--simulate", "0"],
    "experiment run": ["small.toml", "--out", "study"],
    "experiment analyse": ["folder"],
    "experiment report": ["folder", "--out", "page"],
    "generate plan": ["--domain", "cyber-security", "--out", "planned"],
    "generate write": ["folder", "--model", "somebody"],
    "generate check": ["folder"],
    "generate read": ["folder", "--judge", "somebody", "--judge", "somebody"],
    "generate accept": ["folder", "--out", "accepted"],
    "generate status": ["folder"],
}
NUMBERS: Final = ("0", "-1", "nan", "inf", "-inf", "1e400", "1e-400", "9" * 40, "0x10", "1_000", "1,5")
TEXTS: Final = (
    "", " ", "x" * 20_000, "\u202e\x1b[31m\u0661\U0001f600", "NUL\0", "\udcff", "{", "[" * 5000, "null",
    '{"a":' * 900 + "1" + "}" * 900, "folder", "/", "no/such/place", "/dev/null", "fifo", "--", "-",
)  # fmt: skip
SMALL: Final = """
format = "propensitybench-experiment/1"
name = "small"
models = ["simulated/never"]
sample = { data = "data", naming = "harmful", limit = 1 }
"""
# These take their time whatever the option: a demonstration of 1,440 tasks, figures, the whole data.
SLOW: Final = frozenset(("demo", "figures", "data validate", "data export"))
# "stated" imports Inspect for each value, and "simulate" would play a thousand experiments.
FEW: Final[Mapping[str, Sequence[str]]] = {
    "stated": ("", "folder", "fifo"),
    "simulate": ("0", "-1", "nan", ""),
}


@cache
def commands() -> dict[str, Any]:
    """Every command by its words."""
    root: Any = typer.main.get_command(build(list(COMMANDS)))
    found: dict[str, Any] = {}
    for name, command in root.commands.items():
        below = getattr(command, "commands", None)
        found |= {f"{name} {word}": one for word, one in below.items()} if below else {name: command}
    return found


@pytest.mark.parametrize("name", commands())
def test_help_shows_words_and_not_types(name: str) -> None:
    command = commands()[name]
    text = command.get_help(command.make_context(name, [], resilient_parsing=True))
    assert not re.search(r"[<>{}]|\[\[|list\[|x>=", text), text


def test_the_list_of_commands_has_whole_sentences() -> None:
    root: Any = typer.main.get_command(build([]))
    text = " ".join(root.get_help(root.make_context("propensitybench", [], resilient_parsing=True)).split())
    assert all(sentence.partition(". ")[0].rstrip(".") in text for sentence in COMMANDS.values())


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--naming", "evil", "'evil' is not one of 'harmful', 'benign', 'both'."),
        ("--limit", "x", "'x' is not a whole number."),
        ("--rpm", "x", "'x' is not a number."),
    ],
)
def test_a_wrong_value_is_named_and_not_its_type_in_python(option: str, value: str, sentence: str) -> None:
    with pytest.raises(typer.BadParameter) as raised:
        commands()["run"].make_context("run", [option, value])
    assert raised.value.message == sentence


def tried(name: str) -> Iterator[list[str]]:
    """What to call a command with: each option or argument with some values, and what it needs beside it.

    Every eighth value for an option, each option beginning at another one, so that each value is tried on
    options of every kind: all of them on all of them take five minutes.
    """
    for place, parameter in enumerate(commands()[name].params):
        if parameter.name == "help":
            continue
        for value in FEW.get(parameter.name, (*NUMBERS, *TEXTS)[place % 8 :: 8]):
            if parameter.param_type_name == "argument":
                yield [value, *NEEDS[name][1:]]
            else:
                yield [*NEEDS[name], f"{parameter.opts[0]}={value}"]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A finished run file."""
    path = make(tmp_path_factory.mktemp("good") / "good.run", limit=1)
    finish(path)
    return path.read_bytes()


@pytest.fixture
def folder(good: bytes, tmp_path: Path) -> Path:
    """A working directory with a good run file, data, an empty folder and a pipe."""
    (tmp_path / "good.run").write_bytes(good)
    (tmp_path / "folder").mkdir()
    shutil.copytree(SOUND, tmp_path / "data")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    return tmp_path


def assert_sentence(arguments: Sequence[str], folder: Path) -> None:
    done = call(*arguments, cwd=folder, env={"OPENAI_API_KEY": "", "PROPENSITYBENCH_API_KEY": ""})
    shown = [one[:60] for one in arguments]
    assert done.code in (0, 1, 2, 3), (shown, done)
    if done.code == 2:
        assert done.err.strip(), shown
    assert not re.search("[\x1b\u202e]", done.out + done.err), shown


def test_every_command_is_tried() -> None:
    assert commands().keys() == NEEDS.keys()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a named pipe")
@pytest.mark.parametrize("name", [name for name in NEEDS if name not in SLOW])
def test_odd_values_of_every_option(name: str, folder: Path) -> None:
    for arguments in tried(name):
        assert_sentence([*name.split(), *arguments], folder)
        for made in ("new.run", "merged.run"):
            (folder / made).unlink(missing_ok=True)


@pytest.mark.parametrize("name", ["run", "score", "generate plan"])
def test_words_that_are_no_options(name: str, folder: Path) -> None:
    for word in ("--nothing", "--out", "-x", "--json=1", "\udcff", "--=", "--run", "--model"):
        assert_sentence([*name.split(), *NEEDS[name], word], folder)
        for made in ("new.run", "merged.run"):
            (folder / made).unlink(missing_ok=True)


def test_an_extra_body_that_is_too_deep_is_a_sentence(folder: Path) -> None:
    for depth in (100, 900, 100_000):
        body = '{"a":' * depth + "1" + "}" * depth
        run = ("run", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--run", "new.run")
        done = call(*run, "--extra-body", body, cwd=folder)
        assert done.code == 2
        assert "nested at most 64 levels deep" in done.err
        assert len(done.err.splitlines()) == 1


def test_a_bug_is_a_sentence_and_a_file_with_its_traceback(folder: Path) -> None:
    hide = "import sys; sys.modules['polars'] = None; sys.argv[0] = 'propensitybench'; "
    program = [sys.executable, "-c", hide + "from propensitybench.cli import main; main()"]
    done = subprocess.run(
        [*program, "export", "good.run", "--format", "parquet"],
        cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": str(folder)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (70, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("propensitybench: internal error (ModuleNotFoundError: ")
    (saved,) = folder.glob("propensitybench-error-*.txt")
    assert line.endswith(f"please report this bug with the traceback in {saved}")
    assert "Traceback (most recent call last)" in saved.read_text()
    assert not (folder / "good.parquet").exists()
    assert not list(folder.glob(".*"))


@pytest.mark.slow
def test_arguments_as_the_system_gives_them(folder: Path) -> None:
    for word in (b"\xff", "\u202e".encode(), b"x" * 100_000):
        done = subprocess.run(
            [*(os.fsencode(one) for one in argv("score")), word], cwd=folder, capture_output=True, check=False
        )
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
