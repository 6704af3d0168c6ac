"""Checksums of stored bytes, and of stored JSON objects, which show whether they have changed.

Disks and file systems sometimes return damaged bytes, and an interrupted write leaves only some of them. Most formats
would read wrong data. A CRC-32 finds every changed byte, and costs a second for a gigabyte.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

_MARK = b"\x01"
"""The first bytes of data with a checksum; text, JSON, pickles and Arrow tables never begin with them."""
_BYTES = 4
_NAME = "checksum"


def with_checksum(content: bytes) -> bytes:
    r"""Return some bytes in their stored form: a mark, their CRC-32 in 4 bytes, the lowest first, and the bytes.

    >>> with_checksum(b"a")
    b'\x01C\xbe\xb7\xe8a'
    """
    return _MARK + zlib.crc32(content).to_bytes(_BYTES, "little") + content


def has_checksum(stored: bytes) -> bool:
    """Whether stored bytes have a checksum; those of an earlier version have none."""
    return stored[:1] == _MARK


def without_checksum(stored: bytes) -> bytes | None:
    """Return the original bytes; None if the stored bytes have changed.

    >>> without_checksum(with_checksum(b"a")), without_checksum(with_checksum(b"a")[:-1])
    (b'a', None)
    """
    begin = len(_MARK) + _BYTES
    content = stored[begin:]
    is_whole = stored[:begin] == _MARK + zlib.crc32(content).to_bytes(_BYTES, "little")
    return content if is_whole else None


def json_with_checksum(content: Mapping[str, Any], indent: int | None = None) -> str:
    """Return a JSON object as text, in the order of its names, with one more entry: the CRC-32 of all others.

    >>> json_with_checksum({"name": "a", "at": 1})
    '{"at": 1, "checksum": "05bd77a4", "name": "a"}'
    """
    read = json.loads(json.dumps(content))  # as a reader sees it: names of entries are text
    return json.dumps({**read, _NAME: checksum_of(read)}, indent=indent, sort_keys=True)


def json_without_checksum(text: str, *, may_lack: bool = False) -> dict[str, Any]:
    """Read a JSON object that :func:`json_with_checksum` has written; its layout may have changed.

    Args:
        text: the text.
        may_lack: whether an object without a checksum is accepted: an earlier version wrote none.

    Raises:
        ValueError: if it is not such an object, or has changed.

    >>> json_without_checksum(json_with_checksum({"at": 1}))
    {'at': 1}
    """
    content: dict[str, Any] = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    checksum = content.pop(_NAME, None)
    if (checksum is not None or not may_lack) and checksum != checksum_of(content):
        raise ValueError("its content does not have the checksum that it was written with")
    return content


def checksum_of(content: Mapping[str, Any]) -> str:
    """Return the CRC-32 of a JSON object, as eight hexadecimal digits; the order of its names does not matter.

    >>> checksum_of({"a": 1, "b": 2}) == checksum_of({"b": 2, "a": 1})
    True
    """
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"
