"""The side outputs of a stream: where they are asked for, and how they are had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from eventide.api.dead_letters import DEAD_LETTER
from eventide.api.functions.output_tag import OutputTag
from eventide.common.type_variables import T
from eventide.errors import ProgramError
from eventide.plan.graph import (
    AssignTransformation,
    FunctionTransformation,
    OperationTransformation,
    SideOutputTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
    why_nothing_is_bad,
)

if TYPE_CHECKING:
    from eventide.datastream.data_stream.stream import DataStream
    from eventide.datastream.stream_execution_environment import StreamExecutionEnvironment


class SideOutputs:
    """Outputs of a stream beside its elements."""

    _env: StreamExecutionEnvironment
    _transformation: Transformation

    def side_output_dead_letters(self, output_tag: OutputTag) -> Self:
        """Let the job go on where this operator meets data that it cannot handle, and have a dead letter for each.

        Call it on the stream that the operator gives; `get_side_output` with the same tag gives the letters. They are
        counted, as ``numDeadLetters``, also if they are not taken. Without it, such data stop the job. Not in Flink.

        What can be bad is, by the operator:

        - of a source, a record that its format or schema cannot read; and with its strategy, a timestamp that cannot be
          found;
        - of a function, an element for which it raises, or gives what is not of the declared type; of an element all
          stands or nothing: what came out, what was kept, which timers were set; a timer for which it raises;
        - of an interval join, a pair of elements; both stay, and meet others;
        - of windows, an element that the reduce or aggregate function, the trigger or the assigner cannot take; and a
          window whose function raises when it fires;
        - of ``key_by``, an element whose key cannot be found, or cannot be one.

        A letter is a `Row` with the fields ``operator``, ``during``, ``error_type``, ``error``, ``element``, ``key``,
        ``timestamp``, ``split`` and ``position``. ``element`` is the element as it was; of a source, the bytes or text
        that could not be read, and ``split`` and ``position`` say where: the partition or file, and the offset or the
        number of the row.

        Raises:
            ProgramError: if it is no tag, or this stream does not come from something that data can be bad for.

        >>> from eventide.testing import local_environment
        >>> bad = OutputTag("bad")
        >>> numbers = local_environment().from_collection(["1", "two"]).map(int).side_output_dead_letters(bad)
        >>> [(letter.element, letter.error_type) for letter in numbers.get_side_output(bad).execute_and_collect()]
        [('two', 'ValueError')]
        """
        if not isinstance(output_tag, OutputTag):
            raise ProgramError(f"side_output_dead_letters needs an OutputTag, not {output_tag!r}")
        node = self._transformation
        if (reason := why_nothing_is_bad(node)) is not None:
            raise ProgramError(f"nothing can be bad for {node.name!r}: {reason}")
        if output_tag.tag_id in _side_outputs(node):
            raise ProgramError(f"{node.name!r} has another side output {output_tag.tag_id!r}; choose another tag")
        for each in _guarded_together(node):
            each.dead_letters = output_tag.tag_id
        return self

    def get_side_output(self, output_tag: OutputTag[T]) -> DataStream[T]:
        """The stream of a side output of the operator, or strategy for missing timestamps, that this stream comes from.

        Raises:
            ProgramError: if this stream does not come from an operator with side outputs directly.
        """
        from eventide.datastream.data_stream.stream import DataStream

        return DataStream(self._env, self._side_output(output_tag))

    def _side_output(self, output_tag: OutputTag) -> Transformation:
        source, tag = self._transformation, output_tag.tag_id
        if source.dead_letters == tag:
            letters = [SideOutputTransformation(node, tag, DEAD_LETTER) for node in _guarded_together(source)]
            return letters[0] if len(letters) == 1 else UnionTransformation("union", tuple(letters), DEAD_LETTER)
        if isinstance(source, AssignTransformation) and source.strategy.null_timestamps == tag:
            return SideOutputTransformation(source, tag, source.type_info)
        origin = source.inputs[0] if isinstance(source, AssignTransformation) else source
        if isinstance(origin, SourceTransformation) and tag in (aside := origin.source.side_outputs()):
            return SideOutputTransformation(origin, tag, aside[tag])
        is_chained = isinstance(source, FunctionTransformation) and source.has_side_outputs
        if not (isinstance(source, OperationTransformation) or is_chained):
            raise ProgramError(
                f"{source.name!r} has no side outputs; call get_side_output on the result of a window or a process "
                "function itself, or side_output_dead_letters with this tag before"
            )
        return SideOutputTransformation(source, tag, _side_outputs(source).get(tag, output_tag.type_info))


def _side_outputs(node: Transformation) -> dict[str, Any]:
    return node.side_outputs if isinstance(node, OperationTransformation) else {}


def _guarded_together(node: Transformation) -> list[Transformation]:
    """Return the nodes that share dead letters: a strategy and the source that it belongs to."""
    if isinstance(node, AssignTransformation) and isinstance(node.inputs[0], SourceTransformation):
        return [node.inputs[0], node]
    return [node]
