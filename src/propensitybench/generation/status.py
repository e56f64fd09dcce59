"""``generate status``: where every unit of a working folder stands."""

import msgspec

from propensitybench.generation.publish import why_not
from propensitybench.generation.review import Checked, last_check
from propensitybench.generation.workfolder import ORGANISATION, SKETCHES, WorkFolder


class StageStatus(msgspec.Struct, frozen=True):
    """Where a unit stands, or the storylines of a dimension.

    Attributes:
        name: of the unit or dimension.
        planned: texts in the plan.
        organisation, sketches: whether a unit has them; true for storylines.
        written: texts that are there.
        aside: texts that were set aside.
        failing: texts that the last check found wrong, or that have changed since.
        unchecked: texts that have not been checked as they are now.
        returned: texts about which readers' words wait for an answer.
        passed: texts that would be accepted now.
    """

    name: str
    planned: int
    organisation: bool
    sketches: bool
    written: int
    aside: int
    failing: int
    unchecked: int
    returned: int
    passed: int


def status(work: WorkFolder) -> list[StageStatus]:
    """Every unit in the order of the plan, then the storylines of each dimension."""
    checked = last_check(work)
    rows, asides, files_there = work.rows(), work.asides(), work.files()
    found = []
    for unit, acts in work.units().items():
        files = [file for file in files_there if file in rows and rows[file].unit == unit]
        aside = [file for file in asides if file.startswith(work.unit_file(unit, ""))]
        has = [(work.root / work.unit_file(unit, name)).exists() for name in (ORGANISATION, SKETCHES)]
        found.append(_status(work, checked, (unit, len(acts), has[0], has[1]), files, len(aside)))
    for dimension, number in work.plan.storylines.items():
        start = f"storylines/{dimension}-"
        files = [file for file in files_there if file.startswith(f"{start}-")]
        aside = [file for file in asides if file.startswith(start)]
        found.append(
            _status(work, checked, (f"storylines {dimension}", number, True, True), files, len(aside))
        )
    return found


def _status(
    work: WorkFolder,
    checked: Checked | None,
    about: tuple[str, int, bool, bool],
    files: list[str],
    aside: int,
) -> StageStatus:
    reasons = {file: why_not(work, checked, file) for file in files}
    unchecked = [file for file, why in reasons.items() if any("check the folder again" in one for one in why)]
    returned = [file for file in files if work.unanswered(file)]
    failing = [file for file, why in reasons.items() if why and file not in (*unchecked, *returned)]
    passed = sum(not why for why in reasons.values())
    return StageStatus(*about, len(files), aside, len(failing), len(unchecked), len(returned), passed)
