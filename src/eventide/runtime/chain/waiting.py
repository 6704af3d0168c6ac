"""An asynchronous function that is chained: the elements of a batch wait together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

from eventide.api.functions import AsyncFunction, AsyncRetryStrategy
from eventide.api.functions.asynchronous import NO_RETRY_STRATEGY
from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import DEAD_LETTER_ADVICE, ProgramError, UserFunctionError
from eventide.runtime.chain.chained_operators import Call, OneOutput
from eventide.runtime.chain.outputs import as_results, is_tagged
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.elements.ownership import own
from eventide.runtime.invoke import shown, user_function_error
from eventide.runtime.tracing.reasons import place_of


@dataclass(frozen=True, slots=True)
class AsyncWaitOperator(OneOutput):
    """An ``AsyncFunction`` with its limits; ``type_info`` is the type that was declared for its results."""

    name: str
    call: Callable[[Any], Coroutine[Any, Any, list[Any]]]
    user_function: AsyncFunction[Any, Any]
    timeout_s: float | None = 60.0
    strategy: AsyncRetryStrategy[Any] = NO_RETRY_STRATEGY
    capacity: int = 100
    type_info: TypeInformation = field(default_factory=Types.PICKLED_BYTE_ARRAY)

    during: ClassVar[str] = "while it waited for an element"

    def caller(self, values: list[Any]) -> Call:
        """Wait for all of these elements; return a function that gives, or raises, the outcome of each in turn."""
        outcomes = iter(_run(self._outcomes(values, errors_end_all=False)))

        def outcome(value: object, _: object) -> Any:
            found = next(outcomes)
            if isinstance(found, Exception):
                raise found
            return found

        return outcome

    def on_columns(self, columns: Columns) -> None:
        """None, because Python is called."""

    def why_in_python(self, type_info: TypeInformation) -> str:
        """The reason, which is the same for all types."""
        return f"an asynchronous function is called with each element{place_of(self.user_function)}"

    def apply(self, elements: Elements) -> Elements:
        """Call the function with each element, and wait for all; results keep the element's timestamp and number."""
        out = Elements()
        results = _run(self._outcomes(elements.values, errors_end_all=True))
        for of_one, timestamp, number in zip(results, elements.timestamps, elements.sequence, strict=True):
            for result in of_one:
                out.append(result, timestamp, number)
        out.values = as_results(self.name, out.values, self.type_info)
        return out

    async def _outcomes(self, values: list[Any], *, errors_end_all: bool) -> list[Any]:
        """The results of each element, in their order; an error takes their place, or is raised and ends all others."""
        places = asyncio.Semaphore(self.capacity)
        work = [self._one(value, places) for value in values]
        if not errors_end_all:
            return [*await asyncio.gather(*work, return_exceptions=True)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [*map(group.create_task, work)]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _one(self, value: object, places: asyncio.Semaphore) -> list[Any]:
        task = asyncio.current_task()
        try:
            async with places:
                return await self._results(value)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # because of another element; a function may also cancel itself
            during = self.during
            raise user_function_error(
                self.name, error, during=during, advice=DEAD_LETTER_ADVICE, element=value
            ) from error

    async def _results(self, value: object) -> list[Any]:
        """The results of an element; once its time is over, whatever the function gives, those of `timeout`."""
        clock = asyncio.get_running_loop().time
        end = None if self.timeout_s is None else clock() + self.timeout_s
        try:
            async with asyncio.timeout_at(end) as limit:
                results = await self._attempts(value)
        except TimeoutError:
            if not limit.expired():
                raise
        else:
            if end is None or not (limit.expired() or clock() > end):  # it may go on when it is cancelled, or block
                return self._listed("async_invoke", results)
        return self._listed("timeout", self.user_function.timeout(value))

    def _listed(self, method: str, results: object) -> list[Any]:
        if not isinstance(results, Iterable):  # the element would be lost silently
            raise UserFunctionError(
                f"{method} of {type(self.user_function).__name__} returned {shown(results)}; it has to return a list "
                "of the results for the element, [] for none"
            )
        results = list(results)
        if any(map(is_tagged, results)):
            raise ProgramError(
                f"{method} of {type(self.user_function).__name__} returned a pair with an OutputTag, and an "
                "asynchronous function has no side outputs; use a process function downstream to emit the pair"
            )
        return list(map(own, results))

    async def _attempts(self, value: object) -> Any:
        can_retry, predicate = self.strategy.can_retry, self.strategy.get_retry_predicate()
        bad_result, bad_exception = predicate.result_predicate(), predicate.exception_predicate()
        attempts = 1
        while True:
            try:
                result = await self.call(value)
            except Exception as error:
                if bad_exception is None or not bad_exception(error) or not can_retry(attempts):
                    raise
            else:
                if bad_result is None or not bad_result(result or []) or not can_retry(attempts):
                    return result
            await asyncio.sleep(self.strategy.get_backoff_time_millis(attempts) / 1_000)
            attempts += 1


@cache
def _loop() -> asyncio.Runner:
    """One event loop for a process, because clients of databases and services belong to the loop that made them."""
    return asyncio.Runner()


@cache
def _thread() -> ThreadPoolExecutor:
    """A thread for the loop where another loop runs already, as in a notebook."""
    return ThreadPoolExecutor(1)


def _run(work: Coroutine[Any, Any, list[Any]]) -> list[Any]:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _loop().run(work)
    return _thread().submit(_loop().run, work).result()
