"""Functions that wait for others: many elements at a time, in one task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic

from eventide.common.type_variables import OUT, IN_contra, OUT_co
from eventide.datastream.functions._basic import Function


class AsyncFunction(Function, Generic[IN_contra, OUT_co]):
    """Turns each element into any number of others, and may wait while it does: for a database, a service, a file.

    The elements of a task wait together, so many at a time as `AsyncDataStream` is told.

    >>> class LooksUp(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         return [await self.client.get(value)]
    """

    @abstractmethod
    async def async_invoke(self, value: IN_contra) -> list[OUT_co]:
        """Return a list of what comes out for `value`; raise what is to end the job, or to be tried again.

        Where nothing comes out, return an empty list: None ends the job, as in PyFlink.
        """

    def timeout(self, value: IN_contra) -> list[OUT_co]:
        """Return a list of what comes out for an element that took too long, all attempts together.

        Raises:
            TimeoutError: where this is not overridden.
        """
        message = f"the function took too long for {value!r}"
        raise TimeoutError(message)


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Says what is to be tried again."""

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """Return a function that says so of a result, or None: then no result is."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """Return a function that says so of an exception, or None: then no exception is."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Says whether and when an element is tried again. It is asked for many elements, and must not remember any."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Say whether there is another attempt after so many, from 1."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return how long to wait for it, in milliseconds."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return what says which results and exceptions are tried again."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Return the strategy that tries nothing again."""
        from eventide.datastream.async_retry_strategies import NO_RETRY_STRATEGY

        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[OUT]:
        """Return a strategy that tries again so often, each time after the same delay in milliseconds."""
        from eventide.datastream.async_retry_strategies import FixedDelayRetryStrategy

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
        """Return a strategy that tries again so often, each time after a longer delay, in milliseconds."""
        from eventide.datastream.async_retry_strategies import ExponentialBackoffDelayRetryStrategy

        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )
