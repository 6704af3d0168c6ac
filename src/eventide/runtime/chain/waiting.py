"""An asynchronous function that is chained: the elements of a batch wait together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

from eventide.common.typeinfo import TypeInformation, Types
from eventide.datastream._dead_letters import ADVICE
from eventide.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from eventide.datastream.functions import AsyncFunction, AsyncRetryStrategy
from eventide.errors import UserFunctionError
from eventide.runtime.chain.steps import Call, as_results
from eventide.runtime.elements.columns import Batch, as_elements
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.ownership import own
from eventide.runtime.invoke import shown, user_function_error

WAITING = "while it waited for an element"


@dataclass(frozen=True, slots=True)
class Wait:
    """An ``AsyncFunction`` with its limits; ``type_info`` is the type that was declared for what comes out."""

    name: str
    call: Callable[[Any], Coroutine[Any, Any, list[Any]]]
    user_function: AsyncFunction[Any, Any]
    takes_columns: bool = False
    timeout_s: float = 60.0
    strategy: AsyncRetryStrategy[Any] = NO_RETRY_STRATEGY
    capacity: int = 100
    type_info: TypeInformation = field(default_factory=Types.PICKLED_BYTE_ARRAY)

    during: ClassVar[str] = WAITING

    def caller(self, values: list[Any]) -> Call:
        """Return the function's result or error for each element, after waiting for all of them."""
        outcomes: Iterator[list[Any] | Exception] = iter(_run(self._all_outcomes(values)))

        def outcome(value: Any, _: Any) -> list[Any]:
            found = next(outcomes)
            if isinstance(found, Exception):
                raise found
            return found

        return outcome

    def apply(self, batch: Batch) -> Elements:
        """Call the function with each element, and wait for all; results keep the element's timestamp and number."""
        elements, out = as_elements(batch), Elements()
        results = _run(self._all(elements.values))
        for of_one, timestamp, number in zip(results, elements.timestamps, elements.sequence, strict=True):
            for result in of_one:
                out.append(result, timestamp, number)
        out.values = as_results(self.name, out.values, self.type_info)
        return out

    async def _all(self, values: list[Any]) -> list[list[Any]]:
        """Return the results of each element, in their order; the first failure ends the others."""
        places = asyncio.Semaphore(self.capacity)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(value, places)) for value in values]
        return [task.result() for task in tasks]

    async def _all_outcomes(self, values: list[Any]) -> list[list[Any] | Exception]:
        """Return the results or the error of each element, in their order; a failure ends no other."""

        async def outcome(value: Any) -> list[Any] | Exception:
            try:
                return await self._one(value, places)
            except Exception as error:
                return error

        places = asyncio.Semaphore(self.capacity)
        return await asyncio.gather(*map(outcome, values))

    async def _one(self, value: Any, places: asyncio.Semaphore) -> list[Any]:
        async with places:
            try:
                async with asyncio.timeout(self.timeout_s) as limit:
                    return self._listed("async_invoke", await self._attempts(value), value)
            except TimeoutError as error:
                if not limit.expired():
                    raise self._failed(error, value) from error
            try:
                result = self.user_function.timeout(value)
            except Exception as error:
                raise self._failed(error, value) from error
            return self._listed("timeout", result, value)

    def _listed(self, method: str, result: Any, value: Any) -> list[Any]:
        """Return the results of a method for an element.

        Raises:
            UserFunctionError: if it is None, or nothing that has results in it: an element would be lost silently.
        """
        if not isinstance(result, Iterable):
            name = f"{method} of {type(self.user_function).__name__}"
            wrong = UserFunctionError(
                f"{name} returned {shown(result)}; it has to return a list of what comes out for the element, [] for "
                "nothing"
            )
            raise self._failed(wrong, value)
        try:
            return list(map(own, result))
        except Exception as error:
            raise self._failed(error, value) from error

    async def _attempts(self, value: Any) -> list[Any]:
        strategy = self.strategy
        predicate = strategy.get_retry_predicate()
        again_with, again_behind = predicate.result_predicate(), predicate.exception_predicate()
        attempts = 1
        while True:
            try:
                result = await self.call(value)
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                raise self._failed(error, value) from error  # only the function itself can have cancelled it
            except Exception as error:
                if again_behind is None or not again_behind(error) or not strategy.can_retry(attempts):
                    raise self._failed(error, value) from error
            else:
                if again_with is None or not again_with(result or []) or not strategy.can_retry(attempts):
                    return result
            await asyncio.sleep(strategy.get_backoff_time_millis(attempts) / 1_000)
            attempts += 1

    def _failed(self, error: BaseException, value: Any) -> Exception:
        return user_function_error(self.name, error, during=WAITING, advice=ADVICE, element=value)


@cache
def _loop() -> asyncio.Runner:
    """One event loop for a process, because clients of databases and services belong to the one they were made in."""
    return asyncio.Runner()


@cache
def _beside() -> ThreadPoolExecutor:
    """Where to run it where a loop runs already, as in a notebook."""
    return ThreadPoolExecutor(1)


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _first_error_of(lambda: _loop().run(work))
    return _first_error_of(lambda: _beside().submit(_loop().run, work).result())


def _first_error_of(run: Callable[[], Any]) -> Any:
    """Return the result of some work; of several errors, raise the first."""
    try:
        return run()
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
