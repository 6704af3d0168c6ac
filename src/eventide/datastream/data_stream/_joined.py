"""Joins of two streams in windows, and co-groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

from eventide.api.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    KeySelector,
    WindowFunction,
)
from eventide.api.windows import Evictor, Trigger, WindowAssigner
from eventide.common.time import Duration, Time
from eventide.common.type_variables import OUT, S_co, T, T1_co, T2_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.types import Row
from eventide.datastream.data_stream._columns import keyed_by_columns
from eventide.datastream.data_stream._selection import selection_of
from eventide.datastream.data_stream._windowed import WindowedStream
from eventide.datastream.data_stream.stream import DataStream
from eventide.errors import ProgramError
from eventide.joins import JoinedColumn
from eventide.plan.graph import KeyTransformation, OperationTransformation
from eventide.plan.identity import name_of
from eventide.runtime.columnar.panes import panes_of
from eventide.runtime.joins.planning import WindowJoinOperation
from eventide.runtime.joins.selection import KEEPS, SelectsOfWindow, obstacle_of_fields
from eventide.runtime.joins.window_columns import obstacle_of
from eventide.runtime.joins.windowed import CallableJoin, CoGroups, FlatJoinsPairs, JoinsPairs, KeyOfSide, OnSide
from eventide.runtime.tasks.operator import Key

_F = TypeVar("_F")
Selector: TypeAlias = Callable[[T], Any] | KeySelector[T, Any] | str
_Inputs: TypeAlias = tuple[DataStream[Any], DataStream[Any]]


class _Pair(Generic[T1_co, T2_co, S_co]):
    """Two streams that are about to be joined; what they are joined by comes step by step."""

    _with_window: type[Any]

    def __init__(self, input1: DataStream[T1_co], input2: DataStream[T2_co]) -> None:
        if not isinstance(input2, DataStream):
            raise ProgramError(f"a stream is joined with another stream, not with {input2!r}")
        if input1.get_execution_environment() is not input2.get_execution_environment():
            raise ProgramError("streams of one environment can be joined; these were made by two")
        self._inputs: _Inputs = input1, input2

    def where(
        self, key_selector: Selector[T1_co], key_type: TypeInformation | str | None = None, *more: str
    ) -> Where[T2_co, S_co]:
        """Say what the key of the first stream's elements is: a function of an element, or fields by name.

        Raises:
            ProgramError: if it is neither, or a field is not there.
        """
        return Where(self._inputs, self._with_window, _key_of("where", self._inputs[0], key_selector, key_type, more))


class JoinedStreams(_Pair[T1_co, T2_co, "JoinedWithWindow[T1_co, T2_co]"], Generic[T1_co, T2_co]):
    """Two streams to be joined in windows. Flink: ``JoinedStreams``; PyFlink has none.

    Elements meet if their keys are equal and they are in one window. Where one side of a window has nothing, nothing
    comes out: an inner join.
    """


class CoGroupedStreams(_Pair[T1_co, T2_co, "CoGroupedWithWindow[T1_co, T2_co]"], Generic[T1_co, T2_co]):
    """Two streams to be co-grouped in windows. Flink: ``CoGroupedStreams``; PyFlink has none."""


class Where(Generic[T2_co, S_co]):
    """Two streams of which the first has a key."""

    def __init__(self, inputs: _Inputs, with_window: Callable[[_Keyed, WindowedStream], S_co], key: Key) -> None:
        self._inputs = inputs
        self._with_window = with_window
        self._key = key

    def equal_to(
        self, key_selector: Selector[T2_co], key_type: TypeInformation | str | None = None, *more: str
    ) -> EqualTo[S_co]:
        """Say what the key of the second stream's elements is: a function of an element, or fields by name.

        Raises:
            ProgramError: if it is neither, a field is not there, or its type is another than that of the first.
        """
        key = _key_of("equal_to", self._inputs[1], key_selector, key_type, more)
        if _ANY not in (key.type_info, self._key.type_info) and key.type_info != self._key.type_info:
            raise ProgramError(
                f"keys of one type can be equal; where has {self._key.type_info}, equal_to has {key.type_info}; "
                "declare the same type for both"
            )
        return EqualTo(self._inputs, self._with_window, (self._key, key))


class EqualTo(Generic[S_co]):
    """Two streams that both have a key."""

    def __init__(
        self, inputs: _Inputs, with_window: Callable[[_Keyed, WindowedStream], S_co], keys: tuple[Key, Key]
    ) -> None:
        self._inputs = inputs
        self._with_window = with_window
        self._keys = keys

    def window(self, assigner: WindowAssigner[Any, Any]) -> S_co:
        """Say in which windows elements meet.

        Raises:
            ProgramError: if it is no window assigner, or elements have no time that it needs.
        """
        first, second = (
            stream.map(OnSide(side), Types.PICKLED_BYTE_ARRAY()) for side, stream in enumerate(self._inputs)
        )
        one, other = self._keys
        names = " = ".join(", ".join(key.columns) or name_of(key.select) for key in self._keys)
        key_type = next((key.type_info for key in self._keys if key.type_info != _ANY), None)
        keyed = first.union(second).key_by(KeyOfSide(one.select, other.select, names), key_type)
        return self._with_window(_Keyed(self._inputs, self._keys), keyed.window(assigner))


@dataclass(frozen=True, slots=True)
class _Keyed:
    """Two streams with their keys."""

    inputs: _Inputs
    keys: tuple[Key, Key]

    def transformations(self) -> tuple[KeyTransformation, KeyTransformation]:
        """Each stream by its key."""
        first, second = (
            KeyTransformation(stream._transformation, key) for stream, key in zip(self.inputs, self.keys, strict=True)
        )
        return first, second


class _WithWindow(Generic[T1_co, T2_co]):
    """Two streams in windows."""

    def __init__(self, keyed: _Keyed, windows: WindowedStream) -> None:
        self._keyed = keyed
        self._windows = windows

    def trigger(self, new_trigger: Trigger[Any, Any]) -> Self:
        """Set when windows fire, in place of the assigner's own rule; it sees elements of both streams."""
        self._windows.trigger(new_trigger)
        return self

    def evictor(self, new_evictor: Evictor[Any, Any]) -> Self:
        """Set which elements of a window, of both streams, the function sees."""
        self._windows.evictor(new_evictor)
        return self

    def allowed_lateness(self, new_lateness: Duration | Time | int) -> Self:
        """Keep each window for late elements until the watermark has passed its end by `new_lateness`."""
        self._windows.allowed_lateness(new_lateness)
        return self

    def _own(self, function: _F) -> _F:
        return self._windows.get_execution_environment().own_function(function)

    def _applied(
        self, name: str, function: WindowFunction[Any, Any, Any, Any], kind: TypeInformation | None
    ) -> DataStream[Any]:
        return self._windows.apply(function, kind).name(name)


class JoinedWithWindow(_WithWindow[T1_co, T2_co]):
    """Two streams joined in windows."""

    def apply(
        self,
        function: JoinFunction[T1_co, T2_co, OUT] | FlatJoinFunction[T1_co, T2_co, OUT] | Callable[[T1_co, T2_co], OUT],
        output_type: TypeInformation | None = None,
    ) -> DataStream[OUT]:
        """Call a function with each two elements that meet; what comes out has the last millisecond of the window.

        Raises:
            ProgramError: if it is no function of two elements.
        """
        if isinstance(function, FlatJoinFunction):
            return self._applied("join", FlatJoinsPairs(self._own(function)), output_type)
        if not isinstance(function, JoinFunction):
            if not callable(function):
                raise ProgramError(f"apply needs a JoinFunction, a FlatJoinFunction or a function, not {function!r}")
            function = CallableJoin(function)
        return self._applied("join", JoinsPairs(self._own(function)), output_type)

    def select(
        self, *columns: JoinedColumn, how: Literal["inner", "left", "right", "full"] = "inner"
    ) -> DataStream[Row]:
        """Give some fields of each two elements that meet: ``select(left("id"), right("price").alias("paid"))``.

        Rows of these fields come out, with the last millisecond of the window. Where keys are fields, by name, and
        windows are tumbling or sliding ones of event time, the join runs on columns. Not in Flink.

        Args:
            columns: the fields, made with ``left``, ``right`` and ``window`` of :mod:`eventide.joins`.
            how: whether elements that meet none in their window come out too, with None for the fields of the other
                stream: those of the ``left``, of the ``right``, of both (``full``), or none (``inner``).

        Raises:
            ProgramError: if one is no field of elements whose type is declared, two have one name, or the kind of join
                is none of these.
        """
        if how not in KEEPS:
            raise ProgramError(f"select: how is one of {', '.join(map(repr, KEEPS))}, not {how!r}")
        windows = self._windows
        selection = selection_of(
            columns,
            [stream._transformation for stream in self._keyed.inputs],
            has_window=windows._assigner.has_time_windows,
        )
        panes = panes_of(windows._assigner)
        obstacle = obstacle_of_fields(selection, self._keyed.keys) or obstacle_of(
            windows._assigner, windows._trigger, windows._evictor
        )
        if obstacle is not None or panes is None:
            function = SelectsOfWindow(selection, how, obstacle or "")
            return self._applied("join", function, selection.type_info)
        operation = WindowJoinOperation(windows._assigner, panes, windows._lateness_ms, how, selection)
        inputs = self._keyed.transformations()
        operator = OperationTransformation("join", inputs, selection.type_info, operation)
        return DataStream(windows.get_execution_environment(), operator)


class CoGroupedWithWindow(_WithWindow[T1_co, T2_co]):
    """Two streams co-grouped in windows."""

    def apply(
        self, function: CoGroupFunction[T1_co, T2_co, OUT], output_type: TypeInformation | None = None
    ) -> DataStream[OUT]:
        """Call a function with all that both streams have for a key and window.

        Raises:
            ProgramError: if it is no ``CoGroupFunction``.
        """
        if not isinstance(function, CoGroupFunction):
            raise ProgramError(f"apply needs a CoGroupFunction, not {function!r}")
        return self._applied("co_group", CoGroups(self._own(function)), output_type)


_ANY = Types.PICKLED_BYTE_ARRAY()


def _key_of(
    where: str, stream: DataStream, selector: object, key_type: TypeInformation | str | None, more: tuple[str, ...]
) -> Key:
    """The key that a program names: a function, with the type of its values; or fields."""
    if isinstance(selector, str):
        names = [selector, *([] if key_type is None else [key_type]), *more]
        return keyed_by_columns(stream._transformation, names).key
    select = selector.get_key if isinstance(selector, KeySelector) else selector
    if not callable(select):
        raise ProgramError(f"{where} needs a KeySelector, a function of an element or fields by name, not {selector!r}")
    if isinstance(key_type, str) or more:
        raise ProgramError(f"{where} takes one function, or the names of fields, not both")
    return Key(select, key_type or _ANY)


JoinedStreams._with_window = JoinedWithWindow
CoGroupedStreams._with_window = CoGroupedWithWindow
