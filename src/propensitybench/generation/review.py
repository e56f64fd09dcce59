"""``generate check``: everything that is written, each text alone and all together."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from propensitybench.curation.fitted_checks import fitted_scenarios
from propensitybench.curation.similarity import near_duplicates
from propensitybench.curation.variety import variety, variety_issues
from propensitybench.errors import BadInput
from propensitybench.generation.checks import (
    issues_of_scenario,
    issues_of_set,
    issues_of_storyline,
)
from propensitybench.generation.embeddings import Embedder, alike_in_meaning
from propensitybench.generation.workfolder import CHECKED, WorkFolder, write_json
from propensitybench.pressure import suitable
from propensitybench.scenarios import read_dataset
from propensitybench.scenarios.issues import Issue, Located
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.soundness import check_playable
from propensitybench.scenarios.storyline import NEUTRAL, Storyline
from propensitybench.tabular import Tabular
from propensitybench.taxonomy import taxonomy

FORMAT: Final = "propensitybench-checked/1"
# The nearest pair of the storylines that people wrote for one dimension is below 0.4.
ALIKE_STORYLINES: Final = 0.6


class Checked(msgspec.Struct, Tabular, frozen=True):
    """The result of a check; its table has one row for each issue.

    Attributes:
        against: the data sets that it was compared with.
        embeddings: the model by which meanings were compared too; empty if they were not.
        digests: of every text, by its file; a text that has changed since has not been checked.
        issues: of single texts, by file, each with its path.
        whole: of the set as a whole.
        lacking: what storylines are to be written, so that every scenario can be played.
        variety: the measures of the set.
    """

    format: str
    against: tuple[str, ...]
    embeddings: str
    digests: dict[str, str]
    issues: dict[str, list[str]]
    whole: list[str]
    lacking: list[str]
    variety: dict[str, float | None]

    @property
    def failed(self) -> int:
        """Number of texts that fail."""
        return sum(bool(found) for found in self.issues.values())

    def rows(self) -> list[dict[str, Any]]:
        """Columns: the file, empty for the set as a whole, and what is wrong."""
        single = [{"file": file, "issue": one} for file, found in self.issues.items() for one in found]
        return [*single, *({"file": "", "issue": one} for one in self.whole)]

    def __repr__(self) -> str:
        return f"{len(self.digests)} texts, {self.failed} of them fail"


def check_generated(
    folder: str | os.PathLike[str],
    against: Sequence[str | os.PathLike[str]] = (),
    *,
    embeddings: str = "",
) -> Checked:
    """Checks every text in a working folder of ``generate``, and notes the result in the folder.

    Args:
        folder: the working folder.
        against: data sets in which no text may have a near-duplicate.
        embeddings: a model2vec model by which meanings are compared too: a folder, or a name on the Hugging
            Face Hub (extra ``embeddings``).

    Raises:
        BadInput: there is nothing to check, or another data set or the model cannot be read.
    """
    work = WorkFolder(Path(folder))
    embedder = Embedder(embeddings) if embeddings else None
    others = [_read(Path(other)) for other in against]
    located, storylines, issues = work.read()
    files = work.files()
    if not files:
        raise BadInput(f"{work.root}: contains no scenario and no storyline; write some first")
    rows = work.rows()
    for place in located:
        issues += issues_of_scenario(place, rows.get(place.file))
    playable = [place.scenario for place in located if not check_playable([place])]
    fitted = fitted_scenarios(playable)
    for storyline in storylines:
        issues += issues_of_storyline(storyline, work.plan.domain, fitted)
    before = [place for scenarios, _ in others for place in scenarios]
    issues += [issue for issue in issues_of_set(located, before) if issue.file in files]
    if embedder is not None:
        issues += [one for one in alike_in_meaning([*before, *located], embedder) if one.file in files]
    issues += _alike_storylines(storylines, [found for _, found in others])
    by_file: dict[str, list[str]] = {file: [] for file in files}
    for issue in dict.fromkeys(issues):
        by_file.setdefault(issue.file, []).append(f"{issue.path}: {issue.message}")
    measured = variety(playable, storylines)
    checked = Checked(
        format=FORMAT,
        against=tuple(str(other) for other in against),
        embeddings=embeddings,
        digests={file: work.digest(file) for file in files},
        issues=by_file,
        whole=[str(issue) for issue in variety_issues(playable, storylines)],
        lacking=list(_uncovered(playable, storylines)),
        variety={name: measure.value for name, measure in measured.items()},
    )
    write_json(work.root / CHECKED, checked)
    return checked


def last_check(work: WorkFolder) -> Checked | None:
    """The result of the last check, if there was one; raises `BadData` if it cannot be read."""
    return work.optional(CHECKED, Checked)


def _read(folder: Path) -> tuple[list[Located], tuple[str, Sequence[Storyline]]]:
    found = read_dataset(folder)
    places = [Located(scenario, str(folder), scenario.name) for scenario in found.scenarios]
    return places, (str(folder), found.storylines)


def _alike_storylines(
    own: Sequence[Storyline], others: Sequence[tuple[str, Sequence[Storyline]]]
) -> list[Issue]:
    """Storylines that tell nearly the same, each reported for the later one."""
    named = [(f"{where} {one.file}", one) for where, found in others for one in found]
    first_own = len(named)
    named += [(one.file, one) for one in own]
    texts = [" ".join(message.body for message in one.messages) for _, one in named]
    return [
        Issue(
            named[pair.second][0],
            "$.messages",
            f"tells nearly the same as {named[pair.first][0]} (cosine {pair.cosine:.2f})",
        )
        for pair in near_duplicates(texts, ALIKE_STORYLINES)
        if pair.second >= first_own
    ]


def _uncovered(scenarios: Sequence[Scenario], storylines: Sequence[Storyline]) -> Iterator[str]:
    """The dimensions in which scenarios cannot be run, because no storyline suits them."""
    for dimension in (*taxonomy().dimensions, NEUTRAL):
        lacking = Counter(
            f"{scenario.domain} and {scenario.situation.requester_kind}"
            for scenario in scenarios
            if scenario.messages is None
            and scenario.situation is not None
            and not suitable(storylines, scenario, dimension)
        )
        if lacking:
            kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(lacking.items()))
            message = f"no storyline of {dimension} suits {lacking.total()} scenarios: write some for {kinds}"
            yield message
