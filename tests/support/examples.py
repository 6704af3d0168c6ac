"""How many examples a property has that takes long."""

from __future__ import annotations

from hypothesis import settings


def examples(number: int) -> settings:
    """All of them where they are others in each run, as every night; half of them where they are the same each time."""
    return settings(max_examples=number // 2 if settings.default.derandomize else number)
