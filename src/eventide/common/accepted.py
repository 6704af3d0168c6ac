"""Settings of Flink that have no meaning on Spark: a program may set them and ask for them, and is told that, once."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

_T = TypeVar("_T")
_M = TypeVar("_M", bound=Callable[..., Any])


def has_no_effect(what: str, why: str, *, how_many: int = 1) -> None:
    """Warn that something which a program asks for makes no difference, and why; unless it is nothing."""
    if how_many:
        has = "has" if how_many == 1 else "have"
        warnings.warn(f"{what} {has} no effect: {why}", UserWarning, stacklevel=level_of_the_program())


def accept(owner: _T, setting: str, value: object, why: str = "") -> _T:
    """Keep a setting that makes no difference, and return its owner.

    Args:
        owner: The object that the program sets something in.
        setting: The name of the setting, for the warning and for `accepted`.
        value: What the program sets.
        why: Why this has no effect, for a warning when it is first set; empty if it says what is so in any case.
    """
    kept = vars(owner).setdefault("_accepted", {})
    if why and setting not in kept:
        has_no_effect(setting, why)
    kept[setting] = value
    return owner


def accepted(owner: object, setting: str, default: object) -> Any:
    """Return a setting as the program has set it, or what Flink has by default."""
    return vars(owner).get("_accepted", {}).get(setting, default)


def without_effect(setting: str, why: str = "", *, value: object = True) -> Callable[[_M], _M]:
    """Make a method that keeps its argument as a setting; a method without an argument keeps a value.

    >>> class Settings:
    ...     @without_effect("object_reuse", "each branch has its own copy")
    ...     def enable_object_reuse(self): ...
    ...     @what_was_set("object_reuse", False)
    ...     def is_object_reuse_enabled(self): ...
    >>> settings = Settings()
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     settings.enable_object_reuse() is settings.enable_object_reuse() is settings
    True
    >>> [str(warning.message) for warning in caught], settings.is_object_reuse_enabled()
    (['object_reuse has no effect: each branch has its own copy'], True)
    """

    def set_it(signature: _M, owner: object, *args: object, **kwargs: object) -> object:
        signature(owner, *args, **kwargs)  # raises TypeError for arguments that do not fit
        arguments = (*args, *kwargs.values())
        return accept(owner, setting, arguments[0] if arguments else value, why)

    return _method(set_it, f"without effect: {why}" if why else "says what is so in any case")


def what_was_set(setting: str, default: object) -> Callable[[_M], _M]:
    """Make a method that returns a setting, or what Flink has by default."""
    return _method(lambda _, owner: accepted(owner, setting, default), "gives back what was set; it has no effect")


def always(value: object, why: str) -> Callable[[_M], _M]:
    """Make a method that returns a value, whatever is set."""
    return _method(lambda _, owner: value, f"always `{value}`: {why}")


def level_of_the_program() -> int:
    """The ``stacklevel`` with which a warning of the caller points into the user's program."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("eventide."):
        level, frame = level + 1, frame.f_back
    return level


def place_in_the_program() -> tuple[str, int]:
    """The file and the line at which the user's program called, for a warning that comes later."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("eventide."):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _method(does: Callable[..., object], difference: str) -> Callable[[_M], _M]:
    """Give a signature a body, and say how the method differs from Flink's."""

    def make(signature: _M) -> _M:
        @wraps(signature)
        def method(*args: object, **kwargs: object) -> object:
            return does(signature, *args, **kwargs)

        method.__doc__ = f"{difference[0].upper()}{difference[1:]}."
        vars(method)["difference"] = difference
        return method  # type: ignore[return-value]

    return make
