"""A job runs every operator and sink that was added since the last job, once each, with or without a sink after it."""

import pytest

from eventide.common import Types
from eventide.datastream.connectors import CollectSink
from eventide.errors import ProgramError
from eventide.testing import local_environment

PUSHED: list = []


def push(value):
    PUSHED.append(value)
    return value


@pytest.fixture(autouse=True)
def nothing_pushed():
    PUSHED.clear()


def test_a_function_runs_though_no_sink_takes_what_it_puts_out():
    env = local_environment()
    env.from_collection([1, 2, 3]).map(push)
    env.execute()
    assert sorted(PUSHED) == [1, 2, 3]


def test_so_does_one_after_a_shuffle_and_beside_others():
    env = local_environment()
    numbers = env.from_collection([1, 2, 3], Types.LONG())
    numbers.key_by(lambda v: v % 2).reduce(lambda a, b: push(a + b))
    numbers.rebalance()
    numbers.map(push)
    env.execute()
    assert sorted(PUSHED) == [1, 2, 3, 4]


def test_all_other_sinks_and_operators_run_once_while_elements_are_collected(capsys):
    env = local_environment()
    numbers = env.from_collection([1, 2])
    numbers.print("side")
    numbers.map(push)
    assert sorted(numbers.map(lambda v: v * 10).execute_and_collect()) == [10, 20]
    assert sorted(capsys.readouterr().out.split()) == ["1", "2", "side>", "side>"]
    assert sorted(PUSHED) == [1, 2]


def test_the_next_job_has_what_was_added_since_the_last_one():
    env = local_environment()
    numbers = env.from_collection([1, 2])
    numbers.map(push)
    env.execute()
    with pytest.raises(ProgramError, match="no sink and no operator, so there is nothing to run"):
        env.execute()
    numbers.filter(lambda v: v > 1).map(push)
    env.execute()
    assert sorted(PUSHED) == [1, 2, 2]


def test_a_source_alone_is_no_job():
    env = local_environment()
    env.from_collection([1])
    with pytest.raises(ProgramError, match="no sink and no operator"):
        env.execute()


def test_the_elements_of_two_streams_do_not_come_as_one():
    env = local_environment()
    env.from_collection([1]).sink_to(CollectSink())
    with pytest.raises(ProgramError, match="elements of another CollectSink"):
        env.from_collection([2]).execute_and_collect()
