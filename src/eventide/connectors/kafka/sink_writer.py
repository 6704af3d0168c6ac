"""Writing a sink's records: producers, transactions of whole micro-batches, and the marks that they leave."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from threading import Thread
from typing import TYPE_CHECKING, Any
from zlib import crc32

from eventide.connectors.kafka._properties import ConnectorOptions, librdkafka_properties
from eventide.connectors.kafka.library import Complaints, Meaning, Patience, client, library, meaning_of, refused, said
from eventide.connectors.kafka.sink import KafkaSink
from eventide.errors import DataError, EventideError, StateError

if TYPE_CHECKING:
    import pyarrow as pa
    from confluent_kafka import KafkaError, Message, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient

_AS_JAVA = {
    # The producer of Java has these by itself: a key has the partition that it has for all other producers, and a
    # record that is sent once more comes neither twice nor out of order.
    "partitioner": "murmur2_random",
    "enable.idempotence": "true",
}
_OURS: dict[str, Any] = {
    "queue.buffering.max.messages": "1000000",
    "delivery.report.only.error": True,
    "log_level": 0,  # errors are reported by the code that waits
}
_POLL_EVERY = 1_000
_REST_S = 0.01
_ANY_PARTITION = -1
_NOW = 0

_TRANSACTIONAL = {
    "transaction.timeout.ms": "300000",
    "retry.backoff.ms": "10",  # the brokers may still be at the end of the transaction before
    "metadata.recovery.strategy": "none",  # else brokers that are all away for a moment are forgotten; see _in_time
}
_TRIES = 3
_PAUSE_S = 0.1
_GRACE_S = 5.0
_FENCED = "_FENCED PRODUCER_FENCED INVALID_PRODUCER_EPOCH"

_TEMPORARY = "temporary "
_PLANNED = " planned at "
_DIGITS = re.compile("([0-9]{13})?([0-9]{10})?")


def connection(sink: KafkaSink) -> dict[str, str]:
    """The properties of any client of a sink's brokers."""
    return {**librdkafka_properties(sink.properties), "bootstrap.servers": sink.bootstrap_servers}


class SinkProducer:
    """A producer of one sink, and the errors reported to it.

    Args:
        sink: the sink.
        properties: settings for this use, which the user's override.
    """

    def __init__(self, sink: KafkaSink, properties: dict[str, str] | None = None) -> None:
        self.servers = sink.bootstrap_servers
        self.patience_s = ConnectorOptions.of(sink.properties).patience_ms / 1000
        self._topic = sink.record_serializer.topic if isinstance(sink.record_serializer.topic, str) else None
        self._complaints = Complaints()
        self._failed: tuple[KafkaError, str] | None = None
        hears = {"error_cb": self._complaints.hear, "on_delivery": self._heard}
        settings = {**_AS_JAVA, **_OURS, **(properties or {}), **connection(sink), **hears}
        self.client: Producer = client(library().Producer, settings)

    def patience(self) -> Patience:
        """The patience for an answer."""
        return Patience(self.servers, self.patience_s, self._complaints)

    def send(self, records: pa.Table | pa.RecordBatch) -> None:
        """Pass records to the producer, in their order, which sends them.

        Raises:
            EventideError: if one cannot be sent, or Kafka refuses the client.
        """
        import pyarrow as pa

        table = records if isinstance(records, pa.Table) else pa.Table.from_batches([records])
        for batch in table.to_batches(max_chunksize=_POLL_EVERY):
            self.client.poll(0)
            self.check()
            self._hand_over(_arguments(batch, self._topic))

    def _hand_over(self, records: Iterator[tuple[Any, ...]]) -> None:
        produce = self.client.produce
        for record in records:
            while True:
                try:
                    produce(*record)
                    break
                except BufferError:  # its buffer is full
                    self.client.poll(_REST_S)
                    self.check()
                except library().KafkaException as error:
                    raise self.refusal(error.args[0], record[0]) from error

    def arrive(self) -> None:
        """Wait until Kafka has all records that were sent.

        Raises:
            EventideError: if it does not accept a record, or refuses the client.
        """
        while self.client.flush(1):
            self.check()
        self.check()

    def check(self) -> None:
        """Check that all sent records have arrived or are on their way.

        Raises:
            EventideError: if Kafka does not take a record, or refuses the client.
        """
        failure = self.failure()
        if failure is not None:
            raise failure
        self._complaints.check(self.servers)

    def failure(self) -> EventideError | None:
        """Return the error for the first record that Kafka did not accept, if there is one."""
        return None if self._failed is None else self.refusal(*self._failed)

    @property
    def may_try_again(self) -> bool:
        """Whether no record was refused because of its content."""
        return self._failed is None or meaning_of(self._failed[0]) is Meaning.WAIT

    def forget(self) -> None:
        """Ignore the reports on records that are given up."""
        self._failed = None

    def partitions(self, topic: str) -> Sequence[int]:
        """The partitions of a topic, in order.

        Raises:
            EventideError: if there is no such topic, or no answer.
        """

        def ask() -> Sequence[int]:
            found = self.client.list_topics(topic, timeout=1).topics[topic]
            if found.error is None and found.partitions:
                return sorted(found.partitions)
            errors = library().KafkaError
            raise library().KafkaException(found.error or errors(errors.LEADER_NOT_AVAILABLE))

        return self.patience().answer_to(ask, f"the partitions of the topic {topic}", self.rest)

    def rest(self, _: KafkaError) -> None:
        """Process reported errors for a moment, between two attempts."""
        self.client.poll(_PAUSE_S)

    def close(self) -> None:
        """Drop unsent records, and all connections."""
        self.client.purge()
        self.client.flush(0)
        del self.client

    def _heard(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failed is None and not _is_given_up(error):
            self._failed = error, str(message.topic())

    def refusal(self, error: KafkaError, topic: str) -> EventideError:
        """Return the error for a topic to which no records can be written."""
        meaning = meaning_of(error)
        if meaning is Meaning.REFUSED:
            return refused(self.servers, said(error))
        if meaning is Meaning.ABSENT:
            return DataError(
                f"the topic {topic}, or a partition of it, does not exist at {self.servers}: {said(error)}. Create it, "
                "with the number of partitions it needs, before the job writes to it"
            )
        return DataError(f"Kafka at {self.servers} rejected a record for {topic}: {said(error)}")


class Transactions:
    """Writes tables of records, each with a mark, in one transaction; one at a time has a sink's transactional id.

    Opening it aborts the open transactions of other producers with that id, which can then no longer write.

    Args:
        sink: the sink, which has a prefix of transactional ids.
    """

    def __init__(self, sink: KafkaSink) -> None:
        self._sink = sink
        self.group = str(sink.transactional_id_prefix)
        self._last: tuple[Mark, Sequence[str]] | None = None
        self._producer = self._new_producer()
        quiet = {**connection(sink), "group.id": self.group, "enable.auto.commit": "false", "log_level": 0}
        self._membership = client(library().Consumer, quiet)
        self._initialise()

    def marks(self) -> list[Mark]:
        """The marks of this group's transactions when this one was opened, one of each topic.

        A mark of its own may take a moment to be seen.

        Raises:
            EventideError: if Kafka does not say, or refuses the client.
            StateError: if a mark has changed.
        """
        complaints = Complaints()
        settings = {**connection(self._sink), "log_level": 0, "error_cb": complaints.hear}
        admin: AdminClient = client(library("admin").AdminClient, settings)
        asked = library().ConsumerGroupTopicPartitions(self.group)

        def ask() -> list[Mark]:
            answer = admin.list_consumer_group_offsets([asked], require_stable=True, request_timeout=5)
            found = answer[self.group].result().topic_partitions
            for unsettled in (one.error for one in found if one.error):
                raise library().KafkaException(unsettled)
            return [Mark.of(self.group, one.offset, one.metadata or "") for one in found if one.offset >= 0]

        patience = Patience(self._producer.servers, self._producer.patience_s, complaints)
        return patience.answer_to(ask, f"the offsets of the group {self.group}", lambda _: admin.poll(_PAUSE_S))

    def write(self, records: Sequence[pa.Table], mark: Mark, topics: Sequence[str]) -> None:
        """Write records and a mark, all of them or none.

        Args:
            records: the records, in tables.
            mark: the progress of the sink with them.
            topics: the topics with which the mark is kept: all topics of the records, because Kafka drops a mark with
                its topic; so the mark exists as long as any record.

        Raises:
            StateError: if another run of the job has begun to write.
            EventideError: if Kafka does not accept a record, or does not answer.
        """
        for tried in range(1, _TRIES + 1):
            self._producer.forget()
            try:
                self._write(records, mark, topics)
                self._last = mark, topics
                return
            except library().KafkaException as error:
                failure = self._failure(error.args[0], topics)
                passes = self._producer.may_try_again and error.args[0].txn_requires_abort()
                self._abort()
                if tried == _TRIES or not passes or isinstance(failure, StateError):
                    raise failure from error
            except TimeoutError as error:
                if tried == _TRIES:
                    raise DataError(
                        f"a transaction of {self.group!r} did not end at {self._producer.servers} in {_TRIES} attempts"
                    ) from error
                self._begin_anew(mark, is_empty=not records)
            except EventideError:
                self._abort()
                raise

    def _begin_anew(self, mark: Mark, *, is_empty: bool) -> None:
        """Continue with another producer, unless another run has written the records meanwhile.

        That run can no longer write then, so the records that it has left do not change.

        Raises:
            StateError: if it has.
        """
        self._producer = self._new_producer()
        self._initialise()
        own = [found.next_batch for found in self.marks() if found.checkpoint == mark.checkpoint]
        if max(own, default=-1) >= mark.next_batch + is_empty:
            raise self._another_run()

    def _write(self, records: Sequence[pa.Table], mark: Mark, topics: Sequence[str]) -> None:
        producer = self._producer.client
        producer.begin_transaction()
        self._reached("begun")
        for table in records:
            self._producer.send(table)
        self._reached("sent")
        offsets, membership = self._offsets(mark, topics), self._membership.consumer_group_metadata()
        send = partial(self._insist, producer.send_offsets_to_transaction, offsets, membership)
        self._in_time(send, self._producer.patience_s + _GRACE_S)
        self._reached("marked")
        self._insist(producer.commit_transaction)
        self._reached("committed")

    def _offsets(self, mark: Mark, topics: Sequence[str]) -> list[TopicPartition]:
        place = library().TopicPartition
        return [place(topic, 0, mark.next_batch, metadata=mark.metadata) for topic in topics]

    def _reached(self, place: str) -> None:
        """Nothing: tests end the process at a place of a transaction."""

    def _insist(self, call: Callable[..., Any], *arguments: object) -> None:
        """Call a function that may be repeated if there was no answer."""
        patience = self._producer.patience()
        while True:
            try:
                call(*arguments, 5)
                return
            except library().KafkaException as error:
                if not error.args[0].retriable():
                    raise
                patience.check(f"the end of a transaction of {self.group!r}", said(error))

    def _in_time(self, work: Callable[[], None], seconds: float) -> None:
        """Call a function that may never return: the library searches a lost coordinator without a time limit.

        This is its issue 5511. The producer must then be given up; the next one aborts its transaction.

        Raises:
            TimeoutError: if it does not come back in `seconds` seconds.
        """
        outcome: Future[None] = Future()

        def run() -> None:
            try:
                work()
                outcome.set_result(None)
            except BaseException as error:
                outcome.set_exception(error)

        Thread(target=run, name=f"offsets of {self.group}", daemon=True).start()
        outcome.result(seconds)

    def _new_producer(self) -> SinkProducer:
        return SinkProducer(self._sink, {"transactional.id": self.group, **_TRANSACTIONAL})

    def _initialise(self) -> None:
        producer = self._producer
        what = f"the transactional id {self.group!r}"
        producer.patience().answer_to(lambda: producer.client.init_transactions(1), what, producer.rest)

    def _failure(self, error: KafkaError, topics: Sequence[str]) -> EventideError:
        """Return the error for a transaction that failed."""
        codes = library().KafkaError
        if error.code() in {getattr(codes, name) for name in _FENCED.split() if hasattr(codes, name)}:
            return self._another_run()
        self._producer.client.poll(0)  # says which records were not taken
        return self._producer.failure() or self._producer.refusal(error, ", ".join(topics))

    def _another_run(self) -> StateError:
        return StateError(
            f"another run of this job, or another job, uses the transactional id prefix {self.group!r}, and this one "
            "cannot write any more; let only one run at a time use a checkpoint, and give each sink a prefix of its own"
        )

    def _abort(self) -> None:
        try:
            self._producer.client.abort_transaction(10)
            self._producer.client.flush(10)  # says of each record that it was given up
        except library().KafkaException:
            return  # the next producer with this id ends it, or its time-out

    def _wait_until_seen(self, mark: Mark, topics: Sequence[str]) -> None:
        """Wait for the end of the last transaction.

        Kafka reports a transaction as committed before it tells the partitions, and readers do not see it in between:
        for some milliseconds, or a tenth of a second. A further transaction cannot send anything before that is over.
        So one is started, sends the present mark again, and is aborted.
        """
        producer, membership = self._producer.client, self._membership.consumer_group_metadata()
        send = partial(producer.send_offsets_to_transaction, self._offsets(mark, topics), membership, _GRACE_S)
        try:
            producer.begin_transaction()
            self._in_time(send, _GRACE_S)
            producer.abort_transaction(_GRACE_S)
        except (library().KafkaException, TimeoutError):
            return  # the broker is away, or another run has come

    def close(self) -> None:
        """Close the connection, once readers see the written records; no record is lost if they cannot yet."""
        if self._last is not None:
            self._wait_until_seen(*self._last)
        self._membership.close()
        self._producer.close()


@dataclass(frozen=True, slots=True)
class Mark:
    """Mark of a transaction: the first unwritten micro-batch, the checkpoint, and when the previous one was planned.

    It is an offset of the sink's consumer group. Its metadata are the checkpoint's id, and when the last written
    micro-batch was planned, in milliseconds, which a repetition does not change; None if that is not known. Kafka does
    not see that a byte of an offset has changed on its disk when it loads it, so a checksum of all is the last ten
    digits of the time: version 0.2.0, which writes none, reads a later time, and 0.1.0 wrote no time either.
    """

    next_batch: int
    checkpoint: str
    planned_ms: int | None = None

    @property
    def metadata(self) -> str:
        """The id of the checkpoint, the time and the checksum, in their form in Kafka."""
        planned = "" if self.planned_ms is None else f"{self.planned_ms:013}"
        checksum = crc32(f"{self.next_batch} {self.checkpoint} {planned}".encode())
        return f"{self.checkpoint}{_PLANNED}{planned}{checksum:010}"

    @staticmethod
    def of(group: str, offset: int, metadata: str) -> Mark:
        """The mark of a group, from an offset and its metadata.

        Raises:
            StateError: if they are not as they were written.

        >>> Mark.of("sink", 8, Mark(8, "mine", 1_000).metadata)
        Mark(next_batch=8, checkpoint='mine', planned_ms=1000)
        """
        checkpoint, is_said, said = metadata.partition(_PLANNED)
        digits = _DIGITS.fullmatch(said)
        planned, checksum = digits.groups() if digits else (None, None)
        mark = Mark(offset, checkpoint, int(planned) if planned else None)
        is_whole = mark.metadata == metadata if checksum else bool(planned) or not is_said
        if not is_whole:
            raise StateError(
                f"the consumer group {group!r} has the offset {offset} with the metadata {metadata!r}, and they are "
                "not as they were written: it is not known which micro-batches are in Kafka. Check the topic, and "
                "start with a new transactional id prefix; a micro-batch that is repeated is then written again"
            )
        return mark


@dataclass(frozen=True, slots=True)
class JobRun:
    """Run of a job, as a sink sees it.

    Args:
        checkpoint: the id of the checkpoint.
        repeated: the number of the micro-batch that the previous run did not finish; None if there is none.
        has_begun: whether a run on this checkpoint has left a mark before.
        savepoint: the mark that the checkpoint of the savepoint should have left, if the job began with one.
        planned_ms: when the first micro-batch of the run was planned; None if that is not known.
    """

    checkpoint: str
    repeated: int | None = None
    has_begun: bool = False
    savepoint: Mark | None = None
    planned_ms: int | None = None

    @property
    def is_temporary(self) -> bool:
        """Whether no run will go on with the checkpoint."""
        return self.checkpoint.startswith(_TEMPORARY)


def temporary(name: str) -> str:
    """The id of a checkpoint that no run continues from, so that its marks do not affect other jobs."""
    return f"{_TEMPORARY}{name}"


def first_batch_to_write(group: str, found: Sequence[Mark], run: JobRun, batch: int) -> int:
    """The number of the first micro-batch whose records are not in Kafka, seen from the first one of a run.

    Args:
        group: the sink's group, for messages.
        found: the marks that are in it.
        run: the run.
        batch: the number of its first micro-batch.

    Raises:
        StateError: if that cannot be known, or another job has the group.

    >>> first_batch_to_write("sink", [Mark(8, "mine")], JobRun("mine", repeated=7, has_begun=True), 7)
    8
    """
    own = [mark for mark in found if mark.checkpoint == run.checkpoint]
    others = sorted({m.checkpoint for m in found} - {run.checkpoint})
    if not own:
        before = run.savepoint
        kept = [one for one in others if not one.startswith(_TEMPORARY) and not (before and one == before.checkpoint)]
        if kept and not run.is_temporary:
            raise StateError(
                f"the transactional id prefix {group!r} belongs to a job with another checkpoint ({kept[0]}), and this "
                f"one is {run.checkpoint}: give each sink a prefix of its own. If that job is given up, choose a new "
                f"prefix, or delete the consumer group {group}"
            )
        further = [m.next_batch for m in found if before and m.checkpoint == before.checkpoint]
        if before is not None and max(further, default=0) > before.next_batch:
            raise StateError(
                f"the consumer group {group!r} says that the previous job has written all micro-batches before "
                f"{max(further)}, but the savepoint covers the micro-batches before {before.next_batch}: that job has "
                "continued since, and what it wrote would be written again. Take a new savepoint, or start with a new "
                "prefix"
            )
        if run.has_begun and run.repeated == batch:
            raise StateError(
                f"micro-batch {batch} is repeated, and Kafka no longer knows whether its records are there: the offset "
                f"of the consumer group {group} has expired (offsets.retention.minutes, seven days by default), or its "
                "topic or the group was deleted. Check the topic; to write the records, start with a new prefix"
            )
        return batch
    last = max(own, key=lambda mark: mark.next_batch)
    following, is_same = last.next_batch, run.repeated == batch
    if last.planned_ms is not None and run.planned_ms is not None:
        is_same = last.planned_ms == run.planned_ms
    if following > batch + is_same:
        raise StateError(
            f"micro-batch {batch} is next in the checkpoint, but the consumer group {group} says that all "
            f"micro-batches before {following} have been written: this checkpoint is older than that of the last run. "
            "Start with that newer one, or with a new prefix; records written since this checkpoint are "
            "then written again"
        )
    return following


def _is_given_up(error: KafkaError) -> bool:
    """Whether a record was given up because of another one."""
    return error.code() in (library().KafkaError._PURGE_QUEUE, library().KafkaError._PURGE_INFLIGHT)


def _arguments(records: pa.RecordBatch, topic: str | None) -> Iterator[tuple[Any, ...]]:
    """Give the arguments of ``produce`` for each record, by position, as names would cost half as much again.

    These are topic, value, key, partition, two callbacks, timestamp and headers.
    """
    import pyarrow.compute as pc

    columns = dict(zip(records.schema.names, records.columns, strict=True))
    topics = columns["topic"].to_pylist() if "topic" in columns else repeat(topic)
    keys = columns["key"].to_pylist() if "key" in columns else repeat(None)
    partitions = columns["partition"].to_pylist() if "partition" in columns else repeat(_ANY_PARTITION)
    timestamps = pc.fill_null(columns["timestamp"], _NOW).to_pylist()
    headers = map(_pairs, columns["headers"].to_pylist()) if "headers" in columns else repeat(None)
    none = repeat(None)
    return zip(topics, columns["value"].to_pylist(), keys, partitions, none, none, timestamps, headers, strict=False)


def _pairs(headers: list[dict[str, Any]] | None) -> list[tuple[str, bytes | None]]:
    return [(one["name"], one["value"]) for one in headers or ()]
