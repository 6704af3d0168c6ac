"""Rules for the names of topics."""

from __future__ import annotations

import re
from typing import Any

from eventide.errors import ProgramError

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def checked_topic(name: Any) -> str:
    """The name of a topic, as Kafka allows it.

    Raises:
        ProgramError: if it is none.
    """
    if isinstance(name, str) and _NAME.fullmatch(name) and name not in {".", ".."}:
        return name
    raise ProgramError(f"{name!r} cannot be a topic of Kafka: 1 to 249 letters, digits, '.', '_' and '-' can")
