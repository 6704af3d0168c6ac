"""When an asynchronous function is tried again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from eventide._absent import finder_of_names
from eventide.datastream.functions import AsyncRetryPredicate, AsyncRetryStrategy
from eventide.errors import ProgramError

__all__ = [
    "NO_RETRY_STRATEGY",
    "ExponentialBackoffDelayRetryStrategy",
    "FixedDelayRetryStrategy",
    "NoRetryStrategy",
    "RetryPredicate",
]

_OnResult = Callable[[list[Any]], bool] | None
_OnException = Callable[[Exception], bool] | None


class RetryPredicate(AsyncRetryPredicate[Any]):
    """Two functions, of which either may be None."""

    def __init__(self, result_predicate: _OnResult, exception_predicate: _OnException) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> _OnResult:
        """The function of a result."""
        return self._result_predicate

    def exception_predicate(self) -> _OnException:
        """The function of an exception."""
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[Any]):
    """Nothing is tried again."""

    def can_retry(self, current_attempts: int) -> bool:
        """Never."""
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """No time."""
        return -1

    def get_retry_predicate(self) -> RetryPredicate:
        """Nothing."""
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy[Any]):
    """So many further attempts, each after the same delay in milliseconds.

    >>> strategy = FixedDelayRetryStrategy(2, 50, None, None)
    >>> [strategy.can_retry(attempts) for attempts in (1, 2, 3)]
    [True, True, False]
    """

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: _OnResult,
        exception_predicate: _OnException,
    ) -> None:
        _positive(max_attempts=max_attempts, backoff_time_millis=backoff_time_millis)
        self._max_attempts = max_attempts
        self._backoff_time_millis = backoff_time_millis
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        """Whether there have been fewer."""
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The delay."""
        return self._backoff_time_millis

    def get_retry_predicate(self) -> RetryPredicate:
        """What is tried again."""
        return self._predicate


class ExponentialBackoffDelayRetryStrategy(FixedDelayRetryStrategy):
    """So many further attempts, each after a delay that is longer than the one before by a factor, up to a limit.

    >>> strategy = ExponentialBackoffDelayRetryStrategy(5, 100, 350, 2.0, None, None)
    >>> [strategy.get_backoff_time_millis(attempts) for attempts in (1, 2, 3, 4)]
    [100, 200, 350, 350]
    """

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: _OnResult,
        exception_predicate: _OnException,
    ) -> None:
        super().__init__(max_attempts, initial_delay, result_predicate, exception_predicate)
        _positive(max_retry_delay=max_retry_delay, multiplier=multiplier)
        self._max_retry_delay = max_retry_delay
        self._multiplier = multiplier

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The delay behind so many attempts."""
        delay = self._backoff_time_millis * self._multiplier ** max(0, current_attempts - 1)
        return int(min(delay, self._max_retry_delay))


def _positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if number <= 0:
            raise ProgramError(f"{name} of a retry strategy must be above zero, and is {number!r}")


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()


if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
