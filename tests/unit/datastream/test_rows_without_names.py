"""Rows whose fields have no names are written by a format with names: by position, as in Flink, in all formats."""

import json

import pytest

from eventide.common import Row, Types
from eventide.datastream.formats.avro import AvroRowSerializationSchema
from eventide.datastream.formats.csv import CsvRowSerializationSchema
from eventide.datastream.formats.json import JsonRowSerializationSchema
from eventide.errors import TypeMismatch

FIELDS = [Types.INT(), Types.STRING()]
UNNAMED, NAMED = Types.ROW(FIELDS), Types.ROW_NAMED(["id", "name"], FIELDS)
AVRO = {
    "type": "record",
    "name": "User",
    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}],
}
FORMATS = {
    "avro": (AvroRowSerializationSchema(avro_schema_string=json.dumps(AVRO)), b"\x02\x04hi"),
    "json": (JsonRowSerializationSchema.Builder().with_type_info(NAMED).build(), b'{"id":1,"name":"hi"}'),
    "csv": (CsvRowSerializationSchema.Builder(NAMED).build(), b"1,hi\n"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_with_names_writes_them_by_position(name):
    schema, expected = FORMATS[name]
    [row] = UNNAMED.as_declared([(1, "hi")])
    assert schema.serialize(row) == expected
    assert schema.serialize_column(UNNAMED.to_arrow([row]), UNNAMED).to_pylist() == [expected]


def test_within_a_row_too():
    inner = Types.ROW_NAMED(["at", "user"], [Types.LONG(), NAMED])
    assert inner.as_declared([Row(at=5, user=Row(f0=1, f1="hi"))]) == [Row(at=5, user=Row(id=1, name="hi"))]


@pytest.mark.parametrize("row", [Row(f0=1, f1="hi", f2=2), Row(f1="hi", f0=1), Row(f0=1, name="hi")])
def test_other_names_are_refused(row):
    with pytest.raises(TypeMismatch):
        NAMED.as_declared([row])
