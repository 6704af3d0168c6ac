"""The logical graph that a program builds: one transformation per call of the fluent API."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.watermark_strategy import WatermarkStrategy
from eventide.datastream.connectors import Sink, Source

_numbers = itertools.count()


class Transformation:
    """A node of the graph. ``name`` and ``uid`` may be set until the job runs; all else is fixed.

    ``has_timestamps`` says whether its elements carry event time. Flink: ``Transformation``.
    """

    def __init__(
        self,
        name: str,
        inputs: tuple[Transformation, ...] = (),
        type_info: TypeInformation | None = None,
        has_timestamps: bool | None = None,
    ) -> None:
        self.number = next(_numbers)
        self.name = name
        self.uid: str | None = None
        self.parallelism: int | None = None
        self.inputs = inputs
        self.type_info = type_info or Types.PICKLED_BYTE_ARRAY()
        inherited = bool(inputs) and all(node.has_timestamps for node in inputs)
        self.has_timestamps: bool = inherited if has_timestamps is None else has_timestamps


class SourceTransformation(Transformation):
    """Reads a :class:`~eventide.datastream.connectors.Source`."""

    def __init__(self, name: str, source: Source, type_info: TypeInformation) -> None:
        super().__init__(name, (), type_info, has_timestamps=source.gives_timestamps())
        self.source = source


class DataFrameTransformation(Transformation):
    """Reads a Spark DataFrame, which only the Spark host looks into."""

    def __init__(self, name: str, reader: Any, type_info: TypeInformation, has_timestamps: bool) -> None:
        super().__init__(name, (), type_info, has_timestamps)
        self.reader = reader


class FunctionTransformation(Transformation):
    """A map, filter or flat_map; ``kind`` builds its step from a name, what to call, and what the user wrote."""

    def __init__(
        self,
        name: str,
        source: Transformation,
        kind: Callable[[str, Callable[[Any], Any], Any], Any],
        call: Callable[[Any], Any],
        user_function: Any,
        type_info: TypeInformation | None,
    ) -> None:
        super().__init__(name, (source,), type_info)
        self.kind = kind
        self.call = call
        self.user_function = user_function


class AssignTransformation(Transformation):
    """Assigns timestamps and watermarks."""

    def __init__(self, name: str, source: Transformation, strategy: WatermarkStrategy) -> None:
        super().__init__(name, (source,), source.type_info, has_timestamps=True)
        self.strategy = strategy


class UnionTransformation(Transformation):
    """Several streams of one type as one."""


class KeyTransformation(Transformation):
    """Extracts a key from each element; ``columns`` are the fields that it consists of, if it was given by them."""

    def __init__(
        self,
        source: Transformation,
        select: Callable[[Any], Any],
        key_type: TypeInformation,
        columns: tuple[str, ...] = (),
    ) -> None:
        super().__init__("key_by", (source,), source.type_info)
        self.select = select
        self.key_type = key_type
        self.columns = columns


class WindowTransformation(Transformation):
    """A window operator on a keyed stream, or on a whole one.

    ``build`` gives the operator's runtime description once its final name is known. ``endless_if_bounded`` says that
    the end of the input would make it fire for ever.
    """

    def __init__(
        self,
        name: str,
        source: Transformation,
        type_info: TypeInformation | None,
        build: Callable[[str], Any],
        side_outputs: dict[str, TypeInformation],
    ) -> None:
        super().__init__(name, (source,), type_info, has_timestamps=True)
        self.build = build
        self.side_outputs = side_outputs
        self.endless_if_bounded = False


class SideOutputTransformation(Transformation):
    """One side output of a window operator."""

    def __init__(self, source: Transformation, tag: str, type_info: TypeInformation) -> None:
        super().__init__(f"side output {tag}", (source,), type_info)
        self.tag = tag


class SinkTransformation(Transformation):
    """Hands elements to a sink."""

    def __init__(self, name: str, source: Transformation, sink: Sink) -> None:
        super().__init__(name, (source,), source.type_info)
        self.sink = sink
