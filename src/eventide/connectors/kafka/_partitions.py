"""The partitions that a source knows of, where it is planned: found, watched, and known by the ids of their topics."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from eventide.connectors.kafka._cluster import Cluster, Topic
from eventide.connectors.kafka._errors import GRACE_S, NotThere
from eventide.connectors.kafka._offsets import KafkaTopicPartition
from eventide.connectors.kafka._settings import KafkaSourceSettings
from eventide.errors import DataError, StateError

_WATCH_S = 1.0
_PAUSE_S = 0.1


class KnownPartitions:
    """Partitions that were found for the subscription of a source; it looks again from time to time.

    Args:
        settings: what the source was told.
        cluster: the cluster that is asked.
        clock: seconds, for the intervals between two looks.
    """

    def __init__(
        self, settings: KafkaSourceSettings, cluster: Cluster, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._clock = clock
        self._topics: dict[str, Topic] = {}
        self._identities: dict[str, str] = {}
        self._is_resumed = False
        self._of_the_start: frozenset[str] | None = None
        self._looked = self._watched = 0.0

    def listing(self, known: Mapping[str, int | None] | None = None) -> list[str]:
        """The names of the partitions.

        Args:
            known: those that the job has heard of, with their positions, or None where they have ended.

        Raises:
            DataError: if a topic is not there, or one that was read from has been deleted, where that is an error.
            StateError: if one was made anew.
        """
        reading = {KafkaTopicPartition.of_name(part): at for part, at in (known or {}).items() if at is not None}
        interval_ms = None if self._settings.is_bounded else self._settings.options.discovery_interval_ms
        if self._of_the_start is None:
            self._look({place.topic for place in reading})
            names = self._names()
            self._of_the_start = frozenset(names)
            if not reading:
                self._check_all_there(names)
        elif interval_ms is not None and self._clock() - self._looked >= interval_ms / 1_000:
            self._look({place.topic for place in reading})
        found = self._names()
        self._check_none_lost(reading, found)
        if known and self._settings.is_bounded:
            return [part for part in known if part in set(found) or known[part] is None]
        return found

    def is_of_the_start(self, part: str) -> bool:
        """Whether a partition was there when the job first started."""
        if self._of_the_start is None:
            self.listing()
        return not self._is_resumed and part in (self._of_the_start or ())

    def identity(self, topic: str) -> str | None:
        """The id of a topic."""
        return self._topics[topic].identity if topic in self._topics else None

    def resume(self, identities: Mapping[str, str]) -> None:
        """Hear which topics the job has read, by the names of their partitions.

        Raises:
            StateError: if one was made anew.
        """
        self._identities = {KafkaTopicPartition.of_name(part).topic: identity for part, identity in identities.items()}
        self._is_resumed = bool(identities)
        if identities:
            self._look(self._identities)

    def ends(self, positions: Mapping[str, int]) -> dict[str, int]:
        """Where partitions end.

        Raises:
            DataError: if one ends before its position, or is not there any more.
            StateError: if its topic was made anew.
        """
        places = {part: KafkaTopicPartition.of_name(part) for part in positions}
        began = self._clock()
        while True:
            try:
                ends = self._cluster.end_offsets(list(places.values()))
            except NotThere:
                self._look({place.topic for place in places.values()})
                self._check_none_lost({places[part]: at for part, at in positions.items()}, self._names())
                if self._clock() - began >= self._settings.options.patience_ms / 1_000:
                    raise
                continue
            has_more = any(ends[places[part]] != at for part, at in positions.items())
            if has_more and self._clock() - self._watched >= _WATCH_S:
                self._look({place.topic for place in places.values()})
            short = {part: at for part, at in positions.items() if ends[places[part]] < at}
            if not short:
                return {part: ends[place] for part, place in places.items()}
            if self._clock() - began >= GRACE_S:  # a broker that has only just started may not know all of its end
                said = ", ".join(f"{part} ends at {ends[places[part]]}, before {at}" for part, at in short.items())
                raise DataError(
                    f"Kafka at {self._settings.servers} has less than the job has read: {said}. Records were lost "
                    "there; start with a new checkpoint"
                )
            time.sleep(_PAUSE_S)

    def _look(self, known_topics: Collection[str]) -> None:
        self._topics = self._cluster.topics(self._settings.subscription, known_topics)
        self._looked = self._watched = self._clock()
        for name, topic in self._topics.items():
            before = self._identities.get(name, topic.identity)
            if before != topic.identity:
                raise StateError(
                    f"the topic {name!r} of Kafka at {self._settings.servers} was deleted and made anew: the job has "
                    f"read one with the id {before}, and there is one with the id {topic.identity}. Their offsets have "
                    "nothing to do with each other; start with a new checkpoint"
                )
            self._identities[name] = topic.identity

    def _names(self) -> list[str]:
        """All partitions that were found and are subscribed to, in order."""
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
                f"Kafka at {self._settings.servers} has nothing that fits {subscription}, and a bounded source does "
                "not wait for it"
            )
        absent = [repr(name) for name in subscription.topics if name not in self._topics]
        absent += [str(place) for place in subscription.partitions if str(place) not in names]
        if absent:
            raise DataError(
                f"Kafka at {self._settings.servers} has no {', '.join(absent)}: make it before the job starts, or use "
                "set_topic_pattern, which waits for topics"
            )

    def _check_none_lost(self, reading: Mapping[KafkaTopicPartition, int], found: Collection[str]) -> None:
        if not self._settings.fails_on_data_loss:
            return
        there = set(found)
        lost = {place: at for place, at in reading.items() if str(place) not in there}
        if lost:
            deleted = sorted({repr(place.topic) for place in lost if place.topic not in self._topics})
            what = f"the topic {', '.join(deleted)} was deleted" if deleted else "its topic has fewer partitions now"
            said = ", ".join(f"{place} up to offset {at}" for place, at in lost.items())
            raise DataError(
                f"Kafka at {self._settings.servers} does not have all that the job reads: {what}. The job has read "
                f"{said}. Start with a new checkpoint; set_fail_on_data_loss(False) goes on without it"
            )
