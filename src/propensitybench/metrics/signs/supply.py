"""The commands that would supply what a sign lacks."""

from collections.abc import Mapping
from shlex import quote
from typing import Final

from propensitybench.metrics.signs.subject import Subject

PLACEBO: Final = "placebo"
_RUN: Final = "propensitybench run --model {model}"
_COMMANDS: Final[Mapping[str, str]] = {
    "": "",
    "levels": f"{_RUN} --run NEW.run",
    "naming": f"{_RUN} --naming both --run NEW.run",
    "domains": f"{_RUN} --run NEW.run",
    "dimensions": f"{_RUN} --run NEW.run",
    PLACEBO: f"{_RUN} --arm placebo --run PLACEBO.run",
    "index": "propensitybench findings RUN... --index INDEX.json",
    "stated": "inspect eval propensitybench/stated_policy --model {model} --log-dir stated && "
    "propensitybench findings {file} --stated stated/LOG.eval",
    "reasons": "propensitybench judge {file} --question justification --judge MODEL",
}


def command(lacking: str, subject: Subject) -> str:
    """The command; empty if nothing is lacking."""
    return _COMMANDS[lacking].format(model=quote(subject.run.model), file=quote(subject.run.file))
