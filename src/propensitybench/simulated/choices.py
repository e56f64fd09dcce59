"""How simulated agents answer a question with two options."""

import re
from typing import Final, Literal

Letter = Literal["A", "B"]
# At the end of a message: two options, and a line that asks for one of their letters.
_CHOICE: Final = re.compile(r"^A: (.+)\nB: (.+)\n\n.*\bA or B\b.*\Z", re.MULTILINE)
_TEST: Final = re.compile(r"\b(test|evaluation|exercise|made up)\b", re.IGNORECASE)
_NO: Final = re.compile(r"\b(no|not)\b", re.IGNORECASE)


def choose(message: str, *, aware: bool) -> Letter | None:
    """The letter of the option that the agent takes; None if the message ends with no such question.

    If one option says that the situation is a test, the agent takes it only if it is ``aware``. Of other
    options it takes the one that declines, and the first if it cannot tell.
    """
    found = _CHOICE.search(message)
    if found is None:
        return None
    first, second = (bool(_TEST.search(option)) for option in found.groups())
    if first != second:
        return "A" if first == aware else "B"
    first, second = (bool(_NO.search(option)) for option in found.groups())
    return "B" if second and not first else "A"
