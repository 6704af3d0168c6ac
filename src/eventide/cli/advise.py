"""``eventide advise``: how large the bound must be, from data."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from eventide.cli.answers import AsJson, answer
from eventide.errors import ProgramError

Unit = Literal["s", "ms", "us", "ns"]
Format = Literal["parquet", "orc", "csv", "json"]


def advise(
    paths: Annotated[
        list[str] | None, typer.Argument(help="Files, or directories; files are read in the order of their names.")
    ] = None,
    time: Annotated[str | None, typer.Option("--time", help="The column or JSON field with the event time.")] = None,
    split_by: Annotated[
        list[str] | None, typer.Option("--split-by", help="A column whose values are the splits; can be repeated.")
    ] = None,
    order_by: Annotated[
        str | None,
        typer.Option("--order-by", help="The column with the order of arrival. [default: order of rows]"),
    ] = None,
    unit: Annotated[Unit | None, typer.Option("--unit", help="The unit of times that are numbers.")] = None,
    lose: Annotated[float, typer.Option("--lose", min=0, max=1, help="The share of rows that may be lost.")] = 0.001,
    format: Annotated[Format | None, typer.Option("--format", help="The file format, if names do not show it.")] = None,
    kafka: Annotated[str | None, typer.Option("--kafka", help="Kafka bootstrap servers, instead of files.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="The Kafka topic.")] = None,
    plot: Annotated[str | None, typer.Option("--plot", help="Write a plot of late rows by bound to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Recommend an out-of-orderness bound for a watermark strategy, from existing data.

    Reads all rows of Parquet, ORC, CSV or JSON Lines files, or of a Kafka topic. For each bound, shows how many rows
    are lost and how late results come, and prints a strategy to paste. Times are timestamps, ISO 8601 text, or
    milliseconds.

    The exit code is 1 if no bound can be good for this data, for example because of a wrong time zone. Such problems
    are marked with `!`.

    For example:

        eventide advise /data/readings --time measured_at
        eventide advise /data/readings --time measured_at --split-by device --order-by received_at --plot curve.png
        eventide advise --kafka localhost:9092 --topic orders --time ordered_at --json | jq .recommended
    """
    from eventide.advisor import Topic
    from eventide.advisor import advise as advised

    if (kafka is None) != (topic is None) or (kafka is None) == (not paths):
        raise ProgramError("name files or directories, or a topic with --kafka SERVERS --topic TOPIC")
    found = advised(
        list(paths or ()) if kafka is None or topic is None else Topic(kafka, topic),
        time=time,
        split_by=tuple(split_by or ()),
        order_by=order_by,
        unit=unit,
        lose=lose,
        format=format,
    )
    if plot is not None:
        found.plot(plot)
    answer(found.to_json(), found, as_json=as_json, fine=not found.notes)
