"""Which sources of a program wait for each other, and what each of them must know for that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eventide.common.accepted import has_no_effect
from eventide.common.watermark_alignment import WatermarkAlignment
from eventide.common.watermark_generators import BoundedOutOfOrderness
from eventide.common.watermark_strategy import NullTimestamps
from eventide.errors import ProgramError
from eventide.plan.graph import (
    AlignmentTransformation,
    AssignTransformation,
    InputTransformation,
    SourceTransformation,
    Transformation,
    heads,
)
from eventide.runtime.sources.alignment import ByTime, SourceAlignment


@dataclass(frozen=True, slots=True)
class _Aligned:
    """A source, with the stream that it is aligned by and what the strategy there says."""

    source: SourceTransformation
    stream: Transformation
    alignment: WatermarkAlignment


class Alignments:
    """The sources of a program that wait for others.

    Args:
        nodes: all of the program.
        names: the name of each, by number.

    Raises:
        ProgramError: if one of them is a DataFrame, or is aligned in two ways.
    """

    def __init__(self, nodes: Iterable[Transformation], names: Mapping[int, str]) -> None:
        self._names = names
        self._by_source: dict[int, _Aligned] = {}
        for node in nodes:
            if isinstance(node, SourceTransformation | AssignTransformation) and node.alignment is not None:
                self._take(node, node.alignment)

    def _take(self, stream: Transformation, alignment: WatermarkAlignment) -> None:
        sources = sources_of(stream)
        if not sources:
            has_no_effect(
                f"the watermark alignment of {self._names[stream.number]!r}",
                "it stands downstream of an operator, and only sources can wait; give it to the strategy of a source",
            )
        for source in sources:
            name = self._names[source.number]
            if not isinstance(source, SourceTransformation):
                raise ProgramError(
                    f"the source {name!r} is a Spark DataFrame, which Spark plans by itself, so that no split of it "
                    "can be held back for the others of the watermark group "
                    f"{alignment.group!r}; read it with from_source(...), such as a FileSource or a Source of your "
                    "own, or leave out with_watermark_alignment(...) and limit what a micro-batch reads with an "
                    "option of the DataFrame, such as maxFilesPerTrigger or maxOffsetsPerTrigger"
                )
            if source.number in self._by_source:
                raise ProgramError(
                    f"the source {name!r} has two strategies with watermark alignment; it can wait by one of them, so "
                    "leave out with_watermark_alignment(...) in the other"
                )
            self._by_source[source.number] = _Aligned(source, stream, alignment)

    def node(self) -> AlignmentTransformation | None:
        """The operator that hears all of them; None where there is none."""
        streams = {aligned.stream.number: aligned.stream for aligned in self._by_source.values()}
        return AlignmentTransformation(streams[number] for number in sorted(streams)) if streams else None

    def groups(self) -> dict[str, tuple[str, ...]]:
        """The names of the sources of each group."""
        found: dict[str, list[str]] = {}
        for number, aligned in sorted(self._by_source.items()):
            found.setdefault(aligned.alignment.group, []).append(self._names[number])
        return {group: tuple(names) for group, names in sorted(found.items())}

    def of(self, source: InputTransformation) -> SourceAlignment | None:
        """The alignment of a source; None for one that does not wait."""
        aligned = self._by_source.get(source.number)
        if aligned is None:
            return None
        group = aligned.alignment.group
        return SourceAlignment(group, aligned.alignment.drift_ms, self.groups()[group], _by_time(aligned))


def sources_of(stream: Transformation) -> Sequence[InputTransformation]:
    """The sources whose elements come to a stream without an operator on the way."""
    if isinstance(stream, InputTransformation):
        return [stream]
    found: dict[int, InputTransformation] = {}
    for head in heads(stream.inputs):
        if isinstance(head, InputTransformation | AssignTransformation):
            found |= {source.number: source for source in sources_of(head)}
    return [found[number] for number in sorted(found)]


def _by_time(aligned: _Aligned) -> ByTime | None:
    """How the positions of a source follow from event time, where every element moves its watermark in a known way."""
    stream = aligned.stream
    if not isinstance(stream, AssignTransformation) or stream.inputs != (aligned.source,):
        return None
    strategy, generator = stream.strategy, stream.strategy.generator
    has_times = strategy.timestamp_column is not None or aligned.source.source.gives_timestamps()
    if strategy.timestamp_assigner is not None or strategy.null_timestamps is not NullTimestamps.FAIL or not has_times:
        return None
    if not isinstance(generator, BoundedOutOfOrderness):
        return None
    return ByTime(generator.bound_ms + 1, strategy.timestamp_column)
