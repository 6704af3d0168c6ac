"""A function as a source: its log, its positions, replay, restarts, back-pressure, errors, and its end."""

import threading
import time
from copy import deepcopy

import pytest

from eventide.common import Watermark
from eventide.connectors._function_log import LogWriter, WriteAheadLog
from eventide.connectors.function_source import Cancelled, Emission, FunctionRun, FunctionSource
from eventide.datastream import SourceFunction
from eventide.datastream.connectors import IDLE
from eventide.datastream.window import TimestampedValue
from eventide.errors import ProgramError, StateError
from eventide.runtime.sources.offsets import everything, next_offsets, ranges_between, source_ends
from eventide.storage import Folder

PATIENCE_S = 10


class Gates:
    """Events that the functions and the tests wait for; a copy of a function finds the same ones."""

    opened = threading.Event()
    reached = threading.Event()
    cancelled = threading.Event()
    steps = threading.Semaphore(0)

    @classmethod
    def close(cls):
        for valve in (cls.opened, cls.reached, cls.cancelled):
            valve.clear()


@pytest.fixture(autouse=True)
def _valves():
    Gates.close()
    yield
    Gates.opened.set()


class Says(SourceFunction):
    """Emits what it was given; at `...` it waits for a valve, and an exception is raised."""

    def __init__(self, *items):
        self.items = items

    def run(self, ctx):
        for item in self.items:
            if item is ...:
                Gates.reached.set()
                Gates.opened.wait(PATIENCE_S)
            elif isinstance(item, BaseException):
                raise item
            else:
                ctx.collect(item)

    def cancel(self):
        Gates.cancelled.set()
        Gates.opened.set()


class Steps(SourceFunction):
    """Emits a number whenever the test lets it."""

    def run(self, ctx):
        for n in range(4):
            Gates.steps.acquire()
            ctx.collect(n)

    def cancel(self):
        Gates.steps.release()


class Counts(SourceFunction):
    """Counts to a number, and knows how far it is; it stops for the test at some numbers."""

    def __init__(self, end, stops=()):
        self.next, self.end, self.stops = 0, end, stops

    def run(self, ctx):
        while self.next < self.end:
            if self.next in self.stops:
                Gates.reached.set()
                Gates.opened.wait(PATIENCE_S)
            with ctx.get_checkpoint_lock():
                ctx.collect(self.next)
                self.next += 1

    def cancel(self):
        Gates.opened.set()

    def snapshot_state(self):
        return self.next

    def restore_state(self, state):
        self.next = state


def source_of(function, place):
    return FunctionSource(function).for_job("numbers", str(place))


def flat(batches):
    return [item for batch in batches for item in batch]


def planned(source, start, max_rows=None):
    """The offsets of the next micro-batch that has something in it."""
    deadline = time.monotonic() + PATIENCE_S
    while (end := next_offsets(source, start, max_rows)) == start and time.monotonic() < deadline:
        source.wait(0.01)
    return end


def read(source, start, end):
    return [item for part in ranges_between(source, start, end) for way in part.parts for item in _items(source, way)]


def _items(source, way):
    return source.read(way.part, way.start, way.end)


def all_of(source, start=None, max_rows=None):
    """Everything up to the end of the source, micro-batch by micro-batch."""
    start, batches = start or {}, []
    while not (start and start["function"]["ended"]):
        end = planned(source, start, max_rows)
        batches.append(read(deepcopy(source), start, end))
        start = end
    return batches


def at(position, ended=False):
    return {"function": {"start": 0, "position": position, "ended": ended, "audience": ""}}


def test_the_log_has_what_was_written_by_position_across_segments(tmp_path):
    log = LogWriter(str(tmp_path / "log"))
    log.append([b"0", b"1", b"2"], None)
    log.append([b"3"], b"behind 3")
    log.append([b"4", b"5"], b"behind 5")
    again = LogWriter(str(tmp_path / "log"))
    assert [again.end, again.state(), again.is_complete] == [6, b"behind 5", False]
    for start in range(7):
        for end in range(start, 7):
            assert list(again.read(start, end)) == [str(n).encode() for n in range(start, end)]
    again.complete()
    assert WriteAheadLog(str(tmp_path / "log")).is_complete


def test_the_log_says_what_it_does_not_have(tmp_path):
    log = LogWriter(str(tmp_path))
    log.append([b"0", b"1"], None)
    with pytest.raises(StateError, match=r"from position 2 to 3, which the job has planned to read, are not in"):
        list(log.read(1, 3))


def test_the_log_forgets_segments_but_never_the_last(tmp_path):
    log = LogWriter(str(tmp_path))
    for _ in range(3):
        log.append([b"x", b"y"], None)
    log.forget(3)
    assert WriteAheadLog(str(tmp_path)).end == 6
    assert list(log.read(2, 6)) == [b"x", b"y"] * 2
    log.forget(6)
    assert [name.partition("-")[0] for name in Folder(str(tmp_path)).names()] == [f"{4:020}", "begun", "writer"]
    assert WriteAheadLog(str(tmp_path)).end == 6


TAKEN_OVER = "another run of this job has taken over its checkpoint"


def test_a_later_writer_goes_on_where_the_earlier_one_was_and_the_earlier_one_stops_before_anyone_has_heard(tmp_path):
    first = LogWriter(str(tmp_path))
    first.append([b"0", b"1"], b"behind 1")
    second = LogWriter(str(tmp_path))
    assert [second.end, second.state()] == [2, b"behind 1"]
    with pytest.raises(StateError, match=TAKEN_OVER):
        first.append([b"lost", b"lost", b"lost"], b"lost")
    assert first.end == 2
    second.append([b"2"], b"behind 2")
    second.append([b"3"], b"behind 3")
    log = WriteAheadLog(str(tmp_path))
    assert [log.end, log.state(), list(log.read(0, 4))] == [4, b"behind 3", [b"0", b"1", b"2", b"3"]]


def test_what_was_written_by_one_who_was_taken_over_does_not_count(tmp_path):
    first = LogWriter(str(tmp_path))
    first.append([b"0"], b"behind 0")
    second = LogWriter(str(tmp_path))
    with pytest.raises(StateError, match=TAKEN_OVER):
        first.append([b"lost"], b"lost")
    third = LogWriter(str(tmp_path))
    assert [third.end, third.state()] == [1, b"behind 0"]
    with pytest.raises(StateError, match=TAKEN_OVER):
        second.append([b"lost", b"lost"], None)
    assert WriteAheadLog(str(tmp_path)).end == 1
    third.append([b"1"], None)
    assert list(WriteAheadLog(str(tmp_path)).read(0, 2)) == [b"0", b"1"]
    LogWriter(str(tmp_path))
    assert len(Folder(str(tmp_path)).names()) == 4, "two segments, a writer and what it began with"


def test_the_end_that_an_earlier_writer_saw_is_none_where_a_later_one_has_gone_on(tmp_path):
    first, second = LogWriter(str(tmp_path)), LogWriter(str(tmp_path))
    second.append([b"0"], None)
    with pytest.raises(StateError, match=TAKEN_OVER):
        first.complete()
    assert not first.is_complete
    assert not WriteAheadLog(str(tmp_path)).is_complete
    second.complete()
    assert WriteAheadLog(str(tmp_path)).is_complete
    assert LogWriter(str(tmp_path)).is_complete
    assert LogWriter(str(tmp_path)).is_complete


def test_an_earlier_writer_deletes_nothing(tmp_path):
    first = LogWriter(str(tmp_path))
    for _ in range(3):
        first.append([b"x"], None)
    LogWriter(str(tmp_path))
    with pytest.raises(StateError, match=TAKEN_OVER):
        first.forget(2)
    assert list(WriteAheadLog(str(tmp_path)).read(0, 3)) == [b"x"] * 3


def test_nothing_is_left_of_what_an_earlier_writer_had_half_written(tmp_path, monkeypatch):
    """Whether the first run has died, or lives and is taken over in mid writing."""
    first, sync = LogWriter(str(tmp_path)), Folder._sync
    first.append([b"0"], None)
    (tmp_path / ".nfs0001").touch()

    def dies(folder, path):
        raise KeyboardInterrupt

    monkeypatch.setattr(Folder, "_sync", dies)
    with pytest.raises(KeyboardInterrupt):
        first.append([b"lost"], None)

    def is_taken_over(folder, path):
        monkeypatch.setattr(Folder, "_sync", sync)
        LogWriter(str(tmp_path))

    assert len(Folder(str(tmp_path)).unfinished()) == 2
    monkeypatch.setattr(Folder, "_sync", sync)
    second = LogWriter(str(tmp_path))
    assert (second.end, Folder(str(tmp_path)).unfinished()) == (1, ["nfs0001"])
    monkeypatch.setattr(Folder, "_sync", is_taken_over)
    with pytest.raises(StateError, match=TAKEN_OVER):
        second.append([b"lost"], None)
    assert Folder(str(tmp_path)).unfinished() == ["nfs0001"]
    assert list(WriteAheadLog(f"file://{tmp_path}").read(0, 1)) == [b"0"]


class Interleaved(Folder):
    """A folder in which another writer does something after the first look of a writer."""

    behind_the_first_look = None

    def names(self):
        names, then = super().names(), Interleaved.behind_the_first_look
        Interleaved.behind_the_first_look = None
        if then is not None:
            then()
        return names


@pytest.mark.parametrize("other", ["0", "z"])
def test_of_two_writers_that_begin_at_the_same_moment_exactly_one_goes_on(tmp_path, monkeypatch, other):
    """Both saw no other; their names decide, and the lesser finds out at its first look."""
    monkeypatch.setattr("eventide.connectors._function_log.Folder", Interleaved)
    name = f"writer-{1:08}-{other}"
    Interleaved.behind_the_first_look = lambda: Folder(str(tmp_path)).write(name, b"")
    if other == "z":
        with pytest.raises(StateError, match=TAKEN_OVER):
            LogWriter(str(tmp_path))
    else:
        LogWriter(str(tmp_path)).append([b"0"], None)
        assert WriteAheadLog(str(tmp_path)).end == 1


def test_a_second_run_takes_over_and_the_first_fails_at_its_next_planning(tmp_path):
    first = source_of(Counts(8, stops=[3]), tmp_path)
    first.latest_position("function")
    Gates.reached.wait(PATIENCE_S)
    start = planned(first, {})
    Gates.opened.set()
    second = source_of(Counts(8), tmp_path)
    rest = flat(all_of(second, start))
    assert read(second, {}, start) + rest == list(range(8))
    with pytest.raises(StateError, match=TAKEN_OVER):
        planned(first, start)


def test_a_location_that_arrow_does_not_know_is_refused():
    with pytest.raises(ProgramError, match=r"Arrow cannot open 'dbfs://checkpoint"):
        Folder("dbfs://checkpoint/sources")


def test_elements_watermarks_and_idleness_come_in_their_order(tmp_path):
    class Talks(SourceFunction):
        def run(self, ctx):
            ctx.collect("plain")
            ctx.collect_with_timestamp("timed", 5)
            ctx.emit_watermark(Watermark(5))
            ctx.mark_as_temporarily_idle()
            ctx.collect(Watermark(7))
            ctx.collect(IDLE)

        def cancel(self):
            pass

    assert flat(all_of(source_of(Talks(), tmp_path))) == [
        "plain",
        TimestampedValue("timed", 5),
        Watermark(5),
        IDLE,
        TimestampedValue(Watermark(7)),
        TimestampedValue(IDLE),
    ]


def test_an_element_is_as_it_was_when_it_was_emitted(tmp_path):
    class Reuses(SourceFunction):
        def run(self, ctx):
            row = {}
            for n in range(3):
                row["n"] = n
                ctx.collect(row)

        def cancel(self):
            pass

    assert flat(all_of(source_of(Reuses(), tmp_path))) == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_a_limit_of_rows_cuts_what_came_into_micro_batches(tmp_path):
    source = source_of(Says(*range(5), ...), tmp_path)
    next_offsets(source, {}, None)
    Gates.reached.wait(PATIENCE_S)
    Gates.opened.set()
    assert all_of(source, max_rows=2)[:3] == [[0, 1], [2, 3], [4]]


def test_it_ends_when_the_function_returns_though_it_is_not_bounded(tmp_path):
    source = source_of(Says(1, ..., 2), tmp_path)
    assert not source.is_bounded()
    start = {}
    first = planned(source, start)
    assert first == at(1)
    assert next_offsets(source, first, None) == first
    assert not source_ends(source, start, first)
    Gates.opened.set()
    end = first
    while not end["function"]["ended"]:
        last, end = end, planned(source, end)
    assert end == at(2, ended=True)
    assert source_ends(source, last, end)
    assert not source_ends(source, end, end)
    assert next_offsets(source, end, None) == end
    assert not source.wait(PATIENCE_S)


def test_a_function_that_emits_nothing_ends_too(tmp_path):
    assert all_of(source_of(Says(), tmp_path)) == [[]]


def test_what_the_function_raises_comes_out_of_the_next_planning(tmp_path):
    source = source_of(Says(1, ..., OSError("the line is dead")), tmp_path)
    first = planned(source, {})
    Gates.opened.set()
    with pytest.raises(OSError, match=r"the line is dead"):
        planned(source, first)


def test_a_function_that_exits_fails_the_job_and_not_the_process(tmp_path):
    source = source_of(Says(SystemExit(3)), tmp_path)
    with pytest.raises(Exception, match=r"run\(\) raised SystemExit\(3\)"):
        planned(source, {})


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("collect_with_timestamp", ("a", 1.5), "an int of milliseconds since the epoch, not 1.5"),
        ("collect_with_timestamp", ("a", True), "an int of milliseconds since the epoch, not True"),
        ("collect_with_timestamp", ("a", 2**63), "an int of milliseconds since the epoch, not 9223372036854775808"),
        ("collect_with_timestamp", ("a", -(2**63)), "an int of milliseconds since the epoch, not -9223372036854775808"),
        ("emit_watermark", (7,), "a Watermark, such as Watermark"),
        ("collect", (threading.Lock(),), "cannot pickle"),
    ],
)
def test_what_cannot_be_emitted_fails_where_it_is(tmp_path, method, arguments, message):
    Unfit.call = method, arguments
    with pytest.raises(Exception, match=message):
        all_of(source_of(Unfit(), tmp_path))


class Unfit(SourceFunction):
    """Calls a method of its context."""

    call = ("", ())

    def run(self, ctx):
        method, arguments = Unfit.call
        getattr(ctx, method)(*arguments)

    def cancel(self):
        pass


def test_what_is_emitted_after_the_end_is_refused():
    emission = Emission(10, 10)
    emission.finish()
    with pytest.raises(ProgramError, match=r"after its run\(\) had returned"):
        emission.add(b"late")


def test_a_function_without_a_job_does_not_run():
    with pytest.raises(ProgramError, match="runs in a job alone"):
        FunctionSource(Says(1)).latest_position("function")
    with pytest.raises(ProgramError, match=r"'numbers' are kept below the job's checkpoint.*set_checkpoint_stor"):
        FunctionSource(Says(1)).for_job("numbers", None)


def test_half_a_state_is_refused():
    class Forgets(Says):
        def snapshot_state(self):
            return None

    with pytest.raises(ProgramError, match=r"Forgets has one of snapshot_state\(\) and restore_state"):
        FunctionSource(Forgets())


def test_a_planned_micro_batch_has_the_same_elements_in_a_new_process(tmp_path):
    source = source_of(Says("a", "b", ..., "c"), tmp_path)
    start = {}
    Gates.opened.set()
    end = planned(source, start)
    before = read(source, start, end)
    source.stop()
    assert read(source_of(Says("other"), tmp_path), start, end) == before


def test_what_is_emitted_while_the_state_is_asked_for_comes_next(tmp_path):
    class Marks(Counts):
        def run(self, ctx):
            self.marks = [ctx.collect]
            super().run(ctx)

        def snapshot_state(self):
            while self.marks:
                self.marks.pop()("mark")
            return self.next

    source = source_of(Marks(2, stops=(1,)), tmp_path)
    first = planned(source, {})
    Gates.opened.set()
    assert flat([read(source, {}, first), *all_of(source, first)]) == [0, "mark", 1]


def test_without_state_the_function_runs_again_from_its_own_start(tmp_path):
    source = source_of(Says("a", "b", ..., "c"), tmp_path)
    source.latest_position("function")
    Gates.reached.wait(PATIENCE_S)
    first = planned(source, {})
    source.stop()
    Gates.close()
    Gates.opened.set()
    rest = all_of(source_of(Says("a", "b", "c"), tmp_path), first)
    assert flat(rest) == ["a", "b", "c"]


@pytest.mark.parametrize("planned_up_to", [0, 1, 3, 5])
def test_with_state_nothing_is_lost_or_doubled_wherever_the_job_was_interrupted(tmp_path, planned_up_to):
    source = source_of(Counts(8, stops=[5]), tmp_path)
    source.latest_position("function")
    Gates.reached.wait(PATIENCE_S)
    assert source.latest_position("function") == 5
    source.stop()
    Gates.close()
    Gates.opened.set()
    start = at(planned_up_to)
    assert flat(all_of(source_of(Counts(8), tmp_path), start)) == list(range(planned_up_to, 8))


def test_what_was_not_written_is_emitted_again(tmp_path):
    source = source_of(Counts(4, stops=[2]), tmp_path)
    source.latest_position("function")
    Gates.reached.wait(PATIENCE_S)
    source.stop()
    Gates.close()
    Gates.opened.set()
    assert flat(all_of(source_of(Counts(4), tmp_path))) == [0, 1, 2, 3]


def test_a_function_that_has_ended_does_not_run_again(tmp_path):
    source = source_of(Says(1, 2), tmp_path)
    assert flat(all_of(source)) == [1, 2]
    again = source_of(Says(OSError("runs again")), tmp_path)
    assert all_of(again, at(1)) == [[2]]


def test_a_log_that_is_gone_is_noticed(tmp_path):
    Gates.opened.set()
    with pytest.raises(StateError, match=r"has read 'numbers' up to position 7, and its log at .* ends at"):
        next_offsets(source_of(Says(1), tmp_path), at(7), None)


def test_what_was_committed_twice_is_deleted_and_the_last_micro_batch_stays(tmp_path):
    source = source_of(Steps(), tmp_path)
    start, batches = {}, []
    for _ in range(3):
        Gates.steps.release()
        end = planned(source, start)
        batches.append((start, end))
        source.commit({"function": end["function"]["position"]})
        start = end
    assert read(source, *batches[2]) == [2]
    with pytest.raises(StateError, match="from position 1 to 2"):
        read(source, *batches[1])
    source.stop()


def test_who_emits_waits_while_too_much_waits_to_be_written(tmp_path):
    log = LogWriter(str(tmp_path))
    run = FunctionRun(Counts(25), log, "numbers", max_items=10)
    ends = []
    while not run.has_ended:
        run._emission.wait(PATIENCE_S, until_full=True)
        ends.append(run.write_ahead())
    assert ends[:3] == [10, 20, 25]


def test_no_more_is_written_ahead_than_a_limit_of_rows_needs(tmp_path):
    run = FunctionRun(Counts(100), LogWriter(str(tmp_path)), "numbers", max_items=10)
    run._emission.wait(PATIENCE_S, until_full=True)
    assert run.write_ahead(up_to=3) == 10
    run._emission.wait(PATIENCE_S, until_full=True)
    assert [run.write_ahead(up_to=6), run.write_ahead(up_to=9)] == [10, 10]
    assert run.write_ahead(up_to=12) == 20
    run.stop()


def test_under_the_lock_nothing_waits_and_nothing_is_taken():
    emission, taken = Emission(2, 100), []
    with emission:
        for item in (b"a", b"b", b"c"):
            emission.add(item)
        taker = threading.Thread(target=emission.take, args=(taken.append,), daemon=True)
        taker.start()
        taker.join(0.05)
        assert not taken
    taker.join(PATIENCE_S)
    assert taken == [[b"a", b"b", b"c"]]


def test_too_many_bytes_wait_as_too_many_items_do():
    emission = Emission(100, 3)
    emission.add(b"four")
    assert emission.is_full()


def test_what_could_not_be_kept_stays():
    def fails(items):
        raise OSError("no space")

    emission, taken = Emission(2, 100), []
    emission.add(b"a")
    with pytest.raises(OSError, match="no space"):
        emission.take(fails)
    emission.take(taken.append)
    assert taken == [[b"a"]]


def test_a_job_that_stops_cancels_its_function(tmp_path):
    source = source_of(Says(1, ..., 2), tmp_path)
    planned(source, {})
    assert not Gates.cancelled.is_set()
    source.stop()
    assert Gates.cancelled.is_set()
    assert not source.wait(PATIENCE_S)


def test_a_function_that_waits_within_its_lock_is_cancelled_too(tmp_path):
    class Waits(Says):
        def run(self, ctx):
            with ctx.get_checkpoint_lock():
                super().run(ctx)

    run = FunctionRun(Waits(...), LogWriter(str(tmp_path)), "numbers")
    Gates.reached.wait(PATIENCE_S)
    run.stop()
    assert Gates.cancelled.is_set()
    assert not run._thread.is_alive()


def test_who_waits_for_room_is_thrown_out_when_the_job_stops(tmp_path):
    run = FunctionRun(Counts(25), LogWriter(str(tmp_path)), "numbers", max_items=10)
    run._emission.wait(PATIENCE_S, until_full=True)
    run.stop()
    assert not run._thread.is_alive()
    with pytest.raises(Cancelled):
        run._emission.add(b"more")


def test_what_is_there_is_what_comes_within_a_second_or_until_the_end(tmp_path):
    source = source_of(Counts(1_000), tmp_path)
    assert source.latest_positions() == {"function": 1_000}
    assert source.has_ended("function", 1_000)
    endless = source_of(Says(1, 2, ...), tmp_path / "endless")
    assert endless.latest_positions() == {"function": 2}
    assert not endless.has_ended("function", 2)


def test_a_source_that_never_rests_has_a_now_all_the_same(tmp_path):
    class Hurries(Counts):
        pass

    source = source_of(Hurries(10**9), tmp_path)
    assert not everything(source)["function"]["ended"]
    source.stop()
