"""Which functions may be traced: those whose code shows that they give the same for the same element, every time.

Of the code of such a function, f-strings and `is None` are replaced by operators: a symbol can answer an operator, but
none of these.
"""

from __future__ import annotations

import builtins
import decimal
import dis
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from types import CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, NoReturn

from eventide.api.functions import Function
from eventide.api.functions.output_tag import OutputTag
from eventide.common.types import Row
from eventide.runtime.elements.ownership import COMPREHENSIONS, FIXED, READS, instructions
from eventide.runtime.tracing.known_functions import MODULES, PURE, PURE_METHODS

_MATMUL: Any = lambda left, right: left @ right  # noqa: E731 - its instructions are a template
_BUILD_TUPLE, _EXTENDED_ARG, _LOAD_CONST = (dis.opmap[name] for name in ("BUILD_TUPLE", "EXTENDED_ARG", "LOAD_CONST"))
_JUMPS_IF_NONE = {
    name: dis.opmap[name.replace("NOT_NONE", "FALSE").replace("NONE", "TRUE")]
    for name in dis.opmap
    if name.startswith("POP_JUMP_") and name.endswith("NONE")
}
"""The jumps that ask whether something is None, and those that ask instead what an operator says of that."""


@dataclass(slots=True)
class _Instruction:
    """An instruction with its cache; ``target`` is the place of another one, counted from ``bias`` after its own."""

    offset: int
    opcode: int
    argument: int
    cache: bytes = b""
    target: int | None = None
    bias: int = 0
    is_backward: bool = False

    @property
    def name(self) -> str:
        """The name of the instruction."""
        return dis.opname[self.opcode]

    def encoded(self) -> bytes:
        """The bytes of the instruction, with as many prefixes as its argument needs."""
        high, low = divmod(self.argument, 256)
        made = bytes((self.opcode, low)) + self.cache
        while high:
            high, low = divmod(high, 256)
            made = bytes((_EXTENDED_ARG, low)) + made
        return made


def with_operators(code: CodeType, makers: Mapping[str, Callable[[int], Any]]) -> CodeType:
    """The code with an operator in place of each instruction that makes text, or asks whether something is None.

    ``FORMAT_VALUE``, say, becomes ``value @ maker`` or ``(value, how) @ maker``, and ``BUILD_STRING`` becomes
    ``(part, ...) @ maker``. ``value is None``, and a jump that asks for it, become ``value @ maker``, which has to be a
    truth value. Code with a table of exceptions, which tells places, stays as it is: what a symbol says keeps such
    functions in Python.

    Args:
        code: the code, in which ``is`` stands before None alone.
        makers: for each of these instructions, what makes the right side of the operator of its number; that of
            ``IS_OP`` counts for jumps as well.
    """
    wanted = {*makers, *(_JUMPS_IF_NONE if "IS_OP" in makers else ())}
    found = [] if code.co_exceptiontable else _instructions(code)
    if not any(one.name in wanted for one in found):
        return code
    (matmul,) = (one for one in _instructions(_MATMUL.__code__) if one.name == "BINARY_OP")
    constants, made = [*code.co_consts], list[_Instruction]()
    for one in found:
        if one.name not in wanted:
            made.append(one)
            continue
        is_jump = one.name in _JUMPS_IF_NONE
        constants.append(makers["IS_OP"](0) if is_jump else makers[one.name](one.argument))
        operator = [_Instruction(-1, _LOAD_CONST, len(constants) - 1), replace(matmul, offset=-1)]
        if one.name == "IS_OP":
            operator[1].offset = one.offset
            one = made.pop()  # noqa: PLW2901 - it loads None, and the operator stands for both
        elif is_jump:
            operator.append(replace(one, offset=-1, opcode=_JUMPS_IF_NONE[one.name]))
        elif count := _parts(one):
            operator.insert(0, _Instruction(-1, _BUILD_TUPLE, count))
        operator[0].offset = one.offset  # where jumps to it go
        made += operator
    content = _assembled(made)
    return code.replace(
        co_code=content,
        co_consts=tuple(constants),
        co_stacksize=code.co_stacksize + 1,
        co_linetable=_without_lines(len(content) // 2),
    )


def asks_for_none(code: CodeType) -> bool:
    """Whether a code compares objects with ``is``, or asks whether one is None."""
    return any(one.name == "IS_OP" or one.name in _JUMPS_IF_NONE for one in _instructions(code))


def _parts(one: _Instruction) -> int:
    """How many values an instruction makes text of; 0 if it is one by itself."""
    if one.name == "BUILD_STRING":
        return one.argument
    return 2 if one.name == "FORMAT_WITH_SPEC" or (one.name == "FORMAT_VALUE" and one.argument & 4) else 0


def _without_lines(units: int) -> bytes:
    """A table of lines, each entry of which says of up to eight code units that they have none."""
    whole, rest = divmod(units, 8)
    return bytes([0xFF] * whole + [0xF8 + rest - 1] * bool(rest))


def _instructions(code: CodeType) -> list[_Instruction]:
    found: list[_Instruction] = []
    start: int | None = None
    code = code.replace(co_consts=(None,) * len(code.co_consts))  # `dis` makes texts of them, and some have none
    for one in dis.get_instructions(code, show_caches=True):
        if one.opname == "CACHE":  # up to Python 3.12; later versions tell the sizes
            found[-1].cache += bytes((one.opcode, 0))
        elif one.opname == "EXTENDED_ARG":
            start = one.offset if start is None else start
        else:
            cache = bytes(2 * sum(size for _, size, _ in getattr(one, "cache_info", None) or ()))
            made = _Instruction(one.offset if start is None else start, one.opcode, one.arg or 0, cache)
            start = None
            if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs:
                made.target, made.is_backward = one.argval, one.argval <= one.offset
                distance = -2 * made.argument if made.is_backward else 2 * made.argument
                made.bias = one.argval - distance - one.offset
            found.append(made)
    return found


def _assembled(instructions: list[_Instruction]) -> bytes:
    """The bytes of instructions whose places have changed: as long as a jump gets another argument, once more."""
    while True:
        places: dict[int, int] = {}
        ends: list[int] = []
        content = bytearray()
        for one in instructions:
            if one.offset >= 0:
                places[one.offset] = len(content)
            content += one.encoded()
            ends.append(len(content) - len(one.cache) - 2)
        changed = False
        for one, at in zip(instructions, ends, strict=True):
            if one.target is not None:
                distance = places[one.target] - at - one.bias
                argument = (-distance if one.is_backward else distance) // 2
                changed |= argument != one.argument
                one.argument = argument
        if not changed:
            return bytes(content)


_MORE_READS = frozenset({"CALL_FUNCTION_EX", "LOAD_METHOD", "UNARY_POSITIVE", "DICT_MERGE", "LOAD_FAST_AND_CLEAR"})
_GENERATES = frozenset(
    {"YIELD_VALUE", "RETURN_GENERATOR", "GET_YIELD_FROM_ITER", "SEND", "END_SEND", "JUMP_BACKWARD_NO_INTERRUPT"}
)
_HARMLESS_INTRINSICS = frozenset({3, 5, 6})
"""Arguments of CALL_INTRINSIC_1: an error of a generator, the unary plus, a tuple of a list."""

_DOINGS = {
    "STORE_GLOBAL": "it sets a global",
    "STORE_ATTR": "it sets an attribute",
    "STORE_DEREF": "it sets a variable around it",
    "STORE_SUBSCR": "it sets an item",
    "DELETE_SUBSCR": "it deletes an item",
    "IMPORT_NAME": "it imports a module",
    "SETUP_FINALLY": "it catches errors",
    "PUSH_EXC_INFO": "it catches errors",
}

_CONSTANTS = FIXED | {re.Pattern, OutputTag}
"""The types of values from outside that cannot be changed."""

_MOST_ENTRIES = 100_000
"""The most entries of a captured list, set or dict, which is compared with its former content for each batch."""

_CALLS = frozenset({"CALL", "CALL_KW", "CALL_FUNCTION_EX"})
_NOTHING = object()
_USUAL_READING: object = object.__getattribute__


class _KnownModule:
    """Stands for a module, with all that is known of it."""

    def __init__(self, module: ModuleType, replaced: dict[Any, Any]) -> None:
        self._name = module.__name__
        self.__dict__ |= {name: replaced.get(known, known) for name, known in MODULES[module].items()}

    def __getattr__(self, name: str) -> NoReturn:
        raise NotTraceable(f"it uses {self._name}.{name}, which columns do not have")


class NotTraceable(Exception):
    """Says why a function stays Python."""


class NotThereYet(NotTraceable):
    """Says that a function reads what is not there before its object is opened, so that it may be traced then."""


@dataclass(slots=True)
class Admitted:
    """A function that may be traced, as a copy that looks its names up where the tracer put them.

    ``tests_for_none`` says that it asks whether something is None where that cannot be seen while it is traced: so
    nothing may be None where the trace is used. ``captured`` are the values from outside that were true when it was
    traced, and ``context`` is how decimal numbers were computed.
    """

    function: Callable[..., Any]
    tests_for_none: bool
    context: tuple[Any, ...]
    captured: list[Captured] = field(default_factory=list)

    @property
    def is_closed(self) -> bool:
        """Whether the function takes nothing from outside but what it calls."""
        values = [captured.value for captured in self.captured if type(captured.value) is not ModuleType]
        return all(callable(value) and type(value) is not Row for value in values)

    def is_current(self) -> bool:
        """Whether everything that the function takes from outside is still what it was."""
        return self.context == _context() and all(captured.is_current() for captured in self.captured)


@dataclass(frozen=True, slots=True)
class Captured:
    """A value that a function takes from outside, how it is found, and the objects that it consists of.

    There are none of these if it cannot be changed.
    """

    find: Callable[[], Any]
    value: Any
    content: tuple[Any, ...] = ()

    @staticmethod
    def of(find: Callable[[], Any], value: object) -> Captured:
        """A value as it is now."""
        return Captured(find, value, _content(value))

    def is_current(self) -> bool:
        """Whether the name still stands for the object, and the object is what it was."""
        try:
            found = self.find()
        except ValueError:  # a variable that has no value any more
            return False
        return found is self.value and _are_same(_content(found), self.content)


def admitted(
    function: Callable[..., Any],
    replaced: dict[Any, Any],
    containers: dict[type, Callable[[Any], Any]],
    operators: Mapping[str, Callable[[int], Any]],
    unopened: Callable[[str], Any] | None = None,
) -> Admitted:
    """Look at a function, at those that it calls, and at all that they take from outside.

    Args:
        function: the function; also a method of an object with plain attributes, or an ``itemgetter``.
        replaced: the objects that the copy finds in place of some builtins.
        containers: functions, by type, for the containers and texts that the copy has in place of constant ones.
        operators: functions that the copy has in place of instructions that a symbol cannot answer; see
            ``with_operators``.
        unopened: gives the copy the attributes of an object that is still to be opened, by name; without it,
            attributes as they are.

    Raises:
        NotTraceable: if it might do more than compute its result from its arguments.
    """
    if type(function) is itemgetter:
        return Admitted(function, tests_for_none=False, context=_context())
    admission = _Admission(replaced, containers, operators, unopened)
    copy = admission.copied(function)
    return Admitted(copy, admission.tests_for_none, _context(), admission.captured)


class _Admission:
    def __init__(
        self,
        replaced: dict[Any, Any],
        containers: dict[type, Callable[[Any], Any]],
        operators: Mapping[str, Callable[[int], Any]],
        unopened: Callable[[str], Any] | None,
    ) -> None:
        self._replaced = replaced
        self._containers = containers
        self._operators = operators
        self._unopened = unopened
        self._copies: dict[Any, FunctionType] = {}
        self._attributes: dict[str, Any] = {}
        self.tests_for_none = False
        self.captured: list[Captured] = []

    def copied(self, function: object) -> Any:
        if type(function) is not MethodType:
            return self._copy(function)
        _check_says_nothing(function.__self__, "it")
        copy = self._copy(function.__func__, function.__self__)
        return MethodType(copy, SimpleNamespace(**self._attributes))

    def _copy(self, function: object, owner: object = _NOTHING) -> FunctionType:
        if type(function) is not FunctionType:
            raise NotTraceable(f"it is a {type(function).__name__}, not a function of Python")
        if owner is not _NOTHING and not function.__code__.co_argcount:
            raise NotTraceable("it is a method that does not name its object")
        if function in self._copies:
            return self._copies[function]
        _check_says_nothing(function, "it")
        self.captured.append(Captured.of(lambda: function, function))
        scope: dict[str, Any] = {"__builtins__": builtins, "__name__": function.__module__}
        cells = tuple(CellType() for _ in function.__closure__ or ())
        code = self._with_containers(function.__code__)
        copy = FunctionType(code, scope, function.__name__, function.__defaults__, cells)
        copy.__kwdefaults__ = function.__kwdefaults__
        self._copies[function] = copy
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._check_constant("a default argument", value)
        for name, cell, own in zip(function.__code__.co_freevars, function.__closure__ or (), cells, strict=True):
            own.cell_contents = self._enclosed(name, cell)
        for name in self._names(function.__code__, owner):
            scope[name] = self._global(function, name)
        return copy

    def _with_containers(self, code: CodeType) -> CodeType:
        """The code with texts of the tracer's, and its containers where symbols are looked for in constant ones."""
        is_looked_into: dict[int, bool] = {}
        before: dis.Instruction | None = None
        for instruction in dis.get_instructions(code):
            if before is not None and before.opname == "LOAD_CONST" and before.arg is not None:
                looks = instruction.opname == "CONTAINS_OP"
                is_looked_into[before.arg] = is_looked_into.get(before.arg, True) and looks
            if instruction.opname != "CACHE":
                before = instruction
        constants = [
            self._with_containers(value)
            if isinstance(value, CodeType)
            else self._contained(value)
            if type(value) is str or is_looked_into.get(place, False)
            else value
            for place, value in enumerate(code.co_consts)
        ]
        made = code.replace(co_consts=tuple(constants))
        answered = with_operators(made, self._operators)
        self.tests_for_none |= answered is made and asks_for_none(made)
        return answered

    def _contained(self, value: object) -> Any:
        make = self._containers.get(type(value))
        return value if make is None else make(value)

    def _enclosed(self, name: str, cell: Any) -> Any:
        what = f"the variable {name!r} around it"
        try:
            value = cell.cell_contents
        except ValueError:
            raise NotTraceable(f"{what} has no value yet") from None
        return self._from_outside(what, value, lambda: cell.cell_contents)

    def _global(self, function: FunctionType, name: str) -> Any:
        scope = function.__globals__

        def find() -> Any:
            return scope.get(name, getattr(builtins, name, _NOTHING))

        value = find()
        if type(value) in (type, type(len)):
            if value not in PURE:
                raise NotTraceable(f"it uses {name}")
            self.captured.append(Captured(find, value))
            return self._replaced.get(value, value)
        if type(value) is ModuleType and value in MODULES and _content(value) == (True,):
            self.captured.append(Captured.of(find, value))
            return _KnownModule(value, self._replaced)
        return self._from_outside(f"the global {name!r}", value, find)

    def _from_outside(self, what: str, value: object, find: Callable[[], Any]) -> Any:
        """Give the copy of a function from outside, or a constant as the copy has it."""
        if type(value) is not FunctionType:
            return self._constant(what, value, find)
        _check_says_nothing(value, value.__name__)
        self.captured.append(Captured.of(find, value))
        return self._copy(value)

    def _constant(self, what: str, value: Any, find: Callable[[], Any]) -> Any:
        is_container = type(value) in (dict, list, set)
        if is_container and len(value) > _MOST_ENTRIES:
            raise NotTraceable(f"{what} has more than {_MOST_ENTRIES:,} entries, any of which may change")
        for part in _content(value) if is_container else value if type(value) is Row else [value]:
            self._check_constant(what, part)
        self.captured.append(Captured.of(find, value))
        return self._contained(value)

    def _check_constant(self, what: str, value: Any) -> None:
        if value is _NOTHING:
            raise NotTraceable(f"{what} is not there")
        if type(value) in (tuple, frozenset):
            for part in value:
                self._check_constant(what, part)
        elif type(value) not in _CONSTANTS:
            raise NotTraceable(f"{what} is a {type(value).__name__}, which may change")

    def _names(self, code: CodeType, owner: object) -> Iterator[str]:
        """The globals that a code reads, if all of its instructions only compute."""
        itself = code.co_varnames[0] if owner is not _NOTHING and code.co_argcount else None
        loads_none = is_itself = False
        before, calls, makes_dict = None, 0, False
        for instruction, is_nested in instructions(code):
            name, value = instruction.opname, instruction.argval
            if name == "CACHE":
                continue
            calls += name in _CALLS
            calls -= _is_callee(instruction, before)
            is_global = before is not None and before.opname == "LOAD_GLOBAL"
            of_module = before.argval if is_global and before is not None else None
            before = instruction
            if makes_dict and name != "PRECALL" and not (name == "CALL" and not instruction.arg):
                raise NotTraceable("it calls as_dict() with arguments")
            makes_dict = value == "as_dict" or (makes_dict and name == "PRECALL")
            if name == "IS_OP" and (not loads_none or instruction.is_jump_target):
                raise NotTraceable("it compares objects with `is`")
            if is_itself:
                self._check_attribute(owner, value, name)
            elif name in ("LOAD_ATTR", "LOAD_METHOD"):
                if _calls(instruction) and value not in PURE_METHODS:
                    if of_module is not None:
                        raise NotTraceable(f"it uses {of_module}.{value}, which columns do not have")
                    raise NotTraceable(f"it calls the method {value}()")
                if value.startswith("_"):
                    raise NotTraceable(f"it reads the attribute {value}")
            elif name == "CALL_INTRINSIC_1" and instruction.arg in _HARMLESS_INTRINSICS:
                pass
            elif name not in READS and name not in _MORE_READS and name not in _GENERATES:
                raise NotTraceable(_DOINGS.get(name, f"it has the instruction {name}"))
            if name == "LOAD_GLOBAL":
                yield value
            loads_none = name == "LOAD_CONST" and value is None
            is_itself = itself is not None and _mentions(value, itself)
            if is_itself and (is_nested or not _loads_last(name, value, itself)):
                raise NotTraceable("it uses its own object for more than to read an attribute")

        if calls > 0:
            raise NotTraceable("it calls something that is not known by its name, such as a method that it has read")

    def _check_attribute(self, owner: object, name: Any, instruction: str) -> None:
        if instruction != "LOAD_ATTR" or type(owner).__getattribute__ is not _USUAL_READING:
            raise NotTraceable("it uses its own object for more than to read an attribute")
        on_class = next((vars(kind)[name] for kind in type(owner).__mro__ if name in vars(kind)), _NOTHING)
        if on_class is not _NOTHING and type(on_class) not in FIXED:
            raise NotTraceable(f"its attribute {name!r} is computed by its class")
        if self._unopened is not None and getattr(type(owner), "open", Function.open) is not Function.open:
            self._attributes[name] = self._unopened(name)
            return
        value = _attribute(owner, name)
        if value is _NOTHING:
            raise NotThereYet(f"its attribute {name!r} is not there")
        self._attributes[name] = self._constant(f"its attribute {name!r}", value, lambda: _attribute(owner, name))


def _mentions(value: object, name: str) -> bool:
    return name in value if isinstance(value, tuple) else bool(value == name)


def _loads_last(instruction: str, value: object, name: str | None) -> bool:
    """Whether an instruction loads a variable, and nothing after it."""
    is_last = value[-1] == name != value[0] if isinstance(value, tuple) else True
    return instruction.startswith("LOAD_FAST") and is_last


def _calls(instruction: dis.Instruction) -> bool:
    """Whether an attribute is loaded in order to be called."""
    return instruction.opname == "LOAD_METHOD" or "NULL" in instruction.argrepr


def _is_callee(instruction: dis.Instruction, before: dis.Instruction | None) -> bool:
    """Whether an instruction loads what is called: a known method, a name from outside, or a comprehension."""
    name, value = instruction.opname, instruction.argval
    last = "" if before is None else before.opname
    if name in ("LOAD_ATTR", "LOAD_METHOD"):
        return _calls(instruction)
    if name == "LOAD_GLOBAL" and (instruction.arg or 0) & 1:
        return True
    if name in ("LOAD_GLOBAL", "LOAD_DEREF"):
        return last == "PUSH_NULL"
    if name == "PUSH_NULL":  # of Python 3.13, after what is called
        of_module = last == "LOAD_ATTR" and before is not None and before.argval in PURE_METHODS
        return of_module or last in ("LOAD_GLOBAL", "LOAD_DEREF")
    return name == "LOAD_CONST" and isinstance(value, CodeType) and value.co_name in COMPREHENSIONS


def _attribute(owner: object, name: str) -> Any:
    """An attribute of an object or of its class, found without calling anything."""
    own = getattr(owner, "__dict__", {}) if type(owner).__getattribute__ is _USUAL_READING else {}
    if name in own:
        return own[name]
    return next((vars(kind)[name] for kind in type(owner).__mro__ if name in vars(kind)), _NOTHING)


def says_in_python(one: object) -> bool:
    """Whether a program says of a function, or of its object, that it is to be called with each element."""
    said = vars(one).get("runs_in_python") if type(one) is FunctionType else _attribute(one, "runs_in_python")
    return said is True


def _check_says_nothing(one: object, what: str) -> None:
    if says_in_python(one):
        raise NotTraceable("the program says in_python" if what == "it" else f"the program says in_python of {what}")


def _content(value: Any) -> tuple[Any, ...]:
    """The objects that a value consists of, if it can be changed: others take their places when it is."""
    kind = type(value)
    if kind is dict:
        return *value, *value.values()
    if kind in (list, set):
        return tuple(value)
    if kind is Row:
        return *(value.get_field_names() or ()), *value, value.get_row_kind()
    if kind is FunctionType:
        named = value.__kwdefaults__ or {}
        return value.__code__, value.__defaults__, *named, *named.values()
    if kind is ModuleType and value in MODULES:
        return (all(vars(value).get(name) is known for name, known in MODULES[value].items()),)
    return ()


def _are_same(ones: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return len(ones) == len(others) and all(map(operator.is_, ones, others))


def _context() -> tuple[Any, ...]:
    """How decimal numbers are computed at the moment."""
    now = decimal.getcontext()
    return now.prec, now.rounding, now.Emin, now.Emax, now.clamp
