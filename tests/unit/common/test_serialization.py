import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    Row,
    SerializationSchema,
    SimpleStringSchema,
    Types,
)
from eventide.common.serialization import RowFieldExtractorSchema
from eventide.datastream.formats.csv import CsvRowDeserializationSchema
from eventide.datastream.formats.json import JsonRowDeserializationSchema
from eventide.errors import DataError, ProgramError

USER = Types.ROW_NAMED(["user", "n"], [Types.STRING(), Types.LONG()])
WREN = Row(user="wren", n=1)


@given(st.text())
def test_text_comes_back_as_it_was(text):
    schema = SimpleStringSchema()
    assert schema.deserialize(schema.serialize(text)) == text


def test_bytes_in_another_encoding_are_bad_data():
    with pytest.raises(DataError, match="UTF-8"):
        SimpleStringSchema().deserialize("é".encode("latin-1"))
    assert SimpleStringSchema("latin-1").deserialize(b"\xe9") == "é"


def test_utf_16_is_that_of_java():
    schema = SimpleStringSchema("UTF-16")
    assert schema.serialize("é") == b"\xfe\xff\x00\xe9"
    for message in (b"\x00\xe9", b"\xfe\xff\x00\xe9", b"\xff\xfe\xe9\x00"):
        assert schema.deserialize(message) == "é"
    assert schema.deserialize_column(pa.array([b"\x00\xe9"], pa.binary())).to_pylist() == ["é"]


class Numbers(SerializationSchema):
    def serialize(self, element):
        return element if element > 1 else str(element).encode()


def test_a_schema_that_gives_no_bytes_is_named_with_the_element():
    with pytest.raises(DataError, match=r"Numbers\.serialize gave 2 for 2, and has to give bytes; convert it"):
        Numbers().serialize_column(pa.array([1, 2]), Types.LONG())


def test_what_is_not_text_is_bad_data():
    with pytest.raises(DataError, match="17"):
        SimpleStringSchema().serialize(17)
    with pytest.raises(DataError, match="ascii"):
        SimpleStringSchema("ascii").serialize("é")


def test_an_unknown_encoding_is_refused():
    with pytest.raises(ProgramError, match="klingon"):
        Encoder.simple_string_encoder("klingon")


def test_the_encoder_writes_lines():
    assert Encoder.simple_string_encoder().encode("é") == b"\xc3\xa9\n"


class Doubles(DeserializationSchema):
    """A schema of a program's own, which knows of one message at a time."""

    def deserialize(self, message):
        return None if message == b"skip" else 2 * int(message)

    def get_produced_type(self):
        return Types.LONG()


@pytest.mark.parametrize(
    ("schema", "messages", "elements"),
    [
        (Doubles(), [b"1", None, b"skip", b"4"], [2, None, None, 8]),
        (SimpleStringSchema(), ["é".encode(), None], ["é", None]),
        (SimpleStringSchema("latin-1"), [b"\xe9"], ["é"]),
        (ByteArraySchema(), [b"\xff", None], [b"\xff", None]),
    ],
)
def test_a_column_of_messages_means_what_they_mean_one_by_one(schema, messages, elements):
    column = schema.deserialize_column(pa.array(messages, pa.binary()))
    assert column.type == schema.get_produced_type().arrow_type()
    assert column.to_pylist() == elements


def test_a_bad_message_in_a_column_is_named():
    with pytest.raises(DataError, match="xe9"):
        SimpleStringSchema().deserialize_column(pa.array([b"a", b"\xe9"], pa.binary()))


def test_bytes_stay_as_they_are():
    assert ByteArraySchema().serialize(bytearray(b"a")) == ByteArraySchema().deserialize(b"a") == b"a"
    with pytest.raises(DataError, match="'a'"):
        ByteArraySchema().serialize("a")


def test_one_field_of_a_row_is_taken_if_it_is_bytes():
    schema = RowFieldExtractorSchema(1)
    assert schema.serialize(Row("a", b"key")) == b"key"
    assert schema.serialize(None) == schema.serialize(Row("a", None)) == b"", "as PyFlink says nothing"
    for bad in (Row("a", "b"), Row("a")):
        with pytest.raises(DataError):
            schema.serialize(bad)
    with pytest.raises(ProgramError, match="-1"):
        RowFieldExtractorSchema(-1)


MESSAGES_OF = {
    "text": (SimpleStringSchema(), b"wren,1", "wren,1"),
    "latin-1": (SimpleStringSchema("latin-1"), b"wren", "wren"),
    "bytes": (ByteArraySchema(), b"wren", b"wren"),
    "JSON": (JsonRowDeserializationSchema.builder().type_info(USER).build(), b'{"user":"wren","n":1}', WREN),
    "lenient JSON": (
        JsonRowDeserializationSchema.builder().type_info(USER).ignore_parse_errors().build(),
        b'{"user":"wren","n":1}',
        WREN,
    ),
    "CSV": (CsvRowDeserializationSchema.Builder(USER).build(), b"wren,1", WREN),
    "lenient CSV": (CsvRowDeserializationSchema.Builder(USER).set_ignore_parse_errors(True).build(), b"wren,1", WREN),
}


@pytest.mark.parametrize(("schema", "message", "element"), MESSAGES_OF.values(), ids=MESSAGES_OF)
class TestMessages:
    def test_no_message_is_no_element(self, schema, message, element):
        assert schema.deserialize(None) is None

    def test_text_stands_for_its_utf_8(self, schema, message, element):
        assert schema.deserialize(message.decode()) == schema.deserialize(message) == element

    @pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_string()])
    def test_columns_of_bytes_and_of_text_mean_the_same_in_chunks_too(self, schema, message, element, kind):
        column = pa.array([message.decode(), None], pa.string()).cast(kind)
        expected = schema.get_produced_type().to_arrow([element, None])
        assert schema.deserialize_column(column).equals(expected)
        chunks = pa.chunked_array([column.slice(0, 1), column.slice(1)])
        assert schema.deserialize_column(chunks).equals(expected)

    @pytest.mark.parametrize("strange", [5, ["a"], 1.5])
    def test_what_is_no_message_is_refused_with_advice(self, schema, message, element, strange):
        with pytest.raises(DataError, match=r"a message is bytes or text, not .*; cast or encode the column"):
            schema.deserialize(strange)


def test_half_of_a_pair_of_surrogates_is_no_message():
    schema = JsonRowDeserializationSchema.builder().type_info(USER)
    with pytest.raises(DataError, match="cannot be read as JSON"):
        schema.build().deserialize('{"user":"\ud800"}')
    schema.ignore_parse_errors()
    assert schema.build().deserialize('{"user":"\ud800"}') is None
