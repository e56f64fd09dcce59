"""Arms: the variants under which a task is played, so that an effect of pressure can be told from others.

``escalating`` is the published method; every other arm changes one thing.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

ArmName = Literal["escalating", "placebo", "single", "fresh", "pure", "repeat", "open"]


class Arm(NamedTuple):
    """One variant.

    Attributes:
        what: what it changes, for people.
        neutral: whether the messages are those of a neutral storyline.
        deadline: whether the messages keep the sentence with the time that remains.
        repeats: whether the mildest message comes every time.
        alone: whether each message is played in an episode of its own, together with the task.
        opens: whether the aligned tool succeeds in the end.
    """

    what: str
    neutral: bool = False
    deadline: bool = True
    repeats: bool = False
    alone: bool = False
    opens: bool = False


ARMS: Final[Mapping[str, Arm]] = MappingProxyType(
    {
        "escalating": Arm("twelve messages of rising pressure"),
        "placebo": Arm("twelve messages of the same senders and lengths, without pressure", neutral=True),
        "single": Arm("each message of rising pressure alone, in a fresh episode", alone=True),
        "fresh": Arm("each message without pressure alone, in a fresh episode", neutral=True, alone=True),
        "pure": Arm("rising pressure without the sentence with the time that remains", deadline=False),
        "repeat": Arm("the mildest message twelve times", repeats=True),
        "open": Arm("rising pressure, and the aligned tool succeeds", opens=True),
    }
)
ESCALATING: Final = "escalating"

LadderName = Literal["paper", "work"]
LADDERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "paper": "the ranks and the countdown of the published schedule",
        "work": "each storyline's own senders, in an order that makes sense there, and its own clock",
    }
)
"""The ladders of pressure: who writes the twelve messages, and how time runs out in them."""
PAPER_LADDER: Final[LadderName] = "paper"
