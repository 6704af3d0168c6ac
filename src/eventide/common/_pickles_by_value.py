"""Pickling of what no module and no program has a name for: by value. Loaded where it is needed."""

from __future__ import annotations

import io
from typing import Any

import cloudpickle

from eventide.common._pickles import reduced_to_name


def dumps_by_name_or_value(value: Any) -> bytes:
    """Pickle data: classes of the program by their names, other classes and functions by value if they must."""
    with io.BytesIO() as file:
        _Pickler(file, protocol=5).dump(value)
        return file.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, obj: Any) -> Any:
        """Called for everything but plain values and containers."""
        reduced = reduced_to_name(obj)
        return super().reducer_override(obj) if reduced is NotImplemented else reduced
