"""Strategies, assigners, generators and sources say which elements they are for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

from orders import Event, Order, env, orders

from eventide.common import (
    Duration,
    SimpleStringSchema,
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkGeneratorContext,
    WatermarkOutput,
    WatermarkStrategy,
)
from eventide.datastream import DataStream, SourceContext, SourceFunction
from eventide.datastream.connectors import NumberSequenceSource, Source
from eventide.datastream.connectors.kafka import KafkaSource
from eventide.datastream.functions import AscendingTimestampExtractor


class OrderTime(TimestampAssigner[Order]):
    def extract_timestamp(self, value: Order, record_timestamp: int) -> int:
        return value.time


class Marked(WatermarkGenerator[Event]):
    def on_event(self, event: Event, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(event.time))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class OfEvents(WatermarkStrategy[Event]):
    def create_watermark_generator(self, context: WatermarkGeneratorContext) -> WatermarkGenerator[Event]:
        return Marked()


class Older(AscendingTimestampExtractor[Order]):
    def extract_ascending_timestamp(self, element: Order) -> int:
        return element.time


class Orders(Source[Order]):
    def splits(self) -> list[str]:
        return ["all"]

    def latest_position(self, split: str) -> int:
        return 1

    def read(self, split: str, start: int, end: int) -> Iterator[Order]:
        yield Order(1, "ann", 3)


class Emits(SourceFunction[Order]):
    def run(self, ctx: SourceContext[Order]) -> None:
        ctx.collect_with_timestamp(Order(1, "ann", 3), 1)

    def cancel(self) -> None:
        pass


bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
strategy: WatermarkStrategy[Order] = bounded.with_idleness(Duration.of_minutes(1)).with_timestamp_assigner(
    lambda order, _: order.time
)
assert_type(orders.assign_timestamps_and_watermarks(strategy), DataStream[Order])
orders.assign_timestamps_and_watermarks(bounded.with_timestamp_assigner(OrderTime()))
orders.assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(Marked).with_timestamp_assigner(OrderTime()))
orders.assign_timestamps_and_watermarks(OfEvents().with_timestamp_assigner(lambda order, _: order.amount))
orders.assign_timestamps_and_watermarks(bounded.with_timestamp_assigner("time"))


def as_in_older_programs() -> DataStream[Order]:
    return orders.assign_timestamps_and_watermarks(Older())


assert_type(env.from_source(Orders(), strategy, "orders"), DataStream[Order])
assert_type(env.from_source(Orders(), WatermarkStrategy.no_watermarks(), "orders"), DataStream[Order])
assert_type(env.from_source(NumberSequenceSource(1, 5), WatermarkStrategy.no_watermarks(), "numbers"), DataStream[int])
assert_type(env.add_source(Emits()), DataStream[Order])
kafka = KafkaSource.builder().set_bootstrap_servers("localhost:9092").set_topics("orders")
lines = kafka.set_value_only_deserializer(SimpleStringSchema()).set_group_id("shop").build()
assert_type(lines, KafkaSource[str])
assert_type(env.from_source(lines, WatermarkStrategy.no_watermarks(), "lines"), DataStream[str])
