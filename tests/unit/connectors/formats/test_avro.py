"""Rows as records of Avro: what is written is read as it was, and schemas have the types that Flink gives them."""

import datetime as dt
import json
import pickle
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types
from eventide.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema, AvroSchema
from eventide.errors import DataError, ProgramError, TypeMismatch

fastavro = pytest.importorskip("fastavro")

SCHEMA = """{"type": "record", "name": "Visit", "fields": [
    {"name": "user", "type": "string"},
    {"name": "count", "type": ["null", "long"], "default": null},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "second", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "time", "type": {"type": "long", "logicalType": "time-micros"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "data", "type": "bytes"},
    {"name": "pair", "type": {"type": "fixed", "name": "Pair", "size": 2}},
    {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
    {"name": "ratios", "type": {"type": "map", "values": "double"}},
    {"name": "small", "type": "float"},
    {"name": "seen", "type": "boolean"},
    {"name": "place", "type": ["null", {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}]}]},
    {"name": "other", "type": "Place"}]}"""
PLACE = Types.ROW_NAMED(["x"], [Types.INT()])
TYPES = {
    "user": Types.STRING(),
    "count": Types.LONG(),
    "at": Types.SQL_TIMESTAMP(),
    "second": Types.SQL_TIMESTAMP(),
    "day": Types.SQL_DATE(),
    "time": Types.SQL_TIME(),
    "price": Types.BIG_DEC(10, 2),
    "kind": Types.STRING(),
    "id": Types.STRING(),
    "data": Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "pair": Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "tags": Types.OBJECT_ARRAY(Types.STRING()),
    "ratios": Types.MAP(Types.STRING(), Types.DOUBLE()),
    "small": Types.FLOAT(),
    "seen": Types.BOOLEAN(),
    "place": PLACE,
    "other": PLACE,
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PLACES = st.integers(-(2**31), 2**31 - 1).map(lambda x: Row(x=x))
ROWS = st.builds(
    Row,
    user=TEXT,
    count=st.none() | st.integers(-(2**63), 2**63 - 1),
    at=st.datetimes(),
    second=st.datetimes().map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
    day=st.dates(),
    time=st.times(),
    price=st.decimals(-(10**7), 10**7, places=2),
    kind=st.sampled_from("AB"),
    id=TEXT,
    data=st.binary(),
    pair=st.binary(min_size=2, max_size=2),
    tags=st.lists(st.none() | TEXT),
    ratios=st.dictionaries(TEXT, st.floats(allow_nan=False)),
    small=st.floats(width=32, allow_nan=False),
    seen=st.booleans(),
    place=st.none() | PLACES,
    other=PLACES,
)
READER = AvroRowDeserializationSchema(avro_schema_string=SCHEMA)
WRITER = AvroRowSerializationSchema(avro_schema_string=SCHEMA)


@given(st.lists(ROWS, max_size=3))
def test_rows_come_back_as_they_were_one_by_one_and_in_columns(rows):
    messages = [*map(WRITER.serialize, rows)]
    assert [*map(READER.deserialize, messages)] == rows
    column = READER.deserialize_column(pa.array([*messages, None], pa.binary()))
    assert column.equals(READER.get_produced_type().to_arrow([*rows, None]))


def test_a_schema_has_the_type_of_its_rows():
    assert READER.get_produced_type() == Types.ROW_NAMED([*TYPES], [*TYPES.values()])
    assert AvroSchema.parse_string(SCHEMA).type_info() == READER.get_produced_type()


def test_schemas_may_stand_in_a_file_and_travel(tmp_path):
    (tmp_path / "visit.avsc").write_text(SCHEMA)
    schema = AvroSchema.parse_file(str(tmp_path / "visit.avsc"))
    assert schema == AvroSchema.parse_string(SCHEMA) == pickle.loads(pickle.dumps(schema))
    assert str(schema) == SCHEMA
    assert pickle.loads(pickle.dumps(READER)).get_produced_type() == READER.get_produced_type()
    with pytest.raises(ProgramError, match=r"nothing\.avsc cannot be read"):
        AvroSchema.parse_file(str(tmp_path / "nothing.avsc"))


def test_bytes_are_those_of_avro():
    schema = (
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}'
    )
    assert AvroRowSerializationSchema(avro_schema_string=schema).serialize(Row(a=-2, b="hi")) == b"\x03\x04hi"
    assert AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(b"\x03\x04hi") == Row(a=-2, b="hi")


def test_bad_messages_and_elements_are_named():
    with pytest.raises(DataError, match=r"the message b'\\x02' cannot be read as Avro of ROW"):
        READER.deserialize(b"\x02")
    schema = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}'
    writer = AvroRowSerializationSchema(avro_schema_string=schema)
    with pytest.raises(TypeMismatch, match="field a: expected LONG, got 'x'"):
        writer.serialize(Row(a="x"))
    with pytest.raises(DataError, match=r"Row\(a=None\) cannot be written as Avro"):
        writer.serialize(Row(a=None))
    with pytest.raises(DataError, match="None"):
        writer.serialize(None)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("{", "is not an Avro schema"),
        ('{"type": "recor"}', "is not an Avro schema"),
        ('"string"', "needs the type of its rows"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}]}', "of several types"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "null"}]}', "no type for 'a'"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "R"]}]}', "no type for 'a'.*'R'"),
    ],
)
def test_a_schema_that_is_none_or_has_no_type_is_refused(schema, says):
    with pytest.raises(ProgramError, match=says):
        AvroRowDeserializationSchema(avro_schema_string=schema)


def test_a_class_of_java_has_no_meaning():
    with pytest.raises(ProgramError, match="avro_schema_string"):
        AvroRowSerializationSchema(record_class="com.acme.Visit")


def test_decimals_have_their_digits():
    price = Decimal("1.5")
    schema = """{"type": "record", "name": "R", "fields": [
        {"name": "p", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}}]}"""
    message = AvroRowSerializationSchema(avro_schema_string=schema).serialize(Row(p=price))
    assert str(AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(message).p) == "1.50"


def test_points_in_time_are_in_utc():
    schema = """{"type": "record", "name": "R", "fields": [
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}"""
    later = dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    assert AvroRowSerializationSchema(avro_schema_string=schema).serialize(Row(t=later)) == b"\x00"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("boolean", None),
        ({"type": "array", "items": "boolean"}, [True, None]),
        ({"type": "map", "values": "boolean"}, {"x": None}),
        (["null", {"type": "record", "name": "Q", "fields": [{"name": "b", "type": "boolean"}]}], Row(b=None)),
    ],
)
def test_a_truth_that_is_none_is_not_written_as_false(kind, value):
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]})
    writer = AvroRowSerializationSchema(avro_schema_string=schema)
    with pytest.raises(DataError, match="None where the schema has boolean alone"):
        writer.serialize(Row(a=value))


def test_none_is_written_where_the_schema_has_null():
    kinds = [["null", "boolean"], {"type": "array", "items": ["boolean", "null"]}]
    fields = [{"name": name, "type": kind} for name, kind in zip("ab", kinds, strict=True)]
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    row = Row(a=None, b=[None, True])
    message = AvroRowSerializationSchema(avro_schema_string=schema).serialize(row)
    assert AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(message) == row
