"""Sources that wait for each other, in whole programs on the twin."""

import json
from copy import deepcopy

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.common import Duration, TimeLagWatermarks, Types, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import SourceFunction
from eventide.datastream.connectors import IDLE, FileSource, Source
from eventide.datastream.window import TimestampedValue, TumblingEventTimeWindows
from eventide.errors import ProgramError
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.plan.description import explain
from eventide.testing import local_environment
from support.twin import Contents, by_sink, plan_of, runner, values

MINUTE = 60_000
MINUTES = WatermarkStrategy.for_monotonous_timestamps()
ALIGNED = MINUTES.with_watermark_alignment("all", Duration.of_minutes(10))


class Log(Source):
    """Splits of minutes, which may grow."""

    def __init__(self, splits, bounded=True, finds_times=False):
        self.minutes, self.bounded, self.finds_times = splits, bounded, finds_times
        self.asked = 0

    def splits(self):
        return list(self.minutes)

    def latest_position(self, split):
        return len(self.minutes[split])

    def read(self, split, start, end):
        for item in self.minutes[split][start:end]:
            if item is IDLE or isinstance(item, Watermark):
                yield item
            else:
                yield TimestampedValue((split, item), item * MINUTE)

    def gives_timestamps(self):
        return True

    def gives_watermarks(self):
        return any(isinstance(item, Watermark) for items in self.minutes.values() for item in items)

    def is_bounded(self):
        return self.bounded

    def positions_at(self, timestamp_ms, positions, column=None):
        if not self.finds_times:
            return None
        self.asked += 1
        return {p: sum(minute * MINUTE <= timestamp_ms for minute in self.minutes[p]) for p in positions}


class Job:
    """A program on one checkpoint, whose clock goes on by a second with each micro-batch."""

    def __init__(self, plan, max_rows=None, available_now=False):
        self.plan, self.max_rows, self.available_now = plan, max_rows, available_now
        self.checkpoint, self.clock_ms, self.found = LocalCheckpoint(), 0, []

    def batches(self):
        """Where the parts stand after each micro-batch, by (source, part)."""
        checkpoint = deepcopy(self.checkpoint)
        self.runner = LocalRunner(self.plan, self.max_rows, self._clock, checkpoint, self.available_now, run="one")
        self.checkpoint = self.runner.checkpoint
        for batch in self.runner.batches():
            self.found.append(by_sink(self.plan, batch))
            self.clock_ms += 1_000
            yield {(s, part): at for s, of in self.checkpoint.offsets.items() for part, at in of.items()}

    def run(self):
        """Run the micro-batches to the end."""
        return list(self.batches())

    def values(self):
        return values(self.found)

    def _clock(self):
        return self.clock_ms


def positions(at):
    return {part: of["position"] for (_, part), of in at.items()}


def held(at):
    return {part for (_, part), of in at.items() if of.get("rest") == "held"}


def read_all(log, strategy=ALIGNED, name="log"):
    return plan_of(local_environment().from_source(log, strategy, name))


def test_without_a_limit_the_first_rows_tell_who_is_ahead():
    job = Job(read_all(Log({"a": [*range(30)], "b": [*range(20, 50)]})))
    first, second, third, *_ = job.run()
    assert positions(first) == {"a": 1, "b": 1}
    assert (positions(second), held(second)) == ({"a": 30, "b": 1}, {"b"})
    assert (positions(third), held(third)) == ({"a": 30, "b": 30}, set())
    assert len(job.values()) == 60


def test_sources_of_one_group_wait_each_by_its_own_drift_and_others_do_not():
    env = local_environment()
    strict, lax = (MINUTES.with_watermark_alignment("g", Duration.of_minutes(drift)) for drift in (5, 60))
    slow = env.from_source(Log({"slow": [*range(20)]}), strict, "one")
    fast = env.from_source(Log({"fast": [*range(30, 60)]}), strict, "two")
    lenient = env.from_source(Log({"lax": [*range(40, 70)]}), lax, "three")
    free = env.from_source(Log({"free": [*range(90, 120)]}), MINUTES, "four")
    other = env.from_source(
        Log({"other": [*range(90, 120)]}), MINUTES.with_watermark_alignment("h", Duration.of_minutes(5)), "five"
    )
    job = Job(plan_of(slow.union(fast, lenient, free, other)), max_rows=5)
    batches = job.run()
    assert [held(at) for at in batches if not at["one", "slow"]["ended"]][1:] == [{"fast"}] * 3
    assert all(positions(at)["lax"] == positions(at)["other"] for at in batches)
    assert len(job.values()) == 20 + 30 + 30 + 30 + 30


def window_states(finds_times, aligned, max_rows=20):
    """How many elements wait in windows after each micro-batch: one split is hours ahead, and one has a gap."""
    log = Log(
        {"early": [*range(120), *range(400, 600)], "late": [*range(300, 600)], "dense": sorted([*range(500)] * 2)},
        finds_times=finds_times,
    )
    windows = (
        local_environment()
        .from_source(log, ALIGNED if aligned else MINUTES, "log")
        .key_by(lambda e: e[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(5 * MINUTE))
        .process(Contents())
    )
    job, waiting, total = Job(plan_of(windows), max_rows), [], sum(map(len, log.minutes.values()))
    for at in job.batches():
        read = sum(positions(at).values())
        waiting.append(read - sum(len(elements) for *_, elements in job.values()))
    assert read == total
    assert waiting[-1] == 0
    return max(waiting), len(waiting)


def test_what_waits_in_windows_stays_within_the_drift():
    assert window_states(finds_times=False, aligned=False)[0] > 200
    assert window_states(finds_times=False, aligned=True)[0] < 80
    most, batches = window_states(finds_times=True, aligned=True)
    assert most < 30
    assert batches < 2 * 1_620 / 20


def test_stages_are_found_in_few_questions():
    log = Log({"a": [*range(10_000)], "b": [*range(20, 10_000, 7)]}, finds_times=True)
    plan = read_all(log)
    one = runner(plan, max_rows=100)
    asked = one._sources[0].source
    batches = sum(1 for _ in one.batches())
    assert asked.asked / batches < 10


def test_a_split_that_is_held_does_not_become_idle():
    log = Log({"slow": [*range(30)], "fast": [*range(100, 110)]})
    windows = (
        local_environment()
        .from_source(log, ALIGNED.with_idleness(Duration.of_seconds(3)), "log")
        .key_by(lambda e: e[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(5 * MINUTE))
        .process(Contents())
    )
    job = Job(plan_of(windows), max_rows=2)
    for at in job.batches():
        assert positions(at)["slow"] == 30 or positions(at)["fast"] <= 1, "it is held for longer than the timeout"
        idle = {json.dumps(facts["idle"]) for facts in job.checkpoint.facts.values()}
        assert idle == {"[]"}


def test_a_silent_split_holds_the_others_until_it_is_idle():
    log = Log({"silent": [0], "busy": [*range(0, 100, 5)]}, bounded=False)
    strategy = ALIGNED.with_idleness(Duration.of_seconds(3))
    windows = local_environment().from_source(log, strategy, "log").window_all(TumblingEventTimeWindows.of(MINUTE))
    job = Job(plan_of(windows.reduce(lambda a, b: a)), max_rows=2)
    before = job.run()
    assert held(before[-1]) == {"busy"}
    while job.clock_ms < 20_000 and positions(before[-1])["busy"] < 20:
        job.clock_ms += 1_000
        job.runner.tick()
        before += job.run()
    assert positions(before[-1])["busy"] == 20


def test_a_split_that_is_held_when_all_are_idle_waits_for_nobody():
    log = Log({"slow": [0], "fast": [0, 100, 101]}, bounded=False, finds_times=True)
    job = Job(read_all(log, ALIGNED.with_idleness(Duration.of_seconds(3))))
    batches = job.batches()
    for _ in range(2):
        next(batches)
    job.clock_ms += 10_000
    assert held(next(batches)) == {"fast"}
    assert job.checkpoint.facts["log"]["idle"] == ["fast", "slow"]
    of_source = job.runner.metrics()["log"]
    assert (of_source["numSplitsHeld"], of_source["heldBy"]) == ({0: 1}, {0: ""})
    assert positions(next(batches)) == {"slow": 1, "fast": 3}


def test_a_source_that_says_that_a_split_is_idle_lets_the_others_go_on():
    log = Log({"quiet": [0, IDLE], "busy": [*range(0, 100, 5)]}, bounded=False)
    assert positions(Job(read_all(log), max_rows=4).run()[-1]) == {"quiet": 2, "busy": 20}


def test_a_split_that_is_found_later_holds_the_others():
    log = Log({"a": [*range(50)]}, bounded=False)
    job = Job(read_all(log), max_rows=5)
    job.run()
    log.minutes["a"] += range(50, 90)
    log.minutes["new"] = [*range(10, 40)]
    job.plan = read_all(log)
    batches = job.run()
    assert [held(at) for at in batches[1:-1]] == [{"a"}] * (len(batches) - 2)
    assert positions(batches[-1])["new"] == 30
    assert positions(batches[-1])["a"] < 60, "it waits, for nobody knows whether more comes"


def test_where_the_source_gives_its_own_watermarks_these_count():
    marks = [item for minute in range(30) for item in (minute, Watermark(minute * MINUTE))]
    ahead = [item for minute in range(100, 120) for item in (minute, Watermark(minute * MINUTE))]
    log = Log({"slow": marks, "fast": ahead})
    strategy = WatermarkStrategy.no_watermarks().with_watermark_alignment("all", Duration.of_minutes(10))
    batches = Job(read_all(log, strategy), max_rows=10).run()
    waiting = [at for at in batches if not at["log", "slow"]["ended"]]
    assert all("fast" in held(at) for at in waiting[3:])
    assert positions(batches[-1]) == {"slow": 60, "fast": 40}


class Latest(WatermarkGenerator):
    """The latest element is the watermark."""

    is_periodic = True
    latest = -1

    def on_event(self, event, event_timestamp, output):
        self.latest = max(self.latest, event_timestamp)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.latest))


def test_generators_of_the_users_count_too_of_several_sources_after_a_union():
    env, strategy = local_environment(), WatermarkStrategy.for_generator(Latest)
    one = env.from_source(Log({"slow": [*range(30)]}), WatermarkStrategy.no_watermarks(), "one")
    two = env.from_source(Log({"fast": [*range(100, 130)]}), WatermarkStrategy.no_watermarks(), "two")
    aligned = strategy.with_watermark_alignment("all", Duration.of_minutes(10))
    job = Job(plan_of(one.union(two).assign_timestamps_and_watermarks(aligned)), max_rows=5)
    batches = job.run()
    waiting = [at for at in batches if not at["one", "slow"]["ended"]]
    assert len(waiting) > 3
    assert all(held(at) == {"fast"} for at in waiting[1:])
    assert len(job.values()) == 60


def test_watermarks_by_the_clock_hold_nobody():
    strategy = WatermarkStrategy.for_generator(lambda context: TimeLagWatermarks(0, context))
    log = Log({"a": [*range(30)], "b": [*range(100, 130)]})
    aligned = strategy.with_watermark_alignment("all", Duration.of_seconds(1))
    assert not any(map(held, Job(read_all(log, aligned), max_rows=10).run()))


class Counting(SourceFunction):
    """Emits some minutes."""

    def __init__(self, minutes):
        self.minutes = minutes

    def run(self, ctx):
        for minute in self.minutes:
            ctx.collect_with_timestamp(minute, minute * MINUTE)

    def cancel(self):
        pass


def test_functions_as_sources_wait_too(tmp_path):
    env = local_environment()
    slow = env.add_source(Counting(range(40)), "slow").assign_timestamps_and_watermarks(ALIGNED)
    fast = env.add_source(Counting(range(100, 140)), "fast").assign_timestamps_and_watermarks(ALIGNED)
    job = Job(plan_of(slow.union(fast)).with_storage(str(tmp_path)), max_rows=3)
    batches = job.run()
    at = [(of["slow", "function"]["position"], of["fast", "function"]["position"]) for of in batches]
    assert at[-1] == (40, 40)
    assert all(fast <= 3 for slow, fast in at if 1 <= slow < 40)
    assert sorted(job.values()) == [*range(40), *range(100, 140)]


def test_files_wait_for_another_source_file_by_file(tmp_path):
    for hour in range(4):
        lines = "".join(f"{60 * hour + minute}\n" for minute in range(0, 60, 10))
        (tmp_path / f"{hour}.csv").write_text("minute\n" + lines)
    env = local_environment()
    by_minute = ALIGNED.with_timestamp_assigner(lambda row, _: row.minute * MINUTE)
    files = env.from_source(FileSource.csv(tmp_path).build(), by_minute, "files").map(lambda row: row.minute)
    slow = env.from_source(Log({"slow": [*range(0, 400, 2)]}), ALIGNED, "log").map(lambda e: e[1])
    job = Job(plan_of(files.union(slow)), max_rows=10)
    for at in job.batches():
        read = sum(of["ended"] for (source, _), of in at.items() if source == "files")
        minute = 2 * (at["log", "slow"]["position"])
        assert at["log", "slow"]["ended"] or read <= 1 + (minute + 10) // 60 + 1
    assert len(job.values()) == 24 + 200


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("continuously", [False, True])
def test_parquet_files_are_read_up_to_one_time(tmp_path, named, continuously):
    for folder, begin in {"early": 0, "late": 300}.items():
        (tmp_path / folder).mkdir()
        for part in range(4):
            first = begin + 60 * part
            minutes = pa.array([minute * MINUTE for minute in range(first, first + 60)], pa.timestamp("ms"))
            pq.write_table(pa.table({"at": minutes}), tmp_path / folder / f"{part}.parquet", row_group_size=20)
    strategy = ALIGNED.with_timestamp_assigner("at")
    builder = FileSource.parquet(tmp_path)
    if named:
        builder.set_split_by(lambda path: path.split("/")[-2])
    if continuously:
        builder.monitor_continuously(Duration.of_hours(1))
    env = local_environment()
    files = env.from_source(builder.build(), strategy, "files").map(lambda row: 1)
    slow = env.from_source(Log({"slow": [*range(0, 600, 4)]}, finds_times=True), ALIGNED, "log").map(lambda row: 1)
    job = Job(plan_of(files.union(slow)), max_rows=40)
    batches = job.run()
    for at in batches:
        rows = {part: of["position"] // 2 for (source, part), of in at.items() if source == "files"}
        early, late = (sum(n for part, n in rows.items() if f"/{name}/" in part) for name in ("early", "late"))
        if not at["log", "slow"]["ended"]:
            minute = 4 * at["log", "slow"]["position"]
            assert early <= minute + 12
            assert late <= 1 or 300 + late <= minute + 12, "one row tells where it stands"
    # Where it is not known whether there will be more files, others wait for them: for early ones, or for any.
    of_log = {(True, True): 64, (False, True): 139}.get((named, continuously), 150)
    assert (early, late) == (240, 1 if of_log == 64 else 240)
    assert len(job.values()) == early + late + of_log


def test_files_that_wait_take_no_room_from_those_that_are_read(tmp_path):
    for number in range(30):
        times = [(10 * number + minute) * MINUTE for minute in range(10)]
        pq.write_table(pa.table({"at": times}), tmp_path / f"{number:02}.parquet")
    source = FileSource.parquet(tmp_path).build()
    job = Job(read_all(source, ALIGNED.with_timestamp_assigner("at")), max_rows=20)
    assert len(job.run()) < 20
    assert len(job.values()) == 300


def test_who_waits_for_files_goes_on_when_there_have_been_none_for_too_long(tmp_path):
    pq.write_table(pa.table({"at": [0, MINUTE]}), tmp_path / "a.parquet")
    strategy = ALIGNED.with_timestamp_assigner("at").with_idleness(Duration.of_seconds(3))
    source = FileSource.parquet(tmp_path).monitor_continuously(Duration.of_hours(1)).build()
    env = local_environment()
    files = env.from_source(source, strategy, "files").map(lambda row: 1)
    log = env.from_source(Log({"log": [*range(60)]}), ALIGNED, "log").map(lambda row: 1)
    windows = files.union(log).window_all(TumblingEventTimeWindows.of(MINUTE)).reduce(lambda a, b: a)
    job = Job(plan_of(windows), max_rows=5)
    assert positions(job.run()[-1])["log"] < 20
    job.clock_ms += 3_001
    assert job.runner.tick() is not None
    assert positions(job.run()[-1])["log"] == 60


def test_a_run_that_takes_what_is_there_ends_though_its_slowest_split_has_nothing_more():
    env = local_environment()
    slow = env.from_source(Log({"slow": [0, 1, 2]}, bounded=False), ALIGNED, "one")
    fast = env.from_source(Log({"fast": [*range(100, 120)]}, bounded=False), ALIGNED, "two")
    job = Job(plan_of(slow.union(fast)), max_rows=5, available_now=True)
    assert positions(job.run()[-1]) == {"slow": 3, "fast": 20}
    again = Job(plan_of(slow.union(fast)), max_rows=5)
    assert held(again.run()[-1]) == {"fast"}, "who runs on waits"


def test_alignment_may_come_and_go_with_the_program():
    def plan(strategy):
        log = Log({"slow": [*range(30)], "fast": [*range(100, 130)]})
        stream = local_environment().from_source(log, strategy.with_idleness(Duration.of_hours(1)), "log")
        windows = stream.key_by(lambda e: e[0], Types.STRING()).window(TumblingEventTimeWindows.of(5 * MINUTE))
        return plan_of(windows.process(Contents()))

    job = Job(plan(MINUTES), max_rows=4)
    next(job.batches())
    job.plan = plan(ALIGNED)
    run = job.batches()
    assert [held(next(run)) for _ in range(3)][-1] == {"fast"}
    run.close()
    job.plan = plan(MINUTES)
    assert not held(job.run()[-1])
    assert sum(len(elements) for *_, elements in job.values()) == 60
    assert not any(b"eventide watermark alignment" in v for of in job.checkpoint.state.values() for v in of.values())


def test_metrics_say_who_is_held_by_whom_and_how_far_ahead_it_is():
    job = Job(read_all(Log({"slow": [*range(30)], "fast": [*range(100, 130)]})), max_rows=4)
    run = job.batches()
    for _ in range(3):
        next(run)
    of_source = job.runner.metrics()["log"]
    assert of_source["numSplitsHeld"] == {0: 1}
    assert of_source["heldBy"] == {0: "log/slow"}
    assert of_source["watermarkAlignmentDrift"] == {0: (100 - job_minute(job)) * MINUTE}


def job_minute(job):
    """The latest minute of the slow split."""
    return job.checkpoint.offsets["log"]["slow"]["position"] - 1


def test_the_plan_says_who_waits_for_whom():
    text = explain(read_all(Log({"a": [1]})))
    assert "'watermark alignment': tells sources where the others of their group stand, 1 subtask(s)" in text
    assert "in 'all': log" in text
    assert "aligned in 'all' within 600000 ms" in text


def test_what_cannot_wait_is_refused_or_said():
    env = local_environment()
    stream = env.from_source(Log({"a": [1]}), ALIGNED, "log")
    with pytest.raises(ProgramError, match="'log' has two strategies with watermark alignment"):
        plan_of(stream.assign_timestamps_and_watermarks(ALIGNED))
    counts = env.from_source(Log({"a": [1]}), MINUTES, "log").window_all(TumblingEventTimeWindows.of(MINUTE))
    behind = counts.reduce(lambda a, b: a).assign_timestamps_and_watermarks(ALIGNED)
    with pytest.warns(UserWarning, match="stands downstream of an operator, and only sources can wait"):
        plan_of(behind)


@pytest.mark.parametrize(
    ("group", "drift", "interval", "message"),
    [
        ("", 1, None, "needs the name of a group"),
        (None, 1, None, "needs the name of a group"),
        ("g", -1, None, "max allowed watermark drift: expected at least 0 ms, got -1"),
        ("g", "1 s", None, "max allowed watermark drift: expected a Duration"),
        ("g", 1, 0, "update interval: expected more than 0 ms"),
    ],
)
def test_a_strategy_refuses_what_is_no_alignment(group, drift, interval, message):
    with pytest.raises(ProgramError, match=message):
        MINUTES.with_watermark_alignment(group, drift, interval)
