"""Types, each with a strategy of its values."""

from hypothesis import strategies as st

from eventide.common import Instant, Row, Types
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.windows import TimeWindow

MICROS = st.integers(-(2**63), 2**63 - 1)
MILLIS = st.integers(-(2**63) // 1000 + 1, 2**63 // 1000 - 1)

BASIC = {
    Types.STRING(): st.text(),
    Types.CHAR(): st.text(min_size=1, max_size=1),
    Types.BOOLEAN(): st.booleans(),
    Types.BYTE(): st.integers(-(2**7), 2**7 - 1),
    Types.SHORT(): st.integers(-(2**15), 2**15 - 1),
    Types.INT(): st.integers(-(2**31), 2**31 - 1),
    Types.LONG(): st.integers(-(2**63), 2**63 - 1),
    Types.BIG_INT(): st.integers(-(10**38) + 1, 10**38 - 1),
    Types.FLOAT(): st.floats(width=32, allow_nan=False),
    Types.DOUBLE(): st.floats(allow_nan=False),
    Types.BIG_DEC(): st.decimals(-(10**18), 10**18, places=18),
    Types.BIG_DEC(10, 2): st.decimals(-(10**8) + 1, 10**8 - 1, places=2),
    Types.SQL_DATE(): st.dates(),
    Types.SQL_TIME(): st.times(),
    Types.SQL_TIMESTAMP(): st.datetimes(),
    Types.INSTANT(): MICROS.map(lambda us: Instant(us // 10**6, us % 10**6 * 1000)),
    Types.TIME_WINDOW(): st.tuples(*[MILLIS | st.sampled_from([MIN_MS, MAX_MS])] * 2).map(
        lambda ends: TimeWindow(min(ends), max(ends))
    ),
    Types.PRIMITIVE_ARRAY(Types.BYTE()): st.binary(),
    # Elements are compared by how they look, and how a set of several looks depends on how it was made.
    Types.PICKLED_BYTE_ARRAY(): st.one_of(st.integers(), st.text(), st.frozensets(st.integers(), max_size=1)),
}
HASHABLE_KEYS = [Types.STRING(), Types.LONG(), Types.BOOLEAN(), Types.SQL_DATE()]


def typed(parts):
    """Return a strategy of (type, strategy of its values), with `parts` of the same kind inside."""
    several = st.lists(parts, min_size=1, max_size=3)
    optional = lambda pairs: st.tuples(*(st.none() | values for _, values in pairs))  # noqa: E731
    kinds = lambda pairs: [kind for kind, _ in pairs]  # noqa: E731
    names = lambda pairs: [f"n{i}" for i in range(len(pairs))]  # noqa: E731
    numbered = lambda values: Row.of_fields([f"f{i}" for i in range(len(values))], values)  # noqa: E731
    return st.one_of(
        parts.map(lambda p: (Types.LIST(p[0]), st.lists(st.none() | p[1], max_size=3))),
        parts.map(lambda p: (Types.OBJECT_ARRAY(p[0]), st.lists(st.none() | p[1], max_size=3))),
        several.map(lambda ps: (Types.TUPLE(kinds(ps)), optional(ps))),
        several.map(lambda ps: (Types.ROW(kinds(ps)), optional(ps).map(numbered))),
        several.map(
            lambda ps: (
                Types.ROW_NAMED(names(ps), kinds(ps)),
                optional(ps).map(lambda t: Row.of_fields(names(ps), t)),
            )
        ),
        st.tuples(st.sampled_from(HASHABLE_KEYS), parts).map(
            lambda kp: (
                Types.MAP(kp[0], kp[1][0]),
                st.dictionaries(BASIC[kp[0]], st.none() | kp[1][1], max_size=3),
            )
        ),
    )


any_type = st.recursive(st.sampled_from(list(BASIC.items())), typed, max_leaves=5)
