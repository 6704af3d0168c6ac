"""How far the splits of sources may run apart in event time."""

from __future__ import annotations

from dataclasses import dataclass

from eventide.common.ms import to_ms, to_positive_ms
from eventide.common.time import Duration, Time
from eventide.errors import ProgramError

_EVERY_SECOND = 1_000


@dataclass(frozen=True, slots=True)
class WatermarkAlignment:
    """Settings of a strategy for watermark alignment. Flink: ``WatermarkAlignmentParams``.

    Attributes:
        group: The name that all sources have in common that wait for each other.
        drift_ms: How far a split of the source may be ahead of the lowest watermark of the group, in milliseconds.
        update_interval_ms: How often a program for Flink wants watermarks compared.
    """

    group: str
    drift_ms: int
    update_interval_ms: int = _EVERY_SECOND

    @staticmethod
    def of(
        group: str, drift: Duration | Time | int, update_interval: Duration | Time | int | None = None
    ) -> WatermarkAlignment:
        """Check what a program says, and bring it to milliseconds.

        Raises:
            ProgramError: The group is no name, the drift is negative, or the interval is not positive.

        >>> WatermarkAlignment.of("trips", 20_000).describe()
        "aligned in 'trips' within 20000 ms"
        """
        if not isinstance(group, str) or not group:
            raise ProgramError(f"watermark alignment needs the name of a group, such as 'orders', not {group!r}")
        drift_ms = to_ms(drift, "max allowed watermark drift")
        if drift_ms < 0:
            raise ProgramError(f"the max allowed watermark drift must be 0 or more, not {drift_ms} ms")
        if update_interval is None:
            return WatermarkAlignment(group, drift_ms)
        return WatermarkAlignment(group, drift_ms, to_positive_ms(update_interval, "update interval"))

    def describe(self) -> str:
        """Return a few words for plans and logs."""
        return f"aligned in {self.group!r} within {self.drift_ms} ms"
