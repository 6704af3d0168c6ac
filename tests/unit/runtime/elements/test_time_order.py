"""The order in which batch execution hands elements to operators with keys."""

from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.elements.elements import Elements, in_time_order

ELEMENT = st.tuples(st.sampled_from("abc"), st.none() | st.integers(-9, 9))


def of(name, elements):
    values = [(name, number) for number in range(len(elements))]
    return Elements(values, [at for _, at in elements], list(range(len(elements))), [key for key, _ in elements])


@given(st.lists(ELEMENT), st.lists(ELEMENT))
def test_each_key_has_its_elements_by_time_then_input_then_arrival(first, second):
    inputs = {number: [of(number, one)] for number, one in enumerate((first, second)) if one}
    expected: dict[str, list] = {}
    for number, one in enumerate((first, second)):
        for place, (key, at) in enumerate(one):
            expected.setdefault(key, []).append((-(2**63) if at is None else at, number, place))
    found: dict[str, list] = {}
    for number, elements in in_time_order(inputs):
        for key, value, at in elements.rows():
            assert value[0] == number
            found.setdefault(key, []).append((-(2**63) if at is None else at, *value))
    assert found == {key: sorted(of_key) for key, of_key in expected.items()}


def test_inputs_come_in_few_parts_however_many_keys_there_are():
    first = Elements([1] * 100, [1, 3] * 50, list(range(100)), [number // 2 for number in range(100)])
    second = Elements([2] * 50, [2] * 50, list(range(50)), list(range(50)))
    parts = [(number, len(elements)) for number, elements in in_time_order({0: [first], 1: [second]})]
    assert parts == [(0, 50), (1, 50), (0, 50)]


def test_no_elements_are_no_parts():
    assert list(in_time_order({})) == []
