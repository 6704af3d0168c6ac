"""Code whose f-strings are operators: a symbol can answer an operator, but Python wants real text of an f-string."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

_MATMUL: Any = lambda left, right: left @ right  # noqa: E731 - its instructions are a template
_BUILD_TUPLE, _EXTENDED_ARG, _LOAD_CONST = (dis.opmap[name] for name in ("BUILD_TUPLE", "EXTENDED_ARG", "LOAD_CONST"))


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

    def encoded(self) -> bytes:
        """Its bytes, with as many prefixes as its argument needs."""
        high, low = divmod(self.argument, 256)
        made = bytes((self.opcode, low)) + self.cache
        while high:
            high, low = divmod(high, 256)
            made = bytes((_EXTENDED_ARG, low)) + made
        return made


def with_operators(code: CodeType, makers: Mapping[str, Callable[[int], Any]]) -> CodeType:
    """The code with a tuple and an operator in place of each instruction that makes text.

    ``FORMAT_VALUE`` becomes ``value @ maker`` or ``(value, how) @ maker``; ``BUILD_STRING`` ``(part, ...) @ maker``.
    Code with a table of exceptions, which tells places, stays as it is, as does that of Python 3.13 and later, which
    has other instructions: what a symbol says of these keeps such functions in Python.

    Args:
        code: the code.
        makers: for each of these instructions, what makes the right side of the operator of its number.
    """
    found = [] if sys.version_info >= (3, 13) else _instructions(code)
    if code.co_exceptiontable or not any(dis.opname[one.opcode] in makers for one in found):
        return code
    (matmul,) = (one for one in _instructions(_MATMUL.__code__) if dis.opname[one.opcode] == "BINARY_OP")
    constants, made = [*code.co_consts], list[_Instruction]()
    for one in found:
        name = dis.opname[one.opcode]
        if name not in makers:
            made.append(one)
            continue
        constants.append(makers[name](one.argument))
        parts = one.argument if name == "BUILD_STRING" else 2 if one.argument & 4 else 0
        tuples = [_Instruction(-1, _BUILD_TUPLE, parts)] if parts else []
        load = _Instruction(-1, _LOAD_CONST, len(constants) - 1)
        operator = _Instruction(-1, matmul.opcode, matmul.argument, matmul.cache)
        added = [*tuples, load, operator]
        added[0].offset = one.offset  # where jumps to it go
        made += added
    content = _assembled(made)
    return code.replace(
        co_code=content,
        co_consts=tuple(constants),
        co_stacksize=code.co_stacksize + 1,
        co_linetable=_without_lines(len(content) // 2),
    )


def _without_lines(units: int) -> bytes:
    """A table of lines, each entry of which says of up to eight code units that they have none."""
    whole, rest = divmod(units, 8)
    return bytes([0xFF] * whole + [0xF8 + rest - 1] * bool(rest))


def _instructions(code: CodeType) -> list[_Instruction]:
    found: list[_Instruction] = []
    start: int | None = None
    for one in dis.get_instructions(code, show_caches=True):
        if one.opname == "CACHE":
            found[-1].cache += bytes((one.opcode, 0))
        elif one.opname == "EXTENDED_ARG":
            start = one.offset if start is None else start
        else:
            made = _Instruction(one.offset if start is None else start, one.opcode, one.arg or 0)
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
