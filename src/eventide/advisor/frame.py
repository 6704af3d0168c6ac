"""DataFrames: what Spark's workers do with their stretch of the rows, and how these add up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from eventide.advisor.arrivals import ColumnRoles, Stretches
from eventide.advisor.disorder import Disorder, Split
from eventide.advisor.meter import DisorderMeter, Fronts, Stretch, fronts_of
from eventide.errors import ProgramError
from eventide.pickling.pickles import dumps, loads, register
from eventide.runtime.eventtime.histograms import DurationHistogram

_AT_A_TIME = 1 << 18


def measure_frame(frame: Any, columns: ColumnRoles) -> Disorder:
    """Measure a DataFrame, with Spark: its rows are sorted into stretches, and each of these is read twice.

    First it is found out where each stretch leaves the splits, and then it is measured with what those before it have
    left; so all is as exact as in one pass over the whole.

    Raises:
        ProgramError: if the DataFrame is a stream, or no order of arrival is named.
        DataError: if a column does not say what it should.
    """
    from eventide.spark.ordered import OrderedStretches

    if columns.order_by is None:
        raise ProgramError(
            "the rows of a DataFrame have no order; name the column that has the order of arrival: order_by="
        )
    register((Disorder, Fronts, DurationHistogram, Split))
    with OrderedStretches(frame, columns.names, columns.order_by) as stretches:
        before, fronts = Fronts({}, {}), {}
        for place, found in stretches.map(lambda _, batches: dumps(fronts_of(_stretches(batches, columns)))).items():
            fronts[place] = before
            before = before.followed_by(loads(found))

        def measured(place: int, batches: Iterator[pa.RecordBatch]) -> bytes:
            meter = DisorderMeter(fronts.get(place))
            for stretch in _stretches(batches, columns):
                meter.take(stretch)
            return dumps(meter.disorder)

        disorder = Disorder()
        for found in stretches.map(measured).values():
            disorder.follow(loads(found))
    return disorder


def _stretches(batches: Iterator[pa.RecordBatch], columns: ColumnRoles) -> Iterator[Stretch]:
    made = Stretches(columns)
    for batch in _gathered(batches):
        stretch = made.of(batch)
        yield stretch if made.order_is_time else replace(stretch, clock=None)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spark hands over ten thousand rows at a time; what is done once for a stretch and split is better done seldom."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _AT_A_TIME:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting = []
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
