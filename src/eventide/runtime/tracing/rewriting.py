"""Code with operators in place of f-strings and `is None`: a symbol can answer an operator, but none of these."""

from __future__ import annotations

import dis
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

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
