"""Pickling of what has no module: by the name that the program brought, else by value. Loaded where it is needed."""

from __future__ import annotations

import io
from types import FunctionType
from typing import Any

import cloudpickle

from eventide.common._pickles import class_of_name, name_if_brought


def dumps_by_name_or_value(value: Any) -> bytes:
    """Pickle data: classes of the program by their names, other classes and functions by value if they must."""
    with io.BytesIO() as file:
        _Pickler(file, protocol=5).dump(value)
        return file.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, obj: Any) -> Any:
        """Called for everything but plain values and containers, so what is no class has to be passed on quickly."""
        if not isinstance(obj, (type, FunctionType)):
            return NotImplemented
        name = name_if_brought(obj)
        return super().reducer_override(obj) if name is None else (class_of_name, name)
