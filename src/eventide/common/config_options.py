"""Declared options: a key, a type, and optionally a default value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from eventide._absent import hand_out_names

__all__ = ["ConfigOption", "ConfigOptions"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class ConfigOption(Generic[_T]):
    """A declared option, which a ``Configuration`` finds by its key. Made with :class:`ConfigOptions`."""

    key: str
    default_value: _T | None = None

    def has_default_value(self) -> bool:
        """Whether there is a default value."""
        return self.default_value is not None


class ConfigOptions:
    """Declares options. Flink: ``ConfigOptions``.

    >>> ConfigOptions.key("orders.limit").int_type().default_value(100)
    ConfigOption(key='orders.limit', default_value=100)
    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Start with the key of an option."""
        return ConfigOptions.OptionBuilder(key)

    @dataclass(frozen=True)
    class OptionBuilder:
        """An option with a key."""

        option_key: str

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """The option is true or false."""
            return ConfigOptions.TypedConfigOptionBuilder(self.option_key)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """The option is an integer."""
            return ConfigOptions.TypedConfigOptionBuilder(self.option_key)

        long_type = int_type

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """The option is a number."""
            return ConfigOptions.TypedConfigOptionBuilder(self.option_key)

        double_type = float_type

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """The option is text."""
            return ConfigOptions.TypedConfigOptionBuilder(self.option_key)

    @dataclass(frozen=True)
    class TypedConfigOptionBuilder(Generic[_T]):
        """An option with a key and a type."""

        option_key: str

        def default_value(self, value: _T) -> ConfigOption[_T]:
            """The option, with a default value."""
            return ConfigOption(self.option_key, value)

        def no_default_value(self) -> ConfigOption[_T]:
            """The option, without a default value."""
            return ConfigOption(self.option_key)


hand_out_names(__name__)
