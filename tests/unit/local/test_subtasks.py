"""Each subtask has functions of its own, with its own index, from its first element to the end of the job."""

from typing import ClassVar

import pytest

from eventide.common import Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, MapFunction
from eventide.testing import ScriptedSource, local_environment

LIFE: list[tuple[str, int]] = []
"""Calls of the functions of this module, with their indexes."""


class Where(MapFunction):
    """Gives each element with the index of its subtask, and how many this object has seen."""

    def __init__(self):
        self.seen = 0

    def open(self, runtime_context):
        self.index = runtime_context.get_index_of_this_subtask()
        LIFE.append(("open", self.index))

    def map(self, value):
        self.seen += 1
        return value, self.index, self.seen

    def close(self):
        LIFE.append(("close", self.index))


@pytest.fixture(autouse=True)
def _nothing_has_happened():
    LIFE.clear()


def dealt_out(*numbers, parallelism=2):
    """Numbers, each to the subtask that it is the number of, modulo the parallelism."""
    stream = local_environment().set_parallelism(parallelism).from_collection(numbers, Types.INT())
    return stream.partition_custom(lambda number, count: number % count, lambda number: number)


def test_a_subtask_of_an_operator_has_its_own_function_and_index():
    found = list(dealt_out(0, 1, 2, 3).map(Where()).execute_and_collect())
    assert sorted(found) == [(0, 0, 1), (1, 1, 1), (2, 0, 2), (3, 1, 2)]
    assert sorted(LIFE) == [("close", 0), ("close", 1), ("open", 0), ("open", 1)]


def test_a_task_of_a_source_has_its_own_function_and_index():
    source = ScriptedSource(["a", "b"], [[("a", "a1"), ("b", "b1")], [("a", "a2"), ("b", "b2")]])
    stream = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "script")
    assert sorted(stream.map(Where()).execute_and_collect()) == [("a1", 0, 1), ("a2", 0, 2), ("b1", 1, 1), ("b2", 1, 2)]


def test_functions_are_opened_where_there_is_something_to_do_and_nowhere_else():
    stream = (
        local_environment()
        .set_parallelism(4)
        .from_source(ScriptedSource(["a"], [[("a", 1)], [("a", 2)]]), WatermarkStrategy.no_watermarks(), "script")
    )
    assert list(stream.map(Where()).execute_and_collect()) == [(1, 0, 1), (2, 0, 2)]
    assert LIFE == [("open", 0), ("close", 0)], "one split is one task"


class Remembers(KeyedProcessFunction):
    """Counts with a metric, and in an attribute."""

    def open(self, runtime_context):
        self.index, self.seen = runtime_context.get_index_of_this_subtask(), []
        self.counter = runtime_context.get_metrics_group().counter("elements")

    def process_element(self, value, ctx):
        self.counter.inc()
        self.seen.append(ctx.get_current_key())
        yield self.index, ctx.get_current_key(), len(set(self.seen))


def test_what_subtasks_count_is_added_up():
    env = local_environment().set_parallelism(3)
    env.from_collection(range(30), Types.INT()).key_by(lambda n: n % 10).process(Remembers()).name("keyed").print()
    assert env.execute().metrics["keyed"]["elements"] == 30


def test_the_keys_of_a_subtask_are_its_own():
    env = local_environment().set_parallelism(3)
    found = list(
        env.from_collection(range(10), Types.INT()).key_by(lambda n: n).process(Remembers()).execute_and_collect()
    )
    by_subtask = {index: [key for at, key, _ in found if at == index] for index in range(3)}
    assert all(by_subtask.values())
    assert {(index, len(keys)) for index, keys in by_subtask.items()} <= {(index, seen) for index, _, seen in found}


def test_the_object_that_was_handed_in_stays_as_it_was_and_so_does_its_class():
    class Local(MapFunction):
        log: ClassVar[list[int]] = []

        def __init__(self):
            self.seen = []

        def map(self, value):
            self.seen.append(value)
            self.log.append(value)
            return len(self.seen)

    function, before = Local(), Local.map
    assert sorted(dealt_out(0, 1, 2, 3).map(function).execute_and_collect()) == [1, 1, 2, 2]
    assert function.seen == []
    assert sorted(Local.log) == [0, 1, 2, 3]
    assert Local.map is before


def test_the_next_run_of_a_program_begins_anew():
    stream = dealt_out(0, 2).map(Where())
    assert [list(stream.execute_and_collect()) for _ in range(2)] == [[(0, 0, 1), (2, 0, 2)]] * 2
