"""Models that read a text while it is being written."""

from typing import Final

import msgspec

from propensitybench.chat import Message
from propensitybench.episode.prompt import NO_REPLY
from propensitybench.errors import ModelError
from propensitybench.generation.asking import COMPLAINTS, JournaledModel, Unusable
from propensitybench.generation.stages import Json, Unreadable, read_object, render

ASKED: Final = 3
"""How often a judge is asked until it answers in the form that it was told."""


class _Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keep: bool
    reasons: list[str]


async def verdict(judge: JournaledModel, what: str, text: Json, attempt: int) -> list[str]:
    """What a judge wants changed; empty if the text can stay.

    Args:
        judge: the model.
        what: what it reads, in a few words.
        text: the text.
        attempt: of the text; see `TextProvenance`.
    """
    shown = msgspec.json.format(msgspec.json.encode(text), indent=1).decode()
    prompt = render("judge.md.j2", what=what, text=shown)
    messages = [Message("user", prompt)]
    wrong = ""
    for time in range(ASKED):
        try:
            reply, failure = await judge.ask(messages, (attempt, time))
        except ModelError as error:
            return [f"the judge {judge.model} gave no verdict: {error}"]
        if failure is None:
            try:
                found = msgspec.convert(read_object(reply.content), _Verdict)
            except (Unreadable, msgspec.ValidationError) as error:
                judge.unusable[Unusable.MALFORMED] += 1
                wrong = str(error)
            else:
                return [] if found.keep else found.reasons or ["a reader would not keep it"]
        else:
            wrong = COMPLAINTS[failure]
        again = render("complaints.md.j2", complaints=[wrong])
        answered_with = reply.content.strip() if failure is None else ""
        messages = [
            Message("user", prompt),
            Message("assistant", answered_with or NO_REPLY),
            Message("user", again),
        ]
    return [f"the judge {judge.model} gave no verdict: {wrong}"]
