"""Attributes that a user object has gained since it was made, apart from its constructor's."""

from __future__ import annotations

from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any, TypeAlias

from eventide.common.watermark_generator import WatermarkGeneratorContext
from eventide.errors import ProgramError, StateError
from eventide.pickling.pickles import dumps

_VALUES = frozenset((int, float, complex, bool, str, bytes, type(None)))
_THINGS = (FunctionType, BuiltinFunctionType, ModuleType, type, WatermarkGeneratorContext)

Snapshot: TypeAlias = tuple[str, bool, Any]
"""The name of a class, whether the state is from its own ``snapshot_state``, and the learnt state."""


class Learnt:
    """Separates what an object learns from what it was made with; create it when the object has just been made.

    Learnt are the attributes that are new, gone, or have another value than right after the object was made; an
    attribute that was changed in place counts as a whole. All others belong to the program. An object with
    ``snapshot_state()`` and ``restore_state(state)`` decides this itself.

    Args:
        thing: an object with attributes, or with these two methods.
        shares: other objects whose learnt state is kept separately: an attribute that is one of them counts as
            unchanged.

    Raises:
        ProgramError: if it has only one of the two methods, or keeps data outside its attributes.
    """

    def __init__(self, thing: Any, shares: Sequence[object] = ()) -> None:
        self._thing = thing
        self._shares = shares
        self._has_own = hasattr(thing, "snapshot_state")
        if self._has_own != hasattr(thing, "restore_state"):
            raise ProgramError(
                f"{type(thing).__name__} has one of snapshot_state() and restore_state(state); it needs both, or "
                "neither if its state is in its attributes"
            )
        self._made = {} if self._has_own else _attributes(thing)
        # The pickled first values of attributes that can be changed in place.
        self._bytes = {name: _bytes(value) for name, value in self._made.items() if not _is_plain(value)}

    def snapshot(self) -> Snapshot:
        """Return the gained attributes, which pickle if each of them does, or the value of ``snapshot_state``."""
        if self._has_own:
            return self._class, True, self._thing.snapshot_state()
        now = _attributes(self._thing)
        gone = [name for name in self._made if name not in now]
        return self._class, False, ({name: value for name, value in now.items() if self._is_new(name, value)}, gone)

    def restore(self, snapshot: Snapshot) -> None:
        """Give the object the learnt state of an equal one.

        Raises:
            StateError: if that one was of another class, or the two methods were added or removed.
        """
        name, is_own, state = snapshot
        if (name, is_own) != (self._class, self._has_own):
            was, now = (_described(*form) for form in ((name, is_own), (self._class, self._has_own)))
            raise StateError(
                f"the checkpoint stores the state of a {was}, but the program uses a {now}. Its parameters may change, "
                "its class may not: undo that, or start with a new checkpoint location"
            )
        if is_own:
            self._thing.restore_state(state)
            return
        learnt, gone = state
        if hasattr(self._thing, "__setstate__"):
            self._thing.__setstate__({k: v for k, v in {**self._made, **learnt}.items() if k not in gone})
            return
        for attribute, value in learnt.items():
            if self._is_slot(attribute):
                object.__setattr__(self._thing, attribute, value)
            else:
                vars(self._thing)[attribute] = value
        for attribute in gone:
            if attribute in self._made:
                object.__delattr__(self._thing, attribute)

    @property
    def _class(self) -> str:
        return type(self._thing).__qualname__

    def _is_slot(self, attribute: str) -> bool:
        return isinstance(getattr(type(self._thing), attribute, None), MemberDescriptorType)

    def _is_new(self, name: str, value: object) -> bool:
        if name not in self._made:
            return True
        before, bytes_before = self._made[name], self._bytes.get(name)
        if value is before and any(value is shared for shared in self._shares):
            return False
        if bytes_before is not None:
            return dumps(value) != bytes_before
        if type(value) in _VALUES and type(value) is type(before):
            return bool(value != before)
        return value is not before


def _is_plain(value: object) -> bool:
    """Whether a value is immutable, or cannot be stored."""
    return type(value) in _VALUES or isinstance(value, _THINGS)


def _bytes(value: object) -> bytes | None:
    """A value as bytes; None if it does not pickle: then it counts as unchanged while it is the same object."""
    try:
        return dumps(value)
    except Exception:  # a user's class may raise anything
        return None


def _described(name: str, is_own: bool) -> str:
    return f"{name} with snapshot_state()" if is_own else name


def _is_container(kind: type) -> bool:
    """Whether objects of a class hold more than attributes, as lists do."""
    return any(base.__module__ == "builtins" and base is not object for base in kind.__mro__)


def _attributes(thing: object) -> dict[str, Any]:
    """The attributes of an object, as it pickles them."""
    state: object = "what no attribute has" if _is_container(type(thing)) else thing.__getstate__()
    parts = state if isinstance(state, tuple) else (state,)
    attributes: dict[str, Any] = {}
    for part in parts:
        if part is not None and not isinstance(part, dict):
            raise ProgramError(
                f"{type(thing).__name__} keeps state outside its attributes, so eventide cannot separate state from "
                "parameters; give it snapshot_state() and restore_state(state)"
            )
        attributes |= part or {}
    return attributes
