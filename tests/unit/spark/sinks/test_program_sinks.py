"""A producer waits for the reader of its elements, but not for one that is gone."""

import gc
from concurrent.futures import Future, ThreadPoolExecutor, wait

import pytest

from eventide.spark.sinks.program_sinks import Collected, Stopped, TakenResults


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as threads:
        yield threads


def filled(pool: ThreadPoolExecutor, collected: Collected, count: int) -> Future[None]:
    """Put numbers in from another thread, and wait until it is done or has to wait itself."""

    def put_all() -> None:
        for number in range(count):
            collected.put(number)

    future = pool.submit(put_all)
    while not future.done() and not collected.is_full:
        wait([future], timeout=0.001)
    return future


def test_elements_come_in_their_order_and_no_more_wait_than_there_is_room_for(pool):
    collected = Collected(most_waiting=2)
    putting = filled(pool, collected, 5)
    assert not putting.done()
    taken = [next(collected) for _ in range(3)]
    putting.result(timeout=10)
    collected.close()
    assert taken + list(collected) == [0, 1, 2, 3, 4]


def test_who_takes_waits_for_the_first_element_and_for_the_end(pool):
    collected = Collected(most_waiting=2)
    taking = pool.submit(list, collected)
    collected.put("a")
    collected.put("b")
    assert not taking.done()
    collected.close()
    assert taking.result(timeout=10) == ["a", "b"]


def test_closing_it_lets_go_who_waits_and_drops_what_comes_later(pool):
    collected = Collected(most_waiting=2)
    putting = filled(pool, collected, 5)
    collected.close()
    putting.result(timeout=10)
    assert list(collected) == [0, 1]


def test_who_waits_when_the_query_is_stopped_learns_that_its_element_is_not_taken(pool):
    collected = Collected(most_waiting=2)
    putting = filled(pool, collected, 5)
    collected.stop()
    with pytest.raises(Stopped):
        putting.result(timeout=10)
    assert list(collected) == [0, 1]


def test_a_query_may_be_stopped_again_and_what_it_gives_then_is_not_taken_either(pool):
    collected = Collected(most_waiting=2)
    putting = filled(pool, collected, 5)
    collected.stop()
    collected.stop()
    with pytest.raises(Stopped):
        putting.result(timeout=10)
    with pytest.raises(Stopped):
        collected.put(7)


def test_a_program_that_forgets_the_elements_lets_go_who_waits(pool):
    collected = Collected(most_waiting=2)
    taken = TakenResults(collected, lambda: None)
    putting = filled(pool, collected, 5)
    assert next(taken) == 0
    del taken
    gc.collect()
    putting.result(timeout=10)


def test_what_made_the_job_fail_comes_after_the_last_element():
    def fail():
        raise OSError("failed")

    collected = Collected()
    collected.put("a")
    collected.close()
    taken = TakenResults(collected, fail)
    assert next(taken) == "a"
    with pytest.raises(OSError, match="failed"):
        next(taken)
