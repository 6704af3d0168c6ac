"""Single values as text, as Flink's schemas of rows write and read them; those of JSON and of CSV share it."""

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
from typing import Any

from eventide.common.time import Instant
from eventide.common.typeinfo import BasicTypeInfo, BytesTypeInfo, DecimalTypeInfo, TypeInformation
from eventide.errors import TypeMismatch

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"((?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?)Z?")
_ZONE = r"Z|[+-](?:0[0-9]|1[0-8]):?[0-5][0-9]"
_TIMESTAMP = re.compile(rf"{_DATE.pattern}[T ]{_TIME.pattern.removesuffix('Z?')}(?:{_ZONE})?")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - points in time are naive here, in UTC
_BARE = frozenset({"BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "BIG_INT", "FLOAT", "DOUBLE", "BIG_DEC"})
_BITS = {"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64}


@dataclass(frozen=True, slots=True)
class TextForm:
    """How the values of one type are read from a text and written to one.

    ``read`` raises a ``ValueError`` where a text is no value of the type.
    """

    read: Callable[[str], Any]
    write: Callable[[Any], str]


def text_form(type_info: TypeInformation) -> TextForm | None:
    """The form of a type of single values; None for others.

    Points in time are in UTC, with a Z behind them; without a zone, a text is taken to be in UTC too.

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
    """Whether the values of a type are numbers or truth values, which need no quotes."""
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
    if math.isfinite(number):
        return repr(float(number))
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _float_32_text(number: float) -> str:
    """As few digits as tell a number of 32 bits apart from others."""
    number = _float_32(number)
    if not math.isfinite(number):
        return number_text(number)
    shortest = next(text for digits in (6, 7, 8, 9) if _float_32(float(text := f"{number:.{digits}g}")) == number)
    return repr(float(shortest))


def _decimal(text: str) -> Decimal:
    return Decimal(_matched(_NUMBER, text)[0])


def _big_decimal(text: str) -> Decimal:
    """What fits into a column: up to 20 digits before the point and 18 behind."""
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
    text.encode()  # half of a pair of surrogates is no text
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
    "BIG_DEC": TextForm(_big_decimal, "{:f}".format),
    "SQL_DATE": TextForm(_date, dt.date.isoformat),
    "SQL_TIME": TextForm(_time, lambda time: f"{time.isoformat()}Z"),
    "SQL_TIMESTAMP": TextForm(_timestamp, _timestamp_text),
    "INSTANT": TextForm(_instant, _instant_text),
}
