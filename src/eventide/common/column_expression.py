"""Expressions of ``pyarrow.compute`` over the fields of elements: keys, timestamps and what joins compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation, type_info_from_arrow
from eventide.errors import DataError, ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ColumnExpression", "is_expression"]


def is_expression(value: object) -> bool:
    """Say whether a value is an expression of ``pyarrow.compute``, without importing that."""
    return type(value).__name__ == "Expression" and type(value).__module__.startswith("pyarrow.")


class ColumnExpression:
    """A function of an element that computes an expression of ``pyarrow.compute`` over its fields.

    It always has the meaning of Arrow on columns: single elements become a column before it is computed. Arrow checks
    sums, differences and products, so that a number beyond 64 bits is an error; a missing field makes the result None.

    Attributes:
        expression: The expression.
        element_type: The type of the elements, which has fields.
        result_type: The type of its results.
        arrow_type: Arrow's type of its results.

    Raises:
        ProgramError: The elements have no declared fields, or the expression does not fit them.

    >>> import pyarrow.compute as pc
    >>> from eventide.common import Row, Types
    >>> order = Types.ROW_NAMED(["user", "cents"], [Types.STRING(), Types.LONG()])
    >>> whole = ColumnExpression(pc.field("cents") + 100, order, "key_by")
    >>> whole(Row(user="ann", cents=5)), whole.result_type
    (105, LONG)
    """

    def __init__(self, expression: Any, element_type: TypeInformation, where: str) -> None:
        if not isinstance(element_type, CompositeTypeInfo):
            raise ProgramError(
                f"{where}: the expression {expression} reads fields, and the elements are of type {element_type}; "
                "declare a type with fields for them (output_type, or type_info of the source), or use a function"
            )
        self.expression = expression
        self.element_type = element_type
        self.__qualname__ = str(expression)
        try:
            found = self.of_rows(element_type.to_arrow([]))
            self.arrow_type = found.type
            self.result_type = type_info_from_arrow(found.type)
        except (DataError, ProgramError) as error:
            raise ProgramError(
                f"{where}: {error}; the elements are of type {element_type}: name its fields, or cast if types differ"
            ) from error

    @property
    def field(self) -> str | None:
        """The field that it returns unchanged; None for any other expression."""
        import pyarrow.compute as pc

        names = self.element_type.field_names
        return next((name for name in names if self.expression.equals(pc.field(name))), None)

    def __call__(self, element: object) -> Any:
        """The result for one element."""
        return self.of_elements([element])[0]

    def of_elements(self, elements: Sequence[Any]) -> list[Any]:
        """The result for each of some elements.

        Raises:
            TypeMismatch: An element is not of its declared type.
            DataError: One cannot be computed.
        """
        return self.result_type.from_arrow(self.of_rows(self.element_type.to_arrow(elements)))

    def of_rows(self, rows: pa.StructArray) -> pa.Array:
        """The results for elements that are columns.

        Raises:
            DataError: One cannot be computed, or an element is None.
        """
        import pyarrow as pa

        if rows.null_count:
            raise DataError(f"an element is None, so {self.expression} finds no fields in it")
        try:
            return self._computed(pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)]))
        except pa.ArrowException as error:
            raise DataError(f"{self.expression} cannot be computed: {' '.join(str(error).split())}") from error

    def _computed(self, table: pa.Table) -> pa.Array:
        from pyarrow import acero

        plan = [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
            acero.Declaration("project", acero.ProjectNodeOptions([self.expression], ["result"])),
        ]
        # One thread keeps the order of the rows.
        results = acero.Declaration.from_sequence(plan).to_table(use_threads=False).column(0)
        return results.chunk(0) if results.num_chunks == 1 else results.combine_chunks()

    def fields(self) -> tuple[str, ...]:
        """The names of the fields that it reads, without which it cannot be computed."""
        import pyarrow as pa

        rows = pa.RecordBatch.from_struct_array(self.element_type.to_arrow([]))
        read = []
        for name in self.element_type.field_names:
            try:
                self._computed(pa.Table.from_batches([rows]).drop_columns([name]))
            except pa.ArrowException:
                read.append(name)
        return tuple(read)
