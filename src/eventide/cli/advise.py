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
        list[str] | None, typer.Argument(help="Files, or directories of files, in the order of their names.")
    ] = None,
    time: Annotated[str | None, typer.Option("--time", help="The column, or JSON field, of the event time.")] = None,
    split_by: Annotated[
        list[str] | None, typer.Option("--split-by", help="A column that tells splits apart; may be given again.")
    ] = None,
    order_by: Annotated[
        str | None, typer.Option("--order-by", help="The column of the order of arrival; else it is that of the rows.")
    ] = None,
    unit: Annotated[Unit | None, typer.Option("--unit", help="What numbers in the columns of times count.")] = None,
    lose: Annotated[float, typer.Option("--lose", min=0, max=1, help="The share that may be lost.")] = 0.001,
    format: Annotated[Format | None, typer.Option("--format", help="Where the names of files do not say it.")] = None,
    kafka: Annotated[str | None, typer.Option("--kafka", help="The brokers of Kafka, in place of paths.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="The topic there.")] = None,
    plot: Annotated[str | None, typer.Option("--plot", help="Draw how much is late with which bound.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say how large a watermark's bound must be, by how far data are out of order.

    Reads all rows of Parquet, ORC, CSV or JSON lines, or of a topic of Kafka, and says which bound loses how much, how
    late results come, and the strategy to paste. Times are timestamps, text in ISO 8601, or milliseconds.

    The exit code is 1 if the data have something that makes any bound a bad one, such as a wrong time zone; it stands
    in the answer, after `!`.

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
