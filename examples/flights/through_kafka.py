"""The demo of the flights through Kafka: what it plays, says and checks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from comparison import DoesNotAddUp
from flights import AIRPORTS, BOUND, DELAY, DELAYED, FIRST_DAY, plain_count, read_reports
from kafka_picture import draw, in_words
from rich.table import Table
from story import hours
from with_kafka import DRIFT, ROWS, KafkaResult, count_through_kafka, fill, settings

from eventide.datastream import StreamExecutionEnvironment
from eventide.testing import KafkaBroker

if TYPE_CHECKING:
    from rich.console import Console

BEGIN = FIRST_DAY + pd.Timedelta(hours=12)
"""Time by which arrivals were counted by an earlier job."""


def play(days: int, picture: Path, folder: Path, parallelism: int, console: Console) -> None:
    """Fill the topic, count it with and without an alignment, account for every row, and draw."""
    reports = read_reports(days).rows
    before, rows = reports[reports["reported"] < BEGIN], reports[reports["reported"] >= BEGIN]
    console.print(introduction(rows, days), end="\n\n")
    results = []
    with KafkaBroker() as broker:
        fill(broker, reports)
        for name in ("apart", "aligned"):
            env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
            with console.status(f"eventide: {name}"):
                result = count_through_kafka(
                    broker,
                    settings(env, folder / name),
                    Counter(before["origin"]),
                    name,
                    aligned=name == "aligned",
                )
            check(rows, result)
            results.append(result)
    apart, aligned = results
    draw(apart, aligned, picture)
    console.print(table(apart, aligned), "", what_happened(apart, aligned), "", sep="\n")
    console.print(f"The picture is in {picture}", soft_wrap=True)


def introduction(rows: pd.DataFrame, days: int) -> str:
    """Say what is counted, and how."""
    last = FIRST_DAY + pd.DateOffset(days=days - 1)
    return (
        f"[bold]{len(rows):,} departures from New York's three airports, up to {last:%B} {last.day}, 2013, through "
        "Kafka[/]\n"
        "A topic has the reports of flights, in a partition for each airport. An earlier job has read what had "
        f"arrived by noon of January 1. {AIRPORTS[DELAYED]}'s reports arrive {hours(DELAY)} later than the others'. "
        "So its partition is behind.\n"
        f"The job: count the departures of each airport and hour, {hours(BOUND)} out of order at most, {ROWS} rows in "
        "a micro-batch; from topic to topic, exactly once. First as it is, then with partitions that are aligned "
        f"within {hours(DRIFT)}."
    )


def check(rows: pd.DataFrame, result: KafkaResult) -> None:
    """Hold what a reader finds in the topics against a plain count.

    Raises:
        DoesNotAddUp: if a row is missing, or is there twice, or the job said something else of itself.
    """
    for holds, what in (
        (result.rows_in == len(rows), "every row was read once"),
        (result.counts + result.late == plain_count(rows), "counted and late rows are all rows, hour by hour"),
        (result.metric == result.late.total(), "the counter of late rows is right"),
        (result.way["waiting"].iloc[-1] == 0, "nothing waits in state in the end"),
    ):
        if not holds:
            raise DoesNotAddUp(f"this should be so, and is not: {what}")


def table(apart: KafkaResult, aligned: KafkaResult) -> Table:
    """Show the fate of the rows, and of the partitions."""
    result = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    result.add_column("")
    for name in ("without alignment", "aligned"):
        result.add_column(name, justify="right")
    for name, value in (
        ("rows in", lambda one: f"{one.rows_in:,}"),
        ("rows counted", lambda one: f"{one.counts.total():,}"),
        ("late, in a topic of their own", lambda one: f"{one.late.total():,}"),
        ("rows in state, at most", lambda one: f"[bold]{one.way['waiting'].max():,}[/]"),
        ("partitions apart, median", lambda one: f"[bold]{in_words(one.apart.median())}[/]"),
        ("partitions apart, at most", lambda one: in_words(one.apart.max())),
        ("micro-batches", lambda one: f"{len(one.way):,}"),
    ):
        result.add_row(name, value(apart), value(aligned))
    return result


def what_happened(apart: KafkaResult, aligned: KafkaResult) -> str:
    """Why the two differ, and how the numbers were checked."""
    return (
        f"Each partition has its watermark, and the lowest counts: {AIRPORTS[DELAYED]}'s. Without an alignment, what "
        "is read of the others waits in state until it comes up.\n"
        f"Aligned, the others wait in their partitions. What still is in state are the last {hours(BOUND)}, for which "
        f"flights may be reported. At most {in_words(aligned.apart.max())} apart are partitions over a night without "
        "flights: where one goes on is known by its next row.\n"
        f"Late are {aligned.late.total():,} flights then, because windows close as soon as these hours are over; "
        f"without an alignment they stay open for as long as {AIRPORTS[DELAYED]} is behind, and only "
        f"{apart.late.total():,} flights find theirs closed.\n"
        "Checked against a plain count: for a reader of what is committed, what was counted and what was late make up "
        "the truth in every hour, each row once."
    )
