"""Lengths of time and points in time: `Duration`, `Time` and `Instant`, as in PyFlink."""

from dataclasses import dataclass

from eventide._absent import hand_out_names

__all__ = ["Duration", "Instant", "Time"]

_NANOS_PER_MS = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True, order=True, repr=False)
class Duration:
    """A length of time, exact to the nanosecond; it may be negative.

    Flink: ``java.time.Duration``, the type of every timeout, bound and gap.

    >>> Duration.of_minutes(1) == Duration.of_seconds(60)
    True
    >>> Duration.of_seconds(90).to_millis()
    90000
    """

    nanos: int

    @staticmethod
    def of_days(days: int) -> "Duration":
        """Return a duration of `days` days of 24 hours."""
        return Duration.of_hours(days * 24)

    @staticmethod
    def of_hours(hours: int) -> "Duration":
        """Return a duration of `hours` hours."""
        return Duration.of_minutes(hours * 60)

    @staticmethod
    def of_minutes(minutes: int) -> "Duration":
        """Return a duration of `minutes` minutes."""
        return Duration.of_seconds(minutes * 60)

    @staticmethod
    def of_seconds(seconds: int) -> "Duration":
        """Return a duration of `seconds` seconds."""
        return Duration(seconds * _NANOS_PER_SECOND)

    @staticmethod
    def of_millis(millis: int) -> "Duration":
        """Return a duration of `millis` milliseconds."""
        return Duration(millis * _NANOS_PER_MS)

    @staticmethod
    def of_nanos(nanos: int) -> "Duration":
        """Return a duration of `nanos` nanoseconds."""
        return Duration(nanos)

    def to_millis(self) -> int:
        """Return the whole milliseconds, rounded down.

        >>> Duration.of_nanos(1_999_999).to_millis()
        1
        """
        return self.nanos // _NANOS_PER_MS

    def __repr__(self) -> str:
        whole = self.nanos % _NANOS_PER_MS == 0
        return f"Duration({self.to_millis()} ms)" if whole else f"Duration({self.nanos} ns)"


@dataclass(frozen=True, slots=True, order=True, repr=False, init=False)
class Time:
    """A length of time in milliseconds; Flink's older class, which window assigners still take.

    >>> Time.seconds(5).to_milliseconds()
    5000
    >>> print(Time.minutes(1))
    60000 ms
    """

    _milliseconds: int

    def __init__(self, milliseconds: int) -> None:
        object.__setattr__(self, "_milliseconds", milliseconds)

    def to_milliseconds(self) -> int:
        """Return the length in milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> "Time":
        """Return a time of `milliseconds` milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> "Time":
        """Return a time of `seconds` seconds."""
        return Time(seconds * 1000)

    @staticmethod
    def minutes(minutes: int) -> "Time":
        """Return a time of `minutes` minutes."""
        return Time.seconds(minutes * 60)

    @staticmethod
    def hours(hours: int) -> "Time":
        """Return a time of `hours` hours."""
        return Time.minutes(hours * 60)

    @staticmethod
    def days(days: int) -> "Time":
        """Return a time of `days` days of 24 hours."""
        return Time.hours(days * 24)

    def __repr__(self) -> str:
        return f"Time({self._milliseconds} ms)"

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"


@dataclass(frozen=True, slots=True, order=True, repr=False)
class Instant:
    """A point in time: seconds since the epoch (UTC), and nanoseconds (0 to 999,999,999) counted forward from there.

    Flink: ``java.time.Instant``. The value for `Types.INSTANT`.

    >>> Instant.of_epoch_milli(-1)
    Instant<-1, 999000000>
    >>> Instant.of_epoch_milli(-1).to_epoch_milli()
    -1
    """

    seconds: int
    nanos: int

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> "Instant":
        """Return the point `epoch_milli` milliseconds after (or, negative, before) the epoch."""
        seconds, milliseconds = divmod(epoch_milli, 1000)
        return Instant(seconds, milliseconds * _NANOS_PER_MS)

    def to_epoch_milli(self) -> int:
        """Return the milliseconds since the epoch; a remainder of nanoseconds is dropped."""
        return self.seconds * 1000 + self.nanos // _NANOS_PER_MS

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


hand_out_names(__name__)
