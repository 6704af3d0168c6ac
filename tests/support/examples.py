"""How many examples a property has that takes long."""

from __future__ import annotations

from hypothesis import settings


def examples(number: int) -> settings:
    """The number of examples: all where each run has others, as every night; half where they are the same each time."""
    return settings(max_examples=number // 2 if settings.default.derandomize else number)
