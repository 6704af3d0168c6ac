"""Description of an aggregate: a function, a column, options, and a name for the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from eventide.aggregates._results import result_type
from eventide.common.typeinfo import TypeInformation
from eventide.errors import ProgramError


@dataclass(frozen=True, repr=False)
class ColumnAggregate:
    """One aggregate of a column. Made with the functions of `eventide.aggregates`; a value that compares and pickles.

    Its `repr` is the call that makes it, with all options; it is the same in every process and release, because it
    is part of what a checkpoint remembers of a program.

    Attributes:
        function: The name of the function that made it, such as ``sum_``.
        column: The name of the column, or None for ``count()``.
        default_name: What the result is called unless `alias` says otherwise: Spark's name, such as ``sum(amount)``.
        options: The other arguments, as pairs of name and value.
        name: The name given with `alias`, or None.

    >>> from eventide.aggregates import sum_
    >>> total = sum_("amount").alias("total")
    >>> total
    sum_('amount').alias('total')
    >>> total.output_name, sum_("amount").output_name
    ('total', 'sum(amount)')
    """

    function: str
    column: str | None
    default_name: str
    options: tuple[tuple[str, Any], ...] = ()
    name: str | None = None

    @property
    def output_name(self) -> str:
        """The name of the result's column."""
        return self.default_name if self.name is None else self.name

    def alias(self, name: str) -> Self:
        """Return the same aggregate with another name for its result.

        Raises:
            ProgramError: The name is empty, or no text.

        >>> from eventide.aggregates import count
        >>> count().alias("orders").output_name
        'orders'
        """
        if not isinstance(name, str) or not name:
            message = f"{self!r}.alias: expected a name for the result, got {name!r}"
            raise ProgramError(message)
        return replace(self, name=name)

    def result_type(self, input_type: TypeInformation | None = None) -> TypeInformation:
        """Return the type of the result, given the type of the column; ``count()`` needs none.

        Raises:
            ProgramError: The aggregate cannot take a column of this type; the message names both.

        >>> from eventide.aggregates import collect_list, mean, sum_
        >>> from eventide.common import Types
        >>> sum_("n").result_type(Types.INT()), mean("n").result_type(Types.INT())
        (LONG, DOUBLE)
        >>> collect_list("n").result_type(Types.INT())
        LIST(INT)
        """
        return result_type(self.function, repr(self), self.column, input_type)

    def option(self, name: str) -> Any:
        """Return the value of one option, such as ``ignore_nulls`` of `first`."""
        return dict(self.options)[name]

    def __repr__(self) -> str:
        arguments = [] if self.column is None else [repr(self.column)]
        arguments += [f"{name}={value!r}" for name, value in self.options]
        alias = "" if self.name is None else f".alias({self.name!r})"
        return f"{self.function}({', '.join(arguments)}){alias}"


def column_aggregate(function: str, column: str, default_name: str, **options: Any) -> ColumnAggregate:
    """Make an aggregate of one column.

    Raises:
        ProgramError: The column is not given by its name.
    """
    if not isinstance(column, str) or not column:
        message = f"{function}: expected the name of a column, got {column!r}"
        raise ProgramError(message)
    return ColumnAggregate(function, column, default_name, tuple(options.items()))
