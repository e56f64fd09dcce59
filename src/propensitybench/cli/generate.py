"""``propensitybench generate``: plan, write, check, read and accept scenarios."""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from propensitybench.cli import generate_read, generate_write, options, tables
from propensitybench.cli.help import App
from propensitybench.cli.output import print_note
from propensitybench.cli.text import must_be_utf8, print_json, shell_quoted
from propensitybench.engine import Price
from propensitybench.errors import BadInput
from propensitybench.files import file_name
from propensitybench.generation.demo import CannedClient
from propensitybench.generation.panel import PanelRequest
from propensitybench.generation.panel_items import Draw
from propensitybench.generation.plan import Wanted, every_dimension, make_plan
from propensitybench.generation.publish import accept as make_data_set
from propensitybench.generation.review import check_generated
from propensitybench.generation.run import Models
from propensitybench.generation.status import status as status_of
from propensitybench.generation.workfolder import WorkFolder
from propensitybench.taxonomy import Slot, taxonomy

NOT_DONE: Final = 1
DEMO_ROLE: Final = ("cyber-security", "Incident-Coordinator")
CANNED_WRITER: Final = "canned/writer"
COUNTED: Final = ("planned", "written", "aside", "failing", "unchecked", "returned", "passed")

command = App(no_args_is_help=False)
Out = Annotated[
    Path,
    typer.Option(
        "--out", metavar="DIR", help="A folder that does not exist yet, or is empty.", show_default=False
    ),
]


@command.callback(invoke_without_command=True)
def _generate(
    context: typer.Context,
    demo: Annotated[
        bool, typer.Option("--demo", help="Go through every step with canned drafts; no API key, no network.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="With --demo: a folder for what it makes.")
    ] = Path("propensitybench-generated"),
    seed: options.Seed = 0,
) -> None:
    if context.invoked_subcommand is not None:
        return
    if not demo:
        print(context.get_help())
        raise typer.Exit
    raise typer.Exit(_demonstrate(out, seed))


@command.command()
def plan(
    domain: Annotated[str, typer.Option("--domain", help="The domain of all scenarios.", show_default=False)],
    out: Out,
    allocation: Annotated[
        Path | None,
        typer.Option(
            "--allocation", metavar="FILE", help="Which scenarios, as CSV. Default: the published counts."
        ),
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            "--vocabulary", metavar="FILE", help="Phrases of the act grid, as JSON. Default: built in."
        ),
    ] = None,
    storylines: Annotated[
        int, typer.Option("--storylines", min=0, help="Storylines for each dimension, and neutral ones.")
    ] = 6,
    dimension: Annotated[
        list[str] | None,
        typer.Option(
            "--dimension",
            metavar="DIMENSION",
            help="Storylines only for this dimension, or `neutral`; may be repeated.",
        ),
    ] = None,
    seed: options.Seed = 0,
) -> None:
    """Plan a set: the act grid, severities by lot, one unit of work for each role."""
    must_be_utf8({"--out": out, "--allocation": allocation, "--vocabulary": vocabulary})
    wanted = dict.fromkeys(dimension, storylines) if dimension else every_dimension(storylines)
    _plan(Wanted(domain, allocation, vocabulary, wanted, seed), out)


command.command("write")(generate_write.command)


@command.command()
def check(
    work: generate_write.Work,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against", metavar="DIR", help="Data set without near-duplicates of these; may be repeated."
        ),
    ] = None,
    embeddings: options.Embeddings = "",
    as_json: options.AsJson = False,
) -> None:
    """Check every text alone and all together; exit code 1 if one fails."""
    raise typer.Exit(_check(work, against or (), embeddings, as_json=as_json))


command.command("read")(generate_read.command)


@command.command()
def accept(work: generate_write.Work, out: Out, as_json: options.AsJson = False) -> None:
    """Make a data set of what has passed, with a card that says where every text comes from."""
    _accept(work, out, as_json=as_json)


@command.command()
def status(work: generate_write.Work, as_json: options.AsJson = False) -> None:
    """Show where every unit stands."""
    found = status_of(WorkFolder(work))
    if as_json:
        print_json({"units": found})
        return
    rows: list[Sequence[str]] = [(one.name, *(str(getattr(one, name)) for name in COUNTED)) for one in found]
    total = ("all", *(str(sum(getattr(one, name) for one in found)) for name in COUNTED))
    tables.show(tables.table("", ("unit", *COUNTED), [*rows, (), total]))


def _plan(wanted: Wanted, out: Path) -> None:
    work = make_plan(wanted, out)
    units, storylines = len(work.units()), sum(work.plan.storylines.values())
    roles = "1 role" if units == 1 else f"{units} roles"
    print(f"{len(work.acts)} scenarios of {roles} and {storylines} storylines: {file_name(work.root)}")
    print_note(f"read and edit {file_name(work.root / 'acts.csv')}, then type:")
    print(f"  propensitybench generate write {shell_quoted(work.root)} --model MODEL", file=sys.stderr)


def _check(path: Path, against: Sequence[Path] = (), embeddings: str = "", *, as_json: bool) -> int:
    checked = check_generated(path, against, embeddings=embeddings)
    if as_json:
        print_json(checked.to_dict())
    else:
        for file, issues in checked.issues.items():
            for issue in issues:
                print(f"{file} {issue}")
        for text in checked.whole:
            print(text)
        for text in checked.lacking:
            print_note(f"note: {text}")
        print(checked)
    return NOT_DONE if checked.failed or checked.whole else 0


def _accept(path: Path, out: Path, *, as_json: bool) -> None:
    accepted = make_data_set(WorkFolder(path), out)
    if as_json:
        print_json(accepted._asdict())
        return
    for file, reasons in accepted.left_out.items():
        print_note(f"left out: {file}: {reasons[0]}")
    print(f"{accepted.scenarios} scenarios and {accepted.storylines} storylines: {file_name(out)}")


def _demonstrate(out: Path, seed: int) -> int:
    """Takes the scenarios of one role through every step with canned drafts; the exit code."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"--out {out}: is not empty; give a folder that does not exist yet")
    slots = [slot for slot in taxonomy().allocation if (slot.domain, slot.role) == DEMO_ROLE]
    allocation, work, data = out / "allocation.csv", out / "work", out / "data"
    out.mkdir(parents=True, exist_ok=True)
    with allocation.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([Slot._fields, *slots])
    _step("plan", "--domain", DEMO_ROLE[0], "--allocation", allocation, "--storylines", 1, "--out", work)
    _plan(Wanted(DEMO_ROLE[0], allocation, None, every_dimension(1), seed), work)
    _step("write", work, "--model", CANNED_WRITER)
    code = generate_write.write_texts(
        work,
        Models(CANNED_WRITER, price=Price(0.0, 0.0), client=lambda model, *_: CannedClient(model)),
        again=False,
        as_json=False,
    )
    _step("check", work)
    code = code or _check(work, as_json=False)
    readers = [f"canned/reader-{number}" for number in (1, 2)]
    _step("read", work, "--draw", len(slots), "--judge", readers[0], "--judge", readers[1])
    request = PanelRequest(work, (), Draw(len(slots), 0, seed), work)
    clients = [CannedClient(name) for name in readers]
    code = code or generate_read.read_panel(request, clients, None, as_json=False)
    _step("accept", work, "--out", data)
    if code == 0:
        _accept(work, data, as_json=False)
        folder = shell_quoted(data)
        print(
            f"""
No language model was used. The drafts are built-in texts, one of them with a deadline in its task, which a
check sent back to the writer. The readers give every item the same scores. With models of your own, type the
same commands.

Where every unit stands: propensitybench generate status {shell_quoted(work)}
The card of the set:     {shell_quoted(data / "card.md")}
Play it:                 propensitybench run --model simulated/o3-like --run demo.run --data {folder}"""
        )
    return code


def _step(name: str, *arguments: object) -> None:
    print(f"\n$ propensitybench generate {name} {' '.join(shell_quoted(str(one)) for one in arguments)}")
