"""Answers of commands: one answer, for a person or as JSON, on standard output; everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from eventide._secrets import without_secrets

FINE = 0
"""The exit code of a good answer."""

BAD = 1
"""The exit code of a bad one, such as something that is missing."""

NO_ANSWER = 2
"""The exit code where there is none: the command was used in a wrong way, or could not do what was asked for."""

_UNWRAPPED = 10_000

AsJson = Annotated[bool, typer.Option("--json", help="Write one JSON document, for programs, in place of text.")]
"""The option that every command has."""


def answer(document: Any, view: RenderableType, *, as_json: bool, fine: bool = True) -> None:
    """Say the answer of a command, and end it.

    Args:
        document: the answer as JSON values.
        view: the same for a person; text in it is taken as it is, without rich's markup.
        as_json: which of the two is wanted.
        fine: whether it is a good answer.

    Raises:
        typer.Exit: always, with the exit code.
    """
    if as_json:
        typer.echo(without_secrets(json.dumps(document, indent=2)))
    else:
        _say(view)
    raise typer.Exit(FINE if fine else BAD)


def _say(view: RenderableType) -> None:
    page = console()
    if page.is_terminal:
        page.print(view)
        return
    with page.capture() as text:
        page.print(view)
    typer.echo("\n".join(line.rstrip() for line in text.get().splitlines()))  # tables fill their lines with blanks


def complain(message: str) -> None:
    """Say what went wrong, on standard error."""
    console(stderr=True).print(Text.assemble(("eventide: ", "bold red"), message))


@contextmanager
def working(on: str) -> Iterator[None]:
    """Show that something takes a while, on a terminal alone."""
    with console(stderr=True).status(on):
        yield


def console(*, stderr: bool = False) -> Console:
    """Where text is printed: coloured and wrapped on a terminal, and neither where programs may read it.

    What people have named is no markup there, and numbers have no colour.
    """
    found = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not found.is_terminal:
        found.width = _UNWRAPPED
    return found
