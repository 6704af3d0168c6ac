"""The dead letters of an operator behind a shuffle."""

from __future__ import annotations

from typing import Any

from eventide.runtime.chain.collector import Collector, Mark
from eventide.runtime.dead_letters import dead_letter
from eventide.runtime.metrics import DEAD_LETTERS, Metrics


class Letters:
    """Puts the dead letters of an operator out, and counts them."""

    def __init__(self, operator: str, tag: str | None, out: Collector, metrics: Metrics) -> None:
        self._operator = operator
        self._tag = tag or ""
        self._out = out
        self._metrics = metrics

    def put(self, before: Mark, during: str, error: Exception, time_ms: int | None, **what: Any) -> None:
        """Have a letter in place of all that came out behind a mark.

        Raises:
            EventideError: if the error is none of the data's.
        """
        letter = dead_letter(self._operator, during, error, timestamp=time_ms, **what)
        self._out.cut(before)
        self._out.put_letter(self._tag, letter, time_ms)
        self._metrics.count(self._operator, DEAD_LETTERS)
