"""Nexmark: the benchmark of the field, on eventide, Spark's streaming SQL, and Flink SQL where it is installed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pyspark
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks import nexmark_flink
from benchmarks.bench import Bench
from benchmarks.figures import Race, shown
from benchmarks.queries import PARALLELISM, environment, query_of
from eventide.datastream.connectors import FormatSink
from eventide.spark.host import settings_for_start
from examples.nexmark import files
from examples.nexmark.generator import KINDS, Recipe
from examples.nexmark.queries import QUERIES
from examples.nexmark.queries.q13 import side_input
from examples.nexmark.sql import NOT_ON_SPARK, STREAMING

FLINK = "EVENTIDE_FLINK_PYTHON"
"""The variable that says which Python has `apache-flink`."""

_ON_FLINK = {
    6: "as the ten last of each seller, because OVER takes no rows that change",
    13: "as a plain join, because it cannot look up in files",
    14: "with an expression of its own for the user's function",
}
"""Queries that Flink runs in another way than Nexmark."""


def nexmark(bench: Bench) -> list[Race]:
    """Nexmark."""
    recipe = Recipe(bench.sizes.nexmark_events)
    chunks = bench.place / "data" / "nexmark"
    bench.say("writing the data nexmark")
    files.write(recipe, chunks, bench.sizes.nexmark_batches, PARALLELISM)
    spark = _spark(bench, recipe, chunks)
    rates: dict[str, dict[int, float]] = {"eventide": {}, "Spark": {}}
    for number in QUERIES:  # one side after the other for each, so that both meet the machine in the same mood
        rates["eventide"][number] = _rate(bench, recipe, number, "eventide", _eventide(bench, recipe, chunks))
        if number in STREAMING:
            rates["Spark"][number] = _rate(bench, recipe, number, "Spark", spark)
    rates["Flink"], notes = _by_flink(bench, recipe)
    return [
        Race(
            f"{number}: {query.title}",
            {engine: rate[number] for engine, rate in rates.items() if number in rate},
            "; ".join([*_said("Spark", NOT_ON_SPARK, number), *_said("Flink", notes, number)]),
        )
        for number, query in QUERIES.items()
    ]


def _said(engine: str, notes: Mapping[int, str], number: int) -> list[str]:
    return [f"{engine}: {notes[number]}"] if number in notes else []


Start = Callable[[int, Path], StreamingQuery]
"""Starts a query, by its number, that may write below a folder."""


def _eventide(bench: Bench, recipe: Recipe, folder: Path) -> Start:
    def start(number: int, place: Path) -> StreamingQuery:
        env = environment(bench.spark, place)
        streams = files.read(env, recipe, folder, PARALLELISM)
        query = QUERIES[number]
        query.program(streams).sink_to(query.sink(str(place / "out")) if query.sink else FormatSink("noop"))
        return query_of(env)

    return start


def _spark(bench: Bench, recipe: Recipe, folder: Path) -> Start:
    spark = bench.spark
    spark.createDataFrame([*side_input().items()], "key LONG, value STRING").createOrReplaceTempView("side_input")
    for kind in KINDS:
        place = str(folder / kind.name)
        rows = spark.readStream.schema(spark.read.parquet(place).schema).option("maxFilesPerTrigger", PARALLELISM)
        timed = rows.parquet(place).withWatermark("dateTime", f"{recipe.disorder_ms} milliseconds")
        timed.createOrReplaceTempView(kind.name)

    def start(number: int, place: Path) -> StreamingQuery:
        said = STREAMING[number]
        writer = spark.sql(said.text(recipe)).writeStream.outputMode(said.mode)
        if said.partition_by:
            writer = writer.format("parquet").partitionBy(*said.partition_by).option("path", str(place / "out"))
        else:
            writer = writer.format("noop")
        with settings_for_start(spark, PARALLELISM):
            return writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()

    return start


def _rate(bench: Bench, recipe: Recipe, number: int, engine: str, start: Start) -> float:
    """Rows a second from the second micro-batch to the end, with all that the end brings."""
    run = bench.run(f"Nexmark {number}, {engine}", lambda place: start(number, place))
    bench.clear(run)
    batches = bench.sizes.nexmark_batches
    rate = _rows(recipe, number) * (batches - 1) / batches / sum(run.seconds[1:])
    bench.say(f"  {shown(rate, 'rows/s')}")
    return rate


def _rows(recipe: Recipe, number: int) -> int:
    """How many events a query reads."""
    return sum(kind.count(recipe.events) for kind in QUERIES[number].reads)


def _by_flink(bench: Bench, recipe: Recipe) -> tuple[dict[int, float], dict[int, str]]:
    """Rows a second of each query, and what is to be said about it."""
    python = os.environ.get(FLINK)
    if not python:
        bench.say(f"Flink is left out: {FLINK} does not name a Python with apache-flink")
        return {}, {}
    folder = bench.place / "data" / "nexmark-in-order"
    files.write(recipe, folder, 1, PARALLELISM)
    # Its first job is one more than is counted: the first job of a JVM is slow.
    numbers = [str(number) for number in (0, *QUERIES)]
    arguments = [str(folder), str(bench.place / "flink"), str(PARALLELISM), str(recipe.disorder_ms), *numbers]
    jars = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar")
    told = subprocess.run(
        [python, nexmark_flink.__file__, *arguments],
        env={**os.environ, "PYTHONPATH": "", "HADOOP_CLASSPATH": os.pathsep.join(map(str, jars))},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    rates, notes = {}, dict(_ON_FLINK)
    for line in told.splitlines():
        if line.startswith("{"):
            outcome = json.loads(line)
            number = outcome["query"]
            if "seconds" in outcome:
                rates[number] = _rows(recipe, number) / outcome["seconds"]
                bench.say(f"Nexmark {number}, Flink: {outcome['seconds']} s, {shown(rates[number], 'rows/s')}")
            else:
                notes[number] = outcome["error"]
    return rates, notes
