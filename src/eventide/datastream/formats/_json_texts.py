"""Rows as messages of JSON, column by column: the same texts as one by one, with no Python object for most values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from eventide.common.typeinfo import BasicTypeInfo, CompositeTypeInfo, TimeWindowTypeInfo, TypeInformation
from eventide.datastream.formats._json_values import is_bare, writer
from eventide.datastream.formats._text_columns import texts_of

if TYPE_CHECKING:
    import pyarrow as pa

_ESCAPED = r'["\\\x00-\x1f]'


def written_at_once(rows: pa.StructArray, type_info: CompositeTypeInfo) -> pa.Array:
    """The objects of some rows, none of which is null, as an array of binary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts: list[pa.Array | str] = []
    opening = "{"
    for name, field_type, column in zip(type_info.field_names, type_info.field_types, rows.flatten(), strict=True):
        parts += [f"{opening}{json.dumps(name, ensure_ascii=False)}:", _texts(column, field_type)]
        opening = ","
    if not parts:
        return pa.array([b"{}"] * len(rows), pa.binary())
    texts = pc.binary_join_element_wise(*parts, "}", "", null_handling="replace", null_replacement="null")
    return texts.cast(pa.binary())


def _texts(column: pa.Array, type_info: TypeInformation) -> pa.Array:
    """Return the text of each value; null where it is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(type_info, TimeWindowTypeInfo) and not column.null_count:
        bounds = [_milliseconds(bound).cast(pa.string()) for bound in column.flatten()]
        return pc.binary_join_element_wise('{"start":', bounds[0], ',"end":', bounds[1], "}", "")
    texts = texts_of(column, type_info)
    if texts is not None and is_bare(type_info) and _are_finite(column):
        return texts
    if texts is not None and not is_bare(type_info) and not _needs_escapes(texts, type_info):
        return pc.binary_join_element_wise('"', texts, '"', "")
    write = writer(type_info)
    values = type_info.from_arrow(column)
    return pa.array([None if value is None else write(value) for value in values], pa.string())


def _needs_escapes(texts: pa.Array, type_info: TypeInformation) -> bool:
    import pyarrow.compute as pc

    is_text = type_info == BasicTypeInfo("STRING")  # points in time have no such characters
    return is_text and pc.any(pc.match_substring_regex(texts, _ESCAPED)).as_py() is True


def _are_finite(numbers: pa.Array) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return not pa.types.is_floating(numbers.type) or pc.all(pc.is_finite(numbers)).as_py() is not False


def _milliseconds(timestamps: pa.Array) -> pa.Array:
    import pyarrow as pa

    return timestamps.cast(pa.timestamp("ms", timestamps.type.tz)).cast(pa.int64())
