"""Messages as elements: as columns or one by one, and what becomes of those that cannot be read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import DeserializationSchema, SimpleStringSchema, Types
from eventide.connectors.kafka._records import Decoder
from eventide.datastream.connectors.kafka import (
    ConsumerRecord,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
)
from eventide.datastream.connectors.source import TimestampedBatch, Unreadable
from eventide.datastream.formats.json import JsonRowDeserializationSchema
from eventide.datastream.window import TimestampedValue
from eventide.errors import DataError, ProgramError

PART = KafkaTopicPartition("orders", 3)
ROW = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])
JSON = JsonRowDeserializationSchema.builder().type_info(ROW).build()


def a_message(
    value: bytes | None,
    at: int,
    key: bytes | None = None,
    headers: list[tuple[str, bytes | None]] | None = None,
) -> Message:
    """A message as the client library gives it."""
    place = {"topic": PART.topic, "partition": PART.partition, "offset": at}
    return Message(value=value, key=key, headers=headers, timestamp=(1, 1_000 * at), **place)


def builder(schema: DeserializationSchema | KafkaRecordDeserializationSchema) -> KafkaSourceBuilder:
    building = KafkaSource.builder().set_bootstrap_servers("a").set_topics("orders")
    if isinstance(schema, DeserializationSchema):
        return building.set_value_only_deserializer(schema)
    return building.set_deserializer(schema)


def decoded(building: KafkaSourceBuilder, *contents: bytes | Message | None) -> tuple[list[Any], dict[str, int]]:
    """The results of messages at the offsets from 0 on: (element, timestamp), or what else it is; and the counts."""
    decoder = Decoder(building.build()._settings.deserializer)
    found: list[Any] = []
    messages = [c if isinstance(c, Message) else a_message(c, at) for at, c in enumerate(contents)]
    for item in decoder.items(PART, messages):
        if isinstance(item, TimestampedBatch):
            rows = item.rows.to_pylist()
            elements = [row["value"] for row in rows] if item.rows.schema.names == ["value"] else rows
            found += zip(elements, item.timestamps.to_pylist(), strict=True)
        else:
            found.append((item.value, item.timestamp) if isinstance(item, TimestampedValue) else item)
    return found, dict(decoder.counts)


def apart(found: list[Any]) -> tuple[list[Any], list[Unreadable]]:
    """The elements, and what cannot be read."""
    bad = [item for item in found if isinstance(item, Unreadable)]
    return [item for item in found if not isinstance(item, Unreadable)], bad


def test_decimal_numbers_without_a_declared_scale_keep_their_digits() -> None:
    row_type = Types.ROW_NAMED(["price"], [Types.BIG_DEC()])
    schema = JsonRowDeserializationSchema.builder().type_info(row_type).build()
    found, _ = decoded(builder(schema), b'{"price": 1.50}', b'{"price": 2}')
    assert [str(element.price) for element, _ in found] == ["1.50", "2"]


def test_text_is_a_column_with_the_timestamps_of_the_records() -> None:
    [item] = Decoder(builder(SimpleStringSchema()).build()._settings.deserializer).items(
        PART, [a_message(b"a", 0), a_message(b"b", 1)]
    )
    assert isinstance(item, TimestampedBatch)
    assert item.rows.to_pydict() == {"value": ["a", "b"]}
    assert item.timestamps == pa.array([0, 1_000])


def test_json_is_columns() -> None:
    found, counts = decoded(builder(JSON), b'{"user": "wren", "amount": 5}', b'{"amount": 6, "more": []}')
    assert found == [({"user": "wren", "amount": 5}, 0), ({"user": None, "amount": 6}, 1_000)]
    assert counts == {}


def test_a_value_without_an_element_is_left_out_and_counted() -> None:
    found, counts = decoded(builder(JSON), b"{}", None, b"null", b'{"amount": 1}')
    assert [at for _, at in found] == [0, 3_000]
    assert counts == {"numRecordsWithoutElement": 2}


def test_bytes_stay_as_they_are() -> None:
    from eventide.common import ByteArraySchema

    assert decoded(builder(ByteArraySchema()), b"\xff\x00", b"") == ([(b"\xff\x00", 0), (b"", 1_000)], {})


def test_a_record_that_cannot_be_read_comes_with_its_place_and_all_others_are_columns_still() -> None:
    good = [b'{"amount": %d}' % i for i in range(300)]
    found, counts = decoded(builder(JSON), *good[:150], b"what?", *good[:50], a_message(b"[", 201, key=b"k"), *good)
    bad = [item for item in found if isinstance(item, Unreadable)]
    places = [(one.split, one.position, one.raw, one.key, one.timestamp) for one in bad]
    assert places == [("orders-3", 150, b"what?", None, 150_000), ("orders-3", 201, b"[", b"k", 201_000)]
    assert str(bad[0].error).startswith("the message b'what?' cannot be read as JSON of ROW(user: STRING")
    assert (len(found), counts) == (502, {})


class OwnValues(DeserializationSchema):
    """A schema of the user's own, whose elements have no declared type."""

    def deserialize(self, message: bytes) -> Any:
        return None if message == b"none" else {"length": len(message), "first": message[0]}


def test_a_schema_of_the_user_s_own_may_give_any_object() -> None:
    found, counts = decoded(builder(OwnValues()), b"ab", b"none", b"", b"c")
    good, bad = apart(found)
    assert good == [({"length": 2, "first": 97}, 0), ({"length": 1, "first": 99}, 3_000)]
    assert [(one.position, type(one.error)) for one in bad] == [(2, IndexError)]
    assert counts == {"numRecordsWithoutElement": 1}


class ByHeader(KafkaRecordDeserializationSchema):
    """Sees one record at a time."""

    def deserialize(self, record: ConsumerRecord) -> Any:
        return record.topic, record.partition, record.offset, record.timestamp, record.key, dict(record.headers)["kind"]


def test_a_deserializer_sees_the_whole_record() -> None:
    message = a_message(b"v", 7, b"k", [("kind", b"order"), ("empty", None)])
    assert decoded(builder(ByHeader()), message) == ([(("orders", 3, 7, 7_000, b"k", b"order"), 7_000)], {})
    ((bad,), _) = decoded(builder(ByHeader()), b"v")
    assert (bad.position, repr(bad.error)) == (0, "KeyError('kind')")


class Columns(KafkaRecordDeserializationSchema):
    """Sees many records at once."""

    def deserialize_batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        if any(value == b"bad" for value in records.column("value").to_pylist()):
            raise ValueError("bad")
        return records.select(["topic", "partition", "offset", "key", "headers"])


def test_a_deserializer_sees_many_records_as_columns() -> None:
    messages = [a_message(b"v", 7, b"k", [("kind", b"order")]), a_message(None, 9)]
    found, _ = decoded(builder(Columns()), *messages)
    assert found == [
        (
            {
                "topic": "orders",
                "partition": 3,
                "offset": 7,
                "key": b"k",
                "headers": [{"key": "kind", "value": b"order"}],
            },
            7_000,
        ),
        ({"topic": "orders", "partition": 3, "offset": 9, "key": None, "headers": []}, 9_000),
    ]


def test_one_bad_record_does_not_take_its_batch_along() -> None:
    found, _ = decoded(builder(Columns()), *[b"a"] * 5, b"bad", *[b"b"] * 3)
    good, bad = apart(found)
    assert [row["offset"] for row, _ in good] == [0, 1, 2, 3, 4, 6, 7, 8]
    assert [one.position for one in bad] == [5]


class Fewer(KafkaRecordDeserializationSchema):
    def deserialize_batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return records.slice(1)


def test_a_batch_must_have_a_row_for_each_record() -> None:
    with pytest.raises(ProgramError, match=r"Fewer.deserialize_batch gave 1 rows for 2 records"):
        decoded(builder(Fewer()), b"a", b"b")


VALUES = st.lists(
    st.one_of(
        st.none(),
        st.sampled_from([b"", b"{}", b"null", b"[]", b"{", b'{"amount": 1.5}', b'{"amount": "7"}', b'{"user": 1}{}']),
        st.sampled_from([b'{"amount": 99999999999999999999}', b'{\n"user": "a"\n}', b'{"amount": "x"}', b"\xff"]),
        st.binary(max_size=8),
    ),
    max_size=100,
)


@given(VALUES)
def test_columns_give_what_messages_give_one_by_one(values: list[bytes | None]) -> None:
    expected, unread, left_out = [], [], 0
    for at, value in enumerate(values):
        try:
            row = JSON.deserialize(value)
        except DataError:
            unread.append(at)
            continue
        if row is None:
            left_out += 1
        else:
            expected.append((row.as_dict(), 1_000 * at))
    found, counts = decoded(builder(JSON), *values)
    good, bad = apart(found)
    assert (good, [one.position for one in bad]) == (expected, unread)
    assert counts == ({"numRecordsWithoutElement": left_out} if left_out else {})
