"""How data name a class."""

from __future__ import annotations

from typing import TypeAlias

ClassName: TypeAlias = tuple[str, str]
"""A module, and the qualified name of a class in it."""


def class_name(kind: type) -> ClassName:
    """The name under which data refer to a class."""
    return kind.__module__, kind.__qualname__
