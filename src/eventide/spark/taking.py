"""The side of the program over Spark Connect: it takes what committed micro-batches have left for it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from pyspark.sql import SparkSession

from eventide.errors import LeftElementsWarning
from eventide.runtime.exchange.frames import Frame
from eventide.spark.collected import Stopped
from eventide.spark.connect import ask, ask_for_rows
from eventide.spark.program_sinks import ProgramSinks
from eventide.spark.results import MOST_WAITING, ROWS, begin, sink_key, take

_MOST_UNDELETED = MOST_WAITING // 2
"""The query must not wait for what has been taken."""


class Taking:
    """Takes the results of a job, each micro-batch once it is committed, in a thread of its own.

    Args:
        spark: the session.
        location: the checkpoint's directory.
        run: the run of the program.
        sinks: where the elements go.
    """

    def __init__(self, spark: SparkSession, location: str, run: str, sinks: ProgramSinks) -> None:
        self._spark = spark
        self._location = location
        self._sinks = sinks
        self._numbers = {sink_key(spec): number for number, spec in sinks.specs.items()}
        self._committed = -1
        self._taken = -1
        self._undeleted = 0
        self._has_ended = False
        self._is_closed = False
        self._changed = threading.Condition()
        self.failure: BaseException | None = None
        ask(spark, partial(begin, location, run))
        self._thread = threading.Thread(target=self._run, name=f"eventide takes from {location}", daemon=True)

    def start(self, committed: int) -> None:
        """Begin to take, given what has been committed when the query has been started.

        What the run before has left is among it: over Spark Connect that may have gone on until then.
        """
        self.committed(committed)
        self._thread.start()

    def committed(self, batch: int) -> None:
        """Say that a micro-batch has been committed."""
        with self._changed:
            self._committed = max(self._committed, batch)
            self._changed.notify_all()

    def release(self) -> None:
        """Take nothing any more, and let the query not wait for it; what is left is there for the next run."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._changed.notify_all()
        # Where all cores are busy it is heard when the query is stopped, for whose end its caller may wait.
        threading.Thread(target=self._let_go, daemon=True).start()

    def _let_go(self) -> None:
        with suppress(Exception):  # with a session that is closed, or a server that is gone, no query waits
            ask(self._spark, partial(begin, self._location, ""))

    def finish(self) -> BaseException | None:
        """Take the rest; the query has ended. Returns what went wrong."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()
        return self.failure

    def _run(self) -> None:
        try:
            while self._wait():
                self._take()
            if self._undeleted:
                ask_for_rows(self._spark, partial(take, self._location, self._taken, -1), ROWS)
        except Stopped:
            self.release()
        except BaseException as error:
            self.failure = error
            self.release()

    def _wait(self) -> bool:
        """Wait until there may be something to take; False when there will not."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has_ended or self._has_to_ask)
            return not self._is_closed and self._has_to_ask

    @property
    def _has_to_ask(self) -> bool:
        return self._committed > self._taken or self._undeleted >= _MOST_UNDELETED

    def _take(self) -> None:
        """Have deleted what was taken before, and take what there is."""
        committed = self._committed
        rows = ask_for_rows(self._spark, partial(take, self._location, self._taken, committed), ROWS).to_pylist()
        self._undeleted = 0
        for batch, of_batch in groupby(sorted(rows, key=itemgetter("batch")), key=itemgetter("batch")):
            self._sinks.receive(batch, self._frames(of_batch))
            if self._is_closed:
                break
            self._taken = batch
            self._undeleted += 1
        else:
            self._taken = committed

    def _frames(self, rows: Iterable[dict[str, Any]]) -> list[Frame]:
        known = [(self._numbers.get(row["sink"]), row) for row in rows]
        for sink in {row["sink"] for number, row in known if number is None}:
            warnings.warn(
                f"an earlier run of the job in {self._location} left elements for the sink {sink!r}, which the program "
                "no longer has, so nobody gets them",
                LeftElementsWarning,
                stacklevel=1,
            )
        return [Frame.from_bytes(number, 0, row["frame"]) for number, row in known if number is not None]
