"""What a savepoint is: rows that anyone can read, of a program that need not be there, for one that fits."""

import json
import pickle
from dataclasses import dataclass, replace

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.common import Time, Types
from eventide.common._pickles import ProgramClasses, bring, dumps, loads
from eventide.common._unknown import Unknown, dumps_anyway, loads_anyway
from eventide.datastream import RuntimeExecutionMode
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import ProgramError, StateError
from eventide.local.runner import LocalRunner
from eventide.local.savepoint import take_savepoint
from eventide.runtime.elements.keys import subtask_of
from eventide.runtime.eventtime.gate import Gate, GateEdge
from eventide.runtime.exchange.reports import Report
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.operators import HEAD, small_values
from eventide.runtime.tasks.remembered import remembered
from eventide.savepoint import Savepoint
from eventide.savepoint.fitting import check_fit
from eventide.savepoint.saved import groups_of, opened_savepoint
from eventide.savepoint.tasks import with_channels
from eventide.testing import ScriptedSource, local_environment
from twin import BY_SECOND_FIELD, Contents, plan_of

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
        check_fit(saved, program(**change).identity(), allow_non_restored=False)
    assert says in str(refused.value)


def test_what_has_no_home_may_be_left_behind_and_what_differs_may_not(saved):
    for change in ({"uid": "others"}, {"keyed": False}, {"name": "other"}, {"parallelism": 5}):
        check_fit(saved, program(**change).identity(), allow_non_restored=True)
    with pytest.raises(StateError, match="operator 'contents'"):
        check_fit(saved, program(size=20).identity(), allow_non_restored=True)


def test_only_who_reads_a_data_frame_knows_how_to_begin_at_its_position(saved):
    [source] = saved.header.sources
    saved.header = replace(saved.header, sources=(replace(source, kind="DataFrame", offsets=[{"orders": {"0": 7}}]),))
    with pytest.raises(StateError, match=r"is a DataFrame.* have it begin at \[{'orders': {'0': 7}}\]"):
        check_fit(saved, program().identity(), allow_non_restored=False)
    check_fit(saved, program().identity(), allow_non_restored=True)


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
    [level] = program(parallelism=3).levels
    backend = MemoryBackend()
    saved.restore(level, subtask, backend)
    return small_values(backend.values[HEAD])["windows"].items()


def test_what_a_source_remembers_goes_to_its_place_in_the_program_once(saved, tmp_path):
    [source] = saved.header.sources
    saved.header = replace(saved.header, sources=(replace(source, storage="eventide-sources/1"),))
    log = tmp_path / "saved" / "eventide-sources" / "1" / "log" / "0"
    log.parent.mkdir(parents=True)
    log.write_text("said")
    there = tmp_path / "checkpoint" / "eventide-sources" / "2" / "log" / "0"
    for goes_on in ("", " and more"):
        saved.restore_sources(["other", "source"], str(tmp_path / "checkpoint"))
        assert there.read_text() == "said" + goes_on
        there.write_text("said and more")
    assert [path.name for path in (tmp_path / "checkpoint" / "eventide-sources").iterdir()] == ["2"]


def test_a_savepoint_that_was_replaced_is_not_taken_for_the_one_before(saved):
    assert opened_savepoint(saved.location, saved.digest).offsets_of("source") == saved.offsets_of("source")
    with pytest.raises(StateError, match="is another one"):
        opened_savepoint(saved.location, "of another")


def test_a_directory_without_the_last_file_is_no_savepoint(saved, tmp_path):
    with pytest.raises(StateError, match="there is no savepoint"):
        Savepoint(str(tmp_path))
    with pytest.raises(StateError, match="there is something at"):
        take_savepoint(program(), LocalRunner(program()).checkpoint, saved.location)


@dataclass
class Order:
    """A class of the program's own."""

    amount: int


def test_objects_of_classes_that_are_not_here_are_written_as_they_were_read():
    kept = dumps({"a": [Order(1), Order(2)]})
    elsewhere = kept.replace(__name__.encode(), b"x" * len(__name__))
    read = loads_anyway(elsewhere)
    assert [type(order).__name__ for order in read["a"]] == ["Order", "Order"]
    assert all(isinstance(order, Unknown) for order in read["a"])
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
    def gate(subtasks):
        return Gate([GateEdge(1, "before", tuple(map(str, range(subtasks))), is_source=False)])

    old = gate(3)
    old.advance([(1, Report("0", watermark=20)), (1, Report("1", watermark=30)), (1, Report("2", watermark=10))])
    old.advance([(1, Report("2", idle=True))])
    assert old.watermark == 20
    for subtasks in (1, 2, 5):
        new = gate(subtasks)
        edges = (GateEdge(1, "before", tuple(map(str, range(subtasks))), is_source=False),)
        new.restore(with_channels(old.snapshot(), edges))
        assert new.watermark == 20
        for channel in range(subtasks):
            assert new.watermark == 20
            new.advance([(1, Report(str(channel), watermark=40))])
        assert new.watermark == 40
