"""Inspect logs of others: bombs are refused before Inspect inflates them, and damage gets one sentence."""

import json
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from helpers.data_mutations import mutated_bytes, mutated_json
from helpers.fuzzing import no_hang, use_each
from inspect_adapter.exporting import export, mixed_run

from propensitybench.errors import BadInput
from propensitybench.files import MIB
from propensitybench.inspect_adapter.eval_export import COMPRESSION
from propensitybench.inspect_adapter.eval_limits import (
    MAX_MEMBER_MIB,
    VARIABLE,
)
from propensitybench.inspect_adapter.probe import read_answers
from propensitybench.runs import read_runs

METHODS = {"deflate": zipfile.ZIP_DEFLATED, "zstandard": COMPRESSION}
HEADER, SUMMARIES = "header.json", "summaries.json"


@cache
def sound_members() -> dict[str, bytes]:
    """The members of a log of ours."""
    with TemporaryDirectory() as folder:
        log = export(mixed_run(Path(folder, "a.run")), Path(folder, "logs"))[0]
        with zipfile.ZipFile(log) as archive:
            return {member.filename: archive.read(member) for member in archive.infolist()}


def write_log(path: Path, members: dict[str, bytes], method: int = COMPRESSION) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def add_bomb(path: Path, name: str, method: int, size: int) -> Path:
    """Adds a member of so many bytes that are all JSON; the file is a thousand times smaller."""
    with zipfile.ZipFile(path, "a") as archive:
        info = zipfile.ZipInfo(name)
        info.compress_type = method
        with archive.open(info, "w", force_zip64=True) as member:
            member.write(b"[")
            for _ in range(size // MIB):
                member.write(b"[]," * (MIB // 3))
            member.write(b"[]]")
    return path


@pytest.mark.parametrize(
    ("member", "method"),
    [(HEADER, "deflate"), (SUMMARIES, "zstandard"), ("_journal/start.json", "zstandard")],
)
def test_a_bomb_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, member: str
) -> None:
    monkeypatch.setenv(VARIABLE, "4")
    members = {name: content for name, content in sound_members().items() if name != member}
    path = add_bomb(write_log(tmp_path / "a.eval", members), member, METHODS[method], 6 * MIB)
    assert path.stat().st_size < MIB
    for read in (lambda: read_runs([path]), lambda: read_answers(path)):
        with no_hang(), pytest.raises(BadInput) as caught:
            read()
        assert f"{path}: '{member}' inflates to more than 4 MiB" in str(caught.value)
        assert f"if you trust this log, set {VARIABLE}=16 or more" in str(caught.value)


def test_a_bomb_among_the_samples_is_refused_when_it_has_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "4")
    names = [name for name in sound_members() if name.startswith("samples/")]
    refused = 0
    for name in names:
        members = {other: content for other, content in sound_members().items() if other != name}
        path = add_bomb(write_log(tmp_path / "a.eval", members), name, METHODS["deflate"], 6 * MIB)
        try:
            with no_hang():
                read_runs([path])
        except BadInput as error:
            assert f"{name!r} inflates to more than" in str(error)  # noqa: PT017 - not every sample is read
            refused += 1
    assert 0 < refused < len(names)


@pytest.mark.parametrize("method", METHODS)
def test_an_archive_that_lies_about_a_size_is_refused(tmp_path: Path, method: str) -> None:
    path = add_bomb(tmp_path / "a.eval", HEADER, METHODS[method], 100 * MIB)
    content = bytearray(path.read_bytes())
    directory = content.rindex(b"PK\x01\x02")
    struct.pack_into("<I", content, directory + 24, 20)  # "20 bytes, inflated"
    path.write_bytes(content)
    with no_hang(), pytest.raises(BadInput, match=r"cannot be read as an Inspect log of .*Bad CRC-32"):
        read_runs([path])


@pytest.mark.parametrize("value", ["0", "-1", "1e3", "many", "\u0663", "9" * 400])
def test_a_limit_that_is_not_a_number_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    path = write_log(tmp_path / "a.eval", sound_members())
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(BadInput, match=f"^{VARIABLE}: must be a number of MiB, like 256, found "):
        read_runs([path])


def test_a_large_log_in_the_json_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"version": 2, "status": "success"')
    with path.open("r+b") as file:
        file.truncate(4 * MAX_MEMBER_MIB * MIB + 1)
    with (
        no_hang(),
        pytest.raises(BadInput, match=f"has more than {4 * MAX_MEMBER_MIB} MiB; if you trust"),
    ):
        read_runs([path])


def use_damaged_log(folder: Path, seed: int) -> None:
    """Reads and scores a damaged log; raises `BadInput` if it is refused."""
    rng = random.Random(seed)
    path = folder / "a.eval"
    members = dict(sound_members())
    if rng.random() < 0.3:
        path.write_bytes(mutated_bytes(write_log(path, members).read_bytes(), rng))
    else:
        name = rng.choice((HEADER, SUMMARIES, rng.choice(list(members))))
        damage = rng.random()
        if damage < 0.1:
            del members[name]
        elif damage < 0.3:
            members[name] = mutated_bytes(members[name], rng)
        else:
            members[name] = mutated_json(json.loads(members[name]), rng, rng.choice((1, 1, 2, 4)))
        write_log(path, members, rng.choice(list(METHODS.values())))
    for run in read_runs([path]).runs:
        run.score()


@pytest.mark.parametrize("levels", [13, 10**9, -1])
def test_a_log_of_an_impossible_protocol_is_refused(levels: int, tmp_path: Path) -> None:
    header = json.loads(sound_members()[HEADER])
    header["eval"]["metadata"]["protocol"]["levels"] = levels
    path = write_log(tmp_path / "a.eval", sound_members() | {HEADER: json.dumps(header).encode()})
    with pytest.raises(BadInput, match="levels: must be from 0 to 12"):
        read_runs([path])


def nested(log: dict[str, Any]) -> bytes:
    """A log's JSON with a field nested too deeply."""
    return json.dumps(log | {"nested": "here"}).replace('"here"', "[" * 10_000 + "]" * 10_000).encode()


def refuse_in_little_memory(read: Callable[[], object]) -> None:
    """Not with the square of the nesting, as parsers need that give each value its place."""
    tracemalloc.start()
    with pytest.raises(BadInput, match="recursion limit exceeded at line 1"):
        read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * MIB


def test_a_sample_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    members = sound_members()
    samples = {name: nested(json.loads(members[name])) for name in members if name.startswith("samples/")}
    path = write_log(tmp_path / "a.eval", members | samples)
    refuse_in_little_memory(lambda: read_runs([path]))


def test_a_log_in_the_json_format_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(nested(json.loads(sound_members()[HEADER])))
    refuse_in_little_memory(lambda: read_runs([path]))
    refuse_in_little_memory(lambda: read_answers(path))


@pytest.mark.slow
def test_a_damaged_log_is_refused_or_can_be_scored(tmp_path: Path) -> None:
    found = use_each(tmp_path, range(40), use_damaged_log)
    assert found.failures == {}
    assert 4 < found.accepted < 36
