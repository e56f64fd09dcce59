"""The run file: manifest and journal, and what is derived from them."""

from propensitybench.store.manifest import Manifest, StoppingRule, data_digest, differences
from propensitybench.store.replay import Difference, Replayed, replay, verify
from propensitybench.store.runfile import Ended, NumberedTask, RunFile, Said, encode_reply

__all__ = [
    "Difference",
    "Ended",
    "Manifest",
    "NumberedTask",
    "Replayed",
    "RunFile",
    "Said",
    "StoppingRule",
    "data_digest",
    "differences",
    "encode_reply",
    "replay",
    "verify",
]
