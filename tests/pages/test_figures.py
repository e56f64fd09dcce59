"""Figures: all are written, labelled and legible, and none replaces somebody else's file."""

import re
from collections.abc import Callable
from functools import cache
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import NamedTuple
from xml.etree import ElementTree as ET

import matplotlib as mpl
import msgspec
import numpy as np
import pytest
from helpers.program import call
from helpers.records import BIO, CHEM, CYBER, SELF, About, blocked, ended, errored, misaligned, resisted
from helpers.runs import finish, make
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.errors import BadInput
from propensitybench.metrics import RunRecords
from propensitybench.metrics.analysis import Analysis, analyse
from propensitybench.pages.figures import Figure, write_figures
from propensitybench.pages.figures.curves import spread
from propensitybench.pages.figures.panels import compose
from propensitybench.pages.figures.svg import inline_svg
from propensitybench.pages.figures.view import view_of
from propensitybench.pages.figures.writing import drawings
from propensitybench.pages.style import COLOURS, NAME_WIDTH, ONE_COLUMN, TWO_COLUMNS, styled, text_width
from propensitybench.taxonomy import Naming, taxonomy

DOMAINS = (BIO, CHEM, CYBER, SELF)
SHARES: dict[Naming, float] = {"harmful": 0.2, "benign": 0.6}
SVG = "{http://www.w3.org/2000/svg}"
LONG = "a-provider/a-model-with-a-very-long-name-and-a-date-2026-05-01-preview"


def run_of(
    model: str,
    shares: dict[Naming, float] = SHARES,
    domains: tuple[str, ...] = DOMAINS,
    levels: int = 12,
    lost: float = 0.0,
) -> RunRecords:
    """A model that is misaligned with these probabilities, on four scenarios of each domain."""
    random = Random(f"{model} {levels}")
    records: list[EpisodeRecord] = []
    for (naming, share), domain, place in product(shares.items(), domains, range(4)):
        names = taxonomy().domains[domain].capabilities
        for dimension in taxonomy().dimensions:
            about = About(
                scenario=f"{domain}-{place}",
                domain=domain,
                dimension=dimension,
                capability=names[place % len(names)],
                naming=naming,
                aligned_calls=random.randint(1, 5),
            )
            level = min(random.randint(0, levels), random.randint(0, levels))
            if random.random() < lost:
                unscored = [blocked(**about), errored(2, **about), ended(Outcome.TRUNCATED, 12, **about)]
                records.append(random.choice(unscored))
            else:
                fails = random.random() < share
                records.append(misaligned(level, **about) if fails else resisted(**about))
    return RunRecords(f"{model}.run", model, len(records), records, levels)


CASES: dict[str, Callable[[], list[RunRecords]]] = {
    "two": lambda: [run_of("one"), run_of("other", {"harmful": 0.5, "benign": 0.7})],
    "eight": lambda: [run_of(f"{LONG}-{number}", domains=(BIO, SELF), lost=0.05) for number in range(8)],
    "never": lambda: [run_of("never", {"harmful": 0.0, "benign": 0.0})],
    "missing": lambda: [run_of("one", lost=0.2), run_of("other", lost=0.1)],
    "one task": lambda: [msgspec.structs.replace(run_of("one"), records=run_of("one").records[:1])],
    "short ladder": lambda: [run_of("o3-like", levels=6), run_of("gemini-2.5-pro-like", levels=6)],
    "two ladders": lambda: [run_of("one", levels=6), run_of("other")],
    "hostile": lambda: [run_of("$x^2$ \x1b[31m</text><b>\u202e\u4e2d &\n")],
}
# The cases with the most and the fewest labels of few runs.
QUICK = ("missing", "one task")


@cache
def analysis(case: str) -> Analysis:
    return analyse(CASES[case]())


def without_scores(model: str) -> Analysis:
    """The analysis of a run of errors, which has a single figure."""
    records = [errored(scenario=f"s{number}") for number in range(6)]
    return analyse([RunRecords("a.run", model, 6, records)])


class DrawnText(NamedTuple):
    """A text in a figure; ``inside`` is the share of its area within the figure."""

    text: str
    size: float
    level: bool
    box: Bbox
    inside: float


def drawn_texts(canvas: Canvas) -> list[DrawnText]:
    """Every text that is drawn, without tick labels beyond the ends of their axes."""
    canvas.draw(FigureCanvasAgg(canvas).get_renderer())  # type: ignore[no-untyped-call]
    unseen = set()
    for axis in (axis for axes in canvas.axes for axis in (axes.xaxis, axes.yaxis)):
        if not axis.axes.axison:
            unseen |= set(axis.findobj(Text))
        low, high = sorted(axis.get_view_interval())
        reach = 1e-6 * (high - low)
        ticks = axis.get_major_ticks()
        beyond = [tick for tick in ticks if not low - reach <= tick.get_loc() <= high + reach]
        unseen |= {label for tick in beyond for label in (tick.label1, tick.label2)}
    texts = []
    for text in canvas.findobj(lambda artist: isinstance(artist, Text)):
        assert isinstance(text, Text)
        if text.get_text().strip() and text.get_visible() and text not in unseen:
            box = text.get_window_extent()
            common = Bbox.intersection(box, canvas.bbox)
            inside = common.width * common.height / (box.width * box.height) if common else 0.0
            level = text.get_rotation() == 0
            texts.append(DrawnText(text.get_text(), float(text.get_fontsize()), level, box, inside))
    return texts


def svg_texts(path: Path) -> list[str]:
    """Every text of an SVG file."""
    return [node.text or "" for node in ET.parse(path).iter(f"{SVG}text")]


def by_name(figures: list[Figure]) -> dict[str, Path]:
    return {path.stem: path for figure in figures for path in figure.files}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[Figure]:
    return write_figures(analysis("two"), tmp_path_factory.mktemp("figures"), ("svg",))


def test_every_figure_has_its_stated_size_and_a_caption(two: list[Figure]) -> None:
    assert [figure.name for figure in two] == [
        "overview", "zero", "levels", "namings", "contrasts", "domains", "dimensions", "capabilities",
        "survival", "hazard", "archetypes", "pairs", "missing",
    ]  # fmt: skip
    for figure in two:
        for svg in figure.files:
            assert svg.stem.startswith(figure.name)
            width = ET.parse(svg).getroot().attrib["width"]
            assert float(width.removesuffix("pt")) == pytest.approx(72 * figure.width, abs=0.1)
        assert figure.width == (TWO_COLUMNS if figure.name == "overview" else ONE_COLUMN)
        assert figure.caption.endswith(".")
        assert "96 tasks" in figure.caption or figure.name in ("pairs", "contrasts")
        assert "95%" in figure.caption


def test_both_formats_are_written_and_png_has_300_dpi(tmp_path: Path) -> None:
    (figure,) = write_figures(without_scores("a"), tmp_path)
    svg, png = figure.files
    assert (svg.name, png.name) == ("missing.svg", "missing.png")
    assert ET.parse(svg).getroot().tag == f"{SVG}svg"
    content = png.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(content[16:20]) == pytest.approx(300 * figure.width, abs=1)


def test_marks_and_axes_are_labelled(two: list[Figure]) -> None:
    texts = {name: "\n".join(svg_texts(path)) for name, path in by_name(two).items()}
    for name, text in texts.items():
        assert ("other" if name.startswith("capabilities-2-other-") else "one") in text, name
    for label in ("Pressure level (0 = the task alone)", "Propensity (share of tasks)", "100%"):
        assert label in texts["overview"]
    for domain in DOMAINS:
        assert domain.capitalize() in texts["domains-benign"]
        assert domain.capitalize() in texts["capabilities-1-one-harmful"]
    assert "zero-pressure" in texts["zero-harmful"]
    assert "tasks at risk" in texts["hazard-benign"]
    assert "much work" in texts["archetypes-harmful"]
    assert "Resilience (level of the misaligned call)" in texts["archetypes-harmful"]
    assert "other \u2212 one" in texts["pairs-harmful"]
    captions = {figure.name: figure.caption for figure in two}
    assert "is partly selection" in captions["hazard"]
    assert "every task has a score" in captions["missing"]


def test_numbers_in_the_figures_are_those_of_the_analysis(two: list[Figure]) -> None:
    paths = by_name(two)
    texts = {name: "\n".join(svg_texts(path)) for name, path in paths.items()}
    told = {name: [node.text for node in ET.parse(path).iter(f"{SVG}title")] for name, path in paths.items()}
    for run in analysis("two").runs:
        scores = run.scores.naming["harmful"]
        ends = f"{100 * (scores.propensity_zero or 0):.1f} \u2192 {100 * (scores.propensity or 0):.1f}%"
        assert ends in texts["zero-harmful"]
        assert f"{100 * (run.scores.naming_sensitivity or 0):+.1f} pp" in texts["namings"]
        for part in ("domain", "dimension"):
            for name, both in scores.parts[part].items():
                assert both.domain.ci95 is not None
                low, high = (f"{100 * end:.1f}" for end in both.domain.ci95)
                words = f"{name.capitalize()}, {run.name}: {100 * (both.domain.value or 0):.1f}%"
                assert f"{words}, 95% CI {low} to {high}" in told[f"{part}s-harmful"]


def test_a_page_shows_the_file_in_its_own_colours(two: list[Figure]) -> None:
    for name, path in by_name(two).items():
        shown = ET.fromstring(inline_svg(path.read_bytes(), name))
        file = ET.parse(path).getroot()
        assert [one.text for one in shown.iter("text")] == [one.text for one in file.iter(f"{SVG}text")]
        assert [one.text for one in shown.iter("title")] == [one.text for one in file.iter(f"{SVG}title")][1:]
        written = ET.tostring(shown, encoding="unicode")
        assert not re.search("#[0-9a-f]{6}", written)
        ids = [one.attrib["id"] for one in shown.iter() if "id" in one.attrib]
        assert all(one.startswith(f"{name}-") for one in ids)
        assert set(re.findall(r"#([\w.-]+)", written)) <= set(ids)
        assert shown.attrib["role"] == "img"
        assert shown.attrib["aria-label"] == file.findtext(f"{SVG}title")


def test_captions_say_what_n_and_p_are_of() -> None:
    runs = [run_of("one", lost=0.3), run_of("other")]
    found = analyse(runs)
    (pair,) = found.models["harmful"].pairs
    scored = sum(one.stats.outcome in ("misaligned", "resisted") for one in runs[0].records) // 2
    assert pair.contrast.propensity.n == 96 > scored
    captions = {one.name: one.caption for one in drawings(found)}
    assert "on the 96 tasks begun in both" in captions["pairs"]
    assert pair.contrast.p_tests in captions["pairs"]
    assert "on the tasks begun in both" in captions["namings"]


def test_an_agent_that_could_not_use_the_tools_is_named_in_every_caption() -> None:
    found = analyse([run_of("one")])
    assert found.runs[0].scores.low_competence
    for one in drawings(found):
        assert f"one: {found.runs[0].scores.low_competence}" in one.caption


@pytest.mark.slow
def test_output_is_deterministic_whatever_is_configured(two: list[Figure], tmp_path: Path) -> None:
    with mpl.rc_context(
        {"font.size": 30, "svg.hashsalt": "x", "axes.facecolor": "red", "svg.fonttype": "path"}
    ):
        again = write_figures(analysis("two"), tmp_path, ("svg",))
    for first, second in zip(two, again, strict=True):
        for one, other in zip(first.files, second.files, strict=True):
            assert one.read_bytes() == other.read_bytes(), one.name


@pytest.mark.parametrize("case", [*QUICK, pytest.param("eight", marks=pytest.mark.slow)])
def test_every_text_is_visible_large_enough_and_overlaps_no_other(case: str) -> None:
    with styled():
        to_draw = drawings(analysis(case))
        assert to_draw[0].name == "overview"
        for name, panels in (file for drawing in to_draw for file in drawing.files.items()):
            texts = drawn_texts(compose(panels))
            assert min(text.size for text in texts) >= 7
            for text in texts:
                assert text.inside >= 0.98, (name, text)
            level = [(text.text, text.box.padded(-1)) for text in texts if text.level]
            over = [(one, other) for (one, a), (other, b) in combinations(level, 2) if a.overlaps(b)]
            assert over == [], name


@pytest.mark.parametrize("case", ["never", "missing", "short ladder", "two ladders"])
def test_unusual_runs_are_explained(case: str) -> None:
    with styled():
        to_draw = {drawing.name: drawing for drawing in drawings(analysis(case))}
        texts = {
            name: "\n".join(text.text for text in drawn_texts(compose(to_draw[name].panels)))
            for name in ("overview", "missing")
        }
    captions = [drawing.caption for drawing in to_draw.values()]
    if case == "never":
        assert "archetypes" not in to_draw
        assert "0.0 \u2192 0.0%" in texts["overview"]
    if case == "missing":
        missing = analysis(case).runs[0].scores.naming["harmful"].missing
        counts = [sum(by.values()) for by in (missing.blocked, missing.truncated, missing.errored)]
        assert all(counts)
        assert "of 96: {} blocked, {} truncated, {} errored".format(*counts) in " ".join(
            texts["missing"].split()
        )
        assert "every task has a score" not in to_draw["missing"].caption
        assert "higher --max-tokens" in to_draw["missing"].caption
        assert "every value that these tasks allow" in to_draw["missing"].caption
    if case == "short ladder":
        assert "PP@6 (share of tasks)" in texts["overview"]
        assert all("PP@6: pressure ended after 6 of 12 messages" in caption for caption in captions)
    if case == "two ladders":
        assert "one, PP@6" in texts["overview"]
        assert "other, PP@6" not in texts["overview"]


@pytest.mark.slow
def test_hostile_names_are_text_in_svg(tmp_path: Path) -> None:
    figures = write_figures(analysis("hostile"), tmp_path, ("svg",))
    texts = {name: "\n".join(svg_texts(path)) for name, path in by_name(figures).items()}
    assert "$x^2$ \ufffd[31m</text>" in texts["missing"] + figures[0].caption
    assert not re.search("[\x00-\x08\x1b\u202e]", "".join(texts.values()))
    for figure in figures:
        for path in figure.files:
            assert not re.search("[\x00-\x08\x1b\u202e]", path.read_text(encoding="utf-8"))


def test_run_without_any_score_has_one_figure(tmp_path: Path) -> None:
    (figure,) = write_figures(without_scores("a"), tmp_path, ("svg",))
    assert figure.name == "missing"
    assert "of 6: 6 errored" in [text.strip() for text in svg_texts(figure.files[0])]
    with pytest.raises(BadInput, match="nothing to draw"):
        write_figures(analyse([RunRecords("a.run", "a", 6, [])]), tmp_path)


def test_model_has_the_same_colour_in_every_figure(two: list[Figure]) -> None:
    for name, path in by_name(two).items():
        drawn = path.read_text(encoding="utf-8").lower()
        used = {colour for colour in COLOURS if colour.lower() in drawn} - {"#000000"}
        if name.startswith("capabilities"):
            assert used == {COLOURS["2-other" in name]}
        else:
            assert used == (set() if name.startswith("pairs") else set(COLOURS[:2])), name


@pytest.mark.slow
def test_long_names_stay_distinct_and_are_given_in_the_caption() -> None:
    view = view_of(analysis("eight"))
    labels = [model.label for model in view.models]
    assert len(set(labels)) == 8
    assert all(text_width(label) <= NAME_WIDTH + 0.15 for label in labels)
    assert view.remarks[7] == f"{labels[7]} is {LONG}-7"


def test_other_files_are_neither_overwritten_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "missing.svg").write_text("<svg>mine</svg>")
    with pytest.raises(BadInput, match=r"missing\.svg: is not a figure of this program"):
        write_figures(without_scores("one"), tmp_path, ("svg",))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["missing.svg", "notes.txt"]
    assert (tmp_path / "missing.svg").read_text() == "<svg>mine</svg>"
    (tmp_path / "missing.svg").unlink()
    for model in ("one", "two"):
        figures = write_figures(without_scores(model), tmp_path, ("svg",))
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert "two, harmful" in svg_texts(by_name(figures)["missing"])


def test_only_the_named_figures_are_written(tmp_path: Path) -> None:
    figures = write_figures(analysis("missing"), tmp_path, ("svg",), only=["hazard", "missing"])
    assert [figure.name for figure in figures] == ["hazard", "missing"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "hazard-benign.svg", "hazard-harmful.svg", "missing.svg"
    ]  # fmt: skip
    with pytest.raises(BadInput, match=r"no figure is called 'hazards'; these runs have overview, "):
        write_figures(analysis("missing"), tmp_path, ("svg",), only=["hazards"])


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.001, 0.3))
def test_labels_keep_their_order_and_distance(preferred: list[float], gap: float) -> None:
    positions = spread(preferred, gap)
    order = sorted(range(len(preferred)), key=lambda place: (preferred[place], place))
    steps = np.diff([positions[place] for place in order])
    assert (steps >= gap - 1e-9).all()
    if gap * (len(preferred) - 1) <= 1:
        assert all(-1e-9 <= place <= 1 + 1e-9 for place in positions)
    if (np.diff(sorted(preferred)) >= gap).all():
        assert positions == pytest.approx(preferred)


@pytest.mark.slow
def test_command_writes_and_lists_figures(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", limit=6)
    finish(path)
    done = call("figures", path, "--out", tmp_path / "out", "--format", "png")
    assert done.code == 0
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"overview.png", "survival-harmful.png", "missing.png"} <= names
    assert all(name.endswith(".png") and str(tmp_path / "out" / name) in done.out for name in names)
    assert "6 tasks" in done.out
    twice = call("figures", path, path, "--out", tmp_path / "out")
    assert (twice.code, "is given twice" in twice.err) == (2, True)
    unplayed = call("figures", make(tmp_path / "b.run"), "--out", tmp_path / "none")
    assert (unplayed.code, "nothing to draw" in unplayed.err) == (2, True)
    assert not (tmp_path / "none").exists()
