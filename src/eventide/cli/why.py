"""``eventide why``: why a window does not fire, or a watermark stands still."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from eventide.cli.answers import AsJson, answer, found_in, started_spark, working


def why(
    location: Annotated[
        str, typer.Argument(metavar="PATH", help="The checkpoint's directory, or its URI.", show_default=False)
    ],
    operator: Annotated[str | None, typer.Option(help="Show only this operator, by name or id.")] = None,
    at: Annotated[
        str | None, typer.Option(help="An event time: ISO 8601 (UTC if it has no zone), or milliseconds.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="A key as text; separate several columns by commas.")] = None,
    as_json: AsJson = False,
) -> None:
    """Explain why windows do not fire: each watermark, the split that holds it back, and late elements.

    The job may be running. Spark only reads the checkpoint, and the program is not needed. If the cause is certain, it
    is the first line, and the exit code is 1. `--at` shows the windows of a time: whether they are open, what they
    hold, and what must happen before they fire. `--key` shows the windows, the state and the timers of a key.

    For example:

        eventide why /data/jobs/orders
        eventide why /data/jobs/orders --operator totals --at 2026-05-01T08:30
        eventide why /data/jobs/orders --key shop-17
        eventide why /data/jobs/orders --json | jq .answer
    """
    from eventide.common.words import ms_of_text
    from eventide.spark.checkpoint.state_reader import evidence
    from eventide.why import why as explained

    if at is not None:
        ms_of_text(at)  # and what is not a time
    found_in(location)  # what is not a checkpoint is said before Spark is started
    spark = started_spark()
    with working("Spark reads the checkpoint"):
        said = explained(evidence(spark, location, time.time_ns() // 1_000_000), operator, at, key)
    answer(said.to_json(), said, as_json=as_json, fine=not said.advice)
