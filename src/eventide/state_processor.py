"""Savepoints that programs write, change and read: initial state of a job from a table, and state as a table.

Flink: the State Processor API, in a small form.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Generic, overload

import pyarrow as pa

from eventide import __version__
from eventide.api.functions import KeyedProcessFunction, KeySelector
from eventide.common.execution_config import MAX_PARALLELISM, check_parallelisms
from eventide.common.type_variables import KEY, IN_contra, KEY_co, KEY_contra, T, T_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.typeinfo.widening import type_of_text
from eventide.errors import DataError, ProgramError
from eventide.pickling.stand_ins import loads_anyway
from eventide.plan.identity import program_identity
from eventide.runtime.state.declared import declared_together, types_of
from eventide.runtime.state.expiring import SUFFIX, without_times
from eventide.runtime.state.key_context import FUNCTION_STATE
from eventide.savepoint import Header, Savepoint, StateWriter
from eventide.savepoint.bootstrapping import Bootstrap
from eventide.savepoint.directory import Directory, folder_of
from eventide.savepoint.fitting import Widening
from eventide.savepoint.rows import BROADCAST, EVENT_TIMER, TIMERS, VALUE, Small, elements_of
from eventide.savepoint.saved import copy_state

__all__ = [
    "OperatorTransformation",
    "OneInputOperatorTransformation",
    "KeyedOperatorTransformation",
    "StateBootstrapTransformation",
    "KeyedStateBootstrapFunction",
    "SavepointWriter",
    "SavepointReader",
]


class SavepointReader:
    """Reader of a savepoint, as Arrow tables; their ``to_pandas()`` converts them.

    A column has the type that the program declared for the state, else the type of its values; objects of classes are
    shown as text.
    """

    def __init__(self, savepoint: Savepoint) -> None:
        self._savepoint = savepoint

    @staticmethod
    def read(location: str) -> SavepointReader:
        """Open a savepoint.

        Raises:
            ProgramError: if Arrow cannot open it.
            StateError: if the savepoint is missing or incomplete, or was changed after it was written.
        """
        return SavepointReader(Savepoint(location, verify=True))

    def operators(self) -> pa.Table:
        """The operators that have state: their ``uid``, or else their id, and their name."""
        operators = self._savepoint.header.program["operators"]
        rows = [{"uid": uid, "name": one["name"]} for uid, one in sorted(operators.items())]
        return pa.Table.from_pylist(rows, pa.schema([("uid", pa.string()), ("name", pa.string())]))

    def read_keyed_state(self, uid: str) -> pa.Table:
        """The state of the functions of an operator: a row for each key, and a column for each state by its name.

        Raises:
            ProgramError: if the operator has no state, or a state that is called ``key``.
        """
        by_key: dict[bytes, dict[str, Any]] = {}
        for row in self._rows(uid):
            name = row["name"] or ""
            if row["kind"] == VALUE and not row["part"] and name.startswith(FUNCTION_STATE):
                value = loads_anyway(row["value_pickle"])
                expires, name = name.endswith(SUFFIX), name.removeprefix(FUNCTION_STATE).removesuffix(SUFFIX)
                by_key.setdefault(row["key_pickle"], {})[name] = without_times(value) if expires else value
        types = self._declared(uid)
        names = dict.fromkeys(name for values in by_key.values() for name in values)
        if "key" in names:
            raise ProgramError(
                f"the operator {uid!r} has a state that is called 'key', as the column of keys is; read the files of "
                f"{self._savepoint.location}/keyed, which are Parquet"
            )
        columns = {name: ([values.get(name) for values in by_key.values()], types.get(name)) for name in names}
        return _table({"key": ([*map(loads_anyway, by_key)], self._key_type(uid)), **columns})

    def read_timers(self, uid: str) -> pa.Table:
        """The timers of an operator: the key, the kind (``event time`` or ``clock``), and the time, in milliseconds.

        Raises:
            ProgramError: if the operator has no state.
        """
        rows = [row for row in self._rows(uid) if row["kind"] in TIMERS]
        return _table(
            {
                "key": ([loads_anyway(row["key_pickle"]) for row in rows], self._key_type(uid)),
                "time": (["event time" if row["kind"] == EVENT_TIMER else "clock" for row in rows], Types.STRING()),
                "time_ms": ([row["time_ms"] for row in rows], Types.LONG()),
            }
        )

    def read_broadcast_state(self, uid: str, name: str) -> pa.Table:
        """A broadcast state of an operator: its keys and their values.

        Raises:
            ProgramError: if the operator has no state.
        """
        rows = [row for row in self._rows(uid) if row["part"] == f"{BROADCAST}{name}/"]
        values = [loads_anyway(row["value_pickle"])[0] for row in rows]
        return _table({"key": ([loads_anyway(row["key_pickle"]) for row in rows], None), "value": (values, None)})

    def read_tables(self, uid: str) -> Mapping[str, pa.Table]:
        """Read the tables of a columnar operator, by the part of its state: panes, sessions, or the sides of a join.

        Raises:
            ProgramError: if the operator has no state.
        """
        self._check(uid)
        found: dict[str, list[pa.Table]] = {}
        for part, table in self._savepoint.tables(uid):
            found.setdefault(part.strip("/"), []).append(table)
        return {part: pa.concat_tables(parts) for part, parts in found.items()}

    def _rows(self, uid: str) -> Iterator[dict[str, Any]]:
        self._check(uid)
        widening = Widening({}, {}, self._savepoint.declared(uid))
        for table in self._savepoint.keyed_rows(uid):
            yield from widening.of_rows(table).to_pylist()

    def _check(self, uid: str) -> None:
        operators = self._savepoint.header.program["operators"]
        if uid not in operators:
            there = ", ".join(map(repr, operators)) or "no operator"
            raise ProgramError(f"the savepoint has no state of the operator {uid!r}; it has that of {there}")

    def _key_type(self, uid: str) -> TypeInformation | None:
        return _type(self._savepoint.header.program["operators"][uid].get("key type", ""))

    def _declared(self, uid: str) -> dict[str, TypeInformation | None]:
        """The types that the program declared for the states of functions, by their names."""
        texts = types_of(declared_together(self._savepoint.declared(uid).values()))
        return {name.removeprefix(FUNCTION_STATE): _type(text) for name, text in texts.items()}


def _type(text: str) -> TypeInformation | None:
    with suppress(ValueError):
        found = type_of_text(text)
        return None if found.is_pickled else found
    return None


def _table(columns: Mapping[str, tuple[list[Any], TypeInformation | None]]) -> pa.Table:
    return pa.table({name: _column(values, kind) for name, (values, kind) in columns.items()})


def _column(values: list[Any], kind: TypeInformation | None) -> pa.Array:
    """Return values as a column: of their declared type, else of their own, else as text."""
    if kind is not None:
        with suppress(ValueError, TypeError, DataError):
            return kind.to_arrow(values)
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array([None if value is None else repr(value) for value in values], pa.string())


_AT_ONCE = 65_536


class OperatorTransformation:
    """Entry point for the state of an operator."""

    @overload
    @staticmethod
    def bootstrap_with(data: Sequence[T] | AbstractSet[T] | Iterator[T]) -> OneInputOperatorTransformation[T]: ...

    @overload
    @staticmethod
    def bootstrap_with(data: object) -> OneInputOperatorTransformation[Any]: ...

    @staticmethod
    def bootstrap_with(data: object) -> OneInputOperatorTransformation[Any]:
        """Start with data: any iterable of elements, or a table, whose rows become elements of type `Row`.

        Args:
            data: an iterable (an iterator is read at once); a pandas DataFrame, or an Arrow table; or a Spark
                DataFrame, whose rows become state in parallel, in Spark's tasks.

        >>> OperatorTransformation.bootstrap_with([("a", 1), ("b", 2)]).key_by(lambda pair: pair[0])
        KeyedOperatorTransformation of list
        """
        _check_data(data)
        return OneInputOperatorTransformation([*data] if isinstance(data, Iterator) else data)


@dataclass(frozen=True)
class OneInputOperatorTransformation(Generic[T_co]):
    """Data without keys."""

    data: object

    @overload
    def key_by(
        self, key_selector: str, key_type: str | None = None, *more: str
    ) -> KeyedOperatorTransformation[Any, T_co]: ...

    @overload
    def key_by(
        self, key_selector: KeySelector[T_co, KEY] | Callable[[T_co], KEY], key_type: TypeInformation | None = None
    ) -> KeyedOperatorTransformation[KEY, T_co]: ...

    def key_by(
        self, key_selector: object, key_type: object = None, *more: str
    ) -> KeyedOperatorTransformation[Any, T_co]:
        """Set the key of each element, as `DataStream.key_by` does: a function and the type of keys, or fields by name.

        It must give the same keys as the job. A declared type is compared with that of the job.

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
class KeyedOperatorTransformation(Generic[KEY_co, T_co]):
    """Data by key."""

    data: object
    select: Callable[[Any], Any]
    key_type: TypeInformation | None

    def transform(self, function: KeyedStateBootstrapFunction[KEY_co, T_co]) -> StateBootstrapTransformation:
        """Set the function that makes state of the data.

        Raises:
            ProgramError: if it is not a `KeyedStateBootstrapFunction`.
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


class KeyedStateBootstrapFunction(KeyedProcessFunction[KEY_contra, IN_contra, Any]):
    """Makes the state of a keyed operator: it is called with each element, and writes the state of its key.

    Its states must have the names and types of the states in the job. It may set event-time and processing-time timers:
    they fire in the function of the job.

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
    def process_element(self, value: IN_contra, ctx: KeyedProcessFunction.Context[KEY_contra]) -> None:
        """Write what should be kept of an element into the state of its key; nothing is emitted."""


def _is_data_frame(data: object) -> bool:
    """Whether the data are a Spark DataFrame."""
    return hasattr(data, "mapInArrow")


def _check_data(data: object) -> None:
    """Refuse data that cannot become state.

    Raises:
        ProgramError: if it is neither an iterable nor a table.
    """
    is_known = isinstance(data, Iterable | pa.Table | pa.RecordBatch) or _is_data_frame(data)
    if isinstance(data, str | bytes) or not is_known:
        raise ProgramError(
            f"bootstrap_with needs an iterable, a table of pandas or Arrow, or a Spark DataFrame, not {data!r}"
        )


def _elements_here(data: Any) -> Iterable[Any]:
    """The elements of local data; the rows of a table have their fields by name."""
    if type(data).__module__.partition(".")[0] == "pandas":
        data = pa.Table.from_pandas(data, preserve_index=False)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return chain.from_iterable(map(elements_of, data.to_batches(max_chunksize=_AT_ONCE)))
    found: Iterable[Any] = data
    return found


@dataclass(frozen=True)
class SavepointWriter:
    """Builder of a savepoint. It is a value: each call returns a new builder, and `write` writes the savepoint.

    >>> import tempfile
    >>> from eventide.common import Types
    >>> from eventide.api.state import ValueStateDescriptor
    >>> from eventide.state_processor import KeyedStateBootstrapFunction, OperatorTransformation, SavepointReader
    >>> class Totals(KeyedStateBootstrapFunction):
    ...     def open(self, runtime_context):
    ...         self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
    ...
    ...     def process_element(self, value, ctx):
    ...         self.total.update(value[1])
    >>> totals = OperatorTransformation.bootstrap_with([("a", 1), ("b", 2)]).key_by(lambda pair: pair[0])
    >>> with tempfile.TemporaryDirectory() as location:
    ...     SavepointWriter.new_savepoint().with_operator("totals", totals.transform(Totals())).write(location)
    ...     SavepointReader.read(location).read_keyed_state("totals").sort_by("key").to_pylist()
    [{'key': 'a', 'total': 1}, {'key': 'b', 'total': 2}]
    """

    max_parallelism: int
    parallelism: int | None = None
    existing: Savepoint | None = None
    removed: frozenset[str] = frozenset()
    added: Mapping[str, StateBootstrapTransformation] = field(default_factory=lambda: MappingProxyType({}))

    @staticmethod
    def new_savepoint(max_parallelism: int = MAX_PARALLELISM, parallelism: int | None = None) -> SavepointWriter:
        """Start with an empty savepoint.

        Args:
            max_parallelism: the number of key groups, equal to that of the job: see
                `StreamExecutionEnvironment.set_max_parallelism`.
            parallelism: the parallelism of a job that starts from it and sets none; and the number of tasks that write
                the state from a Spark DataFrame.

        Raises:
            ProgramError: if a number is out of range.
        """
        check_parallelisms(parallelism, max_parallelism)
        return SavepointWriter(max_parallelism, parallelism)

    @staticmethod
    def from_existing_savepoint(location: str) -> SavepointWriter:
        """Start with the contents of a savepoint, which itself stays unchanged.

        Raises:
            ProgramError: if Arrow cannot open it.
            StateError: if the savepoint is missing or incomplete, or was changed after it was written.
        """
        found = Savepoint(location, verify=True)
        return SavepointWriter(found.header.program["max parallelism"], found.header.parallelism, found)

    def with_operator(self, uid: str, transformation: StateBootstrapTransformation) -> SavepointWriter:
        """Add the state of an operator.

        Args:
            uid: its ``uid``.
            transformation: the transformation that makes its state.

        Raises:
            ProgramError: if it has state already, or `transformation` is not a `StateBootstrapTransformation`.
        """
        if not isinstance(transformation, StateBootstrapTransformation):
            raise ProgramError(
                "with_operator needs the result of bootstrap_with(...).key_by(...).transform(...), not "
                f"{transformation!r}"
            )
        if not isinstance(uid, str) or not uid:
            raise ProgramError(f"with_operator needs the uid of an operator, not {uid!r}")
        if uid in self.added or (uid in self._operators and uid not in self.removed):
            raise ProgramError(f"there is state of the operator {uid!r} already; call remove_operator({uid!r}) before")
        return replace(self, added={**self.added, uid: transformation})

    def remove_operator(self, uid: str) -> SavepointWriter:
        """Remove the state of an operator, by its ``uid`` or by the id that `SavepointReader.operators` shows.

        Raises:
            ProgramError: if there is no such state.
        """
        if uid in self.added:
            return replace(self, added={one: how for one, how in self.added.items() if one != uid})
        if uid not in self._operators or uid in self.removed:
            there = ", ".join(map(repr, [*self._operators, *self.added])) or "no operator"
            raise ProgramError(f"there is no state of the operator {uid!r}; there is that of {there}")
        return replace(self, removed=self.removed | {uid})

    def write(self, location: str) -> None:
        """Write the savepoint into a new directory, on any store that Arrow opens.

        Without a scheme it is a local one; with a Spark DataFrame among the data, it is what Spark takes it for, and
        Spark's workers must reach it.

        Raises:
            ProgramError: if Arrow cannot open it.
            StateError: if the directory is not empty.
            UserFunctionError: if a function raised.
        """
        frames = [how.data for how in self.added.values() if _is_data_frame(how.data)]
        if frames:
            from eventide.spark.session.locations import resolved

            location = resolved(frames[0].sparkSession, location)
        writer = StateWriter(location, self.max_parallelism)
        writer.begin()
        small: list[Small] = []
        try:
            if self.existing is not None:
                small += copy_state(self.existing, Directory(location), self.removed)
            for uid, transformation in self.added.items():
                bootstrap = replace(transformation.bootstrap, operator=uid)
                small += _written(transformation.data, bootstrap, writer, f"bootstrapped/{folder_of(uid)}/0", self)
            writer.finish(self._header(), small)
        except BaseException:
            writer.abandon()
            raise

    @property
    def _operators(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = {} if self.existing is None else self.existing.header.program["operators"]
        return found

    def _header(self) -> Header:
        kept = {operator: one for operator, one in self._operators.items() if operator not in self.removed}
        made = {uid: replace(how.bootstrap, operator=uid).identity() for uid, how in self.added.items()}
        if self.existing is None:
            program = program_identity((), made, (), self.parallelism, self.max_parallelism)
            return Header(None, None, self.parallelism, program, None, (), {"eventide": __version__})
        header = self.existing.header
        return replace(header, program={**header.program, "operators": {**kept, **made}})


def _written(data: Any, bootstrap: Bootstrap, writer: StateWriter, place: str, what: SavepointWriter) -> list[Small]:
    """Write the state that is made of data, and return its small values."""
    if _is_data_frame(data):
        from eventide.spark.checkpoint.savepoint import bootstrap_on_spark

        return bootstrap_on_spark(data, bootstrap, writer, place, what.parallelism)
    values = bootstrap.run(bootstrap.keyed(_elements_here(data)), writer.max_parallelism)
    return writer.write(place, 0, values)
