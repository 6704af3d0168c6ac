"""Result of a join on columns: ``select(left("id"), right("price").alias("paid"), window())``. Not in PyFlink."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from eventide.errors import ProgramError

__all__ = ["JoinedColumn", "left", "right", "window"]


@dataclass(frozen=True, repr=False)
class JoinedColumn:
    """One field of the rows of a join. Made with `left`, `right` and `window`; a value that compares and pickles.

    Attributes:
        side: The stream that it comes from: 0 is the left, or first, one, 1 the right, or second, one; None is the
            window.
        column: The name of the field there.
        name: The name given with `alias`, or None.

    >>> right("price").alias("paid").output_name, right("price").output_name
    ('paid', 'price')
    """

    side: int | None
    column: str
    name: str | None = None

    @property
    def output_name(self) -> str:
        """The name of the field in the result."""
        return self.column if self.name is None else self.name

    def alias(self, name: str) -> Self:
        """Return the same field under another name.

        Raises:
            ProgramError: The name is empty, or not text.
        """
        if not isinstance(name, str) or not name:
            raise ProgramError(f"{self!r}.alias: expected a name for the result, got {name!r}")
        return replace(self, name=name)

    def __repr__(self) -> str:
        made = "window()" if self.side is None else f"{('left', 'right')[self.side]}({self.column!r})"
        return made if self.name is None else f"{made}.alias({self.name!r})"


def left(column: str) -> JoinedColumn:
    """A field of the elements of the left, or first, stream.

    Raises:
        ProgramError: The name is empty, or not text.
    """
    return JoinedColumn(0, _checked(column, "left"))


def right(column: str) -> JoinedColumn:
    """A field of the elements of the right, or second, stream.

    Raises:
        ProgramError: The name is empty, or not text.

    >>> right("price")
    right('price')
    """
    return JoinedColumn(1, _checked(column, "right"))


def window() -> JoinedColumn:
    """The window in which two elements met: a ``TimeWindow``, in columns the struct that Spark's ``window`` gives."""
    return JoinedColumn(None, "window")


def _checked(column: str, function: str) -> str:
    if not isinstance(column, str) or not column:
        raise ProgramError(f"{function} takes the name of a field, not {column!r}")
    return column
