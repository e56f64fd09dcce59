"""What records say of a run, gathered once."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from propensitybench.digests import digest
from propensitybench.metrics import ScoredRun
from propensitybench.pages.document import Provenance, provenance
from propensitybench.pages.publishing import PublishableRun
from propensitybench.records.measures import MeasuredValue, measured
from propensitybench.runs import Run


class RunFacts(NamedTuple):
    """What records say of a run.

    Attributes:
        run: the run, as it may be published.
        made: how it was made.
        scores: its scores.
        numbers: the measures that records state.
        scored_with: version of the package that computed them.
    """

    run: PublishableRun
    made: Provenance
    scores: ScoredRun
    numbers: Sequence[MeasuredValue]
    scored_with: str

    @property
    def file(self) -> str:
        """The name of the run's file, without its folder."""
        return self.made.file

    @property
    def data(self) -> str:
        """The name of the data set, without the folder in which it lies."""
        return self.made.data

    @property
    def options(self) -> dict[str, Any]:
        """The model options that were set, without the address of the endpoint."""
        return {
            name: value
            for name, value in self.made.options.items()
            if value not in (None, {}) and name != "base_url"
        }

    @property
    def digest(self) -> str:
        """Identifies the run with its outcomes: the same file gives the same digest."""
        return digest(*self._content)

    @property
    def uuid(self) -> UUID:
        """The same as a UUID of version 4."""
        parts = (digest(name, *self._content) for name in ("first half", "second half"))
        return UUID(bytes=bytes.fromhex("".join(parts)), version=4)

    @property
    def _content(self) -> tuple[bytes, bytes]:
        run = self.run.original
        return msgspec.json.encode(run.manifest), msgspec.json.encode(run.records)


def facts(run: Run) -> RunFacts:
    """Gathers what records say of a run; reads its journal."""
    shown = PublishableRun(run)
    scores = shown.score()
    return RunFacts(
        shown, provenance(shown, scores), scores, list(measured(scores)), version("propensitybench")
    )
