"""Whether two runs are of the same benchmark: the same texts under the same rules."""

import msgspec

from propensitybench.errors import BadInput
from propensitybench.runs.base import Run
from propensitybench.runs.comparison import HARMLESS, changed_scenarios, first_of, other_seed
from propensitybench.runs.stored import StoredRun
from propensitybench.store import Manifest, RunFile, differences


def check_same_benchmark(base: Run, candidate: Run) -> list[str]:
    """Notes on differences that a reader has to know of.

    Raises:
        BadInput: the runs differ in protocol, arm, system message, overlays, rules, scenarios or pressure
            messages. A gate between them would not say what the model has to do with it.
    """
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
    if not isinstance(base, StoredRun) or not isinstance(candidate, StoredRun):
        return False
    units = [{(r.metadata.scenario, r.metadata.dimension) for r in run.records} for run in (base, candidate)]
    with RunFile.open(base.path) as one, RunFile.open(candidate.path) as other:
        return any(one.pressure(*unit) != other.pressure(*unit) for unit in sorted(units[0] & units[1]))
