"""Small pages say which bucket is due when."""

from eventide.runtime.state.bucket import Schedule
from support.counting_backend import CountingBackend


def scheduled(*times):
    """A schedule with the times of some buckets, as the next micro-batch finds it."""
    backend = CountingBackend()
    schedule = Schedule(backend, "times", ())
    for bucket, time in times:
        schedule.set(bucket, time)
    schedule.flush()
    backend.calls.clear()
    return backend, Schedule(backend, "times", schedule.earliest)


def test_a_bucket_is_due_at_its_time_and_once():
    _, schedule = scheduled((3, 10), (4, 20), (900, 10), (5, 30))
    assert schedule.due(9) == []
    assert sorted(schedule.due(20)) == [3, 4, 900]
    assert schedule.due(20) == []
    assert schedule.due(30) == [5]


def test_only_pages_with_something_due_are_read():
    backend, schedule = scheduled((3, 10), (600, 20), (2_000, 30))
    assert schedule.earliest == [(0, 10), (1, 20), (3, 30)]
    assert schedule.next_of_untouched() == 10
    assert backend.calls == []
    assert schedule.due(20) == [3, 600]
    assert backend.calls == [("get", "times/0"), ("get", "times/1")]


def test_a_bucket_that_is_skipped_keeps_its_time_in_the_store():
    _, schedule = scheduled((3, 10), (4, 15))
    assert schedule.next() == (10, 3)
    schedule.skip()
    assert schedule.next() == (15, 4)
    schedule.flush()
    assert schedule.due(10) == [3]


def test_a_page_is_written_if_a_time_in_it_changed():
    backend, schedule = scheduled((3, 10), (4, 20), (600, 20))
    schedule.set(3, 10)
    schedule.set(4, 25)
    schedule.flush()
    assert backend.calls == [("get", "times/0"), ("put", "times/0")]
    assert schedule.due(24) == [3, 600]


def test_a_page_without_times_is_deleted():
    backend, schedule = scheduled((3, -10), (600, 20))
    schedule.set(3, None)
    schedule.set(700, None)
    schedule.flush()
    assert [*backend.values] == ["times/1"]
    assert schedule.earliest == [(1, 20)]
