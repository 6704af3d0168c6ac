"""Results of functions come out at their output, in their order, with their time, and with no other owner."""

import pytest

from eventide.common import Row, Types
from eventide.datastream import OutputTag
from eventide.runtime.chain.outputs import Collector
from eventide.runtime.elements.elements import Elements

SIDE = OutputTag("side", Types.LONG())


class Pair(tuple):
    """A tuple of a class of the user's."""

    __slots__ = ()


def test_results_of_both_outputs_have_the_places_of_their_output():
    out = Collector("f", None)
    out.put_results(["a", (SIDE, 1), ("b", 2)], 10)
    out.put_results([], 15)
    out.put_results(iter([Pair((SIDE, 2)), (SIDE, 3), None, Pair(("c", 3))]), 20)
    assert out.take() == {
        None: Elements(["a", ("b", 2), None, Pair(("c", 3))], [10, 10, 20, 20], [0, 1, 2, 3]),
        "side": Elements([1, 2, 3], [10, 20, 20], [0, 1, 2]),
    }


def test_results_that_are_numbered_have_the_number_of_their_element():
    out = Collector("f", None)
    out.put_results(["a", (SIDE, 1), "b"], 10, 7)
    assert out.take() == {None: Elements(["a", "b"], [10, 10], [7, 7]), "side": Elements([1], [10], [7])}


@pytest.mark.parametrize("result", [Row(n=[1]), [1, 2], (1, [2]), {"a": 1}])
def test_a_result_that_can_be_changed_is_a_copy_unless_it_has_no_other_owner(result):
    copies, hands_on = Collector("f", None), Collector("f", None, copies=False)
    copies.put_results([result], 1)
    hands_on.put_results([result], 1)
    [copied], [same] = copies.take()[None].values, hands_on.take()[None].values
    assert copied == result
    assert copied is not result
    assert same is result


def test_what_came_out_before_an_error_is_taken_back_as_a_whole():
    def results():
        yield "b"
        yield SIDE, 2
        raise ValueError("no more")

    out = Collector("f", None)
    out.put_results(["a", (SIDE, 1)], 10)
    before = out.mark()
    with pytest.raises(ValueError, match="no more"):
        out.put_results(results(), 20)
    out.cut(before)
    out.put_results(["c"], 30)
    assert out.take() == {None: Elements(["a", "c"], [10, 30], [0, 1]), "side": Elements([1], [10], [0])}
