"""Sinks on Spark: a query of its own kind for a single one, one query that routes for several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from eventide.datastream.connectors import CollectSink, DataFrameSink, FormatSink, PrintSink
from eventide.errors import ProgramError
from eventide.plan.job import SinkSpec
from eventide.spark.frame_rows import frame_of
from eventide.spark.rows import typed_rows
from eventide.spark.types import schema_of

Take = Callable[[Any], None]
_SPARKS_FILES = ("avro", "csv", "json", "orc", "parquet", "text")


def writer(frames: DataFrame, sinks: tuple[SinkSpec, ...], take: Take) -> DataStreamWriter:
    """What writes the results of a streaming job; ``take`` gets each element of a collecting sink.

    A single sink with a format of Spark's is written by Spark itself, exactly once where Spark's sink is. Otherwise
    one ``foreachBatch`` routes each micro-batch.
    """
    if len(sinks) == 1 and isinstance(sinks[0].sink, FormatSink):
        sink = sinks[0].sink
        return typed_rows(frames, sinks[0]).writeStream.format(sink.format).options(**sink.options).outputMode("append")
    deliver = Delivery(sinks, take)
    return frames.writeStream.foreachBatch(deliver).outputMode("append")


def refuse_used_directories(spark: SparkSession, sinks: tuple[SinkSpec, ...], *, new: bool) -> None:
    """Check that what a job's file sinks write will be read as they write it, beside nothing else.

    A new job counts its micro-batches from 0: Spark's file sink would take them for repeated ones of the job that wrote
    there before, and skip them; directories of micro-batches would be written over. And where Spark's file sink has
    written, Spark reads only what is on that sink's list.

    Raises:
        ProgramError: naming the directory.
    """
    descriptions = [s.sink for s in sinks if isinstance(s.sink, FormatSink) and "path" in s.sink.options]
    # Alone, a table format such as Delta keeps the micro-batches of different jobs apart itself.
    paths = [d.options["path"] for d in descriptions if len(sinks) > 1 or d.format in _SPARKS_FILES]
    for path in paths:
        if paths.count(path) > 1:
            raise ProgramError(f"two sinks write to the directory {path}, one over the other; give each its own")
        other_layout = f"{path.rstrip('/')}/{'batch=*' if len(sinks) == 1 else '_spark_metadata'}"
        if new and _files(spark, path):
            raise ProgramError(
                f"the directory {path} holds the output of another job, and the two could not be told apart there; "
                "give this one a directory of its own, or the checkpoint of the other to go on with it"
            )
        if not new and _files(spark, other_layout) is not None:
            raise ProgramError(
                f"the directory {path} was written by this job with another number of sinks, in another layout, "
                "and Spark would read one of the two only; give the sink another directory"
            )


def _files(spark: SparkSession, path: str) -> list[str] | None:
    """The files in a directory that Spark would read; None if there is no directory."""
    try:
        return spark.read.text(path).inputFiles()
    except AnalysisException:
        return None


class Delivery:
    """Routes the frames of one micro-batch to several sinks.

    Files are written to a directory of each micro-batch, which is written anew when it is run again: exactly once.
    """

    def __init__(self, sinks: tuple[SinkSpec, ...], take: Take) -> None:
        self._on_driver = {s.number: s for s in sinks if isinstance(s.sink, PrintSink | CollectSink)}
        self._as_rows = [s for s in sinks if isinstance(s.sink, DataFrameSink | FormatSink)]
        self._take = take
        for sink in self._as_rows:
            schema_of(sink.type_info, sink.name)  # refuses elements without columns before the job starts
        known = len(self._on_driver) + len(self._as_rows)
        if known < len(sinks):
            strange = [s.sink for s in sinks if s.number not in self._on_driver and s not in self._as_rows]
            raise ProgramError(f"Spark cannot write to {strange!r}; use a sink of eventide.datastream.connectors")

    def __call__(self, frames: DataFrame, batch_id: int) -> None:
        """Called by Spark for every micro-batch; reads the frames once, however many sinks there are."""
        if not self._as_rows:
            self._to_driver(frames)
            return
        frames.persist()
        try:
            frames.count()  # all of it, whatever the sinks read: state is stored only by tasks that ran to their end
            if self._on_driver:
                self._to_driver(frames.where(frames["target"].isin(list(self._on_driver))))
            for sink in self._as_rows:
                _write(typed_rows(frames.where(frames["target"] == sink.number), sink), sink, batch_id)
        finally:
            frames.unpersist()

    def _to_driver(self, frames: DataFrame) -> None:
        received = sorted(
            (frame_of(row) for row in frames.collect() if row.target in self._on_driver),
            key=lambda f: (f.target, f.point, f.edge, f.channel),
        )
        for frame in received:
            sink = self._on_driver[frame.target]
            for value in sink.codec.decode(frame.content).values:
                if isinstance(sink.sink, PrintSink):
                    print(sink.sink.line(value))  # noqa: T201 - its purpose
                else:
                    self._take(value)


def _write(rows: DataFrame, sink: SinkSpec, batch_id: int) -> None:
    description = sink.sink
    if isinstance(description, DataFrameSink):
        description.function(rows, batch_id)
    elif isinstance(description, FormatSink):
        options = dict(description.options)
        path = options.pop("path", None)
        writing = rows.write.format(description.format).options(**options)
        if path is None:
            writing.mode("append").save()
        else:
            writing.mode("overwrite").save(f"{path.rstrip('/')}/batch={batch_id}")
