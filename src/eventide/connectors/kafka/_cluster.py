"""Planning of a Kafka source: requests to the cluster, and the partitions that the source knows."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from eventide.connectors.kafka._offsets import KafkaTopicPartition, Subscription
from eventide.connectors.kafka._properties import KafkaSourceSettings
from eventide.connectors.kafka.library import (
    CLIENT_DEFAULTS,
    GRACE_S,
    Complaints,
    Meaning,
    NotThere,
    Patience,
    client,
    library,
    meaning_of,
    place,
    said,
)
from eventide.errors import DataError, StateError
from eventide.storage import Folder

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient

_A = TypeVar("_A")
_T = TypeVar("_T")
_REQUEST_S = 5.0
_PAUSE_S = 0.1
_LAST_COMMIT_S = 5.0
_log = logging.getLogger(__name__)

_WATCH_S = 1.0
_FIRST, _LEFT = "first", "left-"
_BETWEEN_LOOKS_S = 0.1


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """An existing topic: its id, which a recreated topic does not share, and the numbers of its partitions."""

    identity: str
    partitions: tuple[int, ...]


class Cluster:
    """A connection for planning, which repeats requests while brokers are away, until its patience is over.

    Offsets initializers use it as :class:`PartitionOffsetsRetriever`.

    Raises:
        ProgramError: if a property is not right, or Kafka refuses the client.
        DataError: if no broker answers, or a topic or partition does not exist.
    """

    def __init__(self, settings: KafkaSourceSettings) -> None:
        self._settings = settings
        self._complaints = Complaints()
        self._commit: dict[KafkaTopicPartition, int] = {}
        self._sent: dict[KafkaTopicPartition, int] = {}
        self._underway: Future[Any] | None = None
        self._admins = [self._connected()]

    @property
    def _admin(self) -> AdminClient:
        return self._admins[-1]

    def topics(self, subscription: Subscription, known: Collection[str] = ()) -> dict[str, KafkaTopic]:
        """The subscribed topics, by name, without named topics that do not exist.

        A broker that has just started may not know its topics yet: requests for named topics, and for others that
        existed before, are repeated for some seconds.
        """
        began = time.monotonic()
        expected = {*subscription.named_topics(), *known}
        while True:
            found = self._topics(subscription)
            if expected <= found.keys() or time.monotonic() - began >= GRACE_S:
                return found
            time.sleep(_PAUSE_S)

    def _topics(self, subscription: Subscription) -> dict[str, KafkaTopic]:
        if subscription.pattern is None:
            return self._described(subscription.named_topics())
        fits = subscription.pattern.fullmatch
        listed = self._patiently(
            "its topics", lambda: self._admin.list_topics(timeout=_REQUEST_S).topics, lambda topics: topics
        )
        return self._described([name for name in listed if fits(name)], with_internal=False)

    def beginning_offsets(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """The first available offsets."""
        return self._offsets("the first offsets of partitions", dict.fromkeys(partitions, _spec().earliest()))

    def end_offsets(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """The offsets after the last readable records."""
        return self._offsets("the end offsets of partitions", dict.fromkeys(partitions, _spec().latest()))

    def offsets_for_times(self, timestamps: Mapping[KafkaTopicPartition, int]) -> dict[KafkaTopicPartition, int]:
        """The first offsets at or after timestamps, without partitions that have none."""
        specs = {partition: _spec().for_timestamp(at_ms) for partition, at_ms in timestamps.items()}
        found = self._offsets("the offsets of timestamps", specs)
        return {partition: offset for partition, offset in found.items() if offset >= 0}

    def committed_offsets(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """The committed offsets of the group, without partitions that have none."""
        group = self._settings.group_id
        if group is None or not partitions:
            return {}
        asked = library().ConsumerGroupTopicPartitions(group, [place(partition) for partition in partitions])

        def take(futures: Mapping[str, Future[Any]]) -> Collection[Any]:
            found = futures[group].result().topic_partitions or ()
            for at in found:
                if at.error is not None:  # its offset is unknown; only an error tells it from one never committed
                    raise library().KafkaException(at.error)
            return found

        answer = self._patiently(
            f"the offsets of the group {group!r}",
            lambda: self._admin.list_consumer_group_offsets([asked], request_timeout=_REQUEST_S),
            take,
        )
        return {KafkaTopicPartition(at.topic, at.partition): at.offset for at in answer if at.offset >= 0}

    def commit(self, offsets: Mapping[KafkaTopicPartition, int]) -> None:
        """Commit handled offsets to the group, without waiting for the answer, for monitoring only.

        If the previous commit is still under way, this one follows with the next call; so does one that failed for a
        temporary reason.
        """
        self._commit = dict(offsets)
        self._send_commit_if_free()

    def close(self) -> None:
        """Commit the remaining offsets, if this takes only seconds."""
        deadline = time.monotonic() + _LAST_COMMIT_S
        while (self._commit or self._underway) and time.monotonic() < deadline:
            self._send_commit_if_free()
            time.sleep(0.02)

    def _send_commit_if_free(self) -> None:
        """Send the offsets to commit, unless a commit is under way."""
        if self._underway is not None:
            if not self._underway.done():
                return
            self._commit = self._not_committed(self._underway) | self._commit
            self._underway = None
        if self._commit:
            group = str(self._settings.group_id)
            offsets = [place(partition, offset) for partition, offset in self._commit.items()]
            request = library().ConsumerGroupTopicPartitions(group, offsets)
            self._underway = self._admin.alter_consumer_group_offsets([request])[group]
            self._sent, self._commit = self._commit, {}

    def _not_committed(self, future: Future[Any]) -> dict[KafkaTopicPartition, int]:
        """Return the offsets of the last commit that should be retried; log the others."""
        try:
            errors = [at.error for at in future.result().topic_partitions if at.error is not None]
        except library().KafkaException as error:
            errors = [error.args[0]]
        if any(meaning_of(error) is Meaning.WAIT for error in errors):
            return self._sent
        for why in {said(error) for error in errors}:
            _log.warning("the offsets of the group %r could not be committed: %s", self._settings.group_id, why)
        return {}

    def _described(self, names: Collection[str], *, with_internal: bool = True) -> dict[str, KafkaTopic]:
        if not names:
            return {}
        collection = library().TopicCollection(list(names))
        found: dict[str, KafkaTopic] = {}

        def take(futures: Mapping[str, Any]) -> None:
            for name, future in futures.items():
                try:
                    topic = future.result()
                except library().KafkaException as error:
                    if meaning_of(error.args[0]) is not Meaning.ABSENT:
                        raise
                    continue
                if with_internal or not topic.is_internal:
                    found[name] = KafkaTopic(str(topic.topic_id), tuple(sorted(at.id for at in topic.partitions)))

        self._patiently(
            f"the topics {', '.join(names)}",
            lambda: self._admin.describe_topics(collection, request_timeout=_REQUEST_S),
            take,
        )
        return found

    def _offsets(self, what: str, specs: Mapping[KafkaTopicPartition, Any]) -> dict[KafkaTopicPartition, int]:
        if not specs:
            return {}
        levels = library().IsolationLevel
        level = levels.READ_COMMITTED if self._settings.reads_committed else levels.READ_UNCOMMITTED
        asked = {place(partition): spec for partition, spec in specs.items()}

        def take(answers: Mapping[Any, Future[Any]]) -> dict[KafkaTopicPartition, int]:
            try:
                return offsets_in(answers)
            except library().KafkaException as error:
                if meaning_of(error.args[0]) is Meaning.ABSENT and self._are_there(specs):
                    raise _without_leader() from error
                raise

        return self._patiently(
            what,
            lambda: self._admin.list_offsets(asked, isolation_level=level, request_timeout=_REQUEST_S),
            take,
        )

    def _are_there(self, partitions: Collection[KafkaTopicPartition]) -> bool:
        """Whether the cluster has these; of one whose brokers are all away, the client says that there is none."""
        topics = self._described({at.topic for at in partitions})
        return all(at.topic in topics and at.partition in topics[at.topic].partitions for at in partitions)

    def _connected(self) -> AdminClient:
        name = self._settings.options.client_id_prefix or self._settings.group_id or "eventide"
        properties: dict[str, Any] = {
            **CLIENT_DEFAULTS,
            **self._settings.properties,
            "client.id": f"{name}-plan",
            "error_cb": self._complaints.hear,
        }
        admin: AdminClient = client(library("admin").AdminClient, properties)
        return admin

    def _answered(self, answer: _A, patience: Patience) -> _A:
        """Wait for an answer, or futures of answers; reported errors are handled meanwhile."""
        waiting = {one for one in answer.values() if isinstance(one, Future)} if isinstance(answer, dict) else set()
        while waiting:
            waiting = wait(waiting, _PAUSE_S).not_done
            if waiting:
                self._admin.poll(0)
                patience.check_complaints()
        return answer

    def _patiently(self, what: str, ask: Callable[[], _A], take: Callable[[_A], _T]) -> _T:
        patience = Patience(self._settings.servers, self._settings.options.patience_ms / 1_000, self._complaints)
        return patience.answer_to(lambda: take(self._answered(ask(), patience)), what, self._rest)

    def _rest(self, error: KafkaError) -> None:
        self._admin.poll(0)  # calls back with reported errors
        time.sleep(_PAUSE_S)
        codes = library().KafkaError
        if error.code() in {codes.FENCED_LEADER_EPOCH, codes.UNKNOWN_LEADER_EPOCH}:
            # A client may keep what it knew of a broker that has restarted; its futures still need it.
            self._admins = [self._admin, self._connected()]


def offsets_in(answers: Mapping[Any, Future[Any]]) -> dict[KafkaTopicPartition, int]:
    """The offsets in the answers of a request.

    Raises:
        KafkaException: if a broker left out a partition, for which the client returns an invalid offset. A broker that
            stops, or has just started, does so.
    """
    offsets = {KafkaTopicPartition(at.topic, at.partition): answer.result().offset for at, answer in answers.items()}
    if library().OFFSET_INVALID in offsets.values():
        raise _without_leader()
    return offsets


def _without_leader() -> Exception:
    codes = library().KafkaError
    error: Exception = library().KafkaException(codes(codes.LEADER_NOT_AVAILABLE))
    return error


class KnownPartitions:
    """Partitions that were found for the subscription of a source, which are discovered again from time to time.

    Args:
        settings: the settings of the source.
        cluster: the connection to the cluster.
        memory: the record of the partitions at the first start of the job; None if that is not kept over a restart.
    """

    def __init__(self, settings: KafkaSourceSettings, cluster: Cluster, memory: Folder | None = None) -> None:
        self._settings = settings
        self._cluster = cluster
        self._memory = memory
        self._topics: dict[str, KafkaTopic] = {}
        self._identities: dict[str, str] = {}
        self._left: dict[str, tuple[str, int]] = {}
        self._is_resumed = False
        self._of_the_start: frozenset[str] | None = None
        self._looked = self._watched = 0.0

    def listing(self, known: Mapping[str, int | None] | None = None) -> list[str]:
        """The names of the partitions.

        Args:
            known: the partitions that the job knows, with their positions, or None if they have ended.

        Raises:
            DataError: if a topic does not exist, or a topic that was read was deleted and that is an error.
            StateError: if one was recreated.
        """
        reading = {KafkaTopicPartition.of_name(part): at for part, at in (known or {}).items() if at is not None}
        interval_ms = None if self._settings.is_bounded else self._settings.options.discovery_interval_ms
        if self._of_the_start is None:
            self._look({place.topic for place in reading})
            names = self._names()
            if not reading:
                self._check_all_there(names)
            self._of_the_start = self._found_first(names)
        elif interval_ms is not None and time.monotonic() - self._looked >= interval_ms / 1_000:
            self._look({place.topic for place in reading})
        found = self._names()
        self._check_none_lost(reading, found)
        self._leave({place: at for place, at in reading.items() if str(place) not in found})
        if known and self._settings.is_bounded:
            return [part for part in known if part in set(found) or known[part] is None]
        return found

    def is_of_the_start(self, part: str) -> bool:
        """Whether a partition existed when the job first started."""
        if self._of_the_start is None:
            self.listing()
        return part in (self._of_the_start or ())

    def left_at(self, parts: Collection[str]) -> dict[str, int]:
        """The positions of partitions that Kafka did not have for a time, without those of recreated topics."""
        stored = self._memory.names() if self._memory is not None else []
        for part in parts:
            if self._memory is not None and part not in self._left and f"{_LEFT}{part}" in stored:
                identity, at = self._memory.read(f"{_LEFT}{part}", json.loads)
                self._left[part] = identity, at
        left = {part: self._left[part] for part in parts if part in self._left}
        of_topic = {part: self.identity(KafkaTopicPartition.of_name(part).topic) for part in left}
        return {part: at for part, (identity, at) in left.items() if identity == of_topic[part]}

    def identity(self, topic: str) -> str | None:
        """The id of a topic."""
        return self._topics[topic].identity if topic in self._topics else None

    def resume(self, identities: Mapping[str, str]) -> None:
        """Check the topics that the job has read, by the names of their partitions.

        Raises:
            StateError: if one was recreated.
        """
        self._identities = {KafkaTopicPartition.of_name(part).topic: identity for part, identity in identities.items()}
        self._is_resumed = bool(identities)
        if identities:
            self._look(self._identities)

    def ends(self, positions: Mapping[str, int]) -> dict[str, int]:
        """The end offsets of partitions.

        Raises:
            DataError: if one ends before its position, or no longer exists.
            StateError: if its topic was recreated.
        """
        places = {part: KafkaTopicPartition.of_name(part) for part in positions}
        began = time.monotonic()
        while True:
            try:
                ends = self._cluster.end_offsets(list(places.values()))
            except NotThere:
                self._look({place.topic for place in places.values()})
                self._check_none_lost({places[part]: at for part, at in positions.items()}, self._names())
                if time.monotonic() - began >= self._settings.options.patience_ms / 1_000:
                    raise
                continue
            has_more = any(ends[places[part]] != at for part, at in positions.items())
            if has_more and time.monotonic() - self._watched >= _WATCH_S:
                self._look({place.topic for place in places.values()})
            short = {part: at for part, at in positions.items() if ends[places[part]] < at}
            if not short:
                return {part: ends[place] for part, place in places.items()}
            if time.monotonic() - began >= GRACE_S:  # a broker that has just started may report an earlier end
                listed = ", ".join(f"{part} ends at {ends[places[part]]}, before {at}" for part, at in short.items())
                raise DataError(
                    f"Kafka at {self._settings.servers} has fewer records than the job has read: {listed}. Records "
                    "were lost there; start with a new checkpoint"
                )
            time.sleep(_BETWEEN_LOOKS_S)

    def _look(self, known_topics: Collection[str]) -> None:
        self._topics = self._cluster.topics(self._settings.subscription, known_topics)
        self._looked = self._watched = time.monotonic()
        for name, topic in self._topics.items():
            before = self._identities.get(name, topic.identity)
            if before != topic.identity:
                raise StateError(
                    f"the topic {name!r} of Kafka at {self._settings.servers} was deleted and created again: the job "
                    f"has read the topic with the id {before}, and its id is now {topic.identity}. Their offsets are "
                    "unrelated; start with a new checkpoint"
                )
            self._identities[name] = topic.identity

    def _found_first(self, names: Collection[str]) -> frozenset[str]:
        """The partitions that existed when the job first started and that it has not started to read."""
        if self._is_resumed:
            return frozenset()
        if self._memory is None:
            return frozenset(names)
        if _FIRST in self._memory.names():
            return frozenset(self._memory.read(_FIRST, json.loads))
        self._memory.write(_FIRST, json.dumps(list(names)).encode())
        return frozenset(names)

    def _names(self) -> list[str]:
        """All found partitions that are subscribed to, in order."""
        chosen = self._settings.subscription.partitions
        places = [
            KafkaTopicPartition(name, number)
            for name, topic in sorted(self._topics.items())
            for number in topic.partitions
        ]
        return [str(place) for place in places if not chosen or place in chosen]

    def _check_all_there(self, names: Collection[str]) -> None:
        subscription = self._settings.subscription
        if self._settings.is_bounded and not names:
            raise DataError(
                f"Kafka at {self._settings.servers} has nothing that matches {subscription}, and a bounded source does "
                "not wait for it"
            )
        absent = [repr(name) for name in subscription.topics if name not in self._topics]
        absent += [str(place) for place in subscription.partitions if str(place) not in names]
        if absent:
            raise DataError(
                f"Kafka at {self._settings.servers} has no {', '.join(absent)}: create it before the job starts, or "
                "use set_topic_pattern, which waits for topics"
            )

    def _leave(self, gone: Mapping[KafkaTopicPartition, int]) -> None:
        """Remember the positions of missing partitions, in case Kafka has them again."""
        for partition, at in gone.items():
            part, identity = str(partition), self._identities.get(partition.topic)
            if identity is not None and self._left.get(part) != (identity, at):
                self._left[part] = identity, at
                if self._memory is not None:
                    self._memory.write(f"{_LEFT}{part}", json.dumps([identity, at]).encode())

    def _check_none_lost(self, reading: Mapping[KafkaTopicPartition, int], found: Collection[str]) -> None:
        if not self._settings.fails_on_data_loss:
            return
        there = set(found)
        lost = {place: at for place, at in reading.items() if str(place) not in there}
        if lost:
            deleted = sorted({repr(place.topic) for place in lost if place.topic not in self._topics})
            what = f"the topic {', '.join(deleted)} was deleted" if deleted else "its topic has fewer partitions now"
            listed = ", ".join(f"{place} up to offset {at}" for place, at in lost.items())
            raise DataError(
                f"Kafka at {self._settings.servers} does not have all that the job reads: {what}. The job has read "
                f"{listed}. Start with a new checkpoint; set_fail_on_data_loss(False) goes on without it"
            )


def _spec() -> Any:
    return library("admin").OffsetSpec
