"""The run file: the manifest, the journal, and what is derived from them."""

from propensitybench.store.manifest import GateRule, Manifest, StoppingRule, data_digest, differences
from propensitybench.store.merging import Merged, merge
from propensitybench.store.rows import (
    Annotation,
    AnnotationKey,
    ExecutionSetting,
    NumberedTask,
    PersonLabel,
    read_usage,
)
from propensitybench.store.runfile import (
    JournalEntry,
    OutcomeEntry,
    RunFile,
    encode_reply,
)
from propensitybench.store.schedule import is_scheduled, scheduled
from propensitybench.store.schema import is_run_file
from propensitybench.store.shards import Shard, read_shard
from propensitybench.store.verification import Mismatch, mismatches

__all__ = [
    "Annotation",
    "AnnotationKey",
    "ExecutionSetting",
    "GateRule",
    "JournalEntry",
    "Manifest",
    "Merged",
    "Mismatch",
    "NumberedTask",
    "OutcomeEntry",
    "PersonLabel",
    "RunFile",
    "Shard",
    "StoppingRule",
    "data_digest",
    "differences",
    "encode_reply",
    "is_run_file",
    "is_scheduled",
    "merge",
    "mismatches",
    "read_shard",
    "read_usage",
    "scheduled",
]
