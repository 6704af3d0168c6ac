"""The two kinds of time of timers."""

from eventide.api.functions.timers import TimeDomain

__all__ = ["TimeDomain"]
