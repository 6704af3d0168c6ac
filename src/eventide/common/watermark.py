"""The watermark: a promise about event time."""

from dataclasses import dataclass

from eventide.common._ms import MAX_MS

__all__ = ["MAX_WATERMARK", "Watermark"]


@dataclass(frozen=True, slots=True, order=True)
class Watermark:
    """The promise that no element with a timestamp at or before `timestamp` will follow.

    Watermarks order by their timestamp, in milliseconds since the epoch (UTC).

    >>> Watermark(10) < Watermark(11) < MAX_WATERMARK
    True
    """

    timestamp: int


MAX_WATERMARK = Watermark(MAX_MS)
"""The last watermark of a stream that has ended: nothing at all will follow, every window closes."""
