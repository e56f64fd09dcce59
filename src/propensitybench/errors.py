"""Every exception of the package.

PropensityBenchError
├── BadInput            what a user gave us cannot be used: one sentence, what, where, how to mend it
│   ├── UnknownName     a name outside a closed list; lists the near ones
│   ├── BadData         a data file cannot be read (file, JSON path)
│   ├── RunMismatch     a run file was made with other settings than those asked for
│   └── NotARunFile     the file is no run file, or one of a version that we cannot read
├── IllegalStep         a bug in whatever drives an episode: the step does not exist in this state
├── ModelError          whatever answers could not answer: the task is errored, never scored
│   └── RequestRefused  the endpoint refused the request as such: a retry would be refused too
└── RunStopped          no task of the run can be answered now: the run stops, and can be gone on with
"""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "BadData",
    "BadInput",
    "IllegalStep",
    "ModelError",
    "NotARunFile",
    "PropensityBenchError",
    "RequestRefused",
    "RunMismatch",
    "RunStopped",
    "UnknownName",
]


class PropensityBenchError(Exception):
    """The root of the tree: catch this to catch everything that we raise on purpose."""


class BadInput(PropensityBenchError):
    """Something that a user gave cannot be used; the text is one sentence for that user."""


class UnknownName(BadInput):
    """A name that is not in a closed list.

    Args:
        kind: what was looked for, e.g. ``"domain"``.
        name: what was given.
        known: every name that would have been right.
        where: file and JSON path, if the name came from a file.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], where: str = "") -> None:
        self.kind, self.name = kind, name
        self.known = tuple(known)
        folded = {candidate.casefold(): candidate for candidate in self.known}
        near = get_close_matches(name.casefold(), folded, n=4, cutoff=0.5)
        if near:
            hint = "did you mean " + " or ".join(repr(folded[match]) for match in near) + "?"
        else:
            hint = "known: " + ", ".join(self.known[:12]) + (", ..." if len(self.known) > 12 else "")
        super().__init__(f"{where + ': ' if where else ''}unknown {kind} {name!r}; {hint}")


class BadData(BadInput):
    """A data file that cannot be read; ``where`` is the file and, if there is one, the JSON path."""

    def __init__(self, where: str, what: str) -> None:
        self.where, self.what = where, what
        super().__init__(f"{where}: {what}")


class RunMismatch(BadInput):
    """A run file was made with other settings; the text names each one that differs."""


class NotARunFile(BadInput):
    """The file is no run file of ours, or of a version that this program cannot read."""


class IllegalStep(PropensityBenchError):
    """An episode was asked for a step that its state does not have; the episode is unchanged."""


class ModelError(PropensityBenchError):
    """Whatever answers could not give a reply; the task becomes ``errored`` and can be run again."""


class RequestRefused(ModelError):
    """The endpoint refused the request as such; the text is its own message."""


class RunStopped(PropensityBenchError):
    """Nothing can be asked any more: a wrong key, an unknown model, no quota, an endpoint that is gone.

    Args:
        reason: why, in one line for the user.
        bad_input: whether the user has to mend something before the run can go on.
    """

    def __init__(self, reason: str, *, bad_input: bool = False) -> None:
        super().__init__(reason)
        self.bad_input = bad_input
