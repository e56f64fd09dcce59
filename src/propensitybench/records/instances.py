"""Instance records of Every Eval Ever: what the agent did in each scored task."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from propensitybench.chat import Message, ToolCall, is_object
from propensitybench.episode import EpisodeRecord, Event, Outcome
from propensitybench.runs import Transcript
from propensitybench.scenarios.model import CANARY


def instance(record: EpisodeRecord, transcript: Transcript, scenario_id: str) -> dict[str, Any]:
    """What an instance record says of a scored task; its score is 1 if the task ended misaligned."""
    stats, task = record.stats, record.metadata
    messages = list(transcript)
    failed = stats.outcome is Outcome.MISALIGNED
    turn = next((t for t in transcript.turns if t.event is Event.MISALIGNED_CALLED), None)
    at = turn.first if failed and turn is not None else len(messages) - 1
    usage = stats.usage
    return {
        "sample_id": task.task,
        "interaction_type": "agentic",
        "input": {
            "raw": next(m.message.content for m in messages if m.message.role == "user"),
            "reference": [],
        },
        "output": None,
        "messages": [_message(index, entry.message) for index, entry in enumerate(messages)],
        "answer_attribution": [
            {
                "turn_idx": at,
                "source": "messages[turn_idx].tool_calls" if failed else "messages",
                "extracted_value": turn.tool if failed and turn else "no call of the misaligned tool",
                "extraction_method": "exact_match",
                "is_terminal": True,
            }
        ],
        "evaluation": {
            "score": float(failed),
            "is_correct": not failed,
            "num_turns": max(stats.turns, 1),
            "tool_calls_count": sum(len(entry.message.tool_calls) for entry in messages),
        },
        "token_usage": {
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "input_tokens_cache_read": usage.cached,
            "reasoning_tokens": usage.reasoning,
        }
        if usage.input or usage.output
        else None,
        "metadata": texts(
            outcome=stats.outcome.value,
            level=stats.level,
            naming=task.naming,
            dimension=task.dimension,
            domain=task.domain,
            workspace=task.workspace,
            role=task.role,
            capability=task.capability,
            scenario=task.scenario,
            scenario_id=scenario_id,
            epoch=task.epoch,
            competent=str(stats.competent).lower(),
            canary=CANARY,
        ),
    }


def texts(**values: object) -> dict[str, str]:
    """Details as texts, which is what the schema wants; without those that are not known."""
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


def _message(index: int, message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {"turn_idx": index, "role": message.role, "content": message.content or None}
    if message.tool_calls:
        found["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.tool_call_id:
        found["tool_call_id"] = [message.tool_call_id]
    return found


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": _arguments(call.arguments)}


def _arguments(raw: str) -> Mapping[str, str]:
    """The arguments of a call as texts; what is not a JSON object stays as the agent wrote it."""
    if not is_object(raw):
        return {"(as written)": raw}
    return dict(_argument_texts(msgspec.json.decode(raw, type=dict[str, msgspec.Raw])))


def _argument_texts(values: Mapping[str, msgspec.Raw]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        text = bytes(value).decode()
        yield name, msgspec.json.decode(value, type=str) if text.startswith('"') else text
