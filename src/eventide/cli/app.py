"""The command ``eventide``: its list of commands, and their common options and errors.

A command is a function in a file of its own here: its docstring is its help, in Markdown; its parameters are its
options; one line below makes it known. What it needs of Spark, pandas or Arrow it imports when it runs, so that help is
there at once.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from eventide import __version__
from eventide.cli.advise import advise
from eventide.cli.answers import NO_ANSWER, complain
from eventide.cli.checkpoint import checkpoint, rescale, savepoint
from eventide.cli.compact import compact
from eventide.cli.dashboard import dashboard
from eventide.cli.demo import demo
from eventide.cli.doctor import doctor
from eventide.cli.watermarks import watermarks
from eventide.cli.why import why
from eventide.errors import EventideError


class Commands(TyperGroup):
    """The commands; an eventide error in any of them is one message, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except EventideError as error:
            complain(str(error))
            raise typer.Exit(NO_ANSWER) from error


app = typer.Typer(
    name="eventide",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a bug's traceback is for its report: whole, and plain
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(advise)
app.command()(checkpoint)
app.command()(compact)
app.command()(dashboard)
app.command()(demo)
app.command()(doctor)
app.command()(rescale)
app.command()(savepoint)
app.command()(watermarks)
app.command()(why)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"eventide {__version__}")
        raise typer.Exit


@app.callback()
def eventide(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The event-time system of Apache Flink for PySpark: commands for jobs, checkpoints and data.

    Every command has `--json`, and examples in its `--help`. The exit code is 0 if all is well, 1 if the command found
    a problem, and 2 if it could not do its work.
    """
