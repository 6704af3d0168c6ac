"""How long the sinks of a job take for a micro-batch."""

import time
from types import SimpleNamespace

import pytest

from eventide.spark.sinks.kafka import SinkRun


def sink(number, name):
    return SimpleNamespace(number=number, name=name)


def spend(run, spec, batch, seconds):
    with run.timed(spec, batch):
        time.sleep(seconds)


def test_the_time_is_that_of_a_micro_batch_and_sinks_of_one_name_are_added_up():
    run = SinkRun()
    spend(run, sink(1, "results"), 1, 0.01)
    spend(run, sink(2, "late"), 1, 0.02)
    spend(run, sink(3, "late"), 1, 0.03)
    spend(run, sink(1, "results"), 2, 0.5)
    took = run.took_ms(1)
    assert took.keys() == {"results", "late"}
    assert 10 <= took["results"] < 500, "it is not that of the next micro-batch"
    assert took["late"] >= 50
    assert run.took_ms(0) == {}


def test_times_that_nobody_asks_for_are_forgotten():
    run = SinkRun()
    for batch in range(1_001):
        spend(run, sink(1, "results"), batch, 0)
    assert (run.took_ms(0), run.took_ms(1).keys()) == ({}, {"results"})


def test_a_commit_within_the_time_of_its_sink_is_not_counted_twice():
    run, results = SinkRun(), sink(1, "results")
    with run.timed(results, 0):
        time.sleep(0.02)
        spend(run, results, 0, 0.01)
    assert run.took_ms(0)["results"] >= 30


def test_an_attempt_that_fails_has_no_time():
    run = SinkRun()
    with pytest.raises(OSError, match="disk"), run.timed(sink(1, "results"), 0):
        raise OSError("disk")
    assert run.took_ms(0) == {}
