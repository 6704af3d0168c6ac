"""Settings of the program for the whole job reach every function; what has no effect says so."""

import pytest

from eventide.common import Time, Types
from eventide.datastream import MapFunction, ProcessWindowFunction, ReduceFunction, SourceFunction
from eventide.datastream.window import CountTumblingWindowAssigner, TumblingProcessingTimeWindows
from eventide.errors import ProgramError, TimersLeftWarning
from eventide.testing import OperatorHarness, local_environment


class _Asks:
    parameter = "nothing"

    def open(self, runtime_context):
        self.parameter = (
            runtime_context.get_job_parameter("currency", "none"),
            runtime_context.get_job_parameter("x", "-"),
        )


class Maps(_Asks, MapFunction):
    def map(self, value):
        return [*value, self.parameter]


class Windows(_Asks, ProcessWindowFunction):
    def process(self, key, context, elements):
        yield [*elements[0], self.parameter]


class Reduces(_Asks, ReduceFunction):
    def reduce(self, value1, value2):
        return [*value1, self.parameter]


class Emits(_Asks, SourceFunction):
    def run(self, ctx):
        ctx.collect([self.parameter])

    def cancel(self):
        pass


def environment():
    env = local_environment()
    env.get_config().set_global_job_parameters({"currency": "EUR", "limit": 5})
    return env


def test_job_parameters_reach_functions_of_sources_chains_and_windows():
    stream = environment().add_source(Emits()).map(Maps()).key_by(lambda _: 1)
    windows = stream.window(CountTumblingWindowAssigner.of(1)).process(Windows()).map(Maps())
    assert list(windows.execute_and_collect()) == [[("EUR", "-")] * 4]


def test_job_parameters_reach_the_harness_as_text():
    stream = environment().from_collection([]).key_by(lambda _: 1).window(CountTumblingWindowAssigner.of(2))
    with OperatorHarness(stream.reduce(Reduces())) as harness:
        harness.process(["a"])
        harness.process(["b"])
        assert harness.outputs() == [["a", ("EUR", "-")]]
    assert environment().get_config().get_global_job_parameters() == {"currency": "EUR", "limit": "5"}


@pytest.mark.parametrize("parameters", [None, [("a", "b")], {1: "a"}])
def test_job_parameters_that_are_none_are_refused(parameters):
    with pytest.raises(ProgramError, match="must be a dict whose keys are text"):
        environment().get_config().set_global_job_parameters(parameters)


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda s: s, "'collection', which is a source"),
        (lambda s: s.map(str), "'map', which runs in the tasks of 'collection'"),
        (lambda s: s.map(str).filter(bool), "'filter', which runs in the tasks of 'map'"),
        (lambda s: s.key_by(str), "'key_by', which runs in the tasks of 'collection'"),
        (lambda s: s.union(s), "'union', which runs in the tasks of 'collection'"),
        (lambda s: s.window_all(CountTumblingWindowAssigner.of(1)).reduce(min), "whose windows have no key"),
    ],
)
def test_a_parallelism_without_effect_is_told_where_it_is_set_and_the_program_goes_on(build, told):
    stream = build(local_environment().from_collection([1]))
    with pytest.warns(UserWarning, match=rf"set_parallelism\(2\) has no effect on .*{told}") as caught:
        assert stream.set_parallelism(2) is stream
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.filterwarnings("error")
def test_a_parallelism_of_keyed_windows_is_taken_without_a_word():
    windows = local_environment().from_collection([1]).key_by(str).window(CountTumblingWindowAssigner.of(1))
    assert windows.reduce(min).set_parallelism(1)._transformation.parallelism == 1
    alone = local_environment().from_collection([1]).window_all(CountTumblingWindowAssigner.of(1)).reduce(min)
    assert alone.set_parallelism(1)._transformation.parallelism == 1


def test_a_job_that_ends_before_its_timers_of_processing_time_says_so():
    hours = TumblingProcessingTimeWindows.of(Time.hours(10**6))
    windows = local_environment().from_collection(["a", "b", "a"], Types.STRING()).key_by(lambda e: e).window(hours)
    with pytest.warns(TimersLeftWarning) as caught:
        assert list(windows.reduce(max).name("largest").execute_and_collect("visits")) == []
    [warning] = caught
    assert str(warning.message).startswith(
        "the input of the job 'visits' ended before the time of 2 timer(s) of processing time came, so what waited for "
        "them never comes out, as in Flink: 'largest' (2). Use windows of event time"
    )
    assert warning.filename == __file__
