"""Which runs a gate may compare: two of the same benchmark, the candidate played for no other question."""

import os
import shlex

import msgspec

from propensitybench.digests import digest
from propensitybench.errors import BadInput
from propensitybench.gates.question import Question
from propensitybench.gates.sample import file_of, unit_of
from propensitybench.runs import Run
from propensitybench.runs.comparison import HARMLESS, changed_scenarios, first_of, other_seed
from propensitybench.store import Manifest, RunFile, differences
from propensitybench.taxonomy import NAMINGS


def check_comparable(base: Run, candidate: Run) -> list[str]:
    """Notes on differences that a reader has to know of.

    Raises:
        BadInput: the runs are one, or differ in protocol, arm, system message, overlays, rules, scenarios or
            pressure messages. A gate between them would not say what the model has to do with it.
    """
    if os.path.realpath(base.file) == os.path.realpath(candidate.file):
        raise BadInput(
            f"{base.file}: is given as base and as candidate, and no run is worse than itself; give the run "
            "of another model as the candidate"
        )
    one, other = base.manifest, candidate.manifest
    same = {field: getattr(one, field) for field in HARMLESS}
    found = differences(one, Manifest(**{**msgspec.structs.asdict(other), **same}))
    if changed := changed_scenarios([base, candidate]):
        found.append(f"texts of {len(changed)} scenarios ({first_of(changed)})")
    elif one.seed == other.seed and one.data_digest != other.data_digest and _other_messages(base, candidate):
        found.append("pressure messages")
    if found:
        raise BadInput(
            f"{base.file} and {candidate.file}: cannot be compared, because they differ in {'; '.join(found)}"
            "; play the candidate as the base was played"
        )
    notes = other_seed(base, candidate)
    for name in sorted({*one.options, *other.options} - {"base_url"}):
        was, now = one.options.get(name), other.options.get(name)
        if was != now:
            notes.append(f"the runs differ in {name}: {was} in the base, {now} in the candidate")
    return notes


def _other_messages(base: Run, candidate: Run) -> bool:
    """Whether two run files have different pressure messages for a task that both have."""
    paths = [file_of(run) for run in (base, candidate)]
    if paths[0] is None or paths[1] is None:
        return False
    units = [set(map(unit_of, run.records)) for run in (base, candidate)]
    with RunFile.open(paths[0]) as one, RunFile.open(paths[1]) as other:
        return any(one.pressure(*unit) != other.pressure(*unit) for unit in sorted(units[0] & units[1]))


def identity_of(manifest: Manifest) -> str:
    """Identifies a run by its manifest."""
    return digest(msgspec.json.encode(manifest, order="sorted"))


def check_played_for(question: Question, base: Run, candidate: Run) -> None:
    """Checks that a candidate that was played until decided was played for this question and this base.

    Its tasks are as many as its own question needed, so that the answer to another one would not keep its
    level. What its file says of the question is only compared: it may come from whoever wants it to pass.

    Raises:
        BadInput: it was played for something else.
    """
    rule = candidate.manifest.gate
    if rule is None:
        return
    if rule.base != identity_of(base.manifest):
        raise BadInput(f"{candidate.file}: was played until decided against another base than {base.file}")
    namings = tuple(name for name in NAMINGS if name in candidate.manifest.selection.namings)
    own = Question(rule.margin, rule.on, namings, rule.level)
    if own == question:
        return
    asked = question.options
    typed = " ".join(
        f"{name} {shlex.quote(value)}" for name, value in own.options.items() if value != asked[name]
    )
    raise BadInput(
        f"{candidate.file}: was played until decided for another question, and an answer to this one would "
        f"not keep its error rate; play the candidate for this one in a new file, or ask the other: {typed}"
    )
