"""The providers by name: what each refuses, and how it dresses a reply."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from helpers.strict import anthropic, deepseek, gemini, groq, mistral, openai
from helpers.strict.common import Json, Violation


def _plain(_completion: dict[str, Any], _request: Json) -> None:
    """The wire format does the rest."""


class Provider(NamedTuple):
    """One provider.

    Attributes:
        violations: what it refuses, from the decoded request and its headers.
        dress: gives a chat completion its own fields, in place.
    """

    violations: Callable[[Json, Mapping[str, str]], list[Violation]]
    dress: Callable[[dict[str, Any], Json], None]


PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType(
    {
        "openai": Provider(openai.violations, openai.dress),
        "mistral": Provider(mistral.violations, mistral.dress),
        "gemini": Provider(gemini.violations, gemini.dress),
        "groq": Provider(groq.violations, groq.dress),
        "deepseek": Provider(deepseek.of_age("v4"), deepseek.dress),
        "deepseek-v3.2": Provider(deepseek.of_age("v3.2"), deepseek.dress),
        "deepseek-r1": Provider(deepseek.of_age("r1"), deepseek.dress),
        "anthropic": Provider(anthropic.violations, _plain),
    }
)
"""``deepseek`` is as it is now; the others of that name are as it was."""
