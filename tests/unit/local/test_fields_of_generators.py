"""A generator that names its columns leaves the other columns unread."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from eventide.aggregates import sum_
from eventide.common import Time, Types, VectorizedWatermarkGenerator, Watermark, WatermarkStrategy
from eventide.datastream.connectors import FileSource
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import local_environment

ORDER = Types.ROW_NAMED(
    ["user", "at", "amount", "limit", "text"], [Types.STRING(), *[Types.LONG()] * 3, Types.STRING()]
)


class Limits(VectorizedWatermarkGenerator):
    """Says at the end of a micro-batch what the highest limit was."""

    is_periodic = True
    columns = ("limit",)

    def __init__(self):
        self.highest = -(2**63)

    def on_batch(self, events, timestamps, output):
        assert events.schema.names == ["limit"]
        self.highest = max(self.highest, pc.max(events.column("limit")).as_py())

    def on_event(self, event, event_timestamp, output):
        raise AssertionError("elements come as columns")

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.highest))


class LooksAtAll(Limits):
    columns = None

    def on_batch(self, events, timestamps, output):
        super().on_batch(events.select(["limit"]), timestamps, output)


@pytest.mark.parametrize(
    ("generator", "reads"), [(Limits, "user, at, amount, limit\n"), (LooksAtAll, None)], ids=["named", "all"]
)
def test_only_what_someone_needs_is_read(generator, reads, tmp_path, capsys):
    orders = {"user": ["a", "b", "a"], "at": [1, 2, 11], "amount": [5, 6, 7], "limit": [0, 9, 3], "text": ["x"] * 3}
    pq.write_table(pa.table(orders), tmp_path / "orders.parquet")
    env = local_environment()
    source = FileSource.parquet(str(tmp_path), type_info=ORDER).build()
    strategy = WatermarkStrategy.for_generator(generator).with_timestamp_assigner("at")
    windows = env.from_source(source, strategy, "orders").key_by("user").window(TumblingEventTimeWindows.of(Time(10)))
    totals = windows.aggregate(sum_("amount").alias("total"))
    totals.explain()
    said = capsys.readouterr().out
    assert (f"reads      {reads}" in said) if reads else ("  reads " not in said)
    assert sorted((row.user, row.total) for row in totals.execute_and_collect()) == [("a", 5), ("a", 7), ("b", 6)]
