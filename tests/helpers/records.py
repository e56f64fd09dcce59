"""Episode records for tests, made without running an episode."""

from typing import TypedDict, Unpack

from propensitybench.episode import EpisodeRecord, EpisodeStats, Outcome
from propensitybench.scenarios import TaskMetadata
from propensitybench.taxonomy import Naming

BIO = "bio-security"
CHEM = "chemical-security"
CYBER = "cyber-security"
SELF = "self-proliferation"
LAST = 12


class About(TypedDict, total=False):
    """Properties of an episode besides its outcome."""

    scenario: str
    domain: str
    dimension: str
    capability: str | None
    workspace: str
    naming: Naming
    epoch: int
    aligned_calls: int
    right_calls: int
    terminations: int
    ignored_misaligned_calls: int


def metadata(
    scenario: str = "a",
    domain: str = BIO,
    dimension: str = "time",
    capability: str | None = None,
    naming: Naming = "harmful",
    epoch: int = 1,
    workspace: str = "Some-Workspace",
    seed: int = 0,
) -> TaskMetadata:
    """The metadata of a task."""
    return TaskMetadata(
        task=f"{scenario}.{dimension}.{naming}.{epoch}",
        scenario=scenario,
        domain=domain,
        workspace=workspace,
        role="Some-Role",
        capability=capability,
        dimension=dimension,
        naming=naming,
        epoch=epoch,
        seed=seed,
    )


def ended(outcome: Outcome, level: int, **about: Unpack[About]) -> EpisodeRecord:
    """A record with that outcome.

    The level is where it ended: of the misaligned call, of the first reply that was withheld or cut off, of
    the error, or the one that an unfinished episode has reached (and answered, unless it is the last).
    """
    heard = outcome is Outcome.RESISTED or (outcome is Outcome.UNFINISHED and level < LAST)
    return EpisodeRecord(
        metadata=metadata(
            about.get("scenario", "a"),
            about.get("domain", BIO),
            about.get("dimension", "time"),
            about.get("capability"),
            about.get("naming", "harmful"),
            about.get("epoch", 1),
            about.get("workspace", "Some-Workspace"),
        ),
        stats=EpisodeStats(
            outcome=outcome,
            level=LAST if outcome in (Outcome.BLOCKED, Outcome.TRUNCATED) else level,
            levels_run=LAST + 1 if outcome is Outcome.COMPLETED else level + heard,  # nothing can follow
            aligned_calls=about.get("aligned_calls", about.get("right_calls", 0)),
            aligned_calls_right=about.get("right_calls", 0),
            terminations=about.get("terminations", 0),
            ignored_misaligned_calls=about.get("ignored_misaligned_calls", 0),
        ),
        error="no answer" if outcome is Outcome.ERRORED else "",
    )


def misaligned(level: int, **about: Unpack[About]) -> EpisodeRecord:
    """The misaligned tool was called at that level."""
    return ended(Outcome.MISALIGNED, level, **about)


def resisted(**about: Unpack[About]) -> EpisodeRecord:
    """The agent met every level without calling the misaligned tool."""
    return ended(Outcome.RESISTED, LAST, **about)


def blocked(level: int = 0, **about: Unpack[About]) -> EpisodeRecord:
    """The provider withheld a reply at that level, by default every reply."""
    return ended(Outcome.BLOCKED, level, **about)


def truncated(level: int = 0, **about: Unpack[About]) -> EpisodeRecord:
    """The length limit cut off a reply at that level, and the agent was not seen to give in."""
    return ended(Outcome.TRUNCATED, level, **about)


def errored(level: int = 0, **about: Unpack[About]) -> EpisodeRecord:
    """The episode failed at that level."""
    return ended(Outcome.ERRORED, level, **about)


def unfinished(level: int = 0, **about: Unpack[About]) -> EpisodeRecord:
    """The run stopped while the episode was at that level, after a reply there."""
    return ended(Outcome.UNFINISHED, level, **about)
