"""Vocabulary without a module of tests to itself: output tags, contexts, function classes, lazy packages."""

import pickle
import subprocess
import sys

import pytest

from eventide.common import Types
from eventide.datastream import OutputTag, ProcessAllWindowFunction, ProcessWindowFunction, RuntimeContext, TimeWindow
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import CountTrigger, PurgingTrigger


class FirstOfWindow(ProcessWindowFunction[int, tuple, str, TimeWindow]):
    def process(self, key, context: ProcessWindowFunction.Context[TimeWindow], elements):
        yield key, next(iter(elements))


def test_tags_are_the_same_when_their_names_are():
    assert {OutputTag("late", Types.INT()), OutputTag("late")} == {OutputTag("late")}
    assert OutputTag("late") != OutputTag("early")


def test_a_tag_without_type_carries_pickled_objects_and_a_list_means_a_row():
    assert OutputTag("late").type_info == Types.PICKLED_BYTE_ARRAY()
    assert OutputTag("late", [Types.INT()]).type_info == Types.ROW([Types.INT()])


def test_a_tag_pickles_and_does_not_change():
    tag = OutputTag("late", Types.INT())
    copy = pickle.loads(pickle.dumps(tag))
    assert (copy, copy.type_info) == (tag, tag.type_info)
    with pytest.raises(AttributeError):
        tag.tag_id = "other"


@pytest.mark.parametrize("name", ["", None])
def test_a_tag_has_a_name(name):
    with pytest.raises(ValueError, match="tag_id"):
        OutputTag(name)


def test_a_tag_has_a_type():
    with pytest.raises(TypeError, match="late"):
        OutputTag("late", int)


def test_window_functions_are_generic_and_have_open_close_and_clear():
    function = FirstOfWindow()
    function.open(RuntimeContext("first", 2, 0))
    assert list(function.process("k", None, [1, 2])) == [("k", 1)]
    function.clear(None)
    function.close()
    assert ProcessAllWindowFunction.Context[TimeWindow]


def test_a_class_makes_with_its_parameters_what_it_makes_without_them():
    tag, descriptor = OutputTag[int]("late", Types.INT()), ValueStateDescriptor[int]("last", Types.INT())
    copies = pickle.loads(pickle.dumps((tag, descriptor)))
    assert (tag, repr(descriptor)) == (OutputTag("late", Types.INT()), repr(ValueStateDescriptor("last", Types.INT())))
    assert (copies[0], repr(copies[1])) == (tag, repr(descriptor))
    assert PurgingTrigger[object, TimeWindow](CountTrigger.of(2)) == PurgingTrigger.of(CountTrigger.of(2))


def test_a_runtime_context_says_where_a_function_runs():
    context = RuntimeContext("orders", 4, 1, {"currency": "EUR"})
    assert (context.get_task_name(), context.get_task_name_with_subtasks()) == ("orders", "orders (2/4)")
    assert (context.get_number_of_parallel_subtasks(), context.get_index_of_this_subtask()) == (4, 1)
    assert context.get_job_parameter("currency", "") == "EUR"


@pytest.mark.parametrize("package", ["eventide.common", "eventide.datastream"])
def test_a_name_that_a_package_does_not_have_is_an_attribute_error(package):
    module = __import__(package, fromlist=["x"])
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = module.nothing_of_the_kind
    assert set(module.__all__) <= set(dir(module))


def test_the_vocabulary_loads_neither_arrow_nor_spark_nor_the_fluent_api():
    program = (
        "import sys, eventide.common, eventide.datastream.window;"
        "import eventide.datastream.functions, eventide.datastream.state;"
        "heavy = {'pyarrow', 'pyspark', 'pandas', 'numpy', 'typing_extensions'};"
        "print(*sorted({m.split('.')[0] for m in sys.modules} & heavy),"
        "*[m for m in sys.modules if m.startswith('eventide.datastream.data_stream')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
