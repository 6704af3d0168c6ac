"""Transactions of an exactly-once sink: the records of a micro-batch, and its number, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

from eventide.connectors.kafka.library import Complaints, Patience, client, library, said
from eventide.connectors.kafka.sink import KafkaSink
from eventide.connectors.kafka.sink_producer import SinkProducer, connection
from eventide.connectors.kafka.sink_progress import Mark
from eventide.errors import DataError, EventideError, StateError

if TYPE_CHECKING:
    import pyarrow as pa

_SETTINGS = {
    "transaction.timeout.ms": "300000",
    "retry.backoff.ms": "10",  # the brokers may still be at the end of the transaction before
    "metadata.recovery.strategy": "none",  # else brokers that are all away for a moment are forgotten; see _in_time
}
_TRIES = 3
_GRACE_S = 5.0
_FENCED = "_FENCED PRODUCER_FENCED INVALID_PRODUCER_EPOCH"


class Transactions:
    """Writes tables of records, each with a mark, in one transaction; one at a time has a sink's transactional id.

    Opening it ends transactions that others of that id had begun, and those cannot write any more.

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
            EventideError: if Kafka does not say, or does not let us in.
        """
        admin_module = library("admin")
        complaints = Complaints()
        settings = {**connection(self._sink), "log_level": 0, "error_cb": complaints.hear}
        admin = client(admin_module.AdminClient, settings)
        patience = Patience(self._producer.servers, self._producer.patience_s, complaints)
        asked = library().ConsumerGroupTopicPartitions(self.group)
        while True:
            answer = admin.list_consumer_group_offsets([asked], require_stable=True, request_timeout=5)
            try:
                found = answer[self.group].result().topic_partitions
            except library().KafkaException as error:
                patience.check_error(f"the offsets of the group {self.group}", error.args[0])
                admin.poll(0.1)
            else:
                unsettled = next((one.error for one in found if one.error), None)
                if unsettled is None:
                    return [Mark(one.offset, one.metadata or "") for one in found if one.offset >= 0]
                patience.check_error(f"the offsets of the group {self.group}", unsettled)

    def write(self, records: Sequence[pa.Table], mark: Mark, topics: Sequence[str]) -> None:
        """Write records and a mark, all of them or none.

        Args:
            records: the records, in tables.
            mark: how far the sink has got with them.
            topics: the topics beside which the mark is kept: all those of the records, as Kafka drops a mark with its
                topic; so the mark is there as long as any record is.

        Raises:
            StateError: if another run of the job has begun to write.
            EventideError: if Kafka does not take a record, or gives no answer.
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
                        f"a transaction of {self.group!r} did not end at {self._producer.servers}, {_TRIES} times over"
                    ) from error
                self._begin_anew(mark, is_empty=not records)
            except EventideError:
                self._abort()
                raise

    def _begin_anew(self, mark: Mark, *, is_empty: bool) -> None:
        """Go on with another producer, unless another run has written meanwhile what was to be written.

        That run cannot write any more from then on, so what it has left behind will not change.

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

    def _offsets(self, mark: Mark, topics: Sequence[str]) -> list[Any]:
        place = library().TopicPartition
        return [place(topic, 0, mark.next_batch, metadata=mark.checkpoint) for topic in topics]

    def _reached(self, place: str) -> None:
        """Nothing: tests end the process at a place of a transaction."""

    def _insist(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Call something that may be called again where it got no answer."""
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
        """Do something that may never come back: the library looks for a coordinator that is gone, and keeps no time.

        That is its issue 5511. The producer has to be given up then; the next one ends what it had begun.

        Raises:
            TimeoutError: if it does not come back in `seconds` seconds.
        """
        outcome: Queue[BaseException | None] = Queue()

        def run() -> None:
            try:
                work()
            except BaseException as error:
                outcome.put(error)
            else:
                outcome.put(None)

        Thread(target=run, name=f"offsets of {self.group}", daemon=True).start()
        try:
            error = outcome.get(timeout=seconds)
        except Empty:
            raise TimeoutError from None
        if error is not None:
            raise error

    def _new_producer(self) -> SinkProducer:
        return SinkProducer(self._sink, {"transactional.id": self.group, **_SETTINGS})

    def _initialise(self) -> None:
        patience = self._producer.patience()
        while True:
            try:
                self._producer.client.init_transactions(1)
                return
            except library().KafkaException as error:
                self._producer.client.poll(0)
                what = f"the transactional id {self.group!r}"
                if error.args[0].retriable():
                    patience.check(what, said(error))
                else:
                    patience.check_error(what, error.args[0])

    def _failure(self, error: Any, topics: Sequence[str]) -> EventideError:
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

        Kafka says that a transaction is committed before it tells the partitions, and readers see nothing of it in
        between: for some milliseconds, or a tenth of a second. A further transaction may send nothing before that is
        over. So one is begun, sends what stands there anyway, and is given up.
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
        """Leave the cluster alone, once readers see what was written; nothing is lost if they cannot yet."""
        if self._last is not None:
            self._wait_until_seen(*self._last)
        self._membership.close()
        self._producer.close()
