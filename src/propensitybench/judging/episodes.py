"""What the readers of one episode say together."""

from collections import Counter
from collections.abc import Iterable, Sequence

from propensitybench.judging.labels import Answers, Labelled


def by_episode(labels: Answers) -> dict[str, list[Labelled]]:
    """The answers by the key of the task, people's first; none that was asked with a consequence."""
    order = {rater: place for place, rater in enumerate((*labels.people, *labels.judges))}
    found: dict[str, list[Labelled]] = {}
    for one in sorted(labels.given, key=lambda one: order[one.rater]):
        if not one.variant:
            found.setdefault(one.record.metadata.task, []).append(one)
    return found


def decided_by(given: Sequence[Labelled]) -> list[Labelled]:
    """The answers that count for an episode: that of the first person who read it, else those of models."""
    answered = [one for one in given if one.label.category is not None]
    return [one for one in answered if one.by_person][:1] or answered


def most_frequent(categories: Iterable[str | None]) -> str | None:
    """The most frequent category; None for a tie, or if there is none."""
    ranked = Counter(one for one in categories if one is not None).most_common(2)
    tied = len(ranked) > 1 and ranked[0][1] == ranked[1][1]
    return ranked[0][0] if ranked and not tied else None


def told(given: Sequence[Labelled]) -> str:
    """What each reader says: ``necessity: a, b; no answer (refused): c``."""
    raters: dict[str, list[str]] = {}
    for one in given:
        what = one.label.category or f"no answer ({one.label.why})"
        raters.setdefault(what, []).append(one.rater)
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in raters.items())
