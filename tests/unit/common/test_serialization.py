import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Encoder, SimpleStringSchema
from eventide.errors import DataError, ProgramError


@given(st.text())
def test_text_comes_back_as_it_was(text):
    schema = SimpleStringSchema()
    assert schema.deserialize(schema.serialize(text)) == text


def test_bytes_in_another_encoding_are_bad_data():
    with pytest.raises(DataError, match="UTF-8"):
        SimpleStringSchema().deserialize("é".encode("latin-1"))
    assert SimpleStringSchema("latin-1").deserialize(b"\xe9") == "é"


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
