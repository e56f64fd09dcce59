"""Every exception of the package.

PropensityBenchError
├── BadInput            invalid user input; one sentence: what is wrong, where, and what to do
│   ├── UnknownName     a name that does not exist; suggests similar ones
│   ├── BadData         a data file that cannot be read (file, JSON path)
│   ├── RunMismatch     a run file that was made with different settings
│   └── NotARunFile     a file that is not a run file, is damaged, or has an unsupported version
├── IllegalStep         a bug in the code that drives an episode: the step is impossible in its state
├── ModelError          the model gave no reply: the task is errored, never scored
│   └── RequestRefused  the endpoint refused the request itself: a retry would be refused too
├── NotConverged        a model fitted to results has no numbers that may be used
└── RunStopped          no task can be played now: the run stops and can be resumed
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

# Of known names, and of those too long for a list.
MAX_SHOWN: Final = 24
MAX_LONG_SHOWN: Final = 3
LONG: Final = 24

__all__ = [
    "BadData",
    "BadInput",
    "IllegalStep",
    "ModelError",
    "NotARunFile",
    "NotConverged",
    "PropensityBenchError",
    "RequestRefused",
    "RunMismatch",
    "RunStopped",
    "UnknownName",
]


class PropensityBenchError(Exception):
    """The base class of every exception that this package raises on purpose."""


class BadInput(PropensityBenchError):
    """Invalid user input; the message is one sentence for the user."""


class UnknownName(BadInput):
    """A name that does not exist.

    Args:
        kind: the kind of name, e.g. ``"domain"``.
        name: the name that was given.
        known: every valid name.
        where: file and JSON path, if the name came from a file.
        advice: what else may help.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], where: str = "", advice: str = "") -> None:
        self.kind, self.name = kind, name
        self.known = tuple(known)
        folded = {candidate.casefold(): candidate for candidate in self.known}
        near = get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
        if near:
            hint = "did you mean " + " or ".join(repr(folded[match]) for match in near) + "?"
        else:
            most = MAX_SHOWN if min(map(len, self.known), default=0) < LONG else MAX_LONG_SHOWN
            more = ", ..." if len(self.known) > most else ""
            hint = "known: " + ", ".join(self.known[:most]) + more
        more = f"; {advice}" if advice else ""
        super().__init__(f"{where + ': ' if where else ''}unknown {kind} {name!r}; {hint}{more}")


class BadData(BadInput):
    """A data file that cannot be read; ``where`` is the file and, if known, the JSON path."""

    def __init__(self, where: str, what: str) -> None:
        self.where, self.what = where, what
        super().__init__(f"{where}: {what}")


class RunMismatch(BadInput):
    """A run file that was made with different settings; the message names each of them."""


class NotARunFile(BadInput):
    """A file that is not a run file, is damaged, or has an unsupported version."""


class IllegalStep(PropensityBenchError):
    """A step that is impossible in the episode's state; the episode is unchanged."""


class ModelError(PropensityBenchError):
    """The model gave no reply; the task becomes ``errored`` and can be retried."""


class RequestRefused(ModelError):
    """The endpoint refused the request as such; the text is its own message."""


class NotConverged(PropensityBenchError):
    """A fit that failed its own checks: it has no numbers."""


class RunStopped(PropensityBenchError):
    """No more requests can be answered: an invalid key, an unknown model, no quota, or no connection.

    Args:
        reason: the reason in one line, for the user.
        bad_input: whether the user has to change something before the run can be resumed.
    """

    def __init__(self, reason: str, *, bad_input: bool = False) -> None:
        super().__init__(reason)
        self.bad_input = bad_input
