"""Rolling aggregations on columns give what they give element by element, and both go on with the other's state."""

import datetime
import math

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from eventide.api.functions import ReduceFunction, in_python
from eventide.common import Row, Types
from eventide.common.ms import MIN_MS
from eventide.errors import EventideError
from eventide.runtime.elements.elements import Elements
from eventide.runtime.metrics import BATCHES_IN_PYTHON, Metrics
from eventide.runtime.process.operation import ProcessOperation, RollingOperation
from eventide.runtime.process.rolling import Accumulates, Chooses, Rolling, higher, lower
from eventide.runtime.process.rolling_columns import RollingSpec
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.tasks.operator import Key, OperatorContext, OperatorInput

NAMES = ["k", "g", "n", "i", "x", "t", "s"]
KINDS = [
    Types.STRING(),
    Types.BOOLEAN(),
    Types.LONG(),
    Types.INT(),
    Types.DOUBLE(),
    Types.SQL_TIMESTAMP(),
    Types.STRING(),
]
ROW, TUPLE = Types.ROW_NAMED(NAMES, KINDS), Types.TUPLE(KINDS)


def order(one):
    return one[5], one[2], one[6]


def plus(a, b):
    return a + b


REDUCES = [
    lambda a, b: b if b[5] >= a[5] else a,
    lambda a, b: max(a, b, key=order),
    lambda a, b: a if a[2] < b[2] else b,
    lambda a, b: b,
    in_python(lambda a, b: b),
]
TUPLES = [
    *REDUCES,
    lambda a, b: (a[0], a[1], a[2] + b[2], max(a[3], b[3]), a[4] + b[4], b[5], b[6]),
    lambda a, b: (a[0], b[1], b[2] - a[2], a[3] + b[3], a[4] / 2 + b[4], a[5], a[6] + b[6] if len(a[6]) < 9 else b[6]),
    lambda a, b: (a[0], a[1], a[2] // b[2], b[3], a[4], a[5], None),
]
ROWS = [*REDUCES, lambda a, b: Row(k=a.k, g=b.g, n=a.n + b.n, i=a.i, x=a.x * 1.5 + b.x, t=b.t, s=a.s)]
FIELDS = [
    *(Accumulates(how, field) for field in (2, 3, 4) for how in (__import__("operator").add, lower, higher)),
    *(Accumulates(how, field) for field in (1, 5, 6) for how in (lower, higher)),
    *(Chooses(field, highest=h, first=f) for field in (1, 2, 4, 5, 6) for h in (True, False) for f in (True, False)),
]
KEYS = [
    Key(lambda e: e[0], Types.PICKLED_BYTE_ARRAY()),
    Key(lambda e: (e[0], e[1]), Types.PICKLED_BYTE_ARRAY()),
    Key(lambda e: e[0], Types.STRING()),
    Key(lambda e: len(e[0]), Types.PICKLED_BYTE_ARRAY()),
]
"""Keys by one field, by two, with their type declared, and by what is computed."""

floats = st.one_of(st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 0.1, 1e300, 1e16]), st.floats())
few = st.integers(-3, 3)
element = st.tuples(
    st.sampled_from(["a", "b", "", "é", "ab"]),
    st.booleans(),
    st.one_of(few, few, few, st.sampled_from([2**62, -(2**63), 2**53 + 1])),
    st.one_of(few, few, st.just(2**31 - 1)),
    floats,
    st.integers(0, 5).map(lambda day: datetime.datetime(2026, 1, 1 + day)),
    st.sampled_from(["x", "y", "z", "ß"]),
)
with_none = st.tuples(element, st.integers(1, 6)).map(lambda one: (*one[0][: one[1]], None, *one[0][one[1] + 1 :]))
batch = st.lists(st.lists(st.one_of(*[element] * 60, with_none), max_size=8), min_size=1, max_size=2)
"""The elements of one micro-batch, by split."""


def shown(value):
    """A value with its types, in which NaN equals NaN."""
    return repr([(type(part).__name__, part) for part in value]) if isinstance(value, tuple | Row) else repr(value)


def parts_of(splits, kind, first_ms):
    parts = []
    for values in splits:
        if values:
            times = [None if number % 3 == 2 else first_ms + number for number in range(len(values))]
            elements = Elements(values if kind is TUPLE else [Row(**dict(zip(NAMES, v, strict=True))) for v in values],
                                times, [*range(len(values))])
            parts.append(Elements(columns=elements.as_columns(kind)))
    return parts


def run(planned, backend, parts, key):
    """One micro-batch: its results, or the type of the error that the program ends with."""
    metrics = Metrics(0)
    operator = planned.open(planned.spec, backend, OperatorContext(128, metrics, MIN_MS, 0))
    planned.spec.user_functions()[0].open(_Context(planned.spec))
    out = []
    if parts:
        if not isinstance(planned.spec, RollingSpec):
            for part in parts:
                part.keys = [key.select(value) for value in part.values]
        operator.inputs[0](parts)
        found = operator.take_outputs().get(None, Elements())
        out = list(zip(map(shown, found.values), found.timestamps, found.sequence, strict=True))
    operator.flush()
    return out, operator.held(), metrics


class _Context:
    def __init__(self, spec):
        self.state = spec.state_of_functions

    def get_reducing_state(self, descriptor):
        return self.state.get_reducing_state(descriptor)


def planned(operation, function, kind, key):
    source = OperatorInput(kind, key)
    return operation(Rolling(ReduceFunction.of(function), "rolling", kind), kind).planned("roll", [source], 128)


def all_state(backend):
    return {
        key: shown(values["global:reduced"]) for (key, _), values in KeyedState(backend, 128).all_entries().items()
    }


@settings(deadline=None, max_examples=300)
@given(st.data(), st.lists(st.tuples(batch, st.integers(0, 3)), min_size=1, max_size=4))
def test_columns_and_elements_give_the_same_and_read_the_same_state(data, batches):
    kind = data.draw(st.sampled_from([TUPLE, ROW]))
    function = data.draw(st.sampled_from([*(TUPLES if kind is TUPLE else ROWS), *FIELDS]))
    key = data.draw(st.sampled_from(KEYS))
    expected, found = MemoryBackend(), MemoryBackend()
    for splits, speed in batches:
        # As after a restart with a function that columns cannot call, now and then.
        operation = ProcessOperation if speed == 0 else RollingOperation
        one = two = None
        try:
            one = run(planned(ProcessOperation, function, kind, key), expected, parts_of(splits, kind, 5), key)
        except EventideError as error:
            one = error
        try:
            two = run(planned(operation, function, kind, key), found, parts_of(splits, kind, 5), key)
        except EventideError as error:
            two = error
        if isinstance(one, EventideError) or isinstance(two, EventideError):
            assert (type(one), str(one)) == (type(two), str(two))
            event("an error")
            return
        assert two[:2] == one[:2] if speed == 0 else (two[0], two[1]["numKeys"]) == (one[0], one[1]["numKeys"])
        event(f"in Python: {bool(two[2].counters())}")
        assert all_state(found) == all_state(expected)
