"""``propensitybench resume``: go on with a run that was stopped."""

import sys

import msgspec
import typer

from propensitybench.cli import options
from propensitybench.cli.execution import check_model, play_and_print, read_price
from propensitybench.cli.text import safe
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.engine import Budget, ExecutionOptions, is_complete
from propensitybench.store import RunFile

DEFAULTS = Transport()


def command(
    file: options.RunPath,
    concurrency: options.Concurrency = DEFAULTS.concurrency,
    timeout: options.Timeout = DEFAULTS.timeout,
    max_retries: options.MaxRetries = DEFAULTS.max_retries,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget_usd: options.BudgetUsd = None,
    max_tokens_total: options.MaxTokensTotal = None,
    price: options.PriceGiven = None,
    preflight: options.Preflight = True,
    as_json: options.AsJson = False,
) -> None:
    execution = ExecutionOptions(
        Transport(timeout=timeout, max_retries=max_retries, rpm=rpm, tpm=tpm, concurrency=concurrency),
        Budget(budget_usd, max_tokens_total),
        read_price(price),
        preflight,
    )
    with RunFile.open(file) as run:
        manifest = run.manifest
        complete = is_complete(run)
    if not complete:
        asked = msgspec.convert(manifest.options, ModelOptions)
        if asked.base_url is not None:  # not typed by the user this time, perhaps not by this user
            print(f"asking {safe(manifest.model)} at {safe(asked.base_url)}", file=sys.stderr)
        check_model(manifest.model, asked, execution, manifest.wire)
    raise typer.Exit(play_and_print(file, execution, as_json=as_json))
