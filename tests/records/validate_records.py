"""Validates records with their owners' validators, offline; part of ``make records``.

Runs in the environment of requirements-records.txt. Each validator is also given a record that it must
refuse. Argument: the folder that `write_records.py` wrote. Exit code 1 if a record is invalid.
"""

import contextlib
import io
import json
import logging
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module, resources
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
# What a release will have and this repository has not.
CROISSANT_LACKS: Final = ("datePublished",)
RECORDS: Final = {"scenarios": 979, "roles": 161, "storylines": 336}
SCHEMA: Final = "http://schema.org/"


class Invalid(Exception):
    """A record that its owner's validator refuses."""


def main(written: Path) -> int:
    """Validates everything; the exit code."""
    logging.getLogger("absl").setLevel(logging.ERROR)  # mlcroissant's; its warnings are checked below
    socket.socket.connect = _no_network  # type: ignore[method-assign]
    checks: dict[str, Callable[[Path], str]] = {
        "Every Eval Ever": every_eval_ever,
        "model cards": model_cards,
        "BibTeX": bibtex,
        "CITATION.cff": citation,
        "codemeta.json": codemeta,
        "Croissant": croissant,
    }
    failed = False
    for name, check in checks.items():
        try:
            print(f"{name}: {check(written)}")
        except Invalid as error:
            print(f"{name}: INVALID: {error}")
            failed = True
    return int(failed)


def _no_network(*_: object) -> None:
    raise OSError("validation may not use the network")


def must_refuse(validate: Callable[[], object], what: str) -> None:
    """Raises `Invalid` unless a validator refuses a broken record."""
    try:
        validate()
    except Exception:  # noqa: BLE001 - every validator has errors of its own
        return
    raise Invalid(f"the validator accepts {what}")


# --- Every Eval Ever ---


def every_eval_ever(written: Path) -> str:
    """With the command that its maintainers and their robot use; warnings count as errors."""
    found = sorted((written / "eee").glob("*/data/*/*/*/*.json*"))
    for path in found:
        _validate_eee(path)
    rows = sum(
        len(path.read_text(encoding="utf-8").splitlines()) for path in found if path.suffix == ".jsonl"
    )
    broken = written / "eee-broken"
    shutil.copytree(written / "eee" / "whole", broken, dirs_exist_ok=True)
    (record,) = broken.glob("data/*/*/*/*.json")
    content = json.loads(record.read_text(encoding="utf-8"))
    del content["evaluation_results"][0]["score_details"]["score"]
    record.write_text(json.dumps(content), encoding="utf-8")
    must_refuse(lambda: _validate_eee(record), "a result without a score")
    return f"{len(found)} files valid, {rows} instances"


def _validate_eee(path: Path) -> None:
    validate: Any = import_module("every_eval_ever.validator.validate")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = validate.main(["--format", "json", str(path.resolve())])
    if code:
        raise Invalid(f"{path}: {out.getvalue()}")


# --- Model cards ---


def model_cards(written: Path) -> str:
    """Read by Hugging Face's library; the metadata become evaluation results."""
    found = sorted(written.glob("*.model-card.md"))
    results = 0
    for path in found:
        text = path.read_text(encoding="utf-8")
        results += len(_eval_results(text))
        must_refuse(partial(_eval_results, text.replace("dataset:", "data:", 1)), "no data set")
    return f"{len(found)} valid, {results} results"


def _eval_results(text: str) -> list[Any]:
    hub: Any = import_module("huggingface_hub")
    card = hub.ModelCard(text, ignore_metadata_errors=False)
    results: list[Any] = card.data.eval_results or []
    if not results:
        raise Invalid(f"no evaluation results in {text[:200]!r}")
    return results


# --- BibTeX ---


def bibtex(written: Path) -> str:
    """Parsed by pybtex, which is strict."""
    found = sorted(written.glob("*.bib"))
    entries = 0
    for path in found:
        text = path.read_text(encoding="utf-8")
        entries += len(_entries(text))
        must_refuse(partial(_entries, text[: text.rindex('"')]), "an entry without its end")
    return f"{len(found)} files valid, {entries} entries"


def _entries(text: str) -> Any:
    database: Any = import_module("pybtex.database")
    entries = database.parse_string(text, "bibtex").entries
    for key, entry in entries.items():
        if not {"title", "note"} <= set(entry.fields) or not entry.persons.get("author"):
            raise Invalid(f"{key}: lacks a field or its author")
    return entries


# --- Files at the root ---


def citation(_: Path) -> str:
    """Validated by cffconvert."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    _validate_cff(text)
    must_refuse(lambda: _validate_cff(text.replace("title:", "name:", 1)), "no title")
    return "valid"


def _validate_cff(text: str) -> None:
    cff: Any = import_module("cffconvert")
    cff.Citation(text).validate()


def codemeta(_: Path) -> str:
    """Read by codemetapy with CodeMeta's own context: every property must be one of theirs."""
    content = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
    _validate_codemeta(content)
    must_refuse(
        lambda: _validate_codemeta({**content, "programmingLanguages": "Python"}), "an unknown property"
    )
    return f"valid, {len(content) - 2} properties"


def _validate_codemeta(content: dict[str, Any]) -> None:
    rdf: Any = import_module("rdflib.namespace")
    with _contexts() as context, contextlib.redirect_stderr(io.StringIO()):
        load = import_module("codemeta.codemeta").load
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "codemeta.json")
            path.write_text(json.dumps(content), encoding="utf-8")
            graph, *_ = load(str(path), includecontext=False)
    kind = import_module("rdflib").URIRef(SCHEMA + content["type"])
    subjects = list(graph.subjects(rdf.RDF.type, kind))
    if len(subjects) != 1:
        raise Invalid(f"codemeta.json: {len(subjects)} things of type {content['type']}")
    properties = {str(name) for name in graph.predicates(subjects[0])}
    for name in content.keys() - {"@context", "type"}:
        address = context.get(name, {}).get("@id", "").replace("schema:", SCHEMA)
        if address.replace("codemeta:", context["codemeta"]) not in properties:
            raise Invalid(f"codemeta.json: {name} is not a property of CodeMeta")


@contextlib.contextmanager
def _contexts() -> Iterator[dict[str, Any]]:
    """Where codemetapy looks for contexts before it would download them; only CodeMeta's own is used."""
    common: Any = import_module("codemeta.common")
    raw = resources.files("codemeta").joinpath("schema", "codemeta.jsonld").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("CODEMETA", "SCHEMA", "STYPE", "IODATA", "REPOSTATUS"):
            path = Path(folder, Path(getattr(common, f"{name}_LOCAL_SOURCE")).name)
            path.write_text(raw if name == "CODEMETA" else '{"@context": {}}', encoding="utf-8")
            setattr(common, f"{name}_LOCAL_SOURCE", path.as_uri())
        yield json.loads(raw)["@context"]


# --- Croissant ---


def croissant(written: Path) -> str:
    """Loaded by mlcroissant, beside the data: no error, no warning but known ones, and every record."""
    built_in = ROOT / "src" / "propensitybench" / "scenarios" / "data" / "croissant.json"
    _dataset(built_in)
    dataset = _dataset(written / "data" / "croissant.json")
    for name, count in RECORDS.items():
        records = list(dataset.records(name))
        if len(records) != count or any(value is None for record in records for value in record.values()):
            raise Invalid(f"{name}: {len(records)} records, or an empty field")
    broken = json.loads(built_in.read_text(encoding="utf-8"))
    del broken["distribution"][0]["encodingFormat"]
    path = written / "croissant-broken.json"
    path.write_text(json.dumps(broken), encoding="utf-8")
    must_refuse(lambda: _dataset(path), "files without a format")
    return f"valid, {sum(RECORDS.values())} records read"


def _dataset(path: Path) -> Any:
    jsonpath: Any = import_module("jsonpath_rw")
    # It is called for every file and field, and takes a minute without a cache.
    jsonpath.parse = cache(jsonpath.parse)
    dataset = import_module("mlcroissant").Dataset(str(path))
    issues = dataset.metadata.issues
    found = [
        *issues.errors,
        *(one for one in issues.warnings if not any(lack in one for lack in CROISSANT_LACKS)),
    ]
    if found:
        raise Invalid(f"{path}: {found}")
    return dataset


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
