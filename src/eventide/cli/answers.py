"""Parts that commands share: one answer, for a person or as JSON, and the session or checkpoint that it is of.

The answer goes to standard output; everything else to standard error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from eventide._secrets import without_secrets

if TYPE_CHECKING:
    from eventide.spark.checkpoint.inspection import Inspection

T = TypeVar("T")

FINE = 0
"""The exit code of a good answer."""

BAD = 1
"""The exit code of a bad one, such as something that is missing."""

NO_ANSWER = 2
"""The exit code where there is none: the command was used in a wrong way, or could not do what was asked for."""

_UNWRAPPED = 10_000

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON instead of text.")]
"""The option that every command has."""


def answer(document: object, view: RenderableType, *, as_json: bool, fine: bool = True) -> None:
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

    What people have named is not markup there, and numbers have no colour.
    """
    found = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not found.is_terminal:
        found.width = _UNWRAPPED
    return found


_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def started_spark() -> Any:
    """The active session, that of SPARK_REMOTE, or one for a few seconds: its JVM compiles quickly rather than well.

    Raises:
        ProgramError: if there is no Java that Spark can use.
    """
    os.environ.setdefault("JAVA_TOOL_OPTIONS", _QUICK_START)
    with working("Spark starts"):
        from eventide.spark.session.make import find_session

        return find_session(None, None)


def where_it_lies(call: Callable[[str], T], location: str, classes: Iterable[type] = ()) -> T:
    """Call a function with a location: in this process, or, with SPARK_REMOTE, where a server of Spark Connect is.

    The function needs no Spark. ``classes`` are those of the objects that it returns.
    """
    if "SPARK_REMOTE" not in os.environ:
        return call(location)
    spark = started_spark()
    from eventide.spark.connect import there

    return there(spark, partial(call, location), classes)


def found_in(location: str) -> Inspection:
    """Read a checkpoint from its files: without Spark, unless they lie where a server of Spark Connect is.

    Raises:
        ProgramError, StateError: as `eventide.spark.checkpoint.inspection.inspect`.
    """
    from eventide.spark.checkpoint.inspection import INSPECTED, inspect

    return where_it_lies(inspect, location, INSPECTED)
