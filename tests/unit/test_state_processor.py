"""A program writes a savepoint, a job begins with it; and what is in one can be read as a table, and changed."""

from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction
from eventide.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from eventide.errors import ProgramError, StateError, UserFunctionError
from eventide.pickling.pickles import ProgramClasses, bring
from eventide.state_processor import (
    KeyedStateBootstrapFunction,
    OperatorTransformation,
    SavepointReader,
    SavepointWriter,
)
from eventide.testing import ScriptedSource, local_environment

ACCOUNTS = [("a", 10), ("b", 20), ("a", 5), ("c", 7)]


@dataclass
class Account:
    """A class of the program's own."""

    amount: int


@pytest.fixture(autouse=True)
def _knows_the_class():
    bring(ProgramClasses((Account,)))


class _Accounts:
    """The state of accounts: a value, a list, a map, and an object that lives for a day."""

    def open(self, runtime_context):
        expiring = ValueStateDescriptor("object", Types.PICKLED_BYTE_ARRAY())
        expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.LONG()))
        self.places = runtime_context.get_map_state(MapStateDescriptor("places", Types.LONG(), Types.INT()))
        self.object = runtime_context.get_state(expiring)

    def add(self, amount):
        self.total.update((self.total.value() or 0) + amount)
        self.all.add(amount)
        self.places[amount] = len(list(self.all.get()))
        self.object.update(Account(self.total.value()))


class Bootstraps(_Accounts, KeyedStateBootstrapFunction):
    """Makes the state of accounts, and a timer."""

    def process_element(self, value, ctx):
        amount = value[1]
        self.add(amount)
        ctx.timer_service().register_event_time_timer(amount)


class Accounts(_Accounts, KeyedProcessFunction):
    """The job: each element adds to its account, and a timer shows it."""

    def process_element(self, value, ctx):
        self.add(value[1])

    def on_timer(self, timestamp, ctx):
        kept = self.total.value(), list(self.all.get()), dict(self.places.items()), self.object.value()
        yield ctx.get_current_key(), timestamp, kept


def bootstrapped(data, location, key=lambda value: value[0], function=None, **more):
    """A savepoint of accounts."""
    accounts = OperatorTransformation.bootstrap_with(data).key_by(key).transform(function or Bootstraps())
    SavepointWriter.new_savepoint(**more).with_operator("accounts", accounts).write(str(location))
    return SavepointReader.read(str(location))


def job(location, elements, parallelism=2, key_type=None, allow=False):
    """The results of a job that begins with a savepoint."""
    env = local_environment().set_parallelism(parallelism).from_savepoint(str(location), allow)
    source = ScriptedSource(["s"], [[("s", element) for element in elements]])
    at = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda element, _: 30)
    keyed = env.from_source(source, at, "elements").key_by(lambda element: element[0], key_type)
    return sorted(keyed.process(Accounts()).uid("accounts").execute_and_collect())


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_job_finds_the_state_and_the_timers(parallelism, tmp_path):
    bootstrapped(iter(ACCOUNTS), tmp_path / "saved")
    assert job(tmp_path / "saved", [("b", 1)], parallelism) == [
        ("a", 5, (15, [10, 5], {10: 1, 5: 2}, Account(15))),
        ("a", 10, (15, [10, 5], {10: 1, 5: 2}, Account(15))),
        ("b", 20, (21, [20, 1], {20: 1, 1: 2}, Account(21))),
        ("c", 7, (7, [7], {7: 1}, Account(7))),
    ]


@pytest.mark.parametrize("table", [pd.DataFrame, lambda rows: pa.Table.from_pandas(pd.DataFrame(rows))])
def test_rows_of_a_table_are_elements_with_their_fields_by_name(table, tmp_path):
    class OfRows(Bootstraps):
        def process_element(self, value, ctx):
            assert isinstance(value, Row)
            self.add(value["amount"])

    rows = table([{"id": key, "amount": amount} for key, amount in ACCOUNTS])
    reader = bootstrapped(rows, tmp_path / "saved", "id", OfRows())
    assert reader.operators().to_pylist() == [{"uid": "accounts", "name": "accounts"}]
    found = reader.read_keyed_state("accounts")
    assert found.schema.field("all").type == pa.list_(pa.int64())
    assert found.schema.field("places").type == pa.map_(pa.int64(), pa.int32())
    assert found.drop_columns(["object"]).sort_by("key").to_pylist() == [
        {"key": "a", "total": 15, "all": [10, 5], "places": [(10, 1), (5, 2)]},
        {"key": "b", "total": 20, "all": [20], "places": [(20, 1)]},
        {"key": "c", "total": 7, "all": [7], "places": [(7, 1)]},
    ]


def test_the_command_line_says_that_no_job_has_left_it(tmp_path):
    bootstrapped(ACCOUNTS, tmp_path / "saved")
    said = CliRunner().invoke(app, ["checkpoint", str(tmp_path / "saved")]).output.splitlines()
    assert said[:3] == [
        f"The savepoint {tmp_path / 'saved'}: written by a program",
        "  state of   accounts",
        "  sources    none",
    ]


def test_timers_can_be_read(tmp_path):
    found = bootstrapped(ACCOUNTS, tmp_path / "saved").read_timers("accounts")
    assert sorted(zip(*(column.to_pylist() for column in found.columns), strict=True)) == [
        ("a", "event time", 5),
        ("a", "event time", 10),
        ("b", "event time", 20),
        ("c", "event time", 7),
    ]


class OnlyTimers(KeyedStateBootstrapFunction):
    """Keeps nothing, and sets a timer."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(value[1])


class Rings(KeyedProcessFunction):
    """Tells of timers."""

    def process_element(self, value, ctx):
        return None

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


def test_timers_of_a_function_without_state_fire_in_the_job(tmp_path):
    bootstrapped([("a", 5), ("b", 7)], tmp_path / "saved", function=OnlyTimers())
    env = local_environment().from_savepoint(str(tmp_path / "saved"))
    elements = env.from_collection([("z", 1)], Types.TUPLE([Types.STRING(), Types.LONG()]))
    rung = elements.key_by(lambda value: value[0]).process(Rings()).uid("accounts")
    assert sorted(rung.execute_and_collect()) == [("a", 5), ("b", 7)]


@pytest.mark.parametrize("uid", [".", "..", "a/b"])
def test_an_operator_may_have_any_uid(uid, tmp_path):
    made = OperatorTransformation.bootstrap_with([("a", 5)]).key_by(lambda value: value[0]).transform(OnlyTimers())
    SavepointWriter.new_savepoint().with_operator(uid, made).write(str(tmp_path / "saved"))
    assert SavepointReader.read(str(tmp_path / "saved")).read_timers(uid).column("time_ms").to_pylist() == [5]


def test_elements_of_an_iterator_are_there_as_often_as_they_are_wanted(tmp_path):
    accounts = OperatorTransformation.bootstrap_with(iter(ACCOUNTS)).key_by(lambda value: value[0])
    for name in ("one", "other"):
        made = accounts.transform(Bootstraps())
        SavepointWriter.new_savepoint().with_operator("accounts", made).write(str(tmp_path / name))
        assert SavepointReader.read(str(tmp_path / name)).read_keyed_state("accounts").num_rows == 3


def test_an_operator_of_a_savepoint_is_replaced_and_removed_and_the_savepoint_stays(tmp_path):
    first, second, third = (str(tmp_path / name) for name in ("first", "second", "third"))
    bootstrapped(ACCOUNTS, first)
    others = OperatorTransformation.bootstrap_with([("z", 1)]).key_by(lambda value: value[0]).transform(Bootstraps())
    writer = SavepointWriter.from_existing_savepoint(first)
    with pytest.raises(ProgramError, match="there is state of the operator 'accounts' already"):
        writer.with_operator("accounts", others)
    writer.with_operator("others", others).write(second)
    both = SavepointReader.read(second)
    assert both.operators().column("uid").to_pylist() == ["accounts", "others"]
    assert len(both.read_keyed_state("accounts")) == 3
    replaced = SavepointWriter.from_existing_savepoint(second).remove_operator("accounts").remove_operator("others")
    replaced.with_operator("accounts", others).write(third)
    assert SavepointReader.read(third).read_keyed_state("accounts").column("key").to_pylist() == ["z"]
    assert SavepointReader.read(first).read_keyed_state("accounts").num_rows == 3
    assert job(third, [("z", 1)]) == [("z", 1, (2, [1, 1], {1: 2}, Account(2)))]
    with pytest.raises(StateError, match=r"the operator 'others' \(id 'others'\) is missing"):
        job(second, [])
    with pytest.raises(ProgramError, match="there is no state of the operator 'x'; there is that of 'accounts'"):
        SavepointWriter.from_existing_savepoint(first).remove_operator("x")


def test_the_type_of_keys_is_compared_where_it_is_given(tmp_path):
    keyed = OperatorTransformation.bootstrap_with(ACCOUNTS).key_by(lambda value: value[0], Types.STRING())
    SavepointWriter.new_savepoint().with_operator("accounts", keyed.transform(Bootstraps())).write(str(tmp_path / "s"))
    assert len(job(tmp_path / "s", [("a", 1)], key_type=Types.STRING())) == 4
    with pytest.raises(StateError, match="key type was 'STRING' and is now 'LONG'"):
        job(tmp_path / "s", [(1, 1)], key_type=Types.LONG())


def test_a_job_of_another_max_parallelism_is_refused(tmp_path):
    bootstrapped(ACCOUNTS, tmp_path / "saved", max_parallelism=64)
    with pytest.raises(StateError, match="the max parallelism was 64 and is now 32768"):
        job(tmp_path / "saved", [])


def test_what_a_function_gives_is_taken_by_no_sink(tmp_path):
    class Gives(Bootstraps):
        def process_element(self, value, ctx):
            yield value

    with pytest.raises(ProgramError, match="gives elements, and no sink takes them"):
        bootstrapped(ACCOUNTS, tmp_path / "saved", function=Gives())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: OperatorTransformation.bootstrap_with("text"), "bootstrap_with needs an iterable"),
        (lambda: OperatorTransformation.bootstrap_with([]).key_by(1), "key_by takes a function"),
        (lambda: OperatorTransformation.bootstrap_with([]).key_by("a", 1), "key_by takes one function"),
        (lambda: OperatorTransformation.bootstrap_with([]).key_by(len).transform(len), "transform needs a Keyed"),
        (lambda: SavepointWriter.new_savepoint(max_parallelism=0), "a parallelism must be .* not 0"),
        (lambda: SavepointWriter.new_savepoint(32769), "a parallelism must be a whole number from 1 to 32768"),
        (lambda: SavepointWriter.new_savepoint(4, 5), "the parallelism 5 is above the max parallelism 4, "),
        (lambda: SavepointWriter.new_savepoint().with_operator("a", 1), "with_operator needs the result of"),
        (lambda: SavepointWriter.new_savepoint().remove_operator("a"), "there is that of no operator"),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong, says):
    with pytest.raises(ProgramError, match=says):
        wrong()


def test_a_savepoint_does_not_go_where_something_is(tmp_path):
    reader = bootstrapped(ACCOUNTS, tmp_path / "saved")
    with pytest.raises(StateError, match="there is something at"):
        bootstrapped(ACCOUNTS, tmp_path / "saved")
    with pytest.raises(ProgramError, match="has no state of the operator 'x'; it has that of 'accounts'"):
        reader.read_keyed_state("x")


def test_a_function_that_finds_no_key_is_named(tmp_path):
    with pytest.raises(UserFunctionError, match=r"'accounts', when the keys of its elements were found: .* IndexError"):
        bootstrapped([()], tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
