"""The partitions that a Kafka source reads, and their first and last offsets."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeGuard

from eventide.errors import DataError, ProgramError


@dataclass(frozen=True, slots=True, order=True)
class KafkaTopicPartition:
    """A partition of a topic. PyFlink: ``KafkaTopicPartition``.

    >>> str(KafkaTopicPartition("orders", 0))
    'orders-0'
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @staticmethod
    def of_name(name: str) -> KafkaTopicPartition:
        """Return the partition of a name, as ``str`` returns it."""
        topic, _, partition = name.rpartition("-")
        return KafkaTopicPartition(topic, int(partition))


class KafkaOffsetResetStrategy(Enum):
    """Replacement of an offset that does not exist, or is not known. PyFlink: ``KafkaOffsetResetStrategy``."""

    LATEST = 0
    """The end of the partition."""

    EARLIEST = 1
    """The first available record."""

    NONE = 2
    """No replacement: the job fails."""


class PartitionOffsetsRetriever(Protocol):
    """Requests of a :class:`KafkaOffsetsInitializer` to Kafka, one for each call.

    Flink: ``OffsetsInitializer.PartitionOffsetsRetriever``.
    """

    def beginning_offsets(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """The first available offsets."""

    def end_offsets(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """The offsets after the last record; with ``isolation.level=read_committed``, before open transactions."""

    def committed_offsets(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """The committed offsets of the group, without partitions that have none; empty without a group."""

    def offsets_for_times(self, timestamps: Mapping[KafkaTopicPartition, int]) -> dict[KafkaTopicPartition, int]:
        """The first offsets at or after timestamps, in milliseconds, without partitions that have none."""


class KafkaOffsetsInitializer(ABC):
    """The offsets at which partitions start, or stop. PyFlink: ``KafkaOffsetsInitializer``.

    It is called once for each partition; then its answer is in the checkpoint. A user-defined one is a subclass with
    :meth:`get_partition_offsets`, as in Flink's Java API; PyFlink has only the built-in ones.

    >>> KafkaOffsetsInitializer.offsets({KafkaTopicPartition("orders", 0): 100})
    KafkaOffsetsInitializer.offsets({orders-0: 100}, EARLIEST)
    """

    @abstractmethod
    def get_partition_offsets(
        self, partitions: Collection[KafkaTopicPartition], partition_offsets_retriever: PartitionOffsetsRetriever
    ) -> Mapping[KafkaTopicPartition, int]:
        """Return the offset of each of some partitions."""

    def get_auto_offset_reset_strategy(self) -> KafkaOffsetResetStrategy:
        """The strategy for a start offset before or after all available records: by default, none."""
        return KafkaOffsetResetStrategy.NONE

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The first available records."""
        return _EndOfPartition(KafkaOffsetResetStrategy.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """The ends of the partitions when the source is first planned.

        Partitions that are found later start at their beginning, as in Flink.
        """
        return _EndOfPartition(KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first record in each partition whose timestamp is at or after this one; its end if there is none.

        Args:
            timestamp: Milliseconds since the epoch, UTC.

        Raises:
            ProgramError: It is not an integer, or below zero.
        """
        if not _is_whole(timestamp):
            raise ProgramError(f"a timestamp is a number of milliseconds since the epoch, not {timestamp!r}")
        return _AtTimestamp(KafkaOffsetResetStrategy.LATEST, timestamp)

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """The committed offset of the source's group; without one, the strategy decides.

        Raises:
            ProgramError: It is not a :class:`KafkaOffsetResetStrategy`.
        """
        return _Specified(_strategy(offset_reset_strategy))

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """Start at the given offsets. The strategy is for offsets that no longer exist, or do not exist yet.

        A partition that is not named starts at the committed offset of the group, if there is a group, else as the
        strategy says; as in Flink.

        Raises:
            ProgramError: They are not offsets of partitions, or it is not a :class:`KafkaOffsetResetStrategy`.
        """
        for partition, offset in offsets.items():
            if not isinstance(partition, KafkaTopicPartition) or not _is_whole(offset):
                raise ProgramError(
                    "offsets are numbers from 0 on, by KafkaTopicPartition(topic, partition), "
                    f"not {partition!r}: {offset!r}"
                )
        return _Specified(_strategy(offset_reset_strategy), tuple(sorted(offsets.items())))


def needs_group(initializer: KafkaOffsetsInitializer) -> bool:
    """Whether an initializer needs a group."""
    return isinstance(initializer, _Specified) and not initializer.given


def starting_offsets(
    initializer: KafkaOffsetsInitializer,
    partitions: Collection[KafkaTopicPartition],
    retriever: PartitionOffsetsRetriever,
) -> dict[KafkaTopicPartition, int]:
    """The start offsets of partitions; an offset without records is replaced by the initializer's strategy.

    Raises:
        DataError: if an offset has no records, and there is no such strategy.
    """
    starts = specified(initializer, partitions, retriever)
    first, last = retriever.beginning_offsets(partitions), retriever.end_offsets(partitions)
    strategy = initializer.get_auto_offset_reset_strategy()
    for partition, offset in starts.items():
        if first[partition] <= offset <= last[partition]:
            continue
        if strategy is KafkaOffsetResetStrategy.NONE:
            raise DataError(
                f"{partition} has no offset {offset} to start from: it begins at {first[partition]} and ends at "
                f"{last[partition]}; start from another one, or give {initializer!r} a KafkaOffsetResetStrategy"
            )
        starts[partition] = (first if strategy is KafkaOffsetResetStrategy.EARLIEST else last)[partition]
    return starts


def specified(
    initializer: KafkaOffsetsInitializer,
    partitions: Collection[KafkaTopicPartition],
    retriever: PartitionOffsetsRetriever,
) -> dict[KafkaTopicPartition, int]:
    """Return the offsets of an initializer for some partitions.

    Raises:
        ProgramError: if it does not return an offset for each.
    """
    found = initializer.get_partition_offsets(partitions, retriever)
    for partition in partitions:
        if not _is_whole(found.get(partition)):
            raise ProgramError(
                f"{initializer!r} must give an offset for {partition}, and gave {found.get(partition)!r}"
            )
    return {partition: found[partition] for partition in partitions}


@dataclass(frozen=True, slots=True)
class Subscription:
    """The partitions to read: those of some topics, of topics whose names match a pattern, or some partitions."""

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    partitions: tuple[KafkaTopicPartition, ...] = ()

    def named_topics(self) -> Collection[str]:
        """The named topics; empty for a pattern."""
        return dict.fromkeys([*self.topics, *(partition.topic for partition in self.partitions)])

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"the pattern {self.pattern.pattern!r}"
        return ", ".join(self.topics) or ", ".join(map(str, self.partitions))


@dataclass(frozen=True, slots=True)
class _WithStrategy(KafkaOffsetsInitializer):
    strategy: KafkaOffsetResetStrategy

    def get_auto_offset_reset_strategy(self) -> KafkaOffsetResetStrategy:
        return self.strategy


@dataclass(frozen=True, slots=True)
class _EndOfPartition(_WithStrategy):
    def get_partition_offsets(
        self, partitions: Collection[KafkaTopicPartition], partition_offsets_retriever: PartitionOffsetsRetriever
    ) -> Mapping[KafkaTopicPartition, int]:
        return _at_edge(self.strategy, partitions, partition_offsets_retriever)

    def __repr__(self) -> str:
        return f"KafkaOffsetsInitializer.{self.strategy.name.lower()}()"


@dataclass(frozen=True, slots=True)
class _AtTimestamp(_WithStrategy):
    at_ms: int

    def get_partition_offsets(
        self, partitions: Collection[KafkaTopicPartition], partition_offsets_retriever: PartitionOffsetsRetriever
    ) -> Mapping[KafkaTopicPartition, int]:
        ends = partition_offsets_retriever.end_offsets(partitions)  # first, so that later records come after it
        return ends | partition_offsets_retriever.offsets_for_times(dict.fromkeys(partitions, self.at_ms))

    def __repr__(self) -> str:
        return f"KafkaOffsetsInitializer.timestamp({self.at_ms})"


@dataclass(frozen=True, slots=True)
class _Specified(_WithStrategy):
    """Offsets by partition; by default the committed ones."""

    given: tuple[tuple[KafkaTopicPartition, int], ...] = ()

    def get_partition_offsets(
        self, partitions: Collection[KafkaTopicPartition], partition_offsets_retriever: PartitionOffsetsRetriever
    ) -> Mapping[KafkaTopicPartition, int]:
        by_partition = dict(self.given)
        found = {partition: by_partition[partition] for partition in partitions if partition in by_partition}
        if unnamed := [partition for partition in partitions if partition not in found]:
            found |= partition_offsets_retriever.committed_offsets(unnamed)
        if unknown := [partition for partition in partitions if partition not in found]:
            if self.strategy is KafkaOffsetResetStrategy.NONE:
                raise DataError(
                    f"no offset is committed for {', '.join(map(str, unknown))}; commit one, or give {self!r} a "
                    "KafkaOffsetResetStrategy"
                )
            found |= _at_edge(self.strategy, unknown, partition_offsets_retriever)
        return found

    def __repr__(self) -> str:
        if not self.given:
            return f"KafkaOffsetsInitializer.committed_offsets({self.strategy.name})"
        shown = ", ".join(f"{partition}: {offset}" for partition, offset in self.given)
        return f"KafkaOffsetsInitializer.offsets({{{shown}}}, {self.strategy.name})"


def _at_edge(
    strategy: KafkaOffsetResetStrategy,
    partitions: Collection[KafkaTopicPartition],
    retriever: PartitionOffsetsRetriever,
) -> dict[KafkaTopicPartition, int]:
    is_first = strategy is KafkaOffsetResetStrategy.EARLIEST
    return retriever.beginning_offsets(partitions) if is_first else retriever.end_offsets(partitions)


def _strategy(strategy: object) -> KafkaOffsetResetStrategy:
    if not isinstance(strategy, KafkaOffsetResetStrategy):
        raise ProgramError(f"a KafkaOffsetResetStrategy is EARLIEST, LATEST or NONE, not {strategy!r}")
    return strategy


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
