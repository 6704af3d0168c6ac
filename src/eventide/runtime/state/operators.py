"""The state of several operators in one backend: each under its own id, and what is small in one value for all."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from eventide.common.checksum import has_checksum
from eventide.errors import StateError
from eventide.pickling.pickles import dumps, is_pickle, plain_loads
from eventide.runtime.state.backend import Backend, CheckedBackend, MemoryBackend, PartOfState, value_of
from eventide.runtime.state.copied import CopiedState

FORMAT = 4
"""The version of the stored form of state."""

_WITHOUT_CHECKSUMS = 3
"""The version before, whose values have no checksums: state that began with it goes on so."""

MAY_GO = "may go"
"""The part of an operator's identity that a later program may leave out: its stored state is forgotten then."""

KEY_FIELDS, KEEPS, AGGREGATES, INPUTS = "key fields", "keeps", "aggregates", "inputs"
WHOLE_ELEMENTS, SOURCES = "whole elements", "ids of sources"
"""Parts of an operator's identity that version 0.1.0 did not store, and that not every program knows.

They are the fields that a key consists of; what is kept of a key; what a rolling aggregation makes of its elements;
where the elements of two inputs come from; the types of elements of which an operator keeps some fields alone; and the
ids of the sources whose splits it hears of, under which their watermarks lie, in JSON by the names of the sources.
"""

WHERE_KNOWN = (KEY_FIELDS, KEEPS, AGGREGATES, INPUTS, WHOLE_ELEMENTS, SOURCES)
"""Parts that are compared only where both programs know them, and that are not in the id of an operator."""

_AND = " and "
_STORED_FORM, _KEY_COLUMNS = "stored form", "key columns"

HEAD = "head"
"""The name of the value in which all that is small lies."""

PROGRAM = "program"
"""The name of the value that says of which program the state is."""

ID_LENGTH = 12
"""How many hexadecimal digits an id has that follows from the program."""

_NUMBERED = re.compile(rf"([0-9a-f]{{{ID_LENGTH}}})(-\d+)?")


class OperatorStates:
    """State of the operators of one subtask between micro-batches.

    A call into a backend is dear whatever it carries, so values of operators whose names have no slash, the small ones
    that nearly every micro-batch reads and writes, lie together in one value, the *head*. Others are values of their
    own. The head also says in which form all of it is stored, for which program, and when each operator is to run next.

    Args:
        backend: where it is stored.
        program: the identity that the state of each operator depends on, by the operator's id.
        where: says in words whose state lies under a name.

    Raises:
        StateError: if the state is damaged, of another form, or of another program, saying what differs.
    """

    def __init__(
        self, backend: Backend, program: Mapping[str, Mapping[str, str]], where: Callable[[str], str] = repr
    ) -> None:
        self._program = program
        self.backend, self._stored = _opened(backend, backend.get(HEAD), where)
        head: dict[str, Any] = {"format": FORMAT, "clocks": {}, "small": {}}
        if self._stored is not None:
            head = _read(self._stored)
        self._format: int = head["format"]
        self.small: dict[str, dict[str, bytes]] = head["small"]
        self.clocks: dict[str, int] = head["clocks"]
        self.next_clock_before_ms: int | None = min(self.clocks.values(), default=None)
        self._clock_ms: int | None = head.get("clock")
        self._digest = _digest(program)
        if head.get("program", self._digest) != self._digest:
            check_program(json.loads(self.backend.get(PROGRAM) or b"{}"), program)
            self.small = {operator: values for operator, values in self.small.items() if operator in program}
            self.clocks = {operator: time_ms for operator, time_ms in self.clocks.items() if operator in program}
        if head.get("program") != self._digest:
            self.backend.put(PROGRAM, json.dumps(program).encode())

    def of(self, operator: str) -> OperatorState:
        """The state of one operator."""
        return OperatorState(self, operator)

    def due(self, clock_ms: int) -> set[str]:
        """Return the operators that are to run at a time by the clock, whether there is data for them or not.

        Where the clock has been set back, these are all that wait for it: how long they have waited tells when each is
        due by the clock as it is now.
        """
        is_set_back = self._clock_ms is not None and clock_ms < self._clock_ms
        self._clock_ms = clock_ms
        return {operator for operator, time_ms in self.clocks.items() if is_set_back or time_ms <= clock_ms}

    def flush(self) -> None:
        """Store the head, if anything in it has changed; with the time of the micro-batch, if an operator waits."""
        head = {"format": self._format, "program": self._digest, "clocks": self.clocks, "small": self.small}
        if self.clocks:
            head["clock"] = self._clock_ms
        content = dumps(head)
        if content != self._stored:
            self.backend.put(HEAD, content)
            self._stored = content


class OperatorState(Backend):
    """The state of one operator among others."""

    def __init__(self, states: OperatorStates, operator: str) -> None:
        self._small = MemoryBackend(states.small.setdefault(operator, {}))
        self._large = PartOfState(states.backend, f"{operator}/")

    def get(self, name: str) -> bytes | None:
        return self._backend_of(name).get(name)

    def put(self, name: str, value: bytes) -> None:
        self._backend_of(name).put(name, value)

    def delete(self, name: str) -> None:
        self._backend_of(name).delete(name)

    def all_of(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        return chain(self._small.all_of(prefix), self._large.all_of(prefix))

    def put_immutable(self, values: Iterable[tuple[str, bytes]]) -> str:
        return self._large.put_immutable(values)

    def get_immutable(
        self, numbers: Sequence[int], name_of: Callable[[int], str], copy: str, count: int
    ) -> Iterator[bytes]:
        return self._large.get_immutable(numbers, name_of, copy, count)

    def delete_immutable(self, names: Iterable[str], copy: str) -> None:
        self._large.delete_immutable(names, copy)

    def _backend_of(self, name: str) -> Backend:
        return self._large if "/" in name else self._small


def _opened(backend: Backend, stored: bytes | None, where: Callable[[str], str] = repr) -> tuple[Backend, bytes | None]:
    """The state of a subtask as operators see it, and its head, given how that is stored.

    Raises:
        StateError: if the head is damaged.
    """
    if stored is not None and is_pickle(stored):  # as the version before has stored it
        # Without checksums, a damaged copy would not be noticed.
        return backend.whole if isinstance(backend, CopiedState) else backend, stored
    return CheckedBackend(backend, where), None if stored is None else value_of(stored, HEAD, where)


def _read(head: bytes) -> dict[str, Any]:
    """The content of the head of the state of a subtask.

    Raises:
        StateError: if it is of another form.
    """
    content = plain_loads(head)
    check_format(content["format"] if isinstance(content, dict) and "format" in content else "unknown")
    found: dict[str, Any] = content
    return found


def small_values(head: bytes) -> Mapping[str, Mapping[str, bytes]]:
    """Read the small values in the state of each operator of a subtask, by the operator's id.

    Raises:
        StateError: if the state is damaged, or of another form.
    """
    _, content = _opened(MemoryBackend(), head)
    small: Mapping[str, Mapping[str, bytes]] = _read(content or b"")["small"]
    return small


def program_of(stored: bytes | None) -> dict[str, Any]:
    """The program that the state of a subtask is of, given how that is stored; nothing if it is not there.

    Raises:
        StateError: if it is damaged.
    """
    content = value_of(stored, PROGRAM) if stored is not None and has_checksum(stored) else stored
    program: dict[str, Any] = json.loads(content or b"{}")
    return program


def stored_values(values: Mapping[str, bytes]) -> dict[str, bytes]:
    """The values in the state of a subtask as operators see them, given how they are stored, all but the head.

    Raises:
        StateError: if one is damaged, or the state is of another form.
    """
    backend, _ = _opened(MemoryBackend({**values}), values[HEAD])
    return {name: content for name, content in backend.all_of("") if name != HEAD}


def check_format(found: object) -> None:
    """Refuse state in a form that this version of eventide does not read.

    Raises:
        StateError: naming both forms.
    """
    if found not in (_WITHOUT_CHECKSUMS, FORMAT):
        raise StateError(
            f"the checkpoint stores state in format {found!r}, and this version of eventide reads the formats "
            f"{_WITHOUT_CHECKSUMS} and {FORMAT}; go on with the version that wrote it, or start with a new checkpoint "
            "location, from a savepoint if there is one"
        )


def check_program(found: Mapping[str, Mapping[str, str]], program: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse a program whose operators do not fit the state that there is. New operators begin without any.

    Raises:
        StateError: naming each difference.
    """
    changes = changes_of(found, program)
    if changes:
        raise StateError(
            f"the program does not fit the state of its checkpoint: {'; '.join(changes)}. Undo these changes, or start "
            "with a new checkpoint location; operators that have a uid(...) may be renamed and moved, and one that had "
            "none keeps its state with its id in the checkpoint as its uid(...)"
        )


def changes_of(
    found: Mapping[str, Mapping[str, str]], program: Mapping[str, Mapping[str, str]], *, may_miss: bool = False
) -> list[str]:
    """Each way in which the operators of a program do not fit state, in words; new operators always do.

    ``may_miss`` says that the program need not have all operators.
    """
    changes, unclear = [], set()
    groups = alike(program)
    for first, before in alike(found).items():
        now = groups.get(first, before)
        if len(now) != len(before):
            unclear |= {*before}
            changes.append(_unclear(before, [str(program[operator].get("name")) for operator in now]))
    new = {operator: now for operator, now in program.items() if operator not in found}
    for operator, was in found.items():
        if operator in unclear or (MAY_GO in was and operator not in program):
            continue
        if operator in program:
            name = program[operator].get("name")
            changes += [f"operator {name!r}: {change}" for change in _changes(was, program[operator])]
        elif not may_miss:
            missing = f"the operator {was.get('name')!r} (id {operator!r}) is missing in the program"
            changes.append(f"{missing}{_instead(was, new)}")
    return changes


def numbered(first: str, number: int) -> str:
    """The id of one of several operators that are alike; the first has the plain one.

    >>> numbered("0123456789ab", 1), numbered("0123456789ab", 2)
    ('0123456789ab', '0123456789ab-2')
    """
    return first if number == 1 else f"{first}-{number}"


def alike(ids: Iterable[str]) -> dict[str, list[str]]:
    """The ids of operators that are alike, by that of the first; a uid is like no other.

    >>> alike(["0123456789ab-2", "mine-2", "0123456789ab"])
    {'0123456789ab': ['0123456789ab', '0123456789ab-2'], 'mine-2': ['mine-2']}
    """
    groups: dict[str, list[str]] = {}
    for one in sorted(ids):
        match = _NUMBERED.fullmatch(one)
        groups.setdefault(match[1] if match else one, []).append(one)
    return groups


def follows_from_the_program(operator: str) -> bool:
    """Whether an id is no uid.

    >>> follows_from_the_program("0123456789ab-2"), follows_from_the_program("mine-2")
    (True, False)
    """
    return _NUMBERED.fullmatch(operator) is not None


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Each property that differs, in words.

    >>> differences({"parallelism": "2", "key type": "LONG"}, {"parallelism": "4", "key type": "LONG"})
    ["parallelism was '2' and is now '4'"]
    """
    return [
        f"{what} was {before.get(what)!r} and is now {now.get(what)!r}"
        for what in sorted({*before, *now})
        if before.get(what) != now.get(what)
    ]


def _unclear(before: list[str], names: list[str]) -> str:
    kept = ", ".join(f"uid({operator!r})" for operator in before)
    return (
        f"the program has {len(names)} operator(s) that look alike, {', '.join(map(repr, names))}, and the checkpoint "
        f"has {len(before)}, so eventide cannot tell which state belongs to which operator; give each a uid(...), "
        f"those with state {kept}"
    )


def _instead(was: Mapping[str, str], new: Mapping[str, Mapping[str, str]]) -> str:
    """Which new operator is most like one that is missing, and how they differ."""
    if not new:
        return ""
    operator = min(new, key=lambda operator: (len(_changes(was, new[operator], but=("name",))), operator))
    changes = _changes(was, new[operator], but=("name",)) or ["its uid or its inputs are different"]
    return f", which has {new[operator].get('name')!r} (id {operator!r}) instead: {', '.join(changes)}"


def _changes(
    before: Mapping[str, str], now: Mapping[str, str], but: tuple[str, ...] = ("name", "functions")
) -> list[str]:
    """Return the differences, except in names: these may change where a uid says that the operator is the same.

    Inputs may be others, too, such as where an operator comes in between; they must not have changed places.
    """
    lasting = ({what: text for what, text in one.items() if what not in (*but, *WHERE_KNOWN)} for one in (before, now))
    changes = differences(*lasting)
    known = {what: (before[what], now[what]) for what in WHERE_KNOWN if what in before and what in now}
    if before.get(_KEY_COLUMNS) != now.get(_KEY_COLUMNS):
        known.pop(KEY_FIELDS, None)  # which is said already
    for what in (KEY_FIELDS, KEEPS, AGGREGATES):
        was, becomes = known.get(what, ("", ""))
        changes += differences({what: was}, {what: becomes})
    for source, old, new in renumbered(before, now):
        changes.append(
            f"the watermarks of the source {source!r} are stored under {old!r}, but the program looks for them under "
            f"{new!r}"
        )
    was, becomes = known.get(INPUTS, ("", ""))
    if was != becomes and sorted(was.split(_AND)) == sorted(becomes.split(_AND)):
        changes.append(f"its inputs have changed places: they were {was}, and are {becomes}")
    if before.get(_STORED_FORM) != now.get(_STORED_FORM):
        changes.append("explain() says what it runs on, and why; another function or key can change that")
    return changes


def renumbered(before: Mapping[str, str], now: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """The sources of an operator that had another id: the name of each, that id, and the one that it has.

    >>> renumbered({"ids of sources": '{"a": "1", "b": "2"}'}, {"ids of sources": '{"b": "1", "c": "2"}'})
    [('b', '2', '1')]
    """
    was, becomes = (json.loads(one.get(SOURCES, "{}")) for one in (before, now))
    return [(name, was[name], becomes[name]) for name in was if was[name] != becomes.get(name, was[name])]


def in_words(parts: Iterable[str]) -> str:
    """Put several parts of an identity together, in their order.

    >>> in_words(["'left'", "'right'"])
    "'left' and 'right'"
    """
    return _AND.join(parts)


def _digest(program: Mapping[str, Mapping[str, str]]) -> str:
    return hashlib.sha256(json.dumps(program, sort_keys=True).encode()).hexdigest()
