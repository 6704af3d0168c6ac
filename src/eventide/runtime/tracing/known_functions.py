"""Functions, classes and methods of Python that give the same for the same arguments, every time."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from types import ModuleType
from typing import Any

from eventide.common.types import Row

MATH: dict[str, type] = {
    name: kind
    for kind, names in {
        float: "acos asin atan atan2 copysign cos degrees exp fabs fmod hypot log log10 log2 pow radians sin sqrt tan",
        int: "ceil floor trunc",
        bool: "isfinite isinf isnan",
    }.items()
    for name in names.split()
}
"""The functions of ``math`` that are known, and the types of their results."""

MODULES: dict[ModuleType, dict[str, Any]] = {
    module: {name: getattr(module, name) for name in names}
    for module, names in {
        datetime: ["date", "datetime", "timedelta", "timezone", "UTC"],
        math: [*MATH, "e", "inf", "pi", "tau"],
        re: ["compile", "fullmatch", "match", "search", "sub", *re.RegexFlag.__members__],
    }.items()
}
"""The modules that are known, with all that may be taken from them."""

PURE = frozenset(
    {abs, all, any, bool, dict, divmod, enumerate, float, format, int, len, list, max, min, range, reversed, round}
    | {sorted, str, sum, tuple, zip, Row, Decimal, datetime.date, datetime.datetime, datetime.timedelta}
    | {datetime.timezone, *(getattr(math, name) for name in MATH)}
)
"""Builtins and classes that give the same for the same arguments."""

METHODS: dict[str, type] = {
    name: kind
    for kind, names in {
        str: "capitalize casefold center ljust lower lstrip partition removeprefix removesuffix replace rjust rsplit "
        "rstrip split strip swapcase title upper zfill",
        bool: "endswith isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isspace istitle "
        "isupper startswith",
        int: "count find index rfind rindex",
    }.items()
    for name in names.split()
}
"""The methods of text, and the types of their results, or of the parts of these."""

PURE_METHODS = METHODS.keys() | {"format", "join", "as_dict", "date", "get", "get_fields_by_names"}
PURE_METHODS |= {"isoformat", "isoweekday", "items", "keys", "strftime", "timestamp", "toordinal", "total_seconds"}
PURE_METHODS |= {"values", "weekday", *(name for known in MODULES.values() for name in known)}
PURE_METHODS |= {"get_left_timestamp", "get_right_timestamp", "get_timestamp", "group", "groups"}
