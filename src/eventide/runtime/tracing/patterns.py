"""Regular expressions of Python in the syntax of RE2, which Arrow has: those that mean the same for ASCII text."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_parser: Any = importlib.import_module("re._parser")
_compiler: Any = importlib.import_module("re._compiler")

_MOST_REPEATS = 1000
_ONE_CHARACTER = frozenset({"LITERAL", "NOT_LITERAL", "ANY", "IN"})
_PLACES = {"AT_BEGINNING_STRING": r"\A", "AT_END_STRING": r"\z", "AT_BOUNDARY": r"\b"}
_FRAMES = {"search": "{}", "match": r"\A(?:{})", "fullmatch": r"\A(?:{})\z"}

WANTED = "wanted"
"""The name of the one group in the syntax of RE2."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A regular expression in the syntax of RE2.

    Attributes:
        text: the expression.
        has_end: whether it asks for the end of the text, which to Python is before a last newline, too.
        may_be_empty: whether it matches the empty text.
    """

    text: str
    has_end: bool
    may_be_empty: bool


class _Untranslatable(Exception):
    """Says that RE2 may not mean the same."""


@lru_cache(256)
def translated(pattern: str, flags: int, how: str, group: int | None = None) -> Translated | None:
    """A regular expression as RE2 has it, with one of its groups; None if RE2 might not find the same in ASCII text.

    Both take the leftmost match, and of several the one that backtracking finds first. They differ where a repeated
    part may be empty, and in all that RE2 does not have. Single characters are the sets that Python itself says.

    Args:
        pattern: the expression.
        flags: its flags.
        how: how a text is matched: "search", "match" or "fullmatch".
        group: the number of the wanted group, which always takes part in a match; 0 is all of it.

    >>> translated("(a|b)+", 0, "match").has_end, translated("(a*)*", 0, "search")
    (False, None)
    """
    tree = _parser.parse(pattern, flags & ~re.DEBUG)
    walk = _Walk(tree.state, flags, group)
    try:
        text = walk.sequence(tree)
    except _Untranslatable:
        return None
    made = _FRAMES[how].format(f"(?P<{WANTED}>{text})" if group == 0 else text)
    try:
        pc.match_substring_regex(pa.array([""]), made)
    except pa.ArrowException:  # it is too large
        return None
    return Translated(made, walk.has_end, tree.getwidth()[0] == 0)


@lru_cache(256)
def certain_groups(pattern: str, flags: int) -> frozenset[int]:
    """The groups of a regular expression that take part in every match."""
    certain, waiting = {0}, list(_parser.parse(pattern, flags & ~re.DEBUG))
    for code, content in waiting:
        if str(code) == "SUBPATTERN":
            certain.add(content[0])
            waiting.extend(content[3])
    return frozenset(certain - {None})


class _Walk:
    """Translates the parts of one expression."""

    def __init__(self, state: object, flags: int, group: int | None) -> None:
        self._state = state
        self._flags = flags
        self._group = group
        self.has_end = False

    def sequence(self, nodes: Iterable[Any]) -> str:
        return "".join(self._node(str(code), content) for code, content in nodes)

    def _node(self, name: str, content: Any) -> str:
        if name in _ONE_CHARACTER:
            return self._characters(name, content)
        match name, content:
            case "BRANCH", (None, ways):
                return f"(?:{'|'.join(map(self.sequence, ways))})"
            case "SUBPATTERN", (number, 0, 0, inside):
                is_wanted = number is not None and number == self._group
                return f"({f'?P<{WANTED}>' if is_wanted else '?:'}{self.sequence(inside)})"
            case (("MAX_REPEAT" | "MIN_REPEAT"), (least, most, inside)) if inside.getwidth()[0]:
                has_end = most == _parser.MAXREPEAT
                if least > _MOST_REPEATS or not (has_end or most <= _MOST_REPEATS):
                    raise _Untranslatable
                count = f"{{{int(least)},{'' if has_end else int(most)}}}"
                return f"(?:{self.sequence(inside)}){count}{'?' if name == 'MIN_REPEAT' else ''}"
            case "AT", place:
                return self._place(str(place))
        raise _Untranslatable

    def _place(self, place: str) -> str:
        if place in _PLACES:
            return _PLACES[place]
        if place not in ("AT_BEGINNING", "AT_END"):
            raise _Untranslatable
        if self._flags & re.MULTILINE:
            return "(?m:^)" if place == "AT_BEGINNING" else "(?m:$)"
        self.has_end |= place == "AT_END"
        return r"\A" if place == "AT_BEGINNING" else r"\z"

    def _characters(self, name: str, content: Any) -> str:
        """A set of characters: of the 128 of ASCII, those that the part matches by itself."""
        one = _parser.SubPattern(self._state, [(getattr(_parser, name), content)])
        matches = _compiler.compile(one, self._flags & ~re.DEBUG).fullmatch
        places = [place for place in range(128) if matches(chr(place))]
        if not places:
            raise _Untranslatable
        starts = [place for place in places if place - 1 not in places]
        ends = [place for place in places if place + 1 not in places]
        spans = zip(starts, ends, strict=True)
        return "[" + "".join(rf"\x{start:02x}-\x{end:02x}" for start, end in spans) + "]"
