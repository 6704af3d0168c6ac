"""The one base class of sources: splits, positions, and reading from one position to another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from eventide.common.type_variables import T_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Beginning", "Counted", "IDLE", "PartRange", "SideOutput", "Source", "TimestampedBatch", "Unreadable"]

_K = TypeVar("_K", bound=Hashable)


class _Idle(Enum):
    IDLE = "idle"

    def __repr__(self) -> str:
        return "IDLE"


IDLE = _Idle.IDLE
"""Item of :meth:`Source.read` that says that its split has nothing to say for now: if nothing follows in the same
micro-batch, it no longer holds the watermark back, until its next watermark."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Item of :meth:`Source.read` with the source's counts: readings of metrics, as JSON values."""

    by_name: Mapping[str, list[Any]]


@dataclass(frozen=True, slots=True)
class TimestampedBatch:
    """Item of :meth:`Source.read`: the elements of a record batch, each with its timestamp.

    ``timestamps`` is a column of whole milliseconds, as long as ``rows``. See ``TimestampedValue`` for one element.
    """

    rows: pa.RecordBatch
    timestamps: pa.Array


@dataclass(frozen=True, slots=True)
class SideOutput:
    """Item of :meth:`Source.read`: an element, with its timestamp, of one of :meth:`Source.side_outputs`."""

    tag_id: str
    value: object
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Item of :meth:`Source.read`: something that is there, and cannot be read.

    The job stops with its error. Where the program wants dead letters of the source, it becomes one, and the job goes
    on.

    Attributes:
        error: why it cannot be read; where the job stops, this is what it says.
        raw: the data, as bytes or text.
        split: the partition, file or the like that it is in.
        position: where it is there, such as its offset or the number of its row.
        key: its key, where it has one.
        timestamp: its event time in milliseconds, where that is known.
    """

    error: Exception
    raw: object
    split: str | None = None
    position: int | None = None
    key: object = None
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class PartRange:
    """Range of one part that is read: from position ``start`` up to, not including, ``end``."""

    part: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Beginning:
    """Facts about a part that are found out when it is first seen, and then are in the checkpoint.

    Attributes:
        start: the position that it is read from.
        stop: the position that it ends at, whatever comes after it; None where :meth:`Source.has_ended` says it.
        identity: a text that tells it from a later one of its name, such as the id of a topic; None where a
            name is used once. :meth:`Source.resume` is told of it.
    """

    start: int
    stop: int | None = None
    identity: str | None = None


class Source(ABC, Generic[T_co]):
    """A source made of splits, each a sequence of elements with positions.

    A split has an order and a pace of its own: a partition of a topic, a file, a device. Every source written
    on this class gets a watermark per split, has all of its splits known from the start, is replayed exactly after a
    failure, and takes a limit of rows per micro-batch.

    A position is an integer: how many elements of the split come before it. The elements between two positions must
    always be the same. The object travels to the workers, so it must pickle; ``splits`` and ``latest_position`` are
    called on the driver, ``read`` on the workers.

    A split may be made of *parts* that are read one after the other, such as the files of one device. Then
    :meth:`parts` and :meth:`split_of` say which, and positions are those of parts. By default, a split is its own only
    part.

    Flink: ``Source`` with its ``SplitEnumerator`` and ``SourceReader``, in one class without threads.

    >>> class Letters(Source):
    ...     def splits(self):
    ...         return ["upper", "lower"]
    ...     def latest_position(self, split):
    ...         return 26
    ...     def read(self, split, start, end):
    ...         first = ord("A") if split == "upper" else ord("a")
    ...         yield from (chr(first + i) for i in range(start, end))
    >>> list(Letters().read("upper", 0, 3))
    ['A', 'B', 'C']
    """

    @abstractmethod
    def splits(self) -> list[str]:
        """The names of the splits that are there: from the start of the job, each holds the watermark until it speaks.

        Asked again before every micro-batch, so that new ones may appear; :meth:`holds_when_new` says from when on
        those count. One that is not named any more is gone: it ends, and holds no other.
        """

    def parts(self, known: Mapping[str, int | None]) -> list[str]:
        """The names of the parts that have positions: by default, the splits.

        A part that is not named any more is gone, and forgotten: its split ends with its last part, and a part that had
        not been read to its end is counted (``numPartsLost``).

        Args:
            known: the splits that the job has heard of, with their positions, or None where they have ended. Empty at
                the start.

        Raises:
            ProgramError: if there are no splits, because such a stream would never end nor say anything.
        """
        splits = self.splits()
        if not splits:
            raise ProgramError(f"the source {self!r} has no splits; splits() must name at least one")
        return splits

    def following(self, parts: Collection[str]) -> list[str]:
        """The names of the parts that follow when these, which are all that there are, have ended; by default, none.

        They appear in the micro-batch in which the last of these ends, so that the source is not over.
        """
        return []

    def split_of(self, part: str) -> str:
        """The split that a part belongs to. Of several that are new, the parts of a split are read in order of name."""
        return part

    @abstractmethod
    def latest_position(self, split: str) -> int:
        """The position after the last element that is there now."""

    @abstractmethod
    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        """The elements of a split from position ``start`` up to, not including, ``end``.

        Yields elements, or ``pyarrow.RecordBatch`` objects whose rows are elements of the type that
        :meth:`get_produced_type` declares: columns are found by the names of its fields, or by their places if they
        have none of these names. A source that knows about event time may also yield a ``TimestampedValue``,
        which is an element with its timestamp, or a :class:`TimestampedBatch`; a ``Watermark``, which holds from its
        place in the split on; and :data:`IDLE`. A strategy after the source takes the place of its timestamps and
        watermarks. Data that cannot be read come as an :class:`Unreadable`; an error that is raised stops the job.
        """

    def sorting_out(self) -> Source[T_co]:
        """A copy of the source for a program that wants its dead letters.

        Asked of sources that read many elements at once, so that it costs something to find a bad one among them; by
        default, it is no other.
        """
        return self

    def reads_together(self) -> bool:
        """Whether a task reads all that it has to read with one :meth:`read_together`; by default, split by split.

        For sources that wait for each of their splits, so that it is better to wait for all of them at once.
        """
        return False

    def read_together(self, ranges: Sequence[PartRange]) -> Iterator[tuple[str, Iterable[Any]]]:
        """The elements of several ranges, in runs: a part, and what :meth:`read` would yield for some way on.

        Runs of different parts may follow each other in any order, those of one part come in the order of positions.
        """
        for way in ranges:
            yield way.part, self.read(way.part, way.start, way.end)

    def initial_position(self, split: str) -> int:
        """Where a split is read from. Asked once, when it is first seen: from then on the checkpoint has the answer."""
        return 0

    def beginnings(self, parts: Sequence[str]) -> dict[str, Beginning]:
        """Where parts that are first seen are read from, and where they stop; the checkpoint keeps the answers.

        By default, each starts at its :meth:`initial_position`, and ends where :meth:`has_ended` says.
        """
        return {part: Beginning(self.initial_position(part)) for part in parts}

    def resume(self, identities: Mapping[str, str]) -> None:
        """Hear which parts the job has read so far, by the identities that their beginnings had.

        Called once in a run, before anything else is planned. A source whose part is not what it was raises a
        ``StateError``: its positions mean nothing in what has taken its name.
        """

    def holds_when_new(self) -> bool:
        """Whether a split that appears while the job runs holds the watermark from then on, as those of the start do.

        Otherwise it counts from when it first speaks.
        """
        return True

    def joining(self, splits: Collection[str]) -> set[str]:
        """The splits that hold the watermark, of some that appear while the job runs: all of them, or none."""
        return set(splits) if self.holds_when_new() else set()

    def is_bounded(self) -> bool:
        """Whether the input ends: each split at its latest position, and with the last one all windows close."""
        return True

    def may_end(self) -> bool:
        """Whether the source is over when all of its parts have ended; one that is not bounded may find that out."""
        return self.is_bounded()

    def may_grow(self, split: str) -> bool:
        """Whether one more part of a split may appear; by default, unless the input ends."""
        return not self.is_bounded()

    def get_produced_type(self) -> TypeInformation[T_co]:
        """The type of the elements; undeclared ones travel pickled."""
        return Types.PICKLED_BYTE_ARRAY()

    def side_outputs(self) -> Mapping[str, TypeInformation]:
        """The types of the values that it yields beside its elements, as :class:`SideOutput`, by the ids of their tags.

        ``get_side_output`` of the source's stream gives them. They have no watermarks until a strategy gives them.
        """
        return {}

    def gives_timestamps(self) -> bool:
        """Whether it yields elements with timestamps, so that windows of event time need no assigner."""
        return False

    def gives_watermarks(self) -> bool:
        """Whether it may yield watermarks. If not, columns are aggregated before the shuffle."""
        return self.gives_timestamps()

    def active_by_elements(self) -> bool:
        """Whether what is idle counts again with its next element; splits do so with their next watermark alone."""
        return False

    def has_ended(self, split: str, position: int) -> bool:
        """Whether nothing will ever come after a position."""
        return self.is_bounded() and position >= self.latest_position(split)

    def latest_positions(self) -> dict[str, int]:
        """Where each part ends now: a run that handles what is there, and then stops, reads up to these."""
        return self.ends(self.parts({}))

    def ends(self, parts: Collection[str]) -> dict[str, int]:
        """The latest positions of some parts: with one question, where the source can ask for all of them at once."""
        return {part: self.latest_position(part) for part in parts}

    def with_columns(self, columns: Collection[str]) -> Source[T_co]:
        """A copy of the source for a program that uses only these columns; it may leave out others.

        Asked of sources whose elements are rows with names; columns that they do not have are passed over.
        """
        return self

    def for_job(
        self, operator: str, storage: str | None, job_parameters: Mapping[str, str] | None = None
    ) -> Source[T_co]:
        """A copy of the source for one job, before it travels.

        Args:
            operator: the name of its operator.
            storage: a place below the job's checkpoint, of its own, for what it must remember; None if the job's
                checkpoint is not known yet.
            job_parameters: the parameters that its functions may ask for.
        """
        return self

    def commit(self, positions: Mapping[str, int]) -> None:
        """Take note that the job has handled what lies before these positions; called where it is planned.

        The next micro-batch waits for it, so that it must not take long.
        """

    def wait(self, seconds: float) -> bool:
        """Wait for more, where the source itself brings it; False, at once, where there is nothing to wait for."""
        return False

    def positions_at(
        self, timestamp_ms: int, positions: Mapping[str, int], column: str | None = None
    ) -> dict[str, int] | None:
        """For each part, the position before its first element with a later timestamp; its end where there is none.

        With watermark alignment, all splits of a micro-batch then are planned to one time. Parts that the answer leaves
        out must not be begun yet.

        Args:
            timestamp_ms: milliseconds since the epoch (UTC).
            positions: the parts that have not been read to their end, and where they stand.
            column: the column that has the timestamps; None if they are those that the source itself gives.

        Returns:
            None, as by default, if the source cannot say.
        """
        return None

    def rows_between(self, part: str, start: int, end: int) -> int:
        """How many elements lie between two positions of a part; about as many, where that is not known."""
        return end - start

    def stop(self) -> None:
        """Let go of everything, because the job ends; called where it is planned."""

    def next_positions(self, positions: Mapping[str, int], max_rows: int | None) -> dict[str, int]:
        """Where the next micro-batch should end, given where each split stands.

        Without a limit, that is the latest position of each. A limit is shared: every split gets an equal part first,
        but at least one row, so that none starves; splits with fewer rows leave their rest to the others.
        """
        ends = self.ends(positions)
        left = {split: max(0, ends[split] - position) for split, position in positions.items()}
        taken = left if max_rows is None else shared_out(left, max_rows)
        return {split: position + taken[split] for split, position in positions.items()}


def shared_out(left: Mapping[_K, int], limit: int) -> dict[_K, int]:
    """Deal `limit` rows out to those that have rows left: equal parts, at least one each, no more than they have.

    >>> shared_out({"a": 9, "b": 1, "c": 0}, 4)
    {'a': 3, 'b': 1, 'c': 0}
    """
    taken = dict.fromkeys(left, 0)
    budget = max(limit, sum(1 for rows in left.values() if rows))
    while budget > 0 and (hungry := [name for name in left if taken[name] < left[name]]):
        share = max(1, budget // len(hungry))
        for name in hungry:
            more = min(share, left[name] - taken[name], budget)
            taken[name] += more
            budget -= more
    return taken
