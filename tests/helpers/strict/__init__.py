"""Fakes of providers' APIs, as strict as the real ones: see `helpers.strict.endpoint`."""

from helpers.openai_server import Answer
from helpers.strict.common import Violation
from helpers.strict.endpoint import Server, Slots, Strict, running, serving, slots, strict
from helpers.strict.providers import PROVIDERS

__all__ = [
    "PROVIDERS",
    "Answer",
    "Server",
    "Slots",
    "Strict",
    "Violation",
    "running",
    "serving",
    "slots",
    "strict",
]
