"""Savepoints: rows that anyone can read, of a program that need not be there, for one that fits."""

import json
import pickle
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from eventide.aggregates import mean, min_, sum_
from eventide.cli.app import app
from eventide.common import Row, Time, Types, WatermarkGenerator, WatermarkStrategy
from eventide.common.checksum import json_with_checksum, json_without_checksum
from eventide.datastream import KeyedProcessFunction, RuntimeExecutionMode
from eventide.datastream.functions import KeyedBroadcastProcessFunction, ReduceFunction
from eventide.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from eventide.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from eventide.errors import ProgramError, StateError
from eventide.local.host import begun_from, take_savepoint
from eventide.local.runner import LocalRunner
from eventide.pickling.pickles import ProgramClasses, bring, dumps, loads, register
from eventide.pickling.stand_ins import StandIn, dumps_anyway, loads_anyway
from eventide.runtime.elements.keys import groups_of, subtask_of
from eventide.runtime.eventtime.valve import ValveEdge, WatermarkValve
from eventide.runtime.exchange.frames import WatermarkReport
from eventide.runtime.observation.event_time_log import remembered
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.operators import HEAD, small_values
from eventide.savepoint import Savepoint, StateWriter
from eventide.savepoint.fitting import check_fit
from eventide.savepoint.saved import OUTLINED, opened_savepoint, outlined, outlined_at
from eventide.savepoint.tasks import with_channels
from eventide.state_processor import SavepointReader, SavepointWriter
from eventide.testing import ScriptedSource, local_environment
from support import changing
from support.disks import damages, outcome
from support.twin import BY_SECOND_FIELD, Contents, plan_of

TEN = TumblingEventTimeWindows.of(Time.milliseconds(10))
SCRIPT = [[("s", ("a", 1)), ("s", ("b", 2))], [("s", ("a", 11))]]


def program(*, uid="windows", key_type=None, size=10, max_parallelism=128, name="source", keyed=True, parallelism=2):
    source = ScriptedSource(["s"], SCRIPT, bounded=False)
    stream = local_environment().from_source(source, BY_SECOND_FIELD, name)
    if not keyed:
        return plan_of(stream, max_parallelism=max_parallelism)
    windows = TumblingEventTimeWindows.of(Time.milliseconds(size))
    stream = stream.key_by(lambda e: e[0], key_type or Types.STRING()).window(windows).process(Contents())
    return plan_of(stream.uid(uid).name("contents"), parallelism=parallelism, max_parallelism=max_parallelism)


def fit(saved, plan, *, allow_non_restored=False):
    check_fit(saved, plan.identity(), plan.operators, allow_non_restored=allow_non_restored)


@pytest.fixture
def saved(tmp_path):
    runner = LocalRunner(program(), clock=lambda: 0)
    next(batches := runner.batches())
    batches.close()
    return take_savepoint(program(), runner.checkpoint, str(tmp_path / "saved"))


def test_state_by_key_is_rows_that_a_person_can_read(saved):
    rows = pq.read_table(f"{saved.location}/keyed").sort_by("key").to_pylist()
    shown = [{name: row[name] for name in ("operator", "kind", "key", "namespace", "value")} for row in rows]
    assert shown == [
        {"operator": "windows", "kind": "window", "key": "'a'", "namespace": "0", "value": "[('a', 1)]"},
        {"operator": "windows", "kind": "window", "key": "'b'", "namespace": "0", "value": "[('b', 2)]"},
    ]
    assert saved.offsets_of("source")["s"]["position"] == 1


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_rolling_aggregate_on_columns_goes_on_with_another_parallelism(parallelism, tmp_path):
    before = changing.program(changing.rolling(lambda keyed: keyed.sum("v")))
    assert "columns" in before.plan().operators[-1].speed
    _, *expected = LocalRunner(before.plan(), clock=lambda: 0).batches()
    runner = LocalRunner(before.plan(), clock=lambda: 0)
    next(batches := runner.batches())
    batches.close()
    saved = take_savepoint(before.plan(), runner.checkpoint, str(tmp_path / "saved"))
    rows = pq.read_table(f"{saved.location}/keyed").sort_by("key").to_pylist()
    assert [(row["key"], row["name"]) for row in rows] == [("'a'", "global:reduced"), ("'b'", "global:reduced")]
    after = replace(before, parallelism=parallelism).plan()
    fit(saved, after)
    found = LocalRunner(after, clock=lambda: 0, checkpoint=begun_from(saved, after)).batches()
    assert results_of(found) == results_of(expected)


def test_a_state_that_is_named_as_the_result_of_a_reduce_is_stored_beside_it_and_goes_on(tmp_path):
    class Counting(ReduceFunction):
        def open(self, runtime_context):
            self.calls = runtime_context.get_state(ValueStateDescriptor("reduced", Types.LONG()))

        def reduce(self, value1, value2):
            self.calls.update((self.calls.value() or 0) + 1)
            return value1[0], value1[1] + value2[1], self.calls.value()

    source = ScriptedSource(["s"], [[("s", ("a", 1)), ("s", ("a", 2))], [("s", ("a", 4))]], bounded=False)
    keyed = local_environment().from_source(source, BY_SECOND_FIELD, "source").key_by(lambda e: e[0], Types.STRING())
    plan = plan_of(keyed.reduce(Counting()).uid("sums"))
    runner = LocalRunner(plan, clock=lambda: 0)
    next(batches := runner.batches())
    batches.close()
    saved = take_savepoint(plan, runner.checkpoint, str(tmp_path / "saved"))
    [row] = SavepointReader.read(saved.location).read_keyed_state("sums").to_pylist()
    assert row == {"key": "a", "reduced": "('a', 3, 1)", "reduce function: reduced": 1}
    found = LocalRunner(plan, clock=lambda: 0, checkpoint=begun_from(saved, plan)).batches()
    assert results_of(found) == [("a", 7, 2)]


def results_of(batches):
    return sorted((value for batch in batches for rows in batch.elements.values() for value, _ in rows), key=repr)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"uid": "others"}, "the operator 'contents' (id 'windows') is missing in the program"),
        ({"keyed": False}, "the operator 'contents' (id 'windows') is missing in the program"),
        ({"size": 20}, "operator 'contents': "),
        ({"max_parallelism": 64}, "the max parallelism was 128 and is now 64"),
        ({"name": "other"}, "the source 'source' is missing in the program"),
    ],
)
def test_what_does_not_fit_is_named_and_refused(saved, change, says):
    with pytest.raises(StateError, match="does not fit the savepoint") as refused:
        fit(saved, program(**change))
    assert says in str(refused.value)


def test_what_has_no_home_may_be_left_behind_and_what_differs_may_not(saved):
    for change in ({"uid": "others"}, {"keyed": False}, {"name": "other"}, {"parallelism": 5}):
        fit(saved, program(**change), allow_non_restored=True)
    with pytest.raises(StateError, match="operator 'contents'"):
        fit(saved, program(size=20), allow_non_restored=True)


def test_only_the_reader_of_a_data_frame_can_begin_at_its_position(saved):
    [source] = saved.header.sources
    saved.header = replace(saved.header, sources=(replace(source, kind="DataFrame", offsets=[{"orders": {"0": 7}}]),))
    with pytest.raises(StateError, match=r'is a DataFrame.* can begin at {"orders": {"0": 7}}: get .* from env'):
        fit(saved, program())
    plan = program()
    check_fit(saved, plan.identity(), plan.operators, allow_non_restored=False, placed={source.name})
    fit(saved, program(), allow_non_restored=True)


def test_the_command_line_shows_what_is_in_it(saved):
    said = CliRunner().invoke(app, ["checkpoint", saved.location])
    assert said.output.splitlines() == [
        f"The savepoint {saved.location}: micro-batch 0 of the job in local",
        "  state of   contents",
        "  sources    source",
        f"Begin with it by env.from_savepoint('{saved.location}'), with a new checkpoint location",
    ]
    written = json.loads(CliRunner().invoke(app, ["checkpoint", saved.location, "--json"]).output)
    assert written["program"]["operators"]["windows"]["name"] == "contents"


def test_a_batch_job_does_not_begin_with_one(saved):
    env = local_environment().set_runtime_mode(RuntimeExecutionMode.BATCH).from_savepoint(saved.location)
    with pytest.raises(ProgramError, match="a batch job reads everything from the beginning"):
        list(env.from_collection([1]).execute_and_collect())


def test_an_environment_goes_on_from_a_savepoint_with_its_parallelism(saved):
    env = local_environment().set_max_parallelism(128).from_savepoint(saved.location)
    stream = env.from_source(ScriptedSource(["s"], SCRIPT), BY_SECOND_FIELD, "source")
    stream = stream.key_by(lambda e: e[0], Types.STRING()).window(TEN).process(Contents()).uid("windows")
    assert env.get_plan(stream).parallelism == 2
    windows = ("a", 0, 10, [("a", 1)]), ("a", 10, 20, [("a", 11)]), ("b", 0, 10, [("b", 2)])
    assert sorted(stream.execute_and_collect()) == [*windows]


def test_what_was_counted_and_what_came_late_is_in_the_first_subtask(saved):
    counted = dict(small_of_subtask(saved, 0))
    assert remembered(counted["numbers"])["counters"]["contents"]["numRecordsIn"] == 2
    assert "numbers" not in dict(small_of_subtask(saved, 1))


def small_of_subtask(saved, subtask):
    [stage] = program(parallelism=3).stages
    backend = MemoryBackend()
    saved.restore(stage, subtask, backend)
    return small_values(backend.values[HEAD])["windows"].items()


def with_files_of_a_source(saved, tmp_path):
    """A savepoint whose source has two files of its own; and their place in a program that has it second."""
    [source] = saved.header.sources
    names = [f"eventide-sources/1/log/{number}" for number in range(2)]
    for name in names:
        log = tmp_path / "saved" / name
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("said")
    files = {**saved.header.files, **{name: saved.directory.saved_file(name) for name in names}}
    saved.header = replace(saved.header, sources=(replace(source, storage="eventide-sources/1"),), files=files)
    return tmp_path / "checkpoint" / "eventide-sources" / "2" / "log"


def test_what_a_source_remembers_goes_to_its_place_in_the_program(saved, tmp_path):
    """In place of what a start that was killed has left there."""
    there = with_files_of_a_source(saved, tmp_path)
    there.mkdir(parents=True)
    for name in ("0", "2"):
        (there / name).write_text("half")
    saved.restore_sources(["other", "source"], str(tmp_path / "checkpoint"))
    assert {path.name: path.read_text() for path in there.iterdir()} == {"0": "said", "1": "said"}
    assert [path.name for path in (tmp_path / "checkpoint" / "eventide-sources").iterdir()] == ["2"]


def test_a_savepoint_that_was_replaced_is_not_taken_for_the_one_before(saved):
    assert opened_savepoint(saved.location, saved.digest).offsets_of("source") == saved.offsets_of("source")
    with pytest.raises(StateError, match="has changed since the job was started"):
        opened_savepoint(saved.location, "of another")


def test_a_directory_without_the_last_file_is_no_savepoint(saved, tmp_path):
    with pytest.raises(StateError, match="there is no savepoint"):
        Savepoint(str(tmp_path))
    with pytest.raises(StateError, match="there is something at"):
        take_savepoint(program(), LocalRunner(program()).checkpoint, saved.location)


def test_a_file_is_no_savepoint_and_takes_none(tmp_path):
    file = tmp_path / "file"
    file.write_text("text")
    for opens in (Savepoint, SavepointReader.read, SavepointWriter.from_existing_savepoint):
        with pytest.raises(StateError, match=f"there is no savepoint at {file}: "):
            opens(str(file))
    said = CliRunner().invoke(app, ["checkpoint", str(file)])
    assert said.exit_code == 2
    assert said.stderr.startswith(f"eventide: {file} is not a checkpoint: ")
    with pytest.raises(StateError, match=f"there is something at {file} already"):
        SavepointWriter.new_savepoint().write(str(file))
    assert file.read_text() == "text"


@dataclass
class Order:
    """A class of the program's own."""

    amount: int


def test_objects_of_classes_that_are_not_here_are_written_as_they_were_read():
    kept = dumps({"a": [Order(1), Order(2)]})
    elsewhere = kept.replace(__name__.encode(), b"x" * len(__name__))
    read = loads_anyway(elsewhere)
    assert [type(order).__name__ for order in read["a"]] == ["Order", "Order"]
    assert all(isinstance(order, StandIn) for order in read["a"])
    written = dumps_anyway(read)
    back = written.replace(b"x" * len(__name__), __name__.encode())
    bring(ProgramClasses((Order,)))
    assert loads(back) == {"a": [Order(1), Order(2)]}
    assert pickle.loads(kept) == loads(back)


def test_every_key_group_has_the_subtask_that_elements_of_its_keys_go_to():
    for parallelism in (1, 2, 3, 7, 128):
        found = {group: s for s in range(parallelism) for group in groups_of(s, 128, parallelism)}
        assert found == {group: subtask_of(group, 128, parallelism) for group in range(128)}


def test_new_channels_begin_where_the_lowest_old_one_that_counts_stood():
    def valve(subtasks):
        return WatermarkValve([ValveEdge(1, "before", tuple(map(str, range(subtasks))), is_source=False)])

    old = valve(3)
    old.advance(
        [
            (1, WatermarkReport("0", watermark=20)),
            (1, WatermarkReport("1", watermark=30)),
            (1, WatermarkReport("2", watermark=10)),
        ]
    )
    old.advance([(1, WatermarkReport("2", idle=True))])
    assert old.watermark == 20
    for subtasks in (1, 2, 5):
        new = valve(subtasks)
        edges = (ValveEdge(1, "before", tuple(map(str, range(subtasks))), is_source=False),)
        new.restore(with_channels(old.snapshot(), edges))
        assert new.watermark == 20
        for channel in range(subtasks):
            assert new.watermark == 20
            new.advance([(1, WatermarkReport(str(channel), watermark=40))])
        assert new.watermark == 40


NARROW = Types.ROW_NAMED(["key", "at"], [Types.STRING(), Types.LONG()])
WIDE = Types.ROW_NAMED(["note", "at", "key"], [Types.STRING(), Types.LONG(), Types.STRING()])
BACKWARDS = Types.ROW_NAMED(["key", "at"], [Types.STRING(), Types.INT()])


class Remembers(KeyedProcessFunction):
    """Gives what it has kept before it keeps an element: in a value, a list and a map, each of a type."""

    def __init__(self, kind, expires):
        self.kind = kind
        self.expires = expires

    def open(self, runtime_context):
        descriptors = (
            ValueStateDescriptor("last", self.kind),
            ListStateDescriptor("all", self.kind),
            MapStateDescriptor("by time", Types.LONG(), self.kind),
        )
        for descriptor in descriptors if self.expires else ():
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.last, self.all, self.by_time = (descriptor.bind(runtime_context) for descriptor in descriptors)

    def process_element(self, value, ctx):
        yield self.last.value(), list(self.all.get()), dict(self.by_time.items())
        self.last.update(value)
        self.all.add(value)
        self.by_time[value["at"]] = value


def remembering(kind, batches, expires=False, rows_type=None):
    """A program that keeps rows, of a type, by key."""
    env = local_environment()
    script = [[("s", row) for row in batch] for batch in batches]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row["at"])
    rows = env.from_source(ScriptedSource(["s"], script), strategy, "rows", rows_type or kind)
    return plan_of(rows.key_by(lambda row: row["key"]).process(Remembers(kind, expires)).uid("remembers"))


def cut(plan, location):
    """The results of a run in its first micro-batch, and the savepoint that it leaves."""
    runner = LocalRunner(plan, clock=lambda: 0)
    next(batches := runner.batches())
    batches.close()
    return take_savepoint(plan, runner.checkpoint, str(location))


@pytest.mark.parametrize(("before", "behind"), [(False, False), (True, True), (False, True), (True, False)])
def test_what_functions_have_kept_is_brought_to_the_types_that_are_declared(before, behind, tmp_path):
    saved = cut(remembering(NARROW, [[Row(key="k", at=1)], []], before), tmp_path / "saved")
    plan = remembering(WIDE, [[], [Row(note="n", at=2, key="k")]], behind)
    fit(saved, plan)
    [found] = results(saved, plan)
    was = Row(note=None, at=1, key="k")
    assert found == (was, [was], {1: was})
    assert found[0].get_field_names() == ["note", "at", "key"]


class RemembersLate(KeyedProcessFunction):
    """Gives the last element of a key, and keeps an element; a subtask declares the state with its first element."""

    def __init__(self, kind, expires):
        self.descriptor = ValueStateDescriptor("last", kind)
        if expires:
            self.descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())

    def open(self, runtime_context):
        self.context = runtime_context

    def process_element(self, value, ctx):
        last = self.context.get_state(self.descriptor)
        yield last.value()
        last.update(value)


@pytest.mark.parametrize("expires", [False, True])
def test_state_that_has_become_wider_in_one_subtask_becomes_so_in_the_others_after_a_savepoint(expires, tmp_path):
    def late(kind, batches):
        rows = local_environment().from_source(
            ScriptedSource(["s"], [[("s", row) for row in batch] for batch in batches]), SILENT, "rows", kind
        )
        return plan_of(rows.key_by(lambda row: row["key"]).process(RemembersLate(kind, expires)).uid("late"))

    saved = cut(late(NARROW, [[Row(key=key, at=1) for key in "abcdef"], []]), tmp_path / "narrow")
    wide = [Row(note="n", at=2, key=key) for key in "abcdef"]
    for touched in range(6):
        plan = late(WIDE, [[], wide[touched : touched + 1], []])
        runner = LocalRunner(plan, clock=lambda: 0, checkpoint=begun_from(saved, plan))
        next(batches := runner.batches())
        batches.close()
        half = take_savepoint(plan, runner.checkpoint, str(tmp_path / f"half-{touched}"))
        kept = [Row(note=None, at=1, key=key) for key in "abcdef"]
        kept[touched] = wide[touched]
        read = SavepointReader(half).read_keyed_state("late").to_pylist()
        assert sorted((row["last"] for row in read), key=itemgetter("key")) == [row.as_dict() for row in kept]
        found = results(half, late(WIDE, [[], [], wide]))
        assert sorted(found, key=itemgetter("key")) == kept
        assert {tuple(row.get_field_names()) for row in found} == {("note", "at", "key")}


def test_what_functions_have_kept_does_not_become_narrower(tmp_path):
    saved = cut(remembering(NARROW, [[Row(key="k", at=1)], []]), tmp_path / "saved")
    other = Types.ROW_NAMED(["key", "at"], [Types.STRING(), Types.STRING()])
    plan = remembering(other, [[], []], rows_type=NARROW)
    fit(saved, plan)
    with pytest.raises(StateError) as refused:
        results(saved, plan)
    assert str(refused.value).startswith(
        "the state 'last' was stored as ROW(key: STRING, at: LONG) and is now ROW(key: STRING, at: STRING), which is "
        "not wider: the field 'at': STRING does not hold all values of LONG. "
    )


RULES = {kind: MapStateDescriptor("rules", Types.STRING(), kind) for kind in (NARROW, WIDE, BACKWARDS)}


class Shows(KeyedBroadcastProcessFunction):
    """Gives the rule of each element."""

    def __init__(self, rules):
        self.rules = rules

    def process_element(self, value, ctx):
        yield ctx.get_broadcast_state(self.rules).get(value["key"])

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(self.rules)[value["key"]] = value


def ruled(kind, batches, rules):
    """A program that shows rules, which are rows of a type."""
    env = local_environment()
    script, said = ([[("s", row) for row in batch] for batch in some] for some in (batches, rules))
    rows = env.from_source(ScriptedSource(["s"], script), WatermarkStrategy.no_watermarks(), "rows", NARROW)
    other = env.from_source(ScriptedSource(["s"], said), WatermarkStrategy.no_watermarks(), "rules", kind)
    shown = rows.key_by(lambda row: row["key"]).connect(other.broadcast(RULES[kind])).process(Shows(RULES[kind]))
    return plan_of(shown.uid("ruled"))


def test_broadcast_state_is_brought_to_the_type_that_is_declared(tmp_path):
    row = Row(key="k", at=1)
    saved = cut(ruled(NARROW, [[], []], [[row], []]), tmp_path / "saved")
    plan = ruled(WIDE, [[], [row]], [[], []])
    fit(saved, plan)
    assert results(saved, plan) == [Row(note=None, at=1, key="k")]
    with pytest.raises(StateError, match="operator 'process beside a broadcast stream': broadcast state was "):
        fit(saved, ruled(BACKWARDS, [[], []], [[], []]))


def test_a_source_whose_elements_do_not_fit_is_refused_with_both_types(tmp_path):
    saved = cut(remembering(NARROW, [[Row(key="k", at=1)], []]), tmp_path / "saved")
    with pytest.raises(StateError) as refused:
        fit(saved, remembering(BACKWARDS, [[], []]))
    assert (
        "the source 'rows' had elements ROW(key: STRING, at: LONG), and has ROW(key: STRING, at: INT): the field "
        "'at': INT does not hold all values of LONG" in str(refused.value)
    )
    assert "operator '" not in str(refused.value)


@pytest.mark.parametrize("size", [TEN, EventTimeSessionWindows.with_gap(Time.milliseconds(5))])
def test_keys_and_aggregates_on_columns_become_wider_and_nothing_else(size, tmp_path):
    def sums(kind, batches, **more):
        script = [[("s", row) for row in batch] for batch in batches]
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row["at"])
        types = Types.ROW_NAMED(["id", "x", "at"], [kind, kind, Types.LONG()])
        rows = local_environment().from_source(ScriptedSource(["s"], script, **more), strategy, "rows", types)
        windows = rows.key_by("id").window(size)
        return plan_of(windows.aggregate(sum_("x"), min_("x"), mean("x")).uid("sums").map(tuple), parallelism=3)

    first, second = [Row(id=n, x=n, at=1) for n in (1, 2)], [Row(id=n, x=n + 2, at=2) for n in (2, 3)]
    saved = cut(sums(Types.SHORT(), [first, []]), tmp_path / "saved")
    for kind in (Types.INT(), Types.LONG()):
        plan = sums(kind, [[], second])
        fit(saved, plan)
        found = sorted(row[:1] + row[-3:] for row in results(saved, plan))
        assert found == [(1, 1, 1, 1.0), (2, 6, 2, 3.0), (3, 5, 5, 5.0)]
    with pytest.raises(StateError, match="'x' was SHORT and is now BIG_INT, whose aggregates are stored in another"):
        fit(saved, sums(Types.BIG_INT(), [[], []]))
    with pytest.raises(StateError, match="key type was 'SHORT' and is now 'DOUBLE'"):
        fit(saved, sums(Types.DOUBLE(), [[], []]))


def results(saved, plan):
    """The results of a program that begins with a savepoint."""
    runner = LocalRunner(plan, clock=lambda: 0, checkpoint=begun_from(saved, plan))
    return [value for batch in runner.batches() for rows in batch.elements.values() for value, _ in rows]


class Waits(KeyedProcessFunction):
    """Has a timer of the clock for each key."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(5)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key()


class NeverSays(WatermarkGenerator):
    """Gives no watermark."""

    def on_event(self, event, event_timestamp, output):
        pass

    def on_periodic_emit(self, output):
        pass


SILENT = WatermarkStrategy.for_generator(NeverSays).with_timestamp_assigner(lambda e, _: e[1])


class Passes(KeyedProcessFunction):
    """Gives what it gets."""

    def process_element(self, value, ctx):
        yield value


def passed_on(stream):
    return stream.key_by(lambda e: e[0]).process(Passes()).uid("in front")


@pytest.mark.parametrize("strategy", [WatermarkStrategy.no_watermarks(), BY_SECOND_FIELD])
@pytest.mark.parametrize(
    "in_front",
    [
        lambda stream: stream,
        passed_on,
        lambda stream: passed_on(passed_on(stream).uid("before")),
        lambda stream: passed_on(stream).assign_timestamps_and_watermarks(BY_SECOND_FIELD),
        lambda stream: stream.assign_timestamps_and_watermarks(SILENT),
        lambda stream: passed_on(stream).assign_timestamps_and_watermarks(SILENT),
    ],
)
def test_all_state_is_taken_in_the_first_micro_batch_whatever_new_operators_are_in_front(tmp_path, in_front, strategy):
    """A later savepoint has it then, and timers fire, though no watermark ever comes that far, nor an element."""

    def plan(script, change=lambda stream: stream):
        source = local_environment().from_source(ScriptedSource(["s"], script, bounded=False), strategy, "source")
        waits = change(source).key_by(lambda e: e[0], Types.STRING()).process(Waits()).uid("waits")
        return plan_of(waits, parallelism=4)

    keys = "abcdefgh"
    saved = cut(plan([[("s", (key, 1)) for key in keys]]), tmp_path / "first")
    clock, later = [0], plan([[], []], in_front)
    fit(saved, later)
    runner = LocalRunner(later, clock=lambda: clock[0], checkpoint=begun_from(saved, later))
    assert [value for batch in runner.batches() for rows in batch.elements.values() for value, _ in rows] == []
    again = take_savepoint(later, runner.checkpoint, str(tmp_path / "second"))
    timers = pq.read_table(f"{again.location}/keyed").filter(pc.field("operator") == "waits")
    assert sorted(timers.column("key").to_pylist()) == [repr(key) for key in keys]
    clock[0] = 5
    fired = [value for rows in runner.tick().elements.values() for value, _ in rows]
    assert sorted(fired) == [*keys]


def test_where_sources_are_in_another_order_operators_need_a_uid(tmp_path):
    def plan(*names, **uids):
        env = local_environment()
        found = []
        for name in names:
            stream = env.from_source(ScriptedSource(["s"], [[("s", (name, 1))]], bounded=False), BY_SECOND_FIELD, name)
            stream = stream.key_by(lambda e: e[0]).process(Waits())
            found.append(stream.uid(uids[name]) if name in uids else stream)
        return plan_of(*found)

    saved = cut(plan("orders", "payments"), tmp_path / "saved")
    fit(saved, plan("orders", "payments", "returns"))
    for names in (["payments", "orders"], ["returns", "orders", "payments"]):
        with pytest.raises(
            StateError, match=r"the sources were orders, payments, and are now .* give operators that keep their state"
        ):
            fit(saved, plan(*names))
    uids = {"orders": "of orders", "payments": "of payments"}
    saved = cut(plan("orders", "payments", **uids), tmp_path / "with uids")
    fit(saved, plan("returns", "payments", "orders", **uids))


def files_of(saved):
    """The files of a savepoint, by their names in it."""
    root = Path(saved.location)
    return {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}


def change_header(saved, change):
    """Change what the header says, as JSON."""
    path = files_of(saved)["savepoint.json"]
    content = json_without_checksum(path.read_text())
    change(content)
    path.write_text(json_with_checksum(content))


def test_the_header_lists_all_files_with_their_rows(saved):
    rows = {name: file.rows for name, file in saved.header.files.items()}
    assert rows.keys() | {"savepoint.json"} == files_of(saved).keys()
    assert {name: pq.read_metadata(files_of(saved)[name]).num_rows for name in rows} == rows
    assert sum(count for name, count in rows.items() if name.startswith("keyed/")) > 0


def test_a_file_that_is_missing_is_an_error_and_no_empty_state(saved):
    for name in saved.header.files:
        path = files_of(saved)[name]
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(StateError, match=f"{name} is missing in the savepoint"):
            Savepoint(saved.location)
        with pytest.raises(StateError, match="is missing"):
            local_environment().from_savepoint(saved.location).from_collection([1]).execute_and_collect()
        path.write_bytes(content)
    Savepoint(saved.location, verify=True)


def test_a_file_that_has_changed_is_an_error(saved):
    name, path = next((name, path) for name, path in files_of(saved).items() if name.startswith("keyed/"))
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(StateError, match=f"{name} in the savepoint .* is not as it was written: it had {len(content)}"):
        Savepoint(saved.location)
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(StateError, match=f"{name} in the savepoint .* is not as it was written"):
        Savepoint(saved.location, verify=True)


def test_a_file_that_does_not_belong_to_it_is_not_read(saved):
    path = next(path for name, path in files_of(saved).items() if name.startswith("keyed/"))
    rows = saved.small_rows(), [table.to_pylist() for table in saved.keyed_rows("windows")]
    path.with_name("another.parquet").write_bytes(path.read_bytes())
    again = Savepoint(saved.location, verify=True)
    assert (again.small_rows(), [table.to_pylist() for table in again.keyed_rows("windows")]) == rows


@pytest.mark.parametrize("storage", ["../secret", "/etc", "eventide-sources/../../secret", "eventide-sources", ""])
def test_no_header_leads_out_of_the_savepoint(saved, storage):
    change_header(saved, lambda content: content["sources"][0].update(storage=storage))
    with pytest.raises(StateError, match="is not one of its folders"):
        Savepoint(saved.location)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "keyed/../../secret"])
def test_no_file_of_the_list_leads_out_of_the_savepoint(saved, tmp_path, name):
    (tmp_path / "secret").write_text("")
    change_header(saved, lambda content: content["files"].update({name: {"bytes": 0, "rows": None, "sha256": ""}}))
    with pytest.raises(StateError, match="is missing in the savepoint"):
        Savepoint(saved.location, verify=True)
    with pytest.raises(StateError, match="is outside the savepoint"):
        saved.directory.path(name)


@pytest.mark.parametrize("version", [1, 4, "3", None])
def test_a_savepoint_of_another_version_is_refused(saved, version):
    change_header(saved, lambda content: content.update(version=version))
    with pytest.raises(StateError, match=f"is of version {version!r}, and this .* reads those from 2 to 3; take it"):
        Savepoint(saved.location)


@pytest.mark.parametrize("files", [None, [], "keyed"])
def test_a_savepoint_that_does_not_list_its_files_is_refused(saved, files):
    change_header(saved, lambda content: content.update(files=files))
    with pytest.raises(StateError, match=r"savepoint.json in the savepoint .* is not as it was written"):
        Savepoint(saved.location)
    change_header(saved, lambda content: content.pop("files"))
    with pytest.raises(StateError, match=r"savepoint.json in the savepoint .* is not as it was written: 'files'"):
        Savepoint(saved.location)


def test_an_outline_may_come_from_another_process(saved):
    register(OUTLINED)
    operators = [*saved.header.program["operators"]]
    there = loads(dumps(outlined(saved.location, operators, verify=True)))
    assert (there.header, there.digest) == (saved.header, saved.digest)
    assert [there.schemas(one) for one in operators] == [saved.schemas(one) for one in operators]
    assert there.schemas("another") == {}
    assert outlined_at(f"{saved.location}/keyed") is None


def test_a_savepoint_whose_header_has_no_checksum_is_read(saved):
    path = files_of(saved)["savepoint.json"]
    content = json_without_checksum(path.read_text())
    path.write_text(json.dumps(content | {"version": 2}))
    assert Savepoint(saved.location, verify=True).header == saved.header
    path.write_text(json.dumps(content))
    with pytest.raises(StateError, match=r"savepoint.json in the savepoint .* is not as it was written: .* checksum"):
        Savepoint(saved.location)


def test_what_has_changed_in_a_header_is_an_error_that_names_it(saved, pytestconfig):
    path = files_of(saved)["savepoint.json"]
    for damaged in damages(path.read_bytes(), pytestconfig):
        path.write_bytes(damaged)
        found, said = outcome(lambda: Savepoint(saved.location).header, StateError)
        if said:
            assert "savepoint.json in the savepoint" in said or "is of version" in said
        else:
            assert found == saved.header


def all_of(saved):
    """All that can be read of a savepoint."""
    operators = saved.header.program["operators"]
    return saved.small_rows(), [
        ([*saved.keyed_rows(one)], [*saved.tables(one)], saved.schemas(one)) for one in operators
    ]


def test_what_has_changed_in_a_file_is_an_error_that_names_it(saved, pytestconfig):
    """Where a job begins, all is compared; its workers, which read it then, say at least what cannot be read."""
    for name, path in files_of(saved).items():
        if not name.endswith(".parquet"):
            continue
        content = path.read_bytes()
        for damaged in damages(content, pytestconfig):
            path.write_bytes(damaged)
            with pytest.raises(StateError, match=f"{name} in the savepoint .* is not as it was written"):
                Savepoint(saved.location, verify=True)
        path.write_bytes(bytes(len(content)))
        _, said = outcome(lambda: all_of(Savepoint(saved.location)), StateError)
        assert f"{path}, of a savepoint, cannot be read: " in said
        path.write_bytes(content)


def test_of_two_that_write_savepoints_to_one_place_the_second_one_is_whole(saved, tmp_path):
    place = tmp_path / "both"
    first, second = StateWriter(str(place), 128), StateWriter(str(place), 128)
    for writer in (first, second):
        writer.begin()
    with pytest.raises(StateError, match=f"another savepoint is being written to {place}"):
        first.finish(replace(saved.header, files=None), [])
    second.finish(replace(saved.header, files=None), [])
    first.abandon()
    assert Savepoint.is_at(str(place))


def test_a_file_that_was_written_where_it_is_not_found_makes_no_savepoint(saved, tmp_path):
    writer = StateWriter(str(tmp_path / "shared"), 128)
    with pytest.raises(StateError, match=r"keyed/0-0.parquet was written, and is not in .*shared: all workers"):
        writer.finish(replace(saved.header, files=None), [("", 0, "keyed/0-0.parquet", b"")])
    assert not Savepoint.is_at(str(tmp_path / "shared"))
