"""The reading panel: a round's folder, its readers, and its scores.

A round is ``panel/<round>/`` in the working folder. It begins with ``items/`` and ``key.json`` and ends with
``returned.json`` and ``scores.json``, after which nothing in it changes. The working folder's own
``returned.json`` holds what all rounds have sent back to the writer.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from propensitybench.digests import seed_from
from propensitybench.errors import BadData, BadInput
from propensitybench.files import MIB, read_text
from propensitybench.generation.panel_forms import (
    ITEMS,
    PanelReading,
    form_files,
    items_digest,
    missing,
    read_forms,
    write_items,
)
from propensitybench.generation.panel_items import (
    DRAWN,
    Draw,
    PanelItem,
    draw_items,
    is_working_folder,
    read_source,
)
from propensitybench.generation.panel_scores import (
    PanelScores,
    Readings,
    panel_limits,
    returned,
    score_panel,
    storyline_file,
)
from propensitybench.generation.workfolder import PANEL, RETURNED, WorkFolder, write_json
from propensitybench.store.atomic import new_entries, remove_stale

KEY: Final = "key.json"
KEY_FORMAT: Final = "propensitybench-panel-key/1"
SCORES: Final = "scores.json"
SCORES_FORMAT: Final = "propensitybench-panel/1"
MIN_READERS: Final = 2
MAX_KEY: Final = 64 * MIB


class PanelRequest(msgspec.Struct, frozen=True):
    """What a round reads.

    Attributes:
        work: working folder or data set.
        known: data sets of known quality.
        draw: how many items, and the seed; every round draws others.
        out: the folder of the panel and the journal.
    """

    work: Path
    known: tuple[Path, ...]
    draw: Draw
    out: Path


class Round(msgspec.Struct, frozen=True):
    """A round whose items are drawn.

    Attributes:
        out: the folder of the panel.
        recipe: the settings of the draw.
    """

    number: int
    out: Path
    items: tuple[PanelItem, ...]
    recipe: dict[str, Any]

    @property
    def folder(self) -> Path:
        """The round's own folder."""
        return self.out / PANEL / str(self.number)


class ReaderNote(msgspec.Struct, frozen=True):
    """Who a reader is.

    Attributes:
        model: its address, or ``person``.
        index: of a model; gives its persona and the order in which it reads.
        wrote: how many of the working folder's texts it wrote, which it should not have.
    """

    model: str
    index: int | None = None
    wrote: int = 0


def output_folder(work: Path, out: Path | None) -> Path:
    """Where the panel goes: into a working folder, but never into a data set.

    Raises:
        BadInput: ``work`` is a data set and no other folder is given.
    """
    if out is not None:
        return out
    if is_working_folder(work):
        return work
    if not work.is_dir():
        raise BadInput(f"{work}: is not a folder; give a working folder of `generate` or a data set")
    raise BadInput(f"{work}: is a data set, in which no panel can be kept; give --out DIR")


def open_round(request: PanelRequest) -> Round:
    """The round to read: a new one, or one that was begun with the same settings.

    Raises:
        BadData: a file cannot be read.
        BadInput: the round was begun with other settings, or nothing can be drawn.
    """
    sources = _source_names(request.known)
    recipe = {
        "source": request.work.resolve().name,
        "draw": request.draw.drawn,
        "known": sources,
        "known-draw": request.draw.known,
        "seed": request.draw.seed,
    }
    number = _current(request.out)
    folder = request.out / PANEL / str(number)
    if (folder / KEY).exists():
        return _begun(request.out, number, recipe)
    judged = read_source(request.work, DRAWN)
    known = [read_source(path, name) for path, name in zip(request.known, sources, strict=True)]
    seed = seed_from(request.draw.seed, number, "panel")
    items = draw_items(judged, known, msgspec.structs.replace(request.draw, seed=seed))
    found = Round(number, request.out, tuple(items), recipe)
    _write_round(found)
    return found


def _source_names(known: Sequence[Path]) -> list[str]:
    names = [path.resolve().name for path in known]
    for path, name in zip(known, names, strict=True):
        if names.count(name) > 1 or name == DRAWN:
            raise BadInput(f"--known {path}: the name {name!r} is taken by another source; rename the folder")
    return names


def _current(out: Path) -> int:
    """The number of the last round if it is unfinished, else the next."""
    numbers = [int(path.name) for path in (out / PANEL).glob("*") if path.name.isdecimal()]
    last = max(numbers, default=0)
    return last + (last == 0 or (out / PANEL / str(last) / SCORES).exists())


def _write_round(found: Round) -> None:
    key = {
        "format": KEY_FORMAT,
        "round": found.number,
        "settings": found.recipe,
        "digest": items_digest(found.items),
        "items": [
            {name: value for name, value in msgspec.structs.asdict(item).items() if name != "text"}
            for item in found.items
        ],
    }
    remove_stale(found.folder)
    try:
        with new_entries(found.folder) as new:
            write_items(new / ITEMS, found.items)
            write_json(new / KEY, key)
    except OSError as error:
        raise BadInput(f"{found.folder}: cannot be written ({error.strerror})") from error


def _begun(out: Path, number: int, recipe: dict[str, Any]) -> Round:
    folder = out / PANEL / str(number)
    path = folder / KEY
    try:
        key = json.loads(read_text(path, str(path), MAX_KEY))
        if key["format"] != KEY_FORMAT:
            raise BadData(str(path), f"$.format must be {KEY_FORMAT!r}")
        items = tuple(_item(folder, entry) for entry in key["items"])
        intact = items_digest(items) == key["digest"]
        begun = key["settings"]
    except (ValueError, LookupError, TypeError) as error:
        raise BadData(str(path), f"is not a key of a panel ({error})") from error
    if not intact:
        raise BadData(
            str(folder / ITEMS),
            "an item was changed after it was drawn; remove the folder of the round to draw again",
        )
    if changed := [name for name, value in recipe.items() if begun.get(name) != value]:
        was = ", ".join(f"{name} {json.dumps(begun.get(name))}" for name in changed)
        raise BadInput(
            f"{folder}: this round was begun with {was}; finish it with the same, or remove that folder"
        )
    return Round(number, out, items, recipe)


def _item(folder: Path, entry: dict[str, str]) -> PanelItem:
    path = folder / ITEMS / f"{entry['name']}.txt"
    return msgspec.convert({**entry, "text": read_text(path, str(path), MAX_KEY)}, PanelItem)


def texts_by_writer(work: Path) -> Counter[str]:
    """How many texts of a working folder each model wrote; none of a data set."""
    origins = WorkFolder(work).provenance.values() if is_working_folder(work) else ()
    return Counter(origin.writer for origin in origins)


def read_people(found: Round, folder: Path) -> dict[str, list[PanelReading]]:
    """The readings in the forms of a folder; raises as `read_forms` does."""
    readings = read_forms(folder, found.items)
    if not readings:
        raise BadInput(f"--forms {folder}: contains no form (*.csv)")
    return readings


def check_forms_folder(folder: Path, out: Path) -> bool:
    """Whether a folder has forms to read; if not, they can be written there.

    Raises:
        BadInput: it lies in the panel's own folder, where readers would find the key.
    """
    if folder.resolve().is_relative_to((out / PANEL).resolve()):
        raise BadInput(
            f"--forms {folder}: lies beside the key, which readers must not see; give another folder"
        )
    return folder.is_dir() and bool(form_files(folder))


def finish_round(
    found: Round, readings: Mapping[str, Sequence[PanelReading]], readers: Mapping[str, ReaderNote]
) -> PanelScores:
    """Scores a round and writes its results, which end it.

    Args:
        found: the round.
        readings: by reader; an item that is not among them is missing.
        readers: who they are.

    Raises:
        BadInput: there are fewer than two readers, or one scored nothing; the folder cannot be written.
    """
    if len(readings) < MIN_READERS:
        raise BadInput(f"a panel needs {MIN_READERS} readers or more, found {len(readings)}")
    for name, of_reader in readings.items():
        if all(reading.is_missing for reading in of_reader):
            why = of_reader[0].comment if of_reader else "the form is empty"
            raise BadInput(
                f"{name}: has scored no item ({why}); no reader may be left out, so replace this one"
            )
    by_item = _by_item(found, readings)
    limits = panel_limits()
    scores = score_panel(found.items, by_item, limits)
    about = {
        "format": SCORES_FORMAT,
        "round": found.number,
        "settings": found.recipe,
        "limits": limits,
        "who": readers,
    }
    whole = {**msgspec.to_builtins(about), **msgspec.to_builtins(scores)}
    back = returned(scores, limits)
    if (found.folder / SCORES).exists():
        raise BadInput(f"{found.folder}: another command has finished this round meanwhile; its scores stay")
    try:
        write_json(found.folder / RETURNED, back)
        if is_working_folder(found.out):
            _add_returned(found, back)
        write_json(found.folder / SCORES, whole)  # the last, which ends the round
    except OSError as error:
        raise BadInput(f"{found.folder}: cannot be written ({error.strerror})") from error
    return scores


def _by_item(found: Round, readings: Mapping[str, Sequence[PanelReading]]) -> Readings:
    by_reader = {}
    for name, of_reader in readings.items():
        given = {reading.item: reading for reading in of_reader}
        by_reader[name] = {
            item.name: given.get(item.name) or missing(item, "not read") for item in found.items
        }
    return by_reader


def _add_returned(found: Round, back: Mapping[str, list[str]]) -> None:
    """Adds to what goes back to the writer of a working folder; what was read again counts as read now."""
    earlier = WorkFolder(found.out).returned()
    read = {name for item in found.items for name in (item.scenario, storyline_file(item))}
    kept = {name: list(words) for name, words in earlier.items() if name not in read}
    write_json(found.out / RETURNED, kept | dict(back))
