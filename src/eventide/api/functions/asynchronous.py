"""Asynchronous functions, which wait for many elements at a time in one task; and their retry strategies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic

from eventide.api.functions._basic import Function
from eventide.common.type_variables import OUT, IN_contra, OUT_co
from eventide.errors import ProgramError

_OnResult = Callable[[list[Any]], bool] | None
_OnException = Callable[[Exception], bool] | None


class AsyncFunction(Function, Generic[IN_contra, OUT_co]):
    """Maps each element to any number of results, and may wait meanwhile: for a database, a service, a file.

    The elements of a task wait together, up to the capacity that `AsyncDataStream` is given.

    >>> class LooksUp(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         return [await self.client.get(value)]
    """

    @abstractmethod
    async def async_invoke(self, value: IN_contra) -> list[OUT_co]:
        """Return a list of the results for `value`; raise an error to end the job, or to be called again.

        Return an empty list for no results: None ends the job, as in PyFlink.
        """

    def timeout(self, value: IN_contra) -> list[OUT_co]:
        """Return a list of the results for an element whose attempts together took too long.

        Raises:
            TimeoutError: if this is not overridden.
        """
        raise TimeoutError(f"the function took too long for {value!r}")


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """The results and exceptions that cause a retry."""

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """Return a function that says whether a result causes a retry; None for no result."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """Return a function that says whether an exception causes a retry; None for no exception."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Decides whether and when an element is retried. It serves many elements, and must not remember any."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Say whether there is another attempt after a number of attempts, counted from 1."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return the delay before the next attempt, in milliseconds."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return the predicates of results and exceptions that cause a retry."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Return the strategy without retries."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[OUT]:
        """Return a :class:`FixedDelayRetryStrategy`."""
        return FixedDelayRetryStrategy(max_attempts, backoff_time_millis, result_predicate, exception_predicate)

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[OUT]:
        """Return an :class:`ExponentialBackoffDelayRetryStrategy`."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class RetryPredicate(AsyncRetryPredicate[Any]):
    """Two predicates, either of which may be None."""

    def __init__(self, result_predicate: _OnResult, exception_predicate: _OnException) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> _OnResult:
        return self._result_predicate

    def exception_predicate(self) -> _OnException:
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[Any]):
    """Never retries."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> RetryPredicate:
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy[Any]):
    """Makes up to ``max_attempts`` further attempts, each after the same delay in milliseconds.

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
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff_time_millis

    def get_retry_predicate(self) -> RetryPredicate:
        return self._predicate


class ExponentialBackoffDelayRetryStrategy(FixedDelayRetryStrategy):
    """Makes up to ``max_attempts`` further attempts; each delay is longer by a factor, up to a limit.

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
        try:
            delay = self._backoff_time_millis * self._multiplier ** max(0, current_attempts - 1)
        except OverflowError:  # 2.0 ** 1024 is no float
            return self._max_retry_delay
        return int(min(delay, self._max_retry_delay))


def _positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if number <= 0:
            raise ProgramError(f"{name} of a retry strategy must be above zero, and is {number!r}")


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()
