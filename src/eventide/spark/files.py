"""A directory of files as a sink: Spark writes them out of sight, and they appear whole, under a name of their own."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.datastream.connectors._storage import opened
from eventide.errors import ProgramError, StateError
from eventide.spark.failures import ONE_RUN_ONLY
from eventide.spark.locations import resolved

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

SPARKS_FILES = ("avro", "csv", "json", "orc", "parquet", "text")
"""The formats that are files in a directory, and nothing else."""

_STAGE = "_eventide-"
_TASK = "__eventide_task"
_WHERE_NOBODY_LOOKS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}
"""Hadoop need not mark the hidden directory as complete, nor have files appear there all at once."""
_WRITTEN = re.compile(r"part-(?P<task>\d+)-.*-c\d+(?P<ending>\..*)?")


class FileDirectory:
    """What one sink of a job writes: each micro-batch as files of its own, ``part-<micro-batch>-<number>``.

    Spark writes them into a hidden directory, where no reader looks; they are moved when they are complete. A
    micro-batch that is run again gives its files the names that they have already, so that they replace each other.

    Args:
        path: the directory, as Spark takes it.
        file_format: one of `SPARKS_FILES`.
        options: those of Spark's writer.
    """

    def __init__(self, path: str, file_format: str, options: dict[str, str]) -> None:
        self._path = path.rstrip("/")
        self._stage = f"{_STAGE}{uuid.uuid4().hex[:8]}"  # another run may be dying, and still at work
        self._format = file_format
        self._options = options
        self._folder: OutputFolder | None = None
        self._is_quiet = False

    @property
    def may_hold_leftovers(self) -> bool:
        """Whether this run has written nothing yet, so that what the one before left half done may be there."""
        return self._folder is None

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
        folder = self._folder or _folder_of(rows.sparkSession, self._path)
        prefix = _prefix(batch_id)
        written = {name: match for name in folder.names(self._stage) if (match := _WRITTEN.fullmatch(name))}
        # Spark writes a file of the first task in any case.
        kept = {name: match["ending"] or "" for name, match in written.items() if int(match["task"]) in filled}
        if filled - {int(match["task"]) for match in written.values()}:
            raise StateError(f"another run of this job writes to {self._path}; {ONE_RUN_ONLY}")
        names = {f"{self._stage}/{name}": f"{prefix}{n:05d}{ending}" for n, (name, ending) in enumerate(kept.items())}
        if self.may_hold_leftovers:
            self._delete_leftovers(folder, prefix, {*names.values()})
        try:
            for there, here in names.items():
                folder.move(there, here, may_replace=self.may_hold_leftovers)
        except (FileNotFoundError, FileExistsError) as error:
            raise StateError(f"another run of this job writes to {self._path}: {error}; {ONE_RUN_ONLY}") from error
        folder.delete_folder(self._stage)
        self._folder = folder
        return len(names)

    def _delete_leftovers(self, folder: OutputFolder, prefix: str, names: set[str]) -> None:
        """Delete what a run that was killed has left: only in this micro-batch it can have been at work."""
        for name in folder.names():
            if name.startswith(prefix) and name not in names:
                folder.delete(name)
        for name in folder.folders():
            if name.startswith(_STAGE) and name != self._stage:
                folder.delete_folder(name)

    def _write_out_of_sight(self, rows: DataFrame) -> set[int]:
        """Write all rows in one Spark job; return the numbers of the tasks that had any."""
        observation = Observation()
        numbered = rows.withColumn(_TASK, F.spark_partition_id())
        observed = numbered.observe(observation, F.collect_set(_TASK).alias("tasks")).drop(_TASK)
        options = _WHERE_NOBODY_LOOKS | self._options
        observed.write.format(self._format).options(**options).mode("overwrite").save(f"{self._path}/{self._stage}")
        return set(observation.get["tasks"])


def has_files_of(path: str, batch_id: int) -> bool:
    """Whether a directory of a file sink, whose location says its scheme, has anything of a micro-batch.

    Raises:
        ProgramError: if Arrow cannot open it.
    """
    return any(name.startswith(_prefix(batch_id)) for name in OutputFolder(*opened(path)).names())


def _prefix(batch_id: int) -> str:
    return f"part-{batch_id:08d}-"


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A directory of files as Arrow sees it.

    A run that was thought dead may still be at work, with a younger run that writes there. So nothing is deleted that
    may be the only copy: a file is replaced by moving another one to its name, and stays where that fails.
    """

    file_system: FileSystem
    path: str

    def names(self, below: str = "") -> list[str]:
        """The names of the files in it, or in a directory below; none where there is no such directory."""
        return sorted(info.base_name for info in self._infos(below) if info.is_file)

    def folders(self) -> list[str]:
        """The names of the directories in it."""
        return sorted(info.base_name for info in self._infos() if not info.is_file)

    def _infos(self, below: str = "") -> list[FileInfo]:
        from pyarrow.fs import FileSelector

        selector = FileSelector(f"{self.path}/{below}".rstrip("/"), allow_not_found=True)
        infos: list[FileInfo] = self.file_system.get_file_info(selector)
        return infos

    def move(self, there: str, here: str, *, may_replace: bool) -> None:
        """Give a file another name.

        Args:
            there: the name that it has.
            here: the name that it gets.
            may_replace: whether a file that has the name already is replaced: one that an earlier run has left.

        Raises:
            FileNotFoundError: if the file is gone; what has the other name stays.
            FileExistsError: if another file has the name and is not to be replaced.
        """
        if not may_replace and self._is_file(here):
            raise FileExistsError(f"this run has not written {here}, which is there")
        try:
            self._rename(there, here)
        except OSError as error:
            if not self._is_file(there):
                raise FileNotFoundError(f"{there} has been deleted") from error
            if not may_replace or not self._is_file(here):
                raise
            self._rename_over(there, here)

    def _rename_over(self, there: str, here: str) -> None:
        """Replace a file on a store that does not do so itself; the one before stays until the other is there."""
        aside = f"{there}-before"
        self._rename(here, aside)
        try:
            self._rename(there, here)
        except OSError:
            self._rename(aside, here)
            raise
        self.delete(aside)

    def _rename(self, there: str, here: str) -> None:
        self.file_system.move(f"{self.path}/{there}", f"{self.path}/{here}")

    def _is_file(self, name: str) -> bool:
        return bool(self.file_system.get_file_info(f"{self.path}/{name}").is_file)

    def delete(self, name: str) -> None:
        """Delete a file."""
        self.file_system.delete_file(f"{self.path}/{name}")

    def delete_folder(self, name: str) -> None:
        """Delete a directory with all that is in it."""
        self.file_system.delete_dir(f"{self.path}/{name}")


def _folder_of(spark: SparkSession, path: str) -> OutputFolder:
    """A directory on the file system on which Spark has it: paths may be without a scheme.

    Raises:
        ProgramError: if Arrow cannot open that.
    """
    try:
        return OutputFolder(*opened(resolved(spark, path)))
    except ProgramError as error:
        raise ProgramError(
            f"a file sink writes to {path}, and Arrow has to move its files when they are complete: {error}. Write "
            "with sink_to(function) there, which gets a DataFrame and the number of its micro-batch"
        ) from error
