"""The Kafka source: each partition a split, whose positions are its offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from eventide.api.source import Beginning, Counted, PartRange, Source, shared_out
from eventide.common.ms import MAX_MS
from eventide.common.type_variables import T_co
from eventide.common.typeinfo import TypeInformation
from eventide.connectors.kafka._builder import KafkaSourceBuilder
from eventide.connectors.kafka._cluster import Cluster
from eventide.connectors.kafka._consumers import borrowed
from eventide.connectors.kafka._decoding import LOST, Decoder
from eventide.connectors.kafka._offsets import (
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
    specified,
    starting_offsets,
)
from eventide.connectors.kafka._partitions import KnownPartitions
from eventide.connectors.kafka._reading import Lost, read_ranges
from eventide.connectors.kafka._settings import KafkaSourceSettings


class KafkaSource(Source[T_co]):
    """Reads topics of Kafka; made with :meth:`builder`. PyFlink: ``KafkaSource``.

    Each partition is a split, with a watermark of its own. Elements have the timestamps of their records, which count
    as their event time unless the strategy has an assigner. Offsets are kept in the job's checkpoint; those that are
    committed to the group are for monitoring.

    It needs the package confluent-kafka, which comes with ``eventide[kafka]``.

    >>> from eventide.common import SimpleStringSchema
    >>> source = (
    ...     KafkaSource.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_topics("orders")
    ...     .set_group_id("shop")
    ...     .set_starting_offsets(KafkaOffsetsInitializer.earliest())
    ...     .set_value_only_deserializer(SimpleStringSchema())
    ...     .build()
    ... )
    >>> source, source.get_produced_type(), source.is_bounded()
    (KafkaSource(orders at localhost:9092), STRING, False)
    """

    def __init__(self, settings: KafkaSourceSettings) -> None:
        self._settings = settings
        self._cluster: Cluster | None = None
        self._partitions: KnownPartitions | None = None

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Start with nothing set."""
        return KafkaSourceBuilder()

    def splits(self) -> list[str]:
        """The partitions that are there."""
        return self._known().listing()

    def parts(self, known: Mapping[str, int | None]) -> list[str]:
        """The partitions; new ones are looked for every ``partition.discovery.interval.ms``.

        Raises:
            DataError: if a topic is not there, or one that was read from has been deleted.
            StateError: if one was made anew.
        """
        return self._known().listing(known)

    def beginnings(self, parts: Sequence[str]) -> dict[str, Beginning]:
        """Where new partitions start and stop, and the ids of their topics.

        Those that were not there when the job first started are read from their beginning, as in Flink.
        """
        known, cluster, settings = self._known(), self._asked(), self._settings
        places = {part: KafkaTopicPartition.of_name(part) for part in parts}
        first = [places[part] for part in parts if known.is_of_the_start(part)]
        later = [place for place in places.values() if place not in set(first)]
        starts = starting_offsets(settings.starting, first, cluster)
        starts |= starting_offsets(KafkaOffsetsInitializer.earliest(), later, cluster)
        stops: Mapping[KafkaTopicPartition, int] = {}
        if settings.stopping is not None:
            stops = specified(settings.stopping, list(places.values()), cluster)
        return {
            part: Beginning(
                starts[place],
                max(starts[place], stops[place]) if place in stops else None,
                known.identity(place.topic),
            )
            for part, place in places.items()
        }

    def resume(self, identities: Mapping[str, str]) -> None:
        """See that the topics are those that the job has read.

        Raises:
            StateError: if one was made anew.
        """
        self._known().resume(identities)

    def initial_position(self, split: str) -> int:
        """Where a partition starts."""
        return self.beginnings([split])[split].start

    def latest_position(self, split: str) -> int:
        """The end of a partition."""
        return self.ends([split])[split]

    def ends(self, parts: Collection[str]) -> dict[str, int]:
        """The ends of some partitions, with one request."""
        places = {part: KafkaTopicPartition.of_name(part) for part in parts}
        ends = self._asked().end_offsets(list(places.values()))
        return {part: ends[place] for part, place in places.items()}

    def positions_at(
        self, timestamp_ms: int, positions: Mapping[str, int], column: str | None = None
    ) -> dict[str, int] | None:
        """The offsets after the last records that are not later, by the timestamps of records alone; one request."""
        if column is not None:
            return None
        if timestamp_ms < 0:
            return dict(positions)  # no record of Kafka's is as old
        places = {part: KafkaTopicPartition.of_name(part) for part in positions}
        ends = self.ends(positions)
        if timestamp_ms == MAX_MS:
            return ends
        found = self._asked().offsets_for_times(dict.fromkeys(places.values(), timestamp_ms + 1))
        return {part: max(at, found.get(places[part], ends[part])) for part, at in positions.items()}

    def next_positions(self, positions: Mapping[str, int], max_rows: int | None) -> dict[str, int]:
        """Up to the ends of partitions, or to the limit of rows, of which each gets an equal part.

        Offsets are counted as rows; that there are no records at some of them is not known before they are read.

        Raises:
            DataError: if a partition ends before what has been read of it.
        """
        ends = self._known().ends(positions)
        left = {part: ends[part] - position for part, position in positions.items()}
        taken = left if max_rows is None else shared_out(left, max_rows)
        return {part: position + taken[part] for part, position in positions.items()}

    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        """The elements of a partition between two offsets."""
        for _, items in self.read_together([PartRange(split, start, end)]):
            yield from items

    def reads_together(self) -> bool:
        """Yes: all partitions of a task are waited for at once."""
        return True

    def read_together(self, ranges: Sequence[PartRange]) -> Iterator[tuple[str, Iterable[Any]]]:
        """The elements of several partitions, as they come.

        Raises:
            DataError: if a record cannot be read, or records are gone, where that is an error.
        """
        settings = self._settings
        wanted = {KafkaTopicPartition.of_name(way.part): (way.start, way.end) for way in ranges}
        decoder = Decoder(settings)
        with borrowed(settings.properties, settings.group_id, settings.options.client_id_prefix) as reader:
            for partition, given in read_ranges(reader, wanted, settings.servers, settings.options.patience_ms / 1_000):
                part = str(partition)
                if not isinstance(given, Lost):
                    yield part, decoder.items(partition, given)
                elif settings.fails_on_data_loss:
                    raise given.as_error(partition)
                else:
                    decoder.counts[LOST] += given.end - given.start
        if decoder.counts and ranges:
            counted = {name: ["count", number] for name, number in decoder.counts.items()}
            yield ranges[0].part, [Counted(counted)]

    def commit(self, positions: Mapping[str, int]) -> None:
        """Tell the group, if there is one, without waiting for an answer."""
        if self._settings.group_id is not None and self._settings.options.commits_offsets:
            self._asked().commit({KafkaTopicPartition.of_name(part): at for part, at in positions.items()})

    def stop(self) -> None:
        """Let go of the connection for planning."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = self._partitions = None

    def is_bounded(self) -> bool:
        """Whether it was built with ``set_bounded``."""
        return self._settings.is_bounded

    def may_end(self) -> bool:
        """Whether it stops at some offsets."""
        return self._settings.stopping is not None

    def has_ended(self, split: str, position: int) -> bool:
        """No: only an offset to stop at says so."""
        return False

    def gives_timestamps(self) -> bool:
        """Yes: those of the records."""
        return True

    def gives_watermarks(self) -> bool:
        """No: they are the strategy's."""
        return False

    def get_produced_type(self) -> TypeInformation:
        """The type of the schema."""
        return self._settings.deserializer.get_produced_type()

    def _asked(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster(self._settings)
        return self._cluster

    def _known(self) -> KnownPartitions:
        if self._partitions is None:
            self._partitions = KnownPartitions(self._settings, self._asked())
        return self._partitions

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_cluster": None, "_partitions": None}

    def __repr__(self) -> str:
        return f"KafkaSource({self._settings.subscription} at {self._settings.servers})"
