"""A `WatermarkStrategy` of the user's own: on a source, after an operator, with settings around it, across restarts."""

import pytest

from eventide.common import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    Duration,
    NoWatermarksGenerator,
    RecordTimestampAssigner,
    TimestampAssigner,
    VectorizedTimestampAssigner,
    Watermark,
    WatermarkStrategy,
)
from eventide.datastream import OutputTag
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import DataError, ProgramError, StateError
from eventide.local.runner import LocalCheckpoint
from eventide.testing import ScriptedSource, local_environment
from support.twin import AllContents, by_sink, plan_of, run, run_with_restarts, runner, values

TENS = TumblingEventTimeWindows.of(10)
LATE = OutputTag("late")
BUILT_IN = WatermarkStrategy.for_bounded_out_of_orderness(3).with_timestamp_assigner(lambda e, _: e[1])
SCRIPT = [
    [("p", ("a", 1)), ("q", ("b", 2))],
    [("p", ("a", 14)), ("q", ("b", 9))],
    [("q", ("b", 15)), ("p", ("a", 11)), ("p", ("a", 21))],
    [("q", ("b", 3)), ("q", ("b", 25)), ("p", ("a", 30))],
]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Own(WatermarkStrategy):
    """The interface that Flink's page prints first, with a bound that its own constructor takes."""

    def __init__(self, bound_ms=3):
        self.generator = bound_ms  # a name that eventide's own strategies have too

    def create_timestamp_assigner(self, context):
        return SecondField()

    def create_watermark_generator(self, context):
        return BoundedOutOfOrdernessWatermarks(self.generator)


def stream_of(strategy, *, on_source, script=SCRIPT):
    source = ScriptedSource(["p", "q"], script)
    env = local_environment()
    if on_source:
        return env.from_source(source, strategy, "events")
    plain = env.from_source(source, WatermarkStrategy.no_watermarks(), "events")
    return plain.filter(lambda _: True).assign_timestamps_and_watermarks(strategy)


def windows_of(strategy, *, on_source, script=SCRIPT):
    windows = stream_of(strategy, on_source=on_source, script=script).window_all(TENS).side_output_late_data(LATE)
    windows = windows.process(AllContents())
    return plan_of(windows, windows.get_side_output(LATE), parallelism=1)


@pytest.mark.parametrize("on_source", [True, False])
def test_a_strategy_of_the_users_does_what_the_built_in_one_does(on_source):
    expected = run(windows_of(BUILT_IN, on_source=on_source))
    assert values(expected, sink=1) == [("b", 3)]
    assert run(windows_of(Own(), on_source=on_source)) == expected


@pytest.mark.parametrize("on_source", [True, False])
@pytest.mark.parametrize("every", [1, 2])
def test_what_its_generators_learn_survives_restarts(on_source, every):
    whole = run(windows_of(Own(), on_source=on_source))
    assert run_with_restarts(windows_of(Own(), on_source=on_source), every) == whole


class Rising(TimestampAssigner):
    """Counts the elements of its split: timestamps 0, 5, 10 and so on."""

    count = 0

    def extract_timestamp(self, value, record_timestamp):
        self.count += 1
        return 5 * (self.count - 1)


class Follows(AscendingTimestampsWatermarks):
    """Gives watermarks by what the assigner has counted."""

    def __init__(self, assigner):
        super().__init__()
        self.assigner = assigner

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(5 * self.assigner.count - 6))


class Sharing(WatermarkStrategy):
    """One assigner, which the generator of its split looks at."""

    def create_timestamp_assigner(self, context):
        self.assigner = Rising()
        return self.assigner

    def create_watermark_generator(self, context):
        return Follows(self.assigner)


class OneForBoth(Rising, AscendingTimestampsWatermarks):
    def __init__(self):
        AscendingTimestampsWatermarks.__init__(self)


class OneObject(WatermarkStrategy):
    def create_timestamp_assigner(self, context):
        self.both = OneForBoth()
        return self.both

    def create_watermark_generator(self, context):
        return self.both


@pytest.mark.parametrize("strategy", [Sharing, OneObject])
def test_what_its_assigner_learns_is_kept_and_the_generator_still_sees_the_same_assigner(strategy):
    script = [[("p", name)] for name in "abcdef"]
    stream = local_environment().from_source(ScriptedSource(["p"], script), strategy(), "events")
    plan = plan_of(stream.window_all(TENS).process(AllContents()), parallelism=1)
    expected = [[[]], [[]], [[((0, 10, ["a", "b"]), 9)]], [[]], [[((10, 20, ["c", "d"]), 19)]]]
    expected += [[[((20, 30, ["e", "f"]), 29)]]]
    assert [batch for batch in run(plan) if batch != [[]]] == [batch for batch in expected if batch != [[]]]
    assert run_with_restarts(plan, 1) == run(plan)


class OfTheSource(WatermarkStrategy):
    """Overrides one method, so that elements keep their timestamps."""

    def create_watermark_generator(self, context):
        return AscendingTimestampsWatermarks()


class OfTheSourceInWords(OfTheSource):
    def create_timestamp_assigner(self, context):
        return super().create_timestamp_assigner(context)


@pytest.mark.parametrize("strategy", [OfTheSource(), OfTheSourceInWords()])
def test_without_an_assigner_of_its_own_elements_keep_their_timestamps(strategy):
    stream = stream_of(BUILT_IN, on_source=True).assign_timestamps_and_watermarks(strategy)
    plan = plan_of(stream.window_all(TENS).process(AllContents()), parallelism=1)
    built_in = stream_of(BUILT_IN, on_source=True).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps()
    )
    assert run(plan) == run(plan_of(built_in.window_all(TENS).process(AllContents()), parallelism=1))


def test_elements_without_timestamps_are_refused_with_the_strategy_that_gives_none():
    with pytest.raises(ProgramError, match=r"have no timestamps.*watermarks of OfTheSource"):
        stream_of(OfTheSource(), on_source=True)
    plan = plan_of(stream_of(OfTheSourceInWords(), on_source=True))
    with pytest.raises(DataError, match=r"the timestamp is None.*with_null_timestamps"):
        run(plan)


def test_an_assigner_around_it_takes_the_place_of_its_own():
    strategy = Own().with_timestamp_assigner(lambda e, _: e[1] + 100)
    times = [ms for [elements] in run(plan_of(stream_of(strategy, on_source=True))) for _, ms in elements]
    assert sorted(times) == [101, 102, 103, 109, 111, 114, 115, 121, 125, 130]


class Vectorized(Own):
    def create_timestamp_assigner(self, context):
        return OfColumn()


class OfColumn(VectorizedTimestampAssigner):
    def extract_timestamps(self, batch):
        raise AssertionError("there are no columns here")

    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def test_elements_that_are_no_columns_are_handed_to_a_vectorized_assigner_one_by_one():
    assert run(windows_of(Vectorized(), on_source=True)) == run(windows_of(BUILT_IN, on_source=True))


def with_clock(strategy, script, times):
    """The windows that come in each micro-batch, of which each has a time by the clock."""
    clock = iter([*times, *([times[-1]] * 100)])
    stream = local_environment().from_source(ScriptedSource(["p", "q"], script, bounded=False), strategy, "events")
    plan = plan_of(stream.window_all(TENS).process(AllContents()), parallelism=1)
    run = runner(plan)
    run._clock = lambda: next(clock)
    return [values([by_sink(plan, batch)]) for batch in run.batches()]


def idle_script():
    return [[("p", ("a", 1)), ("q", ("b", 2))], [("p", ("a", 15))], [("p", ("a", 16))], [("p", ("a", 17))]]


class IdleByItself(Own):
    """Wraps a strategy of eventide's, as Java programs do: its generator, with idleness, makes the watermarks."""

    def create_watermark_generator(self, context):
        inner = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(self.generator))
        return inner.with_idleness(Duration.of_seconds(1)).create_watermark_generator(context)


@pytest.mark.parametrize("strategy", [Own().with_idleness(Duration.of_seconds(1)), IdleByItself()])
def test_a_silent_split_is_idle_and_holds_no_window(strategy):
    """Two micro-batches without elements of q: the first begins its silence, and the last is more than 1 s later."""
    assert with_clock(strategy, idle_script(), [0, 10, 20, 5_000])[:3] == [[], [], []]
    assert with_clock(strategy, idle_script(), [0, 10, 20, 5_000])[3] == [(0, 10, [("a", 1), ("b", 2)])]
    assert with_clock(strategy, idle_script(), [0, 10, 20, 900])[3] == []


def test_alignment_and_null_timestamps_go_around_it():
    strategy = Own().with_watermark_alignment("group", Duration.of_seconds(1)).with_null_timestamps(LATE)
    assert strategy.alignment.drift_ms == 1_000
    script = [[("p", ("a", 1)), ("p", ("none", None))], [("p", ("a", 14))]]
    stream = local_environment().from_source(ScriptedSource(["p"], script), strategy, "events")
    assert values(run(plan_of(stream, stream.get_side_output(LATE))), sink=1) == [("none", None)]


class Wrong(Own):
    def create_timestamp_assigner(self, context):
        return "a column"


class NoGenerator(Own):
    def create_watermark_generator(self, context):
        return None


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        (Wrong(), r"Wrong returned 'a column'; return a TimestampAssigner or a function"),
        (NoGenerator(), r"NoGenerator returned None, which is not a WatermarkGenerator"),
    ],
)
def test_what_a_method_returns_is_checked_and_the_class_is_named(strategy, said):
    with pytest.raises(ProgramError, match=said):
        run(plan_of(stream_of(strategy, on_source=True)))


class Either(WatermarkStrategy):
    """Hands on what another strategy makes."""

    def __init__(self, other):
        self.other = other

    def create_timestamp_assigner(self, context):
        return self.other.create_timestamp_assigner(context)

    def create_watermark_generator(self, context):
        return self.other.create_watermark_generator(context)


def test_a_checkpoint_of_a_strategy_that_makes_other_objects_is_refused():
    checkpoint = LocalCheckpoint()
    script = [[("p", "a")], [("p", "b")]]

    def run_once(strategy, batches):
        source = ScriptedSource(["p"], batches, bounded=False)
        plan = plan_of(local_environment().from_source(source, strategy, "events"))
        return list(runner(plan, checkpoint=checkpoint).batches())

    run_once(Either(Sharing()), script[:1])
    with pytest.raises(StateError, match=r"2 object\(s\) of a watermark strategy .*, but 1 object"):
        run_once(Either(OneObject()), script)


@pytest.mark.parametrize("given", [None, "monotonous", WatermarkStrategy])
def test_what_is_no_strategy_is_refused(given):
    env = local_environment()
    with pytest.raises(ProgramError, match="the source 'events' needs a WatermarkStrategy, such as"):
        env.from_source(ScriptedSource(["p"], []), given, "events")
    with pytest.raises(ProgramError, match="assign_timestamps_and_watermarks needs a WatermarkStrategy, such as"):
        env.from_collection([1]).assign_timestamps_and_watermarks(given)


def test_the_built_in_strategies_make_the_classes_of_flink():
    context = None
    made = {
        kind: type(strategy.create_watermark_generator(context))
        for kind, strategy in {
            "bounded": WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)),
            "monotonous": WatermarkStrategy.for_monotonous_timestamps(),
            "none": WatermarkStrategy.no_watermarks(),
        }.items()
    }
    assert made == {
        "bounded": BoundedOutOfOrdernessWatermarks,
        "monotonous": AscendingTimestampsWatermarks,
        "none": NoWatermarksGenerator,
    }
    assert type(WatermarkStrategy.no_watermarks().create_timestamp_assigner(context)) is RecordTimestampAssigner
    assert BUILT_IN.create_timestamp_assigner(context).extract_timestamp(("a", 5), 0) == 5
    with pytest.raises(ProgramError, match="the timestamps come from column 'ts'"):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner("ts").create_timestamp_assigner(context)
