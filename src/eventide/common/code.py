"""Facts from the code of a plain function or a watermark generator, for all versions of Python."""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import re
from abc import ABCMeta
from collections.abc import Callable, Iterator
from itertools import islice
from types import CodeType, FunctionType, MemberDescriptorType, MethodType
from typing import Any

from eventide.common.watermark_generator import VectorizedWatermarkGenerator, WatermarkGenerator

_SEES_LOCALS = frozenset({"locals", "vars", "eval", "exec", "dir", "sys", "inspect"})
_CHANGES_METHODS = frozenset({"setattr", "__setattr__", "__dict__", "__class__", "vars"})
_WITHOUT_EFFECT = frozenset({"CACHE", "PRECALL", "NOP", "EXTENDED_ARG", "RESUME"})
_LIBRARY = ("abc", "typing", "builtins")


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object, and those of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def steps(code: CodeType) -> list[tuple[str, Any]]:
    """The instructions of a code object, by name, with their arguments: those with an effect, one for each variable."""
    found: list[tuple[str, Any]] = []
    for one in dis.get_instructions(code):
        verbs = re.findall("(LOAD|STORE|DELETE)_FAST", one.opname)
        if verbs:
            names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
            found += [(f"{verb}_FAST", name) for verb, name in zip(verbs, names, strict=True)]
        elif one.opname not in _WITHOUT_EFFECT:
            found.append((one.opname, one.argval))
    return found


def argument(function: object, place: int) -> tuple[CodeType, str] | None:
    """The code of a plain function, and the name of an argument; None if it may reach the argument in other ways."""
    if type(function) is not FunctionType or place >= function.__code__.co_argcount:
        return None
    code = function.__code__
    if any(_SEES_LOCALS.intersection(part.co_names) for part in codes(code)):
        return None
    return code, code.co_varnames[place]


def mentions(instruction: dis.Instruction, name: str) -> bool:
    """Whether an instruction uses a variable: newer versions of Python name two variables in one instruction."""
    value = instruction.argval
    is_about_variables = "FAST" in instruction.opname or instruction.opname in ("MAKE_CELL", "LOAD_CLOSURE")
    return is_about_variables and (value == name or (isinstance(value, tuple) and name in value))


def keeps_methods(kind: type, methods: frozenset[str], base: type) -> bool:
    """Whether objects of a class surely have the methods of the class, by its code and that of its bases."""
    for ancestor in kind.__mro__:
        if ancestor.__module__ == base.__module__ or ancestor.__module__ in _LIBRARY:
            continue
        if {"__getattribute__", "__getattr__"} & vars(ancestor).keys():
            return False
        functions = [one for one in vars(ancestor).values() if isinstance(one, FunctionType)]
        changes = _CHANGES_METHODS | methods
        if any(changes.intersection(_stored_names(one.__code__, _CHANGES_METHODS)) for one in functions):
            return False
    return True


def _stored_names(code: CodeType, changes: frozenset[str]) -> Iterator[str]:
    """The attributes that a code object sets, and the names with which it could set others."""
    for part in codes(code):
        for instruction in dis.get_instructions(part):
            if instruction.opname == "STORE_ATTR" or instruction.argval in changes:
                yield instruction.argval


_METHODS = frozenset({"on_event", "on_batch", "on_periodic_emit"})
_EVENTS, _OUTPUT, _LAST_OUTPUT = 1, 3, 1  # the places of arguments, after the generator itself
_VERBS = frozenset({"emit_watermark", "emit_watermarks", "mark_idle", "mark_active"})
_CALLS = frozenset({"CALL", "CALL_KW"})
_LOADS = frozenset({"LOAD_CONST", "LOAD_SMALL_INT", "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_GLOBAL", "LOAD_DEREF"})
_NEUTRAL = frozenset({"RESUME", "CACHE", "PUSH_NULL", "COPY_FREE_VARS", "PRECALL", "KW_NAMES", "NOP"})


def class_of(supplier: Callable[..., WatermarkGenerator]) -> type[WatermarkGenerator] | None:
    """The class of the generators that a supplier makes, if its code shows it: a class, or ``return Class(...)``.

    >>> from eventide.common import BoundedOutOfOrdernessWatermarks
    >>> class_of(lambda: BoundedOutOfOrdernessWatermarks(5_000)).__name__
    'BoundedOutOfOrdernessWatermarks'
    """
    made: object = supplier
    if isinstance(made, functools.partial):
        made = made.func
    if isinstance(made, MethodType):
        made = made.__func__
    if isinstance(made, FunctionType):
        made = _called_last(made)
    if not (isinstance(made, type) and issubclass(made, WatermarkGenerator)) or type(made) is not ABCMeta:
        return None
    return made if made.__new__ is object.__new__ else None


def ignores_elements(kind: type[WatermarkGenerator]) -> bool:
    """Whether generators of a class ignore elements, and use only their timestamps."""
    return _keeps_methods(kind) and all(_is_unused(method, _EVENTS) for method in _methods_of_elements(kind))


def emits_at_the_end_only(kind: type[WatermarkGenerator]) -> bool:
    """Whether generators of a class cannot emit a watermark between two elements.

    It does not use the output that comes with elements, and does not keep the one of `on_periodic_emit`.
    """
    at_the_end = inspect.getattr_static(kind, "on_periodic_emit")
    return (
        _keeps_methods(kind)
        and all(_is_unused(method, _OUTPUT) for method in _methods_of_elements(kind))
        and (_is_unused(at_the_end, _LAST_OUTPUT) or _only_speaks(at_the_end, _LAST_OUTPUT))
    )


_KEEPING = (
    "self.highest = max(self.highest, {0})",
    "self.highest = max({0}, self.highest)",
    "if {0} > self.highest: self.highest = {0}",
    "if self.highest < {0}: self.highest = {0}",
    "if self.highest is None or {0} > self.highest: self.highest = {0}",
    "if self.highest is None or self.highest < {0}: self.highest = {0}",
    "self.highest = {0} if self.highest is None else max(self.highest, {0})",
)
_ACCESS = frozenset({"__get__", "__set__", "__delete__"})
_STARTS = ("import pyarrow.compute as pc\n", "")
_OF_BATCH = "pc.max(timestamps).as_py()"


def keeps_the_highest(kind: type[WatermarkGenerator]) -> bool:
    """Whether generators of a class only keep the highest timestamp of all elements, in an attribute.

    Then showing them the highest of some timestamps gives what showing them each does.

    >>> class Highest(WatermarkGenerator):
    ...     highest = 0
    ...     def on_event(self, event, event_timestamp, output):
    ...         self.highest = max(self.highest, event_timestamp)
    ...     def on_periodic_emit(self, output):
    ...         pass
    >>> keeps_the_highest(Highest)
    True
    """
    is_vectorised = issubclass(kind, VectorizedWatermarkGenerator)
    method = inspect.getattr_static(kind, "on_batch" if is_vectorised else "on_event")
    if not _keeps_methods(kind) or type(method) is not FunctionType or kind.__setattr__ is not object.__setattr__:
        return False
    found = (_renamed(method.__code__, model) for model in _keeping(is_vectorised=is_vectorised))
    names = next((names for names in found if names is not None), None)
    if names is None:
        return False
    values = method.__globals__
    max_is_known = values.get("max", builtins.max) is builtins.max
    module_is_known = "pc" not in names or getattr(values.get(names["pc"]), "__name__", "") == "pyarrow.compute"
    attribute = inspect.getattr_static(kind, names["highest"], None)
    is_plain = isinstance(attribute, MemberDescriptorType) or not _ACCESS.intersection(dir(type(attribute)))
    return max_is_known and module_is_known and is_plain


@functools.cache
def _keeping(*, is_vectorised: bool) -> tuple[CodeType, ...]:
    """The code of methods that keep the highest timestamp of one element, or of a batch."""
    if is_vectorised:
        bodies = [form.format(_OF_BATCH) for form in _KEEPING]
        bodies += [f"latest = {_OF_BATCH}\n    {form.format('latest')}" for form in _KEEPING]
    else:
        bodies = [form.format("timestamps") for form in _KEEPING]
    # A call of what is imported in the same text is another instruction: in a notebook, it is imported in another cell.
    texts = (f"{start}def keep(self, events, timestamps, output):\n    {body}" for body in bodies for start in _STARTS)
    return tuple(next(islice(codes(compile(text, "<model>", "exec")), 1, None)) for text in texts)


def _renamed(code: CodeType, model: CodeType) -> dict[str, str] | None:
    """The names in a code for the names in a model that is equal to it but for names; None if it is not equal."""
    names: dict[str, str] = {"max": "max", "as_py": "as_py"}
    ours, theirs = steps(code), steps(model)
    if len(ours) != len(theirs) or code.co_argcount != model.co_argcount:
        return None
    names |= dict(zip(model.co_varnames[: model.co_argcount], code.co_varnames, strict=False))
    for (verb, value), (model_verb, model_value) in zip(ours, theirs, strict=True):
        is_name = verb.endswith(("_FAST", "_ATTR", "_METHOD", "_GLOBAL"))
        if verb != model_verb or (names.setdefault(model_value, value) if is_name else model_value) != value:
            return None
    return names


def _methods_of_elements(kind: type[WatermarkGenerator]) -> list[Any]:
    names = ["on_event", "on_batch"] if issubclass(kind, VectorizedWatermarkGenerator) else ["on_event"]
    return [inspect.getattr_static(kind, name) for name in names]


def _keeps_methods(kind: type[WatermarkGenerator]) -> bool:
    return keeps_methods(kind, _METHODS, WatermarkGenerator)


def _is_unused(function: object, place: int) -> bool:
    """Whether a plain function ignores the argument at a place."""
    found = argument(function, place)
    return found is not None and not any(mentions(one, found[1]) for one in dis.get_instructions(found[0]))


def _only_speaks(function: object, place: int) -> bool:
    """Whether a plain function only calls methods of an output on the argument at a place."""
    found = argument(function, place)
    if found is None:
        return False
    code, name = found
    instructions = [one for one in dis.get_instructions(code) if one.opname != "CACHE"]
    for one, after in zip(instructions, [*instructions[1:], None], strict=True):
        if mentions(one, name):
            is_loaded = one.opname in ("LOAD_FAST", "LOAD_FAST_BORROW")
            speaks = after is not None and after.opname in ("LOAD_METHOD", "LOAD_ATTR") and after.argval in _VERBS
            # Without a call, the function could keep the method itself.
            is_called = after is not None and (after.opname == "LOAD_METHOD" or bool((after.arg or 0) & 1))
            if not (is_loaded and speaks and is_called):
                return False
    return True


def _called_last(function: FunctionType) -> Any:
    """The object that a function consisting of one call calls; None for any other function."""
    instructions = [one for one in dis.get_instructions(function) if one.opname != "CACHE"]
    names = [one.opname for one in instructions]
    if names[-1:] != ["RETURN_VALUE"] or sum(name in _CALLS for name in names) != 1 or names[-2] not in _CALLS:
        return None
    if any(name not in _LOADS | _CALLS | _NEUTRAL for name in names[:-1]):
        return None
    callee = next(one for one in instructions if one.opname in _LOADS)
    if callee.opname == "LOAD_GLOBAL":
        return function.__globals__.get(callee.argval)
    if callee.opname == "LOAD_DEREF":
        place = function.__code__.co_freevars.index(callee.argval)
        try:
            return (function.__closure__ or ())[place].cell_contents
        except (ValueError, IndexError):
            return None
    return None
