"""Six stories of a window that does not fire, or of elements that are lost: the first line names the cause."""

from collections import Counter
from io import StringIO

import pytest
from rich.console import Console

from eventide.common import Duration, PunctuatedWatermarks, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.errors import StateError
from eventide.local.host import evidence
from eventide.local.runner import LocalCheckpoint
from eventide.runtime.observation.event_time_log import Lateness
from eventide.why import histogram, why
from eventide.why.evidence import Evidence
from support.stories import NOON, Story, bounded, windows
from support.twin import plan_of

HOUR = 3_600_000


def on_time(splits, minutes, start=NOON, step=10_000, clock=NOON):
    """Micro-batches in which each of some splits has an element every ten seconds, up to the time by the clock."""
    return [
        [(split, start + 60_000 * m + s) for s in range(0, 60_000, step) for split in splits] for m in range(minutes)
    ]


def kinds(answer):
    return [advice.kind for advice in answer.advice]


def test_a_silent_partition():
    answer = Story(windows(on_time(["p0", "p1"], 3))).why()
    assert answer.answer == (
        "'latest' waits for split 'p2' of 'orders', which has never had an element; without it the watermark would be "
        "2026-09-21 14:16:44.999 UTC."
    )
    assert "with_idleness" in answer.advice[0].remedy
    assert kinds(answer) == ["silent split"]


def test_a_partition_that_fell_silent():
    batches = [*on_time(["p0", "p1", "p2"], 1), *on_time(["p0", "p1"], 4, NOON + 60_000)]
    answer = Story(windows(batches)).why()
    assert answer.answer.startswith(
        "'latest' waits for split 'p2' of 'orders', which has had no element since 2026-09-21 14:14:00 UTC, 4 min "
        "before the others"
    )


def test_seconds_taken_for_milliseconds():
    batches = [[(split, time // 1_000) for split, time in batch] for batch in on_time(["p0", "p1", "p2"], 3)]
    answer = Story(windows(batches)).why()
    assert answer.answer == (
        "The timestamps of 'orders' look like seconds: taken for milliseconds, its newest element is of 1970-01-21 "
        "17:13:20.210 UTC."
    )
    assert "multiply them by 1000" in answer.advice[0].remedy


def test_microseconds_taken_for_milliseconds():
    batches = [[(split, time * 1_000) for split, time in batch] for batch in on_time(["p0", "p1", "p2"], 2)]
    assert "look like microseconds" in Story(windows(batches)).why().answer


def test_one_partition_a_day_ahead():
    ahead = on_time(["p2"], 3, NOON - 60_000)
    behind = on_time(["p0", "p1"], 3, NOON - 24 * HOUR - 60_000)
    answer = Story(windows([a + b for a, b in zip(ahead, behind, strict=True)])).why()
    assert answer.answer == (
        "'p2' of 'orders' is 1 d ahead of the other splits: its elements wait in 'latest' until they come there."
    )
    assert "with_watermark_alignment" in answer.advice[0].remedy


def test_one_partition_hours_behind():
    ahead = on_time(["p0", "p1"], 3, NOON - 60_000)
    behind = on_time(["p2"], 3, NOON - 3 * HOUR - 60_000)
    script = [a + b for a, b in zip(ahead, behind, strict=True)]
    script[2].append(("p2", NOON - 4 * HOUR))  # which is late
    answer = Story(windows(script)).why()
    assert answer.answer == (
        "'latest' waits for 'p2' of 'orders', which is 3 h behind the other splits; without it the watermark would be "
        "2026-09-21 14:15:44.999 UTC."
    )
    assert kinds(answer) == ["split behind", "late elements"]


@pytest.mark.parametrize(("by_the_clock", "kind"), [(NOON, "split ahead"), (NOON + 24 * HOUR, "split behind")])
def test_of_two_partitions_the_clock_tells_which_is_wrong(by_the_clock, kind):
    script = [
        a + b for a, b in zip(on_time(["p0"], 3, NOON - 60_000), on_time(["p1"], 3, NOON + 20 * HOUR), strict=True)
    ]
    story = Story(windows(script, splits=("p0", "p1")), clock=by_the_clock)
    assert [one for one in kinds(story.why()) if one.startswith("split")] == [kind]


def test_a_time_zone():
    answer = Story(windows(on_time(["p0", "p1", "p2"], 3, NOON + 2 * HOUR - 60_000))).why()
    assert answer.answer == (
        "The newest element of 'p0' of 'orders' is about 2 h ahead of the clock: its timestamps look like local time "
        "taken for UTC."
    )


def test_an_unbounded_source_without_new_data():
    story = Story(windows(on_time(["p0", "p1", "p2"], 3)))
    answer = story.why(asked_ms=story.clock + 25 * 60_000)
    assert answer.answer == (
        "No split of 'orders' has had an element since 2026-09-21 14:16:00 UTC (25 min ago), and only newer elements "
        "move the watermark of 'latest' on from 2026-09-21 14:16:44.999 UTC; the next window fires when the watermark "
        "reaches 2026-09-21 14:16:59.999 UTC."
    )
    assert kinds(answer) == ["nothing new"]


def test_a_bound_that_is_too_small():
    batches = on_time(["p0", "p1", "p2"], 4)
    batches[2] += [("p1", NOON + 35_000), ("p1", NOON + 40_000)]
    story = Story(windows(batches, bounded(seconds=1)))
    answer = story.why()
    assert answer.answer == (
        "2 of 74 (2.70%) elements came too late for 'latest', up to 1 min 13 s behind its watermark: the bound of "
        "'orders' is 1 s, and 'p1' has had elements 2 min 15 s out of order."
    )
    [standing] = answer.standings
    assert "Duration.of_seconds(135)" in answer.advice[0].remedy
    assert standing.late.behind.longest_ms == 73_999
    assert [one.timestamp for one in standing.late.last] == [NOON + 35_000, NOON + 40_000]
    assert "from       'p1': 2, by up to 1 min 13 s" in str(answer)
    assert str(answer).count("one of 2026-09-21 14:14:") == 2
    assert "when the watermark was 2026-09-21 14:15:48.999 UTC, where 'p0' held it" in str(answer)
    assert Story(windows(batches, bounded(seconds=135))).why().standings[0].late.behind.total == 0


class OneSecond(WatermarkGenerator):
    highest = NOON

    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.highest - 1_001))


class CountsToo(OneSecond):
    def on_event(self, event, event_timestamp, output):
        self.highest, self.seen = max(self.highest, event_timestamp), 1


@pytest.mark.parametrize("generator", [OneSecond, CountsToo, lambda: [OneSecond()][0]])
def test_splits_are_known_whatever_their_generator_looks_at(generator):
    batches = on_time(["p0", "p1", "p2"], 4)
    batches[2] += [("p1", NOON + 35_000), ("p1", NOON + 40_000)]
    strategy = WatermarkStrategy.for_generator(generator).with_timestamp_assigner(lambda order, _: order[1])
    answer = Story(windows(batches, strategy)).why()
    assert answer.answer.startswith("2 of 74 (2.70%) elements came too late for 'latest'")
    assert [split.record.rows for split in answer.standings[0].splits] == [24, 26, 24]
    assert "26        0 ms, 2 min 15 s, 2 min 15 s" in str(answer)


def test_a_generator_that_has_never_spoken():
    strategy = WatermarkStrategy.for_generator(lambda: PunctuatedWatermarks(lambda order, ms: None))
    answer = Story(
        windows(on_time(["p0"], 2), strategy.with_timestamp_assigner(lambda o, _: o[1]), splits=["p0"])
    ).why()
    assert answer.answer.startswith("The watermark generator of split 'p0' of 'orders' has never emitted a watermark")


def test_windows_without_watermarks():
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda order, _: order[1])
    answer = Story(windows(on_time(["p0"], 2), strategy, splits=["p0"])).why()
    assert answer.answer.endswith("so no window will ever fire.")


def test_a_bound_far_larger_than_the_disorder():
    story = Story(windows(on_time(["p0", "p1", "p2"], 3, step=100), bounded(seconds=3_600)))
    assert kinds(story.why()) == ["wide bound"]


def test_nothing_is_wrong():
    answer = Story(windows(on_time(["p0", "p1", "p2"], 3))).why()
    assert kinds(answer) == []
    assert answer.answer == (
        "Nothing is certain to be wrong: the watermark of 'latest' is 2026-09-21 14:16:44.999 UTC, that of 'p0' of "
        "'orders', 5 s behind the newest element."
    )


def test_fewer_splits_than_subtasks_are_no_fault():
    answer = Story(windows(on_time(["p"], 3), splits=["p"])).why()
    assert answer.advice == ()
    assert answer.notes == (
        "'orders' has 1 split(s), so no more than that of 2 subtasks read it; operators after a key_by run in all",
    )
    assert str(answer).endswith(answer.notes[0])


def test_an_idle_split_holds_nothing_back():
    batches = [*on_time(["p0", "p1", "p2"], 1), *on_time(["p0", "p1"], 4, NOON + 60_000)]
    answer = Story(windows(batches, bounded().with_idleness(Duration.of_minutes(2)))).why()
    assert kinds(answer) == []
    assert {split.name: str(split.status) for split in answer.standings[0].splits}["p2"] == "is idle"


def test_a_watermark_is_followed_through_operators():
    first = windows(on_time(["p0", "p1"], 3))
    second = first.key_by(lambda order: order[0]).window(first_window()).reduce(max).name("hours")
    answer = Story(second).why(operator="hours")
    [standing] = answer.standings
    assert [split.name for split in standing.hold.splits] == ["p2"]
    assert standing.hold.through == ("latest",)
    assert standing.hold.without == NOON + 170_000 - 5_001
    assert answer.answer.startswith("'hours' waits through 'latest' for split 'p2' of 'orders'")


def first_window():
    from eventide.common import Time
    from eventide.datastream.window import TumblingEventTimeWindows

    return TumblingEventTimeWindows.of(Time.hours(1))


def test_operators_that_have_nothing_else_to_say_are_named_together():
    first = windows(on_time(["p0", "p1"], 3))
    stream = first
    for n in range(3):
        stream = stream.key_by(lambda order: order[0]).window(first_window()).reduce(max).name(f"behind-{n}")
    answer = Story(stream).why()
    lines = str(answer).splitlines()
    assert len(answer.standings) == 4
    assert [line for line in lines if line.startswith(("latest ", "behind-"))] == [
        "latest  TumblingEventTimeWindows(size=60000, offset=0)",
        "behind-0  TumblingEventTimeWindows(size=3600000, offset=0)",
    ]
    assert "  so stand   'behind-1', 'behind-2', held by the same" in lines


def test_before_the_first_micro_batch_an_answer_takes_no_longer_with_more_subtasks(monkeypatch):
    """Each channel of each operator is waited for then."""
    stream = windows([])
    for n in range(4):
        stream = stream.key_by(lambda order: order[0]).window(first_window()).reduce(max).name(f"behind-{n}")
    job = evidence(plan_of(stream, parallelism=8), LocalCheckpoint(), NOON)
    looked, valve = Counter(), Evidence.valve

    def counting(job, operator):
        looked[operator["name"]] += 1
        return valve(job, operator)

    monkeypatch.setattr(Evidence, "valve", counting)
    [standing] = why(job, operator="behind-3").standings
    assert [split.name for split in standing.hold.splits] == ["p0", "p1", "p2"]
    assert looked.total() < 300


def test_bars_that_would_be_told_alike_are_one():
    late = Lateness()
    late.add([NOON - 15_600, NOON - 16_400, NOON - 10_000], NOON, clock_ms=0)
    console = Console(file=StringIO(), width=100)
    console.print(histogram(late))
    labels = [line.partition("█")[0].strip() for line in console.file.getvalue().splitlines()]
    assert len(labels) == len({*labels}) == 2


def test_the_windows_of_a_time():
    story = Story(windows(on_time(["p0", "p1", "p2"], 3)))
    [(standing, fired)] = story.why(at=NOON + 30_000).windows
    assert (standing.name, fired.phase.name, fired.start, fired.end) == ("latest", "GONE", NOON - 0, NOON + 60_000)
    [(_, still)] = story.why(at=NOON + 130_000).windows
    assert (still.phase.name, still.fires_at, still.held) == ("OPEN", NOON + 179_999, 1)
    assert [split.name for split in still.waits_for] == ["p0", "p1", "p2"]
    assert "it fires when the watermark reaches" in str(story.why(at=NOON + 130_000))


def test_of_very_many_splits_the_most_is_known():
    splits = [f"p{i}" for i in range(300)]
    batches = on_time(splits, 2, step=20_000)
    batches[1].append(("p7", NOON + 1_000))
    answer = Story(windows(batches, splits=splits)).why()
    [standing] = answer.standings
    late = next(split for split in standing.splits if split.name == "p7")
    assert (late.record.rows, late.record.behind.total, late.record.behind.longest_ms) == (7, 0, 99_000)
    assert standing.ended == 0
    assert "… 288 more" in str(answer)


def test_text_and_json_say_the_same():
    answer = Story(windows(on_time(["p0", "p1"], 3))).why()
    text, document = str(answer), answer.to_json()
    assert text.splitlines()[0] == document["answer"] == answer.answer
    assert document["operators"][0]["held_by"]["splits"] == ["p2"]
    assert "never" in text
    assert "held by" in text


def test_an_operator_that_there_is_not():
    with pytest.raises(StateError, match="there are: 'latest'"):
        Story(windows(on_time(["p0"], 1), splits=["p0"])).why(operator="totals")
