"""A function on columns: what is wrong with it is told with what to do, and its state is that of single keys."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, OutputTag, TimeDomain
from eventide.datastream.functions import VectorizedKeyedProcessFunction
from eventide.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from eventide.errors import DataError, EventideError, ProgramError
from eventide.runtime.elements.keys import key_group
from eventide.testing import local_environment
from support.twin import by_sink, plan_of, runner

READING = Types.ROW_NAMED(["name", "at", "value"], [Types.STRING(), Types.LONG(), Types.LONG()])
RESULT = Types.ROW_NAMED(["name", "value"], [Types.STRING(), Types.LONG()])
READINGS = [Row(name=name, at=at, value=value) for name, at, value in [("a", 1, 5), ("b", 2, 0), ("a", 3, 7)]]
BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
TOTAL = ValueStateDescriptor("total", Types.LONG())
COUNTS = MapStateDescriptor("counts", Types.STRING(), Types.LONG())
SIDE = OutputTag("side", Types.STRING())


def readings(elements=READINGS, strategy=BY_TIME, kind=READING):
    stream = local_environment().set_parallelism(1).from_collection(elements, kind)
    return stream if strategy is None else stream.assign_timestamps_and_watermarks(strategy)


def function(on_batch=lambda self, batch, ctx: None, on_timers=None, descriptor=TOTAL):
    """A function of these methods."""

    def opened(self, runtime_context):
        self.total = runtime_context.get_vectorized_state(descriptor)

    methods = {"open": opened, "process_batch": on_batch} | ({} if on_timers is None else {"on_timers": on_timers})
    return type("Given", (VectorizedKeyedProcessFunction,), methods)()


def results(given, *key, stream=None, output=RESULT):
    keyed = (readings() if stream is None else stream).key_by(*(key or ["name"]))
    return list(keyed.process(given, output).execute_and_collect())


def test_a_call_has_its_keys_times_and_the_elements_of_all_keys():
    seen = []

    def look(_, batch, ctx):
        service = ctx.timer_service()
        seen.append((batch.to_pylist(), ctx.keys.to_pylist(), ctx.distinct_keys.to_pylist(), ctx.key_numbers.tolist()))
        seen.append((ctx.timestamps.to_pylist(), service.current_watermark()))

    assert results(function(look), stream=readings().map(lambda r: r, READING)) == []
    rows = [{"name": name, "at": at, "value": value} for name, at, value in [("a", 1, 5), ("b", 2, 0), ("a", 3, 7)]]
    assert seen[0] == (rows, ["a", "b", "a"], ["a", "b"], [0, 1, 0])
    assert seen[1] == ([1, 2, 3], -(2**63))


def test_results_come_in_the_order_of_their_rows_with_the_timestamps_of_these():
    class WithTime(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield value.value, ctx.timestamp()

    def twice(_, batch, ctx):
        rows = [2, 0, 0]
        ctx.collect(pa.record_batch({"name": ["z", "x", "y"], "value": [3, 1, 2]}), rows)
        ctx.collect(batch.select(["value", "name"]).filter(pc.equal(batch.column("value"), 0)), [False, True, False])

    stream = readings().key_by("name").process(function(twice), RESULT)
    assert list(stream.key_by(lambda r: 0).process(WithTime()).execute_and_collect()) == [
        (1, 1),
        (2, 1),
        (0, 2),
        (3, 3),
    ]


def test_of_several_values_of_a_key_the_last_one_stays_and_a_null_deletes():
    seen = []

    def put(self, batch, ctx):
        self.total.put(ctx.keys, batch.column("value"))
        seen.append(self.total.get(ctx.distinct_keys).to_pylist())
        seen.append(self.total.get(pa.array(["b", "a", "b"])).to_pylist())
        self.total.put(ctx.keys, pa.array([1, None, None], pa.int64()))
        seen.append(self.total.get(ctx.keys).to_pylist())
        self.total.put(ctx.keys.slice(0, 2), np.array([3, 4]))
        self.total.clear(pa.array(["b", "b"]))
        seen.append(self.total.get(ctx.distinct_keys).to_pylist())

    results(function(put))
    assert seen == [[7, 0], [0, 7, 0], [None, None, None], [3, None]]


def test_timers_of_a_key_fire_one_after_the_other_and_see_what_those_before_left():
    calls = []

    def register(self, batch, ctx):
        for time_ms in (5, 20, 9):
            ctx.timer_service().register_event_time_timers(ctx.keys, time_ms)
        ctx.timer_service().delete_event_time_timers(ctx.distinct_keys, np.array([20, 21]))

    def fire(self, timestamps, ctx):
        assert ctx.time_domain() is TimeDomain.EVENT_TIME
        assert timestamps.equals(ctx.timestamps)
        before = self.total.get(ctx.keys)
        calls.append((ctx.keys.to_pylist(), timestamps.to_pylist(), before.to_pylist()))
        self.total.put(ctx.keys, pc.add(before.fill_null(0), 1))
        ctx.timer_service().register_event_time_timers(ctx.keys.filter(pc.equal(timestamps, 9)), 10)
        ctx.collect(pa.record_batch({"name": ctx.keys, "value": timestamps}))

    found = results(function(register, fire))
    assert [sorted(zip(*call, strict=True)) for call in calls] == [
        [("a", 5, None), ("b", 5, None)],
        [("a", 9, 1), ("b", 9, 1)],
        [("a", 10, 2), ("b", 10, 2)],
        [("b", 20, 3)],
    ]
    of_time = [(5, "ab"), (9, "ab"), (10, "ab"), (20, "b")]
    assert [(row.value, row.name) for row in found] == [(at, name) for at, names in of_time for name in in_order(names)]


def test_timers_call_a_handler_that_the_object_has():
    def keep(self, batch, ctx):
        ctx.timer_service().register_event_time_timers(ctx.distinct_keys.slice(0, 1), 5)

    given = function(keep)
    given.on_timers = lambda times, ctx: ctx.collect(
        pa.record_batch({"name": ctx.keys, "value": times.cast(pa.int64())})
    )
    assert results(given) == [Row(name="a", value=5)]


def in_order(names):
    return sorted(names, key=lambda name: key_group(name, 32_768))


def test_elements_without_timestamps_and_keys_that_are_null_are_handled():
    seen = []

    def look(_, batch, ctx):
        seen.append((ctx.keys.to_pylist(), ctx.timestamps.to_pylist()))
        ctx.collect(batch.select(["name", "value"]))

    rows = [Row(name=None, at=1, value=2), Row(name=None, at=3, value=4)]
    assert [row.value for row in results(function(look), stream=readings(rows, None))] == [2, 4]
    assert seen == [([None, None], [None, None])]


@pytest.mark.parametrize(
    ("on_batch", "message"),
    [
        (lambda self, b, c: self.total.put(c.keys, [1]), "must give an Arrow batch or array, not a list"),
        (lambda self, b, c: self.total.put(c.keys, np.array([1])), "put: there are 1 values for 3 keys"),
        (lambda self, b, c: self.total.put(c.keys, b.column("name")), "does not become int64"),
        (lambda self, b, c: self.total.get(pa.array(["a", "c"])), "get: 'c' is not a key of this call"),
        (lambda self, b, c: self.total.get(b.column("at")), "keys of the call, .* array of string, and got int64"),
        (lambda self, b, c: self.total.clear("a"), "clear: expected keys of the call, .* and got str"),
        (lambda self, b, c: c.collect(b), "gave a batch with the fields name, at, value"),
        (lambda self, b, c: c.collect(b.select(["name", "value"]).slice(1)), "there are 2 results and 3 row numbers"),
        (
            lambda self, b, c: c.collect(b.select(["name", "value"]), [0, 1, 3]),
            "from 0 to 3, and the rows of the call are 0 to 2",
        ),
        (lambda self, b, c: c.collect(b.select(["name", "value"]), [0.0, 1.0, 2.0]), "rows are of type float64"),
        (lambda self, b, c: c.output(OutputTag("x"), b.column("name")), "side output 'x' has no declared type"),
        (
            lambda self, b, c: c.timer_service().register_event_time_timers(c.keys, pa.array([1, None, 2])),
            "register_event_time_timers: 1 of the times are null",
        ),
        (
            lambda self, b, c: c.timer_service().delete_processing_time_timers(c.keys, np.array([1.5, 2, 3])),
            "delete_processing_time_timers: times are whole milliseconds, and these are of type float64",
        ),
        (
            lambda self, b, c: c.timer_service().delete_event_time_timers(c.keys, np.array([1])),
            "delete_event_time_timers: there are 1 values for 3 keys",
        ),
        (lambda self, b, c: c.time_domain(), "no timer fires here"),
    ],
)
def test_what_is_wrong_is_told_with_the_operator_and_what_to_do(on_batch, message):
    with pytest.raises(EventideError, match=rf"(?s)in operator 'keyed process', while it handled a batch: .*{message}"):
        results(function(on_batch))


def test_state_and_outputs_belong_to_a_call():
    kept = []
    with pytest.raises(ProgramError, match="state, timers and outputs belong to a call"):
        results(
            type(
                "Early",
                (VectorizedKeyedProcessFunction,),
                {
                    "open": lambda self, context: context.get_vectorized_state(TOTAL).get(pa.array(["a"])),
                    "process_batch": lambda self, batch, ctx: kept.append(ctx),
                },
            )()
        )


@pytest.mark.parametrize(
    "get",
    [
        lambda context: context.get_vectorized_state(ValueStateDescriptor("late", Types.LONG())),
        lambda context: context.get_vectorized_map_state(MapStateDescriptor("late", Types.LONG(), Types.LONG())),
    ],
)
def test_a_state_is_asked_for_first_when_the_function_is_opened(get):
    class Late(VectorizedKeyedProcessFunction):
        def open(self, runtime_context):
            self.context = runtime_context
            self.total = runtime_context.get_vectorized_state(TOTAL)

        def process_batch(self, batch, ctx):
            again = self.context.get_vectorized_state(TOTAL)
            again.put(ctx.distinct_keys, pa.array([1] * len(ctx.distinct_keys)))
            get(self.context)

    with pytest.raises(ProgramError, match=r"'late' is requested for the first time in a call, .* in open\(\)"):
        results(Late())


def test_the_context_of_a_call_that_is_over_takes_nothing():
    kept = []

    def fire(_, timestamps, ctx):
        with pytest.raises(ProgramError, match="belong to a call"):
            kept[0].timer_service().register_event_time_timers(kept[0].keys, 1)
        kept[0].output(SIDE, ctx.keys)

    def keep(_, batch, ctx):
        kept.append(ctx)
        ctx.timer_service().register_event_time_timers(ctx.keys, 1)

    with pytest.raises(ProgramError, match=r"(?s)when timers fired: .*belong to a call"):
        results(function(keep, fire))


def test_a_function_that_yields_is_told_to_put_results_out():
    def yields(_, batch, ctx):
        yield batch

    with pytest.raises(ProgramError, match=r"returned a generator; emit results with ctx.collect"):
        results(function(yields))


def expiring():
    descriptor = ValueStateDescriptor("total", Types.LONG())
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    return descriptor


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: results(function(descriptor=expiring())), "'total' has a time to live, which .* set a timer"),
        (lambda: results(function(descriptor=ValueStateDescriptor("o", Types.PICKLED_BYTE_ARRAY()))), "be a column"),
        (lambda: results(function(descriptor=ListStateDescriptor("l", Types.LONG()))), "ValueStateDescriptor"),
        (lambda: results(function(), output=None), "type of its results must be declared"),
        (lambda: readings().key_by(lambda r: r.name + "!").process(function(), RESULT).execute_and_collect(),
         "the key must be given by fields of plain types"),
        (lambda: local_environment().from_collection(READINGS).key_by(lambda r: r.name).process(function(), RESULT)
         .execute_and_collect(), "the type of the elements must be declared"),
        (lambda: readings().key_by("name").process(object(), RESULT), "needs a KeyedProcessFunction"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ProgramError, match=message):
        list(make())


def test_a_key_that_does_not_equal_itself_is_refused_with_its_element():
    kind = Types.ROW_NAMED(["name", "at", "value"], [Types.DOUBLE(), Types.LONG(), Types.LONG()])
    rows = [Row(name=1.0, at=1, value=2), Row(name=float("nan"), at=3, value=4)]
    with pytest.raises(DataError, match="nan is not equal to itself"):
        results(function(), stream=readings(rows, kind=kind))


def with_map(act, descriptor=COUNTS):
    """A function that does something with its maps."""

    def opened(self, runtime_context):
        self.counts = runtime_context.get_vectorized_map_state(descriptor)

    def process_batch(self, batch, ctx):
        act(self.counts, ctx.keys)

    return type("WithMap", (VectorizedKeyedProcessFunction,), {"open": opened, "process_batch": process_batch})()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (with_map(lambda counts, keys: counts.put(keys, pa.array(["x", None, "y"]), np.arange(3))), "1 of the keys in"),
        (with_map(lambda counts, keys: counts.get(keys, pa.array(["x"]))), "there are 1 values for 3 keys"),
        (with_map(lambda counts, keys: counts.put(keys, keys, np.arange(2))), "there are 2 values for 3 keys"),
        (with_map(lambda counts, keys: counts.clear(pa.array(["z"]))), "'z' is not a key of this call"),
        (with_map(print, MapStateDescriptor("m", Types.LIST(Types.LONG()), Types.LONG())), "which cannot be columns"),
        (with_map(print, MapStateDescriptor("m", Types.LONG(), Types.PICKLED_BYTE_ARRAY())), "which cannot be columns"),
        (with_map(print, TOTAL), "use get_vectorized_state with a ValueStateDescriptor"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_of_maps_is_refused(given, message):
    with pytest.raises(EventideError, match=message):
        results(given)


@pytest.mark.parametrize(("ask", "instead"), [("state", "get_state"), ("map_state", "get_map_state")])
def test_a_function_of_single_keys_is_told_to_use_state_of_its_own_kind(ask, instead):
    class Each(KeyedProcessFunction):
        def open(self, runtime_context):
            getattr(runtime_context, f"get_vectorized_{ask}")(TOTAL if ask == "state" else COUNTS)

        def process_element(self, value, ctx):
            yield value

    with pytest.raises(ProgramError, match=f"one key at a time; use {instead}"):
        list(readings().key_by("name").process(Each()).execute_and_collect())


def test_a_function_of_many_keys_is_told_to_use_state_of_its_own_kind():
    with pytest.raises(ProgramError, match="many keys; use get_vectorized_state"):
        results(
            type(
                "Single",
                (VectorizedKeyedProcessFunction,),
                {
                    "open": lambda self, context: context.get_state(TOTAL),
                    "process_batch": lambda self, batch, ctx: None,
                },
            )()
        )


def test_explain_says_that_it_runs_on_columns(capsys):
    readings().key_by("name").process(function(), RESULT).explain()
    said = capsys.readouterr().out
    assert "'keyed process': on columns, because Given is called with batches" in said
    assert "by key (found in columns)" in said


def test_state_that_had_a_time_to_live_is_found_without_one():
    class Expires(KeyedProcessFunction):
        def open(self, runtime_context):
            self.total = runtime_context.get_state(expiring())

        def process_element(self, value, ctx):
            self.total.update((self.total.value() or 0) + value.value)

    seen = []

    def look(self, batch, ctx):
        seen.append(self.total.get(ctx.distinct_keys).to_pylist())
        self.total.clear(ctx.distinct_keys)
        seen.append(self.total.get(ctx.distinct_keys).to_pylist())

    before, after = (
        plan_of(readings([*READINGS, *READINGS]).key_by("name").process(each, RESULT).uid("p"), parallelism=1)
        for each in (Expires(), function(look))
    )
    one = runner(before, max_rows=3)
    by_sink(before, next(one.batches()))
    for _ in runner(after, max_rows=3, checkpoint=one.checkpoint).batches():
        pass
    assert seen == [[12, 0], [None, None]]


def test_a_bad_row_is_found_in_few_calls():
    """The function has changed state and set a timer when it raises: nothing of that is left."""
    sizes = []

    def add(self, batch, ctx):
        sizes.append(len(batch))
        totals = pc.add(self.total.get(ctx.keys).fill_null(0), batch.column("value"))
        self.total.put(ctx.keys, totals)
        ctx.timer_service().register_event_time_timers(ctx.keys, 2_000)
        ctx.collect(pa.record_batch({"name": ctx.keys, "value": totals}))
        if 700 in batch.column("value").to_pylist():
            raise ValueError("no")

    def tell(self, timestamps, ctx):
        ctx.collect(pa.record_batch({"name": ctx.keys, "value": self.total.get(ctx.keys)}))

    bad = OutputTag("bad")
    elements = [Row(name=f"n{n}", at=n, value=n) for n in range(1_000)]
    found = readings(elements).key_by("name").process(function(add, tell), RESULT).side_output_dead_letters(bad)
    plan = plan_of(found, found.get_side_output(bad), parallelism=1)
    results, letters = zip(*(by_sink(plan, batch) for batch in runner(plan).batches()), strict=True)
    values = [row.value for batch in results for row, _ in batch]
    good = [n for n in range(1_000) if n != 700]
    assert (values[:999], sorted(values[999:])) == (good, good)
    [(letter, timestamp)] = [letter for batch in letters for letter in batch]
    assert (letter.error_type, letter.error, letter.element, letter.key, timestamp) == (
        "ValueError", "no", elements[700], "n700", 700,
    )  # fmt: skip
    assert sum(sizes) < 4_000
    assert len(sizes) < 25
