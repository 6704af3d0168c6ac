"""What a CSV file looks like: its columns, and the characters between and around them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from eventide._absent import says_what_is_absent
from eventide.common.typeinfo import CompositeTypeInfo, ListTypeInfo, RowTypeInfo, TypeInformation, Types
from eventide.errors import ProgramError


@dataclass(frozen=True)
class CsvSchema:
    """The columns of CSV files and how they are written down; made with :meth:`builder`. PyFlink: ``CsvSchema``.

    ``row_type`` is a row type with names, or a tuple type by the position of the columns; None takes the columns of
    the first file.

    >>> schema = CsvSchema.builder().add_string_column("user").add_number_column("amount").set_use_header().build()
    >>> schema.row_type, len(schema)
    (ROW(user: STRING, amount: LONG), 2)
    """

    row_type: CompositeTypeInfo | None
    column_separator: str = ","
    quote_char: str | None = '"'
    escape_char: str | None = None
    null_value: str | None = None
    line_separator: str = "\n"
    use_header: bool = False
    reorder_columns: bool = False
    strict_headers: bool = False
    skip_first_data_row: bool = False
    array_separators: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Start with no columns, commas, double quotes, and no header."""
        return CsvSchemaBuilder()

    @property
    def needs_names(self) -> bool:
        """Whether the names in the header matter, because columns are found by them, or they are to be checked."""
        if not self.use_header or self.row_type is None:
            return self.use_header
        is_named = isinstance(self.row_type, RowTypeInfo) and self.row_type.names is not None
        return is_named and (self.reorder_columns or self.strict_headers)

    def size(self) -> int:
        """The number of columns; 0 while they are still to be found in a file."""
        return 0 if self.row_type is None else len(self.row_type.field_types)

    def __len__(self) -> int:
        return self.size()


@says_what_is_absent
@dataclass
class CsvSchemaBuilder:
    """Builds a :class:`CsvSchema`; each step changes the builder and returns it."""

    columns: tuple[tuple[str, TypeInformation], ...] = ()
    schema: CsvSchema = field(default_factory=lambda: CsvSchema(None))

    def build(self) -> CsvSchema:
        """The schema.

        Raises:
            ProgramError: There are no columns, or two of one name.
        """
        names, types = [name for name, _ in self.columns], [type_info for _, type_info in self.columns]
        return replace(self.schema, row_type=Types.ROW_NAMED(names, types))

    def add_column(self, name: str, type_info: TypeInformation) -> Self:
        """Add a column of any type that CSV can hold, such as ``Types.SQL_TIMESTAMP()``. Not in PyFlink."""
        self.columns = (*self.columns, (name, type_info))
        return self

    def add_string_column(self, name: str) -> Self:
        """Add a column of text."""
        return self.add_column(name, Types.STRING())

    def add_boolean_column(self, name: str) -> Self:
        """Add a column of ``true`` and ``false``."""
        return self.add_column(name, Types.BOOLEAN())

    def add_number_column(self, name: str, number_type: TypeInformation | None = None) -> Self:
        """Add a column of numbers, by default ``Types.LONG()``; the type is one of `Types`, not of ``DataTypes``."""
        return self.add_column(name, number_type or Types.LONG())

    def add_array_column(self, name: str, separator: str = ";", element_type: TypeInformation | None = None) -> Self:
        """Add a column of several values with a separator between them, by default of text; an empty one is None."""
        self.add_column(name, Types.LIST(element_type or Types.STRING()))
        return self._with(array_separators=(*self.schema.array_separators, (name, separator)))

    def add_columns_from(self, schema: CsvSchema) -> Self:
        """Add all columns of another schema."""
        row_type = schema.row_type
        added = () if row_type is None else tuple(zip(row_type.field_names, row_type.field_types, strict=True))
        self.columns = (*self.columns, *added)
        return self._with(array_separators=(*self.schema.array_separators, *schema.array_separators))

    def clear_columns(self) -> Self:
        """Drop all columns."""
        self.columns = ()
        return self._with(array_separators=())

    def set_column_separator(self, char: str) -> Self:
        """Set the character between two columns."""
        return self._with(column_separator=_one("column separator", char))

    def set_quote_char(self, char: str) -> Self:
        """Set the character around a value in which others have no meaning; doubled, it stands for itself."""
        return self._with(quote_char=_one("quote char", char))

    def disable_quote_char(self) -> Self:
        """Take quotes as part of a value."""
        return self._with(quote_char=None)

    def set_escape_char(self, char: str) -> Self:
        """Set the character that takes the meaning from the next one; by default there is none."""
        return self._with(escape_char=_one("escape char", char))

    def disable_escape_char(self) -> Self:
        """Let no character take the meaning from the next one."""
        return self._with(escape_char=None)

    def set_null_value(self, null_value: str) -> Self:
        """Set the text that stands for None; by default that is an empty value, except in a column of text."""
        return self._with(null_value=null_value)

    def set_line_separator(self, separator: str) -> Self:
        r"""Set what ends a line that is written; ``\n``, ``\r`` and ``\r\n`` are read in any case."""
        return self._with(line_separator=separator)

    def set_use_header(self, use: bool = True) -> Self:
        """Say that the first line is a header.

        It is passed over, and columns are found by their position, unless :meth:`set_strict_headers` or
        :meth:`set_reorder_columns` say something else.
        """
        return self._with(use_header=use)

    def set_reorder_columns(self, reorder: bool = True) -> Self:
        """Find columns by their names in the header; others are passed over. Not in PyFlink, but in Java's schema."""
        return self._with(reorder_columns=reorder)

    def set_strict_headers(self, strict: bool = True) -> Self:
        """Let the header have exactly the columns of the schema, in their order."""
        return self._with(strict_headers=strict)

    def set_skip_first_data_row(self, skip: bool = True) -> Self:
        """Pass over the first line behind the header."""
        return self._with(skip_first_data_row=skip)

    def size(self) -> int:
        """The number of columns so far."""
        return len(self.columns)

    def __len__(self) -> int:
        return self.size()

    def _with(self, **changes: object) -> Self:
        self.schema = replace(self.schema, **changes)  # type: ignore[arg-type]
        return self


def check_csv_types(schema: CsvSchema) -> None:
    """Check that every column of a schema can stand in one place of a line.

    Raises:
        ProgramError: naming the column.
    """
    arrays = {name for name, _ in schema.array_separators}
    row_type = schema.row_type
    for name, type_info in zip(row_type.field_names, row_type.field_types, strict=True) if row_type else ():
        listed = isinstance(type_info, ListTypeInfo)
        if isinstance(type_info, CompositeTypeInfo) or type_info.is_pickled or (listed and name not in arrays):
            raise ProgramError(
                f"a column of a CSV file cannot hold {type_info}, as {name!r} is to do; declare it as Types.STRING() "
                "and take it apart in a map function, or use add_array_column for a list"
            )


def _one(what: str, char: str) -> str:
    if len(char) != 1:
        raise ProgramError(f"the {what} of a CSV file must be a single character, not {char!r}")
    return char
