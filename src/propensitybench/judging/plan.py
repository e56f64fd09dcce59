"""Which questions are put to which judges about which episodes, and what that costs."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from propensitybench.chat import CHARACTERS_PER_TOKEN
from propensitybench.clients.options import ModelOptions
from propensitybench.digests import shuffled
from propensitybench.engine import Price, price_table
from propensitybench.episode import EpisodeRecord
from propensitybench.errors import BadInput, UnknownName
from propensitybench.judging import keyless
from propensitybench.judging.items import item_of
from propensitybench.judging.labels import PERSON, episodes_about
from propensitybench.judging.prompts import ask, prompts
from propensitybench.judging.questions import Question
from propensitybench.runs import StoredRun
from propensitybench.simulated import PREFIX as SIMULATED

# Episodes whose prompts are measured to estimate the cost of all.
_SAMPLE: Final = 40
_TOKENS_ANSWERED: Final = 60


class Judging(msgspec.Struct, frozen=True):
    """What is asked of whom; raises `BadInput` for a judge or a consequence that cannot be used.

    Attributes:
        questions: about each episode that they are about.
        judges: models, by address.
        options: of every judge.
        consequences: what judges are told of what follows; each is asked besides the usual form.
        limit: of episodes for each question, evenly over domains; None is all.
    """

    questions: tuple[Question, ...]
    judges: tuple[str, ...]
    options: ModelOptions = ModelOptions()
    consequences: tuple[str, ...] = ()
    limit: int | None = None

    def __post_init__(self) -> None:
        """Checks what is given."""
        for judge in self.judges:
            if judge.startswith((SIMULATED, PERSON)):
                raise BadInput(f"--judge {judge}: cannot read; give a model, or {keyless.MODEL} to try it")
        for name in self.consequences:
            if name not in prompts().consequences:
                raise UnknownName("consequence", name, prompts().consequences, "--consequence")
        for option, given in (
            ("--question", [question.name for question in self.questions]),
            ("--judge", self.judges),
            ("--consequence", self.consequences),
        ):
            if twice := [one for one in given if given.count(one) > 1]:
                raise BadInput(f"{option} {twice[0]}: is given twice")


class Job(NamedTuple):
    """A question about an episode, in one form; every judge is asked it."""

    question: Question
    record: EpisodeRecord
    variant: str


class AskingEstimate(msgspec.Struct, frozen=True):
    """What asking the rest would take; ``usd`` is None if a price is unknown.

    Attributes:
        episodes: number of episodes by question.
        calls: number of requests.
        input_tokens, output_tokens: of all requests and replies, without reasoning.
        usd: the cost.
    """

    episodes: dict[str, int]
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


def chosen(run: StoredRun, question: Question, limit: int | None) -> list[EpisodeRecord]:
    """The episodes to ask about, in a random order that takes the domains in turn."""
    episodes = episodes_about(run, question)
    turns: dict[str, int] = {}
    ranked: list[tuple[int, str, EpisodeRecord]] = []
    for index in shuffled(range(len(episodes)), question.digest, run.manifest.seed):
        domain = episodes[index].metadata.domain
        turns[domain] = turns.get(domain, 0) + 1
        ranked.append((turns[domain], domain, episodes[index]))
    ranked.sort(key=lambda one: one[:2])
    return [record for _, _, record in ranked[:limit]]


def jobs_of(run: StoredRun, judging: Judging) -> list[Job]:
    """Everything that each judge is asked."""
    return [
        Job(question, record, variant)
        for question in judging.questions
        for record in chosen(run, question, judging.limit)
        for variant in ("", *judging.consequences)
    ]


def price_of(judge: str, given: Price | None) -> Price | None:
    """The price of a judge; None if it is unknown."""
    if judge.startswith(keyless.PREFIX):
        return Price(0.0, 0.0)
    return given or price_table().find(judge)


def estimate(
    run: StoredRun, judging: Judging, left: Sequence[tuple[Job, str]], price: Price | None
) -> AskingEstimate:
    """What the rest would take.

    Args:
        run: the run.
        judging: what is asked of whom.
        left: what has no reply yet, with the judge.
        price: of every judge; None looks each one up.
    """
    sample = [left[index] for index in shuffled(range(len(left)), "estimate")[:_SAMPLE]]
    characters = 0
    for job, judge in sample:
        item = item_of(run.transcript(job.record.metadata.task), job.question, run.model)
        characters += sum(len(one.content) for one in ask(job.question, item, job.variant, judge))
    each = characters / (max(1, len(sample)) * CHARACTERS_PER_TOKEN)
    prices = [price_of(judge, price) for _, judge in left]
    usd = None
    if None not in prices:
        costs = (p.input * each + p.output * _TOKENS_ANSWERED for p in prices if p is not None)
        usd = sum(costs) / 1e6
    return AskingEstimate(
        {one.name: len(chosen(run, one, judging.limit)) for one in judging.questions},
        len(left),
        round(each * len(left)),
        _TOKENS_ANSWERED * len(left),
        usd,
    )
