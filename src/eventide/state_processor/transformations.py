"""From data to the state of an operator, step by step, as the names of Flink's State Processor API have it."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

from eventide.api.functions import KeyedProcessFunction, KeySelector
from eventide.common.typeinfo import TypeInformation
from eventide.errors import ProgramError
from eventide.savepoint.bootstrapping import Bootstrap
from eventide.savepoint.rows import elements_of

_AT_ONCE = 65_536


class OperatorTransformation:
    """Where it begins."""

    @staticmethod
    def bootstrap_with(data: Any) -> OneInputOperatorTransformation:
        """Begin with data: any iterable of elements, or a table, whose rows become elements of type `Row`.

        Args:
            data: an iterable (an iterator is read at once); a pandas DataFrame, or a table of Arrow's; or a Spark
                DataFrame, whose rows become state where Spark has them, in parallel.

        >>> OperatorTransformation.bootstrap_with([("a", 1), ("b", 2)]).key_by(lambda pair: pair[0])
        KeyedOperatorTransformation of list
        """
        check_data(data)
        return OneInputOperatorTransformation([*data] if isinstance(data, Iterator) else data)


@dataclass(frozen=True)
class OneInputOperatorTransformation:
    """Data without keys."""

    data: Any

    def key_by(self, key_selector: Any, key_type: Any = None, *more: str) -> KeyedOperatorTransformation:
        """Say the key of each element, as `DataStream.key_by` does: a function and the type of keys, or fields by name.

        It must find the keys that the job finds. A type that is given here is compared with that of the job.

        Raises:
            ProgramError: if it is neither.
        """
        if isinstance(key_selector, str):
            names = [key_selector, *([] if key_type is None else [key_type]), *more]
            if not all(isinstance(name, str) for name in names):
                raise ProgramError(f"key_by takes one function, or the names of fields, not {names!r}")
            return KeyedOperatorTransformation(self.data, itemgetter(*names), None)
        select = key_selector.get_key if isinstance(key_selector, KeySelector) else key_selector
        if not callable(select) or more or not isinstance(key_type, TypeInformation | None):
            raise ProgramError(f"key_by takes a function and the type of keys, or names, not {key_selector!r}")
        return KeyedOperatorTransformation(self.data, select, key_type)


@dataclass(frozen=True, repr=False)
class KeyedOperatorTransformation:
    """Data by key."""

    data: Any
    select: Callable[[Any], Any]
    key_type: TypeInformation | None

    def transform(self, function: KeyedStateBootstrapFunction) -> StateBootstrapTransformation:
        """Say what makes state of them.

        Raises:
            ProgramError: if it is no `KeyedStateBootstrapFunction`.
        """
        if not isinstance(function, KeyedStateBootstrapFunction):
            raise ProgramError(f"transform needs a KeyedStateBootstrapFunction, not {function!r}")
        made = Bootstrap("", function, self.select, self.key_type, time.time_ns() // 1_000_000)
        return StateBootstrapTransformation(self.data, made)

    def __repr__(self) -> str:
        return f"KeyedOperatorTransformation of {type(self.data).__name__}"


@dataclass(frozen=True)
class StateBootstrapTransformation:
    """Transformation that makes the state of an operator; it is done when the savepoint is written."""

    data: Any
    bootstrap: Bootstrap


class KeyedStateBootstrapFunction(KeyedProcessFunction):
    """Makes the state of a keyed operator: it is called with each element, and puts what it wants into its state.

    The names and types of its states are those of the function that will find them. It may set timers, of event time
    and of the clock: they fire in the job, in the function of the job.

    >>> from eventide.common import Types
    >>> from eventide.api.state import ValueStateDescriptor
    >>> class Totals(KeyedStateBootstrapFunction):
    ...     def open(self, runtime_context):
    ...         self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
    ...
    ...     def process_element(self, value, ctx):
    ...         self.total.update(value["total"])
    """

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        """Put what should be kept of an element into the state of its key; nothing comes out."""


def is_data_frame(data: Any) -> bool:
    """Whether it is a DataFrame of Spark's."""
    return hasattr(data, "mapInArrow")


def check_data(data: Any) -> None:
    """Refuse what no state can be made of.

    Raises:
        ProgramError: if it is no iterable, and no table.
    """
    import pyarrow as pa

    is_known = isinstance(data, Iterable | pa.Table | pa.RecordBatch) or is_data_frame(data)
    if isinstance(data, str | bytes) or not is_known:
        raise ProgramError(
            f"bootstrap_with needs an iterable, a table of pandas or Arrow, or a Spark DataFrame, not {data!r}"
        )


def elements_here(data: Any) -> Iterable[Any]:
    """The elements of data that are here; the rows of a table have their fields by name."""
    import pyarrow as pa

    if type(data).__module__.partition(".")[0] == "pandas":
        data = pa.Table.from_pandas(data, preserve_index=False)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return chain.from_iterable(map(elements_of, data.to_batches(max_chunksize=_AT_ONCE)))
    found: Iterable[Any] = data
    return found
