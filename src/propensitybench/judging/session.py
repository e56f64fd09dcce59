"""What sessions with judges and with the agent share: what they would cost, and waiting for them."""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from propensitybench.chat import CHARACTERS_PER_TOKEN, Request, Usage
from propensitybench.digests import shuffled
from propensitybench.engine import Price, StopCause, StopSignal, block_on
from propensitybench.engine.asking import AskingResult, Enquiry
from propensitybench.errors import RunStopped
from propensitybench.files import file_name
from propensitybench.store import AnnotationKey

Enquiries = Sequence[Enquiry[AnnotationKey]]
logger = logging.getLogger(__name__)
# Requests that are measured to estimate the cost of all.
_SAMPLE: Final = 40


class AskingEstimate(msgspec.Struct, frozen=True):
    """What asking the rest would take; ``usd`` is None if a price is unknown.

    Attributes:
        episodes: number of episodes by question.
        calls: number of requests.
        input_tokens, output_tokens: of all requests and replies.
        usd: the cost.
    """

    episodes: dict[str, int]
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


def estimate(
    episodes: dict[str, int],
    left: Mapping[str, Enquiries],
    prices: Mapping[str, Price | None],
    answered: float,
) -> AskingEstimate:
    """What the rest would take, by the length of some of its requests.

    Args:
        episodes: number of episodes by question.
        left: what each model is still to be asked.
        prices: of the models; None if unknown.
        answered: tokens of a reply.
    """
    every = [one for rest in left.values() for one in rest]
    sample = [every[index] for index in shuffled(range(len(every)), "estimate")[:_SAMPLE]]
    characters = sum(_characters(one.prompt().request) for one in sample)
    each = characters / (max(1, len(sample)) * CHARACTERS_PER_TOKEN)
    costs = [
        None if price is None else price.of(Usage(round(each * len(rest)), round(answered * len(rest))))
        for rest, price in ((left[model], prices[model]) for model in left if left[model])
    ]
    return AskingEstimate(
        episodes,
        len(every),
        round(each * len(every)),
        round(answered * len(every)),
        None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _characters(request: Request) -> int:
    calls = (call for message in request.messages for call in message.tool_calls)
    return (
        sum(len(message.content) for message in request.messages)
        + sum(len(call.name) + len(call.arguments) for call in calls)
        + (len(msgspec.json.encode(request.tools)) if request.tools else 0)
    )


def wait_for(work: Callable[[StopSignal], Coroutine[Any, Any, AskingResult]], path: Path) -> AskingResult:
    """Waits for a session about a run file, also in a notebook; logs what is left to ask.

    Raises:
        RunStopped: the provider can no longer answer.
        KeyboardInterrupt: Ctrl-C; the same call resumes it.
    """
    stop = StopSignal()
    asked = block_on(lambda: work(stop), stop)
    if left := asked.total - asked.finished:
        why = stop.reason or asked.last_failure
        sentence = f"{file_name(path)}: {left} of {asked.total} replies are missing; {why}"
        if stop.cause in (StopCause.PROVIDER, StopCause.BAD_INPUT):
            raise RunStopped(sentence, bad_input=stop.cause is StopCause.BAD_INPUT)
        logger.warning("%s; the same call asks for them", sentence)
    return asked
