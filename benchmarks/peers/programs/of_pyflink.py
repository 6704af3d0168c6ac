"""PyFlink: its local cluster with two slots, and state in RocksDB.

There are no checkpoints: a bounded job with checkpoints ends no sooner than the next of them is due. Python functions
run in processes beside the JVM, or in its threads, as PYFLINK_MODE says.
"""

from __future__ import annotations

import os
import sys
import sysconfig

from contract import BOUND_MS, CORES, GAP_MS, LEAST_VALUE, WINDOW_MS, WITHIN_MS, main
from pyflink.common import Configuration, Duration, Encoder, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    KeyedProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from pyflink.datastream.connectors.file_system import FileSink, FileSource
from pyflink.datastream.formats.csv import CsvReaderFormat, CsvSchema
from pyflink.datastream.state import MapStateDescriptor
from pyflink.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from pyflink.table import DataTypes, Schema, StreamTableEnvironment

os.environ["PYTHONPATH"] = sysconfig.get_path("purelib")  # the interpreter within the JVM knows no environments

SETTINGS = {
    "parallelism.default": str(CORES),
    "taskmanager.numberOfTaskSlots": str(CORES),
    "taskmanager.memory.managed.size": "1 gb",  # a local cluster has 128 MB, where a task manager has 512
    "state.backend.type": "rocksdb",
    "python.executable": sys.executable,
    "python.client.executable": sys.executable,
    "python.execution-mode": os.environ.get("PYFLINK_MODE", "process"),
}


def environment():
    configuration = Configuration()
    for key, value in SETTINGS.items():
        configuration.set_string(key, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


EVENT = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG(), Types.LONG()])


def read(env, events, kind="events"):
    fields = CsvSchema.builder().set_use_header().add_string_column("event").add_string_column("user")
    schema = fields.add_number_column("at", DataTypes.BIGINT()).add_number_column("value", DataTypes.BIGINT()).build()
    files = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(events / "whole" / kind))
    return env.from_source(files.build(), WatermarkStrategy.no_watermarks(), kind)


def tuples(rows):
    """The rows of CSV as tuples: a row of this source has a type of which only `map` can make another."""
    return rows.map(lambda row: (row[0], row[1], row[2], row[3]), EVENT)


class At(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


def timed(rows):
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(BOUND_MS))
    return tuples(rows).assign_timestamps_and_watermarks(bounded.with_timestamp_assigner(At()))


def job(env, lines, out):
    lines.sink_to(FileSink.for_row_format(str(out / "out"), Encoder.simple_string_encoder()).build())
    return lambda: env.execute("peers")


def stateless(events, out):
    env = environment()
    large = tuples(read(env, events)).filter(lambda event: event[3] >= LEAST_VALUE)
    return job(env, large.map(lambda event: f"{event[1].upper()},{event[3] * 2}", Types.STRING()), out)


class Line(ProcessWindowFunction):
    def process(self, key, context, elements):
        for _, total in elements:
            yield f"{key},{context.window().start},{total}"


def windowed(events, out, windows):
    env = environment()
    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    values = timed(read(env, events)).map(lambda event: (event[1], event[3]), pair)
    by_user = values.key_by(lambda pair: pair[0], Types.STRING()).window(windows)
    sums = by_user.reduce(lambda one, other: (one[0], one[1] + other[1]), Line(), Types.STRING())
    return job(env, sums, out)


def tumbling(events, out):
    return windowed(events, out, TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))


def sessions(events, out):
    return windowed(events, out, EventTimeSessionWindows.with_gap(Time.milliseconds(GAP_MS)))


class Highest(KeyedProcessFunction):
    """The highest value of each user and period, told by a timer at the end of the period."""

    def open(self, runtime_context):
        self.highest = runtime_context.get_map_state(MapStateDescriptor("highest", Types.LONG(), Types.LONG()))

    def process_element(self, value, ctx):
        start = value[2] - value[2] % WINDOW_MS
        known = self.highest.get(start)
        if known is None:
            ctx.timer_service().register_event_time_timer(start + WINDOW_MS)
        if known is None or value[3] > known:
            self.highest.put(start, value[3])

    def on_timer(self, timestamp, ctx):
        start = timestamp - WINDOW_MS
        yield f"{ctx.get_current_key()},{start},{self.highest.get(start)}"
        self.highest.remove(start)


def process(events, out):
    env = environment()
    by_user = timed(read(env, events)).key_by(lambda event: event[1], Types.STRING())
    return job(env, by_user.process(Highest(), Types.STRING()), out)


def join(events, out):
    """In SQL: PyFlink's streams have no joins, and what runs is no Python."""
    env = environment()
    tables = StreamTableEnvironment.create(env)
    schema = (
        Schema.new_builder()
        .column_by_expression("ts", "TO_TIMESTAMP_LTZ(`at`, 3)")
        .watermark("ts", f"ts - INTERVAL '{BOUND_MS / 1000:.3f}' SECOND")
        .build()
    )
    for kind in ("events", "answers"):
        tables.create_temporary_view(kind, tables.from_data_stream(read(env, events, kind), schema))
    tables.execute_sql(
        "CREATE TABLE pairs (event STRING, `value` BIGINT, other BIGINT) "
        f"WITH ('connector' = 'filesystem', 'path' = '{(out / 'out').as_uri()}', 'format' = 'csv')"
    )
    pairs = tables.sql_query(f"""
        SELECT e.event, e.`value`, a.`value` FROM events e JOIN answers a
        ON e.event = a.event AND a.ts BETWEEN e.ts AND e.ts + INTERVAL '{WITHIN_MS / 1000:.3f}' SECOND
    """)
    return lambda: pairs.execute_insert("pairs").wait()


PROGRAMS = {"stateless": stateless, "tumbling": tumbling, "sessions": sessions, "process": process, "join": join}

if __name__ == "__main__":
    main(PROGRAMS, warm_up=True)
