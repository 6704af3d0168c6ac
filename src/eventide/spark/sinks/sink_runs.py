"""Runs of a job as its sinks see them: the present one, and those before it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.connectors.kafka.sink_writer import Mark, Run
from eventide.savepoint import Outline
from eventide.spark.checkpoint.records import KAFKA_PLACE
from eventide.spark.session.locations import texts


class SinkRun:
    """A run of a job, as its sinks see it: made before it starts, told of its checkpoint when that is known.

    It goes to where micro-batches are delivered, which over Spark Connect is another process; so it keeps no session.
    """

    def __init__(self) -> None:
        self._closing = ExitStack()
        self._location: str | None = None
        self._repeated: int | None = None
        self._begun: set[str] = set()
        self._savepoint: Mark | None = None
        self.checkpoint = ""

    def starts(
        self,
        spark: SparkSession,
        checkpoint: str,
        location: str | None = None,
        repeated: int | None = None,
        savepoint: Outline | None = None,
    ) -> None:
        """Say where the run starts from.

        Args:
            spark: the session.
            checkpoint: the id of the checkpoint.
            location: where it is; None if no run will go on with it.
            repeated: the number of the micro-batch that the run before began and did not finish.
            savepoint: what the job began with.
        """
        if savepoint is not None and savepoint.header.batch is not None and savepoint.header.checkpoint_id is not None:
            self._savepoint = Mark(savepoint.header.batch + 1, savepoint.header.checkpoint_id)
        self.checkpoint, self._location, self._repeated = checkpoint, location, repeated
        there = None if location is None else texts(spark, self._path(location))
        self._begun = {json.loads(row.value)["group"] for row in there.collect()} if there is not None else set()

    def run_of(self, group: str) -> Run:
        """The run, as the sink with a group sees it."""
        return Run(self.checkpoint, self._repeated, group in self._begun, self._savepoint)

    def has_begun(self, group: str) -> bool:
        """Whether the checkpoint knows that a group's sink has left a mark in Kafka; true if no later run will ask."""
        return self._location is None or group in self._begun

    def begin(self, spark: SparkSession, group: str) -> None:
        """Write into the checkpoint, by a session, that the sink with a group has left a mark in Kafka."""
        if self._location is not None:
            text = json.dumps({"group": group})
            rows = spark.range(0, 1, 1, 1).select(F.lit(text).alias("value"))
            rows.write.mode("append").text(self._path(self._location))
        self._begun.add(group)

    def at_end(self, close: Callable[[], object]) -> None:
        """Have something called when the run is over."""
        self._closing.callback(close)

    def close(self) -> None:
        """Say that the run is over."""
        self._closing.close()

    @staticmethod
    def _path(location: str) -> str:
        return f"{location.rstrip('/')}/{KAFKA_PLACE}"
