"""Results of micro-batches for a program in another process: kept beside the checkpoint until they are taken.

Over Spark Connect a query ends in a process of the server's, and the program is elsewhere. So a micro-batch leaves what
is printed or collected in a file, before it is committed; the program takes what is committed, and has it deleted. A
file that was not taken is kept for the next run of the program.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from eventide.errors import StateError
from eventide.plan.job import SinkSpec
from eventide.spark.failures import FENCED
from eventide.storage.folder import Folder

PLACE = "eventide-results"
"""The folder of the results, below the checkpoint."""

ROWS = "batch LONG, sink STRING, frame BINARY"
_ROWS = pa.schema([("batch", pa.int64()), ("sink", pa.string()), ("frame", pa.binary())])
_RUN = "run"
_TAKEN = "taken-"
MOST_WAITING = 8
_LOOK_S = 0.05


def sink_key(sink: SinkSpec) -> str:
    """Key of a sink's results, in this run of the program and the next."""
    return f"{sink.uid or sink.number} {sink.name} of {sink.type_info}"


class Results:
    """The files of one checkpoint.

    Args:
        location: the checkpoint's directory.

    Raises:
        ProgramError: if Arrow cannot open it.
    """

    def __init__(self, location: str) -> None:
        self._folder = Folder(f"{location.rstrip('/')}/{PLACE}")

    def begin(self, run: str) -> None:
        """Say which run of the program takes what is there, and has nothing of it yet; none if it is the empty text."""
        before = [name for name in self._folder.names() if name.startswith(_TAKEN)]
        self._folder.write(_RUN, run.encode(), is_shared=True)
        for name in before:
            self._folder.delete(name)

    def end(self, run: str) -> None:
        """Say that a run takes nothing any more, unless another one does."""
        if self.is_taken_by(run):
            self.begin("")

    def is_taken_by(self, run: str) -> bool:
        """Whether it is this run."""
        return self._read(_RUN, "") == run

    def waiting(self) -> list[int]:
        """The micro-batches that the run has not taken, of those that wait."""
        taken = int(self._read(f"{_TAKEN}{self._read(_RUN, '')}", "-1"))
        return [batch for batch in self.batches() if batch > taken]

    def _read(self, name: str, otherwise: str) -> str:
        with suppress(FileNotFoundError):
            return self._folder.read(name).decode()
        return otherwise

    def batches(self) -> list[int]:
        """The micro-batches that wait."""
        return [int(name) for name in self._folder.names() if name.isdigit()]

    def write(self, batch: int, rows: pa.Table) -> None:
        """Leave what a micro-batch has; the same again if it is run again."""
        with pa.BufferOutputStream() as stream:
            with pa.ipc.new_stream(stream, _ROWS) as writing:
                writing.write_table(rows)
            self._folder.write(_name(batch), stream.getvalue().to_pybytes())

    def delete(self, batch: int) -> None:
        """Forget what a micro-batch has had."""
        self._folder.delete(_name(batch))

    def take(self, run: str, done: int, taken: int, committed: int) -> Iterator[pa.RecordBatch]:
        """Take micro-batches.

        Args:
            run: the run that takes them.
            done: the micro-batch up to which its program has all elements: they are deleted.
            taken: the one up to which it has been given them.
            committed: the one up to which they are committed: the elements of those after ``taken`` are given.

        Raises:
            StateError: if it is another run that takes them.
        """
        if not self.is_taken_by(run):
            raise StateError(FENCED)
        for batch in self.batches():
            if batch <= done:
                self.delete(batch)
            elif taken < batch <= committed:
                with pa.ipc.open_stream(self._folder.read(_name(batch))) as reading:
                    yield from reading
        self._folder.write(f"{_TAKEN}{run}", str(max(taken, committed)).encode(), is_shared=True)


class ResultSpool:
    """Leaves what each micro-batch has for a program elsewhere; called where micro-batches are delivered.

    It goes no more than some micro-batches further than the program's process takes; so a query waits for a program
    that is slow, or gone, until another run of it begins.

    Args:
        location: the checkpoint's directory.
        run: the run of the program.
        sinks: those whose elements come to the program.
    """

    def __init__(self, location: str, run: str, sinks: Iterable[SinkSpec]) -> None:
        self._location = location
        self._run = run
        self._keys = {sink.number: sink_key(sink) for sink in sinks}
        self._has_left = False

    def __call__(self, frames: DataFrame, batch_id: int) -> None:
        """Leave what is there for the program; all frames are read, whatever is there of them."""
        results = Results(self._location)
        found = frames.select("target", "frame").toArrow()
        mine = found.filter(pc.is_in(found["target"], pa.array([*self._keys], pa.int32())))
        if mine.num_rows:
            keys = [self._keys[target] for target in mine["target"].to_pylist()]
            batches = pa.array([batch_id] * len(keys), pa.int64())
            rows = pa.Table.from_arrays([batches, pa.array(keys), mine["frame"]], schema=_ROWS)
            self._wait_for_room(results)
            results.write(batch_id, rows)
        elif not self._has_left:
            results.delete(batch_id)  # the run before may have left something, with other functions
        self._has_left = True

    def _wait_for_room(self, results: Results) -> None:
        server = os.getppid()
        while len(results.waiting()) >= MOST_WAITING and results.is_taken_by(self._run):
            if os.getppid() != server:
                raise StateError("the server of Spark Connect that this process belongs to is gone")
            time.sleep(_LOOK_S)


def begin(location: str, run: str) -> None:
    """Say at the server which run of the program takes what is at a checkpoint."""
    Results(location).begin(run)


def end(location: str, run: str) -> None:
    """Say there that a run takes nothing any more."""
    Results(location).end(run)


def is_taken_by(location: str, run: str) -> bool:
    """Whether it is this run that takes what is there."""
    return Results(location).is_taken_by(run)


def left(location: str) -> list[int]:
    """The micro-batches that wait there."""
    return Results(location).batches()


def take(location: str, run: str, done: int, taken: int, committed: int) -> Iterator[pa.RecordBatch]:
    """Take there what is at a checkpoint."""
    return Results(location).take(run, done, taken, committed)


def _name(batch: int) -> str:
    return f"{batch:020}"
