"""Functions of joins on columns give what they give when they are called with each pair, errors and order included."""

import re
from collections import Counter, defaultdict
from itertools import zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.functions import FlatJoinFunction, JoinFunction, ProcessJoinFunction, in_python
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import EventideError
from eventide.local.runner import LocalCheckpoint
from eventide.runtime.metrics import BATCHES_IN_PYTHON
from eventide.testing import ScriptedSource, local_environment
from support.examples import examples
from support.twin import by_sink, plan_of, run, runner

_NESTED = Types.ROW_NAMED(["x"], [Types.LONG()])
_ROW = Types.ROW_NAMED(
    ["k", "at", "id", "name", "inner"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING(), _NESTED]
)
_ELEMENTS = st.builds(
    lambda k, at, number, name, inner: Row(k=k, at=at, id=number, name=name, inner=inner),
    st.sampled_from(["a", "b", None]),
    st.integers(-20, 30),
    st.sampled_from([None, 0, 1, -3, 7, 2**62]),
    st.sampled_from([None, "", "x", "Ä"]),
    st.sampled_from([None, Row(x=1), Row(x=None)]),
)
_BATCHES = st.lists(st.lists(st.tuples(st.sampled_from(["s", "t"]), _ELEMENTS), max_size=6), max_size=4)
_IN_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
_LATE, _BAD, _SIDE = OutputTag("late", _ROW), OutputTag("bad"), OutputTag("side")
_PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


class _Joined(JoinFunction):
    def __init__(self, factor):
        self.factor = factor

    def join(self, first, second):
        return first.k, second.at * self.factor


class _Flat(FlatJoinFunction):
    def join(self, first, second):
        if first.at < second.at:
            yield first
        if second.id is not None:
            yield second.name, second.id


class _Timed(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        waited = ctx.get_right_timestamp() - ctx.get_left_timestamp()
        if waited > 0:
            yield left.k, waited, ctx.get_timestamp()
        else:
            yield right


class _Beside(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left.at, right.at
        yield _SIDE, (left.k, right.id)


class _Changing(ProcessJoinFunction):
    """Changes what it is given, which must be its own."""

    def process_element(self, left, right, ctx):
        left.at += right.at
        right.id = None
        return [left, right]


_OF_PAIRS = {
    "fields": (lambda a, b: (a.k, a.id, b.name), None),
    "one of both": (lambda a, b: a if a.at < b.at else b, _ROW),
    "a row": (lambda a, b: Row(k=b.k, sum=a.at + b.at), None),
    "a nested field": (lambda a, b: (a.k, b.inner.x), None),
    "a sum that may be too large": (lambda a, b: (a.id + b.id, b.id), _PAIR),
    "a quotient": (lambda a, b: a.at // b.at, Types.LONG()),
    "None": (lambda a, b: 0 if a.id is None else b.at, None),
    "text": (lambda a, b: f"{a.k} {b.id}", Types.STRING()),
    "a text of ASCII": (lambda a, b: (a.name or "none").upper(), None),
    "an undeclared type": (lambda a, b: (a.k, None), None),
    "not of the declared type": (lambda a, b: a.name, Types.LONG()),
    "an object": (_Joined(3), None),
    "several": (_Flat(), None),
}
_OF_TIMES = {
    "fields": (lambda a, b, _: [(a.k, a.id, b.name)], None),
    "times": (lambda a, b, ctx: [(ctx.get_left_timestamp(), ctx.get_timestamp() - b.at)], _PAIR),
    "sometimes": (lambda a, b, _: [a, b] if a.at < b.at else None, None),
    "a sum that may be too large": (lambda a, b, _: [a.id + b.id], Types.LONG()),
    "text": (lambda a, b, ctx: [f"{a.k} {ctx.get_timestamp()}"], Types.STRING()),
    "an object": (_Timed(), None),
    "side outputs": (_Beside(), _PAIR),
    "changes": (_Changing(), _ROW),
}


def _streams(batches):
    env = local_environment()
    return [
        env.from_source(ScriptedSource(["s", "t"], script, type_info=_ROW), _IN_TIME, name)
        for name, script in zip(("left", "right"), batches, strict=True)
    ]


def _window_plan(batches, function, kind, *, bad=False):
    one, other = _streams(batches)
    joined = one.join(other).where("k").equal_to("k").window(TumblingEventTimeWindows.of(9))
    results = joined.apply(function, kind)
    if bad:
        results = results.side_output_dead_letters(_BAD)
    return plan_of(results, *([results.get_side_output(_BAD)] if bad else []))


def _interval_plan(batches, bounds, function, kind, *, late=True, bad=False):
    one, other = (stream.key_by("k") for stream in _streams(batches))
    join = one.interval_join(other).between(*bounds)
    if late:
        join = join.side_output_left_late_data(_LATE).side_output_right_late_data(_LATE)
    results = join.process(function, kind)
    if bad:
        results = results.side_output_dead_letters(_BAD)
    tags = [_SIDE, *([_LATE] if late else []), *([_BAD] if bad else [])]
    return plan_of(results, *(results.get_side_output(tag) for tag in tags))


def _outcome(plan, is_columnar):
    assert plan.operators[0].speed.startswith("columns") == is_columnar
    try:
        return run(plan), None
    except EventideError as error:
        # How many results are brought to their type together, and so the number of a bad one, depends on the speed.
        text = re.sub(r"element \d+: ", "", str(error))
        return None, (type(error), text.partition("Its traceback")[0])


def _shown(value):
    """A value with the types of all of its parts."""
    parts = [_shown(part) for part in value] if isinstance(value, tuple | Row) else repr(value)
    return type(value).__name__, parts, value.get_field_names() if isinstance(value, Row) else None


def _by_key(batch):
    """The results of each time, for each key in their order: the order of keys is not defined."""
    found = defaultdict(list)
    for value, time_ms in batch:
        found[time_ms].append(repr((_shown(value), time_ms)))
    return {time_ms: Counter(texts) for time_ms, texts in found.items()}


@given(_BATCHES, _BATCHES, st.sampled_from([*_OF_PAIRS]))
@examples(250)
def test_a_window_join_gives_what_its_function_gives(left_batches, right_batches, name):
    batches, (function, kind) = (left_batches, right_batches), _OF_PAIRS[name]
    on_columns, error = _outcome(_window_plan(batches, function, kind), True)
    expected, expected_error = _outcome(_window_plan(batches, in_python(function), kind), False)
    assert (error is None) == (expected_error is None)
    if expected is None:
        assert error[0] is expected_error[0]
    else:
        assert [_by_key(batch[0]) for batch in on_columns] == [_by_key(batch[0]) for batch in expected]


@given(_BATCHES, _BATCHES, st.sampled_from([*_OF_PAIRS]))
@examples(250)
def test_pairs_of_one_key_are_in_order_and_their_errors_are_equal(left_batches, right_batches, name):
    batches = [
        [
            [(split, Row(k="a", at=row.at, id=row.id, name=row.name, inner=row.inner)) for split, row in batch]
            for batch in side
        ]
        for side in (left_batches, right_batches)
    ]
    function, kind = _OF_PAIRS[name]
    on_columns, error = _outcome(_window_plan(batches, function, kind), True)
    expected, expected_error = _outcome(_window_plan(batches, in_python(function), kind), False)
    assert error == expected_error
    assert _all_shown(on_columns or []) == _all_shown(expected or [])


def _all_shown(batches):
    return [[[(_shown(value), time_ms) for value, time_ms in sink] for sink in batch] for batch in batches]


@given(_BATCHES, _BATCHES, st.integers(-12, 12), st.integers(0, 12), st.sampled_from([*_OF_TIMES]))
@examples(250)
def test_an_interval_join_gives_what_its_function_gives(left_batches, right_batches, lower, width, name):
    batches, (function, kind), bounds = (left_batches, right_batches), _OF_TIMES[name], (lower, lower + width)
    on_columns, error = _outcome(_interval_plan(batches, bounds, function, kind), True)
    expected, expected_error = _outcome(_interval_plan(batches, bounds, in_python(function), kind), False)
    assert error == expected_error
    for found, right in zip_longest(_all_shown(on_columns or []), _all_shown(expected or [])):
        assert found[:2] == right[:2]
        assert Counter(map(repr, found[2])) == Counter(map(repr, right[2]))  # late ones of keys in any order


@given(_BATCHES, _BATCHES, st.sampled_from(["a sum that may be too large", "a quotient", "several", "a nested field"]))
@examples(100)
def test_windows_that_cannot_fire_become_dead_letters(left_batches, right_batches, name):
    batches, (function, kind) = (left_batches, right_batches), _OF_PAIRS[name]
    on_columns, _ = _outcome(_window_plan(batches, function, kind, bad=True), True)
    expected, _ = _outcome(_window_plan(batches, in_python(function), kind, bad=True), False)
    for found, right in zip(on_columns, expected, strict=True):
        assert [_by_key(sink) for sink in _without_traces(found)] == [_by_key(sink) for sink in _without_traces(right)]


@given(
    _BATCHES, _BATCHES, st.integers(-12, 12), st.sampled_from(["a sum that may be too large", "times", "side outputs"])
)
@examples(100)
def test_pairs_that_a_function_cannot_handle_become_dead_letters(left_batches, right_batches, lower, name):
    batches, (function, kind), bounds = (left_batches, right_batches), _OF_TIMES[name], (lower, lower + 9)
    plans = [
        _interval_plan(batches, bounds, each, kind, late=False, bad=True) for each in (function, in_python(function))
    ]
    on_columns, expected = (_outcome(plan, not number)[0] for number, plan in enumerate(plans))
    shown = [_all_shown([_without_traces(batch) for batch in batches]) for batches in (on_columns, expected)]
    assert shown[0] == shown[1]


def _without_traces(batch):
    """Results with dead letters whose traces of calls are left out."""
    return [
        [
            (
                Row(**{**value.as_dict(), "traceback": None})
                if "traceback" in (value.get_field_names() or ())
                else value,
                t,
            )
            if isinstance(value, Row)
            else (value, t)
            for value, t in sink
        ]
        for sink in batch
    ]


def _restarted(plans):
    """The results of a job that is stopped after each micro-batch, and goes on with another program."""
    checkpoint, found = LocalCheckpoint(), []
    for plan in plans:
        batch = next(iter(runner(plan, checkpoint=checkpoint).batches()), None)
        if batch is None:
            return found
        found.append(by_sink(plan, batch))
    raise AssertionError("there are more batches than programs")


@given(
    _BATCHES,
    _BATCHES,
    st.lists(st.sampled_from(["fields", "sometimes", "text", "an object"]), min_size=12, max_size=12),
)
@examples(60)
def test_a_changed_function_goes_on_from_the_state_of_the_one_before(left_batches, right_batches, names):
    batches = left_batches, right_batches
    for plan_for in (
        lambda name: _interval_plan(batches, (-5, 5), *_OF_TIMES[name], late=False),
        lambda name: _window_plan(batches, *_OF_PAIRS["several" if name == "sometimes" else name]),
    ):
        whole = {name: [batch[0] for batch in run(plan_for(name))] for name in {*names}}
        parts = _restarted(map(plan_for, names))
        at = 0
        for number, batch in enumerate(parts):
            expected = whole[names[number]]
            assert _by_key(batch[0]) == _by_key(expected[number])
            at += 1
        assert at >= min(map(len, whole.values()))


@given(_BATCHES, _BATCHES, st.sampled_from([*_OF_TIMES]))
@examples(200)
def test_a_join_at_any_time_gives_what_its_function_gives(left_batches, right_batches, name):
    plans, (function, kind) = [], _OF_TIMES[name]
    for each in (function, in_python(function)):
        one, other = (stream.key_by("k") for stream in _streams((left_batches, right_batches)))
        plans.append(plan_of(one.interval_join(other).at_any_time().process(each, kind)))
    (on_columns, error), (expected, expected_error) = (_outcome(plan, not n) for n, plan in enumerate(plans))
    assert error == expected_error
    assert _all_shown(on_columns or []) == _all_shown(expected or [])


def test_pairs_that_only_python_can_handle_are_counted():
    batches = [[[("s", Row(k="a", at=1, id=2**62, name="x", inner=None))]]] * 2
    local = runner(_interval_plan(batches, (0, 5), *_OF_TIMES["a sum that may be too large"][:1], None, late=False))
    assert [value for batch in local.batches() for sink in batch.elements.values() for value, _ in sink] == [2**63]
    assert local.metrics()["interval join"][BATCHES_IN_PYTHON] == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda joined: joined.allowed_lateness(1), "without allowed_lateness"),
        (lambda joined: joined, ""),
    ],
)
def test_lateness_keeps_a_window_join_from_columns(change, reason):
    one, other = _streams([[], []])
    joined = one.join(other).where("k").equal_to("k").window(TumblingEventTimeWindows.of(9))
    speed = plan_of(change(joined).apply(lambda a, b: (a.k, b.k))).operators[0].speed
    assert speed.startswith("columns") == (not reason)
    assert reason in speed
