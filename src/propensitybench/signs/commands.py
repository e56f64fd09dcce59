"""Commands that are printed as a next step, with the options of the run that they go on from."""

import json
from shlex import quote
from typing import Final

from propensitybench.episode import PAPER, built_in_name
from propensitybench.metrics.scores import Scorable
from propensitybench.runs import Run
from propensitybench.runs.settings import SETTINGS, as_typed, option_of
from propensitybench.scenarios.dataset import BUILT_IN
from propensitybench.store import Manifest
from propensitybench.taxonomy import NAMINGS

_FILTERS: Final = ("domains", "workspaces", "roles", "capabilities", "dimensions")


def typed(hint: str, run: Scorable) -> str:
    """A sign's hint as it is typed for a run; the options are those of a run in a file."""
    naming = options = ""
    if isinstance(run, Run):
        namings = run.manifest.selections[-1].namings
        naming = "" if namings == NAMINGS else f" {as_typed('naming', namings[0])}"
        options = "".join(f" {word}" for word in options_of(run.manifest))
    return hint.format(model=quote(run.model), file=quote(run.file), naming=naming, options=options)


def options_of(manifest: Manifest) -> list[str]:
    """The options of ``run`` that give the same tasks with the same model options; the naming is left out.

    Of a run that has grown, those with which it grew last. A template of the user's own stands as FILE.
    """
    asked = manifest.selections[-1]
    words = [] if manifest.data == BUILT_IN else [f"--data {quote(manifest.data)}"]
    words += [as_typed(name, one) for name in _FILTERS for one in getattr(asked, name)]
    numbers = {"limit": asked.limit, "epochs": asked.epochs if asked.epochs > 1 else None}
    numbers["levels"] = None if manifest.protocol.levels == PAPER.levels else manifest.protocol.levels
    numbers["seed"] = manifest.seed or None
    words += [as_typed(name, number) for name, number in numbers.items() if number is not None]
    if (template := built_in_name(manifest.template) or "FILE") != "named":
        words.append(f"{option_of('template')} {template}")
    for name, value in manifest.options.items():
        if isinstance(value, dict):
            words.append(f"{option_of(name)} {quote(json.dumps(value))}")
        elif name in SETTINGS and value is not None:
            words.append(as_typed(name, value))
    return words
