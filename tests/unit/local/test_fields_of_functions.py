"""Only the fields of elements that functions ask for are read from a source, where their code shows which."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.connectors import FileSource
from eventide.datastream.functions import FlatMapFunction, MapFunction, in_python
from eventide.errors import UserFunctionError
from eventide.testing import local_environment

ORDER = Types.ROW_NAMED(["user", "at", "amount", "text"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING()])
ORDERS = {"user": ["a", "b", None, "a"], "at": [1, 2, 11, 3], "amount": [5, None, 7, 0], "text": ["x", "yy", "z", ""]}
RATE = 3
NAME = "amount"


class Priced(MapFunction):
    def __init__(self, rate):
        self.rate = rate

    def map(self, value):
        return value.amount * self.rate if value.amount else None


class LooksUp(FlatMapFunction):
    def open(self, runtime_context):
        self.table = {"a": 7}

    def flat_map(self, value):
        found = self.table.get(value.user)
        if found is not None:
            yield value.at, found


class Opened(MapFunction):
    """Has one answer before it is opened, and another one after that."""

    def __init__(self):
        self.wants_amount, self.most, self.names, self.pairs, self.name = False, 0, (), {}, "at"

    def open(self, runtime_context):
        self.wants_amount, self.most, self.names, self.name = True, 2, ("a",), "text"
        self.pairs = {("a", 1): "first"}


class Chooses(Opened):
    def map(self, value):
        return value.amount if self.wants_amount else value.at


class Counts(Opened):
    def map(self, value):
        return -value.at * self.most + 1 if self.most < value.at else self.most


class Looks(Opened):
    def map(self, value):
        return value.at if value.user in self.names else self.pairs.get((value.user, value.at), "none")


class TakesOneByName(Opened):
    def map(self, value):
        return value[self.name]


class LooksUpWhole(Opened):
    def map(self, value):
        return self.pairs.get(value)


class GoesThrough(Opened):
    def map(self, value):
        return list(self.names), value.at


WANTS_AMOUNT = False


def chosen(order):
    return order.amount if WANTS_AMOUNT else order.at


def dropped(order):
    text = order.text
    del text
    return order.amount


@pytest.fixture
def orders(tmp_path):
    pq.write_table(pa.table(ORDERS), tmp_path / "orders.parquet")
    env = local_environment()
    return env.from_source(
        FileSource.parquet(str(tmp_path), type_info=ORDER).build(), WatermarkStrategy.no_watermarks(), "orders"
    )


def read_of(stream, capsys):
    stream.explain()
    lines = [line.split("reads", 1)[1].strip() for line in capsys.readouterr().out.splitlines() if "  reads " in line]
    return lines[0] if lines else "all"


@pytest.mark.parametrize(
    ("build", "reads"),
    [
        (lambda s: s.map(lambda o: o.amount), "amount"),
        (lambda s: s.map(lambda o: (o.user, o["at"])), "user, at"),
        (lambda s: s.map(lambda o: Row(n=o.at * RATE)), "at"),
        (lambda s: s.map(lambda o: o[NAME]), "amount"),
        (lambda s: s.map(Priced(2)), "amount"),
        (lambda s: s.map(lambda o: 1), "user"),
        (lambda s: s.filter(lambda o: o.at > 1).map(lambda o: o.user), "user, at"),
        (lambda s: s.filter(lambda o: o.at > 1).filter(lambda o: o.user is not None).map(lambda o: o[0]), "user, at"),
        (lambda s: s.flat_map(lambda o: [o.at, o.at + 1]), "at"),
        (lambda s: s.map(lambda o: o.amount).union(s.map(lambda o: o.at)), "at, amount"),
        (lambda s: s.flat_map(LooksUp()), "user, at"),
        (lambda s: s.map(Chooses()), "at, amount"),
        (lambda s: s.map(Counts()), "at"),
        (lambda s: s.map(Looks()), "user, at"),
        # A global may be another one in a worker, which imports its module for itself.
        (lambda s: s.map(chosen), "at, amount"),
        # By their place, which is the same without what is read no more.
        (lambda s: s.map(lambda o: (o[0], o[1])), "user, at"),
        (lambda s: s.map(lambda o: o[-1]), "text"),
    ],
)
def test_what_functions_ask_for_is_read(build, reads, orders, capsys):
    stream = build(orders)
    assert read_of(stream, capsys) == reads
    found = [*stream.execute_and_collect()]
    assert len(found) >= 2
    env = orders.get_execution_environment()
    env.get_config().set_functions_in_python()
    in_python_alone = build(orders)
    assert read_of(in_python_alone, capsys) == "all"
    assert found == [*in_python_alone.execute_and_collect()]


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.map(lambda o: o),
        lambda s: s.map(lambda o: o[2]),
        lambda s: s.map(lambda o: o[-3]),
        lambda s: s.map(lambda o: len(o) + 1),
        lambda s: s.map(lambda o: [*o][1]),
        lambda s: s.map(lambda o: o.as_dict().get(NAME)),
        lambda s: s.map(dropped),
        lambda s: s.map(TakesOneByName()),
        lambda s: s.map(LooksUpWhole()),
        lambda s: s.map(GoesThrough()),
        lambda s: s.map(in_python(lambda o: o.amount)),
        lambda s: s.filter(lambda o: o.at > 1),
        lambda s: s.filter(lambda o: o.at > 1).key_by(lambda o: o.user).sum("at"),
        lambda s: s.map(lambda o: o.amount).union(s.filter(lambda o: o.at > 5).map(lambda o: o.get_row_kind().value)),
    ],
)
def test_elements_are_whole_where_that_is_not_known(build, orders, capsys):
    assert read_of(build(orders), capsys) == "all"


def test_whole_elements_are_read_where_bad_ones_are_wanted(orders, capsys):
    bad = OutputTag("bad")
    tenths = orders.map(lambda o: 10 // o.amount, Types.LONG())
    letters = tenths.side_output_dead_letters(bad)
    letters.print()
    assert read_of(tenths, capsys) == "all"


def test_a_batch_that_goes_to_the_function_has_the_fields_that_it_reads(orders):
    tenths = orders.filter(lambda o: o.amount is not None).map(lambda o: 10 // o.amount if o.at > 2 else o.amount)
    with pytest.raises(UserFunctionError, match=r"element Row\(at=3, amount=0\)"):
        [*tenths.execute_and_collect()]


def test_a_timestamp_assigner_reads_its_fields(tmp_path, capsys):
    pq.write_table(pa.table(ORDERS), tmp_path / "orders.parquet")
    env = local_environment()
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda o, _: o.at * 2)
    source = FileSource.parquet(str(tmp_path), type_info=ORDER).build()
    amounts = env.from_source(source, in_time, "orders").map(lambda o: o.amount)
    assert read_of(amounts, capsys) == "at, amount"
    assert [*amounts.execute_and_collect()] == ORDERS["amount"]
