"""The plan: the act grid drawn by lot, its rules, and what cannot be planned."""

import json
from collections import Counter
from pathlib import Path

import pytest

from propensitybench.errors import BadInput
from propensitybench.generation.plan import Wanted, every_dimension, make_plan
from propensitybench.generation.workfolder import WorkFolder
from propensitybench.taxonomy import taxonomy

HEADER = "domain,workspace,role,capability,nth,getters\n"
ROW = (
    "self-proliferation,Cloud-Platform-with-Autoscaling,Performance-Tuning-Specialist,"
    "Dominating Other Agents,1,5\n"
)


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("domain", list(taxonomy().domains))
def test_the_grid_of_every_domain_keeps_its_rules(domain: str, tmp_path: Path) -> None:
    work = make_plan(Wanted(domain), tmp_path / "work")
    slots = [slot for slot in taxonomy().allocation if slot.domain == domain]
    assert [(a.workspace, a.role, a.capability, a.nth, a.getters) for a in work.acts] == [
        s[1:] for s in slots
    ]
    cells = Counter((a.mechanism, a.target, a.gain) for a in work.acts)
    assert max(cells.values()) <= 2
    assert max(Counter((a.workspace, a.mechanism, a.target, a.gain) for a in work.acts).values()) == 1
    severities = Counter(a.severity for a in work.acts)
    assert max(severities.values()) - min(severities.values()) <= 1
    assert list(severities) != sorted(severities) or len(work.acts) > 4
    assert work.plan.storylines == every_dimension(6)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_grid(tmp_path: Path) -> None:
    one, same, other = (
        content(make_plan(Wanted("bio-security", seed=seed), tmp_path / name).root)
        for name, seed in (("a", 7), ("b", 7), ("c", 8))
    )
    assert one == same
    assert one["acts.csv"] != other["acts.csv"]


def test_a_folder_that_is_not_empty_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="is not empty"):
        make_plan(Wanted("bio-security"), tmp_path)
    assert content(tmp_path) == {"mine.txt": b"mine"}


def test_an_edited_grid_is_read_as_it_stands(tmp_path: Path) -> None:
    work = make_plan(Wanted("bio-security"), tmp_path / "w")
    path = work.root / "acts.csv"
    path.write_text(path.read_text().replace(work.acts[0].mechanism, "does it by hand", 1))
    assert WorkFolder(work.root).acts[0].mechanism == "does it by hand"
    path.write_text(path.read_text().replace(f",{work.acts[1].severity},", ",many,", 2))
    with pytest.raises(
        BadInput, match=r"acts\.csv line 2: severity: must be a positive integer, found 'many'"
    ):
        WorkFolder(work.root)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "line 1: must have the columns domain,workspace"),
        (HEADER + ROW.replace("Dominating", "Dominatin"), "line 2: unknown capability"),
        (HEADER + ROW.replace("1,5", "1,five"), "line 2: getters: must be a positive integer"),
        (HEADER + ROW.replace("1,5", "1,9"), "line 2: getters: must be 4 to 6"),
        (HEADER + ROW + ROW, "line 3: repeats line 2"),
        (HEADER + ROW.replace("Dominating Other Agents", "ePPP"), "ePPP belongs to bio-security"),
        (HEADER + ROW.replace(",5", ""), "line 2: needs 6 cells, found 5"),
        (HEADER, "has no row of the domain"),
    ],
)
def test_a_bad_allocation_is_named_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(BadInput, match=message):
        make_plan(Wanted("self-proliferation", tmp_path / "a.csv"), tmp_path / "w")
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        ({}, "has no phrases for the capability"),
        ({"mechanisms": ["a"], "targets": ["b"], "gains": ["c"]}, "has too few phrases"),
        (
            {"mechanisms": [], "targets": ["b"], "gains": ["c"]},
            "must be a list of different, non-empty phrases",
        ),
        ({"mechanisms": ["a"], "targets": ["b"]}, "missing required field `gains`"),
    ],
)
def test_a_bad_vocabulary_is_refused(phrases: dict[str, list[str]], message: str, tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text(
        json.dumps({"capabilities": {"Dominating Other Agents": phrases} if phrases else {}})
    )
    (tmp_path / "a.csv").write_text(HEADER + ROW + ROW.replace(",1,5", ",2,5"))
    with pytest.raises(BadInput, match=message):
        make_plan(Wanted("self-proliferation", tmp_path / "a.csv", tmp_path / "v.json"), tmp_path / "w")
