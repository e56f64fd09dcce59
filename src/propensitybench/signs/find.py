"""The signs of one or several models: every effect, its verdict, and the sample that would be enough."""

from collections.abc import Mapping, Sequence

import msgspec

from propensitybench.metrics.capability_index import IndexEntry
from propensitybench.metrics.estimates import propensity_terms
from propensitybench.metrics.intervals import Interval
from propensitybench.signs.commands import typed
from propensitybench.signs.decide import (
    CANNOT_TELL,
    NOT_TESTED,
    Claim,
    Decision,
    RequiredSample,
    SignVerdict,
    decide,
    required_sample,
)
from propensitybench.signs.evidence import Evidence
from propensitybench.signs.nine import SIGNS, Sign, declared
from propensitybench.signs.subject import FigureMark, IndexedModel, Subject
from propensitybench.tabular import Brief
from propensitybench.taxonomy import Naming


class Finding(Brief, msgspec.Struct, frozen=True):
    """One sign of one model: a verdict and what it rests on.

    Attributes:
        sign: its name.
        verdict: ``shown``, ``not shown``, ``cannot tell yet`` or ``not tested``.
        effect: a share, a difference of shares, or a correlation; None if it cannot be computed.
        interval: at ``confidence``; it covers every effect that lost tasks allow. None if there is none.
        confidence: probability with which the interval holds the effect, adjusted for the family; None
            without an effect.
        bounds: lowest and highest effect that lost tasks allow; None if it cannot be computed.
        method: how the interval was made, or why there is none.
        size: number of tasks, or of models.
        required: the sample that would be enough, for ``cannot tell yet``.
        over_models: the verdict if the signs of all models are one family; None for one model, and where it
            is not tested.
        missing: why it was not tested; empty if it was.
        hint: the command that supplies what is missing; empty if nothing is.
        fact: a further number in words.
        marks: of its figure.
    """

    sign: str
    verdict: SignVerdict
    effect: float | None
    interval: Interval | None
    confidence: float | None
    bounds: Interval | None
    method: str
    size: int
    required: RequiredSample | None
    over_models: SignVerdict | None
    missing: str
    hint: str
    fact: str
    marks: tuple[FigureMark, ...]


class ModelFindings(Brief, msgspec.Struct, frozen=True):
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
    """Tests the signs: those of a model are one family; with several models, all of them are a second one.

    Args:
        subjects: the models, one at least; each has begun a task.
        index: a capability index by model address.
        relevant: other smallest effects of interest, by the name of the sign; see `declared`.

    Raises:
        BadInput: a smallest effect does not lie between 0 and 1.
    """
    signs = declared(relevant)
    if index is not None:
        indexed = _indexed(subjects, index)
        subjects = [msgspec.structs.replace(one, indexed=indexed) for one in subjects]
    found = [[evidence(subject) for evidence in SIGNS.values()] for subject in subjects]
    families = [claims(signs, evidence) for evidence in found]
    over: dict[tuple[int, Sign], Decision] = {}
    if len(subjects) > 1:
        over = decide({(place, sign): one for place, own in enumerate(families) for sign, one in own.items()})
    models = []
    for place, (subject, evidence, family) in enumerate(zip(subjects, found, families, strict=True)):
        findings = []
        decided = decide(family)
        for sign, one in zip(signs, evidence, strict=True):
            whole = over.get((place, sign))
            findings.append(_finding(subject, (sign, one), decided[sign], whole and whole.verdict))
        models.append(_model(subject, findings))
    return tuple(models)


def claims(signs: Sequence[Sign], evidence: Sequence[Evidence]) -> dict[Sign, Claim]:
    """What is claimed of one model."""
    return {
        sign: Claim(None if one.missing else one.effect, sign.relevant)
        for sign, one in zip(signs, evidence, strict=True)
    }


def _finding(
    subject: Subject, tested: tuple[Sign, Evidence], own: Decision, over: SignVerdict | None
) -> Finding:
    sign, (effect, missing, marks, fact, hint) = tested
    required, (interval, method) = None, own.found
    if effect is not None and own.verdict == CANNOT_TELL:
        required = required_sample(effect, sign.relevant, own.tail, _available(subject, sign))
    if effect is not None and own.verdict == NOT_TESTED:
        interval, method = effect.interval(own.tail, 1.0)
    supply = (hint or sign.hint) if missing and effect is None else ""
    return Finding(
        sign=sign.sign,
        verdict=own.verdict,
        effect=effect.value if effect else None,
        interval=interval,
        confidence=1 - 2 * own.tail if effect else None,
        bounds=effect.bounds if effect else None,
        method=method,
        size=effect.size if effect else 0,
        required=required,
        over_models=None if over == NOT_TESTED else over,
        missing=missing,
        hint=typed(supply, subject.run),
        fact=fact,
        marks=tuple(marks),
    )


def _available(subject: Subject, sign: Sign) -> int:
    """How large a sample can be; of misaligned tasks, as many as the model would give in to."""
    if sign.unit == "tasks":
        return subject.full
    return round(subject.full * (_propensity(subject) or 0.0))


def _propensity(subject: Subject) -> float | None:
    return subject.table.measure(propensity_terms(subject.table)).value


def _indexed(subjects: Sequence[Subject], index: Mapping[str, IndexEntry]) -> tuple[IndexedModel, ...]:
    """The models in the index; one with several runs counts once, with their mean."""
    shares: dict[str, list[float]] = {}
    for subject in subjects:
        value = _propensity(subject)
        if subject.run.model in index and value is not None:
            shares.setdefault(subject.run.model, []).append(value)
    return tuple(
        IndexedModel(name, sum(found) / len(found), index[name].value) for name, found in shares.items()
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
