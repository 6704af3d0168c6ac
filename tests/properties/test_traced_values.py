"""Functions on columns give what the functions themselves give: values and types, for any batch."""

import datetime
import math
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common.typeinfo import Types
from eventide.common.types import Row
from eventide.runtime.elements.elements import Columns
from eventide.runtime.tracing.column_functions import mapped
from eventide.runtime.tracing.kernels import Guard
from support.random_functions import Case, difference

UTC = datetime.UTC
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
timedelta, timezone, date, stamp = datetime.timedelta, datetime.timezone, datetime.date, datetime.datetime
FIELDS = {
    "n": (Types.LONG(), st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**36), 2**36)),
    "k": (Types.INT(), st.integers(-40, 40)),
    "x": (Types.DOUBLE(), st.floats(-1e10, 1e10) | st.floats()),
    "b": (Types.BOOLEAN(), st.booleans()),
    "t": (Types.SQL_TIMESTAMP(), st.datetimes() | st.just(stamp.min)),
    "q": (Types.SQL_DATE(), st.dates()),
    "s": (Types.STRING(), st.sampled_from(["", "2024-02-29", "2024-03-10T02:30:00", "1.50", "NaN", " 7 ", "1e3", "x"])),
    "d": (Types.BIG_DEC(10, 2), st.decimals(-99_999_999, 99_999_999, places=2)),
}
KIND = Types.ROW_NAMED([*FIELDS], [kind for kind, _ in FIELDS.values()])
SOME = Row(
    n=1_700_000_000, k=7, x=1.5, b=True, t=stamp(2024, 1, 2, 3), q=date(2024, 2, 29), s="2024-01-31", d=Decimal("2.50")
)

DURATIONS = {
    "seconds": lambda e: (timedelta(seconds=e.n), timedelta(0, e.k)),
    "days and more": lambda e: timedelta(e.k, hours=e.k, minutes=e.b, microseconds=e.n),
    "weeks and milliseconds": lambda e: timedelta(weeks=e.k, milliseconds=e.n),
    "fractions": lambda e: timedelta(hours=e.x) + timedelta(seconds=1.5, microseconds=e.k),
    "by a number": lambda e: (timedelta(seconds=e.k) / 7, timedelta(microseconds=e.n) // 7, -timedelta(days=e.k)),
    "by whole numbers": lambda e: timedelta(microseconds=e.n) / e.k,
    "by fractions": lambda e: timedelta(microseconds=e.n) / e.x,
    "times fractions": lambda e: (timedelta(seconds=e.k) * e.x, e.x * timedelta(1)),
    "in seconds": lambda e: (timedelta(seconds=e.n).total_seconds(), timedelta(seconds=e.k) % timedelta(minutes=1)),
    "beside times": lambda e: (e.t + timedelta(seconds=e.k), e.q - timedelta(days=e.k)),
}
MOMENTS = {
    "of whole seconds": lambda e: stamp.fromtimestamp(e.n, tz=timezone.utc).replace(tzinfo=None),
    "of fractions": lambda e: stamp.fromtimestamp(e.x, UTC).replace(tzinfo=None),
    "of milliseconds": lambda e: str(stamp.fromtimestamp(e.n / 1000, tz=UTC)),
    "of the local clock": lambda e: stamp.fromtimestamp(e.n),
    "parts": lambda e: (stamp.fromtimestamp(e.n, UTC).hour, stamp.fromtimestamp(e.x, UTC).microsecond),
    "dates": lambda e: (stamp.fromtimestamp(e.n, UTC).date(), stamp.fromtimestamp(e.n, UTC).weekday()),
    "texts": lambda e: f"{stamp.fromtimestamp(e.n, UTC):%Y %j %Z} {e.t.replace(tzinfo=UTC).isoformat()}",
    "formats": lambda e: e.t.replace(tzinfo=UTC).strftime("%d.%m. %H:%M %z %f"),
    "differences": lambda e: (e.t.replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1),
    "comparisons": lambda e: (stamp.fromtimestamp(e.n, UTC) > EPOCH, e.t.replace(tzinfo=UTC) == EPOCH),
    "sums": lambda e: (stamp.fromtimestamp(e.n, UTC) + timedelta(days=e.k)).timestamp(),
    "put together": lambda e: (stamp(e.t.year, e.t.month, 1), date(e.q.year, 1, 1)),
    "put together with a zone": lambda e: stamp(e.t.year, 1, day=1, tzinfo=UTC) - EPOCH,
    "of text": lambda e: stamp.fromisoformat(e.s),
    "of text with a format": lambda e: stamp.strptime(e.s, "%Y-%m-%d"),
    "dates of text": lambda e: date.fromisoformat(e.s),
    "numbered days": lambda e: date.fromordinal(e.n),
    "other days": lambda e: e.q.replace(day=28),
    "bounds": lambda e: (stamp.min < e.t, max(e.q, date.min)),
}
NUMBERS = {
    "divisors": lambda e: (math.gcd(e.n, e.k), math.gcd(e.n, 12, e.k), math.lcm(e.k, 6)),
    "divisors of large numbers": lambda e: math.gcd(e.n),
    "close": lambda e: (math.isclose(e.x, e.n), math.isclose(e.x, 1, rel_tol=0.5, abs_tol=1e-3)),
    "constants": lambda e: (e.x * math.pi, e.x + math.e, e.x / math.tau, e.x < math.inf, e.x < math.nan),  # noqa: PLW0177
    "signs": lambda e: (math.copysign(e.x, e.k), math.copysign(1, e.x), math.fabs(e.n)),
    "kinds": lambda e: (math.isfinite(e.x), math.isnan(e.x), math.isinf(e.n)),
    "rounded": lambda e: (math.trunc(e.x), math.floor(e.x), math.ceil(e.x)),
    "rounded numbers of other kinds": lambda e: (math.floor(e.n), math.ceil(e.b), math.trunc(e.d), math.floor(e.d)),
    "roots": lambda e: (math.sqrt(abs(e.x)), math.isqrt(abs(e.k)), math.cbrt(e.x)),
    "curves": lambda e: (math.tanh(e.x), math.atan(e.n), math.asinh(e.x), math.erf(e.x)),
    "distances": lambda e: (math.hypot(e.x, e.k, 1), math.dist((e.x, e.k), (0, 1)), math.sqrt(e.k * e.k)),
    "angles": lambda e: (math.degrees(e.x), math.radians(e.x)),
    "parts": lambda e: (math.modf(e.x), math.frexp(e.x)),
    "of several": lambda e: (math.fsum((e.k, 0.1, e.x)), math.prod([e.k, e.k]), math.prod([e.k, 0.5], start=2)),
    "of decimals": lambda e: (math.sqrt(abs(float(e.d))), math.fabs(e.d), math.isfinite(e.d)),
    "counts": lambda e: (math.comb(abs(e.k), 2), math.factorial(abs(e.k) % 10)),
}
CENTS = Decimal("0.01")
OF_DECIMALS = {
    "signs of decimals": lambda e: (-e.d, +e.d, abs(e.d), -(e.d * 3), abs(e.d - 7)),
    "rounded decimals": lambda e: (round(e.d, 1), round(e.d), round(e.d, 2), round(e.d, 5)),
    "rounded results": lambda e: (round(e.d * CENTS, 2), round(e.d * e.d, 3), round(e.d, 0), round(e.d + 1)),
    "sums of decimals": lambda e: (sum([e.d, e.d, 1]), sum((e.d,), Decimal("0.000"))),
    "decimals of whole numbers": lambda e: (Decimal(e.n), Decimal(e.k) + e.d, Decimal(e.b), Decimal(e.d)),
    "products of whole numbers": lambda e: (e.d * e.k * 100, e.d + e.k, 2 * e.d * e.d, e.d - True),
    "whole quotients of decimals": lambda e: (e.d // CENTS, 3 * e.d // 7, e.d // Decimal(1)),
    "remainders of decimals": lambda e: (e.d % 7, (e.d + 1) % CENTS, e.d % (e.d * e.d + 1), e.d % Decimal("0.0000001")),
    "whole quotients by fields": lambda e: (e.d // e.k, e.k // (e.d + Decimal("0.001")), e.n // (e.d + CENTS)),
    "remainders by fields": lambda e: (e.k % e.d, e.d % e.n, e.n % e.d),
    "quotients of decimals": lambda e: (str(e.d / 7), round(e.d / 3, 2), float(1 / e.d), e.d / e.k < e.d),
    "quotients in sums": lambda e: (round(e.d / 7 + e.d / 3 - 1, 9), abs(-(e.d / 3)) >= 0.5, int(e.d / e.k)),
    "decimals of units": lambda e: ((e.d / 7).quantize(CENTS), e.d.quantize(Decimal(1), "ROUND_HALF_UP")),
    "decimals of text": lambda e: (f"{Decimal(e.s) * e.d}", Decimal(e.s) > e.k, round(Decimal(e.s), 1)),
    "parts of decimals": lambda e: (math.floor(e.d), math.trunc(-e.d), int(round(e.d, 1)), float(-e.d)),
}
DAYS = (date(2024, 2, 29), stamp(2024, 1, 2, 3), EPOCH, timedelta(1), None, "2024-01-31", 7, 1.5)
MIXED = {0, 1.5, 7, True, -0.0, math.nan, math.inf, None, "", "x", (1, 2), 10**400, Decimal("2.50"), Decimal("1e500")}
PAIRS = {("x", 7), ("", 0), ("2024-01-31", 7.0), (None, 7), ("x", None), ("x", (7, 1)), ("x",), 7}
DECIMALS = [Decimal("2.5"), Decimal(0), 0.1, Decimal("-0.1"), 7, Decimal("0.001"), Decimal("NaN"), math.nan, 2**70]
TENS = [Decimal("2.5"), Decimal("70.0"), None]
LOOKED_FOR = {
    "whole numbers": lambda e: (e.n in MIXED, e.k not in (1, 2.0, 3)),
    "small whole numbers": lambda e: (e.k in MIXED, e.k in DECIMALS),
    "fractions": lambda e: (e.x in MIXED, e.x in (0, 1.5)),
    "fractions and NaN": lambda e: (e.x in DECIMALS, e.x not in (True, None)),
    "truth values": lambda e: (e.b in MIXED, e.b in {True}),
    "truth values and numbers": lambda e: (e.b in (0.0, None), e.b in PAIRS),
    "texts": lambda e: (e.s in MIXED, e.s in (None, "1e3")),
    "texts among times": lambda e: (e.s not in DAYS, e.s in MAYBE),
    "times": lambda e: (e.t in DAYS, e.q in DAYS),
    "durations": lambda e: (e.t - e.t in DAYS, e.t.replace(tzinfo=UTC) in DAYS),
    "decimals": lambda e: (e.d in DECIMALS, e.d in TENS),
    "decimals among others": lambda e: (e.d in MIXED, e.d in (2.5, 7)),
    "computed numbers": lambda e: (e.k + 1 in MIXED, e.x * 2 in MIXED),
    "computed values": lambda e: (e.s + "" in MIXED, e.d + 1 in DECIMALS),
    "pairs": lambda e: ((e.s, e.k) in PAIRS, (e.s, e.k) not in {("x", 7)}, (e.s, (e.k, 1)) in PAIRS),
    "pairs of others": lambda e: ((e.s,) in PAIRS, (e.s, 7) in PAIRS, (e.k + 1, e.b) in ((8, 1),)),
    "pairs in a list": lambda e: ((e.s, e.x) in LISTED, (e.x, e.s, e.k) in LISTED, (e.q, e.t, None) in LISTED),
    "conditions": lambda e: e.s if e.k in {7, 8.0} or e.x in (1.5, None) else "other",
}
MAYBE = {"x", None}
LISTED = [("x", 0.0), ("", math.nan), (1.5, "x", 7), (date(2024, 2, 29), stamp(2024, 1, 2, 3), None)]
FUNCTIONS = {**DURATIONS, **MOMENTS, **NUMBERS, **OF_DECIMALS, **LOOKED_FOR}


@pytest.fixture(autouse=True, scope="module")
def far_from_utc():
    """A local time that has two offsets a year."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


def rows(**fields):
    """Batches: in some, fields may be None."""
    whole = st.builds(Row, **fields)
    return st.lists(whole, min_size=1, max_size=5) | st.lists(
        st.builds(Row, **{name: values | st.none() for name, values in fields.items()}), min_size=1, max_size=3
    )


@pytest.mark.parametrize("name", FUNCTIONS)
@given(values=rows(**{name: values for name, (_, values) in FIELDS.items()}))
def test_a_function_on_columns_gives_what_it_gives_for_each_element(name, values):
    try:
        found = difference(Case(name, FUNCTIONS[name], KIND, values))
    except Guard:
        return
    assert found is None, found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_plain_values_are_not_handed_back(name):
    some = SOME
    if name == "numbered days":
        some = Row(**{**SOME.as_dict(), "n": 700_000})
    if name == "decimals of text":
        some = Row(**{**SOME.as_dict(), "s": "1.50"})
    mapped(FUNCTIONS[name], Columns(KIND, KIND.to_arrow([some]), None, None), None)
