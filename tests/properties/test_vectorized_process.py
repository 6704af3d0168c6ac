"""A function on columns against the function on single elements that means the same, on random streams."""

import datetime
from copy import deepcopy
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row, Types, WatermarkStrategy
from eventide.common.watermark_generators import PunctuatedWatermarks
from eventide.datastream import KeyedProcessFunction, OutputTag, RuntimeExecutionMode
from eventide.datastream.functions import VectorizedKeyedProcessFunction
from eventide.datastream.state import ValueStateDescriptor
from eventide.testing import ScriptedSource, local_environment
from support.twin import by_sink, plan_of, run_with_restarts, runner

_KEY_TYPES = {
    "text": (Types.STRING(), st.sampled_from(["a", "b", "", "ä", None])),
    "whole": (Types.LONG(), st.sampled_from([0, 1, -1, 2**60, None])),
    "float": (Types.DOUBLE(), st.sampled_from([0.0, 1.5, -2.0, float("inf")])),
    "decimal": (Types.BIG_DEC(), st.sampled_from([Decimal("1.00"), Decimal("1.5"), Decimal("-3")])),
    "date": (Types.SQL_DATE(), st.sampled_from([datetime.date(2024, 1, 1), datetime.date(1969, 12, 31)])),
    "bool": (Types.BOOLEAN(), st.booleans()),
}
_SPLITS = ["s", "t"]
_SIDE = OutputTag("side", Types.LONG())
_LETTERS = OutputTag("letters")
_BAD = 2
_OUT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])


def _row_type(kind):
    names = ["key", "other", "at", "n", "by", "says"]
    return Types.ROW_NAMED(names, [kind, Types.INT(), *[Types.LONG()] * 4])


def _streams(keys):
    element = st.builds(
        Row,
        key=keys,
        other=st.integers(0, 1),
        at=st.integers(0, 40),
        n=st.integers(-3, 3),
        by=st.integers(-5, 25),
        says=st.one_of(st.none(), st.integers(0, 40)),
    )
    return st.lists(st.lists(st.tuples(st.sampled_from(_SPLITS), element), max_size=8), max_size=5)


class _Each(KeyedProcessFunction):
    """Adds up; a total of zero is forgotten. Sets or deletes timers, which set others, or forget.

    When it has done so for a bad element, or a timer of a bad time, it raises, if it ``fails``.
    """

    def __init__(self, *, fails=False):
        self.fails = fails

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.ROW([Types.LONG(), Types.STRING()])))

    def process_element(self, value, ctx):
        total = (self.total.value() or 0) + value.n
        self.total.update(total or None)
        self.last.update(Row(value.at, _text(ctx.get_current_key())))
        timers = ctx.timer_service()
        (timers.delete_event_time_timer if value.n < 0 else timers.register_event_time_timer)(value.at + value.by)
        if value.n == 3:
            timers.register_processing_time_timer(timers.current_processing_time() + value.by)
        yield _text(ctx.get_current_key()), total, timers.current_watermark()
        if value.n % 2:
            yield _SIDE, total
        if self.fails and value.n == _BAD:
            raise ValueError("bad")

    def on_timer(self, timestamp, ctx):
        last = self.last.value()
        yield (
            f"{_text(ctx.get_current_key())} {ctx.time_domain().name}",
            self.total.value(),
            None if last is None else last[0],
        )
        if timestamp % 2 == 0:
            ctx.timer_service().register_event_time_timer(timestamp + 3)
        if timestamp % 3 == 0:
            self.total.clear()
            yield _SIDE, timestamp
        if timestamp % 5 == 0:
            ctx.timer_service().delete_event_time_timer(timestamp + 3)
            self.last.clear()
        if self.fails and timestamp % 4 == 0:
            raise ValueError("bad")


class _Many(VectorizedKeyedProcessFunction):
    """`_Each` for many keys at once."""

    def __init__(self, *, fails=False):
        self.fails = fails

    def open(self, runtime_context):
        get = runtime_context.get_vectorized_state
        self.total = get(ValueStateDescriptor("total", Types.LONG()))
        self.last = get(ValueStateDescriptor("last", Types.ROW([Types.LONG(), Types.STRING()])))

    def process_batch(self, batch, ctx):
        assert ctx.distinct_keys.take(pa.array(ctx.key_numbers)).equals(ctx.keys)
        assert batch.column("at").equals(ctx.timestamps)
        timers, rows = ctx.timer_service(), batch.to_pylist()
        totals = self.total.get(ctx.distinct_keys).to_pylist()
        results, side = [], []
        texts = [_text(key) for key in ctx.keys.to_pylist()]
        for i, (number, row) in enumerate(zip(ctx.key_numbers.tolist(), rows, strict=True)):
            total = totals[number] = (totals[number] or 0) + row["n"]
            totals[number] = total or None
            key, at = ctx.keys.slice(i, 1), pa.array([row["at"] + row["by"]])
            (timers.delete_event_time_timers if row["n"] < 0 else timers.register_event_time_timers)(key, at)
            results.append((texts[i], total, timers.current_watermark()))
            if row["n"] == 3:
                timers.register_processing_time_timers(key, timers.current_processing_time() + row["by"])
            if row["n"] % 2:
                side.append((total, i))
        self.total.put(ctx.distinct_keys, pa.array(totals, pa.int64()))
        self.last.put(ctx.keys, pa.record_batch({"f0": batch.column("at"), "f1": pa.array(texts, pa.string())}))
        backwards = list(range(len(rows)))[::-1]
        ctx.collect(_OUT.to_arrow(results).take(pa.array(backwards)), backwards)
        ctx.output(_SIDE, np.array([total for total, _ in side], np.int64), np.array([i for _, i in side], np.int64))
        if self.fails and _BAD in batch.column("n").to_pylist():
            raise ValueError("bad")

    def on_timers(self, timestamps, ctx):
        times = timestamps.to_numpy()
        last, total = self.last.get(ctx.keys).to_pylist(), self.total.get(ctx.keys).to_pylist()
        texts = [f"{_text(key)} {ctx.time_domain().name}" for key in ctx.keys.to_pylist()]
        lasts = [None if row is None else row["f0"] for row in last]
        ctx.collect(_OUT.to_arrow(list(zip(texts, total, lasts, strict=True))))
        even, threes, fives = (pa.array(times % by == 0) for by in (2, 3, 5))
        timers = ctx.timer_service()
        timers.register_event_time_timers(ctx.keys.filter(even), times[times % 2 == 0] + 3)
        self.total.clear(ctx.keys.filter(threes))
        ctx.output(_SIDE, timestamps.filter(threes), times % 3 == 0)
        timers.delete_event_time_timers(ctx.keys.filter(fives), times[times % 5 == 0] + 3)
        self.last.clear(ctx.keys.filter(fives))
        if self.fails and (times % 4 == 0).any():
            raise ValueError("bad")


def _text(key):
    """The text of a key, independent of its scale: a decimal number in a column has another one than in Python."""
    if isinstance(key, dict | tuple):
        return ", ".join(map(_text, key.values() if isinstance(key, dict) else key))
    return str(key.normalize() if isinstance(key, Decimal) else key)


def _told(results):
    """Results as text; of a dead letter, all but the numbers in it that columns have in another scale."""
    return repr([[[*map(_letter_told, sink)] if i == 2 else sink for i, sink in enumerate(batch)] for batch in results])


def _letter_told(letter):
    value, time_ms = letter
    element = value.element and (value.element.at, value.element.n)
    return value.operator, value.during, value.error, element, _text(value.key), value.timestamp, time_ms


def _stream(function, batches, kind, names, *, punctuated):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    if punctuated:
        strategy = WatermarkStrategy.for_generator(lambda: PunctuatedWatermarks(lambda element, _: element.says))
    source = ScriptedSource(_SPLITS, batches, _row_type(kind))
    stream = local_environment().from_source(source, strategy.with_timestamp_assigner("at"), "s")
    out = stream.key_by(*names).process(function, _OUT).uid("process")
    if not function.fails:
        return out, out.get_side_output(_SIDE)
    return out, out.get_side_output(_SIDE), out.side_output_dead_letters(_LETTERS).get_side_output(_LETTERS)


_NAMES = st.sampled_from([("key",), ("key", "other")])


@pytest.mark.parametrize("key", _KEY_TYPES)
@given(data=st.data(), names=_NAMES, punctuated=st.booleans(), parallelism=st.sampled_from([1, 3]), fails=st.booleans())
@settings(max_examples=30)
def test_columns_give_what_single_elements_give(key, data, names, punctuated, parallelism, fails):
    kind, keys = _KEY_TYPES[key]
    batches, every = data.draw(_streams(keys)), data.draw(st.integers(1, 3))
    found, expected = (
        run_with_restarts(
            plan_of(
                *_stream(function, batches, kind, names, punctuated=punctuated),
                parallelism=parallelism,
                max_parallelism=32_768,
            ),
            every,
        )
        for function in (_Many(fails=fails), _Each(fails=fails))
    )
    assert _told(found) == _told(expected)


@given(_streams(st.sampled_from("abc")), st.integers(1, 4), st.booleans())
@settings(max_examples=20)
def test_a_program_changes_from_one_to_the_other_and_keeps_its_state(batches, change, from_columns):
    kinds = (_Many, _Each) if from_columns else (_Each, _Many)
    first, then = (
        plan_of(*_stream(kind(), batches, Types.STRING(), ("key",), punctuated=False), max_parallelism=32_768)
        for kind in kinds
    )
    one, results = runner(first), []
    for batch in one.batches():
        results.append(by_sink(first, batch))
        if len(results) == change:
            break
    results += [by_sink(then, batch) for batch in runner(then, checkpoint=deepcopy(one.checkpoint)).batches()]
    assert repr(results) == repr(run_with_restarts(then, 100))


@given(_streams(st.sampled_from("abc")))
@settings(max_examples=20)
def test_batch_execution_gives_the_same(batches):
    found, expected = (
        run_with_restarts(
            plan_of(
                *_stream(function, batches, Types.STRING(), ("key",), punctuated=False),
                max_parallelism=32_768,
                mode=RuntimeExecutionMode.BATCH,
            ),
            100,
        )
        for function in (_Many(), _Each())
    )
    assert repr(found) == repr(expected)
