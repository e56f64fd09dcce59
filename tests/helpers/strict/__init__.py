"""Endpoints as strict as the providers': see `helpers.strict.endpoint`."""

from helpers.strict.endpoint import Strict, strict
from helpers.strict.refusals import violations
from helpers.strict.rules import PROVIDERS

__all__ = ["PROVIDERS", "Strict", "strict", "violations"]
