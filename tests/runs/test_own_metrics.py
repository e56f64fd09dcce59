import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers.records import errored, misaligned, resisted, unfinished

import propensitybench as pb
from propensitybench.errors import BadInput
from propensitybench.presentation.scores import summarise
from propensitybench.runs import Run
from propensitybench.runs.own_metrics import registered_metrics

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    file = tmp_path_factory.mktemp("runs") / "a.run"
    return pb.run("simulated/constant-0.1", file=file, limit=8)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Installs a package that registers the metric ``mine``, with this code."""

    def install(code: str) -> None:
        about = tmp_path / "own_metrics_of_a_test-1.0.dist-info"
        about.mkdir()
        (tmp_path / "own_metrics_of_a_test.py").write_text(code, encoding="utf-8")
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-metrics-of-a-test\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(
            "[propensitybench.metrics]\nmine = own_metrics_of_a_test:mine\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        registered_metrics.cache_clear()

    yield install
    sys.modules.pop("own_metrics_of_a_test", None)
    registered_metrics.cache_clear()


def reaches_level_six(episodes: pl.DataFrame) -> pl.Series:
    """Share of tasks in which the agent sees six messages."""
    return episodes["last_level"] >= 6


def test_a_function_of_the_episodes_is_a_metric(run: Run) -> None:
    scores = run.score(metrics=[reaches_level_six])
    seen = run.to_polars().filter(naming="harmful")
    by_domain = seen.group_by("domain").agg((pl.col("last_level") >= 6).mean())["last_level"]
    found = scores.naming["harmful"].estimates["reaches_level_six"].domain
    assert found.value == pytest.approx(by_domain.mean())
    assert "reaches level six (95 %)" in repr(scores).replace("\n", " ")
    assert set(summarise(scores).to_dict()["reaches_level_six"]) == {"harmful", "benign"}
    rows = scores.to_polars().filter(estimand="reaches_level_six")
    assert set(rows["part"]) == {"all", "domain", "workspace", "role", "capability", "dimension"}
    assert "reaches_level_six" not in run.score().naming["harmful"].estimates


def test_tasks_without_a_score_are_not_shown_to_a_metric(run: Run) -> None:
    records = [misaligned(2, scenario="a"), resisted(scenario="b"), errored(3, scenario="c"), unfinished(4)]
    seen: list[str] = []

    def is_safe(episodes: pl.DataFrame) -> list[bool]:
        seen.extend(episodes["outcome"])
        return [True] * len(episodes)

    scores = Run("x.run", run.manifest, records, {}).score(metrics=[is_safe])
    assert sorted(seen) == ["misaligned", "resisted"]
    found = scores.naming["harmful"].estimates["is_safe"].domain
    assert found.bounds is not None
    assert found.bounds.low == pytest.approx(0.5)  # the two others may be anything


def test_the_example_of_the_document_works(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "extending.md").read_text(encoding="utf-8")
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "metrics=" in block)
    (tmp_path / "fraud.run").write_bytes(Path(run.file).read_bytes())
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["run"].score(metrics=[names["gives_up"]]).own["gives_up"].unit == "proportion"


@pytest.mark.parametrize(
    ("returned", "wanted"),
    [
        (lambda _: 1 / 0, "ZeroDivisionError: division by zero, at .*test_own_metrics.py:"),
        (lambda frame: frame.select("nowhere"), "ColumnNotFoundError: .*, at .*test_own_metrics.py:"),
        (lambda _: [1], "returned 1 values for 16 episodes"),
        (lambda episodes: episodes["naming"], "returned '(harmful|benign)' for "),
        (lambda episodes: [float("nan")] * len(episodes), "returned nan for .*None where there is none"),
        (lambda episodes: [[1]] * len(episodes), r"returned \[1\] for "),
        (lambda _: None, "TypeError"),
        (lambda _: 0.5, r"mine \(test_own_metrics.py:\d+\) returned one number; return one value for"),
    ],
)
def test_nonsense_is_one_sentence_with_the_name_of_the_metric(
    run: Run, returned: Callable[[pl.DataFrame], Any], wanted: str
) -> None:
    def mine(episodes: pl.DataFrame) -> Any:
        return returned(episodes)

    with pytest.raises(BadInput, match=f"metric 'mine': {wanted}") as caught:
        run.score(metrics=[mine])
    assert "\n" not in str(caught.value)


def test_a_name_that_is_taken_is_refused(run: Run) -> None:
    def propensity(episodes: pl.DataFrame) -> list[int]:
        return [0] * len(episodes)

    for metrics in ([propensity], [reaches_level_six, reaches_level_six]):
        with pytest.raises(BadInput, match="there is one of that name already"):
            run.score(metrics=metrics)
    with pytest.raises(BadInput, match="is not a function with a name"):
        run.score(metrics=lambda episodes: episodes["last_level"])
    with pytest.raises(BadInput, match="metrics: 3 is not a function"):
        run.score(metrics=3)  # type: ignore[arg-type]


def test_a_metric_that_a_package_registers_is_among_the_scores(
    run: Run, package: Callable[[str], None]
) -> None:
    package('def mine(episodes):\n    """Levels."""\n    return episodes["last_level"]\n')
    found = pb.open(run.file).score()
    assert found.own["mine"].definition == "levels"
    assert found.naming["benign"].estimates["mine"].domain.value is not None


def test_a_registered_metric_that_cannot_be_imported_is_one_sentence(
    run: Run, package: Callable[[str], None]
) -> None:
    package("import nothing_of_that_name\n")
    with pytest.raises(BadInput, match=r"metric 'mine' \(own_metrics_of_a_test:mine\): cannot be imported"):
        pb.open(run.file).score()
