"""``eventide checkpoint``: what is in one."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eventide.cli.answers import AsJson, answer, working
from eventide.cli.savepoint import say
from eventide.cli.session import found_in, savepoint_at, started_spark

if TYPE_CHECKING:
    from eventide.spark.inspection import Inspection
    from eventide.spark.state_sizes import StateSize


def checkpoint(
    location: Annotated[str, typer.Argument(metavar="PATH", help="The checkpoint's directory, or its URI.")],
    state: Annotated[
        bool, typer.Option("--state", help="Count the values and bytes of each operator's state, too: with Spark.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what is in a checkpoint, or a savepoint: the program, its sources, the last micro-batches, and sizes.

    The job may be running or not; nothing is written. The files are enough, so neither the program nor Spark is needed:
    Spark is started for `--state` alone. On other stores than local disks, the location is a URI that Arrow can open,
    such as `s3://bucket/jobs/orders`.

    For example:

        eventide checkpoint /data/jobs/orders
        eventide checkpoint /data/jobs/orders --state
        eventide checkpoint /data/jobs/orders --json | jq .unfinished
    """
    from eventide.cli.checkpoint_view import view_of

    saved = savepoint_at(location)
    if saved is not None:
        say(saved, as_json=as_json)
    found = found_in(location)
    sizes = _sizes(found) if state else None
    answer(_document(found, sizes), view_of(found, sizes, time.time_ns() // 1_000_000), as_json=as_json)


def _sizes(found: Inspection) -> list[StateSize]:
    spark = started_spark()
    with working("Spark counts the state"):
        from eventide.spark.state_sizes import state_sizes

        return state_sizes(spark, found)


def _document(found: Inspection, sizes: list[StateSize] | None) -> dict[str, Any]:
    return {**dataclasses.asdict(found), "state": None if sizes is None else [dataclasses.asdict(one) for one in sizes]}
