"""Sources without a connection of their own: a collection of the program, a range of numbers, and others in turn.

``HybridSource`` reads other sources, one after the other: first past data, then live data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Self

from eventide.api.source import Beginning, PartRange, Source
from eventide.common.type_variables import T_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError, check_is

_SWITCHED = "switched to"
"""The prefix of the empty part that marks a switch in the checkpoint."""


class CollectionSource(Source[T_co]):
    """Source that ``StreamExecutionEnvironment.from_collection`` reads.

    >>> list(CollectionSource(["a", "b", "c"]).read("collection", 1, 3))
    ['b', 'c']
    """

    def __init__(self, collection: Iterable[T_co], type_info: TypeInformation | None = None) -> None:
        self._elements = list(collection)
        self._type_info = type_info or Types.PICKLED_BYTE_ARRAY()

    def splits(self) -> list[str]:
        """The collection is one split."""
        return ["collection"]

    def latest_position(self, split: str) -> int:
        return len(self._elements)

    def read(self, split: str, start: int, end: int) -> Iterator[T_co]:
        return iter(self._elements[start:end])

    def get_produced_type(self) -> TypeInformation:
        return self._type_info


class NumberSequenceSource(Source[int]):
    """The numbers from ``start`` to ``end``, both included, in a number of splits.

    Flink: ``NumberSequenceSource``; the number of splits is eventide's own argument.

    Raises:
        ProgramError: ``end`` is before ``start``, or there are no splits.

    >>> source = NumberSequenceSource(1, 5, splits=2)
    >>> [list(source.read(split, 0, source.latest_position(split))) for split in source.splits()]
    [[1, 2, 3], [4, 5]]
    """

    def __init__(self, start: int, end: int, splits: int = 1) -> None:
        if splits < 1:
            raise ProgramError(f"NumberSequenceSource needs at least one split, not {splits!r}")
        if end < start:
            raise ProgramError(f"no numbers from {start} to {end}; give NumberSequenceSource the lower one first")
        count = end - start + 1
        self._bounds = [start + -(-count * i // splits) for i in range(splits + 1)]

    def splits(self) -> list[str]:
        """Numbered from 0."""
        return [str(i) for i in range(len(self._bounds) - 1)]

    def latest_position(self, split: str) -> int:
        return self._bounds[int(split) + 1] - self._bounds[int(split)]

    def read(self, split: str, start: int, end: int) -> Iterator[int]:
        first = self._bounds[int(split)]
        return iter(range(first + start, first + end))

    def get_produced_type(self) -> TypeInformation[int]:
        return Types.LONG()


class HybridSource(Source[T_co]):
    """Reads bounded sources to their ends, each followed by the next one: files and then a topic, say.

    All sources have one type of elements, and form one stream: the watermark continues from the previous source. The
    splits of the next source appear in the micro-batch in which the last split of the previous one ends, so that there
    is no watermark for an end of input in between, and no split is missing. No element is read twice, also after
    restarts. The settings of the next source, by offsets or by time, define where it starts.

    A split of the first source is named ``0/`` and its own name, one of the second ``1/``, and so on.

    PyFlink: ``HybridSource``.

    >>> from eventide.connectors.sources import NumberSequenceSource
    >>> source = HybridSource.builder(NumberSequenceSource(1, 3)).add_source(NumberSequenceSource(4, 9)).build()
    >>> source.parts({})
    ['0/0']
    >>> source.parts({"0/0": None})  # the first one has ended
    ['switched to 1', '1/0']
    >>> source.following(["0/0"])
    ['switched to 1', '1/0']
    """

    def __init__(self, sources: Sequence[Source[T_co]]) -> None:
        self._sources = list(sources)

    @staticmethod
    def builder(first_source: Source[T_co]) -> HybridSourceBuilder[T_co]:
        """Start with the source that is read first."""
        return HybridSourceBuilder(first_source)

    def splits(self) -> list[str]:
        """Empty, because the splits depend on the source that is read now; so all of them join."""
        return []

    def parts(self, known: Mapping[str, int | None]) -> list[str]:
        """The parts of the first source that has not ended, after the switches to it, and remaining parts of others."""
        number = _switches(known)
        found = self._parts_of(number, known)
        while number < len(self._sources) - 1 and found and all(known.get(part, 0) is None for part in found):
            number += 1
            found = self._parts_of(number, known)
        left = [part for part, at in known.items() if at is not None and not _is_of(part, number)]
        return [*left, *(f"{_SWITCHED} {one}" for one in range(1, number + 1)), *found]

    def following(self, parts: Collection[str]) -> list[str]:
        """The parts of the next source, when one has ended."""
        return [part for part in self.parts(dict.fromkeys(parts)) if part not in parts]

    def _parts_of(self, number: int, known: Mapping[str, int | None]) -> list[str]:
        of_source = {_own(part): at for part, at in known.items() if _is_of(part, number)}
        return [f"{number}/{part}" for part in self._sources[number].parts(of_source)]

    def split_of(self, part: str) -> str:
        """The split of a part, with the number of its source."""
        if part.startswith(_SWITCHED):
            return part
        number, source, own = self._found(part)
        return f"{number}/{source.split_of(own)}"

    def joining(self, splits: Collection[str]) -> set[str]:
        """The splits that hold the watermark: initial splits of their source, and those that it lets join.

        An unbounded source may name splits later that do not hold the watermark, so its own `joining` decides.
        """
        found = set[str]()
        for number, source, own in self._by_source(splits):
            holding = source.joining(own) | ({*source.splits()} & {*own} if source.is_bounded() else set())
            found |= {f"{number}/{split}" for split in holding}
        return found

    def holds_when_new(self) -> bool:
        """False, because splits come and go with their sources; :meth:`joining` says which hold the watermark."""
        return False

    def may_grow(self, split: str) -> bool:
        """Whether a split may grow in its source."""
        if split.startswith(_SWITCHED):
            return False
        _, source, own = self._found(split)
        return source.may_grow(own)

    def initial_position(self, split: str) -> int:
        return self.beginnings([split])[split].start

    def beginnings(self, parts: Sequence[str]) -> dict[str, Beginning]:
        """The beginnings of parts, from their sources; the next source is asked at the switch."""
        found = {part: Beginning(0, stop=0) for part in parts if part.startswith(_SWITCHED)}
        for number, source, own in self._by_source(parts):
            found |= {f"{number}/{part}": beginning for part, beginning in source.beginnings(own).items()}
        return found

    def resume(self, identities: Mapping[str, str]) -> None:
        """Tell each source of its own parts."""
        for number, source in enumerate(self._sources):
            own = {_own(part): identity for part, identity in identities.items() if _is_of(part, number)}
            if own:
                source.resume(own)

    def latest_position(self, split: str) -> int:
        return self.ends([split])[split]

    def latest_positions(self) -> dict[str, int]:
        """The present ends of the parts of all sources, and the switches between them."""
        found = {f"{_SWITCHED} {number}": 0 for number in range(1, len(self._sources))}
        for number, source in enumerate(self._sources):
            found |= {f"{number}/{part}": end for part, end in source.latest_positions().items()}
        return found

    def ends(self, parts: Collection[str]) -> dict[str, int]:
        """The latest positions, with one request for each source."""
        found: dict[str, int] = {}
        for number, source, own in self._by_source(parts):
            found |= {f"{number}/{part}": end for part, end in source.ends(own).items()}
        return found

    def next_positions(self, positions: Mapping[str, int], max_rows: int | None) -> dict[str, int]:
        """The next positions of the first source with parts."""
        for number, source, own in self._by_source(positions):
            planned = source.next_positions({part: positions[f"{number}/{part}"] for part in own}, max_rows)
            return {f"{number}/{part}": at for part, at in planned.items()}
        return {}

    def has_ended(self, split: str, position: int) -> bool:
        """Whether a split has ended at a position, by its source."""
        _, source, own = self._found(split)
        return source.has_ended(own, position)

    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        _, source, own = self._found(split)
        yield from source.read(own, start, end)

    def reads_together(self) -> bool:
        """Whether one of the sources reads together."""
        return any(source.reads_together() for source in self._sources)

    def read_together(self, ranges: Sequence[PartRange]) -> Iterator[tuple[str, Iterable[Any]]]:
        """The elements of several ranges, source by source."""
        for number, source in enumerate(self._sources):
            own = [PartRange(_own(way.part), way.start, way.end) for way in ranges if _is_of(way.part, number)]
            for part, items in source.read_together(own) if own else ():
                yield f"{number}/{part}", items

    def sorting_out(self) -> HybridSource[T_co]:
        """A copy with copies of all sources for a program that wants their dead letters."""
        return HybridSource([source.sorting_out() for source in self._sources])

    def with_columns(self, columns: Collection[str]) -> HybridSource[T_co]:
        """A copy with copies of all sources that read these columns only, if all of them can."""
        sources = [source.with_columns(columns) for source in self._sources]
        kind = sources[0].get_produced_type()
        return HybridSource(sources) if all(one.get_produced_type() == kind for one in sources) else self

    def for_job(
        self, operator: str, storage: str | None, job_parameters: Mapping[str, str] | None = None
    ) -> HybridSource[T_co]:
        """A copy with copies of all sources, each with a place of its own."""
        places = (None if storage is None else f"{storage}/{number}" for number in range(len(self._sources)))
        return HybridSource(
            [source.for_job(operator, at, job_parameters) for source, at in zip(self._sources, places, strict=True)]
        )

    def is_bounded(self) -> bool:
        """Whether the last source is bounded."""
        return self._sources[-1].is_bounded()

    def may_end(self) -> bool:
        """Whether the last source may end."""
        return self._sources[-1].may_end()

    def get_produced_type(self) -> TypeInformation[T_co]:
        """The type of the elements, which is that of all sources."""
        return self._sources[0].get_produced_type()

    def side_outputs(self) -> Mapping[str, TypeInformation]:
        """The types of the values that any of the sources yields beside its elements."""
        return {tag: kind for source in self._sources for tag, kind in source.side_outputs().items()}

    def gives_timestamps(self) -> bool:
        """Whether all sources give timestamps."""
        return all(source.gives_timestamps() for source in self._sources)

    def gives_watermarks(self) -> bool:
        """Whether one of the sources may give watermarks."""
        return any(source.gives_watermarks() for source in self._sources)

    def active_by_elements(self) -> bool:
        """Whether all sources are active by their elements."""
        return all(source.active_by_elements() for source in self._sources)

    def commit(self, positions: Mapping[str, int]) -> None:
        """Tell each source of its own parts."""
        for number, source in enumerate(self._sources):
            own = {_own(part): at for part, at in positions.items() if _is_of(part, number)}
            if own:
                source.commit(own)

    def wait(self, seconds: float) -> bool:
        """Wait for the last source, because the others are bounded."""
        return self._sources[-1].wait(seconds)

    def may_be_away(self) -> bool:
        """Whether one of the sources may be away."""
        return any(source.may_be_away() for source in self._sources)

    def positions_at(
        self, timestamp_ms: int, positions: Mapping[str, int], column: str | None = None
    ) -> dict[str, int] | None:
        """The answer of the first source with some of the parts."""
        for number, source, own in self._by_source(positions):
            found = source.positions_at(timestamp_ms, {part: positions[f"{number}/{part}"] for part in own}, column)
            return None if found is None else {f"{number}/{part}": at for part, at in found.items()}
        return {}

    def rows_between(self, part: str, start: int, end: int) -> int:
        _, source, own = self._found(part)
        return source.rows_between(own, start, end)

    def pending_records(self, positions: Mapping[str, int], is_limited: bool) -> Mapping[str, int] | None:
        """The elements that the first source with parts leaves; those of the next are not known before the switch."""
        for number, source, own in self._by_source(positions):
            found = source.pending_records({part: positions[f"{number}/{part}"] for part in own}, is_limited)
            return None if found is None else {f"{number}/{part}": records for part, records in found.items()}
        return {}

    def stop(self) -> None:
        for source in self._sources:
            source.stop()

    def __repr__(self) -> str:
        return f"HybridSource({', '.join(map(repr, self._sources))})"

    def _found(self, part: str) -> tuple[int, Source[T_co], str]:
        """The number of a part's source, the source, and the name of the part in it."""
        number, _, own = part.partition("/")
        return int(number), self._sources[int(number)], own

    def _by_source(self, parts: Collection[str]) -> Iterator[tuple[int, Source[T_co], list[str]]]:
        """The sources of some parts, with the names of the parts in them."""
        for number, source in enumerate(self._sources):
            own = [_own(part) for part in parts if _is_of(part, number)]
            if own:
                yield number, source, own


def _switches(parts: Iterable[str]) -> int:
    """The number of switches among some parts, which is the number of the source that is read now."""
    return sum(part.startswith(_SWITCHED) for part in parts)


def _is_of(part: str, number: int) -> bool:
    return part.startswith(f"{number}/")


def _own(part: str) -> str:
    """The name that a part has in its source."""
    return part.partition("/")[2]


class HybridSourceBuilder(Generic[T_co]):
    """Makes a :class:`HybridSource`. PyFlink: ``HybridSourceBuilder``.

    Args:
        first_source: The source that is read first.
    """

    def __init__(self, first_source: Source[T_co]) -> None:
        self._sources: list[Source[T_co]] = []
        self.add_source(first_source)

    def add_source(self, source: Source[T_co]) -> Self:
        """Add a source, which is read when all sources before it have ended.

        Raises:
            ProgramError: It is not a source, the one before it has no end, or its elements are of another type.
        """
        check_is(source, Source, "a HybridSource reads sources, such as a FileSource")
        if self._sources:
            before = self._sources[-1]
            if not before.is_bounded():
                raise ProgramError(
                    f"{before!r} has no end, so {source!r} would never be read; only the last source may be unbounded"
                )
            kinds = before.get_produced_type(), source.get_produced_type()
            if kinds[0] != kinds[1]:
                raise ProgramError(
                    f"the elements of a HybridSource are of one type, and those of {before!r} are {kinds[0]}, those of "
                    f"{source!r} {kinds[1]}; declare the same type for both"
                )
        self._sources.append(source)
        return self

    def build(self) -> HybridSource[T_co]:
        """Return the source."""
        return HybridSource(self._sources)
