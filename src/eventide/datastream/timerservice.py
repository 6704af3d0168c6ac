"""The times and timers of a function."""

from eventide.api.functions.timers import TimerService

__all__ = ["TimerService"]
