"""The board's page: a self-contained HTML file that works offline and on any static host."""

from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple

from markupsafe import Markup

from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.measures import NAMING_SENSITIVITY, shown_in
from propensitybench.metrics.ranks import Rank
from propensitybench.pages.board.standings import Board, BoardRow, Section
from propensitybench.pages.page_numbers import Unit, format_interval, format_number, unit_of
from propensitybench.pages.template import render
from propensitybench.presentation.formats import capitalised, counted
from propensitybench.presentation.scores import Number
from propensitybench.presentation.words import BOUNDS, PROPENSITY, NamedAgent, notices
from propensitybench.taxonomy import ESCALATING, NAMINGS, Naming, in_order

# Characters shown of a name; the whole name is in board.json and in the report.
MAX_NAME: Final = 80
NOTHING: Final = "\u2013"
# The chart's scale ends at a multiple of this share.
STEP: Final = 0.1
MISSING: Final = ("blocked", "truncated", "errored", "unfinished", "unplayed")


class Line(NamedTuple):
    """What a cell says of one naming; ``key`` is what the column is sorted by, empty without a value."""

    naming: Naming
    text: str
    more: str = ""
    key: float | None = None


class Column(NamedTuple):
    """A column of numbers: its key, its title, what it is, and the unit of a metric."""

    key: str
    title: str
    hint: str
    unit: Unit = "%"


def columns() -> list[Column]:
    """The metrics of the board, with the chart beside the propensity, and what belongs to them."""
    metrics = [
        Column(
            one.name,
            capitalised(one.label),
            f"{capitalised(one.definition)}.",
            unit_of(one),
        )
        for one in (*shown_in("board"), NAMING_SENSITIVITY)
    ]
    return [
        metrics[0],
        Column("chart", "", ""),
        *metrics[1:],
        Column("bounds", "Bounds", f"{capitalised(BOUNDS)}."),
        Column("tasks", "Tasks", "Tasks with a score, and those without one."),
    ]


def render_board(board: Board) -> str:
    """The HTML of the page."""
    sections = [_View(section) for section in board.versions]
    return render(
        "board.html.j2",
        styles=("board.css",),
        scripts=("dom.js", "tables.js", "board.js"),
        board=board,
        sections=sections,
        runs=sum(len(section.rows) for section in board.versions),
        models=len({row.run.model for section in board.versions for row in section.rows}),
        columns=columns(),
        namings=NAMINGS,
        domains=in_order({name for one in sections for name in one.domains}),
        dimensions=in_order({name for one in sections for name in one.dimensions}),
        escalating=ESCALATING,
        shorten=name_shown,
    )


class _View:
    """A section as the template sees it."""

    def __init__(self, section: Section) -> None:
        self.section = section
        self.ranked = [row for row in section.rows if not row.run.absent_domains]
        self.partial = [row for row in section.rows if row.run.absent_domains]
        runs = [row.run for row in section.rows]
        self.domains = in_order(
            {name for run in runs for parts in (run.domains, *run.by_domain.values()) for name in parts}
        )
        self.dimensions = in_order(
            {name for run in runs for parts in run.by_dimension.values() for name in parts}
        )
        self.top = _top(section.rows)
        self.ticks = [0.0, self.top / 2, self.top]

    @property
    def first(self) -> BoardRow:
        """A row from which facts of the whole section are taken."""
        return self.section.rows[0]

    def rank(self, row: BoardRow) -> list[Line]:
        """The ranks of a row."""
        return [
            _rank_line(naming, row.ranks.get(naming)) for naming in NAMINGS if naming in row.run.score.bounds
        ]

    def lines(self, row: BoardRow, column: Column) -> list[Line]:
        """The numbers of a row in a column; intervals, except that of the propensity, have no room."""
        score = row.run.score
        if column.key == "bounds":
            return [_bounds(naming, one) for naming, one in score.bounds.items()]
        lines = [_line(naming, one, column.unit) for naming, one in score.numbers[column.key].items()]
        return lines if column.key == PROPENSITY.name else [line._replace(more="") for line in lines]

    def sensitivity(self, row: BoardRow) -> Line:
        """The difference between the namings; it belongs to both."""
        found = row.run.score.naming_sensitivity
        return _line("harmful", found or Number(None, None), "pp")

    def parts(self, row: BoardRow, name: str) -> list[tuple[Line, str]]:
        """The propensity in a domain or under a dimension, and the style of its cell."""
        run = row.run
        parts = run.by_domain if name in self.domains else run.by_dimension
        found = []
        for naming in run.score.bounds:
            one = parts.get(naming, {}).get(name)
            number = Number(None, None) if one is None else Number(one.value, one.ci95)
            found.append((_line(naming, number), "" if number.value is None else self._style(number)))
        return found

    def chart(self, row: BoardRow) -> Markup:
        """Both propensities with intervals, bounds and zero-pressure values: an image with a text."""
        propensity = row.run.score.numbers[PROPENSITY.name]
        marks, words = [], []
        for place, (naming, number) in enumerate(propensity.items()):
            middle = 50 if len(propensity) == 1 else (30, 70)[place]
            marks.append(self._marks(row, naming, middle))
            words.append(f"{naming} names: {_in_words(number)}")
        grid = Markup("").join(
            Markup('<line class="grid" x1="{0}%" x2="{0}%" y1="0" y2="100%"/>').format(self._x(tick))
            for tick in self.ticks
        )
        return Markup('<svg class="plot" role="img" aria-label="{}">{}{}</svg>').format(
            "; ".join(words), grid, Markup("").join(marks)
        )

    def _marks(self, row: BoardRow, naming: Naming, middle: int) -> Markup:
        score = row.run.score
        number, zero = (score.numbers[name][naming] for name in (PROPENSITY.name, "propensity_zero"))
        bounds = score.bounds[naming]
        drawn = Markup("")
        if bounds is not None and bounds.high > bounds.low:
            drawn += Markup('<rect class="bounds" x="{}%" width="{}%" y="{}%" height="30%"/>').format(
                self._x(bounds.low), self._x(bounds.high) - self._x(bounds.low), middle - 15
            )
        if number.ci95 is not None:
            drawn += Markup('<line class="ci" x1="{}%" x2="{}%" y1="{}%" y2="{}%"/>').format(
                self._x(number.ci95[0]), self._x(number.ci95[1]), middle, middle
            )
        if zero.value is not None:
            drawn += Markup('<line class="zero" x1="{0}%" x2="{0}%" y1="{1}%" y2="{2}%"/>').format(
                self._x(zero.value), middle - 14, middle + 14
            )
        if number.value is not None:
            drawn += Markup('<circle cx="{}%" cy="{}%" r="4.5"/>').format(self._x(number.value), middle)
        return Markup('<g class="{}">{}</g>').format(naming, drawn)

    def _x(self, share: float) -> float:
        """Where a share is drawn, in percent of the width; the ends leave room for a mark."""
        return round(2 + 96 * min(share / self.top, 1.0), 2)

    def _style(self, number: Number) -> str:
        value = number.value or 0.0
        low, high = number.ci95 or (value, value)
        return f"--v:{value:.4f};--l:{low:.4f};--h:{high:.4f}"

    @property
    def notices(self) -> list[str]:
        """Which agents are simulated, and which could not use the tools."""
        rows = self.section.rows
        return notices(
            NamedAgent(name_shown(row.name), row.run.model, row.run.score.low_competence) for row in rows
        )

    def missing(self, row: BoardRow) -> list[str]:
        """The tasks of a row without a score, by reason."""
        tasks = row.run.score.tasks
        words = {"unplayed": "not begun"}
        return [f"{count:,} {words.get(name, name)}" for name in MISSING if (count := getattr(tasks, name))]

    def scored(self, row: BoardRow) -> int:
        """The number of tasks with a score."""
        tasks = row.run.score.tasks
        return tasks.misaligned + tasks.resisted + tasks.completed

    def facts(self) -> list[tuple[str, str]]:
        """What was played, as names and values."""
        played, run = self.section.version, self.first.run
        protocol = played.protocol
        return [
            ("data", f"{counted(run.scenarios, 'scenario')}, {played.data_digest}"),
            ("sampling", run.sampling),
            ("random seed", str(run.seed)),
            (
                "pressure",
                f"{counted(protocol.levels, 'message')}, arm {protocol.arm}, ladder {protocol.ladder}",
            ),
            (
                "protocol",
                f"at most {protocol.turns_per_level} turns, {protocol.messages_in_a_row} messages in a row "
                f"and {protocol.calls_per_tool} calls of a tool per level; parallel calls: "
                f"{protocol.parallel_calls}",
            ),
            ("system message", played.template),
            ("rules", f"version {played.rules}"),
            ("version", self.section.id),
        ]


def name_shown(name: str) -> str:
    """A name of bounded length; of a longer one both ends."""
    half = MAX_NAME // 2
    return name if len(name) <= MAX_NAME else f"{name[:half]}\u2026{name[-half:]}"


def _top(rows: Sequence[BoardRow]) -> float:
    """The end of the chart's scale: what it must show, rounded up."""
    highest = STEP
    for row in rows:
        score = row.run.score
        ends = [one.ci95[1] if one.ci95 else one.value for one in score.numbers[PROPENSITY.name].values()]
        ends += [one.high for one in score.bounds.values() if one is not None]
        highest = max([highest, *(end for end in ends if end is not None)])
    return min(1.0, STEP * ceil(round(highest / STEP, 9)))


def _line(naming: Naming, number: Number, unit: Unit = "%") -> Line:
    value = number.value
    if value is None:
        return Line(naming, NOTHING)
    more = "" if number.ci95 is None else format_interval(number.ci95, unit)
    return Line(naming, format_number(value, unit), more, value)


def _bounds(naming: Naming, bounds: Interval | None) -> Line:
    if bounds is None:
        return Line(naming, NOTHING)
    alike = bounds.low == bounds.high
    text = format_number(bounds.low, "%") if alike else f"{format_interval(bounds, '%')}%"
    return Line(naming, text, "", bounds.high)


def _rank_line(naming: Naming, rank: Rank | None) -> Line:
    if rank is None:
        return Line(naming, NOTHING)
    low, high = rank.ci95
    return Line(naming, f"{rank.rank:g}", f"{low} to {high}", rank.rank)


def _in_words(number: Number) -> str:
    if number.value is None:
        return "unknown"
    interval = f", 95% interval {format_interval(number.ci95, '%')}%" if number.ci95 else ""
    return f"{format_number(number.value, '%')}{interval}"
