"""``propensitybench label``: people read transcripts and answer a question about each."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.errors import BadInput


def command(
    file: options.RunPath,
    question: Annotated[
        str | None,
        typer.Option(
            "--question", metavar="NAME|FILE", help="A built-in question, or one of your own (.toml)."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Who reads; always the same spelling."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page",
            metavar="FILE.html",
            help="Write a page to read and answer on instead; it works offline and saves a file.",
        ),
    ] = None,
    read: Annotated[
        Path | None,
        typer.Option("--read", metavar="FILE.json", help="Store the answers that such a page has saved."),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--number",
            min=1,
            help="Episodes in the sample; a larger number later adds to it. Default: 200.",
        ),
    ] = None,
    twice: Annotated[
        float | None,
        typer.Option("--twice", metavar="SHARE", help="Share of them that two people read. Default: 0.25."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Random seed of the sample. Default: 0.")] = None,
) -> None:
    from propensitybench.cli.labelling import label_in_terminal, read_saved, write_page
    from propensitybench.judging.questions import question_names, read_question
    from propensitybench.judging.sampling import Size

    if read is not None:
        if any(one is not None for one in (question, name, page, number, twice, seed)):
            raise BadInput(f"--read {read}: is given alone; the file says who answered which question")
        read_saved(file, read)
        return
    if question is None:
        raise BadInput(f"label: give --question NAME; built in are {', '.join(question_names())}")
    asked, size = read_question(question), Size(number, seed, twice)
    if page is not None:
        write_page(file, asked, size, page, name)
    elif name is None:
        raise BadInput("label: give your name with --as NAME, or write a page with --page FILE.html")
    else:
        label_in_terminal(file, asked, size, name)
