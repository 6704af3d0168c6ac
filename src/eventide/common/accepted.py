"""Settings of Flink without meaning on Spark: a program may set and read them, and gets a warning, once.

A class has a table of them. Each row gives name, value and reason, and makes the methods under PyFlink's names, with
their signatures, their docstrings and the warning; the page on parity uses these texts too.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any, Protocol, TypeVar

_T = TypeVar("_T")
_V = TypeVar("_V")
_V_co = TypeVar("_V_co", covariant=True)


class SettingMethod(Protocol):
    """A method that keeps a setting, and returns its object."""

    def __get__(self, owner: _T, kind: type[_T] | None = None) -> Callable[..., _T]:
        """Return the method of an object."""


class GettingMethod(Protocol[_V_co]):
    """A method that returns a setting."""

    def __get__(self, owner: object, kind: type | None = None) -> Callable[[], _V_co]:
        """Return the method of an object."""


def has_no_effect(what: str, why: str, *, how_many: int = 1) -> None:
    """Warn that something which a program asks for makes no difference, and why; unless it is nothing."""
    if how_many:
        has = "has" if how_many == 1 else "have"
        warnings.warn(f"{what} {has} no effect: {why}", UserWarning, stacklevel=level_of_the_program())


def accept(owner: _T, setting: str, value: object, why: str = "", default: object = None) -> _T:
    """Keep a setting that has no effect, and return its owner.

    Args:
        owner: The object with the setting.
        setting: The name of the setting, for the warning and for `accepted`.
        value: The value that the program sets.
        why: Why it has no effect, for a warning when another value than the default is first set; empty for no warning.
        default: Flink's default.
    """
    kept = vars(owner).setdefault("_accepted", {})
    if why and kept.get(setting, default) == default != value:
        has_no_effect(setting, why)
    kept[setting] = value
    return owner


def accepted(owner: object, setting: str, default: object) -> Any:
    """Return a setting as the program has set it, or Flink's default."""
    return vars(owner).get("_accepted", {}).get(setting, default)


def setting(
    name: str, parameter: str, default: _V, why: str = "", *, value: object = Parameter.empty
) -> tuple[SettingMethod, GettingMethod[_V]]:
    """Make the two methods of a setting, one that sets it and one that returns it; see `sets`.

    >>> class Settings:
    ...     set_timeout, get_timeout = setting("timeout", "timeout_ms", 100, "nothing waits")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     Settings().set_timeout(5).set_timeout(6).get_timeout(), Settings().get_timeout()
    (6, 100)
    >>> [str(warning.message) for warning in caught]
    ['timeout has no effect: nothing waits']
    """
    return sets(name, why, parameter, value=value, default=default), gives(name, default)


def switch(name: str, default: bool, why: str) -> tuple[SettingMethod, SettingMethod, GettingMethod[bool]]:
    """Make the three methods of a boolean setting: one enables it, one disables it, one returns it.

    >>> class Settings:
    ...     enable_reuse, disable_reuse, is_reuse_enabled = switch("reuse", False, "nothing is shared")
    >>> Settings().disable_reuse().is_reuse_enabled()
    False
    """
    turned_on, turned_off = (sets(name, why, value=value, default=default) for value in (True, False))
    return turned_on, turned_off, gives(name, default)


def sets(
    name: str, why: str, parameter: str = "", *, value: object = Parameter.empty, default: object = None
) -> SettingMethod:
    """Make a method that keeps a setting, and warns once, unless it is set to what holds in any case.

    Args:
        name: The name of the setting, for the warning.
        why: Why it has no effect; empty for no warning.
        parameter: PyFlink's name of the parameter; empty for a method without one, which keeps ``value``, or True.
        value: The default of the parameter, if it has one.
        default: Flink's default.
    """
    kind = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter(parameter, kind, default=value)] if parameter else []
    of_itself = True if value is Parameter.empty else value
    is_so = not why or (not parameter and of_itself == default)
    difference = "says what is so in any case" if is_so else f"without effect: {why}"
    made: SettingMethod = _method(
        lambda owner, given=of_itself: accept(owner, name, given, why, default), difference, parameters
    )
    return made


def gives(name: str, default: _V) -> GettingMethod[_V]:
    """Make a method that returns a setting, or Flink's default."""
    made: GettingMethod[_V] = _method(
        lambda owner: accepted(owner, name, default), "returns the value that was set, which has no effect"
    )
    return made


def always(value: _V, why: str) -> GettingMethod[_V]:
    """Make a method that always returns one value."""
    made: GettingMethod[_V] = _method(lambda _: value, f"always `{value}`: {why}")
    return made


def level_of_the_program() -> int:
    """The ``stacklevel`` with which a warning of the caller points into the user's program."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("eventide."):
        level, frame = level + 1, frame.f_back
    return level


def place_in_the_program() -> tuple[str, int]:
    """The file and line of the call in the user's program, for a later warning."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("eventide."):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _method(does: Callable[..., object], difference: str, parameters: Sequence[Parameter] = ()) -> Any:
    """Make a method with a signature, which says how it differs from Flink's."""
    signature = Signature([Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *parameters])

    def method(*args: object, **kwargs: object) -> object:
        given = signature.bind(*args, **kwargs)  # raises TypeError for arguments that do not fit
        given.apply_defaults()
        return does(*given.args)

    method.__doc__ = f"{difference[0].upper()}{difference[1:]}."
    vars(method).update(__signature__=signature, difference=difference)
    return method
