"""Functions and triggers of users that set no timers of processing time, and others of which that is not certain."""

from __future__ import annotations

import operator

import pytest

from eventide.datastream import KeyedCoProcessFunction, KeyedProcessFunction
from eventide.datastream.functions import VectorizedKeyedProcessFunction
from eventide.datastream.window import EventTimeTrigger, Trigger, TriggerResult
from eventide.runtime.process.functions import may_set_timers_of_clock


class Direct(KeyedProcessFunction):
    def open(self, runtime_context):
        self.seen = 0

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 300)
        yield value

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), ctx.time_domain(), timestamp


class InAVariable(Direct):
    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        for at in (value, value + ctx.timestamp()):
            if timers.current_watermark() < at:
                timers.delete_event_time_timer(at)
                timers.register_event_time_timer(at)


class AMethodOfTimers(Direct):
    def process_element(self, value, ctx):
        register = ctx.timer_service().register_event_time_timer
        register(5)
        self.seen = ctx.timestamp(), value


class OfTwoInputs(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value)

    def process_element2(self, value, ctx):
        yield value

    def on_timer(self, timestamp, ctx):
        yield timestamp


class InColumns(VectorizedKeyedProcessFunction):
    def process_batch(self, batch, ctx):
        ctx.timer_service().register_event_time_timers(ctx.distinct_keys, 10)

    def on_timers(self, timestamps, ctx):
        ctx.collect(ctx.keys)


class OwnTrigger(Trigger):
    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(None)

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())


@pytest.mark.parametrize("kind", [Direct, InAVariable, AMethodOfTimers, OfTwoInputs, InColumns, OwnTrigger])
def test_code_that_only_calls_methods_of_its_context_shows_which_timers_it_sets(kind):
    assert not may_set_timers_of_clock(kind())


class OfTheClock(Direct):
    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(value)


class OfTheClockInOnTimer(Direct):
    def on_timer(self, timestamp, ctx):
        ctx.timer_service().register_processing_time_timer(timestamp)


class HandsItsContextOn(Direct):
    def process_element(self, value, ctx):
        self.later(ctx)

    def later(self, ctx):
        ctx.timer_service().register_processing_time_timer(1)


class HandsItsTimersOn(Direct):
    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        operator.methodcaller("register_processing_time_timer", 1)(timers)


class HandsTimersOnAtOnce(Direct):
    def process_element(self, value, ctx):
        operator.methodcaller("register_processing_time_timer", 1)(ctx.timer_service())


class GivesAnotherName(Direct):
    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        others = timers
        getattr(others, "register_" + "processing_time_timer")(1)


class KeepsItsContext(Direct):
    def process_element(self, value, ctx):
        self.context = ctx


class KeepsTheMethod(Direct):
    def process_element(self, value, ctx):
        self.timers = ctx.timer_service


class Nested(Direct):
    def process_element(self, value, ctx):
        def later():
            return ctx

        self.later = later


class AsksTheMethod(Direct):
    def process_element(self, value, ctx):
        self.context = ctx.timestamp.__self__


class ASubclass(Direct):
    def process_element(self, value, ctx):
        yield from super().process_element(value, ctx)


class ReplacesItsMethod(Direct):
    def open(self, runtime_context):
        self.process_element = OfTheClock().process_element


class Static(Direct):
    process_element = staticmethod(lambda value, ctx: None)


class SeesItsVariables(Direct):
    def process_element(self, value, ctx):
        for one in locals().values():
            self.seen = one


class OwnTriggerOfTheClock(OwnTrigger):
    def on_element(self, element, timestamp, window, ctx):
        ctx.register_processing_time_timer(1)
        return TriggerResult.CONTINUE


class AsksAnotherTrigger(OwnTrigger):
    def on_element(self, element, timestamp, window, ctx):
        return EventTimeTrigger().on_element(element, timestamp, window, ctx)


@pytest.mark.parametrize(
    "kind",
    [
        OfTheClock,
        OfTheClockInOnTimer,
        HandsItsContextOn,
        HandsItsTimersOn,
        HandsTimersOnAtOnce,
        GivesAnotherName,
        KeepsItsContext,
        KeepsTheMethod,
        Nested,
        AsksTheMethod,
        ASubclass,
        ReplacesItsMethod,
        Static,
        SeesItsVariables,
        OwnTriggerOfTheClock,
        AsksAnotherTrigger,
    ],
)
def test_any_other_code_may_set_timers_of_the_clock(kind):
    assert may_set_timers_of_clock(kind())


def test_a_method_of_one_object_counts():
    function = Direct()
    function.process_element = OfTheClock().process_element
    assert may_set_timers_of_clock(function)
