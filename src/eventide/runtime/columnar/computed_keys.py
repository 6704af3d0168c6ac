"""Keys that a function of the program computes, for operators on columns: a column for each part of the key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eventide.common.column_expression import ColumnExpression
from eventide.common.typeinfo import TupleTypeInfo, TypeInformation
from eventide.errors import DataError, TypeMismatch
from eventide.runtime.elements.elements import Columns, Elements, columns_of_fields, from_fields
from eventide.runtime.exchange.selected_keys import extracted_keys, selector_of
from eventide.runtime.invoke import repr_of
from eventide.runtime.tasks.operator import Key, tells_apart
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import fields_read, mapped, result_type, traced
from eventide.runtime.tracing.expressions import Composite, leaves
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import reason_of, why_python

if TYPE_CHECKING:
    import pyarrow as pa


def computed_key(key: Key | None, value_type: TypeInformation) -> ComputedKey | str | None:
    """The key of elements of a type, if a function computes it; None if it consists of fields, or there is none.

    If columns cannot have the key, the reason, and what to change.
    """
    if key is None or key.is_columnar:
        return None
    if key.columns:
        return f"columns cannot tell keys of type {key.type_info} apart; key by plain fields"
    computed = ComputedKey.of(key, value_type)
    if isinstance(computed, ComputedKey):
        return computed
    return f"the key selector is Python: {computed}; name fields, or declare the key_type"


def columns_of_key(
    fields: Sequence[str], computed: ComputedKey | None, value_type: TypeInformation
) -> list[pa.DataType]:
    """The types of the columns of a key that consists of fields of elements of a type, or is computed."""
    if computed is not None:
        return computed.types
    types = {field.name: field.type for field in value_type.arrow_type()} if fields else {}
    return [types[name] for name in fields]


@dataclass(frozen=True, slots=True)
class ComputedKey:
    """A key that a function computes of each element; ``kind`` is its type, and equal values of it are the same.

    The type is declared, or, if not ``is_declared``, that of the function's trace. ``why`` is the reason why the
    function is called with each element; empty if it runs on columns.

    >>> from eventide.common.typeinfo import Types
    >>> order = Types.ROW_NAMED(["shop", "cents"], [Types.STRING(), Types.LONG()])
    >>> ComputedKey.of(Key(lambda e: (e.shop, e.cents // 100), Types.PICKLED_BYTE_ARRAY()), order).kind
    TUPLE(STRING, LONG)
    """

    select: Callable[[Any], Any]
    kind: TypeInformation
    is_declared: bool
    why: str = ""

    @classmethod
    def of(cls, key: Key, value_type: TypeInformation) -> ComputedKey | str:
        """The key of elements of a type; if columns do not tell its keys apart as Python does, the reason.

        A function that stays Python has a key of its declared type.
        """
        found = list[ComputedKey]()
        reason = why_python(lambda: found.append(cls._traced(key, value_type)), key.select, value_type)
        if reason is None:
            return found[0]
        # Columns do not tell None from a tuple of None, which only a trace shows a function never to give.
        if isinstance(key.type_info, TupleTypeInfo) or not tells_apart(key.type_info):
            return reason
        return cls(key.select, key.type_info, is_declared=True, why=reason)

    @classmethod
    def _traced(cls, key: Key, value_type: TypeInformation) -> ComputedKey:
        select, declared = key.select, None if key.type_info.is_pickled else key.type_info
        if isinstance(select, ColumnExpression):
            kind = select.result_type
            if declared not in (None, kind):
                raise NotTraceable(f"it gives {kind}, and {declared} is declared")
        else:
            found = traced(select, value_type)
            if declared is None and selector_of(select) is not None and not found.admission.is_closed:
                raise NotTraceable("it is an object that may change when it is opened, and its type is not declared")
            kind = result_type(found, declared)
            if isinstance(kind, TupleTypeInfo) and not all(
                type(leaf.result) is Composite for _, leaf in leaves(found.tree)
            ):
                raise NotTraceable(f"it may give something else than a new tuple, where others are {kind}")
        if not tells_apart(kind):
            raise NotTraceable(f"columns do not tell keys of type {kind} apart as Python does")
        return cls(select, kind, declared is not None)

    def describe(self) -> str:
        """How keys are found, for ``explain``."""
        return f"by key ({self.kind}, {f'found in Python, because {self.why}' if self.why else 'computed on columns'})"

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the columns."""
        kind = self.kind
        return [part.arrow_type() for part in (kind.types if isinstance(kind, TupleTypeInfo) else [kind])]

    def fields_read(self, value_type: TypeInformation) -> frozenset[str] | None:
        """The fields of elements of a type that the function reads; None if that is not known."""
        return None if self.why or isinstance(self.select, ColumnExpression) else fields_read(self.select, value_type)

    def columns(self, elements: Columns) -> tuple[list[pa.Array], str | None]:
        """The columns of the keys of elements; and why the function is called because of what they contain.

        Raises:
            NoKey: if the function raised then, or gave a key of another type.
            DataError: if it gave a key that its type cannot hold, and that type was not declared, but found by tracing.
        """
        keys = reason = None
        try:
            keys = None if self.why else mapped(self.select, elements, self.kind)[0]
        except (Guard, NotTraceable) as error:
            reason = reason_of(error)
        if keys is None:
            keys = self.kind.to_arrow(self._called(Elements(columns=elements)))
        return columns_of_fields(keys, self.kind), reason

    def _called(self, elements: Elements) -> list[Any]:
        if self.is_declared:
            return extracted_keys(self.select, elements, self.kind)
        keys = extracted_keys(self.select, elements)
        try:
            return self.kind.as_declared(keys)
        except TypeMismatch as error:
            key, element = repr_of(keys[error.index]), repr_of(elements.values[error.index])
            raise DataError(
                f"the key {key} of the element {element} is no value of {self.kind}, which the code of the key "
                "selector shows; use key_by(in_python(...)) to have keys of any type"
            ) from error

    def of_columns(self, columns: Sequence[pa.Array], wanted: TypeInformation) -> pa.Array:
        """The keys as values of a type, given their columns."""
        keys = from_fields(columns, self.kind)
        return wanted.to_arrow(self.kind.from_arrow(keys)) if wanted != self.kind else keys
