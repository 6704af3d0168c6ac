"""A process function that splits a stream does it on columns, with the outputs of its calls."""

import pytest

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.functions import ProcessFunction, in_python
from eventide.runtime.chain.chained_operators import Process
from eventide.testing import local_environment
from support.columns import in_columns

CLICK = Types.ROW_NAMED(["user", "at"], [Types.STRING(), Types.LONG()])
LARGE, ODD, SAID = OutputTag("large", CLICK), OutputTag("odd", Types.LONG()), OutputTag("said")
CLICKS = [Row(user=f"u{at % 3}", at=at * 7 % 211) for at in range(50)]


class Splits(ProcessFunction):
    def process_element(self, value, ctx):
        if value.at > 100:
            yield LARGE, value
            yield SAID, (value.user, ctx.timestamp())
        elif value.at % 2:
            yield ODD, value.at
            yield Row(user=value.user, at=value.at + 1)
        else:
            yield value


@pytest.fixture
def python_calls(monkeypatch):
    calls = []
    outputs = Process.outputs
    monkeypatch.setattr(Process, "outputs", lambda self, *of: calls.append(self.name) or outputs(self, *of))
    return calls


def outputs_of(function, read, dead_letters=None):
    env = local_environment()
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    source = env.from_source(in_columns(CLICK, CLICKS), WatermarkStrategy.no_watermarks(), "clicks")
    clicks = source.assign_timestamps_and_watermarks(in_time).filter(lambda e: e.at != 7)
    main = clicks.process(function, CLICK)
    if dead_letters is not None:
        main = main.side_output_dead_letters(dead_letters)
    return list(map(repr, read(main).execute_and_collect()))


@pytest.mark.parametrize(
    "read",
    [
        lambda main: main,
        lambda main: main.get_side_output(LARGE),
        lambda main: main.get_side_output(ODD).map(lambda at: at * 2),
        lambda main: main.get_side_output(SAID),
        lambda main: main.get_side_output(SAID).map(lambda said: said[1]),
        lambda main: main.get_side_output(OutputTag("odd", Types.DOUBLE())),
        lambda main: main.union(main.get_side_output(LARGE)),
        lambda main: main.get_side_output(OutputTag("nothing")),
    ],
)
def test_each_output_is_that_of_the_calls(read, python_calls):
    on_columns = outputs_of(Splits(), read)
    assert python_calls == []
    assert on_columns == outputs_of(in_python(Splits()), read)
    assert python_calls


class Divides(ProcessFunction):
    def process_element(self, value, ctx):
        yield ODD, 100 // (value.at - 14)
        yield value


def test_a_bad_element_is_a_dead_letter_and_the_others_come_out(python_calls):
    bad = OutputTag("bad")
    for read in (lambda main: main, lambda main: main.get_side_output(ODD), lambda main: main.get_side_output(bad)):
        assert outputs_of(Divides(), read, bad) == outputs_of(in_python(Divides()), read, bad)


def test_explain_says_that_it_runs_on_columns_or_why_not(capsys):
    class Asks(ProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timer_service().current_watermark()

    for function, said in (
        (Splits(), "process: on columns, where its elements come so"),
        (Asks(), r"process: in Python, because it calls the method timer_service()"),
    ):
        local_environment().from_collection(CLICKS, CLICK).process(function).explain()
        assert said in capsys.readouterr().out


class Opened(ProcessFunction):
    def open(self, runtime_context):
        self.names = {f"u{number}": number for number in range(2)}
        self.tag = OutputTag("unknown", Types.STRING())

    def process_element(self, value, ctx):
        if value.user in self.names:
            yield Row(user=value.user, at=self.names[value.user])
        else:
            yield self.tag, value.user


@pytest.mark.parametrize(
    "read", [lambda main: main, lambda main: main.get_side_output(OutputTag("unknown", Types.STRING()))]
)
def test_a_function_that_makes_a_table_when_it_is_opened_is_traced_then(read, python_calls, capsys):
    local_environment().from_collection(CLICKS, CLICK).process(Opened(), CLICK).explain()
    assert "on columns, if what open() makes can be traced; it is not opened yet: its attribute 'names' is not" in (
        capsys.readouterr().out
    )
    on_columns = outputs_of(Opened(), read)
    assert python_calls == []
    assert on_columns == outputs_of(in_python(Opened()), read)
