"""Tables of Delta Lake and Iceberg, which remember the micro-batches of a job that are in them, and take none twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.connectors.sink import FormatSink
from eventide.errors import ProgramError
from eventide.plan.job import SinkSpec
from eventide.spark.checkpoint.owner import Ownership
from eventide.spark.sinks.kafka import SinkRun

_CHECKPOINT = "eventide.checkpoint"
_MICRO_BATCH = "eventide.micro-batch"
"""Properties of the snapshot of a micro-batch in an Iceberg table."""


class LakeTable:
    """The table of one sink of a job: each micro-batch with results is one commit to it, which names the job.

    Args:
        sink: the sink, of a format for which `is_table` holds.
        job: the run of the job.
        owner: told by the job where two of its runs could write to the table.
    """

    def __init__(self, sink: FormatSink, job: SinkRun, owner: Ownership | None = None) -> None:
        self._sink = sink
        self._job = job
        self._owner = owner
        self._has_written = False

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Append the rows of a micro-batch, unless the run before has done so and ended before Spark noted it down.

        Raises:
            StateError: if another run of the job has begun since.
        """
        if self._owner is not None:
            self._owner.check()
        _WRITERS[self._sink.format](self, rows, batch_id)
        self._has_written = True

    def _to_delta(self, rows: DataFrame, batch_id: int) -> None:
        """Delta Lake itself passes over a transaction whose number it has seen from an application."""
        # With the path, so that another sink of the job, whose path is spelled in another way, is another application.
        self._append(rows, {"txnAppId": f"{self._job.checkpoint} {path_of(self._sink)}", "txnVersion": str(batch_id)})

    def _to_iceberg(self, rows: DataFrame, batch_id: int) -> None:
        """Iceberg keeps what a snapshot says of itself; only the first micro-batch of a run can be there already."""
        said = {_CHECKPOINT: self._job.checkpoint, _MICRO_BATCH: str(batch_id)}
        if self._has_written or not self._has_snapshot(rows, said):
            self._append(rows, {f"snapshot-property.{name}": value for name, value in said.items()})

    def _has_snapshot(self, rows: DataFrame, said: dict[str, str]) -> bool:
        path = path_of(self._sink)
        snapshots = rows.sparkSession.read.format("iceberg").load(f"{path}{'#' if '/' in path else '.'}snapshots")
        summary = F.col("summary")
        for name, value in said.items():
            snapshots = snapshots.where(summary[name] == value)
        return not snapshots.isEmpty()

    def _append(self, rows: DataFrame, more: dict[str, str]) -> None:
        writer = rows.write.format(self._sink.format).options(**(self._sink.options | more))
        writer.partitionBy(*self._sink.partition_by).mode("append").save()


_WRITERS: dict[str, Callable[[LakeTable, DataFrame, int], None]] = {
    "delta": LakeTable._to_delta,
    "iceberg": LakeTable._to_iceberg,
}


def is_table(sink: object) -> bool:
    """Whether a sink writes to a table that can tell which micro-batches it has."""
    return isinstance(sink, FormatSink) and sink.format in _WRITERS


def path_of(sink: FormatSink) -> str:
    """Where the table is: a path, or the name that a catalog gives it."""
    return sink.options.get("path", "").rstrip("/")


def tables_of(sinks: Sequence[SinkSpec], job: SinkRun, owner: Ownership | None) -> dict[int, LakeTable]:
    """The tables of a job by the numbers of their sinks.

    Raises:
        ProgramError: if two sinks write to one: it would take the rows of one for a repetition of the other's.
    """
    found = {spec.number: spec.sink for spec in sinks if isinstance(spec.sink, FormatSink) and is_table(spec.sink)}
    paths = [path_of(sink) for sink in found.values()]
    for path in paths:
        if paths.count(path) > 1:
            raise ProgramError(f"two sinks write to the table {path!r}; unite their streams, and give them one sink")
    return {number: LakeTable(sink, job, owner) for number, sink in found.items()}
