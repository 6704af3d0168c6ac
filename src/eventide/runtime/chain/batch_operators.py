"""User functions on whole batches of Arrow, pandas or Polars, whose results are columns of the declared type."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.errors import DataError, ProgramError, getting
from eventide.runtime.chain.chained_operators import Call, OneOutput
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.invoke import calling

_HANDLING = "while it handled a batch"


@dataclass(frozen=True, slots=True)
class _OnBatches(OneOutput):
    """A function that is called with whole batches of elements, whose type is declared."""

    name: str
    call: Callable[[pa.RecordBatch | pa.Array], Any]
    user_function: object
    input_type: TypeInformation
    during: ClassVar[str] = _HANDLING

    def caller(self, values: list[Any]) -> Call:
        """The function, called with one element at a time, so that a bad one can be told apart."""
        return lambda value, _: self._applied(Elements([value], [None], [0]).as_columns(self.input_type)).values

    def on_columns(self, columns: Columns) -> Elements | None:
        """Call the function with the columns."""
        return self._applied(columns)

    def why_in_python(self, type_info: TypeInformation) -> None:
        """None, because the function is called with whole batches."""

    def apply(self, elements: Elements) -> Elements:
        """Call the function with the columns of elements that come as Python objects."""
        return self._applied(elements.as_columns(self.input_type))

    def _applied(self, columns: Columns) -> Elements:
        with calling(self.name, during=_HANDLING):
            return Elements(columns=self._result(columns, self.call(columns.fields())))

    @abstractmethod
    def _result(self, columns: Columns, returned: object) -> Columns:
        """The results as elements, made of what the function returned for some columns."""


@dataclass(frozen=True, slots=True)
class MapBatches(_OnBatches):
    """As many elements as there were, each with the time of the one in its place."""

    type_info: TypeInformation

    def _result(self, columns: Columns, returned: object) -> Columns:
        values = values_of(returned, self.type_info)
        if len(values) != len(columns):
            raise ProgramError(
                f"map_batches: the function gave {len(values)} rows for {len(columns)}; flat_map_batches takes a "
                "function that says for each of its rows where it comes from"
            )
        return replace(columns, type_info=self.type_info, values=values)


@dataclass(frozen=True, slots=True)
class FilterBatches(_OnBatches):
    """The elements for which the function gives true; a null is not."""

    type_info: ClassVar[None] = None

    def _result(self, columns: Columns, returned: object) -> Columns:
        mask = _array(returned)
        if not pa.types.is_boolean(mask.type) or len(mask) != len(columns):
            raise ProgramError(
                f"filter_batches: expected {len(columns)} truth values, one for each row, and got {len(mask)} values "
                f"of Arrow type {mask.type}"
            )
        return columns.filtered(mask)


@dataclass(frozen=True, slots=True)
class FlatMapBatches(_OnBatches):
    """Any number of elements, each with the time of the one that it comes from."""

    type_info: TypeInformation

    def _result(self, columns: Columns, returned: object) -> Columns:
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise ProgramError(
                "flat_map_batches: expected a pair of results and, for each of them, the number of the row that it "
                f"comes from, and got a {type(returned).__name__}"
            )
        values = values_of(returned[0], self.type_info)
        origins = np.asarray(returned[1])
        if not np.issubdtype(origins.dtype, np.integer) and len(origins):
            raise ProgramError(f"flat_map_batches: the numbers of rows are of type {origins.dtype}; give whole numbers")
        origins = origins.astype(np.int64)
        is_rising = bool((origins[1:] >= origins[:-1]).all())
        is_in_range = not len(origins) or 0 <= origins[0] <= origins[-1] < len(columns)
        if len(origins) != len(values) or not is_rising or not is_in_range:
            raise ProgramError(
                f"flat_map_batches: {len(values)} results need as many numbers of rows, from 0 to {len(columns) - 1}, "
                "in non-decreasing order: results stay in the order of the rows that they come from"
            )
        return replace(columns.at(pa.array(origins)), type_info=self.type_info, values=values)


def values_of(returned: object, type_info: TypeInformation) -> pa.Array:
    """Bring the result of a function on batches to a column of its declared type.

    Raises:
        ProgramError: if it is not a batch or array, or does not have the fields of the type.
        DataError: if a value does not fit the type.

    >>> from eventide.common import Types
    >>> pair = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
    >>> values_of(pa.record_batch({"b": ["x"], "a": [1]}), pair).to_pylist()
    [{'a': 1, 'b': 'x'}]
    """
    expected = type_info.arrow_type()
    if isinstance(returned, pa.Table):
        returned = returned.combine_chunks()
    if isinstance(returned, pa.RecordBatch | pa.Table):
        if not isinstance(type_info, CompositeTypeInfo):
            raise ProgramError(f"the function gave a batch with fields, and {type_info} is declared")
        missing = [name for name in type_info.field_names if name not in returned.schema.names]
        if missing or len(returned.schema.names) != len(type_info.field_names):
            raise ProgramError(
                f"the function gave a batch with the fields {', '.join(returned.schema.names)}, and {type_info} is "
                f"declared, whose fields are {', '.join(type_info.field_names)}"
            )
        arrays = [_cast(_array(returned.column(field.name)), field.type, field.name) for field in expected]
        return pa.StructArray.from_arrays(arrays, fields=list(expected))
    return _cast(_array(returned), expected, str(type_info))


def _array(returned: object) -> pa.Array:
    if isinstance(returned, pa.ChunkedArray):
        return returned.combine_chunks()
    if isinstance(returned, np.ndarray):
        return pa.array(returned)
    if not isinstance(returned, pa.Array):
        raise ProgramError(f"a function on batches must give an Arrow batch or array, not a {type(returned).__name__}")
    return returned


def _cast(array: pa.Array, expected: pa.DataType, what: str) -> pa.Array:
    if array.type == expected:
        return array
    try:
        return array.cast(expected)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{what}: a column of Arrow type {array.type} does not become {expected}: {error}") from error


BatchForm: TypeAlias = Literal["arrow", "pandas", "polars"]
"""The form of the batches that a function takes and returns."""


def on_arrow(where: str, function: object, form: BatchForm) -> Callable[[Any], Any]:
    """Return a function on batches of some form as a function on Arrow batches.

    Raises:
        ProgramError: if it cannot be called, or there is no such form, or its library is not installed.
    """
    if not callable(function):
        raise ProgramError(f"{where} takes a function of a batch, not {function!r}")
    if form not in get_args(BatchForm):
        raise ProgramError(f"{where}: form is one of {', '.join(map(repr, get_args(BatchForm)))}, not {form!r}")
    if form == "polars":
        try:
            importlib.import_module("polars")
        except ImportError:
            raise ProgramError(
                f"{where}: form='polars' needs Polars here and on the workers: {getting('polars')}"
            ) from None
    return function if form == "arrow" else OtherForm(function, form)


@dataclass(frozen=True, slots=True)
class OtherForm:
    """A function that takes pandas or Polars batches, and returns them, or Arrow.

    >>> double = OtherForm(lambda frame: frame.assign(n=2 * frame.n), "pandas")
    >>> double(pa.record_batch({"n": [1, 2]})).to_pydict()
    {'n': [2, 4]}
    """

    function: Callable[[Any], Any]
    form: BatchForm

    def __call__(self, batch: pa.RecordBatch | pa.Array) -> Any:
        """Call the function with a batch, and return its result as Arrow."""
        if self.form == "pandas":
            return _arrow(self.function(batch.to_pandas(integer_object_nulls=True)))
        return _arrow(self.function(importlib.import_module("polars").from_arrow(batch)))


def _arrow(returned: object) -> Any:
    if isinstance(returned, tuple):  # results and the rows that they come from
        return tuple(map(_arrow, returned))
    if hasattr(returned, "to_arrow"):  # of Polars
        return returned.to_arrow()
    if any(kind.__module__.startswith("pandas") for kind in type(returned).__mro__):
        is_frame = hasattr(returned, "columns")
        return (
            pa.RecordBatch.from_pandas(returned, preserve_index=False) if is_frame else pa.Array.from_pandas(returned)
        )
    return returned
