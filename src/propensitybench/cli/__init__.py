"""The command line: one file per command. The only room that prints."""

from propensitybench.cli.app import main

__all__ = ["main"]
