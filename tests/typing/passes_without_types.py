# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-any-generics
# pyright: basic
"""A program as PyFlink's pages have it, without a type: nothing is found in it."""

from eventide.common import Duration, Encoder, Row, SerializationSchema, Time, Types, WatermarkStrategy
from eventide.common.watermark_strategy import TimestampAssigner
from eventide.datastream import DataStream, OutputTag
from eventide.datastream.connectors import FileSink
from eventide.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaTopicSelector
from eventide.datastream.functions import (
    AggregateFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
    RuntimeContext,
    VectorizedKeyedProcessFunction,
)
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import TimeWindow, TumblingEventTimeWindows
from eventide.testing import local_environment

late = OutputTag("late", Types.ROW([Types.STRING(), Types.LONG()]))


class FirstOfTuple(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class Doubled(MapFunction):
    def map(self, value):
        return value[0], value[1] * 2


class Words(FlatMapFunction):
    def flat_map(self, value):
        yield from value[0].split()


class Sum(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_state(ValueStateDescriptor("sum", Types.FLOAT()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        current = self.state.value()
        if current is None:
            current = 0
        self.state.update(current + value[1])
        ctx.timer_service().register_event_time_timer(value[1] + 2000)
        yield value[0], current
        yield late, Row(value[0], value[1])

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield ctx.get_current_key(), timestamp


class SumOfMany(VectorizedKeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_vectorized_state(ValueStateDescriptor("sum", Types.INT()))

    def process_batch(self, batch, ctx: VectorizedKeyedProcessFunction.Context):
        self.state.put(ctx.keys, batch.column("f1"))
        ctx.timer_service().register_event_time_timers(ctx.distinct_keys, 2000)
        ctx.collect(batch, ctx.key_numbers >= 0)

    def on_timers(self, timestamps, ctx: VectorizedKeyedProcessFunction.OnTimersContext):
        self.state.clear(ctx.keys)


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithKey(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, next(iter(elements))

    def clear(self, context) -> None:
        pass


class Counts(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements):
        return [(key, context.window().start, context.window().end, len(list(elements)))]


class FirstAsText(SerializationSchema):
    def serialize(self, element):
        return str(element[0]).encode()


class ByFirst(KafkaTopicSelector):
    def apply(self, data):
        return f"of-{data[0]}"


class Lines(Encoder):
    def encode(self, element):
        return f"{element[0]}\n".encode()


env = local_environment()
strategy = (
    WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    .with_timestamp_assigner(FirstOfTuple())
    .with_idleness(Duration.of_minutes(1))
)
source: DataStream = env.from_collection(
    [("hi there", 1), ("hi", 2)], type_info=Types.TUPLE([Types.STRING(), Types.INT()])
)
stream = source.assign_timestamps_and_watermarks(strategy)
stream.flat_map(Words()).print()
stream.map(lambda value: (value[0], value[1] + 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()])).print()
stream.map(lambda value: Row(name=value[0]), Types.ROW_NAMED(["name"], [Types.STRING()])).map(
    lambda row: row.name
).print()
keyed = stream.map(Doubled()).key_by(lambda value: value[0], key_type=Types.STRING())
sums = keyed.process(Sum())
sums.get_side_output(late).map(lambda row: row[0]).print()
windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(5)))
windows.aggregate(
    Average(), window_function=WithKey(), accumulator_type=Types.TUPLE([Types.LONG(), Types.LONG()])
).print()
windows.process(Counts(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.INT()])).print()
windows.reduce(lambda a, b: (a[0], a[1] + b[1])).print()
stream.key_by(lambda value: value[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).print()
pairs = Types.TUPLE([Types.STRING(), Types.INT()])
stream.key_by("f0").process(SumOfMany(), pairs).map(lambda value: value[1]).print()

records = KafkaRecordSerializationSchema.builder().set_value_serialization_schema(FirstAsText())
records.set_topic_selector(ByFirst()).set_key_serialization_schema(FirstAsText())
sink: KafkaSink = (
    KafkaSink.builder().set_bootstrap_servers("localhost:9092").set_record_serializer(records.build()).build()
)
stream.sink_to(sink)
stream.map(lambda value: value[0]).sink_to(sink)
stream.sink_to(FileSink.for_row_format("/tmp/out", Lines("UTF-8")).build())
