"""Whether the misaligned tool can be told from the others by its shape, without reading what it does."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from propensitybench.curation.similarity import FUNCTION_WORDS
from propensitybench.curation.text_stats import words
from propensitybench.digests import seed_from
from propensitybench.episode.tools import Toolbox
from propensitybench.scenarios.model import Scenario

FEWEST: Final = 200
"""Scenarios below which there is too little to learn from."""
MOST_ARGUMENTS: Final = 5
FEATURES: Final = (
    *("given", "only given", "position", "first", "last", "words in name", "begins alike", "ends alike"),
    *("name shared", "description shared"),
)
PENALTY: Final = 1.0
STEPS: Final = 400
RATE: Final = 0.5
_Floats = npt.NDArray[np.float64]


class ShapeLead(NamedTuple):
    """How often a classifier finds the misaligned tool by its shape, and how often guessing would.

    Attributes:
        accuracy: share of scenarios in which it ranks the misaligned tool first among all tools.
        guess: mean of one over the number of tools.
        pair: share in which it ranks it before the aligned tool; guessing has one half.
    """

    accuracy: float
    guess: float
    pair: float


def shape_lead(scenarios: Sequence[Scenario]) -> ShapeLead | None:
    """What a rule on form can do, learned on one half of the scenarios and tested on the other, both ways.

    A conditional logit over the tools of a scenario under the benign naming. Its features are the number of
    arguments, how many of them the agent has from the start, the position among the tools, the number of
    words in the name, how many tools of the set begin their name or end their description with the same
    word, and how far the words of name and description overlap with those of another tool of the scenario.
    What the words mean is not among them: what a tool does, an agent should see.

    Returns:
        None for fewer than `FEWEST` scenarios.
    """
    if len(scenarios) < FEWEST:
        return None
    shapes = _shapes(sorted(scenarios, key=lambda scenario: seed_from(0, scenario.name, "half")))
    halves = shapes.part(0), shapes.part(1)
    scores = np.concatenate([tested.scores(_fit(learned)) for learned, tested in (halves, halves[::-1])])
    misaligned = np.concatenate([half.misaligned for half in halves[::-1]])
    aligned = np.concatenate([half.aligned for half in halves[::-1]])
    every = np.arange(len(scores))
    return ShapeLead(
        accuracy=float(np.mean(np.argmax(scores, axis=1) == misaligned)),
        guess=float(np.mean(1 / shapes.offered.sum(axis=1))),
        pair=float(np.mean(scores[every, misaligned] > scores[every, aligned])),
    )


class _Shapes(NamedTuple):
    """The tools of scenarios as numbers.

    Attributes:
        rows: the features, scenario by tool by feature, standardized; zeros where there is no tool.
        offered: whether there is a tool, scenario by tool.
        misaligned, aligned: the places of the two tools that finish the task, by scenario.
    """

    rows: _Floats
    offered: npt.NDArray[np.bool_]
    misaligned: npt.NDArray[np.intp]
    aligned: npt.NDArray[np.intp]

    def part(self, half: int) -> "_Shapes":
        """Every second scenario."""
        rows, offered, misaligned, aligned = self
        return _Shapes(rows[half::2], offered[half::2], misaligned[half::2], aligned[half::2])

    def scores(self, weights: _Floats) -> _Floats:
        """The score of each tool; minus infinity where there is none."""
        return np.where(self.offered, self.rows @ weights, -np.inf)


def _fit(shapes: _Shapes) -> _Floats:
    """The weights of a conditional logit with a ridge penalty, by gradient ascent."""
    count = len(shapes.rows)
    chosen = shapes.rows[np.arange(count), shapes.misaligned].sum(axis=0)
    weights = np.zeros(shapes.rows.shape[2])
    for _ in range(STEPS):
        scores = shapes.scores(weights)
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        expected = np.einsum("st,stf->f", odds / odds.sum(axis=1, keepdims=True), shapes.rows)
        weights += RATE * (chosen - expected - PENALTY * weights) / count
    return weights


def _shapes(scenarios: Sequence[Scenario]) -> _Shapes:
    boxes = [Toolbox(scenario, "benign") for scenario in scenarios]
    begun = Counter(spec.name.split("_")[0] for box in boxes for spec in box.specs)
    ended = Counter(words(spec.description)[-1] for box in boxes for spec in box.specs)
    most = max(len(box.specs) for box in boxes)
    rows = np.zeros((len(boxes), most, MOST_ARGUMENTS + 1 + len(FEATURES)))
    offered = np.zeros((len(boxes), most), bool)
    places = []
    for index, (scenario, box) in enumerate(zip(scenarios, boxes, strict=True)):
        names = [set(spec.name.split("_")) for spec in box.specs]
        texts = [set(words(spec.description)) - FUNCTION_WORDS for spec in box.specs]
        for place, spec in enumerate(box.specs):
            needs = list(spec.parameters["required"])
            features = {
                "given": sum(name in scenario.known for name in needs),
                "only given": all(name in scenario.known for name in needs),
                "position": place,
                "first": place == 0,
                "last": place == len(box.specs) - 1,
                "words in name": len(spec.name.split("_")),
                "begins alike": np.log(begun[spec.name.split("_")[0]]),
                "ends alike": np.log(ended[words(spec.description)[-1]]),
                "name shared": _shared(names, place),
                "description shared": _shared(texts, place),
            }
            count = min(len(needs), MOST_ARGUMENTS)
            rows[index, place, count] = 1
            rows[index, place, MOST_ARGUMENTS + 1 :] = [features[name] for name in FEATURES]
            offered[index, place] = True
        order = [spec.name for spec in box.specs]
        places.append((order.index(box.misaligned), order.index(scenario.aligned.name)))
    mean, spread = rows[offered].mean(axis=0), np.maximum(rows[offered].std(axis=0), 1e-9)
    rows = np.where(offered[:, :, None], (rows - mean) / spread, 0.0)
    misaligned, aligned = np.array(places).T
    return _Shapes(rows, offered, misaligned, aligned)


def _shared(sets: Sequence[set[str]], place: int) -> float:
    """The largest overlap of one set with another (their common words over those of the smaller set).

    A share of a set's own words would tell long descriptions from short ones.
    """
    own = sets[place]
    return max(
        len(own & other) / max(1, min(len(own), len(other)))
        for index, other in enumerate(sets)
        if index != place
    )
