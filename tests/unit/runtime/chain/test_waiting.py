"""Asynchronous functions: elements wait together, in their order, with a limit of time and further attempts."""

import asyncio
import time

import pytest

from eventide.common import Duration, Time, Types
from eventide.datastream import AsyncDataStream, AsyncFunction
from eventide.datastream.async_retry_predicates import empty_result_predicate, has_exception_predicate
from eventide.datastream.async_retry_strategies import FixedDelayRetryStrategy
from eventide.datastream.functions import AsyncRetryStrategy
from eventide.errors import ProgramError, UserFunctionError
from eventide.testing import local_environment
from support.twin import plan_of, run, timed

SOON = Time.seconds(5)


class Later(AsyncFunction):
    """The lower a number, the longer it takes; it tells how many waited with it at most."""

    waiting = most = 0

    async def async_invoke(self, value):
        type(self).waiting += 1
        type(self).most = max(type(self).most, type(self).waiting)
        await asyncio.sleep((5 - value) / 1_000)
        type(self).waiting -= 1
        return [value, -value] if value % 2 else []


class Flaky(AsyncFunction):
    """Raises, or has nothing, until the third attempt for a value."""

    def __init__(self, *, raises):
        self.raises = raises
        self.attempts = {}

    async def async_invoke(self, value):
        self.attempts[value] = self.attempts.get(value, 0) + 1
        if self.attempts[value] < 3:
            if self.raises:
                raise OSError("not yet")
            return []
        return [(value, self.attempts[value])]


class Stuck(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(3_600 if value == 2 else 0)
        return [value]


class StuckButPatient(Stuck):
    def timeout(self, value):
        return [-value]


def numbers(*values):
    return local_environment().from_collection(list(values), Types.LONG())


def collected(stream):
    return list(stream.execute_and_collect())


@pytest.mark.parametrize("wait", [AsyncDataStream.ordered_wait, AsyncDataStream.unordered_wait])
def test_elements_wait_together_and_come_in_their_order(wait):
    Later.most = 0
    assert collected(wait(numbers(1, 2, 3, 4, 5), Later(), SOON, 3, Types.LONG())) == [1, -1, 3, -3, 5, -5]
    assert Later.most == 3


def test_results_have_the_times_of_their_elements():
    class Keeps(AsyncFunction):
        async def async_invoke(self, value):
            return [value]

    ((rows,),) = run(plan_of(AsyncDataStream.ordered_wait(timed(local_environment(), [("a", 5)]), Keeps(), SOON)))
    assert rows == [(("a", 5), 5)]


@pytest.mark.parametrize("raises", [True, False])
def test_there_are_further_attempts_as_the_strategy_says(raises):
    predicates = (None, has_exception_predicate) if raises else (empty_result_predicate, None)
    twice = AsyncRetryStrategy.fixed_delay(2, 1, *predicates)
    waiting = AsyncDataStream.unordered_wait_with_retry(numbers(7, 8), Flaky(raises=raises), SOON, twice)
    assert collected(waiting) == [(7, 3), (8, 3)]


def test_when_there_are_no_further_attempts_what_came_last_counts():
    once = AsyncRetryStrategy.exponential_backoff(1, 1, 10, 2.0, empty_result_predicate, has_exception_predicate)
    assert collected(AsyncDataStream.ordered_wait_with_retry(numbers(7), Flaky(raises=False), SOON, once)) == []
    with pytest.raises(UserFunctionError, match=r"while it waited for an element \(element 7\): .*not yet"):
        collected(AsyncDataStream.ordered_wait_with_retry(numbers(7), Flaky(raises=True), SOON, once))


def test_who_takes_too_long_ends_the_job_or_is_answered_for():
    brief = Duration.of_millis(30)
    assert collected(AsyncDataStream.ordered_wait(numbers(1, 2, 3), StuckButPatient(), brief)) == [1, -2, 3]
    with pytest.raises(UserFunctionError, match="the function took too long for 2"):
        collected(AsyncDataStream.ordered_wait(numbers(1, 2, 3), Stuck(), brief))


class HearsNothing(StuckButPatient):
    async def async_invoke(self, value):
        raise TimeoutError("no answer")


def test_a_timeout_of_the_functions_own_is_an_error_and_not_the_end_of_the_elements_time():
    with pytest.raises(UserFunctionError, match=r"\(element 1\): .*TimeoutError\('no answer'\)"):
        collected(AsyncDataStream.ordered_wait(numbers(1), HearsNothing(), SOON))


class Returns(AsyncFunction):
    """Gives what it was made with, at once or when it took too long."""

    def __init__(self, result, *, is_late=False):
        self.result, self.is_late = result, is_late

    async def async_invoke(self, value):
        await asyncio.sleep(3_600 if self.is_late else 0)
        return self.result

    def timeout(self, value):
        return self.result


@pytest.mark.parametrize("result", [None, 7])
def test_a_result_that_is_no_list_ends_the_job_and_names_operator_method_and_element(result):
    brief = Duration.of_millis(30)
    for is_late, method in ((False, "async_invoke"), (True, "timeout")):
        waiting = AsyncDataStream.ordered_wait(numbers(1), Returns(result, is_late=is_late), brief).name("asks")
        with pytest.raises(
            UserFunctionError,
            match=(
                rf"in operator 'asks', while it waited for an element \(element 1\): {method} of Returns returned "
                rf"{result}; it has to return a list of the results for the element, \[\] for none"
            ),
        ):
            collected(waiting)


def test_it_works_where_a_loop_runs_already():
    async def notebook():
        return collected(AsyncDataStream.ordered_wait(numbers(1, 3), Later(), SOON))

    assert asyncio.run(notebook()) == [1, -1, 3, -3]


def test_what_does_not_fit_is_refused():
    stream = numbers(1)
    with pytest.raises(ProgramError, match="waiting for elements needs an AsyncFunction"):
        AsyncDataStream.ordered_wait(stream, abs, SOON)
    with pytest.raises(ProgramError, match="timeout of an element: expected at least 0 ms"):
        AsyncDataStream.ordered_wait(stream, Later(), Time.seconds(-1))
    with pytest.raises(ProgramError, match="the capacity must be at least one element at a time"):
        AsyncDataStream.ordered_wait(stream, Later(), SOON, 0)
    with pytest.raises(ProgramError, match="further attempts need an AsyncRetryStrategy"):
        AsyncDataStream.ordered_wait_with_retry(stream, Later(), SOON, None)
    with pytest.raises(ProgramError, match="max_attempts of a retry strategy must be above zero"):
        FixedDelayRetryStrategy(0, 1, None, None)


def test_a_delay_that_grows_stays_at_its_limit_for_ever():
    strategy = AsyncRetryStrategy.exponential_backoff(10_000, 100, 60_000, 2.0, None, None)
    delays = [strategy.get_backoff_time_millis(attempts) for attempts in (1, 2, 1_024, 1_025)]
    assert delays == [100, 200, 60_000, 60_000]


class Swallows(StuckButPatient):
    """Goes on when it is cancelled."""

    async def async_invoke(self, value):
        try:
            return await super().async_invoke(value)
        except asyncio.CancelledError:
            return ["swallowed"]


class Blocks(StuckButPatient):
    """Keeps the thread, so that it cannot be cancelled."""

    async def async_invoke(self, value):
        if value == 2:
            time.sleep(0.2)
        return [value]


@pytest.mark.parametrize("function", [Swallows, Blocks])
def test_an_element_whose_time_is_over_has_the_results_of_timeout_whatever_comes_of_it(function):
    soon = Time.milliseconds(100)
    assert collected(AsyncDataStream.ordered_wait(numbers(1, 2), function(), soon)) == [1, -2]


def test_zero_is_no_limit_as_in_flink():
    class Slow(AsyncFunction):
        async def async_invoke(self, value):
            await asyncio.sleep(0.01)
            return [value]

    none, once = Time.milliseconds(0), AsyncRetryStrategy.fixed_delay(2, 1, None, None)
    assert collected(AsyncDataStream.ordered_wait(numbers(1, 2), Slow(), none)) == [1, 2]
    with pytest.raises(ProgramError, match="expected more than 0 ms"):
        AsyncDataStream.ordered_wait_with_retry(numbers(1), Slow(), none, once)
