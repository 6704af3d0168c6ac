"""Sinks on Spark: what each micro-batch has for them is routed to them, and files appear exactly once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.readwriter import DataStreamWriter

from eventide.datastream.connectors import CollectSink, DataFrameSink, FormatSink, PrintSink
from eventide.datastream.connectors.kafka import KafkaSink
from eventide.errors import ProgramError
from eventide.plan.job import SinkSpec
from eventide.runtime.exchange.frames import Frame, Signal
from eventide.spark.collected import Stopped
from eventide.spark.files import SPARKS_FILES, FileDirectory
from eventide.spark.frame_rows import frame_of
from eventide.spark.hand_over import HandOver
from eventide.spark.kafka_sink import KafkaDelivery
from eventide.spark.locations import resolved, texts
from eventide.spark.rows import typed_rows
from eventide.spark.sink_runs import SinkRun
from eventide.spark.types import schema_of

Ship = Callable[[SinkSpec], bytes]
"""Makes bytes of a sink for the way to the workers."""


def writer(
    frames: DataFrame, sinks: tuple[SinkSpec, ...], hand_over: HandOver, ship: Ship, job: SinkRun
) -> DataStreamWriter:
    """What writes the results of a streaming job; ``hand_over`` gets what is printed or collected.

    A single sink with a format of Spark's gets its rows from the plan of the query itself: files are written by a
    `FileDirectory`, other formats by Spark, exactly once where Spark's sink is. Otherwise one ``foreachBatch`` routes
    each micro-batch.
    """
    if len(sinks) == 1 and isinstance(sinks[0].sink, FormatSink):
        sink = sinks[0].sink
        rows = typed_rows(frames, sinks[0]).writeStream.outputMode("append")
        if _is_of_files(sink):
            return rows.foreachBatch(_directory(sink).write)
        return rows.format(sink.format).options(**sink.options)
    return frames.writeStream.foreachBatch(Delivery(sinks, hand_over, ship, job)).outputMode("append")


def write_batch(frames: DataFrame, sinks: tuple[SinkSpec, ...], hand_over: HandOver, ship: Ship, job: SinkRun) -> None:
    """Write the results of a batch job."""
    if len(sinks) == 1 and isinstance(sinks[0].sink, FormatSink) and _is_of_files(sinks[0].sink):
        _directory(sinks[0].sink).write(typed_rows(frames, sinks[0]), 0)
    else:
        Delivery(sinks, hand_over, ship, job)(frames, 0)


def _is_of_files(sink: FormatSink) -> bool:
    return sink.format in SPARKS_FILES and "path" in sink.options


def directories(spark: SparkSession, sinks: tuple[SinkSpec, ...]) -> list[str]:
    """Where the file sinks of a job write."""
    of_files = [s.sink for s in sinks if isinstance(s.sink, FormatSink) and _is_of_files(s.sink)]
    return [resolved(spark, sink.options["path"].rstrip("/")) for sink in of_files]


def refuse_used_directories(spark: SparkSession, paths: Sequence[str], own: Collection[str] = ()) -> None:
    """Check that what a job's file sinks write will be read as they write it, beside nothing else.

    Jobs count their micro-batches from 0, so that one would write over those of the job that wrote there before. And
    where Spark's own file sink has written, Spark reads only what is on that sink's list.

    Args:
        spark: the session.
        paths: where they write.
        own: where the job may have written before.

    Raises:
        ProgramError: naming the directory.
    """
    for path in paths:
        if paths.count(path) > 1:
            raise ProgramError(f"two sinks write to the directory {path}, one over the other; give each its own")
        if path not in own and _files(spark, path):
            raise ProgramError(
                f"the directory {path} holds the output of another job, and the two could not be told apart there; "
                "give this one a directory of its own, or the checkpoint of the other to go on with it"
            )
        if any(_files(spark, f"{path}/{of_others}") is not None for of_others in ("_spark_metadata", "batch=*")):
            raise ProgramError(
                f"the directory {path} was written by Spark's own file sink, or in directories of micro-batches, and "
                "readers would not see, or not understand, what is written beside that; give the sink another directory"
            )


def _files(spark: SparkSession, path: str) -> list[str] | None:
    """The files in a directory that Spark would read; None if there is no directory."""
    there = texts(spark, path)
    return None if there is None else there.inputFiles()


class Delivery:
    """Routes the frames of one micro-batch to the sinks of a job.

    Files are written exactly once, empty ones not at all; see `FileDirectory`. Kafka has a delivery of its own.
    """

    def __init__(self, sinks: tuple[SinkSpec, ...], hand_over: HandOver, ship: Ship, job: SinkRun) -> None:
        self._on_driver = {s.number: (s, s.sink) for s in sinks if isinstance(s.sink, PrintSink | CollectSink)}
        self._as_rows = [s for s in sinks if isinstance(s.sink, DataFrameSink | FormatSink)]
        self._directories = {
            s.number: _directory(s.sink) for s in sinks if isinstance(s.sink, FormatSink) and _is_of_files(s.sink)
        }
        self._to_kafka = {s.number: KafkaDelivery(s, ship(s), job) for s in sinks if isinstance(s.sink, KafkaSink)}
        self._hand_over = hand_over
        _refuse_used_prefixes(sinks)
        for sink in self._as_rows:
            schema_of(sink.type_info, sink.name)  # refuses elements without columns before the job starts
        known = {*self._on_driver, *self._to_kafka, *(s.number for s in self._as_rows)}
        strange = [s.sink for s in sinks if s.number not in known]
        if strange:
            raise ProgramError(f"Spark cannot write to {strange!r}; use a sink of eventide.datastream.connectors")

    def __call__(self, frames: DataFrame, batch_id: int) -> None:
        """Called by Spark for every micro-batch; reads the frames once, however many sinks there are."""
        if not self._as_rows and not self._to_kafka:
            self._to_driver(frames, batch_id)
            return
        if len(self._to_kafka) == 1 and not self._as_rows and not self._on_driver:
            [deliver] = self._to_kafka.values()
            deliver(frames, batch_id)
            return
        frames.persist()
        try:
            with_results = _targets_of_elements(frames)
            if self._on_driver:
                self._to_driver(frames.where(frames["target"].isin(list(self._on_driver))), batch_id)
            for number, deliver in self._to_kafka.items():
                if number in with_results:
                    deliver(frames.where(frames["target"] == number), batch_id)
            for sink in self._as_rows:
                rows = typed_rows(frames.where(frames["target"] == sink.number), sink)
                if sink.number not in self._directories:
                    _write(rows, sink, batch_id)
                elif sink.number in with_results or self._directories[sink.number].may_hold_leftovers:
                    self._directories[sink.number].write(rows, batch_id)
        finally:
            frames.unpersist()

    def _to_driver(self, frames: DataFrame, batch_id: int) -> None:
        received = [frame_of(row) for row in frames.collect() if row.target in self._on_driver]
        try:
            self._hand_over(batch_id, self._values(received))
        except Stopped:
            # Whatever is asked of Spark in a query that has been stopped makes it end, without a word and a commit.
            frames.sparkSession.range(1).collect()
            raise

    def _values(self, received: list[Frame]) -> Iterator[tuple[PrintSink | CollectSink, Any]]:
        """The elements of some frames, each with its sink, in one order."""
        for (target, *_), of_channel in groupby(sorted(received, key=_channel), key=_channel):
            spec, sink = self._on_driver[target]
            decoded = [spec.codec.decode(frame.content) for frame in of_channel]
            for elements in sorted(decoded, key=lambda elements: elements.first):
                yield from ((sink, value) for value in elements.values)


def _refuse_used_prefixes(sinks: Sequence[SinkSpec]) -> None:
    prefixes = [s.sink.transactional_id_prefix for s in sinks if isinstance(s.sink, KafkaSink)]
    for prefix in filter(None, prefixes):
        if prefixes.count(prefix) > 1:
            raise ProgramError(
                f"two sinks have the transactional id prefix {prefix!r}, and each would end the transactions of the "
                "other; give each its own"
            )


def _channel(frame: Frame) -> tuple[int, int, int, str, int]:
    """What is in order by the numbers of its elements, in whatever order its frames came."""
    return frame.target, frame.point, frame.edge, frame.channel, frame.task


def _directory(sink: FormatSink) -> FileDirectory:
    options = {name: value for name, value in sink.options.items() if name != "path"}
    return FileDirectory(sink.options["path"], sink.format, options)


def _targets_of_elements(frames: DataFrame) -> set[int]:
    """The sinks for which there is anything.

    It reads all frames, whatever the sinks read: state is stored only by tasks that ran to their end.
    """
    kinds = frames.select("target", F.expr("substring(frame, 1, 1)").alias("signal")).collect()
    return {row.target for row in kinds if row.signal[0] == Signal.ELEMENTS}


def _write(rows: DataFrame, sink: SinkSpec, batch_id: int) -> None:
    description = sink.sink
    if isinstance(description, DataFrameSink):
        description.function(rows, batch_id)
    elif isinstance(description, FormatSink):
        rows.write.format(description.format).options(**description.options).mode("append").save()
