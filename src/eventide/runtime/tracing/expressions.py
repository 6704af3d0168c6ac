"""Expressions over the fields of a function's arguments, and the branches between them: the result of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from eventide.common.typeinfo import TypeInformation

if TYPE_CHECKING:
    import pyarrow as pa

Kind: TypeAlias = type
"""The Python type of the value of an expression; ``object`` where only its type information tells."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an argument, by its path: the number of the argument, then a place on each level."""

    kind: Kind
    path: tuple[int, ...]
    type_info: TypeInformation


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is the same for all elements. Its text tells 0.0 from -0.0, and one NaN is like another."""

    kind: Kind
    text: str
    values: tuple[Any, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and (self.kind, self.text) == (other.kind, other.text)

    def __hash__(self) -> int:
        return hash((self.kind, self.text))

    @property
    def value(self) -> Any:
        """The value."""
        return self.values[0]


@dataclass(frozen=True, slots=True, eq=False)
class Computation:
    """A computation on expressions: an operator or a method, by a name of ours; ``depth`` is how many are nested.

    In a trace there is one object for a computation on the same operands, so objects are compared as such.
    """

    kind: Kind
    name: str
    operands: tuple[Expression, ...]
    depth: int = 0


Expression: TypeAlias = Field | Constant | Computation


def constant(value: object) -> Constant:
    """The expression of a constant."""
    return Constant(type(value), repr(value), (value,))


def constant_column(column: pa.Array) -> Constant:
    """The expression of a column that is the same for all batches, and not one value for each of their rows."""
    return Constant(list, f"column {id(column)}", (column,))


def parts_of(*results: Result | Beside) -> Iterator[Result | Beside]:
    """All that some results or conditions consist of, each part once, they themselves among them."""
    seen: set[int] = set()
    waiting = [*results]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        match one:
            case Computation(operands=parts) | Composite(parts=parts):
                waiting.extend(parts)
            case Beside(result=result):
                waiting.append(result)


def computations_in(*results: Result | Beside) -> Iterator[Computation]:
    """The operations that some results or conditions consist of, those on their operands included."""
    return (part for part in parts_of(*results) if isinstance(part, Computation))


@dataclass(frozen=True, slots=True)
class Composite:
    """A tuple or, with ``names``, a row or a dict that a function puts together.

    Attributes:
        parts: its fields.
        names: their names.
        is_dict: whether it is a dict.
        lacks_names: whether it is a row whose fields have no names; they are read by position.
    """

    parts: tuple[Result, ...]
    names: tuple[str, ...] | None = None
    is_dict: bool = False
    lacks_names: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """An argument as it is, by its number."""

    argument: int


Result: TypeAlias = Expression | Composite | Whole


@dataclass(frozen=True, slots=True)
class Beside:
    """A result for a side output, with the type that its tag declares."""

    tag: str
    type_info: TypeInformation
    result: Result


@dataclass(frozen=True, slots=True)
class Leaf:
    """The end of a way through a function.

    Attributes:
        results: its results, of which a function that does not return or yield several has one.
        unused: expressions that were computed on the way, and are in no result or condition: they may have raised an
            error.
    """

    results: tuple[Result | Beside, ...]
    unused: tuple[Computation, ...] = ()

    @property
    def outputs(self) -> list[tuple[str | None, Result]]:
        """The results of the leaf, each with the side output that it is for; None: the main one."""
        return [(one.tag, one.result) if isinstance(one, Beside) else (None, one) for one in self.results]

    @property
    def result(self) -> Result:
        """The only result of the leaf."""
        ((_, result),) = self.outputs
        return result


@dataclass(frozen=True, slots=True)
class Branch:
    """A point at which a function asked whether something is true."""

    condition: Expression
    if_true: Tree
    if_false: Tree


Tree: TypeAlias = Leaf | Branch


def leaves(tree: Tree) -> Iterator[tuple[dict[Expression, bool], Leaf]]:
    """The end of each way, with the answers that lead there."""
    if isinstance(tree, Leaf):
        yield {}, tree
        return
    for answer, subtree in ((True, tree.if_true), (False, tree.if_false)):
        for answers, leaf in leaves(subtree):
            yield {tree.condition: answer, **answers}, leaf
