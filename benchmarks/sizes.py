"""How much is measured: everything, or little, to see that it works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Rows and micro-batches of a run. The data for a part is named with its number of keys, which is not scaled."""

    rows_per_batch: int
    batches: int
    warm_up: int
    """How many micro-batches of a query are not counted; nor is the last, in which a source that ends closes all."""
    few_batches: int
    """For data that takes either side long; all but the first and the last are counted."""
    small_batches: int
    """How many almost empty micro-batches."""
    element_rows: int
    """For the element path without Parquet."""
    function_rows: int
    """In a micro-batch, for functions with state and timers: Spark's take a tenth of a millisecond for each call."""
    join_rows: int
    """Of each of two streams that are joined, in a micro-batch."""
    kafka_rows: int
    """In a micro-batch that is written to a topic."""
    latency_s: int
    """For how many seconds elements are produced."""
    growth: tuple[int, ...]
    """How many keys there is state of, where a micro-batch touches few of them."""
    splits: tuple[int, ...]
    """How many splits a source has."""
    finished_files: tuple[int, ...]
    """How many files of a directory have been read."""
    nexmark_events: int
    """In all micro-batches together."""
    nexmark_batches: int
    """How many micro-batches these come in; the first is not counted."""


FULL = Sizes(
    rows_per_batch=5_000_000,
    batches=6,
    warm_up=2,
    few_batches=4,
    small_batches=40,
    element_rows=200_000,
    function_rows=100_000,
    join_rows=400_000,
    kafka_rows=1_000_000,
    latency_s=45,
    growth=(10_000, 100_000, 1_000_000),
    splits=(1, 100, 1_000, 10_000),
    finished_files=(1, 1_000, 10_000, 100_000),
    nexmark_events=4_000_000,
    nexmark_batches=5,
)
QUICK = Sizes(
    rows_per_batch=200_000,
    batches=4,
    warm_up=1,
    few_batches=3,
    small_batches=12,
    element_rows=50_000,
    function_rows=20_000,
    join_rows=50_000,
    kafka_rows=50_000,
    latency_s=15,
    growth=(1_000, 10_000),
    splits=(1, 100, 1_000),
    finished_files=(1, 1_000),
    nexmark_events=100_000,
    nexmark_batches=2,
)
