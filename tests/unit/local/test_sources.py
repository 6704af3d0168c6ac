"""Sources in whole programs on the twin: starts that are kept, splits that are gone, and state that does not grow."""

import json
import os
import re
from copy import deepcopy

import pytest

from eventide.common import Duration, PunctuatedWatermarks, Types, Watermark, WatermarkStrategy
from eventide.datastream import MapFunction, OutputTag
from eventide.datastream.connectors import Beginning, FileSource, SideOutput, Source
from eventide.datastream.window import TimestampedValue, TumblingEventTimeWindows
from eventide.errors import ProgramError, UserFunctionError
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.testing import ScriptedSource, local_environment
from support.twin import BY_SECOND_FIELD, Contents, by_sink, plan_of, runner, values

TENS = TumblingEventTimeWindows.of(10)
DAY_MS = 24 * 60 * 60 * 1_000


class Topic(Source):
    """Partitions that grow and go, read from where they stand when the job first sees them."""

    def __init__(self, **partitions):
        self.partitions = partitions

    def splits(self):
        return list(self.partitions)

    def initial_position(self, split):
        return self.latest_position(split)

    def latest_position(self, split):
        return len(self.partitions[split])

    def read(self, split, start, end):
        yield from self.partitions[split][start:end]

    def is_bounded(self):
        return False


class FailsOnce(MapFunction):
    """Fails at the first element it sees in its life, and hands on all others."""

    failed = False

    def map(self, value):
        if not FailsOnce.failed:
            FailsOnce.failed = True
            raise OSError("once")
        return value


class Job:
    """A program that is restarted for every step, on one checkpoint."""

    def __init__(self, make_plan):
        self.make_plan, self.checkpoint, self.counters = make_plan, LocalCheckpoint(), {}

    def step(self):
        plan = self.make_plan()
        one = runner(plan, checkpoint=deepcopy(self.checkpoint))
        try:
            found = [by_sink(plan, batch) for batch in one.batches()]
        finally:
            self.checkpoint, self.counters = one.checkpoint, one.metrics()
        return values(found)

    def stored(self):
        """All state of all subtasks, by name."""
        return [entry for backend in self.checkpoint.state.values() for entry in backend.items()]

    def knows(self, split):
        """Whether there is something about a split in the state of any operator, but for the holders of watermarks."""
        return any(split in str(name) or split.encode() in _without_moves(value) for name, value in self.stored())


def _without_moves(value):
    return re.sub(rb'"moves": .*?, "holder"', b"", value)


def rows_of(source):
    return plan_of(local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "topic"))


def windows_of(source):
    stream = local_environment().from_source(source, BY_SECOND_FIELD, "topic")
    return plan_of(stream.key_by(lambda e: e[0]).window(TENS).process(Contents()))


def test_a_source_that_starts_at_the_latest_reads_all_that_comes_after_its_first_micro_batch():
    topic = Topic(p=["old"])
    job = Job(lambda: rows_of(topic))
    assert job.step() == []
    topic.partitions["p"] += ["a", "b"]
    topic.partitions["q"] = ["before it was seen"]
    assert job.step() == ["a", "b"]
    topic.partitions["p"] += ["c"]
    topic.partitions["q"] += ["d"]
    assert sorted(job.step()) == ["c", "d"]
    assert job.step() == []


class Growing(Topic):
    """Something comes between the moment in which its start is asked for and the one in which its end is."""

    def latest_position(self, split):
        self.partitions[split].append(len(self.partitions[split]))
        return len(self.partitions[split]) if len(self.partitions[split]) < 6 else 6

    def read(self, split, start, end):
        yield from range(start, end)


def test_a_first_micro_batch_that_fails_is_repeated_from_the_same_start():
    FailsOnce.failed = False
    growing = Growing(p=[])

    def plan():
        stream = local_environment().from_source(growing, WatermarkStrategy.no_watermarks(), "topic")
        return plan_of(stream.map(FailsOnce()))

    job = Job(plan)
    with pytest.raises(UserFunctionError, match="once"):
        job.step()
    assert growing.partitions["p"][:2] == [0, 1]
    assert job.step() == [1, 2, 3, 4, 5], "it started behind the first, whatever is the latest now"


def test_a_partition_that_is_gone_holds_the_watermark_no_longer_and_what_was_not_read_of_it_is_counted():
    topic = Topic(p=[], q=[])
    job = Job(lambda: windows_of(topic))
    assert job.step() == []
    topic.partitions["p"] += [("a", 1), ("a", 25)]
    assert job.step() == [], "q holds the watermark"
    topic.partitions.pop("q")
    assert job.step() == [("a", 0, 10, [("a", 1)])]
    assert job.counters["topic"]["numPartsLost"] == 1
    assert job.step() == []


class Discovered(Topic):
    """Grows while it is planned: what each planning finds is written down here, and can be read anywhere."""

    def __init__(self, *steps):
        super().__init__(p=[])
        self.steps = list(steps)
        self.written = {split: [e for step in steps for e in step.get(split, [])] for step in steps for split in step}

    def read(self, split, start, end):
        yield from self.written[split][start:end]

    def parts(self, known):
        for split, elements in (self.steps.pop(0) if self.steps else {}).items():
            self.partitions.setdefault(split, []).extend(elements)
        return super().parts(known)

    def initial_position(self, split):
        return 0


SUPPLIED = WatermarkStrategy.for_generator(lambda: PunctuatedWatermarks(lambda e, ms: ms))


@pytest.mark.parametrize("strategy", [BY_SECOND_FIELD, SUPPLIED.with_timestamp_assigner(lambda e, _: e[1])])
def test_a_partition_that_is_found_while_the_job_runs_holds_the_watermark_from_then_on(strategy):
    topic = Discovered({"p": [("a", 1)]}, {"p": [("a", 15)], "q": []}, {"p": [("a", 35)]}, {"q": [("a", 21)]})
    stream = local_environment().from_source(topic, strategy, "topic")
    plan = plan_of(stream.key_by(lambda e: e[0]).window(TENS).process(Contents()))
    found = [values([by_sink(plan, batch)]) for batch in runner(plan).batches()]
    assert found == [[], [], [], [("a", 0, 10, [("a", 1)]), ("a", 10, 20, [("a", 15)])]]


def test_a_partition_that_is_found_and_then_gone_holds_nothing_back():
    topic = Discovered({"p": [("a", 1)]}, {"q": []}, {"p": [("a", 35)]})
    job = Job(lambda: windows_of(topic))
    assert job.step() == []
    topic.partitions.pop("q")
    assert job.step() == [("a", 0, 10, [("a", 1)])]
    assert not job.knows('"q"')


class Named(Topic):
    """Partitions that can be told from others of their names."""

    resumed = None

    def beginnings(self, parts):
        return {part: Beginning(0, identity=f"first {part}") for part in parts}

    def resume(self, identities):
        self.resumed = dict(identities)


def test_a_source_hears_at_the_start_of_a_run_which_parts_the_checkpoint_means():
    topic = Named(p=["a"])
    job = Job(lambda: rows_of(topic))
    assert job.step() == ["a"]
    assert topic.resumed == {}
    topic.partitions["q"] = []
    job.step()
    assert topic.resumed == {"p": "first p"}
    job.step()
    assert topic.resumed == {"p": "first p", "q": "first q"}


def test_a_split_after_a_generator_of_its_own_is_forgotten_with_its_generator():
    topic = Topic(p=[], quiet=[])

    def plan():
        generator = WatermarkStrategy.for_generator(lambda: PunctuatedWatermarks(lambda e, ms: ms))
        strategy = generator.with_timestamp_assigner(lambda e, _: e[1])
        stream = local_environment().from_source(topic, strategy, "topic")
        return plan_of(stream.key_by(lambda e: e[0]).window(TENS).process(Contents()))

    job = Job(plan)
    job.step()
    topic.partitions["p"] += [("a", 1), ("a", 25)]
    topic.partitions["quiet"] += [("a", 3)]
    assert job.step() == []
    assert job.knows("quiet")
    topic.partitions.pop("quiet")
    assert [value[:3] for value in job.step()] == [("a", 0, 10)]
    assert not job.knows("quiet")


@pytest.mark.parametrize("split_by", [None, lambda path: os.path.basename(path).split("-")[0]])
def test_a_year_of_daily_files_leaves_no_more_in_the_checkpoint_than_what_is_there(tmp_path, split_by):
    """A directory where each day brings two files, which are deleted a week later; the job is restarted every day.

    Files that are gone stay known for a time by the clock, which here is none.
    """

    def plan():
        files = FileSource.csv(tmp_path, type_info=Types.ROW_NAMED(["user", "ms"], [Types.STRING(), Types.LONG()]))
        at_once = Duration.of_millis(0)
        files = files.monitor_continuously(at_once).set_split_by(split_by).set_known_for(at_once)
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ms")
        stream = local_environment().from_source(files.build(), strategy, "files")
        return plan_of(stream.key_by(lambda e: e.user).window(TumblingEventTimeWindows.of(DAY_MS)).process(Contents()))

    job, sizes, days = Job(plan), [], []
    for day in range(365):
        for half in range(2):
            text = f"user,ms\nwren,{day * DAY_MS + half}\n"
            (tmp_path / f"{day:03}-{half}.csv").write_text(text)
        if day >= 7:
            for half in range(2):
                (tmp_path / f"{day - 7:03}-{half}.csv").unlink()
        days += [start // DAY_MS for _, start, _, _ in job.step()]
        sizes.append(
            len(json.dumps(job.checkpoint.offsets)) + sum(len(name) + len(value) for name, value in job.stored())
        )
    last_fired = 363 if split_by is None else 364 - 7  # a split of its own holds the watermark as long as it is there
    assert days == list(range(last_fired + 1))
    assert max(sizes[-100:]) <= 1.02 * max(sizes[50:100]), "but for the digits of a later time"


class OwnWatermarks(ScriptedSource):
    """Gives timestamps, and after each element a watermark."""

    def gives_timestamps(self):
        return True

    def read(self, split, start, end):
        for item in super().read(split, start, end):
            yield TimestampedValue(item, item[1])
            yield Watermark(item[1] - 1)


def test_splits_of_a_source_with_watermarks_of_its_own_fall_idle_with_a_strategy_that_gives_none():
    script = [[("s", ("a", 5)), ("t", ("a", 6))], [("s", ("a", 15))], [("s", ("a", 25))], []]
    source = OwnWatermarks(["s", "t"], script, bounded=False)
    strategy = WatermarkStrategy.no_watermarks().with_idleness(100)
    stream = local_environment().from_source(source, strategy, "script").key_by(lambda e: e[0])
    plan = plan_of(stream.window(TENS).process(Contents()))
    clocks = iter([0, 60, 120, 180])
    batches = list(LocalRunner(plan, clock=lambda: next(clocks)).batches())
    assert [values([by_sink(plan, batch)]) for batch in batches] == [
        [],
        [],
        [("a", 0, 10, [("a", 5), ("a", 6)]), ("a", 10, 20, [("a", 15)])],
        [],
    ]


class Sorted(Source):
    """Two splits, whose odd numbers go to a side output with its own type."""

    def splits(self):
        return ["p", "q"]

    def latest_position(self, split):
        return 6

    def read(self, split, start, end):
        for n in range(start, end):
            time = 10 * n
            yield SideOutput("odd", f"{split}{n}", time) if n % 2 else TimestampedValue((split, n), time)

    def side_outputs(self):
        return {"odd": Types.STRING()}

    def gives_timestamps(self):
        return True


@pytest.mark.parametrize("strategy", [WatermarkStrategy.no_watermarks(), BY_SECOND_FIELD])
def test_a_source_puts_elements_out_at_the_side(strategy):
    stream = local_environment().from_source(Sorted(), strategy, "sorted")
    aside = stream.get_side_output(OutputTag("odd"))
    assert aside.get_type() == Types.STRING()
    [batch] = [by_sink(plan, batch) for plan in [plan_of(stream, aside)] for batch in runner(plan).batches()]
    main, odd = batch
    assert sorted(value for value, _ in main) == [(split, n) for split in "pq" for n in (0, 2, 4)]
    assert sorted(odd) == [(f"{split}{n}", 10 * n) for split in "pq" for n in (1, 3, 5)]


def test_a_side_output_of_a_source_that_it_does_not_have_is_refused():
    stream = local_environment().from_source(Sorted(), WatermarkStrategy.no_watermarks(), "sorted")
    with pytest.raises(ProgramError, match="'sorted' has no side outputs"):
        stream.get_side_output(OutputTag("even"))


def test_windows_may_follow_a_side_output_of_a_source_that_has_got_watermarks():
    stream = local_environment().from_source(Sorted(), WatermarkStrategy.no_watermarks(), "sorted")
    timed = stream.get_side_output(OutputTag("odd")).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps()
    )
    windows = timed.key_by(lambda name: name[0]).window(TumblingEventTimeWindows.of(40)).process(Contents())
    plan = plan_of(windows)
    found = values([by_sink(plan, batch) for batch in runner(plan).batches()])
    assert sorted(found) == [
        ("p", 0, 40, ["p1", "p3"]),
        ("p", 40, 80, ["p5"]),
        ("q", 0, 40, ["q1", "q3"]),
        ("q", 40, 80, ["q5"]),
    ]
