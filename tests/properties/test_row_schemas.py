"""Schemas of rows: what is written is read as it was, and messages mean the same one by one and in columns."""

import math
import re
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eventide.common import Row, Types
from eventide.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from eventide.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from eventide.errors import DataError
from support.row_values import FOR_ARROW, SINGLE, nested, row_types, rows_of, spoilt

NUMBER = Types.ROW_NAMED(["n"], [Types.DOUBLE()])


def json_reader(row_type, kind="strict"):
    builder = JsonRowDeserializationSchema.builder().type_info(row_type)
    if kind == "lenient":
        builder = builder.ignore_parse_errors()
    return builder.fail_on_missing_field().build() if kind == "complete" else builder.build()


def json_writer(row_type):
    return JsonRowSerializationSchema.builder().with_type_info(row_type).build()


def one_by_one(schema, messages):
    """The values of the messages, each for itself, as a column; None if one of them cannot be read."""
    try:
        elements = [None if message is None else schema.deserialize(message) for message in messages]
    except DataError:
        return None
    return schema.get_produced_type().to_arrow(elements)


def assert_columns_are_the_same(schema, messages):
    expected = one_by_one(schema, messages)
    column = pa.array(messages, pa.binary())
    if expected is None:
        with pytest.raises(DataError):
            schema.deserialize_column(column)
        return
    found = schema.deserialize_column(column)
    found.validate(full=True)
    assert found.type == expected.type
    assert repr(found.to_pylist()) == repr(expected.to_pylist())  # NaN is not equal to itself


@given(st.data(), row_types(nested([*SINGLE])))
def test_rows_come_back_from_json_as_they_were(data, row_type):
    row = data.draw(rows_of(row_type))
    assert json_reader(row_type).deserialize(json_writer(row_type).serialize(row)) == row


@given(st.data(), row_types(st.one_of(st.sampled_from(FOR_ARROW), nested([*SINGLE]))))
def test_rows_in_columns_are_written_as_one_by_one(data, row_type):
    assume(not row_type.has_exponents)  # whose columns have other digits
    rows = data.draw(st.lists(rows_of(row_type), max_size=6))
    written = json_writer(row_type).serialize_column(row_type.to_arrow(rows), row_type)
    assert written.to_pylist() == [json_writer(row_type).serialize(row) for row in rows]


@given(st.lists(st.none() | st.floats() | st.decimals(-(10**17), 10**17, places=3).map(float)))
def test_numbers_in_columns_are_written_as_one_by_one(numbers):
    rows = [Row(n=number) for number in numbers]
    written = json_writer(NUMBER).serialize_column(NUMBER.to_arrow(rows), NUMBER)
    assert written.to_pylist() == [json_writer(NUMBER).serialize(row) for row in rows]


def digits_and_exponent(text):
    """The digits of a number, without zeros around them, and the exponent of the first one."""
    number = Decimal(text)
    return "".join(map(str, number.as_tuple().digits)).strip("0") or "0", number.adjusted() if number else 0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_have_the_digits_and_the_form_that_java_gives_them(number):
    text = json_writer(NUMBER).serialize(Row(n=number)).decode().removeprefix('{"n":').removesuffix("}")
    assert float(text) == number
    assert text.startswith("-") == (math.copysign(1, number) < 0)
    digits, exponent = digits_and_exponent(text)
    shortest, _ = digits_and_exponent(repr(number))
    assert len(digits) == len(shortest) if len(shortest) > 1 else len(digits) <= 2
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        assert re.fullmatch(r"-?[0-9]+\.[0-9]+", text)
    else:
        assert re.fullmatch(r"-?[1-9]\.[0-9]+E-?[0-9]+", text)
        assert text.endswith(f"E{exponent}")


@given(
    st.data(),
    row_types(st.one_of(st.sampled_from(FOR_ARROW), nested(FOR_ARROW[:5]))),
    st.sampled_from(["strict", "lenient", "complete"]),
)
def test_messages_of_json_mean_the_same_in_columns(data, row_type, kind):
    write = json_writer(row_type).serialize
    messages = data.draw(st.lists(spoilt(rows_of(row_type).map(write)), max_size=6))
    assert_columns_are_the_same(json_reader(row_type, kind), messages)


def text(min_size):
    """Text that is none of those that mean something else in a cell."""
    characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0;")
    return st.text(characters, min_size=min_size, max_size=8).filter(lambda text: text != "none")


CELLS = {**SINGLE, Types.STRING(): text(min_size=0)}
PARTS = {**SINGLE, Types.STRING(): text(min_size=1), Types.PRIMITIVE_ARRAY(Types.BYTE()): st.binary(min_size=1)}
del CELLS[Types.CHAR()], PARTS[Types.CHAR()]  # one of those


def cell_of(type_info):
    """Draw the value of a cell; a list is never None, and a row has no None, which would be that of the cell."""
    if type_info in CELLS:
        return st.none() | CELLS[type_info]
    if hasattr(type_info, "element_type"):
        return st.lists(st.none() | PARTS[type_info.element_type], max_size=3)
    return st.none() | rows_of(type_info, PARTS.get)


def csv_schemas(row_type, *, lenient=False, **chars):
    """Both schemas with these settings."""
    reader = CsvRowDeserializationSchema.Builder(row_type).set_ignore_parse_errors(lenient)
    writer = CsvRowSerializationSchema.Builder(row_type)
    for setting, char in chars.items():
        reader, writer = getattr(reader, setting)(char), getattr(writer, setting)(char)
    return reader.build(), writer.build()


def cells():
    """Types of what may stand in a cell."""
    single = st.sampled_from([*PARTS])
    return st.one_of(single, single.map(Types.LIST), row_types(single))


@given(
    st.data(),
    row_types(cells()),
    st.sampled_from([{}, {"set_field_delimiter": "|"}, {"set_quote_character": "'"}, {"set_escape_character": "\\"}]),
)
def test_rows_come_back_from_csv_as_they_were(data, row_type, chars):
    reader, writer = csv_schemas(row_type, set_null_literal="none", **chars)
    row = data.draw(rows_of(row_type, cell_of))
    assert reader.deserialize(writer.serialize(row)) == row


@given(
    st.data(),
    row_types(st.sampled_from(FOR_ARROW)),
    st.booleans(),
    st.sampled_from([{}, {"set_null_literal": "none"}, {"set_null_literal": ""}, {"set_field_delimiter": "|"}]),
)
def test_messages_of_csv_mean_the_same_in_columns(data, row_type, lenient, chars):
    reader, writer = csv_schemas(row_type, lenient=lenient, **chars)
    messages = data.draw(st.lists(spoilt(rows_of(row_type).map(writer.serialize)), max_size=6))
    assert_columns_are_the_same(reader, messages)
