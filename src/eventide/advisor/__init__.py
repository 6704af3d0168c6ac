"""How large must the bound be? Measures the disorder of data, and recommends a watermark strategy for them."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from eventide.advisor.advice import Advice, Choice, Early
from eventide.advisor.disorder import Disorder, DisorderMeter, Split
from eventide.advisor.reading import ColumnRoles, Topic, Unit, Watch, measure_frame, read_files, read_topic
from eventide.errors import DataError, ProgramError
from eventide.runtime.observation.histograms import DurationHistogram

__all__ = ["advise", "Advice", "Choice", "Early", "Disorder", "Split", "DurationHistogram", "Topic"]


def advise(
    data: object,
    *,
    time: str | None = None,
    split_by: str | Sequence[str] = (),
    order_by: str | None = None,
    unit: Unit | None = None,
    lose: float = 0.001,
    format: str | None = None,
) -> Advice:
    """Measure how far out of order data are, and recommend a bound, an idleness, an alignment and a lateness.

    The data should be as they came: a log, a topic, or files that were written in the order of arrival. Everything is
    counted, nothing is sampled. Nulls are left out, and said.

    Args:
        data: Files, or directories of files, of Parquet, ORC, CSV or JSON lines, which are read in the order of their
            paths by Arrow, without Spark; a :class:`Topic` of Kafka, from its beginning to its present end; or a
            DataFrame, which Spark measures.
        time: The column of the event time: timestamps, text in ISO 8601, or whole numbers; without a zone they are in
            UTC. Of a topic: a field of its JSON values; None takes the timestamps of the records.
        split_by: The columns that tell the splits apart, such as a partition or a device; without them, all is one
            split. The splits of a topic are its partitions.
        order_by: The column of the order of arrival. If it has timestamps, silence is measured by them; else by the
            progress of event time. Without it, the rows are in that order; a DataFrame needs it, because its rows have
            no order.
        unit: The unit of whole numbers in ``time``: "s", "ms", "us" or "ns" since the epoch. None: milliseconds, and an
            error if they look like something else.
        lose: The share of elements that may be lost with what is recommended, from 0 to less than 1.
        format: The format of files whose names do not say it: "parquet", "orc", "csv" or "json".

    Raises:
        ProgramError: An argument makes no sense, or something is not there.
        DataError: The data cannot be read, or have no times that could be used; it says why.
    """
    if not 0 <= lose < 1:
        raise ProgramError(f"lose: expected a share from 0 to less than 1, such as 0.001, got {lose!r}")
    splits = (split_by,) if isinstance(split_by, str) else tuple(split_by)
    if time is None and not isinstance(data, Topic):
        raise ProgramError("name the column of the event time: time= (--time)")
    columns = ColumnRoles(time or "", splits, order_by, unit)
    found = _measured(data, columns, format)
    if not found.rows:
        why = f"the column {time!r} is null in all {found.nulls:,} rows" if found.nulls else "there are no rows"
        raise DataError(f"there is nothing to measure: {why}; name other files, or another column")
    return Advice(found, columns, lose, can_align=not _is_data_frame(data))


def _measured(data: Any, columns: ColumnRoles, format: str | None) -> Disorder:
    if _is_data_frame(data):
        return measure_frame(data, columns)
    meter = DisorderMeter()
    with Watch() as watch:
        if isinstance(data, Topic):
            reading = read_topic(data, columns, watch)
        else:
            paths = [data] if isinstance(data, str | PathLike) else list(data)
            reading = read_files([str(path) for path in paths], columns, format, watch)
        for stretch in reading:
            meter.take(stretch)
    return meter.disorder


def _is_data_frame(data: object) -> bool:
    """Whether the data are a Spark DataFrame, classic or Connect, without importing Spark."""
    return any(base.__name__ == "DataFrame" and base.__module__.startswith("pyspark") for base in type(data).__mro__)
