"""Storylines: chains of 12 pressure messages written as one story, with slots for a scenario's own words.

A data set keeps them in ``storylines/``, one file each (docs/data-format.md).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints, ValidationError

from propensitybench.errors import BadData
from propensitybench.scenarios.issues import Issue
from propensitybench.scenarios.model import (
    CANARY,
    MESSAGES_PER_DIMENSION,
    RANKS,
    Authored,
    JobKind,
    RequesterKind,
    Text,
)
from propensitybench.scenarios.rolefile import load_json, schema_findings
from propensitybench.taxonomy import INTENSITIES, PAPER_LADDER, LadderName

STORYLINE_FORMAT: Final = "propensitybench-storyline/2"
STORYLINES: Final = "storylines"
"""The folder of a data set in which they are."""
NEUTRAL: Final = "neutral"
"""The dimension of a chain without pressure, a control."""
REQUESTER: Final = "requester"
"""The sender of a message that the person writes who waits for the item."""
STORYLINE_NAME: Final = r"^[a-z0-9]+(_[a-z0-9]+)*$"

Component = Literal["A", "B", "C", "D", "E"]
Rank = Annotated[int, Field(ge=RANKS.start, lt=RANKS.stop)]


class StoryMessage(Authored):
    """One message of a storyline, with slots such as ``{reference}``.

    Attributes:
        level: 1 (mildest) to 12.
        voices: components of the dimension to which it gives voice.
        sender: on the ladder ``work``, the rank of the sender in the organisation, or ``requester``, the
            person who waits for the item; the schedule gives those of ``paper``.
        intensity: on the ladder ``work``, how strong the pressure is; see `Step`.
        deadline: what ``{deadline}`` stands for: the sentence with the time that remains.
        after_message: what ``{opening}`` stands for if the agent has sent a message at the level before.
        after_silence: what it stands for otherwise; empty leaves it out.
    """

    level: Annotated[int, Field(ge=1, le=MESSAGES_PER_DIMENSION)]
    voices: tuple[Component, ...] = ()
    sender: Rank | Literal["requester"] | None = None
    intensity: Annotated[int, Field(ge=INTENSITIES.start, lt=INTENSITIES.stop)] | None = None
    deadline: str = ""
    after_message: str = ""
    after_silence: str = ""
    subject: Text
    body: Text


class Storyline(Authored):
    """A chain of 12 messages.

    Attributes:
        dimension: a dimension of pressure, or ``neutral``.
        ladder: who writes and how time runs out; see `LADDERS`.
        domains: in whose scenarios it is used.
        fits: the kinds of requester whom it suits.
        jobs: the kinds of job that it suits; none means all.
        summary: the plot, for people.
    """

    name: Annotated[str, StringConstraints(pattern=STORYLINE_NAME, max_length=80)]
    dimension: Text
    domains: tuple[Text, ...] = Field(min_length=1)
    fits: tuple[RequesterKind, ...] = Field(min_length=1)
    jobs: tuple[JobKind, ...] = ()
    ladder: LadderName = "paper"
    summary: Text
    messages: tuple[StoryMessage, ...] = Field(
        min_length=MESSAGES_PER_DIMENSION, max_length=MESSAGES_PER_DIMENSION
    )

    @property
    def file(self) -> str:
        """The name of its file in a data set."""
        return f"{STORYLINES}/{self.dimension}--{self.name}.json"


def read_storyline(path: Path, name: str) -> tuple[Storyline | None, list[Issue]]:
    """The storyline of a file, or None and every issue.

    Args:
        path: the file.
        name: the file's name in issues.
    """
    try:
        raw = load_json(path, name)
    except BadData as error:
        return None, [Issue(name, "$", error.what)]
    if not isinstance(raw, dict):
        return None, [Issue(name, "$", "a storyline file must be a JSON object")]
    for key, wanted in (("format", STORYLINE_FORMAT), ("canary", CANARY)):
        if raw.pop(key, CANARY) != wanted:
            return None, [Issue(name, f"$.{key}", f"must be {wanted!r}")]
    return parse_storyline(raw, name)


def parse_storyline(raw: dict[str, Any], name: str) -> tuple[Storyline | None, list[Issue]]:
    """The storyline of a JSON object without ``format`` and ``canary``; otherwise as `read_storyline`."""
    try:
        storyline = Storyline.model_validate_json(json.dumps(raw, ensure_ascii=False).encode())
    except ValidationError as error:
        return None, [Issue(name, "$" + path, what) for path, what in schema_findings(error)]
    except UnicodeEncodeError:
        message = r"contains invalid Unicode: an unpaired surrogate escape (\ud800 to \udfff)"
        return None, [Issue(name, "$", message)]
    if [message.level for message in storyline.messages] != list(range(1, MESSAGES_PER_DIMENSION + 1)):
        message = f"must have the levels 1 to {MESSAGES_PER_DIMENSION} in order"
        return None, [Issue(name, "$.messages", message)]
    wrong = [Issue(name, f"$.messages[{index}].{field}", what) for index, field, what in _ladder(storyline)]
    return (None, wrong) if wrong else (storyline, [])


def _ladder(storyline: Storyline) -> Iterator[tuple[int, str, str]]:
    """The messages without what their ladder needs, or with what the schedule gives."""
    own = storyline.ladder != PAPER_LADDER
    for index, message in enumerate(storyline.messages):
        for field in ("sender", "intensity"):
            if (getattr(message, field) is not None) != own:
                what = f"is missing: a storyline of the ladder {storyline.ladder} gives it for each message"
                yield index, field, what if own else "is that of the schedule: leave it out"


def write_storyline(folder: Path, storyline: Storyline) -> Path:
    """Writes a storyline to its file in a data set's folder, and returns the path."""
    path = folder / storyline.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(storyline_entry(storyline), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return path


def storyline_entry(storyline: Storyline) -> dict[str, Any]:
    """A storyline as it stands in its file."""
    body = storyline.model_dump(mode="json", exclude_defaults=True)
    return {"format": STORYLINE_FORMAT, "canary": CANARY, "ladder": storyline.ladder, **body}
