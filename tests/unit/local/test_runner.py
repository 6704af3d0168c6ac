"""The twin runs micro-batches, fails without harm, and goes on where it stopped."""

from copy import deepcopy
from dataclasses import replace
from typing import ClassVar

import pytest

from eventide.common import JobStatus, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.common.watermark_generators import TimeLagWatermarks
from eventide.datastream import OutputTag, RuntimeExecutionMode
from eventide.datastream.connectors import CollectionSource, FormatSink
from eventide.datastream.functions import MapFunction, ProcessFunction
from eventide.datastream.window import CountTrigger, TumblingEventTimeWindows, TumblingProcessingTimeWindows
from eventide.errors import ProgramError, UserFunctionError
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.plan.job import DataFrameSourceSpec
from eventide.testing import Idle, ScriptedSource, local_environment
from support.twin import BY_SECOND_FIELD, AllContents, Contents, by_sink, plan_of, run, runner, timed, values

TENS = TumblingEventTimeWindows.of(10)


class FailsOnce(MapFunction):
    """Raises the first time that any subtask sees an element."""

    life: ClassVar[list[str]] = []

    def __init__(self, element):
        self.element = element
        self.life.clear()

    def open(self, runtime_context):
        self.life.append("open")

    def close(self):
        self.life.append("close")

    def map(self, value):
        if value == self.element and "fail" not in self.life:
            self.life.append("fail")
            raise OSError("once")
        return value


def test_a_micro_batch_that_fails_leaves_nothing_but_its_plan_and_runs_again():
    function = FailsOnce(("a", 12))
    source = ScriptedSource(["s"], [[("s", ("a", 1))], [("s", ("a", 12))]])
    stream = local_environment().from_source(source, BY_SECOND_FIELD, "script").map(function)
    plan = plan_of(stream.key_by(lambda e: e[0]).window(TENS).process(Contents()))
    checkpoint = LocalCheckpoint()
    first = runner(plan, checkpoint=checkpoint).batches()
    next(first)
    before = deepcopy(checkpoint)
    with pytest.raises(UserFunctionError, match=r"once"):
        next(first)
    assert replace(checkpoint, planned=None) == before
    rest = [by_sink(plan, batch) for batch in runner(plan, checkpoint=checkpoint).batches()]
    assert values(rest) == [("a", 0, 10, [("a", 1)]), ("a", 10, 20, [("a", 12)])]
    assert function.life == ["open", "fail", "close", "open", "close"]


def test_sources_end_one_by_one():
    env = local_environment()
    short, long = (
        env.from_collection([("a", 1)]).name("short"),
        env.from_collection([("a", t) for t in (1, 5, 12, 25)]).name("long"),
    )
    both = short.union(long).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    plan = plan_of(both.key_by(lambda e: e[0]).window(TENS).process(Contents()))
    results = run(plan, max_rows=1)
    assert [[value[1] for value, _ in sinks[0]] for sinks in results] == [[], [], [0], [10, 20]]


def test_counters_say_what_came_in_went_out_and_was_late():
    late = [("a", 5), ("a", 25), ("a", 1), ("b", 2)]
    env = local_environment().set_max_rows_per_batch(2)
    timed(env, late).key_by(lambda e: e[0]).window(TENS).process(Contents()).print()
    result = env.execute("late ones")
    assert result.metrics == {
        "collection": {"numRecordsOut": 4},
        "TumblingEventTimeWindows.process": {"numRecordsIn": 4, "numRecordsOut": 2, "numLateRecordsDropped": 2},
    }


def test_late_elements_on_a_side_output_are_counted_too():
    env = local_environment().set_max_rows_per_batch(1)
    windowed = (
        timed(env, [("a", 25), ("a", 1)]).key_by(lambda e: e[0]).window(TENS).side_output_late_data(OutputTag("late"))
    )
    windowed.process(Contents()).name("w").print()
    assert env.execute().metrics["w"]["numLateRecordsToSideOutput"] == 1


def test_results_are_collected_and_the_job_is_finished():
    env = local_environment()
    client = env.from_collection([1, 2, 3]).execute_and_collect("job")
    assert next(client) == 1
    assert client.next() == 2
    client.close()
    assert env.from_collection([1, 2, 3]).execute_and_collect(limit=2) == [1, 2]
    with env.from_collection([1, 2]).execute_and_collect() as limited:
        assert list(limited) == [1, 2]
    env.from_collection([1]).print()
    assert env.execute_async().get_job_status().result() is JobStatus.FINISHED


@pytest.mark.parametrize(("limit", "printed"), [(1, "12"), (2, "12"), (3, "123"), (9, "1234")])
def test_a_limit_of_collected_elements_ends_the_job_with_the_micro_batch_that_reaches_it(limit, printed, capsys):
    function = FailsOnce(None)
    env = local_environment()
    batches = [[("s", 1), ("s", 2)], [("s", 3)], [("s", 4)]]
    source = ScriptedSource(["s"], batches, bounded=False)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "script").map(function)
    stream.print()
    assert stream.execute_and_collect(limit=limit) == [1, 2, 3, 4][:limit]
    assert capsys.readouterr().out.split() == list(printed)
    assert function.life == ["open", "close"]


def test_a_limit_of_collected_elements_is_of_its_own_job_alone():
    env = local_environment()
    source = ScriptedSource(["s"], [[("s", 1)], [("s", 2)]])
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "script")
    assert stream.execute_and_collect(limit=1) == [1]
    assert list(stream.execute_and_collect()) == [1, 2]


def test_print_prints(capsys):
    env = local_environment()
    env.from_collection([1, "x"]).print("out")
    env.execute()
    assert capsys.readouterr().out == "out> 1\nout> x\n"


def test_an_empty_program_of_a_bounded_source_ends():
    assert run(plan_of(local_environment().from_collection([]))) == [[[]]]


def test_batch_mode_of_an_endless_source_and_sinks_of_spark_are_refused():
    env = local_environment()
    env.from_source(ScriptedSource(["s"], [], bounded=False), WatermarkStrategy.no_watermarks(), "script").print()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with pytest.raises(ProgramError, match=r"batch mode needs bounded sources"):
        env.execute()
    env = local_environment()
    env.from_collection([1]).sink_to(FormatSink("parquet")).name("lake")
    with pytest.raises(
        ProgramError, match=r"the sink 'lake' \(FormatSink.*needs Spark; in the local environment use print"
    ):
        env.execute()


def test_a_data_frame_in_a_plan_is_refused():
    plan = plan_of(local_environment().from_source(CollectionSource([1]), WatermarkStrategy.no_watermarks(), "s"))
    (source,) = plan.sources
    spark = DataFrameSourceSpec("table", object(), source.type_info, source.root)
    with pytest.raises(ProgramError, match=r"'table' is a Spark DataFrame, which the local environment cannot read"):
        runner(replace(plan, sources=(spark,)))


def test_a_failure_in_the_last_stage_leaves_the_state_of_the_first_untouched():
    function = FailsOnce(("a", 0, 10, [("a", 1)]))
    source = ScriptedSource(["s"], [[("s", ("a", 1))], [("s", ("a", 12))]])
    stream = local_environment().from_source(source, BY_SECOND_FIELD, "script").key_by(lambda e: e[0])
    plan = plan_of(stream.window(TENS).process(Contents()).map(function))
    checkpoint = LocalCheckpoint()
    first = runner(plan, checkpoint=checkpoint).batches()
    next(first)
    before = deepcopy(checkpoint)
    with pytest.raises(UserFunctionError, match="once"):
        next(first)
    assert replace(checkpoint, planned=None) == before
    rest = [by_sink(plan, batch) for batch in runner(plan, checkpoint=checkpoint).batches()]
    assert values(rest) == [("a", 0, 10, [("a", 1)]), ("a", 10, 20, [("a", 12)])]


def test_a_stage_says_after_it_that_it_is_idle_and_active_again():
    silent = [[("s", ("a", 1))], [Idle("s")], [], [("s", ("a", 21))], [("s", ("a", 51))], []]
    other = [
        [("t", ("b", 5))],
        [("t", ("b", 15))],
        [("t", ("b", 45))],
        [("t", ("b", 46))],
        [("t", ("b", 47))],
        [("t", ("b", 60))],
    ]
    env = local_environment()
    left, right = (
        env.from_source(ScriptedSource([split], script, bounded=False), BY_SECOND_FIELD, split)
        for split, script in [("s", silent), ("t", other)]
    )
    first = left.key_by(lambda e: e[0]).window(TENS).reduce(lambda a, b: a)
    plan = plan_of(first.union(right).window_all(TENS).process(AllContents()))
    results = run(plan)
    assert [[value[0] for value, _ in sinks[0]] for sinks in results] == [[], [0], [10], [], [], [40]]
    watermarks = [batch.watermarks for batch in runner(plan).batches()]
    assert [w.get("TumblingEventTimeWindows.process") for w in watermarks] == [0, 14, 44, 45, 46, 50]


class Highest(WatermarkGenerator):
    """As monotonous timestamps, by hand."""

    def __init__(self):
        self.highest = None

    def on_event(self, event, event_timestamp, output):
        self.highest = event_timestamp

    def on_periodic_emit(self, output):
        if self.highest is not None:
            output.emit_watermark(Watermark(self.highest - 1))


@pytest.mark.parametrize("generator", [None, Highest], ids=["built in", "by hand"])
@pytest.mark.parametrize("first", [None, Highest], ids=["at the source", "behind another generator"])
def test_a_split_whose_elements_are_all_filtered_out_before_the_strategy_is_silent(first, generator):
    """An element that a strategy does not see is no sign of life to it, wherever it stands."""

    def timed_by(generator):
        made = (
            WatermarkStrategy.for_generator(generator) if generator else WatermarkStrategy.for_monotonous_timestamps()
        )
        return made.with_timestamp_assigner(lambda e, _: e[1]).with_idleness(100)

    script = [[("s", ("a", at)), ("t", ("b", at))] for at in (5, 15, 25)]
    source = ScriptedSource(["s", "t"], script, bounded=False)
    stream = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "script")
    if first is not None:
        stream = stream.assign_timestamps_and_watermarks(timed_by(first))
    only_a = stream.filter(lambda e: e[0] == "a").assign_timestamps_and_watermarks(timed_by(generator))
    plan = plan_of(only_a.window_all(TENS).process(AllContents()))
    clocks = iter([0, 60, 120])
    batches = list(LocalRunner(plan, clock=lambda: next(clocks)).batches())
    assert [by_sink(plan, batch) for batch in batches] == [
        [[]],
        [[]],
        [[((0, 10, [("a", 5)]), 9), ((10, 20, [("a", 15)]), 19)]],
    ]


@pytest.mark.parametrize("behind_an_operator", [False, True])
def test_watermarks_that_trail_the_clock_close_windows_without_data(behind_an_operator):
    lag = WatermarkStrategy.for_generator(lambda context: TimeLagWatermarks(100, context))
    timed = lag.with_timestamp_assigner(lambda e, _: e[1])
    source = ScriptedSource(["s"], [[("s", ("a", 1_003))], [], [], []], bounded=False)
    stream = local_environment().from_source(source, BY_SECOND_FIELD, "script")
    if behind_an_operator:
        stream = stream.key_by(lambda e: e[0]).window(TENS).trigger(CountTrigger.of(1)).reduce(lambda a, b: a)
    plan = plan_of(stream.assign_timestamps_and_watermarks(timed).window_all(TENS).process(AllContents()))
    clocks = iter([1_050, 1_108, 1_109, 1_200])
    batches = list(LocalRunner(plan, clock=lambda: next(clocks)).batches())
    assert [values([by_sink(plan, batch)]) for batch in batches] == [[], [], [(1_000, 1_010, [("a", 1_003)])], []]
    last = plan.operators[-1].name
    assert [batch.passed[last] for batch in batches] == [{0: [950]}, {0: [1_008]}, {0: [1_009]}, {0: [1_100]}]


class Stamp(ProcessFunction):
    """Emits each element with the time by the clock."""

    def process_element(self, value, ctx):
        yield *value, ctx.timer_service().current_processing_time()


def test_a_micro_batch_that_runs_again_has_the_time_that_it_had():
    source = ScriptedSource(["s"], [[("s", ("a", 1))], [("s", ("b", 2))]])
    fails_once = FailsOnce(("b", 2, 20))
    stream = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "script").process(Stamp())
    plan, now, checkpoint = plan_of(stream.map(fails_once)), iter(range(10, 100, 10)), LocalCheckpoint()
    first = LocalRunner(plan, clock=lambda: next(now), checkpoint=checkpoint).batches()
    given = [by_sink(plan, next(first))]
    with pytest.raises(UserFunctionError, match="once"):
        next(first)
    again = LocalRunner(plan, clock=lambda: next(now), checkpoint=checkpoint)
    assert values([*given, by_sink(plan, next(again.batches()))]) == [("a", 1, 10), ("b", 2, 20)]


def test_a_micro_batch_for_the_clock_that_fails_runs_again_before_any_other():
    fails_once = FailsOnce(("a", 0, 10, [("a", 1)]))
    source = ScriptedSource(["s"], [[("s", ("a", 1))]], bounded=False)
    stream = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "script")
    windows = stream.key_by(lambda e: e[0]).window(TumblingProcessingTimeWindows.of(10)).process(Contents())
    plan, now, checkpoint = plan_of(windows.map(fails_once)), [0], LocalCheckpoint()
    job = LocalRunner(plan, clock=lambda: now[0], checkpoint=checkpoint)
    assert values([by_sink(plan, batch) for batch in job.batches()]) == []
    now[0] = 100
    with pytest.raises(UserFunctionError, match="once"):
        job.tick()
    now[0] = 50  # the clock has been set back since: what was planned for 100 is due still
    again = LocalRunner(plan, clock=lambda: now[0], checkpoint=checkpoint).tick()
    assert again.progress.batch == 1
    assert values([by_sink(plan, again)]) == [("a", 0, 10, [("a", 1)])]


def idle_after(timeout_ms, script):
    source = ScriptedSource(["s", "t"], script, bounded=False)
    strategy = BY_SECOND_FIELD.with_idleness(timeout_ms)
    stream = local_environment().from_source(source, strategy, "script").key_by(lambda e: e[0])
    return plan_of(stream.window(TENS).process(Contents()))


BEFORE = [("s", ("a", 1)), ("t", ("a", 2))]


def test_a_split_that_the_first_micro_batch_of_a_run_does_not_have_is_not_idle():
    now, checkpoint, life = [0], LocalCheckpoint(), []
    later = [[("s", ("a", 15))], [("t", ("a", 3)), ("t", ("a", 14))]]
    for clock_ms, script in ((0, [BEFORE]), (3_600_000, [BEFORE, *later])):
        now[0] = clock_ms
        plan = idle_after(300_000, script)
        life += [by_sink(plan, b) for b in LocalRunner(plan, clock=lambda: now[0], checkpoint=checkpoint).batches()]
    assert values(life) == [("a", 0, 10, [("a", 1), ("a", 2), ("a", 3)])]


def test_between_runs_that_take_what_is_there_a_split_is_silent():
    now, checkpoint, life = [0], LocalCheckpoint(), []
    for clock_ms, script in ((0, [BEFORE]), (3_600_000, [BEFORE, [("s", ("a", 15))]])):
        now[0] = clock_ms
        plan = idle_after(300_000, script)
        runner = LocalRunner(plan, clock=lambda: now[0], checkpoint=checkpoint, available_now=True)
        life.append(values([by_sink(plan, batch) for batch in runner.batches()]))
    assert life == [[], [("a", 0, 10, [("a", 1), ("a", 2)])]]


@pytest.mark.parametrize("fails", [False, True])
def test_a_micro_batch_that_another_run_repeats_is_judged_as_in_the_run_that_planned_it(fails):
    now, checkpoint = [0], LocalCheckpoint()
    plan = idle_after(100, [BEFORE, [("s", ("a", 15))]])
    first = LocalRunner(plan, clock=lambda: now[0], checkpoint=checkpoint)
    batches = first.batches()
    assert values([by_sink(plan, next(batches))]) == []
    now[0] = 200
    if fails:
        first._next_batch()
        now[0] = 3_600_000
        batches = LocalRunner(plan, clock=lambda: now[0], checkpoint=checkpoint).batches()
    assert values([by_sink(plan, next(batches))]) == [("a", 0, 10, [("a", 1), ("a", 2)])]


def test_a_split_that_was_not_silent_is_not_idle_where_the_clock_is_set_back():
    """By an hour, between two micro-batches of which the second has nothing of that split."""
    clocks = [86_400_000, 86_400_200, *(82_800_400 + 200 * n for n in range(3))]
    script = [BEFORE, [("t", ("a", 3))], [("s", ("a", 15))], [("t", ("a", 4))], [("t", ("a", 16))]]
    clock, plan = iter(clocks), idle_after(10_000, script)
    life = [by_sink(plan, batch) for batch in LocalRunner(plan, clock=lambda: next(clock, clocks[-1])).batches()]
    contents = [("a", 0, 10, [("a", 1), ("a", 2), ("a", 3), ("a", 4)])]
    assert [values([batch]) for batch in life] == [[], [], [], [], contents]


def test_a_split_is_idle_after_its_timeout_also_where_the_clock_was_set_back():
    clocks = iter([86_400_000, 0, 100_000, 300_001])
    plan = idle_after(300_000, [BEFORE, *([("s", ("a", time))] for time in (15, 16, 17))])
    life = [by_sink(plan, batch) for batch in LocalRunner(plan, clock=lambda: next(clocks, 300_001)).batches()]
    assert [values([batch]) for batch in life] == [[], [], [], [("a", 0, 10, [("a", 1), ("a", 2)])]]


@pytest.mark.parametrize(
    "savepoint", [lambda job: job.trigger_savepoint("x"), lambda job: job.stop_with_savepoint(False)]
)
def test_a_job_of_this_process_is_over_before_it_could_be_saved(savepoint):
    env = local_environment()
    env.from_collection([1]).print()
    with pytest.raises(
        ProgramError, match="there is no running job to take a savepoint of: jobs have savepoints while"
    ):
        savepoint(env.execute_async())
