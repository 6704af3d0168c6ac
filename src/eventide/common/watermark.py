"""The watermark: a promise about event time."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from eventide.common.ms import MAX_MS, MIN_MS, clamp_ms
from eventide.errors import ProgramError

__all__ = ["MAX_WATERMARK", "UNINITIALIZED", "Watermark"]

_DAY_MS = 86_400_000
_CYCLE_MS = 146_097 * _DAY_MS
"""The Gregorian calendar repeats itself after 400 years."""


@dataclass(frozen=True, slots=True, order=True, repr=False)
class Watermark:
    """The promise that no element with a timestamp at or before `timestamp` will follow.

    Watermarks order by their timestamp, in milliseconds since the epoch (UTC), which saturates at the ends of the
    64-bit range. Flink: ``Watermark``.

    Raises:
        ProgramError: The timestamp is not an integer.

    >>> Watermark(10) < Watermark(11) < MAX_WATERMARK
    True
    >>> print(Watermark(1_357_000_000_000))
    Watermark @ 1357000000000 (2013-01-01 00:26:40.000)
    >>> Watermark(-(2**70)) == UNINITIALIZED
    True
    """

    timestamp: int

    def __post_init__(self) -> None:
        if isinstance(self.timestamp, bool) or not hasattr(self.timestamp, "__index__"):
            raise ProgramError(f"watermark: expected an int of milliseconds since the epoch, got {self.timestamp!r}")
        object.__setattr__(self, "timestamp", clamp_ms(self.timestamp.__index__()))

    def get_timestamp(self) -> int:
        """Return the timestamp, in milliseconds since the epoch (UTC)."""
        return self.timestamp

    def get_formatted_timestamp(self) -> str:
        """Return the timestamp as ``yyyy-MM-dd HH:mm:ss.SSS`` (UTC), in the Gregorian calendar throughout.

        >>> Watermark(0).get_formatted_timestamp(), MAX_WATERMARK.get_formatted_timestamp()
        ('1970-01-01 00:00:00.000', '292278994-08-17 07:12:55.807')
        """
        cycles, within_ms = divmod(self.timestamp, _CYCLE_MS)
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=within_ms)  # noqa: DTZ001 - it is UTC
        milliseconds = moment.microsecond // 1000
        return f"{moment.year + 400 * cycles:04}-{moment:%m-%d %H:%M:%S}.{milliseconds:03}"

    def __repr__(self) -> str:
        return f"Watermark({self.timestamp})"

    def __str__(self) -> str:
        return f"Watermark @ {self.timestamp} ({self.get_formatted_timestamp()})"


MAX_WATERMARK = Watermark(MAX_MS)
"""The last watermark of a stream that has ended: no element will follow, and every window closes."""

UNINITIALIZED = Watermark(MIN_MS)
"""The value of a watermark before the first one."""
