"""The run file: the manifest, the journal, and what is derived from them."""

from propensitybench.store.manifest import Manifest, StoppingRule, data_digest, differences
from propensitybench.store.rows import Annotation, NumberedTask, read_usage
from propensitybench.store.runfile import (
    JournalEntry,
    OutcomeEntry,
    RunFile,
    encode_reply,
)
from propensitybench.store.schema import is_run_file
from propensitybench.store.verification import Difference, verify

__all__ = [
    "Annotation",
    "Difference",
    "JournalEntry",
    "Manifest",
    "NumberedTask",
    "OutcomeEntry",
    "RunFile",
    "StoppingRule",
    "data_digest",
    "differences",
    "encode_reply",
    "is_run_file",
    "read_usage",
    "verify",
]
