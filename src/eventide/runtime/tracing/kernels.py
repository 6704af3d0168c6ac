"""Kernels: each operation of a trace on columns, where that gives what Python gives; else a guard says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.tracing.column_values import (
    Guard,
    Value,
    as_column,
    as_float,
    as_whole,
    in_calendar,
    is_float,
    of_each,
)
from eventide.runtime.tracing.number_kernels import NUMBER_KERNELS
from eventide.runtime.tracing.patterns import WANTED, Translated, translated
from eventide.runtime.tracing.time_kernels import TIME_KERNELS

__all__ = ["KERNELS", "Guard", "Value", "truth"]

_WHITESPACE = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
"""The characters that Python strips from ASCII text."""


def _of_ascii(compute: Callable[[Value], Value]) -> Callable[[Value], Value]:
    def computed(value: Value) -> Value:
        texts = as_column(value)
        if len(texts) and not pc.all(pc.string_is_ascii(texts)).as_py():
            raise Guard("a text that is not ASCII")
        return compute(value)

    return computed


def _method(text: str, name: str, *arguments: object) -> Any:
    return getattr(text, name)(*arguments)


def _part_of_text(text: str, name: str, index: int, *arguments: object) -> Any:
    return getattr(text, name)(*arguments)[index]


def _part_of_list(lists: pa.ListArray, index: Value) -> Value:
    place, counts = index.as_py(), lists.value_lengths().to_numpy(zero_copy_only=False)
    if len(counts) and not -counts.min() <= place < counts.min():
        raise Guard("a text that has fewer parts")
    starts = lists.offsets.to_numpy()
    return lists.values.take(pa.array(starts[:-1] + place if place >= 0 else starts[1:] + place))


def _sliced(value: Value, start: Value, stop: Value, step: Value) -> Value:
    begin, end, by = start.as_py() or 0, stop.as_py(), step.as_py() or 1
    if begin < 0 or (end is not None and end < 0) or by != 1:
        return _SLICE(value, start, stop, step)
    return pc.utf8_slice_codeunits(value, begin, end)


_SLICE = of_each(str, lambda text, start, stop, step: text[start:stop:step])


def _contains(value: Value, part: Value) -> Value:
    if isinstance(value, pa.Scalar) or isinstance(part, pa.Array):
        return of_each(bool, lambda text, part: part in text)(value, part)
    return pc.match_substring(value, part.as_py())


def _joined(between: Value, *parts: Value) -> Value:
    return pc.binary_join_element_wise(*parts, between)


def _place(value: Value, keys: pa.Array) -> Value:
    """The place of each value among some, -1 where it is none of them."""
    return pc.fill_null(pc.index_in(value if pa.types.is_string(value.type) else as_whole(value), value_set=keys), -1)


def _looked_up(place: Value, column: pa.Array) -> Value:
    if pc.any(pc.less(place, 0)).as_py():
        raise Guard("a key that is not in a dict")
    return column.take(place)


def _in_re2(value: Value, pattern: Value, flags: Value, how: str, group: int | None = None) -> Translated | None:
    """The regular expression as Arrow has it; None if it might not find the same as Python's."""
    found = translated(pattern.as_py(), flags.as_py(), how, group)
    if found is None or (found.has_end and pc.any(pc.ends_with(value, "\n")).as_py()):
        return None
    return found if pc.all(pc.string_is_ascii(value)).as_py() is not False else None


def _matcher(pattern: Value, flags: Value, how: str) -> Callable[..., Any]:
    matcher: Callable[..., Any] = getattr(re.compile(pattern.as_py(), flags.as_py() & ~re.DEBUG), how)
    return matcher


def _matches(value: Value, pattern: Value, flags: Value, how: Value) -> Value:
    if (in_re2 := _in_re2(value, pattern, flags, how.as_py())) is not None:
        return pc.match_substring_regex(value, in_re2.text)
    match = _matcher(pattern, flags, how.as_py())
    return of_each(bool, lambda text: match(text) is not None)(value)


def _has_group(value: Value, pattern: Value, flags: Value, how: Value, group: Value) -> Value:
    match, number = _matcher(pattern, flags, how.as_py()), group.as_py()
    return of_each(bool, lambda text: match(text)[number] is not None)(value)


def _group(value: Value, pattern: Value, flags: Value, how: Value, group: Value, is_certain: Value) -> Value:
    number = group.as_py()
    in_re2 = _in_re2(value, pattern, flags, how.as_py(), number) if is_certain.as_py() else None
    if in_re2 is not None:
        return pc.struct_field(pc.extract_regex(value, in_re2.text), WANTED)
    match = _matcher(pattern, flags, how.as_py())
    return of_each(str, lambda text: match(text)[number])(value)


def _substituted(value: Value, pattern: Value, flags: Value, by: Value, count: Value) -> Value:
    in_re2 = _in_re2(value, pattern, flags, "search")
    if in_re2 is None or in_re2.may_be_empty or count.as_py() or "\\" in by.as_py():
        substitute, replacement, most = _matcher(pattern, flags, "sub"), by.as_py(), count.as_py()
        return of_each(str, lambda text: substitute(replacement, text, most))(value)
    return pc.replace_substring_regex(value, in_re2.text, by.as_py())


def _is_in(value: Value, among: pa.Array) -> Value:
    """Whether each value is among some of its type; None is not."""
    found = value
    if is_float(value):
        found = as_float(value)
    elif pa.types.is_integer(value.type) or pa.types.is_boolean(value.type):
        found = as_whole(value)
    elif pa.types.is_temporal(value.type) and not pa.types.is_duration(value.type):
        found = in_calendar(value)
    return pc.is_in(found if found.type == among.type else found.cast(among.type), among)


KERNELS: dict[str, Callable[..., Value]] = {
    **NUMBER_KERNELS,
    **TIME_KERNELS,
    "text": lambda value: value if pa.types.is_string(value.type) else as_whole(value).cast(pa.string()),
    "length": lambda value: pc.utf8_length(value).cast(pa.int64()),
    "is in": _is_in,
    "any of": lambda *conditions: reduce(pc.or_, conditions),
    "all of": lambda *conditions: reduce(pc.and_, conditions),
    "contains": _contains,
    "place": _place,
    "is key": lambda place: pc.greater_equal(place, 0),
    "looked up": _looked_up,
    "matches": _matches,
    "has group": _has_group,
    "group": _group,
    "substituted": _substituted,
    "format": of_each(str, format),
    "percent": of_each(str, lambda form, *values: form % values),
    "fill": of_each(str, lambda form, *values: form.format(*values)),
    "join": _joined,
    "split": lambda value, at: pc.split_pattern(value, at.as_py()),
    "part of list": _part_of_list,
    "length of list": lambda lists: lists.value_lengths().cast(pa.int64()),
    "part": of_each(str, _part_of_text),
    "parts": of_each(int, lambda text, name, *arguments: len(getattr(text, name)(*arguments))),
    "item": of_each(str, lambda text, index: text[index]),
    "slice": _sliced,
    **{f"{kind.__name__} method": of_each(kind, _method) for kind in (str, bool, int)},
    "startswith": lambda value, part: pc.starts_with(value, part.as_py()),
    "endswith": lambda value, part: pc.ends_with(value, part.as_py()),
    "count": lambda value, part: pc.count_substring(value, part.as_py()).cast(pa.int64()),
    "replace": lambda value, old, new: pc.replace_substring(value, old.as_py(), new.as_py()),
    "upper": _of_ascii(pc.ascii_upper),
    "lower": _of_ascii(pc.ascii_lower),
    "strip": _of_ascii(lambda value: pc.utf8_trim(value, _WHITESPACE)),
    "lstrip": _of_ascii(lambda value: pc.utf8_ltrim(value, _WHITESPACE)),
    "rstrip": _of_ascii(lambda value: pc.utf8_rtrim(value, _WHITESPACE)),
}
"""By the name of the operation in an expression."""


def truth(value: Value) -> Value:
    """Whether each value is true, as ``bool`` says."""
    if pa.types.is_boolean(value.type):
        return value
    if pa.types.is_string(value.type):
        return pc.greater(pc.binary_length(value), 0)
    return pc.not_equal(value, pa.scalar(0, value.type))
