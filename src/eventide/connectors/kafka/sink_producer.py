"""Producers for the sink: made, fed with tables of records, and asked whether all has arrived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from eventide.connectors.kafka._properties import ConnectorOptions, librdkafka_properties
from eventide.connectors.kafka.library import Complaints, Meaning, Patience, client, library, meaning_of, refused, said
from eventide.connectors.kafka.sink import KafkaSink
from eventide.errors import DataError, EventideError

if TYPE_CHECKING:
    import pyarrow as pa

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


def connection(sink: KafkaSink) -> dict[str, str]:
    """The properties of any client of a sink's brokers."""
    return {**librdkafka_properties(sink.properties), "bootstrap.servers": sink.bootstrap_servers}


class SinkProducer:
    """A producer of one sink, and what it has heard.

    Args:
        sink: the sink.
        properties: what this use of it needs, before what the user has set.
    """

    def __init__(self, sink: KafkaSink, properties: dict[str, str] | None = None) -> None:
        self.servers = sink.bootstrap_servers
        self.patience_s = ConnectorOptions.of(sink.properties).patience_ms / 1000
        self._topic = sink.record_serializer.topic if isinstance(sink.record_serializer.topic, str) else None
        self._complaints = Complaints()
        self._failed: tuple[Any, str] | None = None
        hears = {"error_cb": self._complaints.hear, "on_delivery": self._heard}
        settings = {**_AS_JAVA, **_OURS, **(properties or {}), **connection(sink), **hears}
        self.client = client(library().Producer, settings)

    def patience(self) -> Patience:
        """How long to wait for an answer."""
        return Patience(self.servers, self.patience_s, self._complaints)

    def send(self, records: pa.Table | pa.RecordBatch) -> None:
        """Hand records to the producer, in their order; they are on their way then.

        Raises:
            EventideError: if one cannot be sent, or Kafka does not let us in.
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
                except BufferError:  # it has as many records as it may hold
                    self.client.poll(_REST_S)
                    self.check()
                except library().KafkaException as error:
                    raise self.refusal(error.args[0], record[0]) from error

    def arrive(self) -> None:
        """Wait until Kafka has all records that were sent.

        Raises:
            EventideError: if it does not take one, or does not let us in.
        """
        while self.client.flush(1):
            self.check()
        self.check()

    def check(self) -> None:
        """Nothing, if all that was sent has arrived or is on its way.

        Raises:
            EventideError: if Kafka does not take a record, or does not let us in.
        """
        failure = self.failure()
        if failure is not None:
            raise failure
        self._complaints.check(self.servers)

    def failure(self) -> EventideError | None:
        """Return the error for the first record that Kafka did not take, if there is one."""
        return None if self._failed is None else self.refusal(*self._failed)

    @property
    def may_try_again(self) -> bool:
        """Whether no record was refused for what it is."""
        return self._failed is None or meaning_of(self._failed[0]) is Meaning.WAIT

    def forget(self) -> None:
        """Pass over what was said of records that are given up."""
        self._failed = None

    def partitions(self, topic: str) -> Sequence[int]:
        """The partitions of a topic, in order.

        Raises:
            EventideError: if there is no such topic, or no answer.
        """
        patience = self.patience()
        what = f"the partitions of the topic {topic}"
        while True:
            try:
                found = self.client.list_topics(topic, timeout=1).topics[topic]
            except library().KafkaException as error:
                patience.check_error(what, error.args[0])
            else:
                if found.error is None and found.partitions:
                    return sorted(found.partitions)
                if found.error is not None:
                    patience.check_error(what, found.error)
            self.client.poll(0.1)

    def close(self) -> None:
        """Drop what has not been sent, and all connections."""
        self.client.purge()
        self.client.flush(0)
        del self.client

    def _heard(self, error: Any, message: Any) -> None:
        if error is not None and self._failed is None and not _is_given_up(error):
            self._failed = error, message.topic()

    def refusal(self, error: Any, topic: str) -> EventideError:
        """Return the error for a topic that Kafka takes no records for."""
        meaning = meaning_of(error)
        if meaning is Meaning.REFUSED:
            return refused(self.servers, said(error))
        if meaning is Meaning.ABSENT:
            return DataError(
                f"there is no such topic or partition at {self.servers} as {topic}: {said(error)}. Create it, with as "
                "many partitions as it shall have, before the job writes to it"
            )
        return DataError(f"Kafka at {self.servers} did not take a record for {topic}: {said(error)}")


def _is_given_up(error: Any) -> bool:
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
