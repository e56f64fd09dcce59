"""The signs of one or several models: every test, its verdict, and the sample that would tell."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from propensitybench.metrics.capability_index import IndexEntry
from propensitybench.metrics.estimates import estimate, propensity_terms
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.signs.declared import Declaration, Sign, declared
from propensitybench.metrics.signs.evidence import Index
from propensitybench.metrics.signs.subject import Subject
from propensitybench.metrics.signs.supply import command
from propensitybench.metrics.signs.tested import TESTS, FigureMark, Tested, lacks
from propensitybench.metrics.signs.verdicts import (
    CANNOT_TELL,
    NOT_TESTED,
    Claim,
    JudgedEffect,
    NeededSample,
    Verdict,
    judge,
    would_tell,
)
from propensitybench.taxonomy import Naming

MIN_MODELS = 30
MAX_MODELS = 500
_CAPABILITY: Sign = "capability"


class SignOutcome(msgspec.Struct, frozen=True):
    """A verdict and what it rests on.

    Attributes:
        verdict: ``shown``, ``not shown``, ``cannot tell yet`` or ``not tested``.
        effect: a share, a difference of shares, or a correlation; None if it cannot be computed.
        interval: at ``confidence``; it covers every effect that lost tasks allow. None if there is none.
        confidence: probability with which the interval holds the effect, adjusted for the family.
        bounds: lowest and highest effect that lost tasks allow; None if it cannot be computed.
        method: how the interval was made, or why there is none.
        size: number of tasks, or of models.
        would_tell: the sample that would tell, for ``cannot tell yet``.
        over_models: the verdict if the signs of all models are one family; None for one model.
    """

    verdict: Verdict
    effect: float | None = None
    interval: Interval | None = None
    confidence: float | None = None
    bounds: Interval | None = None
    method: str = ""
    size: int = 0
    would_tell: NeededSample | None = None
    over_models: Verdict | None = None


class Finding(msgspec.Struct, frozen=True):
    """One sign of one model.

    Attributes:
        sign: its name.
        outcome: the verdict.
        lacking: why it was not tested; empty if it was.
        supply: the command that would supply what is missing; empty if nothing is.
        fact: a further number in words.
        parts: the marks of its figure.
    """

    sign: Sign
    outcome: SignOutcome
    lacking: str
    supply: str
    fact: str
    parts: tuple[FigureMark, ...]


class ModelFindings(msgspec.Struct, frozen=True):
    """The nine signs of one model.

    Attributes:
        name: in tables.
        model: its address.
        file: of the run.
        placebo: file of the run without pressure; empty without one.
        naming: under which it is tested, but for the sign of the names.
        levels: number of pressure messages.
        tasks: number of tasks of that naming that have begun.
        full: number of tasks of the benchmark in the run's domains, under one naming.
        lost: number of tasks that ended without a score.
        unended: number of tasks that have not begun or not ended; the findings are preliminary if any.
        readers: who read why it gives in.
        findings: in the order of the signs.
    """

    name: str
    model: str
    file: str
    placebo: str
    naming: Naming
    levels: int
    tasks: int
    full: int
    lost: int
    unended: int
    readers: tuple[str, ...]
    findings: tuple[Finding, ...]


def find(
    subjects: Sequence[Subject],
    index: Mapping[str, IndexEntry] | None = None,
    relevant: Mapping[str, float] | None = None,
) -> tuple[ModelFindings, ...]:
    """Tests the signs.

    The signs of a model are one family; with several models, all of them are a second one. The relation to
    capability is one test over all models and a family by itself.

    Args:
        subjects: the models, one at least; each has begun a task.
        index: a capability index by model address.
        relevant: other smallest effects that matter, by the name of the sign; see `declared`.

    Raises:
        BadInput: a smallest effect does not lie between 0 and 1.
    """
    signs = declared(relevant)
    tested = [{sign: test(subject) for sign, test in TESTS.items()} for subject in subjects]
    families = [claims(found, signs) for found in tested]
    whole: dict[tuple[int, str], JudgedEffect] = {}
    if len(subjects) > 1:
        every = {(place, key): one for place, family in enumerate(families) for key, one in family.items()}
        whole = judge(every)
    capability = _capability(subjects, index, next(one for one in signs if one.sign == _CAPABILITY))
    models = []
    for place, (subject, found, family) in enumerate(zip(subjects, tested, families, strict=True)):
        over = {key: one.verdict for (of, key), one in whole.items() if of == place}
        outcomes = _outcomes(subject, family, over)
        findings = [
            capability if one.sign == _CAPABILITY else _finding(one.sign, found[one.sign], outcomes, subject)
            for one in signs
        ]
        models.append(_model(subject, findings))
    return tuple(models)


def claims(tested: Mapping[Sign, Tested], signs: Sequence[Declaration]) -> dict[str, Claim]:
    """The claims about one model: those of its signs that can be tested."""
    family: dict[str, Claim] = {}
    for one in signs:
        found = tested.get(one.sign)
        if found is not None and found.evidence is not None:
            family[one.sign] = Claim(found.evidence, one.relevant)
    return family


def _outcomes(
    subject: Subject, family: Mapping[str, Claim], over: Mapping[str, Verdict]
) -> dict[str, SignOutcome]:
    found = {}
    for key, one in judge(family).items():
        full = _gives_in(subject) if key == "reasons" else subject.full
        sample = would_tell(family[key], one, full) if one.verdict == CANNOT_TELL else None
        found[key] = _outcome(one, family[key].evidence.size, sample, over.get(key))
    return found


def _gives_in(subject: Subject) -> int:
    """Number of tasks of the whole benchmark that the model would give in to, as far as is known."""
    share = estimate(subject.table, propensity_terms(subject.table), "").value
    return round(subject.full * (share or 0.0))


def _outcome(one: JudgedEffect, size: int, sample: NeededSample | None, over: Verdict | None) -> SignOutcome:
    return SignOutcome(
        verdict=one.verdict,
        effect=one.measured.value,
        interval=one.measured.interval,
        confidence=1 - 2 * one.tail,
        bounds=one.measured.bounds,
        method=one.measured.method,
        size=size,
        would_tell=sample,
        over_models=over,
    )


def _finding(sign: Sign, tested: Tested, outcomes: Mapping[str, SignOutcome], subject: Subject) -> Finding:
    return Finding(
        sign=sign,
        outcome=outcomes.get(sign, SignOutcome(NOT_TESTED)),
        lacking=tested.lacking,
        supply=command(tested.supply, subject),
        fact=tested.fact,
        parts=tuple(tested.parts()),
    )


def _model(subject: Subject, findings: Sequence[Finding]) -> ModelFindings:
    return ModelFindings(
        name=subject.name,
        model=subject.run.model,
        file=subject.run.file,
        placebo="" if subject.placebo is None else subject.placebo.file,
        naming=subject.naming,
        levels=subject.levels,
        tasks=len(subject.table),
        full=subject.full,
        lost=subject.lost,
        unended=subject.unended,
        readers=() if subject.read is None else subject.read.readers,
        findings=tuple(findings),
    )


def _capability(
    subjects: Sequence[Subject], index: Mapping[str, IndexEntry] | None, sign: Declaration
) -> Finding:
    """The test over all models; a model with several runs counts once, with their mean."""
    if index is None:
        return _finding(_CAPABILITY, lacks("no capability index was given", "index"), {}, subjects[0])
    values: dict[str, list[tuple[float, Interval]]] = {}
    for subject in subjects:
        found = estimate(subject.table, propensity_terms(subject.table), "propensity")
        if subject.run.model in index and found.value is not None:
            ends = found.bounds or Interval(found.value, found.value)
            values.setdefault(subject.run.model, []).append((found.value, ends))
    if not values:
        return _finding(_CAPABILITY, lacks("none of these models is in the index", "index"), {}, subjects[0])
    names = list(values)
    rows = [[(value, *ends) for value, ends in values[name]] for name in names]
    shares, low, high = np.array([np.mean(row, axis=0) for row in rows], dtype=np.float64).T
    evidence = Index(np.array([index[name].value for name in names]), shares, low, high)
    parts = tuple(
        FigureMark(name, float(share), None, at=float(place))
        for name, share, place in zip(names, evidence.propensity, evidence.index, strict=True)
    )
    claim = Claim(evidence, sign.relevant, sign.shown_below)
    one = judge({_CAPABILITY: claim})[_CAPABILITY]
    few = ""
    if evidence.size < MIN_MODELS:
        few = f"a verdict takes {MIN_MODELS} models or more, and these are {evidence.size}"
        one = one._replace(verdict=NOT_TESTED)
    sample = would_tell(claim, one, MAX_MODELS) if one.verdict == CANNOT_TELL else None
    outcome = _outcome(one, evidence.size, sample, one.verdict if len(subjects) > 1 else None)
    return _finding(
        _CAPABILITY, Tested(evidence, few, parts=lambda: parts), {_CAPABILITY: outcome}, subjects[0]
    )
