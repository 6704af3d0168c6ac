"""Checksums find every change of one byte, and every cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common.checksum import (
    has_checksum,
    json_with_checksum,
    json_without_checksum,
    with_checksum,
    without_checksum,
)

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=3), parts, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.text(max_size=3), _JSON, max_size=4)


@given(st.binary(max_size=40))
def test_bytes_come_back_and_damaged_ones_do_not(content):
    stored = with_checksum(content)
    assert (has_checksum(stored), without_checksum(stored), len(stored)) == (True, content, len(content) + 5)
    assert all(without_checksum(stored[:length]) is None for length in range(len(stored)))


@given(_OBJECTS, st.none() | st.integers(0, 3))
def test_objects_of_json_come_back_in_whatever_layout(content, indent):
    text = json_with_checksum(content, indent)
    assert json_without_checksum(text) == content
    assert json_without_checksum(json.dumps(json.loads(text), indent=4)) == content


@given(st.binary(max_size=40), st.integers(0), st.integers(1, 255))
def test_every_changed_byte_is_found(content, at, bits):
    stored = bytearray(with_checksum(content))
    stored[at % len(stored)] ^= bits
    assert without_checksum(bytes(stored)) is None


@given(_OBJECTS, st.integers(0), st.integers(1, 255))
def test_objects_of_json_that_have_changed_do_not(content, at, bits):
    text = bytearray(json_with_checksum(content).encode())
    text[at % len(text)] ^= bits
    try:
        found = json_without_checksum(text.decode())
    except ValueError:
        return
    assert found == content


def test_an_object_without_a_checksum_is_of_an_earlier_version():
    assert json_without_checksum('{"at": 1}', may_lack=True) == {"at": 1}
    for text in ('{"at": 1}', "[1]", "1", "", '{"at": 1, "checksum": null}'):
        with pytest.raises(ValueError):  # noqa: PT011 - of json and of ours
            json_without_checksum(text)


def test_names_of_entries_are_text_when_they_come_back():
    assert json_without_checksum(json_with_checksum({"positions": {10: 1, 9: 2}})) == {"positions": {"10": 1, "9": 2}}
