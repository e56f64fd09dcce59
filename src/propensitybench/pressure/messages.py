"""The 12 messages of a scenario and a dimension."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec

from propensitybench.digests import seed_from
from propensitybench.errors import BadInput
from propensitybench.pressure.fitting import fit
from propensitybench.scenarios.model import MAX_NAME_LENGTH, PressureMessage, Scenario
from propensitybench.scenarios.storyline import NEUTRAL, Storyline
from propensitybench.taxonomy import ARMS, ESCALATING, PAPER_LADDER, ArmName, LadderName


class Chain(NamedTuple):
    """The messages of a task, mildest first, and the name of their storyline; empty for a scenario's own."""

    storyline: Annotated[str, msgspec.Meta(max_length=MAX_NAME_LENGTH)]
    messages: tuple[PressureMessage, ...]


def pressure_chain(
    scenario: Scenario,
    dimension: str,
    storylines: Sequence[Storyline],
    seed: int,
    arm: ArmName = ESCALATING,
    ladder: LadderName = PAPER_LADDER,
) -> Chain:
    """The chain of a scenario and a dimension under an arm.

    A scenario with its own messages (in the published layout) uses those, whatever the seed. For any other a
    storyline of the ladder is drawn that has the dimension, the domain, and fits the requester and the job.
    Under an arm without pressure the storyline is a neutral one, drawn again for each dimension.

    Args:
        scenario: the scenario.
        dimension: the dimension of pressure, or ``neutral``.
        storylines: those of the data set, in any order.
        seed: the run's seed. The choice depends on it, the scenario's name and the dimension.
        arm: see `ARMS`.
        ladder: see `LADDERS`. A scenario's own messages are of the ladder ``paper``.

    Raises:
        BadInput: no storyline suits the scenario, or it cannot be fitted, or its own messages are of another
            ladder, or have no sentence of the deadline that could be left out.
    """
    chain = _whole(scenario, dimension, storylines, seed, arm, ladder)
    return Chain(chain.storyline, chain.messages[:1] * len(chain.messages)) if ARMS[arm].repeats else chain


def _whole(
    scenario: Scenario,
    dimension: str,
    storylines: Sequence[Storyline],
    seed: int,
    arm: ArmName,
    ladder: LadderName,
) -> Chain:
    """The chain before any repetition."""
    wanted = NEUTRAL if ARMS[arm].neutral else dimension
    if scenario.messages is not None and wanted in scenario.messages:
        if ladder != PAPER_LADDER:
            raise BadInput(
                f"{scenario.name}: its own pressure messages are of the ladder {PAPER_LADDER}; leave out "
                f"the ladder {ladder}, or give it a situation and storylines"
            )
        if not ARMS[arm].deadline:
            raise BadInput(
                f"{scenario.name}: its own pressure messages have no separate sentence with the deadline; "
                f"leave out the arm {arm}, or give it a situation and storylines"
            )
        return Chain("", scenario.messages[wanted])
    chosen = storyline_of(scenario, dimension, storylines, seed, arm, ladder)
    return Chain(chosen.name, fit(chosen, scenario, seed, deadline=ARMS[arm].deadline))


def storyline_of(
    scenario: Scenario,
    dimension: str,
    storylines: Sequence[Storyline],
    seed: int,
    arm: ArmName = ESCALATING,
    ladder: LadderName = PAPER_LADDER,
) -> Storyline:
    """The storyline of a scenario and a dimension under an arm; see `pressure_chain`."""
    wanted = NEUTRAL if ARMS[arm].neutral else dimension
    suiting = sorted(suitable(storylines, scenario, wanted, ladder), key=lambda storyline: storyline.name)
    if not suiting:
        situation = scenario.situation
        kinds = f"{situation.requester_kind}, {situation.job_kind or 'any job'}" if situation else "none"
        raise BadInput(
            f"{scenario.name}: no storyline of the dimension {wanted} and the ladder {ladder} is for "
            f"{scenario.domain} and fits its requester and job ({kinds}); add one to the folder storylines "
            "of the data, or choose another one"
        )
    return suiting[seed_from(seed, scenario.name, dimension, "storyline") % len(suiting)]


def suitable(
    storylines: Sequence[Storyline], scenario: Scenario, dimension: str, ladder: LadderName = PAPER_LADDER
) -> list[Storyline]:
    """The storylines that a scenario may have under a dimension."""
    if scenario.situation is None:
        return []
    kind, job = scenario.situation.requester_kind, scenario.situation.job_kind
    return [
        storyline
        for storyline in storylines
        if storyline.dimension == dimension
        and storyline.ladder == ladder
        and scenario.domain in storyline.domains
        and kind in storyline.fits
        and (job is None or not storyline.jobs or job in storyline.jobs)
    ]
