"""Lines of CSV as columns at once, by Arrow: where that is certain to be what they mean one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eventide.common.typeinfo import BasicTypeInfo, CompositeTypeInfo
from eventide.common.typeinfo._base import one_array
from eventide.datastream.formats._arrow_cells import SINGLE, as_wanted, parsed_type

if TYPE_CHECKING:
    import pyarrow as pa

    from eventide.datastream.formats._csv_values import Dialect

_LINE_END = r"\r?\n\z"
_NOT_FOR_ARROW = r"\A\z|\A\x{FEFF}|[\r\n]|0[xX]|(?i:nan|inf)"
"""Nothing; a mark of the order of bytes; more than one line; and numbers that Java does not know."""


def are_for_arrow(row_type: CompositeTypeInfo, dialect: Dialect) -> bool:
    """Whether Arrow can read all cells of a type."""
    types = row_type.field_types
    known = all(isinstance(field, BasicTypeInfo) and field.name in SINGLE for field in types)
    return known and dialect.delimiter.isascii() and not dialect.allows_comments


def read_at_once(messages: Sequence[bytes], row_type: CompositeTypeInfo, dialect: Dialect) -> pa.StructArray | None:
    """The rows of some messages; None where they have to be looked at one by one.

    Each message is one line, without quotes: so that no other line can be a part of it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as pcsv

    wanted = row_type.arrow_type()
    try:
        texts = pc.replace_substring_regex(pa.array(messages, pa.binary()).cast(pa.string()), _LINE_END, "")
        for char in (dialect.quote, dialect.escape):
            if char is not None and pc.any(pc.match_substring(texts, char)).as_py():
                return None
        if pc.any(pc.match_substring_regex(texts, _NOT_FOR_ARROW)).as_py():
            return None
        lines = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts), "\n")
        names = [str(place) for place in range(wanted.num_fields)]
        table = pcsv.read_csv(
            pa.BufferReader(lines[0].as_buffer()),
            pcsv.ReadOptions(use_threads=False, block_size=len(lines[0].as_buffer()) + 1, column_names=names),
            pcsv.ParseOptions(
                delimiter=dialect.delimiter, quote_char=False, escape_char=False, ignore_empty_lines=False
            ),
            pcsv.ConvertOptions(
                column_types={name: parsed_type(field.type) for name, field in zip(names, wanted, strict=True)},
                null_values=[] if dialect.null is None else [dialect.null],
                strings_can_be_null=dialect.null is not None,
                true_values=["true", "True", "TRUE"],
                false_values=["false", "False", "FALSE"],
            ),
        )
        if len(table) != len(messages):
            return None
        columns = [as_wanted(one_array(table.column(i)), field.type) for i, field in enumerate(wanted)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowCapacityError):
        return None
    known = [column for column in columns if column is not None]
    return pa.StructArray.from_arrays(known, fields=list(wanted)) if len(known) == len(columns) else None
