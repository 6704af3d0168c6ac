"""Spark Connect: whether sessions are of that kind, what is asked where their server runs, and results from there.

The server has a file system, an interpreter and a working folder of its own. What lies there is not opened here: a
small Spark task does it.

A query ends in a process of the server's, and the program is elsewhere. So a micro-batch leaves what is printed or
collected in a file beside the checkpoint, before it is committed; the program takes what is committed, and has it
deleted. A file that was not taken is kept for the next run of the program.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, is_remote

from eventide import __version__
from eventide.errors import LeftElementsWarning, ProgramError, StateError
from eventide.pickling.pickles import dumps, loads, register
from eventide.plan.job import SinkSpec
from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.exchange.frames import Frame
from eventide.spark.failures import FENCED, in_our_words, is_of_a_gone_server
from eventide.spark.sinks.program_sinks import Collected, ProgramSinks, Stopped
from eventide.storage import Folder

T = TypeVar("T")

_ANSWER = "answer BINARY"
_NOT_THERE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def over_connect() -> bool:
    """Whether this process is a client of Spark Connect; then all its sessions are."""
    return bool(is_remote())


def refuse_over_connect(what: str) -> None:
    """Refuse what only works where Spark is in the program's own process.

    Raises:
        ProgramError: over Spark Connect.
    """
    if over_connect():
        raise ProgramError(
            f"{what} brings nothing to a server of Spark Connect, which is another process with a Python of its own: "
            f"install what the program needs where the server runs, or start the server with it on its PYTHONPATH "
            f"(PYSPARK_PYTHON says which Python it uses)"
        )


def check_server(spark: SparkSession) -> None:
    """See whether the server can run a job.

    Raises:
        ProgramError: if its Python has no eventide, or another version than this process.
    """
    version = ask(spark, _version)
    if version != __version__:
        raise ProgramError(
            f"the server of this Spark Connect session has eventide {version}, and the program eventide {__version__}; "
            "a job needs the same on both sides"
        )


def _version() -> str:
    return __version__


def ask(spark: SparkSession, question: Callable[[], T], classes: Iterable[type] = ()) -> T:
    """Call a function in one task of Spark's, and return what it returns there.

    Args:
        spark: the session.
        question: any function that pickles, as does what it returns.
        classes: those of eventide's own of what it returns.

    Raises:
        EventideError: the error of the function, where it raised one.
        ProgramError: if the server's Python has no module of the function's.
    """

    def answer() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"answer": pa.array([dumps(question())], pa.binary())})

    [said] = ask_for_rows(spark, answer, _ANSWER).column("answer")
    register(classes)
    answered: T = loads(said.as_py())
    return answered


def there(spark: SparkSession, call: Callable[[], T], classes: Iterable[type] = ()) -> T:
    """Call a function where Spark is: in this process, or over Spark Connect at the server, as :func:`ask` does."""
    return ask(spark, call, classes) if over_connect() else call()


def ask_for_rows(spark: SparkSession, question: Callable[[], Iterable[pa.RecordBatch]], schema: str) -> pa.Table:
    """Ask a function that gives record batches, of which there may be many."""

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from question()

    with in_our_words():
        try:
            return spark.range(0, 1, 1, 1).mapInArrow(answer, schema).toArrow()
        except PySparkException as error:
            if (missing := _NOT_THERE.search(str(error))) is None:
                raise
            raise ProgramError(
                f"the Python of the Spark Connect server has no module {missing[1]!r}: install the same packages there "
                "as here, including eventide, or start the server with PYSPARK_PYTHON and PYTHONPATH that point to them"
            ) from error


PLACE = "eventide-results"
"""The folder of the results, below the checkpoint."""

ROWS = "batch LONG, sink STRING, frame BINARY"
_ROWS = pa.schema([("batch", pa.int64()), ("sink", pa.string()), ("frame", pa.binary())])
_RUN = "run"
_TAKEN, _ENDED = "taken-", "ended-"
MOST_WAITING = 8
_LOOK_AGAIN_S = 0.05


def sink_key(sink: SinkSpec) -> str:
    """Key of a sink's results, in this run of the program and the next."""
    return f"{sink.uid or sink.number} {sink.name} of {sink.type_info}"


class ResultFiles:
    """The files of one checkpoint.

    Beside a file for each micro-batch, one says which run of the program takes them, and up to which micro-batch the
    program has all: a run that was thought dead may still leave something of an earlier one. Other files, of each run,
    say how far that has come, and that it has ended. It is picklable: each method is called where the files are.

    Args:
        location: the checkpoint's directory.
    """

    def __init__(self, location: str) -> None:
        self._location = location

    @cached_property
    def _folder(self) -> Folder:
        """The folder of these files.

        Raises:
            ProgramError: if Arrow cannot open it.
        """
        return Folder(
            f"{self._location.rstrip('/')}/{PLACE}",
            "delete it, and do without the elements that it has, if it has any",
        )

    def begin(self, run: str) -> None:
        """Say which run of the program takes what is there, and has nothing of it yet."""
        before = [name for name in self._folder.names() if name.startswith((_TAKEN, _ENDED))]
        done = max([self._taker()[1], *(self._taken(name)[1] for name in before if name.startswith(_TAKEN))])
        self._folder.write(_RUN, json.dumps([run, done]).encode())
        for name in before:
            self._folder.delete(name)

    def end(self, run: str) -> None:
        """Say that a run takes nothing any more, in a file of its own: another one may begin at the same time."""
        self._folder.write(f"{_ENDED}{run}", b"")

    def is_taken_by(self, run: str) -> bool:
        """Whether a run takes the results."""
        return self._taker()[0] == run and f"{_ENDED}{run}" not in self._folder.names()

    def waiting(self) -> list[int]:
        """The micro-batches that the run has not taken, of those that wait."""
        run, done = self._taker()
        taken = max(done, self._taken(f"{_TAKEN}{run}")[0])
        return [batch for batch in self.batches() if batch > taken]

    def _taker(self) -> tuple[str, int]:
        """The run that takes, the empty text if none does, and the micro-batch up to which the program has all."""
        with suppress(FileNotFoundError):
            return self._folder.read(_RUN, _taker_of)
        return "", -1

    def _taken(self, name: str) -> tuple[int, int]:
        """The micro-batches up to which the run of a file has taken all, and up to which its program has all."""
        with suppress(FileNotFoundError):
            return self._folder.read(name, _taken_of)
        return -1, -1

    def batches(self) -> list[int]:
        """The micro-batches that wait."""
        return [int(name) for name in self._folder.names() if name.isdigit()]

    def write(self, batch: int, rows: pa.Table) -> None:
        """Leave what a micro-batch has; the same again if it is run again."""
        self._folder.write(_name(batch), encode_table(rows))

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
            StateError: if it is another run that takes them, or one of them is damaged.
        """
        if not self.is_taken_by(run):
            raise StateError(FENCED)
        done = max(done, self._taker()[1])
        for batch in self.batches():
            if batch <= done:
                self.delete(batch)
            elif taken < batch <= committed:
                yield from self._folder.read(_name(batch), decode_table).to_batches()
        self._folder.write(f"{_TAKEN}{run}", json.dumps([max(taken, committed), done]).encode())


def _taker_of(content: bytes) -> tuple[str, int]:
    """The content of the file that says which run takes; an earlier version wrote the run alone, as it is."""
    if not content.startswith(b"["):
        return content.decode(), -1
    run, done = json.loads(content)
    return str(run), int(done)


def _taken_of(content: bytes) -> tuple[int, int]:
    """The content of a run's file; an earlier version did not say up to where the program has all."""
    found = json.loads(content)
    taken, done = found if isinstance(found, list) else (found, -1)
    return int(taken), int(done)


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
        self._results = ResultFiles(location)
        self._run = run
        self._keys = {sink.number: sink_key(sink) for sink in sinks}
        self._has_left = False

    def __call__(self, frames: DataFrame, batch_id: int) -> None:
        """Leave what is there for the program; all frames are read, whatever is there of them."""
        found = frames.select("target", "frame").toArrow()
        mine = found.filter(pc.is_in(found["target"], pa.array([*self._keys], pa.int32())))
        if mine.num_rows:
            keys = [self._keys[target] for target in mine["target"].to_pylist()]
            batches = pa.array([batch_id] * len(keys), pa.int64())
            rows = pa.Table.from_arrays([batches, pa.array(keys), mine["frame"]], schema=_ROWS)
            self._wait_for_room()
            self._results.write(batch_id, rows)
        elif not self._has_left:
            self._results.delete(batch_id)  # the run before may have left something, with other functions
        self._has_left = True

    def _wait_for_room(self) -> None:
        server = os.getppid()
        while len(self._results.waiting()) >= MOST_WAITING and self._results.is_taken_by(self._run):
            if os.getppid() != server:
                raise StateError(
                    "the server of Spark Connect that this process belongs to is gone; start it, and the job again"
                )
            time.sleep(_LOOK_AGAIN_S)


def _name(batch: int) -> str:
    return f"{batch:020}"


_MOST_UNDELETED = 4
"""Most finished micro-batches that wait to be deleted together."""
_LOOK_S = 0.1
"""Seconds between two looks at how far the program has come."""


class ResultConsumer:
    """Takes the results of a job, each micro-batch once it is committed, in a thread of its own.

    They are deleted at the server when the program has all elements of their micro-batch, and not when they are in this
    process: results that a killed program had not read are kept for its next run.

    Args:
        spark: the session.
        location: the checkpoint's directory.
        run: the run of the program.
        sinks: where the elements go; there may be none.
        collected: where those of them wait that the program takes when it likes.
        last_committed: says which micro-batch was committed last.
    """

    def __init__(
        self,
        spark: SparkSession,
        location: str,
        run: str,
        sinks: ProgramSinks,
        collected: Collected,
        last_committed: Callable[[], int],
    ) -> None:
        self._spark = spark
        self._location = location
        self._results = ResultFiles(location)
        self._run_id = run
        self._sinks = sinks
        self._collected = collected
        self._last_committed = last_committed
        self._numbers = {sink_key(spec): number for number, spec in sinks.specs.items()}
        self._committed = -1
        self._taken = -1
        self._done = -1
        self._undeleted: deque[tuple[int, int]] = deque()
        self._has_ended = False
        self._is_closed = False
        self._may_ask = True
        self._changed = threading.Condition()
        self.failure: BaseException | None = None
        ask(spark, partial(self._results.begin, run))
        self._thread = threading.Thread(target=self._run, name=f"eventide takes from {location}", daemon=True)

    def start(self) -> None:
        """Begin to take results, once the query has been started, with those that are committed then.

        What the run before has left is among it: over Spark Connect that may have gone on until then.
        """
        if not self._numbers:
            if ask(self._spark, self._results.batches):
                self._warn_of_left("sinks that it does not have any more")
            return
        self.committed(self._last_committed())
        self._thread.start()

    def committed(self, batch: int) -> None:
        """Say that a micro-batch has been committed."""
        with self._changed:
            self._committed = max(self._committed, batch)
            self._changed.notify_all()

    def release(self) -> None:
        """Take no more results, and let the query go on without waiting; the rest is there for the next run."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._changed.notify_all()
        # Where all cores are busy it is heard when the query is stopped, and the caller may wait for the end of the
        # query.
        threading.Thread(target=self._let_go, daemon=True).start()

    def _let_go(self) -> None:
        with suppress(Exception):  # with a session that is closed, or a server that is gone, no query waits
            ask(self._spark, partial(self._results.end, self._run_id))

    def finish(self, failure: BaseException | None = None) -> BaseException | None:
        """Take the rest; the query has ended, with Spark's report of a failure if there was one.

        Nothing is taken from a server that is gone: PySpark would ask it for ten minutes, whatever the limit. Returns
        what went wrong.
        """
        if failure is not None and is_of_a_gone_server(failure):
            self._is_closed, self._may_ask = True, False
        of_rest = self._take_the_rest() if self._thread.ident is not None else None
        if (self.failure or of_rest) is None and self._is_another_run_there():
            of_rest = StateError(FENCED)
        self.failure = self.failure or of_rest
        return self.failure

    def _take_the_rest(self) -> BaseException | None:
        """Take what is committed; the progress of a query may not have told of all. Returns why that is not known."""
        failure = None
        try:
            if not self._is_closed:
                self.committed(self._last_committed())
        except Exception as error:
            failure = error
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
        self._thread.join()
        return failure

    def settle(self) -> None:
        """Ask the server to delete results that the program has received, when it has received all of them."""
        with suppress(Exception):  # it comes once more, then
            if self._may_ask and self._all_done():
                self._ask(committed=-1)

    def _is_another_run_there(self) -> bool:
        """Whether the query has ended because another run has begun: Spark then stops it without a word."""
        with suppress(Exception):  # of a session that is closed, or a server that is gone, something else will tell
            return not self._is_closed and not ask(self._spark, partial(self._results.is_taken_by, self._run_id))
        return False

    def _run(self) -> None:
        try:
            while self._wait():
                self._take()
            self.settle()
        except Stopped:
            self.release()
        except BaseException as error:
            if not self._is_closed:  # else it has said itself that it takes nothing any more
                self.failure = error
            self.release()

    def _wait(self) -> bool:
        """Wait until there may be something to take; False when there will not."""
        with self._changed:
            while not (self._is_closed or self._has_ended or self._has_to_ask):
                self._changed.wait(_LOOK_S if self._undeleted else None)
            return not self._is_closed and self._has_to_ask

    @property
    def _has_to_ask(self) -> bool:
        return self._committed > self._taken or self._all_done() >= _MOST_UNDELETED

    def _all_done(self) -> int:
        """How many micro-batches may be deleted, as the program has all that they had."""
        has = self._collected.taken
        return sum(given <= has for _, given in self._undeleted)

    def _ask(self, committed: int) -> list[dict[str, Any]]:
        """Ask the server to delete results that may go, and take the new ones in the order of micro-batches."""
        for _ in range(self._all_done()):
            self._done, _ = self._undeleted.popleft()
        question = partial(self._results.take, self._run_id, self._done, self._taken, committed)
        return sorted(ask_for_rows(self._spark, question, ROWS).to_pylist(), key=itemgetter("batch"))

    def _take(self) -> None:
        committed = self._committed
        for batch, of_batch in groupby(self._ask(committed), key=itemgetter("batch")):
            self._sinks.receive(batch, self._frames(of_batch))
            if self._is_closed:
                break
            self._taken = batch
            self._undeleted.append((batch, self._collected.given))
        else:
            self._taken = max(self._taken, committed)

    def _frames(self, rows: Iterable[dict[str, Any]]) -> list[Frame]:
        known = [(self._numbers.get(row["sink"]), row) for row in rows]
        for sink in {row["sink"] for number, row in known if number is None}:
            self._warn_of_left(f"the sink {sink!r}, which the program no longer has")
        return [Frame.from_bytes(number, 0, row["frame"]) for number, row in known if number is not None]

    def _warn_of_left(self, what: str) -> None:
        warnings.warn(
            f"an earlier run of the job in {self._location} left elements for {what}, so they are never read",
            LeftElementsWarning,
            stacklevel=1,
        )
