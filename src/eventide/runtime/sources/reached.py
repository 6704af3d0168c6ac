"""Where operators stand after a micro-batch, for the tasks of sources in the next one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Reached:
    """The watermarks of some operators after the micro-batch of a number, by their ids.

    An operator that did not run in it is missing. ``audience`` is a name for the operators of the program, and for what
    they hear: in another program, they may stand elsewhere as soon as they hear anything.
    """

    batch: int
    audience: str
    watermarks: Mapping[str, int]

    @staticmethod
    def told(batch: int, contents: Iterable[Mapping[str, Any]]) -> Reached | None:
        """Gather the contents of the frames in which operators told it after a micro-batch; None if there is none."""
        audience, watermarks = "", {}
        for content in contents:
            audience = content["audience"]
            watermarks.update(content["watermarks"])
        return Reached(batch, audience, watermarks) if watermarks else None

    def watermarks_before(self, batch: int, audience: str) -> Mapping[str, int]:
        """The watermarks with which a micro-batch begins, by the ids of operators; none if it does not come next.

        >>> reached = Reached(7, "one", {"window": 1_000})
        >>> reached.watermarks_before(8, "one"), reached.watermarks_before(9, "one")
        ({'window': 1000}, {})
        """
        return self.watermarks if (self.batch + 1, self.audience) == (batch, audience) else {}
