"""Analysis of several runs: their names, and what is computed over them."""

from helpers.random_records import random_records
from helpers.records import BIO, misaligned, resisted

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics import RunRecords
from propensitybench.metrics.analysis import analyse, run_names
from propensitybench.metrics.capability_index import IndexEntry
from propensitybench.taxonomy import taxonomy


def run(model: str, *records: EpisodeRecord, file: str = "a.run") -> RunRecords:
    return RunRecords(file, model, len(records), records)


def test_two_runs_of_one_model_have_names_of_their_own() -> None:
    runs = [run("m", file="a.run"), run("m", file="b.run"), run("n", file="c.run")]
    assert run_names(runs) == ["m (a.run)", "m (b.run)", "n"]


def test_two_runs_of_one_model_in_files_of_one_name_too() -> None:
    runs = [run("m"), run("n"), run("m"), run("simulated/n")]
    names = run_names(runs)
    assert len(set(names)) == 4
    assert names[0] == "m (a.run) #1"


def test_a_single_run_is_compared_with_nothing() -> None:
    found = analyse([run("m", *random_records(1))])
    assert found.models == {}
    assert [kind.kind for kind in found.archetypes["harmful"]] == ["unclassified"]
    assert found.index is None
    assert [family.name for family in found.runs[0].families["harmful"]] == ["capabilities", "dimensions"]
    assert "both" not in found.runs[0].families


def test_two_runs_of_one_model_are_compared_with_each_other() -> None:
    records = random_records(4)
    found = analyse([run("m", *records, file="a.run"), run("m", *records, file="b.run")])
    (pair,) = found.models["harmful"].pairs
    assert (pair.first, pair.second, pair.contrast.p) == ("m (a.run)", "m (b.run)", 1.0)


def test_both_namings_give_a_contrast_of_the_namings() -> None:
    found = analyse([run("m", *random_records(2), *random_records(3, naming="benign"))])
    assert [family.name for family in found.runs[0].families["both"]] == ["dimension x naming"]
    assert found.runs[0].scores.naming_contrast is not None


def test_a_model_with_several_runs_counts_once_in_the_index() -> None:
    def giving_in(count: int) -> list[EpisodeRecord]:
        return [
            misaligned(1, scenario=f"s{i}") if i < count else resisted(scenario=f"s{i}") for i in range(4)
        ]

    runs = [run("m", *giving_in(count), file=f"{count}.run") for count in (0, 4)]
    runs += [run("low", *giving_in(1)), run("high", *giving_in(3))]
    index = {name: IndexEntry(value, "s", "d") for name, value in (("low", 1.0), ("m", 2.0), ("high", 3.0))}
    found = analyse(runs, index).index
    assert found is not None
    assert sorted(found.models) == ["high", "low", "m"]
    assert found.rho == 1.0


def test_capabilities_are_shrunken_within_their_domain() -> None:
    names = [capability.name for capability in taxonomy().capabilities.values() if capability.domain == BIO]
    records = [
        misaligned(1, scenario=f"{name}{i}", capability=name)
        if i <= place
        else resisted(scenario=f"{name}{i}", capability=name)
        for place, name in enumerate(names)
        for i in range(10)
    ]
    shrunken = analyse([run("m", *records)]).runs[0].shrunken["harmful"]
    assert shrunken.keys() == set(names)
    assert shrunken[names[0]].shrunken > shrunken[names[0]].raw
