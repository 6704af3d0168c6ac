"""``eventide checkpoint``, ``savepoint`` and ``rescale``: the content of a checkpoint, and where jobs go on from it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eventide._secrets import without_secrets
from eventide.cli.answers import AsJson, answer, found_in, started_spark, where_it_lies, working
from eventide.common.words import count, length, moment, size
from eventide.connectors.file_system.sink import prefix_of

if TYPE_CHECKING:
    from eventide.savepoint import Header, Outline
    from eventide.spark.checkpoint.inspection import Inspection, MicroBatch, SourcePart, SourceState
    from eventide.spark.checkpoint.state_reader import StateSize
    from eventide.spark.checkpoint.unfinished import Deferred, LethalElements

_MOST_PARTS = 10


def checkpoint(
    location: Annotated[str, typer.Argument(metavar="PATH", help="The checkpoint's directory, or its URI.")],
    state: Annotated[
        bool, typer.Option("--state", help="Also count the values and bytes of each operator's state. Starts Spark.")
    ] = False,
    defer: Annotated[
        bool,
        typer.Option(
            "--defer",
            help="Make the unfinished micro-batch read nothing; later ones read its input. The job must have stopped.",
        ),
    ] = False,
    aside: Annotated[
        bool,
        typer.Option(
            "--set-aside",
            help="Leave out the elements of the unfinished micro-batch that crash the Python worker. The job must have "
            "stopped.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is in a checkpoint or savepoint: program, sources, last micro-batches, and sizes.

    The job may be running. The program is not needed, and Spark is started only for `--state`. Nothing is written,
    except with two options. `--defer` is for a job whose next micro-batch needs more memory than there is; give its
    program a lower `set_max_rows_per_batch(...)` before you start it again. `--set-aside` is for an element that
    crashes the Python worker at each start. If the checkpoint is not on a local disk, give a URI that Arrow can open,
    such as `s3://bucket/jobs/orders`.

    For example:

        eventide checkpoint /data/jobs/orders
        eventide checkpoint /data/jobs/orders --state
        eventide checkpoint /data/jobs/orders --json | jq .unfinished
        eventide checkpoint /data/jobs/orders --defer
        eventide checkpoint /data/jobs/orders --set-aside
    """
    if defer:
        from eventide.spark.checkpoint import unfinished

        done = where_it_lies(unfinished.defer, location, [unfinished.Deferred])
        answer(dataclasses.asdict(done), _of_deferred(done), as_json=as_json)
    if aside:
        from eventide.runtime.invoke import CallMark
        from eventide.spark.checkpoint import unfinished

        lethal = where_it_lies(unfinished.set_aside, location, [unfinished.LethalElements, CallMark])
        document = {"number": lethal.number, "elements": [dataclasses.asdict(mark) for mark in lethal.elements]}
        answer(document, _of_lethal(lethal), as_json=as_json)
    from eventide.savepoint.saved import OUTLINED, outlined_at

    saved = where_it_lies(outlined_at, location, OUTLINED)
    if saved is not None:
        say(saved, as_json=as_json)
    found = found_in(location)
    sizes = _sizes(found) if state else None
    counted = None if sizes is None else [dataclasses.asdict(one) for one in sizes]
    document = {**dataclasses.asdict(found), "state": counted}
    answer(document, view_of(found, sizes, time.time_ns() // 1_000_000), as_json=as_json)


def view_of(found: Inspection, sizes: Sequence[StateSize] | None, now_ms: int) -> RenderableType:
    """The checkpoint, and its state where that was counted; ``now_ms`` is the time of day."""
    parts: list[RenderableType] = [
        Text(f"The checkpoint {without_secrets(found.location)}", "bold"),
        _rows(_of_the_job(found, now_ms)),
    ]
    parts += [Text("\nSources", "bold"), *(line for source in found.sources for line in _source(source))]
    parts += [Text("\nOperators", "bold"), _table(["stage", "operator", "stored as", ""], _operators(found))]
    if sizes is not None:
        parts += [Text("\nState", "bold"), _table(["stage", "operator", "values", "size"], _state(found, sizes))]
    parts += [Text("\nSinks", "bold"), *(Text(f"  {line}") for line in _sinks(found))]
    return Group(*parts)


def _of_deferred(done: Deferred) -> str:
    return (
        f"Micro-batch {done.number} reads nothing now; it would have read from {count(done.parts, 'part')} of sources. "
        "Lower env.set_max_rows_per_batch(...) in the program, and start the job: the next micro-batches read that "
        "input"
    )


def _of_lethal(lethal: LethalElements) -> str:
    elements = "\n".join(f"  {mark.operator}, {mark.during}: {mark.element}" for mark in lethal.elements)
    return (
        f"Micro-batch {lethal.number} leaves out, and counts in numDeadLetters:\n{elements}\nStart the job: it goes on "
        "without"
    )


def _sizes(found: Inspection) -> list[StateSize]:
    spark = started_spark()
    with working("Spark counts the state"):
        from eventide.spark.checkpoint.state_reader import state_sizes

        return state_sizes(spark, found)


def _of_the_job(found: Inspection, now_ms: int) -> Iterator[tuple[str, str]]:
    yield "job", found.job
    if found.created_ms is not None:
        yield "begun", f"{_at(found.created_ms, now_ms)}; Spark's query {found.query}"
    programs = f"{count(found.programs, 'program')}, {count(found.parallelism, 'subtask')}"
    yield "started with", f"{programs}; state in format {found.format}"
    yield "committed", _committed(found.committed, now_ms)
    if found.unfinished is not None:
        yield "unfinished", _unfinished(found.unfinished, now_ms)
    total, state = sum(found.listing.folders.values()), found.listing.folders.get("state", 0)
    yield "size", f"{size(total)} in {count(found.listing.files, 'file')}; of these, state: {size(state)}"


def _committed(batch: MicroBatch | None, now_ms: int) -> str:
    if batch is None or batch.committed_ms is None:
        return "no micro-batch yet"
    at = f"micro-batch {batch.number}, at {_at(batch.committed_ms, now_ms)}"
    if batch.planned_ms is None:
        return at
    return f"{at}, {length(max(0, batch.committed_ms - batch.planned_ms))} after it was planned"


def _unfinished(batch: MicroBatch, now_ms: int) -> str:
    planned = "" if batch.planned_ms is None else f", planned at {_at(batch.planned_ms, now_ms)}"
    return f"micro-batch {batch.number}{planned}: the job is in it, or ended in it and repeats it at its next start"


def _at(ms: int, now_ms: int) -> str:
    ago_ms = (now_ms - ms) // 1_000 * 1_000
    return f"{moment(ms)} ({length(ago_ms)} ago)" if ago_ms > 0 else f"{moment(ms)} (just now)"


def _source(source: SourceState) -> Iterator[RenderableType]:
    """The parts of a source that have not ended come first; of many, the others are left out."""
    ended = sum(part.ended for part in source.parts)
    counted = count(len(source.parts), "part") + (f", {ended:,} ended" if ended else "")
    yield Text(f"  {source.name} ({source.kind}): {counted if source.parts else 'nothing planned yet'}")
    shown = sorted(source.parts, key=lambda part: part.ended)[:_MOST_PARTS]
    if shown:
        yield _rows(
            (f"  {without_secrets(part.name)}", *_position(part), "ended" if part.ended else "") for part in shown
        )
    if len(shown) < len(source.parts):
        yield Text(f"    and {len(source.parts) - len(shown):,} more, which --json has")


def _position(part: SourcePart) -> tuple[str, str]:
    reached = "-" if part.committed is None else str(part.committed)
    return reached, "" if part.planned in (None, part.committed) else f"to {part.planned} in the unfinished one"


def _operators(found: Inspection) -> Iterator[tuple[str, ...]]:
    for operator in found.operators:
        does = operator.identity.get("window") or operator.identity.get("stored form", "")
        yield str(operator.stage), operator.name, operator.id, does


def _state(found: Inspection, sizes: Iterable[StateSize]) -> Iterator[tuple[str, ...]]:
    names = {operator.id: operator.name for operator in found.operators}
    for one in sizes:
        name = "what its operators share" if one.operator is None else names[one.operator]
        yield str(one.stage), name, f"{one.rows:,}", size(one.bytes)


def _sinks(found: Inspection) -> Iterator[str]:
    for sink in found.description["sinks"]:
        yield f"{sink['name']} ({sink['kind']})"
    # In a copy that was made while the job ran, more than one planned micro-batch may lack its commit. Spark repeats
    # the last one: it could only be planned when those before were done.
    begun = found.unfinished or found.committed
    following = found.counted + (0 if begun is None else begun.number + (begun is found.committed))
    for directory in found.directories:
        yield f"files in {directory}; those of the next micro-batch begin with {prefix_of(following)}"
    for group in found.transactions:
        yield f"transactions of Kafka in the group {group}"


def _rows(rows: Iterable[tuple[str, ...]]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    for first, *others in rows:
        table.add_row(f"  {first}", *others)
    return table


def _table(titles: Sequence[str], rows: Iterable[tuple[str, ...]]) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for place, title in enumerate(titles):
        right = title in {"values", "size"}
        table.add_column(title if place else f"  {title}", overflow="fold", justify="right" if right else "left")
    for first, *others in rows:
        table.add_row(f"  {first}", *others)
    return table


def savepoint(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="The checkpoint's directory, or its URI.", show_default=False)
    ],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A new directory, or its URI.", show_default=False)],
    parallelism: Annotated[
        int | None,
        typer.Option(min=1, help="Parallelism of a job that starts from it and sets none. [default: as before]"),
    ] = None,
    max_parallelism: Annotated[
        int | None,
        typer.Option(min=1, help="Number of key groups of a job that starts from it. [default: as before]"),
    ] = None,
    repeat: Annotated[
        bool,
        typer.Option(
            "--repeat",
            help="Read the unfinished micro-batch again. Its results may already be in sinks, and come twice.",
        ),
    ] = False,
    running: Annotated[
        bool,
        typer.Option(
            "--running",
            help="The job may be running, and continues. The savepoint ends with its last finished micro-batch.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a savepoint of a job: its state as Parquet, and the positions of its sources.

    A program starts from it with `env.from_savepoint(TARGET)` and a new checkpoint. Its parallelism, its operators and
    the machine may differ. The job's program is not needed to write a savepoint; Spark only reads the checkpoint.
    Without `--running`, the job must have stopped, with no unfinished micro-batch that may be in a sink. A run with
    `env.set_available_now()` ends like this.

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


def rescale(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="The checkpoint's directory, or its URI.", show_default=False)
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="The directory of the new checkpoint.", show_default=False)
    ],
    parallelism: Annotated[int, typer.Option(min=1, help="The new parallelism.", show_default=False)],
    max_parallelism: Annotated[
        int | None, typer.Option(min=1, help="The new number of key groups. [default: as before]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change the parallelism of a stopped job: write a new checkpoint from its checkpoint.

    Start the program with the new checkpoint. It continues where the job stopped, with the same sinks; nothing is lost
    or written twice. The program itself must not set a different parallelism. The old checkpoint cannot be used any
    more.

    For example:

        eventide rescale /data/jobs/orders /data/jobs/orders-8 --parallelism 8
    """
    found_in(checkpoint)  # what is not a checkpoint is said before Spark is started
    spark = started_spark()
    with working("Spark reads the checkpoint"):
        from eventide.spark.checkpoint.savepoint import rescale as continue_in

        saved = continue_in(spark, checkpoint, target, parallelism=parallelism, max_parallelism=max_parallelism)
    document = {
        "checkpoint": target,
        "savepoint": saved.location,
        "parallelism": parallelism,
        "max_parallelism": saved.header.program["max parallelism"],
        "batch": saved.header.batch,
    }
    view = (
        f"The checkpoint {target}: goes on after micro-batch {saved.header.batch} of {checkpoint}, with {parallelism} "
        f"subtasks\nStart the program with env.get_checkpoint_config().set_checkpoint_storage_dir({target!r})"
    )
    answer(document, view, as_json=as_json)
