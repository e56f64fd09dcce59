"""Token counts that an endpoint states: checked, and estimated where it states none."""

import math
from typing import Any, Final

from propensitybench.chat import CHARACTERS_PER_TOKEN, Usage

# Ten times the longest context window of any model. Counts are summed over a run in 64 bits.
MAX_TOKENS: Final = 100_000_000
ESTIMATED: Final = "token counts estimated"


def token_count(stated: Any) -> int:
    """A stated number of tokens; 0 for what cannot be one, which counts as not stated.

    Some servers write 12.0 for 12.
    """
    if isinstance(stated, bool) or not isinstance(stated, int | float) or not math.isfinite(stated):
        return 0
    return int(stated) if 0 <= stated <= MAX_TOKENS else 0


def usage_of(prompt: Any, completion: Any, cached: Any = 0, reasoning: Any = 0) -> Usage:
    """The usage that an endpoint states, each count checked by itself.

    More cached tokens than prompt tokens are implausible, and would make a prompt too cheap.
    """
    read, cached = token_count(prompt), token_count(cached)
    return Usage(read, token_count(completion), cached if cached <= read else 0, token_count(reasoning))


def with_estimates(usage: Usage, sent: int, received: int) -> tuple[Usage, bool]:
    """The usage with token counts for what the endpoint did not state, and whether any is estimated.

    Budgets and rate limits need them: every request has a prompt, and text was generated.

    Args:
        usage: as stated.
        sent: length of the request in characters.
        received: length of the reply in characters.
    """
    if usage.input and (usage.output or not received):
        return usage, False
    output = usage.output or _tokens(received)
    return Usage(usage.input or _tokens(sent), output, usage.cached, usage.reasoning), True


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)
