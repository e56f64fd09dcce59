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
from helpers.runs import finish, make
from inspect_adapter.exporting import export, mixed_run

from propensitybench.errors import BadInput
from propensitybench.files import MIB
from propensitybench.inspect_adapter.eval_export import COMPRESSION
from propensitybench.inspect_adapter.eval_limits import (
    MAX_MEMBER_MIB,
    MAX_RATIO,
    VARIABLE,
    CheckedLog,
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
    [
        (HEADER, "deflate"),
        (SUMMARIES, "zstandard"),
        ("_journal/start.json", "zstandard"),
        ("_journal/summaries/1.json", "deflate"),
    ],
)
def test_a_bomb_is_refused_with_what_to_do(tmp_path: Path, method: str, member: str) -> None:
    members = {name: content for name, content in sound_members().items() if name != member}
    path = add_bomb(
        write_log(tmp_path / "a.eval", members), member, METHODS[method], (MAX_MEMBER_MIB + 6) * MIB
    )
    assert path.stat().st_size < MIB
    for read in (lambda: read_runs([path]), lambda: read_answers(path)):
        with no_hang(), pytest.raises(BadInput) as caught:
            read()
        assert f"{path}: '{member}' inflates to more than {MAX_RATIO} times its size" in str(caught.value)
        assert f"if you trust this log, set {VARIABLE}=256 or more" in str(caught.value)


def test_a_bomb_among_the_samples_is_refused_when_it_has_to_be_read(tmp_path: Path) -> None:
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


def test_what_is_inflated_counts_and_not_what_the_archive_says(tmp_path: Path) -> None:
    path = add_bomb(tmp_path / "a.eval", HEADER, zipfile.ZIP_DEFLATED, 100 * MIB)
    content = bytearray(path.read_bytes())
    directory = content.rindex(b"PK\x01\x02")
    struct.pack_into("<I", content, directory + 24, 20)  # "20 bytes, inflated"
    path.write_bytes(content)
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo(HEADER).file_size == 20
    with no_hang(), pytest.raises(BadInput, match=r"header\.json' inflates to more than 100 times its size"):
        read_runs([path])


@pytest.mark.slow
def test_the_user_can_raise_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = (MAX_MEMBER_MIB + 1) * MIB
    header = json.loads(sound_members()[HEADER])
    # Random digits compress to a half, so only the size is too large.
    header["eval"]["metadata"]["padding"] = random.Random(0).randbytes(large // 2).hex()
    path = write_log(tmp_path / "a.eval", sound_members() | {HEADER: json.dumps(header).encode()})
    with pytest.raises(BadInput, match=f"'header.json' inflates to more than {MAX_MEMBER_MIB} MiB"):
        read_runs([path])
    monkeypatch.setenv(VARIABLE, "256")
    assert len(read_runs([path]).runs) == 1
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(BadInput, match=r"inflates to more than 1 MiB; .*=4 or more"):
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


@pytest.mark.slow
def test_the_log_of_a_large_run_is_far_below_the_limits(tmp_path: Path) -> None:
    run = make(tmp_path / "a.run", "simulated/never", limit=40)  # 80 tasks, all of them to level 12
    finish(run)
    logs = export(run, tmp_path / "logs")
    for log in logs:
        with zipfile.ZipFile(log) as archive:
            members = archive.infolist()
        assert len(members) > 40
        assert max(member.file_size for member in members) < MIB
        assert max(member.file_size / member.compress_size for member in members) < MAX_RATIO / 2
    assert sum(run.score().tasks.total for run in read_runs(logs).runs) == 80


def other_end(content: bytes) -> bytes:
    """The archive with a second end, which says that another archive in front is the log."""
    return content + content[-22:-2] + struct.pack("<H", 0)


def comment(content: bytes) -> bytes:
    return content[:-2] + struct.pack("<H", 4) + b"note"


def prefix(content: bytes) -> bytes:
    return b"PK\x03\x04" + bytes(60) + content


def locator(content: bytes) -> bytes:
    """The archive with an end of 64 bits that names another directory, which not every reader looks at."""
    end = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 0, 0, 0, len(content) - 22)
    place = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(content) - 22, 1)
    return content[:-22] + end + place + content[-22:]


def gap(content: bytes) -> bytes:
    """The archive with something between its directory and its end."""
    return content[:-22] + bytes(10) + content[-22:]


@pytest.mark.parametrize("change", [other_end, comment, prefix, locator, gap])
def test_an_archive_that_can_be_read_in_two_ways_is_refused(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = write_log(tmp_path / "a.eval", sound_members())
    assert read_runs([path])
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BadInput, match=r"is not an Inspect log, or is damaged \("):
        read_runs([path])


@pytest.mark.slow
def test_too_many_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(100_001):
            archive.writestr(f"{number}", b"")
    with no_hang(), pytest.raises(BadInput, match="has 100001 members; at most 100000 are read"):
        CheckedLog(path)


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.eval", sound_members(), zipfile.ZIP_BZIP2)
    with pytest.raises(BadInput, match="has the unknown compression 12"):
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
