"""Rolling aggregations on columns give what they give element by element, and both go on with the other's state."""

import datetime
import itertools
import math
import operator
import struct
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from eventide.api.functions import ReduceFunction, RuntimeContext, in_python
from eventide.common import Row, Types
from eventide.common.ms import MIN_MS
from eventide.datastream import OutputTag
from eventide.errors import EventideError
from eventide.runtime.elements.elements import Elements
from eventide.runtime.metrics import Metrics
from eventide.runtime.process import rolling
from eventide.runtime.process.operation import ProcessOperation, RollingOperation
from eventide.runtime.process.rolling import Accumulates, Chooses, Rolling, RollingGroups, RollingSpec, higher, lower
from eventide.runtime.state import keyed
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.tasks.operator import Key, OperatorContext, OperatorInput
from eventide.testing import local_environment
from support.counting_backend import CountingBackend

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


REDUCES = [
    lambda a, b: b if b[5] >= a[5] else a,
    lambda a, b: max(a, b, key=order),
    lambda a, b: min(a, b, key=lambda e: (-e[2], e[4], e[6])),
    lambda a, b: min(a, b, key=lambda e: (e[5], -e[2], e[6])),
    lambda a, b: b if (b[1], b[6], a[3]) >= (a[1], a[6], b[3]) else a,
    lambda a, b: b if (b[6], a[3]) >= (a[6], b[3]) else a,
    lambda a, b: b if (b[2] > a[2] and b[5] == a[5]) or b[5] > a[5] else a,
    lambda a, b: b if b[2] > a[2] or b[5] > a[5] else a,
    lambda a, b: a if a[2] < b[2] else b,
    lambda a, b: b if b[4] > a[4] else a,
    lambda a, b: b,
    in_python(lambda a, b: b),
]
TUPLES = [
    *REDUCES,
    lambda a, b: (a[0], a[1], a[2] + b[2], max(a[3], b[3]), a[4] + b[4], b[5], b[6]),
    lambda a, b: (a[0], b[1], b[2] - a[2], a[3] + b[3], a[4] / 2 + b[4], a[5], a[6] + b[6] if len(a[6]) < 9 else b[6]),
    lambda a, b: (a[0], b[1], a[2], a[3], max(a[4], b[4]), b[5], b[6]),
    lambda a, b: (a[0], a[1], a[2] // b[2], b[3], a[4], a[5], None),
]
ROWS = [*REDUCES, lambda a, b: Row(k=a.k, g=b.g, n=a.n + b.n, i=a.i, x=a.x * 1.5 + b.x, t=b.t, s=a.s)]
FIELDS = [
    *(Accumulates(how, field) for field in (2, 3, 4) for how in (operator.add, lower, higher)),
    *(Accumulates(how, field) for field in (1, 5, 6) for how in (lower, higher)),
    *(Chooses(field, highest=h, first=f) for field in (1, 2, 4, 5, 6) for h in (True, False) for f in (True, False)),
]
START = datetime.datetime.fromisoformat("2026-01-01")
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
    st.integers(0, 5).map(lambda day: START + datetime.timedelta(day)),
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
            elements = Elements(
                values if kind is TUPLE else [Row(**dict(zip(NAMES, v, strict=True))) for v in values],
                times,
                [*range(len(values))],
            )
            parts.append(Elements(columns=elements.as_columns(kind)))
    return parts


def run(planned, backend, parts, key):
    """One micro-batch: its results, or the type of the error that the program ends with."""
    metrics = Metrics(0)
    rolling = planned.open(planned.spec, backend, OperatorContext(128, metrics, MIN_MS, 0))
    planned.spec.user_functions()[0].open(RuntimeContext("roll", 1, 0, state=planned.spec.state_of_functions))
    out = []
    if parts:
        if not isinstance(planned.spec, RollingSpec):
            for part in parts:
                part.keys = [key.select(value) for value in part.values]
        rolling.inputs[0](parts)
        found = rolling.take_outputs().get(None, Elements())
        parts[0].columns.type_info.to_arrow(found.values)  # where a result does not fit, the job ends
        out = list(zip(map(shown, found.values), found.timestamps, found.sequence, strict=True))
    rolling.flush()
    return out, rolling.held(), metrics


def planned(operation, function, kind, key):
    source = OperatorInput(kind, key)
    return operation(Rolling.of(ReduceFunction.of(function), "rolling", kind), kind).planned("roll", [source], 128)


def all_state(backend):
    """Gather the value of each key, wherever it lies; the backend stays as it is."""
    backend = MemoryBackend({**backend.values})
    state = KeyedState(backend, 128)
    return {key: shown(values["global:reduced"]) for (key, _), values in state.all_entries().items()}


@settings(deadline=None, max_examples=4 * settings().max_examples)
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
        assert two[:2] == one[:2]
        event(f"in Python: {bool(two[2].counters())}")
        assert all_state(found) == all_state(expected)


def doubles(numbers):
    return [struct.pack("d", number) for number in numbers]


@settings(deadline=None)
@given(st.lists(st.lists(floats, min_size=1, max_size=150), min_size=1, max_size=5))
def test_floating_point_numbers_are_added_in_the_order_of_arrival(groups):
    numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    in_groups = RollingGroups(numbers, np.arange(len(numbers)))
    found = in_groups.rolled(Accumulates(operator.add, 0), pa.array(list(itertools.chain(*groups))), Types.DOUBLE())
    expected = [total for group in groups for total in itertools.accumulate(group)]
    assert doubles(0.5 if math.isnan(one) else one for one in found.to_pylist()) == doubles(
        0.5 if math.isnan(one) else one for one in expected
    )


PAIR = Types.ROW_NAMED(["k", "n"], [Types.LONG(), Types.LONG()])
BY_K = Key(lambda pair: pair.k, Types.LONG(), ("k",))


def pairs(numbers, kind=PAIR):
    values = [Row(k=number, n=1) for number in numbers]
    columns = Elements(values, [0] * len(values), [*range(len(values))]).as_columns(kind)
    return [Elements(columns=columns)]


def test_a_type_whose_text_does_not_say_all_of_it_is_not_on_columns():
    kind = Types.ROW_NAMED(["k", "of: all"], [Types.LONG(), Types.LONG()])
    rolling = planned(RollingOperation, Accumulates(operator.add, "of: all"), kind, BY_K)
    assert rolling.speed == f"element by element, because the name of the type {kind} does not describe it completely"


def test_a_dict_is_no_key_on_columns_either():
    """A dict has no hash, so Python names the element that has one as its key."""
    rolling = planned(
        RollingOperation,
        Accumulates(operator.add, "n"),
        PAIR,
        Key(lambda pair: {"k": pair.k}, Types.PICKLED_BYTE_ARRAY()),
    )
    assert rolling.speed == (
        "element by element, because columns cannot tell keys of type DICT(k: LONG) apart; key by plain fields"
    )
    writer = rolling.partitioners[0].open("the source", 0, 2)
    with pytest.raises(EventideError, match=r"the key \{'k': 7\} is a dict that cannot be hashed"):
        writer.add(pairs([7])[0])


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.integers(1, 9_000), st.integers(1, 4_000), st.booleans()), min_size=1, max_size=8))
@example([(1, 4_000, False), (4_001, 4_000, False), *((first, 1, True) for first in range(1, 8_000, 500))])
def test_rows_grow_in_number_and_no_key_is_lost(batches):
    backend, total, expected = MemoryBackend(), Accumulates(operator.add, "n"), Counter()
    for first, many, is_sparse in batches:
        numbers = [number * 7_919 % 9_001 for number in range(first, first + (2 if is_sparse else many))]
        expected.update(numbers)
        out, held, _ = run(planned(RollingOperation, total, PAIR, BY_K), backend, pairs(numbers), BY_K)
        assert [text for text, _, _ in out[-1:]] == [shown(Row(k=numbers[-1], n=expected[numbers[-1]]))]
        assert held == {"numKeys": len(expected), "numTimers": 0}
    assert all_state(backend) == {number: shown(Row(k=number, n=n)) for number, n in expected.items()}


def test_the_state_of_a_program_in_python_serves_one_on_columns_and_the_other_way_round():
    backend, total = CountingBackend(), Accumulates(operator.add, "n")
    numbers = range(4_000)
    run(planned(ProcessOperation, total, PAIR, BY_K), backend, pairs(numbers), BY_K)
    _, held, metrics = run(planned(RollingOperation, total, PAIR, BY_K), backend, pairs(numbers), BY_K)
    assert (held, metrics.counters()) == ({"numKeys": 4_000, "numTimers": 0}, {})
    backend.calls.clear()
    out, _, _ = run(planned(RollingOperation, total, PAIR, BY_K), backend, pairs([7]), BY_K)
    assert [text for text, _, _ in out] == [shown(Row(k=7, n=3))]
    assert len(backend.calls) < 24
    run(planned(ProcessOperation, total, PAIR, BY_K), backend, pairs([7]), BY_K)
    assert all_state(backend) == {number: shown(Row(k=number, n=4 if number == 7 else 2)) for number in numbers}


def test_a_wider_type_of_elements_takes_the_state_over():
    backend, narrow = MemoryBackend(), Types.ROW_NAMED(["k", "n"], [Types.LONG(), Types.INT()])
    total = Accumulates(operator.add, "n")
    run(planned(RollingOperation, total, narrow, BY_K), backend, pairs([1, 2], narrow), BY_K)
    for expected in (2, 3):
        out, _, _ = run(
            planned(RollingOperation, Accumulates(operator.add, "n"), PAIR, BY_K), backend, pairs([1]), BY_K
        )
        assert [text for text, _, _ in out] == [shown(Row(k=1, n=expected))]
    assert all_state(backend) == {1: shown(Row(k=1, n=3)), 2: shown(Row(k=2, n=1))}


def test_keys_of_one_hash_stay_apart(monkeypatch):
    monkeypatch.setattr(rolling, "hashes_of_parts", lambda parts, kind: np.full(len(parts[0]), 7, np.uint64))
    monkeypatch.setattr(keyed, "hashes_of", lambda keys: np.full(len(keys), 7, np.uint64))
    monkeypatch.setattr(keyed, "stable_hash", lambda key: 7)
    backend, total = MemoryBackend(), Accumulates(operator.add, "n")
    for numbers in ([1], [2, 1, 2], [1]):
        run(planned(RollingOperation, total, PAIR, BY_K), backend, pairs(numbers), BY_K)
    assert all_state(backend) == {1: shown(Row(k=1, n=3)), 2: shown(Row(k=2, n=2))}


def test_what_is_too_large_becomes_a_dead_letter_and_the_rest_goes_on(capsys):
    narrow = Types.ROW_NAMED(["k", "n"], [Types.LONG(), Types.BYTE()])
    rows = [Row(k=number % 3, n=120 if number == 4 else 20) for number in range(9)]
    letters = OutputTag("letters")
    env = local_environment()
    env.set_parallelism(1)
    sums = env.from_collection(rows, narrow).key_by("k").sum("n").side_output_dead_letters(letters)
    sums.explain()
    assert "columns, in one pass" in capsys.readouterr().out
    expected = [20, 20, 20, 40, 40, 60, 40, 60]
    assert [row.n for row in sums.execute_and_collect()] == expected
    assert [letter.element for letter in sums.get_side_output(letters).execute_and_collect()] == [rows[4]]


@pytest.mark.parametrize(
    ("reason", "roll"),
    [
        ("the type of its elements is not declared", lambda env: env.from_collection([(1, 2)]).key_by("f0").sum(1)),
        ("is Python: it uses id", lambda env: env.from_collection([(1,)], ONE).key_by(lambda e: id(e) % 2).sum(0)),
        ("it uses print", lambda env: env.from_collection([(1,)], ONE).key_by("f0").reduce(lambda a, b: print(a))),
        ("in_python", lambda env: env.from_collection([(1,)], ONE).key_by("f0").reduce(in_python(lambda a, b: b))),
        ("do not add up or compare that field", lambda env: env.from_collection([("a",)], TEXT).key_by("f0").sum(0)),
    ],
)
def test_explain_says_why_a_rolling_aggregation_is_python(reason, roll, capsys):
    roll(local_environment()).explain()
    assert reason in capsys.readouterr().out


ONE, TEXT = Types.TUPLE([Types.LONG()]), Types.TUPLE([Types.STRING()])


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (lambda a, b: max(a, b, key=lambda e: (e[0], e[1])), None),
        (lambda a, b: b if b[0] > a[0] or (b[0] == a[0] and b[1] > a[1]) else a, None),
        (lambda a, b: max(a, b, key=lambda e: (e[0], -e[1])), "bad operand type for unary -"),
        (lambda a, b: b if (b[1] > a[1] and b[0] == a[0]) or b[0] > a[0] else a, "'>' not supported between"),
    ],
)
def test_a_field_may_be_none_where_the_function_does_not_look_at_it(last, message):
    kind, key = Types.TUPLE([Types.LONG(), Types.LONG()]), Key(lambda e: 1, Types.LONG())
    rolling = planned(RollingOperation, last, kind, key)
    assert rolling.speed == "columns, in one pass"
    elements = Elements([(1, None), (2, 4), (2, 5)], [0, 0, 0], [0, 1, 2])
    parts = [Elements(columns=elements.as_columns(kind))]
    if message is not None:
        with pytest.raises(EventideError, match=message):
            run(rolling, MemoryBackend(), parts, key)
        return
    out, _, metrics = run(rolling, MemoryBackend(), parts, key)
    assert [text for text, _, _ in out] == [shown(value) for value in [(1, None), (2, 4), (2, 5)]]
    assert not metrics.counters()
