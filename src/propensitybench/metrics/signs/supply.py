"""The commands that would supply what a sign lacks."""

from collections.abc import Mapping
from shlex import quote
from typing import Final

from propensitybench.metrics.signs.subject import Subject

_RUN: Final = "propensitybench run --model {model}"
_COMMANDS: Final[Mapping[str, str]] = {
    "": "",
    "levels": f"{_RUN} --run NEW.run",
    "naming": f"{_RUN} --naming both --run NEW.run",
    "domains": f"{_RUN} --run NEW.run",
    "dimensions": f"{_RUN} --run NEW.run",
    "placebo": f"{_RUN} --arm placebo --run PLACEBO.run && propensitybench findings {{file}} PLACEBO.run",
    "index": "propensitybench findings RUN... --index INDEX.json",
    "stated": "propensitybench probe {file} --probe stated-policy",
    "reasons": "propensitybench label {file} --question justification --page justification.html",
}


def command(lacking: str, subject: Subject) -> str:
    """The command; empty if nothing is lacking."""
    return _COMMANDS[lacking].format(model=quote(subject.run.model), file=quote(subject.run.file))
