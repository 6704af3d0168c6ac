"""Records that elements become: without a broker, column by column and one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, SimpleStringSchema, Types
from eventide.common.serialization import ByteArraySchema, SerializationSchema
from eventide.common.typeinfo import TypeInformation
from eventide.connectors.kafka.sink import RecordEncoder
from eventide.datastream.connectors.kafka import (
    HeaderProvider,
    KafkaPartitioner,
    KafkaRecordSerializationSchema,
    KafkaTopicSelector,
)
from eventide.datastream.formats.json import JsonRowSerializationSchema
from eventide.datastream.window import TimeWindow
from eventide.errors import DataError, ProgramError

PAIR = Types.ROW_NAMED(["user", "n"], [Types.STRING(), Types.LONG()])


def json_of(type_info: TypeInformation) -> JsonRowSerializationSchema:
    return JsonRowSerializationSchema.builder().with_type_info(type_info).build()


def encoder(builder: Any) -> RecordEncoder:
    return RecordEncoder(builder.build(), lambda topic: range(3))


def records_to(topic: str = "out") -> Any:
    return KafkaRecordSerializationSchema.builder().set_topic(topic)


def both_ways(builder: Any, values: list[Any], timestamps: list[int | None], type_info: TypeInformation) -> dict:
    """The records, which are the same of a column and of elements one by one."""
    made = encoder(builder)
    of_column = made.encode(type_info.to_arrow(values), pa.array(timestamps, pa.int64()), type_info)
    one_by_one = made.encode(list(values), timestamps, type_info)
    assert of_column.equals(one_by_one)
    return of_column.to_pydict()


def test_value_and_timestamp_are_all_there_is_by_default() -> None:
    builder = records_to().set_value_serialization_schema(SimpleStringSchema())
    assert both_ways(builder, ["a", "é"], [5, 6], Types.STRING()) == {
        "value": [b"a", "é".encode()],
        "timestamp": [5, 6],
    }


def test_no_time_and_a_time_before_1970_are_no_timestamp() -> None:
    builder = records_to().set_value_serialization_schema(SimpleStringSchema())
    assert both_ways(builder, ["a", "b", "c"], [None, -1, 0], Types.STRING())["timestamp"] == [None, None, 0]


def test_key_topic_and_headers_follow_from_the_element() -> None:
    builder = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(lambda row: f"of-{row.user}")
        .set_key_serialization_schema(_UserSchema())
        .set_value_serialization_schema(json_of(PAIR))
        .set_header_provider(lambda row: [("n", b"%d" % row.n), ("n", "text"), ("none", None)])
    )
    assert both_ways(builder, [Row(user="a", n=1), Row(user="b", n=2)], [1, 2], PAIR) == {
        "value": [b'{"user":"a","n":1}', b'{"user":"b","n":2}'],
        "timestamp": [1, 2],
        "key": [b"a", b"b"],
        "topic": ["of-a", "of-b"],
        "headers": [
            [{"name": "n", "value": b"%d" % n}, {"name": "n", "value": b"text"}, {"name": "none", "value": None}]
            for n in (1, 2)
        ],
    }


class _UserSchema(SerializationSchema):
    def serialize(self, element: Any) -> bytes:
        return element.user.encode()


def test_a_partitioner_sees_the_whole_record_and_the_partitions() -> None:
    seen = []

    def choose(*arguments: Any) -> int:
        seen.append(arguments)
        return 2

    builder = records_to().set_key_serialization_schema(_UserSchema()).set_value_serialization_schema(json_of(PAIR))
    rows = encoder(builder.set_partitioner(choose)).encode([Row(user="a", n=1)], [1], PAIR)
    assert rows.column("partition").to_pylist() == [2]
    assert seen == [(Row(user="a", n=1), b"a", b'{"user":"a","n":1}', "out", range(3))]


def test_objects_do_what_functions_do() -> None:
    class Selector(KafkaTopicSelector):
        def apply(self, data: Any) -> str:
            return "selected"

    class Partitioner(KafkaPartitioner):
        def partition(self, record, key, value, target_topic, partitions) -> int:
            return len(target_topic) % 3

    class Headers(HeaderProvider):
        def get_headers(self, input: Any) -> dict[str, str]:
            return {"a": "b"}

    builder = KafkaRecordSerializationSchema.builder().set_topic_selector(Selector())
    builder.set_value_serialization_schema(ByteArraySchema())
    rows = encoder(builder.set_partitioner(Partitioner()).set_header_provider(Headers())).encode(
        [b"x"], [None], Types.PRIMITIVE_ARRAY(Types.BYTE())
    )
    assert rows.to_pylist() == [
        {
            "value": b"x",
            "timestamp": None,
            "topic": "selected",
            "partition": 2,
            "headers": [{"name": "a", "value": b"b"}],
        }
    ]


def test_a_value_may_be_none_which_deletes_its_key() -> None:
    class Tombstone(SerializationSchema):
        def serialize(self, element: Any) -> bytes:
            return None  # type: ignore[return-value]

    builder = records_to().set_value_serialization_schema(Tombstone())
    assert both_ways(builder, ["a"], [1], Types.STRING())["value"] == [None]


def test_a_partition_that_is_not_there_and_a_name_that_is_none_are_refused() -> None:
    builder = records_to().set_value_serialization_schema(SimpleStringSchema())
    with pytest.raises(DataError, match=r"chose 3, and the partitions of out are \[0, 1, 2\]") as caught:
        encoder(builder.set_partitioner(lambda *_: 3)).encode(["a"], [1], Types.STRING())
    assert caught.value.__notes__ == ["The element was 'a'"]
    selecting = KafkaRecordSerializationSchema.builder().set_topic_selector(lambda element: "of " + element)
    with pytest.raises(ProgramError, match="'of a' cannot be the name of a Kafka topic"):
        encoder(selecting.set_value_serialization_schema(SimpleStringSchema())).encode(["a"], [1], Types.STRING())


def test_an_element_at_which_a_function_fails_is_named() -> None:
    builder = records_to().set_value_serialization_schema(SimpleStringSchema())
    with pytest.raises(ZeroDivisionError) as caught:
        encoder(builder.set_header_provider(lambda element: {"a": 1 // len(element)})).encode(
            ["a", ""], [1, 2], Types.STRING()
        )
    assert caught.value.__notes__ == ["The element was ''"]


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda b: b.set_value_serialization_schema(SimpleStringSchema()).build(), "records need a topic"),
        (lambda b: b.set_topic("out").build(), "records need a value"),
        (lambda b: b.set_topic("a b"), "cannot be the name of a Kafka topic"),
        (lambda b: b.set_topic(".."), "cannot be the name of a Kafka topic"),
        (lambda b: b.set_topic_selector("out"), "takes a KafkaTopicSelector or a function"),
        (lambda b: b.set_value_serialization_schema(str), "takes a SerializationSchema"),
    ],
)
def test_what_is_missing_or_wrong_is_said_when_the_schema_is_built(build: Any, says: str) -> None:
    with pytest.raises(ProgramError, match=says):
        build(KafkaRecordSerializationSchema.builder())


MANY = Types.ROW_NAMED(
    ["text", "whole", "small", "truth", "real", "list", "row", "window"],
    [
        Types.STRING(),
        Types.LONG(),
        Types.INT(),
        Types.BOOLEAN(),
        Types.DOUBLE(),
        Types.LIST(Types.STRING()),
        PAIR,
        Types.TIME_WINDOW(),
    ],
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ROWS = st.builds(
    Row,
    text=st.none() | TEXT,
    whole=st.none() | st.integers(-(2**63), 2**63 - 1),
    small=st.none() | st.integers(-(2**31), 2**31 - 1),
    truth=st.none() | st.booleans(),
    real=st.none() | st.floats(),
    list=st.none() | st.lists(st.none() | TEXT),
    row=st.none() | st.builds(Row, user=st.none() | TEXT, n=st.none() | st.integers(-(2**63), 2**63 - 1)),
    window=st.builds(TimeWindow, st.integers(-(10**14), 0), st.integers(1, 10**14)),
)


@given(st.lists(ROWS))
def test_json_of_a_column_is_that_of_its_rows(rows: list[Row]) -> None:
    schema = json_of(MANY)
    found = schema.serialize_column(MANY.to_arrow(rows), MANY)
    assert found.type == pa.binary()
    assert found.to_pylist() == [schema.serialize(row) for row in rows]


def test_json_of_rows_of_another_type_is_written_one_by_one_and_none_is_refused() -> None:
    elsewhere = Types.TUPLE([Types.STRING(), Types.LONG()])
    assert json_of(PAIR).serialize_column(elsewhere.to_arrow([("a", 1)]), elsewhere).to_pylist() == [
        b'{"user":"a","n":1}'
    ]
    with pytest.raises(DataError, match="no JSON object for None"):
        json_of(PAIR).serialize_column(PAIR.to_arrow([None]), PAIR)
