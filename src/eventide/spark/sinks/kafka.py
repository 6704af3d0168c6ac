"""Kafka as a sink on Spark: records are made in the tasks, and sent there, or by the driver in one transaction.

``SinkRun`` is the run of the job as its sinks see it, beside those before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from eventide.connectors.kafka.library import library
from eventide.connectors.kafka.sink import KafkaSink, RecordEncoder
from eventide.connectors.kafka.sink_writer import JobRun, Mark, SinkProducer, Transactions, first_batch_to_write
from eventide.errors import ProgramError
from eventide.plan.job import SinkSpec
from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.exchange.frames import Frame
from eventide.runtime.invoke import calling
from eventide.savepoint import Outline
from eventide.spark.checkpoint.files import KAFKA_PLACE, CheckpointFiles
from eventide.spark.checkpoint.records import append_record, records_in
from eventide.spark.query.frame_rows import in_channels
from eventide.spark.query.worker import opened_sink, settled

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_SENT = "records BIGINT"
_ENCODED = "records BINARY"  # many in each, which Spark would otherwise look at one by one, twice
_MOST_PRODUCERS = 4
_TIMED_BATCHES = 1_000
"""Number of micro-batches whose sinks' times are kept until they are asked for."""


class KafkaDelivery:
    """Writes what each micro-batch has for one sink.

    Args:
        spec: the sink.
        payload: the sink, as it travels to the workers.
        job: the run of the job, which knows its checkpoint when the first micro-batch comes.

    Raises:
        ProgramError: if the client library is not installed.
    """

    def __init__(self, spec: SinkSpec, payload: bytes, job: SinkRun) -> None:
        library()
        self._spec = spec
        self._sink: KafkaSink = spec.sink  # type: ignore[assignment]
        self._payload = payload
        self._job = job
        self._transactions: Transactions | None = None
        self._next_batch = 0

    def __call__(self, frames: DataFrame, batch_id: int) -> None:
        """Write the elements of this sink among some frames; all frames are read, whatever is there of them."""
        if not self._sink.is_exactly_once:
            frames.mapInArrow(_sending(self._payload), _SENT).toArrow()
            return
        encoded = frames.mapInArrow(_encoding(self._payload), _ENCODED).toArrow()
        records = [decode_table(table.as_buffer()) for table in encoded.column("records")]
        during = f"when micro-batch {batch_id} was written to Kafka"
        with calling(self._spec.name, during=during), self._job.timed(self._spec, batch_id):
            self._commit(frames.sparkSession, records, batch_id)

    def _commit(self, spark: SparkSession, records: Sequence[pa.Table], batch_id: int) -> None:
        """Write a micro-batch in a transaction, unless it is there: the run before may have ended after it."""
        transactions = self._transactions or self._open(batch_id)
        if batch_id < self._next_batch or not records:
            return
        topics, checkpoint = self._topics_of(records), self._job.checkpoint
        if not self._job.has_begun(transactions.group):
            # A run that finds no mark in Kafka then knows that it has expired, and not that nothing was written.
            transactions.write([], Mark(batch_id, checkpoint), topics)
            self._job.begin(spark, transactions.group)
        transactions.write(records, Mark(batch_id + 1, checkpoint, self._job.planned_ms(batch_id)), topics)
        self._next_batch = batch_id + 1

    def _open(self, batch_id: int) -> Transactions:
        transactions = Transactions(self._sink)
        self._job.at_end(transactions.close)
        run = self._job.run_of(transactions.group, batch_id)
        self._next_batch = first_batch_to_write(transactions.group, transactions.marks(), run, batch_id)
        self._transactions = transactions
        return transactions

    def _topics_of(self, records: Sequence[pa.Table]) -> list[str]:
        topic = self._sink.record_serializer.topic
        if isinstance(topic, str):
            return [topic]
        return sorted({name for table in records for name in table.column("topic").unique().to_pylist()})


def _encoding(payload: bytes) -> Task:
    """A task that gives the records of a sink, as tables in Arrow's form of bytes."""

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for records in records_of(opened_sink(payload), batches, lambda: _producers.of(payload)):
            if records.num_rows:
                table = encode_table(pa.Table.from_batches([records]))
                yield pa.record_batch({"records": pa.array([table], pa.binary())})

    return lambda batches: settled(encode(batches))


def _sending(payload: bytes) -> Task:
    """A task that sends the records of a sink, and ends when Kafka has them."""

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spec = opened_sink(payload)
        sent = 0
        for records in records_of(spec, batches, lambda: _producers.of(payload)):
            with _producers.using(payload, spec.name) as producer:
                producer.send(records)
            sent += records.num_rows
        if sent:
            with _producers.using(payload, spec.name) as producer:
                producer.arrive()
        yield pa.record_batch({"records": pa.array([sent], pa.int64())})

    return lambda batches: settled(send(batches))


class _Producers(dict[bytes, SinkProducer]):
    """The producers of this worker, by the sinks that they are of; those used last at the end."""

    def of(self, payload: bytes) -> SinkProducer:
        """The producer of a sink."""
        sink: Any = opened_sink(payload).sink
        producer = self.pop(payload, None) or SinkProducer(sink)
        while len(self) >= _MOST_PRODUCERS:
            del self[next(iter(self))]
        self[payload] = producer
        return producer

    @contextmanager
    def using(self, payload: bytes, name: str) -> Iterator[SinkProducer]:
        """The producer of a sink; after an error it is not used again."""
        try:
            with calling(name, during="when its records were sent to Kafka"):
                yield self.of(payload)
        except BaseException:
            self.pop(payload, None)
            raise


_producers = _Producers()


def records_of(
    spec: SinkSpec, batches: Iterable[pa.RecordBatch], producer: Callable[[], SinkProducer]
) -> Iterator[pa.RecordBatch]:
    """The records of one sink, from the frames of a task, of whatever sinks: those of a channel in their order.

    The ``producer`` knows the partitions of topics, for a partitioner.

    Raises:
        UserFunctionError: if a function of the sink's raised, naming the element.
        DataError: if an element cannot be a record.
    """
    frames = (
        Frame.from_bytes(target, 0, data.as_py())
        for batch in batches
        for target, data in zip(batch.column("target").to_pylist(), batch.column("frame"), strict=True)
        if target == spec.number
    )
    sink: Any = spec.sink
    encoder = RecordEncoder(sink.record_serializer, lambda topic: producer().partitions(topic))
    for _, elements in in_channels(frames, {spec.number: spec}):
        with calling(spec.name, during="when its elements were made records of Kafka"):
            values, timestamps = elements.values, elements.timestamps
            if (columns := elements.columns) is not None:
                values, timestamps = columns.values, columns.timestamps_or_nulls()
            yield encoder.encode(values, timestamps, spec.type_info)


class SinkRun:
    """A run of a job, as its sinks see it: made before it starts, told of its checkpoint when that is known.

    It goes to where micro-batches are delivered, which over Spark Connect is another process; so it keeps no session.
    """

    def __init__(self) -> None:
        self._closing = ExitStack()
        self._location: str | None = None
        self._repeated: int | None = None
        self._begun: set[str] = set()
        self._savepoint: Mark | None = None
        self._took: dict[int, dict[int, tuple[str, int]]] = {}
        """For each of the last micro-batches, the name of each sink with the time that it took, by its number."""
        self.checkpoint = ""

    def starts(
        self,
        spark: SparkSession,
        checkpoint: str,
        location: str | None = None,
        repeated: int | None = None,
        savepoint: Outline | None = None,
    ) -> None:
        """Say where the run starts from.

        Args:
            spark: the session.
            checkpoint: the id of the checkpoint.
            location: where it is; None if no run will go on with it.
            repeated: the number of the micro-batch that the run before began and did not finish.
            savepoint: the savepoint that the job began with.
        """
        if savepoint is not None and savepoint.header.batch is not None and savepoint.header.checkpoint_id is not None:
            self._savepoint = Mark(savepoint.header.batch + 1, savepoint.header.checkpoint_id)
        self.checkpoint, self._location, self._repeated = checkpoint, location, repeated
        begun = [] if location is None else records_in(spark, location, KAFKA_PLACE)
        self._begun = {record["group"] for record in begun}

    def run_of(self, group: str, batch_id: int) -> JobRun:
        """The run, as the sink with a group sees it in its first micro-batch."""
        return JobRun(self.checkpoint, self._repeated, group in self._begun, self._savepoint, self.planned_ms(batch_id))

    def planned_ms(self, batch_id: int) -> int | None:
        """When a micro-batch was planned, in milliseconds since the epoch; None if only Spark reaches its plan."""
        if self._location is None:
            return None
        try:
            return CheckpointFiles(self._location).planned_at_ms(batch_id)
        except ProgramError:
            return None

    def has_begun(self, group: str) -> bool:
        """Whether the checkpoint knows that a group's sink has left a mark in Kafka; true if no later run will ask."""
        return self._location is None or group in self._begun

    def begin(self, spark: SparkSession, group: str) -> None:
        """Write into the checkpoint, by a session, that the sink with a group has left a mark in Kafka."""
        if self._location is not None:
            append_record(spark, self._location, KAFKA_PLACE, {"group": group})
        self._begun.add(group)

    @contextmanager
    def timed(self, sink: SinkSpec, batch_id: int) -> Iterator[None]:
        """Measure how long a sink takes for a micro-batch; of two measurements, the one that ends later counts."""
        began = time.monotonic()
        yield
        took_ms = round(1_000 * (time.monotonic() - began))
        self._took.setdefault(batch_id, {})[sink.number] = sink.name, took_ms
        self._took.pop(batch_id - _TIMED_BATCHES, None)

    def took_ms(self, batch_id: int) -> dict[str, int]:
        """The time that each sink took for a micro-batch, in milliseconds, by its name; empty if it is not known."""
        total: dict[str, int] = {}
        for name, ms in self._took.get(batch_id, {}).values():
            total[name] = total.get(name, 0) + ms
        return total

    def at_end(self, close: Callable[[], object]) -> None:
        """Call a function when the run is over."""
        self._closing.callback(close)

    def close(self) -> None:
        """Say that the run is over."""
        self._closing.close()
