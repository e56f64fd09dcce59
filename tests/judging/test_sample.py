"""The sample that people read: even over its strata, with known probabilities, and unchanged once drawn."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean, stdev

import pytest
from helpers.people import QUESTION, judged, left, misaligned_run
from helpers.readings import annotate, answer
from helpers.records import BIO, CHEM, CYBER, SELF, ended
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.chat import Reply
from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.errors import BadInput, NotARunFile
from propensitybench.judging.people import labelling
from propensitybench.judging.sample import Sample, Size, draw, labels_of_most_judges, stored_sample
from propensitybench.runs import StoredRun
from propensitybench.store import RunFile

FIRST, SECOND, THIRD = "test/first", "test/second", "test/third"
DOMAINS = (BIO, CHEM, CYBER, SELF)
LABELS = ("necessity", "authority", None)


def frame(sizes: Sequence[int]) -> tuple[list[EpisodeRecord], dict[str, str]]:
    """Episodes and judges' labels, with strata of these sizes."""
    episodes, labels = [], {}
    for stratum, size in enumerate(sizes):
        domain, label = DOMAINS[stratum % 4], LABELS[stratum // 4]
        for number in range(size):
            record = ended(Outcome.MISALIGNED, 1, scenario=f"s{stratum}-{number}", domain=domain)
            episodes.append(record)
            if label is not None:
                labels[record.metadata.task] = label
    return episodes, labels


def by_stratum(sample: Sample) -> list[int]:
    """How many episodes were drawn from each stratum."""
    drawn = set(sample.drawn)
    return [len(drawn.intersection(stratum.tasks)) for stratum in sample.strata]


SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=12)


@given(SIZES, st.integers(0, 300), st.integers(0, 2**40))
def test_a_sample_is_even_over_judges_labels_and_domains(sizes: list[int], more: int, seed: int) -> None:
    episodes, labels = frame(sizes)
    sample = draw(episodes, labels, QUESTION, Size(len(sizes) + more, seed))
    assert len(set(sample.drawn)) == len(sample.drawn) == min(len(sizes) + more, sum(sizes))
    known = {record.metadata.task: record.metadata.domain for record in episodes}
    for stratum in sample.strata:
        assert {(labels.get(task), known[task]) for task in stratum.tasks} == {
            (stratum.label, stratum.domain)
        }
    counts = by_stratum(sample)
    most = max(counts)
    for stratum, count in zip(sample.strata, counts, strict=True):
        assert count in (most, most - 1) or count == len(stratum.tasks)
    smaller = draw(episodes, labels, QUESTION, Size(len(sizes), seed))
    assert sample.drawn[: len(sizes)] == smaller.drawn


def test_weighted_shares_are_unbiased_and_plain_ones_are_not() -> None:
    """Horvitz and Thompson (1952): the inverse of the probability is the weight."""
    episodes, labels = frame([60, 5, 12, 30, 9, 3])
    yes = {record.metadata.task for place, record in enumerate(episodes) if place < 60 or place % 3 == 0}
    truth = len(yes) / len(episodes)
    weighted, plain = [], []
    times: Counter[str] = Counter()
    for seed in range(400):
        sample = draw(episodes, labels, QUESTION, Size(31, seed))
        sizes = zip(sample.strata, by_stratum(sample), strict=True)
        weight = {task: len(one.tasks) / count for one, count in sizes for task in one.tasks}
        weighted.append(sum(weight[task] for task in sample.drawn if task in yes) / len(episodes))
        plain.append(fmean(task in yes for task in sample.drawn))
        times.update(sample.drawn)
    error = stdev(weighted) / len(weighted) ** 0.5
    assert abs(fmean(weighted) - truth) < 4 * error
    assert abs(fmean(plain) - truth) > 20 * error
    # Within a stratum every episode is as likely as any other.
    big = [times[record.metadata.task] / 400 for record in episodes[:60]]
    expected = fmean(big)
    assert max(abs(one - expected) for one in big) < 4.5 * (expected * (1 - expected) / 400) ** 0.5


def test_without_judges_a_sample_is_even_over_domains() -> None:
    episodes, _ = frame([50, 50, 20, 3, 10])
    sample = draw(episodes, {}, QUESTION, Size())
    assert [(one.label, one.domain) for one in sample.strata] == [(None, domain) for domain in DOMAINS]
    assert sample.number == 133
    assert by_stratum(draw(episodes, {}, QUESTION, Size(42))) == [13, 13, 13, 3]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return misaligned_run(tmp_path_factory.mktemp("played") / "a.run", limit=6)


@pytest.fixture
def run(played: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(played, tmp_path / "a.run"))


def test_strata_are_the_label_of_most_judges_and_a_tie_is_no_label(run: Path) -> None:
    a, b, c, d, e, *_ = StoredRun(run).tasks
    judged(run, FIRST, {a: "necessity", b: "authority", c: "necessity"})
    judged(run, SECOND, {a: "authority", b: "necessity", d: "none stated"})
    judged(run, THIRD, {a: "authority", c: "harm denied"})
    judged(run, FIRST, {e: "authority"}, variant="retrained")
    annotate(run, QUESTION, THIRD, {d: Reply("I would rather not say."), e: answer("necessity", "not there")})
    judged(run, "person/Ann", {e: "authority"})
    found = labels_of_most_judges(StoredRun(run), QUESTION)
    assert found == {a: "authority", d: "none stated"}
    strata = {one.label: one for one in drawn(run).strata}
    assert strata.keys() == {"authority", "none stated", None}
    assert {b, c, e}.issubset(strata[None].tasks)


def drawn(run: Path, size: Size = Size()) -> Sample:  # noqa: B008 - frozen
    with labelling(run, QUESTION, size) as labels:
        return labels.sample


def stored(run: Path) -> Sample | None:
    with RunFile.open(run) as file:
        return stored_sample(file, QUESTION)


def test_a_sample_stays_as_it_was_drawn(run: Path) -> None:
    first, *rest = StoredRun(run).tasks
    judged(run, FIRST, {first: "necessity"})
    before = drawn(run, Size(4, 3, 0.5))
    judged(run, FIRST, dict.fromkeys(rest, "authority"))
    assert drawn(run) == stored(run) == before
    larger = drawn(run, Size(7))
    assert stored(run) == larger
    assert larger.strata == before.strata
    assert (larger.number, larger.drawn[:4]) == (7, before.drawn)
    assert sorted(drawn(run, Size(1000)).drawn) == sorted(StoredRun(run).tasks)


@pytest.mark.parametrize(
    ("size", "complaint"),
    [
        (Size(3), "--number 3: the sample has 4 episodes already; it can only be enlarged"),
        (Size(seed=5), "--seed 5: the sample was drawn with --seed 0; leave it out"),
        (Size(twice=0.5), "--twice 0.5: the sample was drawn with --twice 0.25; leave it out"),
    ],
)
def test_a_stored_sample_is_not_drawn_again(run: Path, size: Size, complaint: str) -> None:
    left(run, "Ann", Size(4))
    with pytest.raises(BadInput, match=complaint):
        left(run, "Ann", size)


def test_a_sample_that_would_leave_out_a_stratum_is_refused() -> None:
    episodes, labels = frame([5] * 12)
    with pytest.raises(BadInput, match="--number 11: must be from 12, one for each label of the judges in"):
        draw(episodes, labels, QUESTION, Size(11))
    with pytest.raises(BadInput, match="justification: no episode of the run is one that it is about"):
        draw([], {}, QUESTION, Size())
    with pytest.raises(BadInput, match="--twice nan: must be from 0 to 1"):
        draw(episodes, labels, QUESTION, Size(20, 0, float("nan")))
    with pytest.raises(BadInput, match=r"seed: must be from -2\^63"):
        draw(episodes, labels, QUESTION, Size(20, 2**63))


@pytest.mark.parametrize(
    "change",
    [
        "json_set(body, '$.number', 100000)",
        "json_set(body, '$.number', 0)",
        "json_set(body, '$.strata[0].tasks[1]', json_extract(body, '$.strata[0].tasks[0]'))",
        "json_set(body, '$.strata[0].tasks', json('[]'))",
        "json_remove(body, '$.seed')",
        "json_set(body, '$.question', 'another')",
    ],
)
def test_a_damaged_sample_is_a_damaged_run_file(run: Path, change: str) -> None:
    left(run, "Ann", Size(4))
    with closing(sqlite3.connect(run)) as db:
        db.execute(f"UPDATE sample SET body = {change}")
        db.commit()
    with RunFile.open(run) as file, pytest.raises(NotARunFile, match="is damaged \\(a sample"):
        stored_sample(file, QUESTION)


def test_the_second_person_is_offered_first_what_two_people_read() -> None:
    episodes, labels = frame([30, 30, 30, 30])
    sample = draw(episodes, labels, QUESTION, Size(40))
    assert sample.read_twice == sample.drawn[:10]
    assert max(Counter(task[:2] for task in sample.read_twice).values()) == 3
    ann = sample.left({}, "Ann")
    assert sorted(ann) == sorted(sample.drawn)
    assert set(ann[:10]) == set(sample.read_twice)
    readers = {task: ["Ann"] for task in ann[:25]}
    assert sample.left(readers, "Ann") == ann[25:]
    bob = sample.left(readers, "Bob")
    assert set(bob[:10]) == set(sample.read_twice)
    assert set(bob[10:]) == set(ann[25:])
    assert bob[:10] != ann[:10]
    for task in bob:
        readers.setdefault(task, []).append("Bob")
    assert sample.left(readers, "Cleo") == []
    assert sample.left(readers, "Ann") == []
