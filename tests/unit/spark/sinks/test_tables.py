"""Which sinks are tables of Delta Lake and Iceberg, and that each table of a job has one sink."""

from __future__ import annotations

import pytest

from eventide.common import Types
from eventide.connectors.sink import FormatSink, PrintSink, Sink
from eventide.errors import ProgramError
from eventide.plan.job import SinkSpec
from eventide.spark.sinks.kafka import SinkRun
from eventide.spark.sinks.routing import sink_of_rows, tables_of


def specs(*sinks: Sink) -> tuple[SinkSpec, ...]:
    return tuple(SinkSpec(-1 - i, f"sink {i}", Types.ROW_NAMED(["n"], [Types.LONG()]), s) for i, s in enumerate(sinks))


DELTA = FormatSink("delta", {"path": "/lake/totals"})


def test_tables_are_told_from_other_sinks() -> None:
    sinks = specs(PrintSink(), DELTA, FormatSink("parquet", {"path": "/out"}), FormatSink("iceberg", {"path": "a.b.c"}))
    assert list(tables_of(sinks, SinkRun(), None)) == [-2, -4]


def test_two_sinks_with_one_table_are_refused() -> None:
    sinks = specs(DELTA, FormatSink("delta", {"path": "/lake/totals/"}))
    with pytest.raises(ProgramError, match=r"two sinks write to the table '/lake/totals'; unite their streams"):
        tables_of(sinks, SinkRun(), None)


def test_the_only_table_of_a_job_gets_frames_so_that_it_commits_no_empty_micro_batch() -> None:
    assert sink_of_rows(specs(DELTA)) is None
    assert sink_of_rows(specs(FormatSink("parquet", {"path": "/out"}))) is not None
