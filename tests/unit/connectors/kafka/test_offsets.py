"""Where partitions start and stop, by each offsets initializer; what Kafka would say is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

import pytest
from confluent_kafka import OFFSET_END, OFFSET_INVALID, KafkaException, TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo

from eventide.connectors.kafka._cluster import offsets_in
from eventide.connectors.kafka._offsets import specified, starting_offsets
from eventide.connectors.kafka.library import Meaning, meaning_of
from eventide.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
    PartitionOffsetsRetriever,
)
from eventide.errors import DataError, ProgramError

A, B = KafkaTopicPartition("a", 0), KafkaTopicPartition("a", 1)
EARLIEST, LATEST, NONE = (
    KafkaOffsetResetStrategy.EARLIEST,
    KafkaOffsetResetStrategy.LATEST,
    KafkaOffsetResetStrategy.NONE,
)


@dataclass
class GivenOffsets:
    """Partitions with the offsets 10 to 99, of which one is at each millisecond, and what was committed."""

    committed: Mapping[KafkaTopicPartition, int] = field(default_factory=dict)

    def beginning_offsets(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        return dict.fromkeys(partitions, 10)

    def end_offsets(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        return dict.fromkeys(partitions, 100)

    def committed_offsets(self, partitions: Collection[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        return {partition: self.committed[partition] for partition in partitions if partition in self.committed}

    def offsets_for_times(self, timestamps: Mapping[KafkaTopicPartition, int]) -> dict[KafkaTopicPartition, int]:
        return {partition: max(10, at) for partition, at in timestamps.items() if at < 100}


def starts(initializer: KafkaOffsetsInitializer, **committed: int) -> list[int]:
    given = GivenOffsets({KafkaTopicPartition("a", int(name[1:])): at for name, at in committed.items()})
    found = starting_offsets(initializer, [A, B], given)
    return [found[A], found[B]]


@pytest.mark.parametrize(
    ("initializer", "expected"),
    [
        (KafkaOffsetsInitializer.earliest(), [10, 10]),
        (KafkaOffsetsInitializer.latest(), [100, 100]),
        (KafkaOffsetsInitializer.timestamp(50), [50, 50]),
        (KafkaOffsetsInitializer.timestamp(0), [10, 10]),
        (KafkaOffsetsInitializer.timestamp(100), [100, 100]),
        (KafkaOffsetsInitializer.committed_offsets(EARLIEST), [42, 10]),
        (KafkaOffsetsInitializer.committed_offsets(LATEST), [42, 100]),
        (KafkaOffsetsInitializer.offsets({A: 20, B: 30}), [20, 30]),
        (KafkaOffsetsInitializer.offsets({B: 30}), [42, 30]),
        (KafkaOffsetsInitializer.offsets({A: 20}), [20, 10]),
        (KafkaOffsetsInitializer.offsets({A: 20}, LATEST), [20, 100]),
        (KafkaOffsetsInitializer.offsets({A: 9, B: 101}), [10, 10]),
        (KafkaOffsetsInitializer.offsets({A: 9, B: 101}, LATEST), [100, 100]),
        (KafkaOffsetsInitializer.offsets({A: 10, B: 100}, NONE), [10, 100]),
    ],
)
def test_a_start_is_as_the_initializer_says_within_what_is_there(
    initializer: KafkaOffsetsInitializer, expected: list[int]
) -> None:
    assert starts(initializer, _0=42) == expected


def test_what_was_not_committed_is_an_error_without_a_strategy() -> None:
    with pytest.raises(DataError, match="no offset is committed for a-1"):
        starts(KafkaOffsetsInitializer.committed_offsets(), _0=42)


def test_a_start_that_is_not_there_is_an_error_without_a_strategy() -> None:
    with pytest.raises(DataError, match="a-0 has no offset 9 to start from: it begins at 10 and ends at 100"):
        starts(KafkaOffsetsInitializer.offsets({A: 9, B: 50}, NONE))


def test_a_stop_may_lie_behind_what_is_there() -> None:
    stops = specified(KafkaOffsetsInitializer.offsets({A: 500, B: 3}), [A, B], GivenOffsets())
    assert stops == {A: 500, B: 3}


class Middle(KafkaOffsetsInitializer):
    """One of the user's own."""

    def get_partition_offsets(
        self, partitions: Collection[KafkaTopicPartition], partition_offsets_retriever: PartitionOffsetsRetriever
    ) -> dict[KafkaTopicPartition, int]:
        ends = partition_offsets_retriever.end_offsets(partitions)
        return {partition: end // 2 for partition, end in ends.items() if partition == A or end < 100}


def test_an_initializer_of_the_user_s_own_asks_for_what_it_needs() -> None:
    assert starting_offsets(Middle(), [A], GivenOffsets()) == {A: 50}


def test_an_initializer_of_the_user_s_own_must_know_all_partitions() -> None:
    with pytest.raises(ProgramError, match=r"Middle.* must give an offset for a-1, and gave None"):
        starting_offsets(Middle(), [A, B], GivenOffsets())


@pytest.mark.parametrize("wrong", [{A: -1}, {A: True}, {("a", 0): 5}])
def test_offsets_are_numbers_by_partition(wrong: dict[KafkaTopicPartition, int]) -> None:
    with pytest.raises(ProgramError, match="offsets are numbers from 0 on, by KafkaTopicPartition"):
        KafkaOffsetsInitializer.offsets(wrong)


def test_timestamps_and_strategies_are_checked() -> None:
    with pytest.raises(ProgramError, match="a timestamp is a number of milliseconds"):
        KafkaOffsetsInitializer.timestamp(-1)
    with pytest.raises(ProgramError, match="a KafkaOffsetResetStrategy is EARLIEST, LATEST or NONE, not 'latest'"):
        KafkaOffsetsInitializer.committed_offsets("latest")  # type: ignore[arg-type]


def answers(**offsets: int) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
    """Answers of a client to a request for offsets of partition 0, by topic."""
    found = {}
    for topic, offset in offsets.items():
        found[TopicPartition(topic, 0)] = Future[ListOffsetsResultInfo]()
        found[TopicPartition(topic, 0)].set_result(ListOffsetsResultInfo(offset, -1, -1))
    return found


def test_a_partition_that_a_broker_leaves_out_is_asked_for_again() -> None:
    """A broker that stops answers some requests in part; that is no end of a partition."""
    assert offsets_in(answers(a=7, later=OFFSET_END)) == {A: 7, KafkaTopicPartition("later", 0): OFFSET_END}
    with pytest.raises(KafkaException) as raised:
        offsets_in(answers(a=7, b=OFFSET_INVALID))
    assert meaning_of(raised.value.args[0]) is Meaning.WAIT


def test_a_partition_is_a_value_with_a_name() -> None:
    dashed = KafkaTopicPartition("a-b-1", 12)
    assert KafkaTopicPartition.of_name(str(dashed)) == dashed
    assert {A, KafkaTopicPartition("a", 0)} == {A}
