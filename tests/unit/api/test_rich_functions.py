"""The `Rich...` functions know their runtime context, whether a subclass overrides `open` or not."""

import pickle

import pytest

from eventide.common import Types
from eventide.datastream import (
    RichFilterFunction,
    RichFlatMapFunction,
    RichFunction,
    RichMapFunction,
    RichReduceFunction,
    RichSourceFunction,
    functions,
)
from eventide.errors import ProgramError
from eventide.testing import local_environment


class Numbers(RichSourceFunction):
    """A source that is opened, with an `open` that says nothing to its base class."""

    def open(self, runtime_context):
        self.opened = True

    def run(self, ctx):
        ctx.collect(f"{self.opened}, subtask {self.get_runtime_context().get_index_of_this_subtask()}")

    def cancel(self):
        pass


def test_a_source_function_has_its_context_in_run():
    assert list(local_environment().add_source(Numbers()).execute_and_collect()) == ["True, subtask 0"]


class Add(RichMapFunction):
    def open(self, runtime_context):
        assert self.get_runtime_context() is runtime_context
        self.index = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return value + self.index + self.get_runtime_context().get_index_of_this_subtask()


class Even(RichFilterFunction):
    def filter(self, value):
        return value % 2 == self.get_runtime_context().get_index_of_this_subtask()


class Twice(RichFlatMapFunction):
    def flat_map(self, value):
        yield from [value] * (2 + self.get_runtime_context().get_index_of_this_subtask())


class Sum(RichReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2 + 0 * self.get_runtime_context().get_index_of_this_subtask()


def test_functions_of_elements_have_it():
    stream = local_environment().set_parallelism(1).from_collection([1, 2, 4], Types.LONG())
    sums = stream.map(Add()).filter(Even()).flat_map(Twice()).key_by(lambda value: 0).reduce(Sum())
    assert list(sums.execute_and_collect()) == [2, 4, 8, 12]


def test_before_open_there_is_none_and_it_does_not_travel():
    with pytest.raises(ProgramError, match=r"Add.get_runtime_context\(\) was called before open"):
        Add().get_runtime_context()
    opened = Even()
    opened.open(lambda: "cannot be pickled")
    with pytest.raises(ProgramError, match="was called before open"):
        pickle.loads(pickle.dumps(opened)).get_runtime_context()


@pytest.mark.parametrize("name", [name for name in functions.__all__ if name.startswith("Rich")])
def test_each_is_the_function_of_its_name_with_a_context(name):
    rich = getattr(functions, name)
    assert issubclass(rich, getattr(functions, name.removeprefix("Rich")))
    assert issubclass(rich, RichFunction)
    assert rich.open is RichFunction.open
