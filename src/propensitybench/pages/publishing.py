"""What of a run may be published: not what names the machine that it was made on, or a person.

Whatever others have written (errors, free texts among the model options) may hold anything, so it is left out
as a whole instead of being searched for names.
"""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from propensitybench.clients.compatible import providers
from propensitybench.engine import Price
from propensitybench.judging.labels import PERSON
from propensitybench.runs import ReplySummary, Run, Transcript

LEFT_OUT: Final = "(left out)"
NOTE: Final = (
    "Made for publication. Left out, and kept in the run file: folders, addresses of endpoints except the "
    "hosts of known providers, texts of errors, free texts among the model options, and names of people who "
    "read transcripts."
)
# Model options whose texts are words of an API.
_WORDS: Final = frozenset(
    (
        "effort",
        "mode",
        "reasoning_effort",
        "reasoning_summary",
        "service_tier",
        "thinking_level",
        "type",
        "verbosity",
    )
)
# The beginning of a path, also after the name of a provider, as in `vllm//home/me/llama`.
_PATH: Final = re.compile(r"(^|/)(/|~|\.{1,2}/)|\\|^[A-Za-z]:/|^file:")
_STATUS: Final = re.compile(r"\bHTTP [1-5]\d\d\b")


class PublishableRun(Run):
    """A run as it may be published.

    Attributes:
        original: the run itself.
    """

    def __init__(self, run: Run) -> None:
        manifest = run.manifest
        super().__init__(
            last_part(run.file),
            msgspec.structs.replace(
                manifest,
                model=model_shown(manifest.model),
                data=last_part(manifest.data),
                client="",
                options=_options(manifest.options),
                created=_in_utc(manifest.created),
            ),
            [msgspec.structs.replace(one, error=error_shown(one.error)) for one in run.records],
            run.contents,
            run.stopping_rule,
        )
        self.original = run
        self.shard = run.shard
        self.has_transcripts = run.has_transcripts

    @property
    def planned(self) -> int:
        """Number of tasks in the run, or in its shard."""
        return self.original.planned

    @property
    def price(self) -> Price | None:
        """Price of the model's tokens."""
        return self.original.price

    @cached_property
    def journal(self) -> ReplySummary:
        """A summary of the run's replies."""
        models: Counter[str] = Counter()
        for name, count in self.original.journal.models.items():
            models[model_shown(name)] += count
        return self.original.journal._replace(models=models)

    def transcript(self, task: str) -> Transcript:
        """The conversation of a task, without the texts of errors."""
        found = self.original.transcript(task)
        found.errors = tuple(map(error_shown, found.errors))
        return found


class RaterNames:
    """Names of raters that may be published; people are numbered."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __call__(self, rater: str) -> str:
        """The name of a rater; two raters have different names."""
        if rater not in self._names:
            people = sum(one.startswith(PERSON) for one in self._names)
            name = f"{PERSON}{people + 1}" if rater.startswith(PERSON) else model_shown(rater)
            taken = sum(one.partition(" #")[0] == name for one in self._names.values())
            self._names[rater] = f"{name} #{taken + 1}" if taken else name
        return self._names[rater]


def last_part(path: str) -> str:
    """A path without its folder; it can come from Windows."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or path


def model_shown(model: str) -> str:
    """A model's name; of one that is a path, as local servers have them, its last part."""
    return last_part(model) if _PATH.search(model) else model


def error_shown(error: str) -> str:
    """The HTTP status in the text of an error, and that the text was left out; empty without an error."""
    status = _STATUS.search(error)
    return " ".join(filter(None, (status and status[0], LEFT_OUT))) if error else ""


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _host(value) if name == "base_url" else _without_texts(value, is_word=name in _WORDS)
        for name, value in options.items()
    }


def _without_texts(value: Any, *, is_word: bool = False) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_texts(inner, is_word=name in _WORDS) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_texts(inner) for inner in value]
    return LEFT_OUT if isinstance(value, str) and not is_word else value


def _host(url: Any) -> Any:
    """The host of a known provider's address."""
    if url is None:
        return None
    try:
        host = urlsplit(str(url)).hostname
    except ValueError:
        host = None
    known = {urlsplit(one.base_url).hostname for one in providers().values() if one.needs_key}
    return host if host in known else LEFT_OUT


def _in_utc(created: str) -> str:
    """A time without the offset of the machine's time zone."""
    try:
        time = datetime.fromisoformat(created)
        return created if time.tzinfo is None else time.astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return created
