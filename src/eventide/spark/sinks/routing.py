"""Sinks on Spark: each gets its elements of a micro-batch, and files appear exactly once.

Tables of Delta Lake and Iceberg remember the micro-batches of a job that are in them, and take none twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.readwriter import DataStreamWriter

from eventide.connectors.file_system.sink import used_by_another, used_twice
from eventide.connectors.kafka import KafkaSink
from eventide.connectors.sink import DataFrameSink, FormatSink
from eventide.errors import ProgramError
from eventide.plan.job import SinkSpec, drops_rows
from eventide.runtime.exchange.frames import Signal
from eventide.runtime.pickles import dumps_program, loads_program
from eventide.spark.checkpoint.owner import Ownership
from eventide.spark.connect import over_connect
from eventide.spark.query.frame_rows import OutputOfSink, RowsOfSink, schema_of, typed_rows
from eventide.spark.session.locations import files_at, resolved
from eventide.spark.session.python_files import modules_for_server
from eventide.spark.sinks.files import SPARKS_FILES, DirectoryOfSpark, DirectoryOfTasks, FileDirectory, FilesOfSink
from eventide.spark.sinks.kafka import KafkaDelivery, SinkRun
from eventide.spark.sinks.program_sinks import of_the_program

_CHECKPOINT = "eventide.checkpoint"
_MICRO_BATCH = "eventide.micro-batch"
"""Properties of the snapshot of a micro-batch in an Iceberg table."""


class LakeTable:
    """The table of one sink of a job: each micro-batch with results is one commit to it, which names the job.

    Args:
        sink: the sink, of a format for which `is_table` holds.
        job: the run of the job.
        owner: told by a streaming job, whose next run may begin while this one is at work.
    """

    def __init__(self, sink: FormatSink, job: SinkRun, owner: Ownership | None = None) -> None:
        self._sink = sink
        self._job = job
        self._owner = owner
        self._has_written = False

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Append the rows of a micro-batch, unless the run before has done so and ended before Spark noted it down.

        Raises:
            StateError: if another run of the job has begun since.
        """
        if self._owner is not None:
            self._owner.check()
        _WRITERS[self._sink.format](self, rows, batch_id)
        self._has_written = True

    def _to_delta(self, rows: DataFrame, batch_id: int) -> None:
        """Delta Lake itself passes over a transaction whose number it has seen from an application."""
        # With the path, so that another sink of the job, whose path is spelled in another way, is another application.
        self._append(rows, {"txnAppId": f"{self._job.checkpoint} {path_of(self._sink)}", "txnVersion": str(batch_id)})

    def _to_iceberg(self, rows: DataFrame, batch_id: int) -> None:
        """Iceberg keeps what a snapshot says of itself; only the first micro-batch of a run can be there already."""
        said = {_CHECKPOINT: self._job.checkpoint, _MICRO_BATCH: str(batch_id)}
        if self._has_written or not self._has_snapshot(rows, said):
            self._append(rows, {f"snapshot-property.{name}": value for name, value in said.items()})

    def _has_snapshot(self, rows: DataFrame, said: dict[str, str]) -> bool:
        path = path_of(self._sink)
        snapshots = rows.sparkSession.read.format("iceberg").load(f"{path}{'#' if '/' in path else '.'}snapshots")
        summary = F.col("summary")
        for name, value in said.items():
            snapshots = snapshots.where(summary[name] == value)
        return not snapshots.isEmpty()

    def _append(self, rows: DataFrame, more: dict[str, str]) -> None:
        writer = rows.write.format(self._sink.format).options(**(self._sink.options | more))
        writer.partitionBy(*self._sink.partition_by).mode("append").save()


_WRITERS: dict[str, Callable[[LakeTable, DataFrame, int], None]] = {
    "delta": LakeTable._to_delta,
    "iceberg": LakeTable._to_iceberg,
}


def is_table(sink: object) -> bool:
    """Whether a sink writes to a table that can tell which micro-batches it has."""
    return isinstance(sink, FormatSink) and sink.format in _WRITERS


def path_of(sink: FormatSink) -> str:
    """Where the table is: a path, or the name that a catalog gives it."""
    return sink.options.get("path", "").rstrip("/")


def tables_of(sinks: Sequence[SinkSpec], job: SinkRun, owner: Ownership | None) -> dict[int, LakeTable]:
    """The tables of a job by the numbers of their sinks.

    Raises:
        ProgramError: if two sinks write to one: it would take the rows of one for a repetition of the other's.
    """
    found = {spec.number: spec.sink for spec in sinks if isinstance(spec.sink, FormatSink) and is_table(spec.sink)}
    paths = [path_of(sink) for sink in found.values()]
    for path in paths:
        if paths.count(path) > 1:
            raise ProgramError(f"two sinks write to the table {path!r}; unite their streams, and give them one sink")
    return {number: LakeTable(sink, job, owner) for number, sink in found.items()}


ToProgram = Callable[[DataFrame, int], None]
"""Takes the frames of a micro-batch, of whatever sinks, and its number, on their way to the program."""
Ship = Callable[[SinkSpec], bytes]
"""Makes bytes of a sink for the way to the workers."""


def writer(frames: DataFrame, delivery: Delivery) -> DataStreamWriter:
    """Return the writer of the results of a streaming job.

    A single sink with one of Spark's formats has a query of its own: files appear in a `FileDirectory`, other formats
    are written by Spark, exactly once where Spark's sink is. Otherwise, and for a `LakeTable`, one ``foreachBatch``
    routes each micro-batch.

    Raises:
        ProgramError: if a sink cannot be sent to a server of Spark Connect, where it runs.
    """
    only = sink_of_rows(delivery.sinks)
    if only is not None and isinstance(sink := only.sink, FormatSink):
        directory = delivery.directories.get(only.number)
        if directory is not None:
            rows = directory.rows(frames, only).writeStream.outputMode("append")
            return rows.foreachBatch(directory.write)
        rows = _rows(frames, only).writeStream.outputMode("append")
        return rows.format(sink.format).options(**sink.options).partitionBy(*sink.partition_by)
    deliver = _DeliveryAtServer(delivery, frames.sparkSession) if over_connect() else delivery
    return frames.writeStream.foreachBatch(deliver).outputMode("append")


def write_batch(frames: DataFrame, delivery: Delivery) -> None:
    """Write the results of a batch job."""
    delivery.begin(frames.sparkSession)
    only = sink_of_rows(delivery.sinks)
    if only is None:
        delivery(frames, 0)
    elif (directory := delivery.directories.get(only.number)) is not None:
        directory.write(directory.rows(frames, only), 0)
    else:
        _write(_rows(frames, only), only, 0)


def sink_of_rows(sinks: Sequence[SinkSpec]) -> SinkSpec | None:
    """The only sink of a job, if Spark takes its rows from the plan of the query itself."""
    is_only = len(sinks) == 1 and isinstance(sinks[0].sink, FormatSink) and not is_table(sinks[0].sink)
    return sinks[0] if is_only else None


def _rows(frames: DataFrame, sink: SinkSpec) -> DataFrame:
    """The rows for the only sink; for one that drops all, which no element reaches, the frames as they are."""
    return frames if drops_rows(sink.sink) else typed_rows(frames, sink)


def files_of_tasks(spark: SparkSession, sinks: Sequence[SinkSpec]) -> dict[int, FilesOfSink]:
    """The files that tasks write themselves, by the number of their sink."""
    return {sink.number: files for sink in sinks if (files := FilesOfSink.of(spark, sink)) is not None}


def output_of(sinks: Sequence[SinkSpec], files: Mapping[int, FilesOfSink]) -> OutputOfSink | None:
    """The output of sources in place of frames where all of it goes to the only sink of a job; None for frames."""
    only = sink_of_rows(sinks)
    if only is None or drops_rows(only.sink):
        return None
    return files.get(only.number) or RowsOfSink.of(only)


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
            raise used_twice(path)
        if path not in own and files_at(spark, path):
            raise used_by_another(path)
        if any(files_at(spark, f"{path}/{of_others}") is not None for of_others in ("_spark_metadata", "batch=*")):
            raise ProgramError(
                f"the directory {path} was written by Spark's own file sink, or in directories of micro-batches, and "
                "readers would ignore or misread other files there; give the sink another directory"
            )


class Delivery:
    """Routes the frames of one micro-batch to the sinks of a job.

    Files and tables are written exactly once, empty ones not at all; see `FileDirectory` and `LakeTable`. Kafka has a
    delivery of its own.
    """

    def __init__(
        self,
        sinks: tuple[SinkSpec, ...],
        to_program: ToProgram,
        ship: Ship,
        job: SinkRun,
        files: Mapping[int, FilesOfSink],
        owner: Ownership | None = None,
    ) -> None:
        self.sinks = sinks
        self._counted = 0
        self._job = job
        self._to_program = to_program
        self._of_program = [*of_the_program(sinks)]
        self._as_rows = [s for s in sinks if isinstance(s.sink, DataFrameSink | FormatSink)]
        self.directories: dict[int, FileDirectory] = {
            s.number: DirectoryOfTasks(files[s.number]) if s.number in files else DirectoryOfSpark.of(s.sink)
            for s in sinks
            if isinstance(s.sink, FormatSink) and _is_of_files(s.sink)
        }
        for sink in sinks:
            if (directory := self.directories.get(sink.number)) is not None:
                directory.owner, directory.timed = owner, partial(job.timed, sink)
        self._tables = tables_of(sinks, job, owner)
        self._to_kafka = {s.number: KafkaDelivery(s, ship(s), job) for s in sinks if isinstance(s.sink, KafkaSink)}
        _refuse_used_prefixes(sinks)
        for sink in self._as_rows:
            schema_of(sink)  # refuses elements without columns before the job starts
        known = {*self._of_program, *self._to_kafka, *(s.number for s in self._as_rows)}
        strange = [s.sink for s in sinks if s.number not in known]
        if strange:
            raise ProgramError(f"Spark cannot write to {strange!r}; use a sink of eventide.datastream.connectors")

    def begin(self, spark: SparkSession, job: str | None = None, counted: int = 0, begun: int | None = None) -> None:
        """Prepare the sinks for a run, before it plans a micro-batch.

        Args:
            spark: the session.
            job: the name of a streaming job, which it keeps on a checkpoint of another parallelism.
            counted: how many micro-batches the sinks have had of the checkpoints that this one continues.
            begun: the micro-batch that an earlier run began and did not finish; None if there is none.

        Raises:
            ProgramError: if Arrow does not reach the directory of a file sink.
        """
        self._counted = counted
        for directory in self.directories.values():
            directory.begin(spark, job, counted, begun)

    def __call__(self, frames: DataFrame, batch_id: int) -> None:
        """Called by Spark for every micro-batch; reads the frames once, however many sinks there are."""
        if not self._as_rows and not self._to_kafka:
            self._to_program(frames, batch_id)
            return
        if len(self._to_kafka) == 1 and not self._as_rows and not self._of_program:
            [deliver] = self._to_kafka.values()
            deliver(frames, batch_id)
            return
        frames.persist()
        try:
            with_results = _targets_of_elements(frames)
            if self._of_program:
                self._to_program(frames.where(frames["target"].isin(self._of_program)), batch_id)
            for sink in (*(s for s in self.sinks if s.number in self._to_kafka), *self._as_rows):
                with self._job.timed(sink, batch_id):
                    mine = frames.where(frames["target"] == sink.number)
                    self._deliver(mine, sink, batch_id, has_results=sink.number in with_results)
        finally:
            frames.unpersist()

    def _deliver(self, mine: DataFrame, sink: SinkSpec, batch_id: int, *, has_results: bool) -> None:
        """Write the frames of one sink."""
        directory, table = self.directories.get(sink.number), self._tables.get(sink.number)
        if (to_kafka := self._to_kafka.get(sink.number)) is not None:
            if has_results:
                to_kafka(mine, batch_id)
        elif table is not None:
            if has_results:
                table.write(typed_rows(mine, sink), batch_id + self._counted)
        elif directory is None:
            _write(typed_rows(mine, sink), sink, batch_id + self._counted)
        elif has_results or directory.leftovers:
            directory.write(directory.rows(mine, sink), batch_id)


class _DeliveryAtServer:
    """A delivery on its way to the server of Spark Connect, and there."""

    def __init__(self, delivery: Delivery, spark: SparkSession) -> None:
        what = "a sink, which runs at the server of Spark Connect,"
        self._payload = dumps_program(delivery, what, modules=modules_for_server(spark))
        self._delivery: Delivery | None = None

    def __call__(self, frames: DataFrame, batch_id: int) -> None:
        """Called by Spark for every micro-batch, in a process for this query alone."""
        if self._delivery is None:
            self._delivery = loads_program(self._payload).part
        delivery: Delivery = self._delivery
        delivery(frames, batch_id)


def _refuse_used_prefixes(sinks: Sequence[SinkSpec]) -> None:
    prefixes = [s.sink.transactional_id_prefix for s in sinks if isinstance(s.sink, KafkaSink)]
    for prefix in filter(None, prefixes):
        if prefixes.count(prefix) > 1:
            raise ProgramError(
                f"two sinks have the transactional id prefix {prefix!r}, and each would end the transactions of the "
                "other; give each its own"
            )


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
        writer = rows.write.format(description.format).options(**description.options)
        writer.partitionBy(*description.partition_by).mode("append").save()
