"""Elements of several types that come to one operator as columns stay what they are."""

import pytest

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import KeyedCoProcessFunction, KeyedProcessFunction, RuntimeExecutionMode
from eventide.testing import local_environment

TEXT, LONG, INT = Types.STRING(), Types.LONG(), Types.INT()
BY_SECOND = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda element, _: element[1])


class Both(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield f"1 {value!r}"

    def process_element2(self, value, ctx):
        yield f"2 {value!r}"


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
@pytest.mark.parametrize(
    ("kind", "other", "shown"),
    [
        (Types.ROW([TEXT, LONG]), Row("k", 2), "Row(f0='k', f1=2)"),
        (Types.TUPLE([TEXT, INT]), ("k", 2), "('k', 2)"),
        (Types.TUPLE([TEXT, LONG]), ("k", 2), "('k', 2)"),
    ],
)
def test_two_inputs_with_keys(mode, kind, other, shown):
    env = local_environment().set_parallelism(1)
    env.set_runtime_mode(mode)
    one, two = (
        env.from_collection(elements, type_info=of)
        .assign_timestamps_and_watermarks(BY_SECOND)
        .key_by(lambda element: element[0], TEXT)
        for elements, of in (([("k", 1), ("k", 3)], Types.TUPLE([TEXT, LONG])), ([other], kind))
    )
    found = list(one.connect(two).process(Both(), TEXT).execute_and_collect())
    assert sorted(found) == ["1 ('k', 1)", "1 ('k', 3)", f"2 {shown}"]


class Shown(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield repr(value)


@pytest.mark.parametrize(
    ("first", "second", "gives"),
    [
        (lambda e: {"a": e.x}, lambda e: Row(a=e.x), ["Row(a=2)", "{'a': 1}"]),
        (lambda e: (e.x,), lambda e: Row(f0=e.x), ["(1,)", "Row(f0=2)"]),
        (lambda e: (e.x, 1), lambda e: (e.x, 1.5), ["(1, 1)", "(2, 1.5)"]),
    ],
)
def test_a_union_of_functions_whose_results_have_other_types(first, second, gives):
    env = local_environment()
    row = Types.ROW_NAMED(["x"], [LONG])
    one, two = (
        env.from_collection([Row(x=x)], type_info=row).key_by(lambda e: e.x).reduce(lambda a, b: b).map(function)
        for x, function in ((1, first), (2, second))
    )
    assert sorted(one.union(two).key_by(lambda e: 1).process(Shown()).execute_and_collect()) == gives
