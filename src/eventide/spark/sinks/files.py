"""A directory of files as a sink: Spark writes them out of sight, and they appear whole, under a name of their own."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.connectors.file_system.sink import PartFiles, new_stage
from eventide.errors import ProgramError, StateError
from eventide.spark.failures import ONE_RUN_ONLY
from eventide.spark.session.locations import resolved

SPARKS_FILES = ("avro", "csv", "json", "orc", "parquet", "text")
"""The formats that are files in a directory, and nothing else."""

_TASK = "__eventide_task"
_WHERE_NOBODY_LOOKS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}
"""Hadoop need not mark the hidden directory as complete, nor have files appear there all at once."""
_WRITTEN = re.compile(r"(?:.*/)?part-(?P<task>\d+)-.*[-.]c\d+(?P<ending>\..*)?")


class FileDirectory:
    """Directory of one sink of a job: each micro-batch as files of its own, ``part-<micro-batch>-<number>``.

    Spark writes them into a hidden directory; how they appear is said by `PartFiles`.

    Args:
        path: the directory, as Spark takes it.
        file_format: one of `SPARKS_FILES`.
        options: those of Spark's writer.
        buckets: the fields whose values name subdirectories.
    """

    def __init__(self, path: str, file_format: str, options: dict[str, str], buckets: tuple[str, ...] = ()) -> None:
        self._path = path.rstrip("/")
        self._stage = new_stage()
        self._format = file_format
        self._options = options
        self._buckets = buckets
        self._parts: PartFiles | None = None
        self._is_quiet = False

    @property
    def may_hold_leftovers(self) -> bool:
        """Whether this run has written nothing yet, so that what the one before left half done may be there."""
        return self._parts is None

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Write a micro-batch: a file for each of Spark's tasks that has rows; one without rows leaves nothing.

        Args:
            rows: its rows.
            batch_id: its number.

        Raises:
            ProgramError: if Arrow, which moves the files, does not reach where they are.
            StateError: if another run of the job has taken away what this one has written.
        """
        if self._is_quiet:
            self._write_if_any(rows, batch_id)
        else:
            self._is_quiet = self._write(rows, batch_id) == 0

    def _write_if_any(self, rows: DataFrame, batch_id: int) -> None:
        """Write a micro-batch that follows one without rows: most micro-batches of windows have none.

        Spark's writer makes directories and an empty file in any case, which takes longer than to look first, and on an
        object store far longer.
        """
        rows.persist()
        try:
            self._is_quiet = rows.count() == 0
            if not self._is_quiet:
                self._write(rows, batch_id)
        finally:
            rows.unpersist()

    def _write(self, rows: DataFrame, batch_id: int) -> int:
        """Write a micro-batch, and return the number of its files."""
        filled = self._write_out_of_sight(rows)
        parts = self._parts or _parts_of(rows.sparkSession, self._path)
        written = {name: match for name in parts.names(self._stage) if (match := _WRITTEN.fullmatch(name))}
        # Spark writes a file of the first task in any case.
        kept = {name: match["ending"] or "" for name, match in written.items() if int(match["task"]) in filled}
        if filled - {int(match["task"]) for match in written.values()}:
            raise StateError(f"another run of this job writes to {self._path}; {ONE_RUN_ONLY}")
        try:
            count = parts.commit(batch_id, self._stage, kept, after_another_run=self.may_hold_leftovers)
        except (FileNotFoundError, FileExistsError) as error:
            raise StateError(f"another run of this job writes to {self._path}: {error}; {ONE_RUN_ONLY}") from error
        self._parts = parts
        return count

    def _write_out_of_sight(self, rows: DataFrame) -> set[int]:
        """Write all rows in one Spark job; return the numbers of the tasks that had any."""
        observation = Observation()
        numbered = rows.withColumn(_TASK, F.spark_partition_id())
        observed = numbered.observe(observation, F.collect_set(_TASK).alias("tasks")).drop(_TASK)
        options = _WHERE_NOBODY_LOOKS | self._options
        writer = observed.write.format(self._format).options(**options).partitionBy(*self._buckets).mode("overwrite")
        writer.save(f"{self._path}/{self._stage}")
        return set(observation.get["tasks"])


def _parts_of(spark: SparkSession, path: str) -> PartFiles:
    """A directory on the file system on which Spark has it: paths may be without a scheme.

    Raises:
        ProgramError: if Arrow cannot open that.
    """
    try:
        return PartFiles.at(resolved(spark, path))
    except ProgramError as error:
        raise ProgramError(
            f"a file sink writes to {path}, and Arrow has to move its files when they are complete: {error}. Write "
            "with sink_to(function) there, which gets a DataFrame and the number of its micro-batch"
        ) from error
