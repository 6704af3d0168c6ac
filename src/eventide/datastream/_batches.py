"""The forms of batches that functions take and return: Arrow, pandas and Polars."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa

from eventide._distribution import getting
from eventide.errors import ProgramError

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
