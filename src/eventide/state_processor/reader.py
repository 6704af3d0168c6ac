"""Savepoints that programs read: state as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.typeinfo.widening import type_of_text
from eventide.errors import ProgramError
from eventide.pickling.stand_ins import loads_anyway
from eventide.runtime.state.declared import DECLARED, declared_together
from eventide.runtime.state.expiring import SUFFIX, without_times
from eventide.runtime.state.key_context import FUNCTION_STATE
from eventide.savepoint import Savepoint
from eventide.savepoint.rows import BROADCAST, EVENT_TIMER, TIMERS, VALUE

if TYPE_CHECKING:
    import pyarrow as pa


class SavepointReader:
    """Reader of a savepoint, as tables of Arrow's; ``to_pandas()`` makes them those of pandas.

    A column has the type that the program declared for the state, else one that its values have; objects of classes
    are shown as text.

    Args:
        savepoint: the savepoint.
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
        """The operators that it has state of: their ``uid``, or else their id, and their name."""
        import pyarrow as pa

        operators = self._savepoint.header.program["operators"]
        rows = [{"uid": uid, "name": one["name"]} for uid, one in sorted(operators.items())]
        return pa.Table.from_pylist(rows, pa.schema([("uid", pa.string()), ("name", pa.string())]))

    def read_keyed_state(self, uid: str) -> pa.Table:
        """The state of the functions of an operator: a row for each key, and a column for each state by its name.

        Raises:
            ProgramError: if it has no state of that operator, or a state that is called ``key``.
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
        """The timers of an operator: the key, whether of ``event time`` or of the ``clock``, and when, in milliseconds.

        Raises:
            ProgramError: if it has no state of that operator.
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
        """A broadcast state of an operator: its keys, and the value of each.

        Raises:
            ProgramError: if it has no state of that operator.
        """
        rows = [row for row in self._rows(uid) if row["part"] == f"{BROADCAST}{name}/"]
        values = [loads_anyway(row["value_pickle"])[0] for row in rows]
        return _table({"key": ([loads_anyway(row["key_pickle"]) for row in rows], None), "value": (values, None)})

    def read_tables(self, uid: str) -> Mapping[str, pa.Table]:
        """Read the tables of an operator on columns, by the part of its state: panes, sessions, or the sides of a join.

        Raises:
            ProgramError: if it has no state of that operator.
        """
        import pyarrow as pa

        self._check(uid)
        found: dict[str, list[pa.Table]] = {}
        for part, table in self._savepoint.tables(uid):
            found.setdefault(part.strip("/"), []).append(table)
        return {part: pa.concat_tables(parts) for part, parts in found.items()}

    def _rows(self, uid: str) -> Iterator[dict[str, Any]]:
        self._check(uid)
        for table in self._savepoint.keyed_rows(uid):
            yield from table.to_pylist()

    def _check(self, uid: str) -> None:
        operators = self._savepoint.header.program["operators"]
        if uid not in operators:
            there = ", ".join(map(repr, operators)) or "no operator"
            raise ProgramError(f"the savepoint has no state of the operator {uid!r}; it has that of {there}")

    def _key_type(self, uid: str) -> TypeInformation | None:
        return _type(self._savepoint.header.program["operators"][uid].get("key type", ""))

    def _declared(self, uid: str) -> dict[str, TypeInformation | None]:
        """The types that the program declared for the states of functions, by their names."""
        stored = [row[3] for row in self._savepoint.small_rows() if row[0] == uid and row[2] == DECLARED]
        texts = json.loads(declared_together(stored))
        return {name.removeprefix(FUNCTION_STATE): _type(text) for name, text in texts.items()}


def _type(text: str) -> TypeInformation | None:
    with suppress(ValueError):
        found = type_of_text(text)
        return None if found.is_pickled else found
    return None


def _table(columns: Mapping[str, tuple[list[Any], TypeInformation | None]]) -> pa.Table:
    import pyarrow as pa

    return pa.table({name: _column(values, kind) for name, (values, kind) in columns.items()})


def _column(values: list[Any], kind: TypeInformation | None) -> pa.Array:
    """Values as a column: of their declared type, else of the one that they have, else as text."""
    import pyarrow as pa

    if kind is not None:
        with suppress(ValueError, TypeError):
            return kind.to_arrow(values)
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array([None if value is None else repr(value) for value in values], pa.string())
