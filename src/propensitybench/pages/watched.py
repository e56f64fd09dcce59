"""What monitors made of a run's transcripts, as the report shows it."""

import msgspec

from propensitybench.judging.labels import annotated_file
from propensitybench.monitoring.monitor import MonitorResults, results_in
from propensitybench.pages.publishing import PublishableRun, RaterNames
from propensitybench.runs import Run


class MonitoredRun(msgspec.Struct, frozen=True):
    """The numbers of a monitor; ``run`` is the index of the run in the report."""

    run: int
    results: MonitorResults


def watched(runs: list[Run]) -> list[MonitoredRun]:
    """The numbers of every monitor that has read one of the runs; Inspect logs have none."""
    found = []
    for number, run in enumerate(runs):
        called, original = (RaterNames(), run.original) if isinstance(run, PublishableRun) else (str, run)
        path = annotated_file(original)
        results = results_in(path) if path else []
        found += [
            MonitoredRun(number, msgspec.structs.replace(one, model=called(one.model))) for one in results
        ]
    return found
