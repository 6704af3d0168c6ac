"""Strategies with user-defined generators, and the ready-made generators."""

import inspect
import pickle
from functools import partial

import numpy as np
import pyarrow.compute as compute
import pyarrow.compute as pc
import pytest

from eventide.common import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    Duration,
    NoWatermarksGenerator,
    VectorizedWatermarkGenerator,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
    WatermarksWithIdleness,
)
from eventide.common.watermark_generator import WatermarkGeneratorContext
from eventide.common.watermark_generators import PunctuatedWatermarks, TimeLagWatermarks
from eventide.errors import ProgramError


class Quiet(WatermarkGenerator):
    def __init__(self, context=None):
        self.context = context

    def on_event(self, event, event_timestamp, output):
        pass

    def on_periodic_emit(self, output):
        pass


class WithContext(Quiet):
    def __init__(self, context):
        super().__init__(context)


def quiet():
    return Quiet()


def quiet_with(context):
    return Quiet(context)


class Periodic(Quiet):
    is_periodic = True


class Emitted(list):
    def emit_watermark(self, watermark):
        self.append(watermark)


CONTEXT = WatermarkGeneratorContext(1_000)


@pytest.mark.parametrize(
    ("supplier", "context"),
    [
        (Quiet, None),
        (WithContext, CONTEXT),
        (quiet, None),
        (quiet_with, CONTEXT),
        (lambda context=None: Quiet(context), None),
        (partial(WithContext, CONTEXT), CONTEXT),
        (partial(TimeLagWatermarks, 5), None),
    ],
)
def test_a_class_or_a_function_makes_a_generator_with_the_context_if_it_wants_one(supplier, context):
    strategy = WatermarkStrategy.for_generator(supplier)
    one, other = strategy.generator.create(CONTEXT), strategy.generator.create(CONTEXT)
    assert one is not other
    assert strategy.is_supplied
    if isinstance(one, Quiet):
        assert one.context is context


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (Quiet(), "expected a class or a function that makes a WatermarkGenerator, one for each split, got <"),
        (None, "got None"),
        (5, "got 5"),
        (TimeLagWatermarks, "TimeLagWatermarks needs the arguments max_time_lag, context; .*wrap it in a lambda"),
    ],
)
def test_what_cannot_make_generators_is_refused_when_the_program_is_built(wrong, said):
    with pytest.raises(ProgramError, match=said):
        WatermarkStrategy.for_generator(wrong)


def test_a_supplier_that_makes_something_else_is_refused():
    with pytest.raises(ProgramError, match="<lambda> returned 'x', which is not a WatermarkGenerator"):
        WatermarkStrategy.for_generator(lambda: "x").generator.create(CONTEXT)


def test_a_class_tells_that_it_is_periodic():
    assert WatermarkStrategy.for_generator(Periodic).is_periodic
    assert WatermarkStrategy.for_monotonous_timestamps().is_periodic


class Speaks(Quiet):
    def on_event(self, event, event_timestamp, output):
        output.mark_idle()


class Looks(Quiet):
    def on_event(self, event, event_timestamp, output):
        self.last = event


class LooksAround(Quiet):
    def on_event(self, event, event_timestamp, output):
        self.last = locals()


class LooksLater(Quiet):
    def on_event(self, event, event_timestamp, output):
        self.later = lambda: (event, output)


class KeepsOutput(Quiet):
    def on_periodic_emit(self, output):
        self.output = output


class KeepsVerb(Quiet):
    def on_periodic_emit(self, output):
        self.emit = output.emit_watermark


class SpeaksLast(Quiet):
    def on_periodic_emit(self, output):
        if self.context is None:
            output.mark_idle()
        output.emit_watermark(Watermark(5))


class Changes(Quiet):
    def __init__(self):
        self.on_event = print


class ChangesByName(Quiet):
    def __init__(self):
        setattr(self, "on_" + "event", print)


class Inherits(Speaks):
    pass


def makes_one_of_two(one=True):
    return Quiet() if one else Speaks()


@pytest.mark.parametrize(
    ("supplier", "is_periodic", "columns"),
    [
        (Quiet, True, ()),
        (quiet, True, ()),
        (quiet_with, True, ()),
        (lambda context: Quiet(context), True, ()),  # noqa: PLW0108 - the class has a default for it
        (partial(WithContext, CONTEXT), True, ()),
        (SpeaksLast, True, ()),
        (Speaks, False, ()),
        (Inherits, False, ()),
        (Looks, True, None),
        (LooksAround, False, None),
        (LooksLater, False, None),
        (KeepsOutput, False, ()),
        (KeepsVerb, False, ()),
        (Changes, False, None),
        (ChangesByName, False, None),
        (makes_one_of_two, False, None),
        (lambda: [Quiet()][0], False, None),
    ],
)
def test_code_shows_what_a_generator_looks_at_and_when_it_may_emit(supplier, is_periodic, columns):
    generator = WatermarkStrategy.for_generator(supplier).generator
    assert (generator.is_periodic, generator.columns, generator.ignores_elements) == (
        is_periodic,
        columns,
        columns == (),
    )


class Highest(Quiet):
    highest = -(2**62)

    def on_event(self, event, event_timestamp, output):
        """Keep the highest."""
        self.highest = max(self.highest, event_timestamp)


class HighestLast(Quiet):
    def on_event(self, value, record_timestamp, output):
        self.latest = max(record_timestamp, self.latest)


class HighestIf(Quiet):
    def on_event(self, event, event_timestamp, output):
        if event_timestamp > self.highest:
            self.highest = event_timestamp


class HighestOrFirst(Quiet):
    __slots__ = ("highest",)

    def on_event(self, event, event_timestamp, output):
        if self.highest is None or event_timestamp > self.highest:
            self.highest = event_timestamp


class HighestOfBatch(VectorizedWatermarkGenerator, Highest):
    def on_batch(self, events, timestamps, output):
        self.highest = max(self.highest, pc.max(timestamps).as_py())


class HighestOfBatchByName(HighestOfBatch):
    def on_batch(self, events, timestamps, output):
        last = compute.max(timestamps).as_py()
        if self.highest < last:
            self.highest = last


class Lowest(Highest):
    def on_event(self, event, event_timestamp, output):
        self.highest = min(self.highest, event_timestamp)


class OfAnother(Highest):
    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.other, event_timestamp)


class Later(Highest):
    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event_timestamp + 1)


class Counts(Highest):
    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event_timestamp)
        self.count = 1


class OfTheElement(Highest):
    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event)


class LastOfEqual(Highest):
    def on_event(self, event, event_timestamp, output):
        if event_timestamp >= self.highest:
            self.highest = event_timestamp


class SpeaksToo(Highest):
    def on_periodic_emit(self, output):
        self.output = output


class Property(Highest):
    @property
    def highest(self):
        return 1

    @highest.setter
    def highest(self, value):
        self.all = [value]


class Assigns(Highest):
    def __setattr__(self, name, value):
        pass


class LowestOfBatch(HighestOfBatch):
    def on_batch(self, events, timestamps, output):
        self.highest = max(self.highest, pc.min(timestamps).as_py())


class WithColumns(HighestOfBatch):
    columns = ("at",)


class OtherModule(HighestOfBatch):
    def on_batch(self, events, timestamps, output):
        self.highest = max(self.highest, np.max(timestamps).as_py())


def with_max(max):
    class OtherMax(Quiet):
        def on_event(self, event, event_timestamp, output):
            self.highest = max(self.highest, event_timestamp)

    return OtherMax


KEEP = [Highest, HighestLast, HighestIf, HighestOrFirst, HighestOfBatch, HighestOfBatchByName]
KEEP_MORE = [Lowest, OfAnother, Later, Counts, OfTheElement, LastOfEqual, SpeaksToo, Property, Assigns]
KEEP_MORE += [LowestOfBatch, WithColumns, OtherModule, with_max(min), Quiet, PunctuatedWatermarks]


@pytest.mark.parametrize(
    ("generator", "is_enough"), [*((kind, True) for kind in KEEP), *((kind, False) for kind in KEEP_MORE)]
)
def test_code_shows_that_the_highest_timestamp_is_enough(generator, is_enough):
    assert WatermarkStrategy.for_generator(generator).generator.needs_highest_only is is_enough


def test_a_name_of_the_module_that_hides_max_is_noticed():
    names = {"Quiet": Quiet, "max": min}
    exec(compile(inspect.getsource(Highest), "<notebook>", "exec"), names)
    assert WatermarkStrategy.for_generator(names["Highest"]).generator.needs_highest_only is False
    del names["max"]
    assert WatermarkStrategy.for_generator(names["Highest"]).generator.needs_highest_only is True


def test_a_module_that_was_imported_in_another_cell_is_known():
    names = {"HighestOfBatch": HighestOfBatch, "compute": compute}
    exec(compile(inspect.getsource(HighestOfBatchByName), "<notebook>", "exec"), names)
    assert WatermarkStrategy.for_generator(names["HighestOfBatchByName"]).generator.needs_highest_only is True


def test_a_strategy_with_a_generator_keeps_it_with_all_else():
    strategy = WatermarkStrategy.for_generator(Quiet).with_idleness(5).with_timestamp_assigner("at")
    assert strategy.describe() == "watermarks of Quiet, idle after 5 ms, timestamps from column 'at'"
    assert strategy == WatermarkStrategy.for_generator(Quiet).with_timestamp_assigner("at").with_idleness(5)


def test_watermarks_that_trail_the_clock():
    context, emitted = WatermarkGeneratorContext(1_000), Emitted()
    generator = TimeLagWatermarks(Duration.of_millis(300), context)
    generator.on_event("x", 5, emitted)
    assert emitted == []
    for time_ms in (1_000, 1_001):
        context.set_current_processing_time(time_ms)
        generator.on_periodic_emit(emitted)
    assert emitted == [Watermark(700), Watermark(701)]


def test_watermarks_of_marked_elements():
    generator, emitted = PunctuatedWatermarks(lambda element, ms: ms - 1 if element == "mark" else None), Emitted()
    for element, ms in [("x", 4), ("mark", 5), ("x", 6)]:
        generator.on_event(element, ms, emitted)
    generator.on_periodic_emit(emitted)
    assert emitted == [Watermark(4)]


def test_a_context_comes_back_without_its_time_which_is_that_of_who_takes_it_up():
    assert pickle.loads(pickle.dumps(WatermarkGeneratorContext(5))).get_current_processing_time() == 0


def emitted(generator, *timestamps):
    """The watermarks that a generator emits before the first element, and after each element."""
    output = Emitted()
    generator.on_periodic_emit(output)
    for timestamp in timestamps:
        generator.on_event("an element", timestamp, output)
        generator.on_periodic_emit(output)
    return [watermark.timestamp for watermark in output]


def test_the_bounded_generator_begins_at_the_smallest_time_and_trails_by_the_bound_and_one_millisecond():
    generator = BoundedOutOfOrdernessWatermarks(Duration.of_millis(100))
    assert emitted(generator, 1_000, 900, 1_001) == [-(2**63), 899, 899, 900]


def test_a_timestamp_so_low_that_its_watermark_would_be_below_the_range_leaves_it_at_the_smallest_time():
    assert emitted(BoundedOutOfOrdernessWatermarks(100), -(2**63) + 5) == [-(2**63), -(2**63)]


def test_the_ascending_generator_is_a_bounded_one_without_a_bound():
    assert issubclass(AscendingTimestampsWatermarks, BoundedOutOfOrdernessWatermarks)
    assert emitted(AscendingTimestampsWatermarks(), 5, 3) == [-(2**63), 4, 4]


def test_no_watermarks_emits_nothing():
    assert emitted(NoWatermarksGenerator(), 5) == []


@pytest.mark.parametrize("bound", [-1, Duration.of_millis(-1)])
def test_a_negative_bound_of_a_generator_is_refused(bound):
    with pytest.raises(ProgramError, match=r"out-of-orderness bound: expected at least 0 ms, got (Duration\()?-1"):
        BoundedOutOfOrdernessWatermarks(bound)


class OnMarkers(BoundedOutOfOrdernessWatermarks):
    """A subclass that emits at elements, too."""

    def on_event(self, event, event_timestamp, output):
        super().on_event(event, event_timestamp, output)
        self.on_periodic_emit(output)


class Slower(AscendingTimestampsWatermarks):
    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self._highest_ms - 50))


def test_a_subclass_that_looks_at_elements_in_its_own_way_may_emit_there():
    of = WatermarkStrategy.for_generator
    assert of(AscendingTimestampsWatermarks).is_periodic
    assert of(Slower).is_periodic
    assert not of(OnMarkers).is_periodic


class Idle(Emitted):
    def mark_idle(self):
        self.append("idle")


def test_idleness_begins_with_the_first_silent_emission_and_ends_with_an_element():
    context = WatermarkGeneratorContext(0)
    generator = WatermarksWithIdleness(AscendingTimestampsWatermarks(), Duration.of_millis(100), context)
    output = Idle()

    def asked(*events, at):
        del output[:]
        context.set_current_processing_time(at)
        for event in events:
            generator.on_event("an element", event, output)
        generator.on_periodic_emit(output)
        return list(output)

    assert asked(5, at=0) == [Watermark(4)]
    assert asked(at=50) == [Watermark(4)]
    assert asked(at=150) == [Watermark(4)]
    assert asked(at=151) == ["idle"]
    restored = WatermarksWithIdleness(AscendingTimestampsWatermarks(), Duration.of_millis(100), context)
    restored.restore_state(generator.snapshot_state())
    generator = restored
    assert asked(at=300) == []
    assert asked(7, at=301) == [Watermark(6)]
    assert asked(at=302) == [Watermark(6)]


@pytest.mark.parametrize("hours_back", [0, 1])
def test_a_clock_that_is_set_back_leaves_what_has_been_waited(hours_back):
    context, output = WatermarkGeneratorContext(), Idle()
    generator = WatermarksWithIdleness(AscendingTimestampsWatermarks(), Duration.of_millis(100), context)
    state, back_ms = generator.snapshot_state(), 3_600_000 * hours_back
    for clock in (4_000_000, 4_000_060, 4_000_060 - back_ms, 4_000_100 - back_ms):
        generator = WatermarksWithIdleness(AscendingTimestampsWatermarks(), Duration.of_millis(100), context)
        generator.restore_state(state)
        context.set_current_processing_time(clock)
        generator.on_periodic_emit(output)
        state = generator.snapshot_state()
    assert "idle" not in output
    context.set_current_processing_time(4_000_101 - back_ms)
    generator.on_periodic_emit(output)
    assert output[-1] == "idle"
    *before, _ = state
    generator.restore_state(before)  # as an earlier version stored it
