"""Settings of Flink that have no meaning on Spark: taken, so that a program goes on, and said once."""

from __future__ import annotations

import warnings
from typing import Any, Self

from eventide.common._stack import level_of_the_program


def has_no_effect(what: str, why: str, *, how_many: int = 1) -> None:
    """Warn that something which a program asks for makes no difference, and why; unless it is nothing."""
    if how_many:
        has = "has" if how_many == 1 else "have"
        warnings.warn(f"{what} {has} no effect: {why}", UserWarning, stacklevel=level_of_the_program())


class AcceptedSettings:
    """Settings that are kept, to be asked for, and make no difference; the first time each is set, a warning says why.

    >>> import warnings
    >>> settings = AcceptedSettings()
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = settings.accept("checkpoint_timeout", 5_000, "a micro-batch has no timeout")
    ...     _ = settings.accept("checkpoint_timeout", 6_000, "a micro-batch has no timeout")
    >>> [str(warning.message) for warning in caught], settings.accepted("checkpoint_timeout", None)
    (['checkpoint_timeout has no effect: a micro-batch has no timeout'], 6000)
    """

    def __init__(self) -> None:
        self._accepted: dict[str, Any] = {}

    def accept(self, name: str, value: object, why: str) -> Self:
        """Keep a setting."""
        if name not in self._accepted:
            has_no_effect(name, why)
        return self.keep(name, value)

    def keep(self, name: str, value: object) -> Self:
        """Keep a setting without a warning, because it says what is so in any case."""
        self._accepted[name] = value
        return self

    def accepted(self, name: str, default: Any) -> Any:
        """The setting, or what Flink has by default."""
        return self._accepted.get(name, default)
