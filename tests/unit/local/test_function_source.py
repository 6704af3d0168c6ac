"""Functions as sources in whole programs, without Spark."""

from typing import ClassVar

import pytest

from eventide.common import Types, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import SourceFunction
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import ProgramError, UserFunctionError
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.testing import ScriptedSource, local_environment
from support.twin import Contents, by_sink, plan_of, runner, values

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()
TENS = TumblingEventTimeWindows.of(10)


class Events(SourceFunction):
    """Emits (key, time) with that time and a watermark after each, and knows how far it is."""

    def __init__(self, *events, lag=0):
        self.events, self.lag, self.next, self.running = events, lag, 0, True

    def run(self, ctx):
        while self.running and self.next < len(self.events):
            with ctx.get_checkpoint_lock():
                key, time_ms = self.events[self.next]
                ctx.collect_with_timestamp((key, time_ms), time_ms)
                ctx.emit_watermark(Watermark(time_ms - self.lag - 1))
                self.next += 1

    def cancel(self):
        self.running = False

    def snapshot_state(self):
        return self.next

    def restore_state(self, state):
        self.next = state


class Numbers(SourceFunction):
    """Emits numbers for ever."""

    def __init__(self):
        self.running = True

    def run(self, ctx):
        n = 0
        while self.running:
            ctx.collect(n)
            n += 1

    def cancel(self):
        self.running = False


class Fails(SourceFunction):
    """Emits something, and fails."""

    def run(self, ctx):
        ctx.collect(1)
        raise OSError("the line is dead")

    def cancel(self):
        pass


def windows(stream):
    return stream.key_by(lambda e: e[0]).window(TENS).process(Contents())


def test_a_job_runs_until_its_function_returns_and_then_all_windows_close():
    stream = windows(local_environment().add_source(Events(("a", 1), ("a", 12), ("b", 3), ("a", 25))))
    assert list(stream.execute_and_collect()) == [
        ("a", 0, 10, [("a", 1)]),
        ("a", 10, 20, [("a", 12)]),
        ("a", 20, 30, [("a", 25)]),
    ]


def test_the_timestamps_and_watermarks_of_the_function_count():
    stream = windows(local_environment().add_source(Events(("a", 1), ("a", 12), ("b", 3), lag=20)))
    assert sorted(stream.execute_and_collect()) == [
        ("a", 0, 10, [("a", 1)]),
        ("a", 10, 20, [("a", 12)]),
        ("b", 0, 10, [("b", 3)]),
    ]


def test_a_strategy_after_the_function_takes_the_place_of_its_timestamps_and_watermarks():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1] + 100)
    source = local_environment().add_source(Events(("a", 1), ("a", 2), lag=-50))
    assert list(windows(source.assign_timestamps_and_watermarks(strategy)).execute_and_collect()) == [
        ("a", 100, 110, [("a", 1), ("a", 2)])
    ]


def test_a_generator_without_an_assigner_keeps_the_timestamps_of_the_function():
    source = local_environment().add_source(Events(("a", 1), ("a", 2), lag=-50))
    stream = source.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    assert list(windows(stream).execute_and_collect()) == [("a", 0, 10, [("a", 1), ("a", 2)])]


def test_functions_meet_each_other_and_other_sources():
    env = local_environment()
    first, second = env.add_source(Events(("a", 1), ("a", 22))), env.add_source(Events(("b", 5), ("b", 6)))
    third = env.add_source(Events(("a", 2)), "third").map(lambda e: e)
    assert sorted(windows(first.union(second, third)).execute_and_collect()) == [
        ("a", 0, 10, [("a", 1), ("a", 2)]),
        ("a", 20, 30, [("a", 22)]),
        ("b", 0, 10, [("b", 5), ("b", 6)]),
    ]


class Says(SourceFunction):
    """Emits keyed times, watermarks, and that it is idle (None)."""

    def __init__(self, *said):
        self.said = said

    def run(self, ctx):
        for item in self.said:
            if item is None:
                ctx.mark_as_temporarily_idle()
            elif isinstance(item, Watermark):
                ctx.emit_watermark(item)
            else:
                ctx.collect_with_timestamp(item, item[1])

    def cancel(self):
        pass


class Timed(ScriptedSource):
    """A script that has watermarks of its own."""

    def gives_timestamps(self):
        return True


@pytest.mark.parametrize(
    ("said", "in_time"),
    [
        ([("a", 1), Watermark(5), None, ("a", 7), ("a", 8)], [("a", 1), ("a", 7), ("a", 8)]),
        ([("a", 1), Watermark(5), None, Watermark(5), ("a", 8)], [("a", 1), ("a", 8)]),
        ([("a", 1), Watermark(5), ("a", 7), None, ("a", 8)], [("a", 1), ("a", 7)]),
    ],
)
def test_a_function_that_was_idle_holds_the_watermark_again_from_whatever_it_emits_next(tmp_path, said, in_time):
    """The last case shows that it would be late, were it idle when the other source goes on."""
    env = local_environment()
    silent = [[], [("b", Watermark(5))], [], [("b", Watermark(100))], [], [], []]
    other = env.from_source(Timed(["b"], silent), WatermarkStrategy.no_watermarks(), "other")
    plan = plan_of(windows(env.add_source(Says(*said)).union(other))).with_storage(str(tmp_path))
    one = LocalRunner(plan, max_rows=1, available_now=True)  # an item a micro-batch, all of them written before
    found = values([by_sink(plan, batch) for batch in one.batches()])
    assert found == [("a", 0, 10, in_time)]


class HighestSoFar(WatermarkGenerator):
    """A user-defined generator that does what the built-in one does."""

    def __init__(self):
        self.highest = 0

    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.highest - 1))


@pytest.mark.parametrize("strategy", [None, MONOTONOUS, WatermarkStrategy.for_generator(HighestSoFar)])
def test_a_function_that_says_it_is_idle_holds_the_watermark_after_a_strategy(tmp_path, strategy):
    env = local_environment()
    stream = env.add_source(Says(("a", 1), None, None, None, ("a", 2)))
    if strategy is not None:
        stream = stream.assign_timestamps_and_watermarks(strategy)
    script = [[], [], [("b", Watermark(100))], [], []]
    other = env.from_source(Timed(["b"], script), WatermarkStrategy.no_watermarks(), "other")
    plan = plan_of(windows(stream.union(other))).with_storage(str(tmp_path))
    one = LocalRunner(plan, max_rows=1, available_now=True)
    held = strategy is not None
    assert values([by_sink(plan, batch) for batch in one.batches()]) == [
        ("a", 0, 10, [("a", 1), ("a", 2)] if held else [("a", 1)])
    ]


def test_a_declared_type_travels_as_columns():
    source = local_environment().add_source(
        Events(("a", 1), ("a", 2)), "typed", Types.TUPLE([Types.STRING(), Types.INT()])
    )
    assert list(windows(source).execute_and_collect()) == [("a", 0, 10, [("a", 1), ("a", 2)])]


def test_a_run_that_takes_what_is_there_ends_though_the_function_does_not():
    env = local_environment().set_available_now()
    numbers = list(env.add_source(Numbers()).execute_and_collect())
    assert numbers == list(range(len(numbers)))
    assert numbers


class NotesItsEnd(Numbers):
    """Emits numbers for ever, and notes that it was closed."""

    closed: ClassVar[list[bool]] = []

    def close(self):
        self.closed.append(True)


@pytest.mark.parametrize("output_type", [None, Types.LONG()], ids=["elements", "columns"])
def test_a_limit_of_collected_elements_ends_a_job_whose_function_does_not_end(output_type):
    NotesItsEnd.closed.clear()
    numbers = local_environment().add_source(NotesItsEnd(), type_info=output_type)
    assert numbers.execute_and_collect(limit=3) == [0, 1, 2]
    assert NotesItsEnd.closed == [True]


def test_a_function_that_fails_fails_the_job_with_its_name_and_traceback():
    stream = local_environment().add_source(Fails(), "dead line").map(lambda n: n)
    with pytest.raises(UserFunctionError, match=r"(?s)'dead line', while its source was planned.*line is dead.*in run"):
        stream.execute_and_collect()


def test_a_run_goes_on_from_where_the_function_was(tmp_path):
    events = [("a", n) for n in range(0, 60, 5)]
    expected = list(windows(local_environment().add_source(Events(*events))).execute_and_collect())
    checkpoint, results = LocalCheckpoint(), []
    while True:
        plan = plan_of(windows(local_environment().add_source(Events(*events)))).with_storage(str(tmp_path))
        one = runner(plan, max_rows=3, checkpoint=checkpoint)
        batch = next(one.batches(), None)
        if batch is None:
            break
        results.append(by_sink(plan, batch))
    assert values(results) == expected
    assert len(results) > 3


def test_what_is_no_source_function_is_refused():
    with pytest.raises(ProgramError, match=r"add_source needs a SourceFunction"):
        local_environment().add_source(lambda ctx: ctx.collect(1))


class Yields(SourceFunction):
    def run(self, ctx):
        yield 1

    def cancel(self):
        pass


def test_a_run_that_yields_is_refused():
    with pytest.raises(ProgramError, match=r"run\(\) has a yield, so it has not run; call ctx.collect"):
        list(local_environment().add_source(Yields()).execute_and_collect())


class FailsToOpen(Yields):
    closed: ClassVar[list[object]] = []

    def open(self, runtime_context):
        raise OSError("no connection")

    def close(self):
        self.closed.append(self)


def test_a_source_function_that_cannot_be_opened_is_closed():
    with pytest.raises(UserFunctionError, match="no connection"):
        list(local_environment().add_source(FailsToOpen()).execute_and_collect())
    assert len(FailsToOpen.closed) == 1
