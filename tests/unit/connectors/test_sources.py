"""A HybridSource: one source after the other, one watermark, nothing twice, restartable in between."""

from collections import Counter
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.api.source import Source
from eventide.common import Duration, Types, WatermarkStrategy
from eventide.datastream import RuntimeExecutionMode
from eventide.datastream.connectors import FileSource, NumberSequenceSource
from eventide.datastream.connectors.hybrid_source import HybridSource
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import ProgramError
from eventide.local.host import begun_from, take_savepoint
from eventide.local.runner import LocalRunner
from eventide.runtime.sources.offsets import deferred, next_offsets, pending_records, ranges_between
from eventide.testing import ScriptedSource, local_environment
from support.twin import Contents, by_sink, plan_of, run

BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
KIND = Types.TUPLE([Types.STRING(), Types.LONG()])


def script(splits, batches, *, bounded=True):
    return ScriptedSource(splits, batches, KIND, bounded=bounded)


HISTORY = [[("a", ("h", 1)), ("b", ("h", 12))], [("a", ("h", 14)), ("b", ("h", 15))]]
LIVE = [[("p", ("l", 16))], [("q", ("l", 17)), ("p", ("l", 33))], [("q", ("l", 41))]]


def hybrid(*, live=LIVE, bounded=True):
    return (
        HybridSource.builder(script(["a", "b"], HISTORY)).add_source(script(["p", "q"], live, bounded=bounded)).build()
    )


def program(source, strategy=BY_TIME):
    stream = local_environment().from_source(source, strategy, "all of it", KIND)
    return plan_of(stream, stream.key_by(lambda e: e[0]).window(TumblingEventTimeWindows.of(10)).process(Contents()))


def elements(batches):
    return Counter(value for batch in batches for value, _ in batch[0])


ALL = Counter(element for batch in [*HISTORY, *LIVE] for _, element in batch)


def test_the_next_source_is_read_when_the_first_is_at_its_end():
    plan = program(hybrid())
    batches = [by_sink(plan, batch) for batch in LocalRunner(plan, clock=lambda: 0).batches()]
    assert elements(batches) == ALL
    values = [value for batch in batches for value, _ in batch[0]]
    assert [name for name, _ in values] == ["h"] * 4 + ["l"] * 4


def test_no_watermark_of_an_end_comes_in_between_and_windows_go_on():
    """The window from 10 has elements of both; it is complete when both live splits have passed its end."""
    plan = program(hybrid())
    runner = LocalRunner(plan, clock=lambda: 0)
    fired = [by_sink(plan, batch)[1] for batch in runner.batches()]
    windows = [window for of_batch in fired for (_, *window, found), _ in of_batch]
    assert [start for start, _ in windows] == sorted(start for start, _ in windows)
    everything = {
        (key, start): sorted(t for _, t in found) for of_batch in fired for (key, start, _, found), _ in of_batch
    }
    assert everything == {
        ("h", 0): [1], ("h", 10): [12, 14, 15], ("l", 10): [16, 17], ("l", 30): [33], ("l", 40): [41],
    }  # fmt: skip


def test_a_split_of_the_next_source_that_says_nothing_holds_the_watermark():
    plan = program(hybrid(live=[[("p", ("l", 99))], []], bounded=False))
    batches = [*LocalRunner(plan, clock=lambda: 0).batches()]
    fired = [value for batch in batches for value, _ in by_sink(plan, batch)[1]]
    assert {start for _, start, *_ in fired} == {0}, "q has not spoken, so that 10 to 20 is not complete"


class Empty(NumberSequenceSource):
    def latest_position(self, split):
        return 0


def test_three_sources_follow_each_other_also_where_one_is_empty():
    numbers = [NumberSequenceSource(1, 3, splits=2), Empty(1, 3), NumberSequenceSource(4, 5)]
    builder = HybridSource.builder(numbers[0])
    for source in numbers[1:]:
        builder.add_source(source)
    stream = local_environment().from_source(builder.build(), WatermarkStrategy.no_watermarks(), "numbers")
    assert [*stream.execute_and_collect()] == [1, 2, 3, 4, 5]


def test_in_batch_mode_all_sources_are_read():
    """All at once, so that what the first source has said is still to be read when the third one is planned."""
    builder = HybridSource.builder(script(["a", "b"], HISTORY)).add_source(script(["p", "q"], LIVE))
    builder.add_source(script(["a"], [[("a", ("last", 50))]]))
    plan = plan_of(
        local_environment().from_source(builder.build(), BY_TIME, "all of it", KIND), mode=RuntimeExecutionMode.BATCH
    )
    assert elements(run(plan)) == ALL + Counter([("last", 50)])


@given(st.integers(1, 6), st.integers(1, 4), st.sampled_from([1, 2, None]))
def test_it_goes_on_from_a_savepoint_anywhere(until, parallelism, max_rows):
    plan = program(hybrid())
    runner, found = LocalRunner(plan, max_rows, clock=lambda: 0), Counter()
    batches = runner.batches()
    for batch in batches:
        found += elements([by_sink(plan, batch)])
        if batch.batch + 1 == until:
            batches.close()
            with TemporaryDirectory() as place:
                savepoint = take_savepoint(plan, runner.checkpoint, f"{place}/saved")
                later = program(hybrid())
                again = LocalRunner(later, max_rows, clock=lambda: 0, checkpoint=begun_from(savepoint, later))
                found += elements(by_sink(later, batch) for batch in again.batches())
            break
    assert found == ALL


def test_a_switch_stays_known_when_the_last_source_forgets_what_it_has_read():
    class Passing(Source):
        """One part at a time, which is gone when it is read."""

        there = "part"

        def splits(self):
            return []

        def parts(self, known):
            return [self.there]

        def latest_position(self, split):
            return 2

        def is_bounded(self):
            return False

        def has_ended(self, split, position):
            return position == 2

        def get_produced_type(self):
            return Types.LONG()

        def read(self, split, start, end):
            yield from range(start, end)

    passing = Passing()
    source = HybridSource.builder(NumberSequenceSource(1, 2)).add_source(passing).build()
    offsets = next_offsets(source, next_offsets(source, {}, None), None)
    assert all(at["ended"] for at in offsets.values())
    assert [*offsets] == ["switched to 1", "1/part"]
    for passing.there in ("second", "third"):
        offsets = next_offsets(source, offsets, None)
        assert [*offsets] == ["switched to 1", f"1/{passing.there}"]


def test_files_come_before_what_is_live(tmp_path):
    (tmp_path / "history.txt").write_text("1\n2\n")
    live = ScriptedSource(["p"], [[("p", "3")], [("p", "4")]], Types.STRING())
    source = HybridSource.builder(FileSource.text(str(tmp_path)).build()).add_source(live).build()
    stream = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    assert [*stream.execute_and_collect()] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("split_by", [None, lambda path: "all", lambda path: path[-5]])
@pytest.mark.parametrize("max_rows", [1, 2, 3, None])
def test_no_file_of_several_is_left_out_where_a_micro_batch_is_limited(tmp_path, split_by, max_rows):
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(f"h{number}0\nh{number}1\n")
    live = ScriptedSource(["p"], [[("p", "live")]], Types.STRING())
    files = FileSource.text(str(tmp_path)).set_split_by(split_by).build()
    stream = local_environment().from_source(
        HybridSource.builder(files).add_source(live).build(), WatermarkStrategy.no_watermarks(), "lines"
    )
    plan = plan_of(stream)
    lines = [value for batch in LocalRunner(plan, max_rows).batches() for value, _ in by_sink(plan, batch)[0]]
    assert sorted(lines) == ["h00", "h01", "h10", "h11", "h20", "h21", "live"]
    assert lines[-1] == "live"


def test_elements_that_wait_are_those_of_the_source_that_is_read():
    first, second = NumberSequenceSource(0, 9, splits=2), NumberSequenceSource(0, 49, splits=1)
    source = HybridSource.builder(first).add_source(second).build()
    end = next_offsets(source, {}, 4)
    assert pending_records(source, end, is_limited=True) == {"0/0": 3, "0/1": 3}
    for _ in range(3):
        end = next_offsets(source, end, 4)
    assert pending_records(source, end, is_limited=True) == {"1/0": 46}


class Lengths(Source):
    """Splits with their timestamps: each element is its split and its time."""

    def __init__(self, times):
        self.times = times

    def splits(self):
        return [*self.times]

    def latest_position(self, split):
        return len(self.times[split])

    def read(self, split, start, end):
        yield from ((split, ms) for ms in self.times[split][start:end])

    def get_produced_type(self):
        return KIND


def test_a_split_that_has_been_read_to_its_end_holds_neither_the_watermark_nor_others():
    times = {"a": [1, 2], "b": [5, 100, 200, 300, 400, 500]}
    aligned = BY_TIME.with_watermark_alignment("group", Duration.of_millis(10))
    watermarks = {}
    for source in (
        Lengths(times),
        HybridSource.builder(Lengths(times)).add_source(script(["p"], [[("p", ("l", 510))]])).build(),
    ):
        plan = program(source, aligned)
        batches = [*LocalRunner(plan, 2, clock=lambda: 0).batches()]
        found = [value for batch in batches for value, _ in by_sink(plan, batch)[0]]
        assert Counter(found) >= Counter((split, ms) for split, all_ms in times.items() for ms in all_ms)
        watermarks[type(source)] = [[*batch.progress.watermarks.values()] for batch in batches]
    plain, behind = watermarks.values()
    until_the_end = plain[:-1]
    assert behind[: len(until_the_end)] == until_the_end


def test_a_split_of_files_that_have_been_read_ends_though_what_follows_has_no_end(tmp_path):
    for name in ("a1", "a2", "b1", "b2"):
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    files = FileSource.text(str(tmp_path)).set_split_by(lambda path: path[-6]).build()
    live = ScriptedSource(["p"], [[("p", "live")]], Types.STRING(), bounded=False)
    source = HybridSource.builder(files).add_source(live).build()
    names = [f"0/{tmp_path}/{name}.txt" for name in ("a1", "a2", "b1", "b2")]
    begun = next_offsets(source, {}, None, dict.fromkeys(names, 0))
    read = {name: at | {"position": source.ends([name])[name], "ended": True} for name, at in begun.items()}
    some = begun | {name: read[name] for name in names[:2]}
    assert {one.split: (one.joined, one.ended) for one in ranges_between(source, {}, some)} == {
        "0/a": (True, True), "0/b": (True, False),
    }  # fmt: skip


def test_an_operator_that_is_added_after_the_switch_waits_for_the_splits_of_the_source_that_is_read(tmp_path):
    """The splits before the switch, of which it hears nothing, do not hold it, and it fires with the old operator."""

    def changed(live, added):
        first = script(["a", "b"], [[("a", ("h", 1)), ("b", ("h", 12))]])
        source = HybridSource.builder(first).add_source(script(["p", "q"], live, bounded=False)).build()
        stream = local_environment().from_source(source, BY_TIME, "all of it", KIND)
        windows = stream.key_by(lambda e: e[0]).window(TumblingEventTimeWindows.of(10))
        return plan_of(*(windows.process(Contents()).uid(name) for name in ("old", *added)))

    live = [[("p", ("l", 20)), ("q", ("l", 20))]]
    plan = changed(live, [])
    runner = LocalRunner(plan, clock=lambda: 0)
    assert [*runner.batches()]
    savepoint = take_savepoint(plan, runner.checkpoint, f"{tmp_path}/saved")
    plan = changed([*live, [("p", ("l", 55))], [("q", ("l", 41))], [("p", ("l", 75)), ("q", ("l", 75))]], ["new"])
    runner = LocalRunner(plan, clock=lambda: 0, checkpoint=begun_from(savepoint, plan))
    fired = [[[value[1] for value, _ in of] for of in by_sink(plan, batch)] for batch in runner.batches()]
    assert fired == [[[], []], [[20], []], [[40, 50], [40, 50]]]


def test_what_was_planned_and_is_deferred_is_read_before_the_next_source():
    source = HybridSource.builder(NumberSequenceSource(1, 4)).add_source(NumberSequenceSource(5, 6)).build()
    start = next_offsets(source, {}, 2)
    nothing = deferred(start, next_offsets(source, start, 2))
    assert [*nothing] == ["0/0", "switched to 1", "1/0"]
    end = next_offsets(source, nothing, 9)
    assert {part: (at["position"], at["ended"]) for part, at in end.items()} == {
        "0/0": (4, True), "switched to 1": (0, True), "1/0": (0, False),
    }  # fmt: skip
    assert next_offsets(source, end, 9)["1/0"]["position"] == 2


def test_what_cannot_follow_is_refused():
    numbers = NumberSequenceSource(1, 2)
    with pytest.raises(
        ProgramError, match=r"has no end, so .* would never be read; only the last source may be unbounded"
    ):
        HybridSource.builder(script(["a"], [], bounded=False)).add_source(script(["b"], []))
    with pytest.raises(ProgramError, match=r"are of one type, and those of .* are LONG, those of .* STRING"):
        HybridSource.builder(numbers).add_source(ScriptedSource(["a"], [], Types.STRING()))
    with pytest.raises(ProgramError, match="a HybridSource reads sources, such as a FileSource, not 5"):
        HybridSource.builder(numbers).add_source(5)
