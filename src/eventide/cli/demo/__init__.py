"""``eventide demo``: the losses of a single watermark, and a checkpoint to look at."""

from __future__ import annotations

import dataclasses
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from eventide.cli.answers import AsJson, answer, started_spark, working
from eventide.common.words import length, moment
from eventide.errors import ProgramError

_PARALLELISM = 2
_ROWS = {
    "readings": "readings in",
    "counted": "counted, in hours that are over",
    "waiting": "in hours that are still open",
    "late": "late, on a side output",
    "lost": "lost without a word",
    "hours_too_low": "hours with too low a count",
}


def demo(
    folder: Annotated[Path | None, typer.Option(help="Where to keep the files. [default: a temporary folder]")] = None,
    as_json: AsJson = False,
) -> None:
    """Count a day of sensor readings with eventide and with Spark's watermark, and compare the results.

    Three stations send temperatures. One has a slow line, and is three hours behind at the end of the day. The readings
    are part of eventide. Both results are compared with a plain count. Afterwards, try the other commands on the
    checkpoint.

    For example:

        eventide demo
        eventide demo --folder /tmp/readings
        eventide why /tmp/readings/checkpoint
        eventide checkpoint /tmp/readings/checkpoint
    """
    place = _new_folder(folder)
    story = _played(place)
    answer(story, view_of(story), as_json=as_json)


def _new_folder(folder: Path | None) -> Path:
    """Where the demo may write.

    Raises:
        ProgramError: if something is there already.
    """
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="eventide-demo-"))
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ProgramError(f"{folder} is there already, and the demo would write over it; give it a folder of its own")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()


def _played(place: Path) -> dict[str, Any]:
    """Run both jobs; return their results as JSON values."""
    from eventide.cli.demo.readings import (
        BOUND_MS,
        LAGGING,
        counted_at_rest,
        counted_by_eventide,
        fate_of,
        read,
        write_stream,
    )
    from eventide.spark.demo import counted_by_spark, stream_of

    readings = read()
    truth = counted_at_rest(readings)
    batches = write_stream(readings, place / "stream")
    spark = started_spark()
    ours = counted_by_eventide(stream_of(spark, place / "stream"), _PARALLELISM, place / "checkpoint")
    with working("Spark counts"):
        theirs = counted_by_spark(stream_of(spark, place / "stream"), BOUND_MS, _PARALLELISM, place / "spark")
    return {
        "stations": len({station for station, _ in truth}),
        "micro_batches": batches,
        "bound_ms": BOUND_MS,
        "lagging": LAGGING,
        "eventide": {
            **dataclasses.asdict(fate_of(truth, ours.counts, ours.late, ours.watermark_ms)),
            "watermark_ms": ours.watermark_ms,
        },
        "spark": {
            **dataclasses.asdict(fate_of(truth, theirs.counts, Counter(), theirs.watermark_ms - 1)),
            "watermark_ms": theirs.watermark_ms,
            "says_dropped": theirs.dropped,
        },
        "checkpoint": str(place / "checkpoint"),
    }


def view_of(story: dict[str, Any]) -> Group:
    """Show the results of the demo for a person."""
    ours, theirs, lagging = story["eventide"], story["spark"], story["lagging"]
    bound = length(story["bound_ms"])
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("")
    table.add_column("eventide", justify="right")
    table.add_column("Spark withWatermark", justify="right")
    for name, title in _ROWS.items():
        style = "bold red" if name == "lost" and theirs["lost"] else ""
        table.add_row(title, f"{ours[name]:,}", Text(f"{theirs[name]:,}", style))
    return Group(
        Text(
            f"A day of temperatures from {story['stations']} stations; at its end, {lagging!r} is three hours behind.",
            "bold",
        ),
        Text(
            f"Counted by station and hour, {bound} out of order at most, in {story['micro_batches']} micro-batches.\n"
        ),
        table,
        Text(
            f"\nSpark has one watermark, {bound} behind the newest reading of any station: "
            f"{moment(theirs['watermark_ms'])} at the end. The readings of {lagging!r} arrive after it, and vanish; "
            f"the metric numRowsDroppedByWatermark says {theirs['says_dropped']:,}, because it counts groups of rows.\n"
            "eventide has a watermark for each station and goes by the lowest: "
            f"{moment(ours['watermark_ms'])} at the end. The hours after it are open, and wait for {lagging!r}.\n"
        ),
        Text(f"The checkpoint of eventide's job is in {story['checkpoint']}. Try:"),
        Text(f"  eventide why {story['checkpoint']}\n  eventide checkpoint {story['checkpoint']}", "cyan"),
    )
