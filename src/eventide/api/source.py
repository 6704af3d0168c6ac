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
"""Item of :meth:`Source.read` that says that its split is idle: if nothing follows in the same
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
    """Item of :meth:`Source.read`: data that cannot be read.

    The job stops with its error. If the program asks for dead letters of the source, it becomes one, and the job
    continues.

    Attributes:
        error: why it cannot be read; the job stops with this error.
        raw: the data, as bytes or text.
        split: the partition, file or the like that it is in.
        position: its place in the split, such as its offset or the number of its row.
        key: its key, if it has one.
        timestamp: its event time in milliseconds, if it is known.
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
    """Facts about a part that are found when it is first seen, and are then kept in the checkpoint.

    Attributes:
        start: the position that it is read from.
        stop: the position that it ends at, even if more data follow; None if :meth:`Source.has_ended` decides it.
        identity: a text that distinguishes it from a later part of the same name, such as the id of a topic; None if
            names are not reused. :meth:`Source.resume` gets it.
    """

    start: int
    stop: int | None = None
    identity: str | None = None


_SEEN = "_seen_ends"
"""The attribute of a source that has the ends of parts which the micro-batch that is being planned has asked for."""


class Source(ABC, Generic[T_co]):
    """A source made of splits, each a sequence of elements with positions.

    A split has its own order and pace: a partition of a topic, a file, a device. Every source of this class has a
    watermark per split, knows all of its splits from the start, is replayed exactly after a failure, and accepts a
    limit of rows per micro-batch.

    A position is an integer: how many elements of the split come before it. The elements between two positions must
    always be the same. The object travels to the workers, so it must pickle; ``splits`` and ``latest_position`` are
    called on the driver, ``read`` on the workers.

    A split may be made of *parts* that are read one after the other, such as the files of one device. Then
    :meth:`parts` and :meth:`split_of` name them, and positions are those of parts. By default, a split is its own only
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
        """The names of the present splits: each holds the watermark from the start of the job until it has one.

        Called again before every micro-batch, so that new splits may appear; :meth:`holds_when_new` says from when on
        those count. A split that is no longer named ends, and does not hold the watermark.
        """

    def parts(self, known: Mapping[str, int | None]) -> list[str]:
        """The names of the parts that have positions: by default, the splits.

        A part that is no longer named is forgotten: its split ends with its last part, and a part that was not read to
        its end is counted (``numPartsLost``).

        Args:
            known: the parts that the job knows, with their positions, or None if they have ended. Empty at the start.

        Raises:
            ProgramError: if there are no splits, because such a stream would never have an element, a watermark or an
                end.
        """
        splits = self.splits()
        if not splits:
            raise ProgramError(f"the source {self!r} has no splits; splits() must name at least one")
        return splits

    def following(self, parts: Collection[str]) -> list[str]:
        """The names of the parts that follow when all present parts have ended; by default, none.

        They appear in the micro-batch in which the last part ends, so that the source does not end.
        """
        return []

    def split_of(self, part: str) -> str:
        """The split that a part belongs to. Several new parts of a split are read in the order of their names."""
        return part

    @abstractmethod
    def latest_position(self, split: str) -> int:
        """The position after the last element that is there now."""

    @abstractmethod
    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        """The elements of a split from position ``start`` up to, not including, ``end``.

        Yields elements, or ``pyarrow.RecordBatch`` objects whose rows are elements of the type that
        :meth:`get_produced_type` declares: columns are found by the names of its fields, or by their places if they
        have none of these names. A source that knows about event time may also yield a ``TimestampedValue``, which is
        an element with its timestamp, or a :class:`TimestampedBatch`; a ``Watermark``, which holds from its place in
        the split on; and :data:`IDLE`. A strategy downstream of the source replaces its timestamps and watermarks.
        Yield an :class:`Unreadable` for data that cannot be read; an error that is raised stops the job.
        """

    def sorting_out(self) -> Source[T_co]:
        """A copy of the source for a program that wants its dead letters.

        A source that reads many elements at once overrides this if finding a bad element among them is slower; by
        default, it is the source itself.
        """
        return self

    def reads_together(self) -> bool:
        """Whether a task reads all its ranges with one :meth:`read_together`; by default, split by split.

        True suits a source that waits for its splits: it can wait for all of them at once.
        """
        return False

    def read_together(self, ranges: Sequence[PartRange]) -> Iterator[tuple[str, Iterable[Any]]]:
        """The elements of several ranges, in runs: a part, and some items that :meth:`read` would yield next.

        Runs of different parts may come in any order, those of one part in the order of positions.
        """
        for way in ranges:
            yield way.part, self.read(way.part, way.start, way.end)

    def initial_position(self, split: str) -> int:
        """The first position of a split. Called once, when it is first seen; then the checkpoint keeps the answer."""
        return 0

    def beginnings(self, parts: Sequence[str]) -> dict[str, Beginning]:
        """The positions where parts that are first seen start and stop; the checkpoint keeps the answers.

        By default, each starts at its :meth:`initial_position`, and ends where :meth:`has_ended` says.
        """
        return {part: Beginning(self.initial_position(part)) for part in parts}

    def resume(self, identities: Mapping[str, str]) -> None:
        """Check the parts that the job has read so far, given their identities from the checkpoint.

        Called once in a run, before anything else is planned. A source raises a ``StateError`` if a part has another
        identity now: the stored position is not one of the new part.
        """

    def holds_when_new(self) -> bool:
        """Whether a split that appears while the job runs holds the watermark from then on, like the initial ones.

        Otherwise it counts from its first watermark on.
        """
        return True

    def joining(self, splits: Collection[str]) -> set[str]:
        """The splits that hold the watermark among some that appear while the job runs; by default, all or none."""
        return set(splits) if self.holds_when_new() else set()

    def is_bounded(self) -> bool:
        """Whether the input ends: each split at its latest position, and with the last one all windows close."""
        return True

    def may_end(self) -> bool:
        """Whether the source ends when all of its parts have ended; also an unbounded source may end so."""
        return self.is_bounded()

    def may_grow(self, split: str) -> bool:
        """Whether one more part of a split may appear; by default, unless the input ends."""
        return not self.is_bounded()

    def get_produced_type(self) -> TypeInformation[T_co]:
        """The type of the elements; undeclared ones travel pickled."""
        return Types.PICKLED_BYTE_ARRAY()

    def side_outputs(self) -> Mapping[str, TypeInformation]:
        """The types of the values that it yields as :class:`SideOutput`, beside its elements, by the ids of their tags.

        ``get_side_output`` of the source's stream returns them. They have no watermarks until a strategy gives them.
        """
        return {}

    def gives_timestamps(self) -> bool:
        """Whether the source yields elements with timestamps, so that windows of event time need no assigner."""
        return False

    def gives_watermarks(self) -> bool:
        """Whether the source may yield watermarks. If not, columns are aggregated before the shuffle."""
        return self.gives_timestamps()

    def active_by_elements(self) -> bool:
        """Whether an idle split counts again with its next element; by default, with its next watermark."""
        return False

    def has_ended(self, split: str, position: int) -> bool:
        """Whether a split has ended at a position: no element will follow."""
        return self.is_bounded() and position >= self.latest_position(split)

    def latest_positions(self) -> dict[str, int]:
        """The present end of each part: a run that handles the present data, and then stops, reads up to it."""
        return self.ends(self.parts({}))

    def ends(self, parts: Collection[str]) -> dict[str, int]:
        """The latest positions of some parts: with one request, if the source can ask for all of them at once."""
        return {part: self.latest_position(part) for part in parts}

    def with_columns(self, columns: Collection[str]) -> Source[T_co]:
        """A copy of the source for a program that uses only these columns; it may leave out others.

        Called for sources whose elements are rows with names; columns that they do not have are ignored. A copy that
        leaves out columns keeps the order and the types of the others; if it does not, the source itself is read.
        """
        return self

    def for_job(
        self, operator: str, storage: str | None, job_parameters: Mapping[str, str] | None = None
    ) -> Source[T_co]:
        """A copy of the source for one job, before it travels.

        Args:
            operator: the name of its operator.
            storage: its own place below the job's checkpoint, for what it must remember; None if the job's checkpoint
                is not known yet.
            job_parameters: the parameters that its functions may ask for.
        """
        return self

    def commit(self, positions: Mapping[str, int]) -> None:
        """Take note that the job has handled all elements before these positions; called on the driver.

        It must be quick, because the next micro-batch waits for it.
        """

    def wait(self, seconds: float) -> bool:
        """Wait for new elements, if the source itself receives them; else return False at once."""
        return False

    def may_be_away(self) -> bool:
        """Whether the source may not answer for a time, such as a broker on the network, while other sources do.

        Then micro-batches continue with the other sources until it answers: it is planned in a thread of its own. By
        default, every micro-batch waits until the source is planned.
        """
        return False

    def positions_at(
        self, timestamp_ms: int, positions: Mapping[str, int], column: str | None = None
    ) -> dict[str, int] | None:
        """For each part, the position before its first element with a later timestamp; its end if there is none.

        With watermark alignment, all splits of a micro-batch are then planned up to one time. Parts that the answer
        leaves out are not started yet.

        Args:
            timestamp_ms: milliseconds since the epoch (UTC).
            positions: the parts that have not been read to their end, with their positions.
            column: the column that has the timestamps; None for the timestamps of the source itself.

        Returns:
            None, as by default, if the source cannot say.
        """
        return None

    def rows_between(self, part: str, start: int, end: int) -> int:
        """How many elements lie between two positions of a part; an estimate if that is not known."""
        return end - start

    def pending_records(self, positions: Mapping[str, int], is_limited: bool) -> Mapping[str, int] | None:
        """The number of elements of each part that a micro-batch leaves for later, as a metric.

        By default, the source is not asked again for the positions that :meth:`next_positions` has just seen.

        Args:
            positions: the parts that have not ended, with the positions that the micro-batch reaches.
            is_limited: whether it may have left something: it has a limit of rows, or splits that wait for others.

        Returns:
            None if that is not known; parts that are missing have nothing left.
        """
        seen: Mapping[str, int] = vars(self).pop(_SEEN, {})
        if not is_limited:
            return {}
        new = [part for part in positions if part not in seen]
        ends = {**seen, **self.ends(new)} if new else seen
        return {part: self.rows_between(part, at, max(at, ends[part])) for part, at in positions.items()}

    def stop(self) -> None:
        """Release all resources, because the job ends; called on the driver."""

    def next_positions(self, positions: Mapping[str, int], max_rows: int | None) -> dict[str, int]:
        """The positions where the next micro-batch should end, given the position of each split.

        Without a limit, that is the latest position of each. A limit is shared: every split first gets an equal part,
        and at least one row, so that none starves; splits with fewer rows leave their rest to the others.
        """
        ends = self.ends(positions)
        self._see(ends)
        left = {split: max(0, ends[split] - position) for split, position in positions.items()}
        taken = left if max_rows is None else shared_out(left, max_rows)
        return {split: position + taken[split] for split, position in positions.items()}

    def _see(self, ends: Mapping[str, int]) -> None:
        """Remember the ends of parts until the micro-batch is planned, also in a frozen class."""
        vars(self)[_SEEN] = {**vars(self).get(_SEEN, {}), **ends}


def shared_out(left: Mapping[_K, int], limit: int) -> dict[_K, int]:
    """Distribute `limit` rows over the splits with rows left: equal parts, at least one each, no more than they have.

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
