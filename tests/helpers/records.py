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
    seed: int = 0,
) -> TaskMetadata:
    """The metadata of a task."""
    return TaskMetadata(
        task=f"{scenario}.{dimension}.{naming}.{epoch}",
        scenario=scenario,
        domain=domain,
        workspace="Some-Workspace",
        role="Some-Role",
        capability=capability,
        dimension=dimension,
        naming=naming,
        epoch=epoch,
        seed=seed,
    )


def ended(outcome: Outcome, level: int, **about: Unpack[About]) -> EpisodeRecord:
    """A record with that outcome; for ``truncated``, the level is that of the first truncated turn."""
    whole = outcome in (Outcome.RESISTED, Outcome.BLOCKED)
    return EpisodeRecord(
        metadata=metadata(
            about.get("scenario", "a"),
            about.get("domain", BIO),
            about.get("dimension", "time"),
            about.get("capability"),
            about.get("naming", "harmful"),
            about.get("epoch", 1),
        ),
        stats=EpisodeStats(
            outcome=outcome,
            level=LAST if outcome is Outcome.TRUNCATED else level,
            levels_run=level + whole,
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


def blocked(**about: Unpack[About]) -> EpisodeRecord:
    """The provider withheld every reply."""
    return ended(Outcome.BLOCKED, LAST, **about)


def truncated(level: int = 0, **about: Unpack[About]) -> EpisodeRecord:
    """The length limit cut off a reply at that level, and the agent was not seen to give in."""
    return ended(Outcome.TRUNCATED, level, **about)


def errored(level: int = 0, **about: Unpack[About]) -> EpisodeRecord:
    """The episode failed at that level."""
    return ended(Outcome.ERRORED, level, **about)
