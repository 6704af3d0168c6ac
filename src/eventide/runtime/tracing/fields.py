"""The fields of rows that a function reads, known from its trace: a source need not read the others."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from eventide.common.typeinfo import RowTypeInfo, TypeInformation, Types
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.expressions import (
    Beside,
    Branch,
    Composite,
    Computation,
    Expression,
    Field,
    Result,
    Tree,
    Whole,
    leaves,
    parts_of,
)
from eventide.runtime.tracing.tracing import Trace, trace


def fields_read(
    function: Callable[..., Any], type_info: TypeInformation, *more: TypeInformation, several: bool = False
) -> frozenset[str] | None:
    """The fields of its first argument, a row, that a function reads; None if it is not known to do without the others.

    The function is traced with rows that have these fields alone, too, and has to do the same with them. So it is not
    one that counts the fields, or takes them by places that would be others. What `open()` makes is not there yet, and
    may be anything; and another value from outside may be another one in a worker. So all fields count that code names
    which looks at one.

    Args:
        function: the function.
        type_info: the type of the rows.
        more: the types of its other arguments.
        several: whether it returns or yields any number of results.

    >>> from eventide.common.typeinfo import Types
    >>> order = Types.ROW_NAMED(["user", "cents", "note"], [Types.STRING(), Types.LONG(), Types.STRING()])
    >>> sorted(fields_read(lambda e: (e.user, e.cents * 2), order))
    ['cents', 'user']
    >>> fields_read(lambda e: len(e), order) is None
    True
    """
    if not isinstance(type_info, RowTypeInfo) or type_info.names is None:
        return None
    try:
        found = trace(function, [type_info, *more], several=several, is_opened=False)
        names = _names(found.tree, type_info.names)
        if names is None or found.admission.tests_for_none or _may_look_for_another(found):
            return None
        if not found.admission.is_closed:
            names |= _named_in(found) & {*type_info.names}
        narrow = _narrowed(type_info, names)
        again = found
        if narrow != type_info:
            again = trace(function, [narrow, *more], several=several, is_opened=False)
    except NotTraceable:
        return None
    numbers: dict[Any, int] = {}
    return names if _form(found.tree, type_info, numbers) == _form(again.tree, narrow, numbers) else None


def _narrowed(type_info: RowTypeInfo, names: frozenset[str]) -> RowTypeInfo:
    """The type of rows that have some of the fields, at least one."""
    fields = [*zip(type_info.field_names, type_info.types, strict=True)]
    kept = [pair for pair in fields if pair[0] in names] or fields[:1]
    return Types.ROW_NAMED([name for name, _ in kept], [kind for _, kind in kept])


def _may_look_for_another(found: Trace) -> bool:
    """Whether a function with values from outside makes dicts of rows, and so may ask for a field that is missing."""
    return not found.admission.is_closed and "as_dict" in _named_in(found)


def _named_in(found: Trace) -> frozenset[str]:
    """All that the code of a function, and of those that it calls, has a name for, texts among them."""
    waiting: list[Any] = [one.value.__code__ for one in found.admission.captured if type(one.value) is FunctionType]
    named: set[str] = set()
    while waiting:
        one = waiting.pop()
        if type(one) is CodeType:
            waiting += [*one.co_names, *one.co_consts]
        elif type(one) in (tuple, frozenset):
            waiting += one
        elif type(one) is str:
            named.add(one)
    return frozenset(named)


def _names(tree: Tree, names: tuple[str, ...]) -> frozenset[str] | None:
    """The fields of the first argument in a tree; None if it is there as a whole."""
    found = set()
    for answers, leaf in leaves(tree):
        for one in parts_of(*answers, *leaf.results, *leaf.unused):
            match one:
                case Whole(0) | Field(path=(0,)):
                    return None
                case Field(path=(0, place, *_)):
                    found.add(names[place])
    return frozenset(found)


def _form(tree: Tree, type_info: RowTypeInfo, numbers: dict[Any, int]) -> int:
    """A number for a tree, the same for one that does the same with fields of the same names."""

    def number_of(form: Any) -> int:
        return numbers.setdefault(form, len(numbers))

    known: dict[int, int] = {}

    def of(one: Result | Beside) -> int:
        if id(one) not in known:
            known[id(one)] = number_of(form_of(one))
        return known[id(one)]

    def form_of(one: Expression | Result | Beside) -> Any:
        match one:
            case Field(kind, (0, place, *rest), field_type):
                return kind, type_info.field_names[place], *rest, str(field_type)
            case Computation(kind, name, operands):
                return kind, name, *map(of, operands)
            case Composite(parts, names, is_dict):
                return "composite", names, is_dict, *map(of, parts)
            case Beside(tag, tag_type, result):
                return "beside", tag, str(tag_type), of(result)
        return one

    def of_tree(tree: Tree) -> int:
        if isinstance(tree, Branch):
            return number_of(("branch", of(tree.condition), of_tree(tree.if_true), of_tree(tree.if_false)))
        return number_of(("leaf", *map(of, tree.results), "unused", *map(of, tree.unused)))

    return of_tree(tree)
