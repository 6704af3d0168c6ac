"""``eventide savepoint``: from the checkpoint of a job to where another begins."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from eventide.cli.answers import AsJson, answer, found_in, started_spark, working

if TYPE_CHECKING:
    from eventide.savepoint import Header, Outline


def savepoint(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="The checkpoint's directory, or its URI.", show_default=False)
    ],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A new directory, or its URI.", show_default=False)],
    parallelism: Annotated[
        int | None,
        typer.Option(min=1, help="That of a job that begins with it and says none; by default, that of before."),
    ] = None,
    max_parallelism: Annotated[
        int | None,
        typer.Option(min=1, help="How many key groups a job that begins with it has; by default, as many as before."),
    ] = None,
    repeat: Annotated[
        bool,
        typer.Option(
            "--repeat",
            help="Read a micro-batch again that was not finished and may be in sinks; it may come twice then.",
        ),
    ] = False,
    running: Annotated[
        bool,
        typer.Option(
            "--running",
            help="The job may be running, and go on. What it does after its last finished micro-batch is left out.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a savepoint of a job: its state as rows in Parquet, and the positions of its sources.

    A program begins with it by `env.from_savepoint(TARGET)`, with a new checkpoint: under another parallelism, with
    other operators, on another machine. The program is not needed here: Spark reads the checkpoint, and writes nothing
    there. Unless --running is given, the job must have ended, and have finished what it began, if a sink may have
    anything of that; a run with `env.set_available_now()` does both.

    For example:

        eventide savepoint /data/jobs/orders /data/savepoints/orders-1
        eventide savepoint /data/jobs/orders s3://bucket/orders-1 --parallelism 8
        eventide savepoint /data/jobs/orders /data/savepoints/on-trial --running
    """
    found_in(checkpoint)  # what is not a checkpoint is said before Spark is started
    spark = started_spark()
    with working("Spark reads the checkpoint"):
        from eventide.spark.checkpoint.savepoint import take_savepoint

        taken = take_savepoint(
            spark,
            checkpoint,
            target,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            repeat=repeat,
            running=running,
        )
    say(taken, as_json=as_json)


def say(found: Outline, *, as_json: bool) -> None:
    """Answer with what is in a savepoint."""
    document = {"location": found.location, **dataclasses.asdict(found.header)}
    answer(document, _view(found.location, found.header), as_json=as_json)


def _view(location: str, header: Header) -> str:
    operators = header.program["operators"]
    names = ", ".join(sorted(one["name"] for one in operators.values())) or "none"
    of_job = f"micro-batch {header.batch} of the job in {header.checkpoint}"
    return (
        f"The savepoint {location}: {'written by a program' if header.checkpoint is None else of_job}\n"
        f"  state of   {names}\n"
        f"  sources    {', '.join(source.name for source in header.sources) or 'none'}\n"
        f"Begin with it by env.from_savepoint({location!r}), with a new checkpoint location"
    )
