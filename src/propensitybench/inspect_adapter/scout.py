"""Reads what a scanner of Inspect Scout answered about a run's exported logs.

Scout writes one Parquet file for each scanner of a scan, with a row for each transcript. A transcript is a
sample of our logs: its id is the sample's, and its messages have the ids that the export gave them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from propensitybench.chat import Reply, StopReason
from propensitybench.errors import BadInput
from propensitybench.files import open_regular
from propensitybench.inspect_adapter.eval_sample import run_identity, sample_uuid
from propensitybench.judging.items import OWN, Item, Part
from propensitybench.judging.labels import Items, episodes_about
from propensitybench.judging.questions import Question
from propensitybench.runs import StoredRun
from propensitybench.store import Annotation, AnnotationKey, RunFile

if TYPE_CHECKING:
    import polars as pl

PREFIX: Final = "scout/"
"""How the names of scanners begin among the raters."""
MAX_TEXT: Final = 20_000
"""Characters of an explanation that are kept."""
_COLUMNS: Final = (
    "scanner_key", "scanner_name", "scanner_version", "scanner_package_version", "scanner_params", "label",
    "value", "value_type", "answer", "explanation", "metadata", "message_references", "scan_error",
    "scan_error_type", "scan_model_usage",
)  # fmt: skip
_NEEDED: Final = ("transcript_id", "value", "value_type")
# What a result says where it cites words: Scout's own marks of a match, then quotation marks.
_MATCHED: Final = re.compile(r"\*\*([^*\n]{1,2000})\*\*")
_QUOTED: Final = re.compile(r'"([^"]{3,2000})"|\u201c([^\u201d]{3,2000})\u201d|`([^`]{3,2000})`')
# Of a message that is only referred to: what the agent wrote openly comes first.
_CITED: Final[Sequence[Part]] = ("message", "text", "thoughts", "call")


class ScoutAnswers(NamedTuple):
    """What a scanner answered about a run.

    Attributes:
        annotations: its answers and refusals that the run file does not have yet, in the order of the run.
        raters: settings of the scanner as JSON, by its name as a rater.
        left_out: number of results that give no annotation, by reason.
    """

    annotations: list[Annotation]
    raters: dict[str, str]
    left_out: Counter[str]


class _Reference(msgspec.Struct):
    id: str = ""


class _Result(msgspec.Struct):
    """One result of a scan, as in Scout's own ``Result``."""

    value: Any = None
    answer: str | None = None
    explanation: str | None = None
    label: str | None = None
    metadata: dict[str, Any] | None = None
    references: list[_Reference] = []


class _Row(NamedTuple):
    """What a scanner returned about one transcript; ``values`` is the row."""

    values: dict[str, Any]
    results: list[_Result]
    several: bool

    @property
    def failed(self) -> bool:
        """Whether the scanner ended with an error other than a refusal of its model."""
        return self.values["scan_error"] is not None and self.values["scan_error_type"] != "refusal"


def read_scout(path: Path, question: Question, run: StoredRun) -> ScoutAnswers:
    """What a scanner answered about the episodes of a run, as answers to a question.

    The category is the scanner's answer, its value, a field of its value, or the label of its only positive
    result. The quote is its field ``quote``, else words that its explanation cites and the agent wrote, else
    the first message of the agent that it refers to. Both are checked when labels are derived, as for any
    judge. An error of a scanner is no answer: its episode counts as not read.

    Args:
        path: a Parquet file of Scout, or the folder of a scan. Of several scanners in a folder, the one with
            the name of the question is read.
        question: what the scanner was asked.
        run: the run whose exported logs were scanned.

    Raises:
        BadInput: there are no results of Scout, or none is about this run.
    """
    file = _file_of(path, question)
    with RunFile.open(run.path) as stored:
        identity = run_identity(stored.manifest)
        tasks = {sample_uuid(identity, task.task.key): task for task in stored.tasks()}
    total, rows = _read(file, list(tasks))
    if not rows:
        raise BadInput(
            f"{file}: none of {total} results is about {run.file}; scan the logs that "
            "`propensitybench export --format eval` writes for this run"
        )
    model = "+".join(sorted({name for row in rows for name in _models(row.values)}))
    first = rows[0].values
    rater = PREFIX + "/".join(filter(None, (first["scanner_key"] or file.stem, model)))
    about = {record.metadata.task for record in episodes_about(run, question)}
    found: dict[int, Annotation] = {}
    left_out = Counter({"of transcripts of another run": total - len(rows)})
    with RunFile.open(run.path) as stored:
        items = Items(stored, question)
        for row in rows:
            task = tasks[row.values["transcript_id"]]
            key = AnnotationKey(task.number, question.digest, "", rater)
            if task.task.key not in about:
                left_out["of episodes that the question is not about"] += 1
            elif task.number in found:
                left_out["of a transcript that was scanned before"] += 1
            elif stored.known(key) is not None:
                left_out["that the run file has already"] += 1
            elif row.failed:
                left_out["with an error of the scanner"] += 1
            else:
                reply = _reply(row, question, items[task.task.key], model)
                found[task.number] = Annotation(key, reply)
    settings = {name: first[name] for name in _COLUMNS if name.startswith("scanner_")}
    raters = {rater: msgspec.json.encode({**settings, "model": model}).decode()}
    return ScoutAnswers([found[number] for number in sorted(found)], raters, +left_out)


def _file_of(path: Path, question: Question) -> Path:
    if not path.is_dir():
        return path
    files = sorted(path.glob("*.parquet"))
    named = [file for file in files if _plain(file.stem) == _plain(question.name)]
    chosen = named or files
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise BadInput(f"{path}: holds no results of Inspect Scout; give the folder of a scan (scan_id=...)")
    names = ", ".join(file.name for file in chosen)
    raise BadInput(f"{path}: holds several scanners, none named {question.name!r}; give one file of: {names}")


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_")


def _read(file: Path, transcripts: list[str]) -> tuple[int, list[_Row]]:
    """The number of rows in a file, and those about some transcripts."""
    import polars as pl

    try:
        with open_regular(file):
            frame = pl.scan_parquet(file, glob=False)
        columns = frame.collect_schema().names()
        if missing := [name for name in _NEEDED if name not in columns]:
            raise BadInput(f"{file}: is not a file of results of Inspect Scout (no column {missing[0]!r})")
        chosen = frame.select("transcript_id", *(_column(name, columns) for name in _COLUMNS))
        rows = chosen.filter(pl.col("transcript_id").is_in(transcripts)).collect()
        total = frame.select(pl.len()).collect().item()
        return total, [_row(values) for values in rows.iter_rows(named=True)]
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException, msgspec.MsgspecError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BadInput(f"{file}: cannot be read as results of Inspect Scout ({reason})") from error


def _column(name: str, columns: Sequence[str]) -> "pl.Expr":
    """A column as text; nothing where an earlier version of Scout did not write it."""
    import polars as pl

    return (pl.col(name) if name in columns else pl.lit(None)).cast(pl.String).alias(name)


def _row(values: dict[str, Any]) -> _Row:
    kind, text = values["value_type"], values["value"]
    if kind == "resultset":
        return _Row(values, msgspec.json.decode(text or "[]", type=list[_Result]), several=True)
    value = text
    if text is not None and kind in ("object", "array", "number", "boolean"):
        value = msgspec.json.decode(text)
    result = _Result(
        value,
        values["answer"],
        values["explanation"],
        values["label"],
        msgspec.json.decode(values["metadata"] or "{}", type=dict[str, Any]),
        msgspec.json.decode(values["message_references"] or "[]", type=list[_Reference]),
    )
    if isinstance(value, list):
        each = [msgspec.structs.replace(result, value=one, answer=None) for one in value]
        return _Row(values, each, several=True)
    return _Row(values, [result], several=False)


def _models(values: dict[str, Any]) -> Iterator[str]:
    yield from msgspec.json.decode(values["scan_model_usage"] or "{}", type=dict[str, Any])


def _reply(row: _Row, question: Question, item: Item, model: str) -> Reply:
    """A row as the reply of a judge: category and quote, with the scanner's own words beside them."""
    if row.values["scan_error"] is not None:
        return Reply(str(row.values["scan_error"])[:MAX_TEXT], stop=StopReason.REFUSAL, model=model)
    positive = [one for one in row.results if _is_positive(one)] if row.several else row.results
    names = list(dict.fromkeys(_category(question, one) for one in positive))
    if row.several and question.none in names and len(names) > 1:
        names.remove(question.none)
    own = {name: str(row.values[name] or "")[:MAX_TEXT] for name in ("value", "answer", "explanation")}
    body: dict[str, Any] = {"scout": own}
    if row.several and not names:
        body["category"] = question.none
    elif names[0]:
        # Several names are no category of a question that has exactly one answer.
        body["category"] = "; ".join(names)
        meant = [one for one in positive if _category(question, one) == names[0]]
        if names != [question.none]:
            body["quote"] = _quote(meant, item, question, row.values["transcript_id"])
    return Reply(msgspec.json.encode(body).decode(), model=model)


def _is_positive(result: _Result) -> bool:
    """Whether a result of several says that something was found."""
    return bool(result.answer if result.value is None else result.value)


def _category(question: Question, result: _Result) -> str:
    """The category that a result names; its own words if they are none; empty if it says nothing."""
    value = result.value
    fields = value if isinstance(value, dict) else {}
    given = [result.answer, value, *(fields.get(name) for name in ("category", question.name, "value"))]
    if value and not isinstance(value, str):
        given.append(result.label)
    texts = [one for one in given if isinstance(one, str) and one.strip()]
    names = {name.casefold(): name for name in question.names}
    for text in texts:
        # A label of a scanner may hold the definition as well: "authority: It says that ..."
        for candidate in (text, text.partition(":")[0]):
            if name := names.get(candidate.strip().casefold()):
                return name
    if texts or value is None:
        return texts[0][:MAX_TEXT] if texts else ""
    return msgspec.json.encode(value).decode()[:MAX_TEXT]


def _quote(results: Sequence[_Result], item: Item, question: Question, transcript: str) -> str:
    for one in results:
        fields = {**(one.metadata or {}), **(one.value if isinstance(one.value, dict) else {})}
        if isinstance(given := fields.get("quote"), str) and given.strip():
            return given
    cited = [words for one in results for words in _cited_words((one.explanation or "")[:MAX_TEXT])]
    if quote := next((words for words in cited if item.find(words)), ""):
        return quote
    # Words of others and names of categories are often in quotation marks too; what stands nowhere is not.
    shown = _spaced(" ".join((item.text, *question.names)))
    if false := next((words for words in cited if _spaced(words) not in shown), ""):
        return false
    hidden = "call" if question.hides_calls else ""
    own = [one for one in item.passages if one.part in OWN and one.part != hidden]
    own.sort(key=lambda one: _CITED.index(one.part))
    for reference in (reference for one in results for reference in one.references):
        here = [one for one in own if reference.id == f"{transcript}-{one.message}"]
        if here:
            return here[0].text
    return ""


def _spaced(text: str) -> str:
    return " ".join(text.split()).casefold()


def _cited_words(explanation: str) -> list[str]:
    quoted = ["".join(groups) for groups in _QUOTED.findall(explanation)]
    phrases = sorted((words for words in quoted if len(words.split()) > 1), key=len, reverse=True)
    return [*_MATCHED.findall(explanation), *phrases]
