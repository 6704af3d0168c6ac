"""The two kinds of time that a timer can wait for."""

from eventide.api.functions.timers import TimeDomain

__all__ = ["TimeDomain"]
