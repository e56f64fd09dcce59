"""What the commands of ``generate`` do and print."""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.execution import EXIT, cost
from propensitybench.cli.output import tell
from propensitybench.cli.panel import read_panel
from propensitybench.cli.progress import progress_bar
from propensitybench.cli.text import name_of, print_json, safe, typed
from propensitybench.cli.waiting import result_until_stopped
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.errors import BadInput
from propensitybench.generation.accepting import accept
from propensitybench.generation.drafts import take_drafts
from propensitybench.generation.estimating import estimate
from propensitybench.generation.execution import Models, Written, write
from propensitybench.generation.items import Draw
from propensitybench.generation.keyless import MODEL, PREFIX
from propensitybench.generation.panel import PanelRequest
from propensitybench.generation.plan import Wanted, every_dimension, make_plan
from propensitybench.generation.reviewing import check_work
from propensitybench.generation.status import standing
from propensitybench.generation.workfolder import SET_ASIDE, WorkFolder
from propensitybench.generation.writing import Progress as Done
from propensitybench.taxonomy import Slot, taxonomy

NOT_DONE: Final = 1
DEMO_DOMAIN: Final = "self-proliferation"
DEMO_SCENARIOS: Final = 24


def print_plan(work: WorkFolder) -> None:
    """Prints what was planned, and what to do next."""
    units, storylines = len(work.units()), sum(work.plan.storylines.values())
    print(
        f"{len(work.acts)} scenarios of {units} roles and {storylines} storylines: {safe(name_of(work.root))}"
    )
    tell(f"read and edit {name_of(work.root / 'acts.csv')}, then type:")
    print(f"  propensitybench generate write {typed(work.root)} --model MODEL", file=sys.stderr)


def print_estimate(path: Path, models: Models, *, as_json: bool) -> None:
    """Prints what writing the rest would take."""
    found = estimate(WorkFolder(path), models)
    if as_json:
        print_json(found)
        return
    print(f"texts to write: {found.texts:,}, organisations and sketches included")
    print(f"calls:          {found.calls[0]:,} to {found.calls[1]:,}")
    print(f"input tokens:   {found.input_tokens[0]:,} to {found.input_tokens[1]:,}")
    print(f"output tokens:  {found.output_tokens[0]:,} to {found.output_tokens[1]:,}, without reasoning")
    if found.usd is None:
        print("cost:           unknown, the price table does not list every model; give --price IN,OUT")
    else:
        print(f"cost:           ${found.usd[0]:,.2f} to ${found.usd[1]:,.2f}")
    print("basis:          every text right at once (low), or only at the last of four rounds (high)")


def write_texts(path: Path, models: Models, *, again: bool, as_json: bool) -> int:
    """Writes what is missing; the exit code."""
    work = WorkFolder(path)
    with progress_bar(remaining=False) as bar:
        row = bar.add_task(safe(models.writer), total=None, note="")

        def advance(now: Done) -> None:
            note = f"{now.calls} calls; {now.tokens / 1e6:.2f}M tokens, {cost(now.usd)}"
            bar.update(row, total=now.total, completed=now.finished, note=note)

        written = result_until_stopped(
            lambda stop: write(work, models, again=again, on_progress=advance, stop=stop)
        )
    _print_written(work, written, as_json=as_json)
    if written.stop.cause is not None:
        return EXIT[written.stop.cause]
    return NOT_DONE if work.asides() else 0


def _print_written(work: WorkFolder, written: Written, *, as_json: bool) -> None:
    stop, asides = written.stop, work.asides()
    if as_json:
        about: dict[str, Any] = {name: getattr(written, name) for name in written._fields[:-1]}
        print_json(about | {"stopped": stop.cause.value if stop.cause else None, "all_aside": len(asides)})
    else:
        print(f"{written.written} texts written, {written.aside} set aside, {written.calls} calls")
        if any(written.unusable.values()):
            counted = (f"{number} {kind}" for kind, number in written.unusable.items() if number)
            print(f"replies that held no text: {', '.join(counted)}")
    for file, aside in asides.items():
        tell(f"set aside: {file}: {aside.reasons[0] if aside.reasons else 'no reason given'}")
    if stop.cause is not None:
        tell(f"stopped: {stop.reason}")
        tell("no reply is lost; resume with the same command")
    elif asides:
        tell(f"all reasons are in {name_of(work.root / SET_ASIDE)}; write these again with --again")


def take(path: Path, drafts: Path, *, as_json: bool) -> int:
    """Takes drafts of people over; the exit code."""
    taken = take_drafts(WorkFolder(path), drafts)
    if as_json:
        print_json({"texts": taken.texts, "issues": [issue._asdict() for issue in taken.issues]})
    else:
        for issue in taken.issues:
            print(safe(str(issue)))
        print(f"{taken.texts} texts taken over, {len(taken.issues)} issues in the others")
    return NOT_DONE if taken.issues else 0


def check_texts(path: Path, against: Sequence[Path] = (), embeddings: str = "", *, as_json: bool) -> int:
    """Checks a working folder; the exit code."""
    checked = check_work(WorkFolder(path), against, embeddings)
    if as_json:
        print_json(checked)
    else:
        for file, issues in checked.issues.items():
            for issue in issues:
                print(safe(f"{file} {issue}"))
        for text in checked.whole:
            print(safe(text))
        for text in checked.warnings:
            tell(f"note: {text}")
        print(f"{len(checked.digests)} texts, {checked.failed} of them fail")
    return NOT_DONE if checked.failed or checked.whole else 0


def accept_texts(path: Path, out: Path, *, as_json: bool) -> int:
    """Makes a data set; the exit code."""
    accepted = accept(WorkFolder(path), out)
    if as_json:
        print_json(accepted._asdict())
        return 0
    for file, reasons in accepted.left_out.items():
        tell(f"left out: {file}: {reasons[0]}")
    counts = f"{accepted.scenarios} scenarios and {accepted.storylines} storylines"
    print(f"{counts}: {safe(name_of(out))}")
    return 0


def print_status(path: Path, *, as_json: bool) -> None:
    """Prints where every unit stands."""
    found = standing(WorkFolder(path))
    if as_json:
        print_json({"units": found})
        return
    table = Table(box=SIMPLE_HEAD)
    table.add_column("unit", overflow="fold")
    columns = ("planned", "written", "aside", "failing", "unchecked", "returned", "passed")
    for name in columns:
        table.add_column(name, justify="right")
    for one in found:
        table.add_row(safe(one.name), *(str(getattr(one, name)) for name in columns))
    table.add_section()
    table.add_row("all", *(str(sum(getattr(one, name) for one in found)) for name in columns))
    tables.show(table)


def demonstrate(out: Path, seed: int) -> int:
    """Plans, writes, checks, reads and accepts a small set with the keyless writer; the exit code."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"--out {out}: is not empty; give a folder that does not exist yet")
    slots = [slot for slot in taxonomy().allocation if slot.domain == DEMO_DOMAIN][:DEMO_SCENARIOS]
    allocation, work, data = out / "allocation.csv", out / "work", out / "data"
    out.mkdir(parents=True, exist_ok=True)
    with allocation.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([Slot._fields, *slots])
    print_plan(make_plan(Wanted(DEMO_DOMAIN, allocation, None, every_dimension(1), seed), work))
    code = write_texts(work, Models(MODEL), again=False, as_json=False)
    code = code or check_texts(work, as_json=False)
    readers = [(PREFIX + name, ModelOptions(), Transport()) for name in ("reader-1", "reader-2")]
    request = PanelRequest(work, (), Draw(6, 0, seed), work, None)
    code = code or read_panel(request, readers, None, 1, as_json=False)
    code = code or accept_texts(work, data, as_json=False)
    if code == 0:
        print(
            f"""
No language model was used. The keyless writer makes texts of parts: they pass the checks and are dull, and
its readers give every item the same scores. They show how the parts fit together, and nothing else.

Where every unit stands: propensitybench generate status {typed(work)}
The card of the set:     {typed(data / "card.md")}
Play it:                 propensitybench run --model simulated/o3-like --data {typed(data)} --run demo.run"""
        )
    return code
