"""Pickling of what users made: fast where possible, by value where a class cannot be imported elsewhere."""

from __future__ import annotations

import pickle
from typing import Any


def dumps(value: Any) -> bytes:
    """Pickle data; objects whose class was made in a program's main file or a worker take their class along.

    Raises what pickling raises where not even that helps, such as for a lock or a generator.
    """
    try:
        return pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        import cloudpickle

        return bytes(cloudpickle.dumps(value, protocol=5))
