"""Timers and joins against models of a few lines."""

from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from eventide.common import WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, RuntimeExecutionMode
from eventide.datastream.functions import CoGroupFunction, ProcessJoinFunction
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import ScriptedSource, local_environment
from support.twin import plan_of, run

_KEYS = st.sampled_from("abc")
_TIMES = st.integers(0, 30)
_ACTIONS = st.tuples(_KEYS, _TIMES, st.sampled_from(["set", "delete"]), st.integers(-5, 20))
_ELEMENTS = st.tuples(_KEYS, _TIMES, st.integers(0, 10**6))
_BATCHES = st.lists(st.lists(_ELEMENTS, max_size=6), max_size=4)
_BY_SECOND = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])


class _Acts(KeyedProcessFunction):
    """Sets a timer, and another one when it fires on an even time; or deletes one."""

    def process_element(self, value, ctx):
        _, time_ms, what, by = value
        timers = ctx.timer_service()
        act = timers.register_event_time_timer if what == "set" else timers.delete_event_time_timer
        act(time_ms + by)

    def on_timer(self, timestamp, ctx):
        if timestamp % 2 == 0:
            ctx.timer_service().register_event_time_timer(timestamp - 1)
        yield ctx.get_current_key(), timestamp


def _timers_of_a_model(batches):
    timers, fired, highest, before = set(), [], -(2**62), -(2**62)
    for number, batch in enumerate([*batches, None]):
        for key, time_ms, what, by in batch or ():
            (timers.add if what == "set" else timers.discard)((time_ms + by, key))
            highest = max(highest, time_ms)
        watermark = highest - 1 if batch is not None else 2**62
        while watermark > before and (due := [timer for timer in timers if timer[0] <= watermark]):
            time_ms, key = min(due)
            timers.discard((time_ms, key))
            if time_ms % 2 == 0:
                timers.add((time_ms - 1, key))
            fired.append((number, key, time_ms))
        before = max(before, watermark)
    return Counter(fired)


@given(st.lists(st.lists(_ACTIONS, max_size=6), max_size=4), st.sampled_from([1, 3]))
def test_timers_fire_once_when_the_watermark_reaches_them(batches, parallelism):
    script = ScriptedSource(["s"], [[("s", action) for action in batch] for batch in batches])
    stream = local_environment().from_source(script, _BY_SECOND, "s").key_by(lambda e: e[0]).process(_Acts())
    out = run(plan_of(stream, parallelism=parallelism))
    fired = [(number, *value) for number, batch in enumerate(out) for value, _ in batch[0]]
    assert Counter(fired) == _timers_of_a_model(batches)


class _Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right, ctx.get_timestamp()


def _two_streams(env, left, right):
    """Both have no watermark before their end, so that nothing is late."""
    return [
        env.from_collection(elements).assign_timestamps_and_watermarks(
            WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda e, _: e[1])
        )
        for elements in (left, right)
    ]


@given(st.lists(_ELEMENTS, max_size=12), st.lists(_ELEMENTS, max_size=12), st.integers(-12, 12), st.integers(0, 12))
def test_an_interval_join_gives_what_a_nested_loop_gives(left, right, lower, width):
    env = local_environment()
    one, other = (stream.key_by(lambda e: e[0]) for stream in _two_streams(env, left, right))
    stream = one.interval_join(other).between(lower, lower + width).process(_Pairs())
    found = Counter(value for batch in run(plan_of(stream, parallelism=2)) for value, _ in batch[0])
    assert found == _pairs(left, right, lower, lower + width)


@given(_BATCHES, _BATCHES, st.integers(-8, 8), st.integers(0, 8))
def test_an_interval_join_keeps_elements_for_as_long_as_they_can_meet_others(left, right, lower, width):
    env = local_environment()
    keyed = [
        env.from_source(ScriptedSource(["s"], [[("s", e) for e in b] for b in batches]), _BY_SECOND, name).key_by(
            _first
        )
        for name, batches in (("left", left), ("right", right))
    ]
    stream = keyed[0].interval_join(keyed[1]).between(lower, lower + width).process(_Pairs())
    found = Counter(value for batch in run(plan_of(stream)) for value, _ in batch[0])
    kept = _with_watermarks(left, right)
    stays = max(0, lower + width), max(0, -lower)
    assert found == Counter(
        (a, b, max(a[1], b[1]))
        for a, at_a in kept[0]
        for b, at_b in kept[1]
        if a[0] == b[0] and lower <= b[1] - a[1] <= lower + width
        # The one that came first is gone when the watermark has moved on to where it is not waited for any more.
        if at_a == at_b or max(at_a, at_b) < (a[1] + stays[0] if at_a < at_b else b[1] + stays[1])
    )


def _pairs(left, right, lower, upper):
    """The pairs of a nested loop."""
    return Counter(
        (a, b, max(a[1], b[1])) for a in left for b in right if a[0] == b[0] and lower <= b[1] - a[1] <= upper
    )


def _with_watermarks(*streams):
    """The elements of each stream that are not late, each with the lower watermark of the two when it comes."""
    highest, watermark, kept = [-(2**62)] * 2, -(2**62), ([], [])
    for number in range(max(map(len, streams), default=0)):
        for side, batches in enumerate(streams):
            arriving = batches[number] if number < len(batches) else ()
            kept[side].extend((element, watermark) for element in arriving if element[1] >= watermark)
            times = [element[1] for element in arriving]
            highest[side] = 2**62 if number >= len(batches) else max([highest[side], *times])
        watermark = max(watermark, min(highest) - 1)
    return kept


def _first(element):
    return element[0]


class _Groups(CoGroupFunction):
    def co_group(self, first, second):
        yield tuple(sorted(first)), tuple(sorted(second))


@given(st.lists(_ELEMENTS, max_size=12), st.lists(_ELEMENTS, max_size=12), st.sampled_from([1, 3]))
def test_co_groups_and_window_joins_are_those_of_a_dictionary(left, right, parallelism):
    env = local_environment()
    one, other = _two_streams(env, left, right)
    windows = TumblingEventTimeWindows.of(7)
    by_key = {"where": lambda e: e[0], "equal_to": lambda e: e[0]}
    groups = one.co_group(other).where(by_key["where"]).equal_to(by_key["equal_to"]).window(windows).apply(_Groups())
    pairs = (
        one.join(other).where(by_key["where"]).equal_to(by_key["equal_to"]).window(windows).apply(lambda a, b: (a, b))
    )
    found = [Counter(), Counter()]
    for batch in run(plan_of(groups, pairs, parallelism=parallelism)):
        for sink in (0, 1):
            found[sink].update(value for value, _ in batch[sink])
    expected = defaultdict(lambda: ([], []))
    for side, elements in enumerate((left, right)):
        for element in elements:
            expected[element[0], element[1] // 7][side].append(element)
    assert found[0] == Counter((tuple(sorted(a)), tuple(sorted(b))) for a, b in expected.values())
    assert found[1] == Counter((x, y) for a, b in expected.values() for x in a for y in b)


@given(st.lists(_ELEMENTS, max_size=12))
def test_batch_execution_gives_the_last_of_what_streaming_gives(elements):
    def last_of(*, batch):
        env = local_environment()
        if batch:
            env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        rolled = env.from_collection(elements).key_by(lambda e: e[0]).reduce(lambda a, b: (a[0], a[1] + b[1], b[2]))
        results = list(rolled.execute_and_collect())
        assert not batch or len(results) == len({e[0] for e in elements})
        return {result[0]: result for result in results}

    assert last_of(batch=True) == last_of(batch=False)
