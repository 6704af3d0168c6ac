"""Strategies with generators of the user's, and the ready-made generators."""

import pickle
from functools import partial

import pytest

from eventide.common import Duration, Watermark, WatermarkGenerator, WatermarkStrategy
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
    with pytest.raises(ProgramError, match="<lambda> returned 'x', which is no WatermarkGenerator"):
        WatermarkStrategy.for_generator(lambda: "x").generator.create(CONTEXT)


def test_a_class_tells_that_it_is_periodic_and_a_function_cannot():
    assert [WatermarkStrategy.for_generator(supplier).is_periodic for supplier in (Periodic, Quiet, quiet)] == [
        True,
        False,
        False,
    ]
    assert WatermarkStrategy.for_monotonous_timestamps().is_periodic


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
