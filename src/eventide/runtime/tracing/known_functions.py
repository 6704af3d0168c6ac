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
        float: "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees dist erf erfc exp exp2 expm1 "
        "fabs fma fmod fsum gamma hypot ldexp lgamma log log10 log1p log2 nextafter pow radians remainder sin sinh "
        "sqrt tan tanh ulp",
        int: "ceil comb factorial floor gcd isqrt lcm perm prod trunc",
        bool: "isclose isfinite isinf isnan",
        tuple: "frexp modf",
    }.items()
    for name in names.split()
    if hasattr(math, name)  # as fma, which Python has from 3.13 on
}
"""The functions of ``math`` that are known, and the types of their results."""

MATH_OF_WHOLE = frozenset({"comb", "factorial", "gcd", "isqrt", "lcm", "perm"})
"""The functions of ``math`` that take whole numbers alone."""

MATH_OF_SEVERAL = frozenset({"dist", "fsum", "prod"})
"""The functions of ``math`` that take tuples or lists of numbers."""

MATH_PARTS: dict[str, tuple[type, ...]] = {"frexp": (float, int), "modf": (float, float)}
"""The functions of ``math`` that give several numbers, and the types of these."""

MODULES: dict[ModuleType, dict[str, Any]] = {
    module: {name: getattr(module, name) for name in names}
    for module, names in {
        datetime: ["date", "datetime", "timedelta", "timezone", "UTC"],
        math: [*MATH, "e", "inf", "nan", "pi", "tau"],
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

CLASS_METHODS: dict[type, dict[str, tuple[type, ...]]] = {
    datetime.datetime: {
        "fromisoformat": (str,),
        "fromordinal": (int,),
        "fromtimestamp": (float,),
        "strptime": (str, str),
    },
    datetime.date: {"fromisoformat": (str,), "fromordinal": (int,), "fromtimestamp": (float,)},
}
"""The methods of classes that make an object of other values, and the types of these: a float may be a whole number."""

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
PURE_METHODS |= {name for known in CLASS_METHODS.values() for name in known}
PURE_METHODS |= {"values", "weekday", *(name for known in MODULES.values() for name in known)}
PURE_METHODS |= {"get_left_timestamp", "get_right_timestamp", "get_timestamp", "group", "groups", "quantize"}
