"""Records that eventide keeps beside Spark's own checkpoint, each in a file of its own.

Where the checkpoint lies on the disk of Spark's driver, whose machine this is, they are read and written here. Anywhere
else Spark does it, which reaches every store that it has a checkpoint on, but takes 70 ms for each look and a second
for the first file that it writes.
"""

from __future__ import annotations

import uuid

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.common.checksum import json_with_checksum
from eventide.spark.checkpoint.files import CheckpointFiles, Record, record_of
from eventide.spark.connect import over_connect
from eventide.spark.session.locations import files_at, texts_at
from eventide.storage import Folder


def records_in(spark: SparkSession, location: str, folder: str) -> list[Record]:
    """The records in a folder of a checkpoint, in any order.

    Raises:
        StateError: if one is damaged.
    """
    files = _here(location)
    if files is not None:
        return files.records(folder)
    place = _place(location, folder)
    return [record_of(text, f"a record in {place}") for text in texts_at(spark, place)]


def append_record(spark: SparkSession, location: str, folder: str, record: Record) -> None:
    """Write one more record into a folder of a checkpoint."""
    text, place = json_with_checksum(record), _place(location, folder)
    if _here(location) is not None:
        Folder(place, has_checksums=False).write(f"part-{uuid.uuid4()}.txt", f"{text}\n".encode())
        return
    spark.range(0, 1, 1, 1).select(F.lit(text).alias("value")).write.mode("append").text(place)


def last_of(spark: SparkSession, location: str, log: str) -> int:
    """The number of the last micro-batch that one of Spark's logs, of plans or of commits, has; -1 if there is none."""
    files = _here(location)
    if files is not None:
        return max(files.numbered(log), default=-1)
    names = (file.rpartition("/")[2] for file in files_at(spark, _place(location, log)) or ())
    return max((int(name) for name in names if name.isdigit()), default=-1)


def has_folder(spark: SparkSession, location: str, folder: str) -> bool:
    """Whether a checkpoint has a folder of a name."""
    files = _here(location)
    return files_at(spark, _place(location, folder)) is not None if files is None else folder in files.folders()


def _here(location: str) -> CheckpointFiles | None:
    """The files of a checkpoint on the disk of Spark's driver, whose machine this is; None for any other."""
    return CheckpointFiles(location) if location.startswith("/") and not over_connect() else None


def _place(location: str, folder: str) -> str:
    return f"{location.rstrip('/')}/{folder}"
