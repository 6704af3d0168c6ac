"""`Configuration`: the options of a job, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from eventide._absent import hand_out_names
from eventide.errors import ProgramError

__all__ = ["Configuration"]

T = TypeVar("T")

_BOOLEANS = {"true": True, "false": False}


class Configuration:
    """Options by name. A value that was set as text can be read as a number, and the other way round.

    >>> options = Configuration().set_integer("retries", 3).set_string("name", "orders")
    >>> options.get_string("retries", "0"), options.get_integer("missing", 7)
    ('3', 7)
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._options: dict[str, Any] = {} if other is None else dict(other._options)

    @classmethod
    def from_dict(cls, map: Mapping[str, str]) -> Configuration:
        """Return the options of a dict."""
        configuration = cls()
        configuration._options.update(map)
        return configuration

    def get_string(self, key: str, default_value: str | None) -> str | None:
        """Return an option as text, or `default_value` if it is not set."""
        return _as_text(self._options[key]) if key in self._options else default_value

    def set_string(self, key: str, value: str) -> Configuration:
        """Set an option, and return this configuration."""
        return self._set(key, value)

    def get_integer(self, key: str, default_value: int | None) -> int | None:
        """Return an option as an integer, or `default_value`; raise a `ProgramError` if it is not an integer."""
        return self._read(key, default_value, int, "an integer")

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set an option, and return this configuration."""
        return self._set(key, value)

    def get_float(self, key: str, default_value: float | None) -> float | None:
        """Return an option as a number, or `default_value`; raise a `ProgramError` if it is not a number."""
        return self._read(key, default_value, float, "a number")

    def set_float(self, key: str, value: float) -> Configuration:
        """Set an option, and return this configuration."""
        return self._set(key, value)

    def get_boolean(self, key: str, default_value: bool | None) -> bool | None:
        """Return an option as a boolean, or `default_value`; raise a `ProgramError` if it is not a boolean."""
        return self._read(key, default_value, lambda text: _BOOLEANS[text.lower()], "true or false")

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set an option, and return this configuration."""
        return self._set(key, value)

    def get_bytearray(self, key: str, default_value: bytearray | None) -> bytearray | None:
        """Return an option as bytes, or `default_value`; raise a `ProgramError` if it was set as another type."""
        value = self._options.get(key, default_value)
        if value is not None and not isinstance(value, bytes | bytearray):
            raise ProgramError(f"option {key!r}: expected bytes, got {value!r}")
        return None if value is None else bytearray(value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set an option, and return this configuration."""
        return self._set(key, value)

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        """Return the items of an option that is a list: ``[a, b]``, lines of ``- a``, or ``a;b`` as in older programs.

        >>> Configuration.parse_list_value("[a.jar, b.jar]"), Configuration.parse_list_value("a.jar;b.jar")
        (['a.jar', 'b.jar'], ['a.jar', 'b.jar'])
        """
        text = (value or "").strip()
        if not text:
            return []
        lines = text.splitlines()
        if text.startswith("[") and text.endswith("]"):
            parts = text[1:-1].split(",")
        elif all(line.lstrip().startswith("- ") for line in lines):
            parts = [line.lstrip().removeprefix("- ") for line in lines]
        else:
            parts = text.split(";")
        return [part.strip().strip("'\"") for part in parts]

    def key_set(self) -> set[str]:
        """Return the names of all options that are set."""
        return set(self._options)

    def contains_key(self, key: str) -> bool:
        """Say whether an option is set."""
        return key in self._options

    def remove_config(self, key: str) -> bool:
        """Unset an option, and say whether it was set."""
        return self._options.pop(key, None) is not None

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Set all options of another configuration, with `prefix` before their names."""
        self._options.update({(prefix or "") + key: value for key, value in other._options.items()})
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Put all options into a dict, as they were set."""
        target_dict.update(self._options)

    def to_dict(self) -> dict[str, str]:
        """Return all options as text."""
        return {key: _as_text(value) for key, value in self._options.items()}

    def _set(self, key: str, value: object) -> Configuration:
        self._options[key] = value
        return self

    def _read(self, key: str, default_value: T | None, convert: Callable[[str], T], expected: str) -> T | None:
        if key not in self._options:
            return default_value
        text = _as_text(self._options[key])
        try:
            return convert(text)
        except (ValueError, KeyError) as error:
            raise ProgramError(f"option {key!r}: expected {expected}, got {text!r}") from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __str__(self) -> str:
        return f"{{{', '.join(f'{key}={value}' for key, value in self.to_dict().items())}}}"

    def __repr__(self) -> str:
        return f"Configuration({self.to_dict()!r})"


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


hand_out_names(__name__)
