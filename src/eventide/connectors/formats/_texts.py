"""Single values as text, as Flink's schemas of rows write and read them: one by one, and columns of them by Arrow."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from eventide.common.time import Instant
from eventide.common.typeinfo import BasicTypeInfo, BytesTypeInfo, DecimalTypeInfo, TypeInformation
from eventide.common.typeinfo.basic import FLOAT_LIMIT
from eventide.connectors.file_system.format import points_in_time
from eventide.errors import TypeMismatch

if TYPE_CHECKING:
    import pyarrow as pa

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"((?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?)Z?")
_ZONE = r"Z|[+-](?:0[0-9]|1[0-8]):?[0-5][0-9]"
_TIMESTAMP = re.compile(rf"{_DATE.pattern}[T ]{_TIME.pattern.removesuffix('Z?')}(?:{_ZONE})?")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - points in time are naive here, in UTC
_BARE = frozenset({"BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "BIG_INT", "FLOAT", "DOUBLE", "BIG_DEC"})
_SMALLEST, _LARGEST = 1e-3, 1e7  # between these, Java writes numbers without an exponent, as do Arrow and Python
_BITS = {"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64}


@dataclass(frozen=True, slots=True)
class TextForm:
    """The text form of the values of one type: how they are read and written.

    ``read`` raises a ``ValueError`` if a text is not a value of the type.
    """

    read: Callable[[str], Any]
    write: Callable[[Any], str]


def text_form(type_info: TypeInformation) -> TextForm | None:
    """The form of a type of single values; None for others.

    Points in time are in UTC, with a Z at the end; a text without a zone is read as UTC too.

    >>> from eventide.common import Types
    >>> form = text_form(Types.SQL_TIMESTAMP())
    >>> form.read("2026-05-01T10:00:00+02:00"), form.write(dt.datetime(2026, 5, 1, 8))
    (datetime.datetime(2026, 5, 1, 8, 0), '2026-05-01T08:00:00Z')
    """
    if isinstance(type_info, BytesTypeInfo):
        return TextForm(_bytes, lambda value: base64.b64encode(value).decode("ascii"))
    if isinstance(type_info, DecimalTypeInfo):
        return TextForm(lambda text: _declared_decimal(text, type_info), "{:f}".format)
    if not isinstance(type_info, BasicTypeInfo):
        return None
    if type_info.name in _BITS:
        limit = 1 << (_BITS[type_info.name] - 1)
        return TextForm(lambda text: _integer(text, limit), str)
    return _FORMS[type_info.name]


def is_bare(type_info: TypeInformation) -> bool:
    """Whether the values of a type are numbers or booleans, which need no quotes."""
    return isinstance(type_info, DecimalTypeInfo) or (isinstance(type_info, BasicTypeInfo) and type_info.name in _BARE)


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return found


def _integer(text: str, limit: int) -> int:
    number = int(_matched(_INTEGER, text)[0])
    if not -limit <= number < limit:
        raise ValueError(text)
    return number


def _number(text: str) -> float:
    special = _SPECIAL.get(text.strip())
    return float(_matched(_NUMBER, text)[0]) if special is None else special


def _float_32(number: float) -> float:
    """A number of 32 bits; one that is too large is infinite."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return rounded


def number_text(number: float) -> str:
    """A number of 64 bits as Java 19 and later write it: with the fewest digits that identify it, and at least two.

    >>> [number_text(number) for number in (9999999.0, 1e7, 0.001, 9.99e-4, 5e-324)]
    ['9999999.0', '1.0E7', '0.001', '9.99E-4', '4.9E-324']
    """
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return _java_text(number, repr(float(number)))


def _float_32_text(number: float) -> str:
    """A number of 32 bits as Java writes it."""
    import numpy as np

    number = _float_32(number)
    return _java_text(number, repr(float(str(np.float32(number))))) if math.isfinite(number) else number_text(number)


def _java_text(number: float, shortest: str) -> str:
    """A finite number in its shortest text, which Python computes, with an exponent where Java writes one."""
    if number == 0 or _SMALLEST <= abs(number) < _LARGEST:
        return shortest
    digits = len(shortest.partition("e")[0].lstrip("-").replace(".", "").strip("0"))
    text = f"{number:.1e}" if digits == 1 else f"{Decimal(shortest):.{digits - 1}e}"
    mantissa, _, exponent = text.lower().partition("e")
    return f"{mantissa}E{int(exponent)}"


def _decimal(text: str) -> Decimal:
    return Decimal(_matched(_NUMBER, text)[0])


def _big_decimal(text: str) -> Decimal:
    """A number that fits into a column: up to 20 digits before the point and 18 after it."""
    number = _decimal(text)
    if not (number == 0 or number.adjusted() < 20) or number.as_tuple().exponent < -18:  # type: ignore[operator]
        raise ValueError(text)
    return number


def _declared_decimal(text: str, type_info: DecimalTypeInfo) -> Any:
    try:
        return type_info.as_declared([_decimal(text)])[0]
    except TypeMismatch as error:
        raise ValueError(text) from error


def _char(text: str) -> str:
    if len(text) != 1:
        raise ValueError(text)
    return text


def _text(text: str) -> str:
    text.encode()  # half of a pair of surrogates is not text
    return text


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(text) from error


def _date(text: str) -> dt.date:
    return dt.date.fromisoformat(_matched(_DATE, text)[0])


def _time(text: str) -> dt.time:
    return dt.time.fromisoformat(_matched(_TIME, text)[1])


def _timestamp(text: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(_matched(_TIMESTAMP, text)[0])
    try:
        return moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)
    except OverflowError as error:
        raise ValueError(text) from error


def _instant(text: str) -> Instant:
    micros = (_timestamp(text) - _EPOCH) // dt.timedelta(microseconds=1)
    return Instant(micros // 1_000_000, micros % 1_000_000 * 1_000)


def _instant_text(instant: Instant) -> str:
    micros = instant.seconds * 1_000_000 + instant.nanos // 1_000
    return _timestamp_text(_EPOCH + dt.timedelta(microseconds=micros))


def _timestamp_text(moment: dt.datetime) -> str:
    return f"{moment.isoformat()}Z"


_FORMS = {
    "STRING": TextForm(_text, str),
    "CHAR": TextForm(_char, str),
    # As Java reads it: a text other than "true" is false.
    "BOOLEAN": TextForm(lambda text: text.strip().lower() == "true", lambda value: "true" if value else "false"),
    "BIG_INT": TextForm(lambda text: _integer(text, 10**38), str),
    "FLOAT": TextForm(lambda text: _float_32(_number(text)), _float_32_text),
    "DOUBLE": TextForm(_number, number_text),
    "BIG_DEC": TextForm(_big_decimal, str),  # which has an exponent where Java's has one
    "SQL_DATE": TextForm(_date, dt.date.isoformat),
    "SQL_TIME": TextForm(_time, lambda time: f"{time.isoformat()}Z"),
    "SQL_TIMESTAMP": TextForm(_timestamp, _timestamp_text),
    "INSTANT": TextForm(_instant, _instant_text),
}


PLAIN = frozenset({"STRING", "BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "DOUBLE"})
"""Types that Arrow reads with the same meaning."""

SINGLE = PLAIN | {"FLOAT", "SQL_DATE", "SQL_TIMESTAMP", "INSTANT"}
"""Types that Arrow reads, some of them as another type first."""

# Dates valid in every calendar and zones of every country; others are checked one by one.
_PLAIN_DATE = r"[1-8][0-9]{3}-[0-9]{2}-[0-9]{2}"
_PLAIN_TIMESTAMP = (
    rf"{_PLAIN_DATE}[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?(Z|[+-](0[0-9]|1[0-7]):?[0-5][0-9])?"
)

_AS_THEY_ARE = frozenset({"BOOLEAN", "BYTE", "SHORT", "INT", "LONG"})


def texts_of(column: pa.Array, type_info: TypeInformation) -> pa.Array | None:
    """The text of each value, null for null; None for types that Arrow writes differently."""
    import pyarrow as pa

    name = type_info.name if isinstance(type_info, BasicTypeInfo) else None
    if name in _AS_THEY_ARE or (name == "STRING" and pa.types.is_string(column.type)):
        return column.cast(pa.string())
    if name == "DOUBLE":
        return _numbers(column)
    if name in {"SQL_TIMESTAMP", "INSTANT"} and pa.types.is_timestamp(column.type):
        return _points_in_time(column)
    return None


def _numbers(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.cast(pa.string())
    texts = pc.if_else(pc.match_substring(texts, "."), texts, pc.binary_join_element_wise(texts, ".0", ""))
    size = pc.abs(column)
    plain = pc.or_(pc.equal(size, 0), pc.and_(pc.greater_equal(size, _SMALLEST), pc.less(size, _LARGEST)))
    others = pc.fill_null(pc.invert(plain), False)
    if not pc.any(others).as_py():
        return texts
    one_by_one = pa.array(map(number_text, column.filter(others).to_pylist()), pa.string())
    return pc.replace_with_mask(texts, others, one_by_one)


def _points_in_time(column: pa.Array) -> pa.Array:
    """Points in time in UTC, with a Z; with microseconds if there are any."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.cast(pa.timestamp("us")).cast(pa.string())
    whole = pc.ends_with(texts, ".000000")
    texts = pc.if_else(whole, pc.utf8_slice_codeunits(texts, 0, -7), texts)
    return pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), "Z", "")


def parsed_type(wanted: pa.DataType) -> pa.DataType:
    """The type that Arrow reads first, because it reads points in time, and rounds, differently."""
    import pyarrow as pa

    if pa.types.is_date(wanted) or pa.types.is_timestamp(wanted):
        return pa.string()
    return pa.float64() if pa.types.is_float32(wanted) else wanted


def as_wanted(column: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    """A column of the wanted type; None if one of its values must be checked by itself."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.type == wanted:
        return column
    if pa.types.is_float32(wanted):
        return column.cast(wanted) if _all(pc.less(pc.abs(column), FLOAT_LIMIT)) else None
    pattern = _PLAIN_DATE if pa.types.is_date(wanted) else _PLAIN_TIMESTAMP
    if not _all(pc.match_substring_regex(column, f"^{pattern}$")):
        return None
    return column.cast(wanted) if pa.types.is_date(wanted) else points_in_time(column, wanted)


def _all(truths: pa.Array) -> bool:
    """Whether all values that are not null are true."""
    import pyarrow.compute as pc

    return pc.all(truths).as_py() is not False


_WHOLE = r"^[+-]?[0-9]+$"
_FRACTION = r"^[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)$"


def numbers_of_java(texts: pa.Array, wanted: pa.DataType, null: str | None) -> pa.Array:
    """Texts of numbers that Java can read, as Arrow reads them; texts of other types stay as they are.

    Args:
        texts: the texts.
        wanted: the type of the values.
        null: the text of None, which stays as it is.

    Raises:
        ValueError: if one is not a number.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_integer(wanted) or pa.types.is_floating(wanted)):
        return texts
    numbers = pc.utf8_trim_whitespace(texts)
    is_number = pc.match_substring_regex(numbers, _WHOLE if pa.types.is_integer(wanted) else _FRACTION)
    is_null = pc.is_null(texts) if null is None else pc.or_(pc.is_null(texts), pc.equal(texts, null))
    bad = pc.index(pc.or_kleene(is_number, is_null), False).as_py()
    if bad >= 0:
        raise ValueError(f"invalid value {texts[bad].as_py()!r}")
    return pc.if_else(is_null, texts, pc.replace_substring_regex(numbers, r"^\+", ""))


def lists_of_java(texts: pa.Array, wanted: pa.DataType, separator: str, null: str | None) -> pa.Array:
    """Lists of texts, each list in one text; blanks are an empty list, and numbers are such that Arrow reads them.

    Args:
        texts: the texts; null where the whole text is that of None, which stands for one element.
        wanted: the type of the elements.
        separator: the text between two elements.
        null: the text of None.

    Raises:
        ValueError: if an element must be a number, and is none.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = texts if null is None else pc.fill_null(texts, null)
    lists = pc.split_pattern(texts, separator)
    lists = pc.if_else(pc.equal(pc.utf8_trim_whitespace(texts), ""), pa.scalar([], lists.type), lists)
    elements = numbers_of_java(lists.flatten(), wanted, null)
    if null is not None:
        elements = pc.if_else(pc.equal(elements, null), pa.scalar(None, pa.string()), elements)
    ends = pc.cumulative_sum(pc.list_value_length(lists))
    return pa.ListArray.from_arrays(pa.concat_arrays([pa.array([0], ends.type), ends]), elements)
