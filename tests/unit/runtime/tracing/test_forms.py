"""Each form of function that the guide says runs on columns does so, and gives what Python gives."""

# ruff: noqa: UP031, UP032 - ways to write the same are what is tested

import datetime
import math
import re
from decimal import Decimal

import pytest

from eventide.common.typeinfo import Types
from eventide.common.types import Row
from eventide.runtime.elements.elements import Columns
from eventide.runtime.tracing.column_functions import fields_read, filtered, mapped

KIND = Types.ROW_NAMED(
    ["user", "text", "n", "x", "d", "t"],
    [Types.STRING(), Types.STRING(), Types.LONG(), Types.DOUBLE(), Types.BIG_DEC(10, 2), Types.SQL_TIMESTAMP()],
)
AT = datetime.datetime(2024, 1, 31, 23, 59, 58, 7)  # noqa: DTZ001 - as it comes from columns
VALUES = [
    Row(user="ann", text="a,b c", n=7, x=2.25, d=Decimal("1.50"), t=AT),
    Row(user="bob", text="x,yz", n=-3, x=-0.5, d=Decimal("20.00"), t=AT + datetime.timedelta(days=30)),
]
COUNTRIES = {"ann": 1, "bob": 2}
NAMES, NUMBERS, LISTED = {"ann"}, frozenset({7, 8}), ["bob", "eve"]
PATTERN = re.compile(r"(\w),(\w+)")
LIMIT = 3
SIZE = len


def helper(n):
    return n * 2 if n > 0 else -n


def reads_some(e):
    return e.user if e.n > LIMIT else ""


def several_paths(e):
    if e.n > 5 and e.user != "bob":
        return "high"
    return "low" if e.x < 0 else "none"


MAPPED = {
    "fields": lambda e: (e.user, e["n"], e[3]),
    "rows": lambda e: Row(user=e.user, twice=e.n * 2),
    "dicts": lambda e: {"user": e.user, "n": e.n},
    "unpacked": lambda e: {**e.as_dict(), "n": e.n + 1},
    "numbers": lambda e: (e.n + 1, e.n - e.x, e.n * 2, e.n / 4, e.n // 2, e.n % 2, -e.n),
    "bits": lambda e: (e.n & 1, e.n | 8, e.n ^ 3),
    "powers": lambda e: (e.n**2, round(e.x), round(e.x, 1), abs(e.n), divmod(e.n, 2)),
    "extremes": lambda e: (min(e.n, LIMIT), max(e.x, 0.0)),
    "conversions": lambda e: (str(e.n), int(e.x), float(e.n), bool(e.n), len(e.text)),
    "sums": lambda e: (sum((e.n, 1)), math.floor(e.x), math.isnan(e.x)),
    "decimals": lambda e: (e.d + 1, int(e.d), float(e.d)),
    "conditions": several_paths,
    "helpers": lambda e: helper(e.n),
    "f-strings": lambda e: f"{e.user}-{e.n:05d}{'!' if e.n > 0 else ''}",
    "percent": lambda e: "%s: %d" % (e.user, e.n),
    "format": lambda e: "{}-{}".format(e.user, e.n),
    "join": lambda e: "-".join([e.user, e.text]),
    "text": lambda e: (e.text.upper(), e.text.title(), e.text.replace("a", "b"), e.text.find(","), e.text + "!"),
    "padded": lambda e: (e.text.ljust(9), str(e.n).zfill(5), e.text.strip()),
    "parts": lambda e: (e.text.split(",")[0], e.text.partition(",")[2], e.text[:2], len(e.text.split())),
    "groups": lambda e: found.group(2) if (found := PATTERN.match(e.text)) else "",
    "substituted": lambda e: re.sub("a", "b", e.text),
    "looked up": lambda e: (COUNTRIES[e.user], COUNTRIES.get(e.text, 0)),
    "times": lambda e: (e.t.hour, e.t.microsecond, e.t.weekday(), e.t.date(), e.t.replace(minute=0, second=0)),
    "texts of times": lambda e: (e.t.isoformat(), e.t.strftime("%Y-%m")),
    "differences": lambda e: ((e.t - AT).total_seconds(), e.t + datetime.timedelta(hours=2)),
    "seconds": lambda e: int(e.t.replace(tzinfo=datetime.UTC).timestamp() * 1000),
}
FILTERED = {
    "comparisons": lambda e: e.n > LIMIT and e.user != "bob",
    "chains": lambda e: -5 < e.n < 5 or not e.x > 0,
    "decimals": lambda e: e.d > 10,
    "in a tuple": lambda e: e.user in ("ann", "eve"),
    "in a list": lambda e: e.user in ["ann", "eve"],
    "in a set": lambda e: e.user in {"ann", "eve"},
    "not in a set": lambda e: e.n not in {7, 8} and e.user is not None,
    "in a set, of text": lambda e: f"{e.user}!" in {"ann!"},
    "in a captured set": lambda e: e.user in NAMES or e.n in NUMBERS,
    "in a captured list": lambda e: e.user in LISTED,
    "in a captured dict": lambda e: e.text in COUNTRIES,
    "in a text": lambda e: "a" in e.text,
    "in a range": lambda e: e.n in range(3, 9),
    "of all": lambda e: all([e.n > 1, e.x > 2]) or any((e.n > 9, e.x < 0)),
    "beginnings": lambda e: e.text.startswith(("a", "b")) and e.text.isascii(),
    "patterns": lambda e: bool(PATTERN.search(e.text)) and PATTERN.fullmatch(e.text) is None,
    "truth": lambda e: e.text and e.n,
}


@pytest.mark.parametrize("function", MAPPED.values(), ids=MAPPED)
def test_functions_that_make_values(function):
    column, kind = mapped(function, Columns(KIND, KIND.to_arrow(VALUES), None, None), None)
    found, expected = kind.from_arrow(column), [function(value) for value in VALUES]
    assert found == expected
    assert [*map(repr, found)] == [*map(repr, expected)]


@pytest.mark.parametrize("function", FILTERED.values(), ids=FILTERED)
def test_functions_that_decide(function):
    mask = filtered(function, Columns(KIND, KIND.to_arrow(VALUES), None, None))
    assert mask.to_pylist() == [bool(function(value)) for value in VALUES]


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        (lambda e: e.n > LIMIT and e["x"] > 0, {"n", "x"}),
        (lambda e: True, set()),
        (lambda e: (len(e.text), e[-1]), {"text", "t"}),
        (lambda e: e[0], {"user"}),
        (lambda e: e[1], None),
        (lambda e: "user" in e, None),
        (lambda e: "n" in e.as_dict(), None),
        (lambda e: next(iter(e.as_dict())) == "user", None),
        (lambda e: len(e) != 3 and e.n > 0, None),
        (lambda e: len(e.as_dict()) != 5, None),
        (lambda e: e, None),
        (lambda e: sum(1 for _ in e) != 3 and e.n > 0, None),
        (lambda e: SIZE(e) != 3 and e.n > 0, None),
        (lambda e: [*e][1:] == [] and e.n > 0, None),
        (lambda e: bool(e[2:4]) and e.n > 0, None),
        (lambda e: max(e.as_dict()) != "x" and e.n > 0, None),
        (lambda e: ",".join(e.as_dict()) != "n,x" and e.n > 0, None),
        (lambda e: e != Row(user="ann", n=7) and e.n > 0, None),
        (lambda e: e.as_dict() != {"user": "ann"} and e.n > 0, None),
        (lambda e: (reads_some(e), e.x), {"user", "n", "x"}),
    ],
)
def test_the_fields_that_a_function_reads(function, fields):
    assert fields_read(function, KIND) == (None if fields is None else frozenset(fields))
