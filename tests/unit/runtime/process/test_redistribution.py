"""Streams whose elements are distributed otherwise."""

import pytest

from eventide.common import Types
from eventide.datastream import KeyedProcessFunction, Partitioner, ProcessFunction
from eventide.errors import ProgramError, UserFunctionError
from eventide.testing import local_environment
from support.twin import plan_of, run


class BySign(Partitioner):
    def partition(self, key, num_partitions):
        return 0 if key < 0 else num_partitions - 1


class Plain(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Same(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


def by_subtask(stream, parallelism=3):
    """The elements of each subtask after the distribution, which are together in the output."""
    plan = plan_of(stream, parallelism=parallelism)
    assert [operator.parallelism for operator in plan.operators] == [parallelism]
    ((rows,),) = run(plan)
    return [value for value, _ in rows]


@pytest.fixture
def numbers():
    return local_environment().from_collection([1, -2, 3, -4, 5, -6], Types.LONG())


@pytest.mark.parametrize("how", ["rebalance", "rescale", "shuffle"])
def test_elements_go_to_one_subtask_after_the_other(numbers, how):
    dealt = by_subtask(getattr(numbers, how)())
    assert sorted(map(sorted, (dealt[:2], dealt[2:4], dealt[4:]))) == [[-6, 3], [-4, 1], [-2, 5]]


def test_what_a_filter_left_is_dealt_out_in_turn(numbers):
    dealt = by_subtask(numbers.filter(lambda n: n > 0).rebalance(), parallelism=2)
    assert sorted(map(len, (set(dealt) & {1, 5}, set(dealt) & {3}))) == [1, 2]
    assert dealt in ([1, 5, 3], [3, 1, 5])


def test_one_subtask_may_have_all(numbers):
    assert by_subtask(numbers.global_().map(lambda n: n * 10)) == [10, -20, 30, -40, 50, -60]


def test_every_subtask_may_have_all(numbers):
    assert by_subtask(numbers.broadcast()) == [1, -2, 3, -4, 5, -6] * 3


@pytest.mark.parametrize("partitioner", [BySign(), BySign().partition])
def test_a_partitioner_says_which_subtask_has_a_key(numbers, partitioner):
    assert by_subtask(numbers.partition_custom(partitioner, lambda n: n)) == [-2, -4, -6, 1, 3, 5]


def test_a_partitioner_that_names_no_subtask_is_told(numbers):
    with pytest.raises((ProgramError, UserFunctionError), match="gave 9, and there are subtasks 0 to 2"):
        by_subtask(numbers.partition_custom(lambda key, n: 9, lambda n: n))


def test_forward_changes_nothing(numbers):
    assert numbers.forward() is numbers


def test_a_keyed_stream_is_dealt_out_by_its_key(numbers):
    keyed = numbers.key_by(lambda n: n)
    for method in ("rebalance", "rescale", "shuffle", "forward", "global_", "broadcast"):
        with pytest.raises(ProgramError, match=f"distributed by their key; call {method} before key_by"):
            getattr(keyed, method)()
    with pytest.raises(ProgramError, match="call partition_custom before key_by"):
        keyed.partition_custom(BySign(), abs)


@pytest.mark.parametrize(
    "then", [lambda s: s.key_by(lambda e: e).process(Same()), lambda s: s.global_(), lambda s: s.rebalance()]
)
def test_a_broadcast_within_a_union_gives_way_to_what_comes_after_the_union(then):
    env = local_environment().set_parallelism(3)
    both = env.from_collection([1]).union(env.from_collection([10]).broadcast())
    assert sorted(then(both).map(lambda e: e).execute_and_collect()) == [1, 10]
