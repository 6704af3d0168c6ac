"""Parts of splits: how ranges are put together, when a split ends, what is forgotten, and what a run reads up to."""

from dataclasses import dataclass

import pytest

from eventide.datastream.connectors import Beginning, PartRange, Source
from eventide.errors import ProgramError
from eventide.runtime.sources.offsets import (
    SplitRange,
    dealt_out,
    everything,
    furthest_behind,
    identities,
    next_offsets,
    pending_records,
    ranges_between,
    source_ends,
)


class Parted(Source):
    """Parts named split/part, of a given length; those that are named at any time."""

    def __init__(self, lengths, bounded=True):
        self.lengths, self.bounded = lengths, bounded

    def splits(self):
        return sorted({self.split_of(part) for part in self.lengths})

    def parts(self, known):
        self.known = known
        return list(self.lengths)

    def split_of(self, part):
        return part.split("/")[0]

    def latest_position(self, split):
        return self.lengths[split]

    def has_ended(self, split, position):
        return position >= self.lengths[split]

    def is_bounded(self):
        return self.bounded

    def read(self, split, start, end):
        raise NotImplementedError


def at(position, ended=False, start=0, audience=""):
    return {"start": start, "position": position, "ended": ended, "audience": audience}


def test_parts_of_a_split_are_one_range_what_was_begun_first_then_by_name():
    source = Parted({"a/3": 5, "a/1": 5, "b/1": 2, "a/2": 5})
    start = {"a/1": at(0), "a/2": at(1)}
    assert ranges_between(source, start, everything(source)) == [
        SplitRange("a", (PartRange("a/2", 1, 5), PartRange("a/1", 0, 5), PartRange("a/3", 0, 5)), ended=True),
        SplitRange("b", (PartRange("b/1", 0, 2),), ended=True, joined=True),
    ]


def test_a_split_ends_with_the_last_of_its_parts_and_only_if_the_source_is_bounded():
    for bounded in (True, False):
        source = Parted({"a/1": 5, "a/2": 5}, bounded)
        start = {"a/1": at(0), "a/2": at(0)}
        first, second = start | {"a/1": at(5, ended=True)}, everything(source)
        assert [r.ended for r in ranges_between(source, start, first)] == [False]
        assert [r.ended for r in ranges_between(source, first, second)] == [bounded]
        assert not source_ends(source, start, first)
        assert source_ends(source, first, second) == bounded


def test_a_part_that_does_not_move_is_not_read():
    source = Parted({"a/1": 5})
    start = everything(source)
    source.lengths["a/2"] = 5
    assert ranges_between(source, start, start | {"a/2": at(0)}) == []


@pytest.mark.parametrize("holds", [True, False])
def test_a_split_that_is_new_is_reported_before_anything_of_it_is_read_if_it_holds(holds, monkeypatch):
    monkeypatch.setattr(Parted, "holds_when_new", lambda self: holds)
    source = Parted({"a/1": 5})
    start = everything(source)
    source.lengths["b/1"] = 5
    joined = [SplitRange("b", (), ended=False, joined=True)] if holds else []
    assert ranges_between(source, start, start | {"b/1": at(0)}) == joined


def test_what_is_not_named_any_more_is_forgotten_and_what_was_not_read_is_counted():
    source = Parted({"new": 2}, bounded=False)
    start = {"ended": at(5, ended=True), "waiting": at(0), "begun": at(3)}
    end = next_offsets(source, start, None)
    assert end == {"new": at(2, ended=True)}
    assert source.known == {"ended": None, "waiting": 0, "begun": 3}
    assert ranges_between(source, start, end) == [
        SplitRange("new", (PartRange("new", 0, 2),), ended=True, joined=True),
        SplitRange("begun", (), ended=True, lost=1),
        SplitRange("waiting", (), ended=True, lost=1),
    ]


def test_a_split_that_may_grow_ends_when_the_last_of_its_parts_is_gone():
    source = Parted({"a/1": 5, "a/2": 5}, bounded=False)
    start = next_offsets(source, {}, None)
    del source.lengths["a/1"]
    assert next_offsets(source, start, None) is start
    del source.lengths["a/2"]
    end = next_offsets(source, start, None)
    assert end == {}
    assert ranges_between(source, start, end) == [SplitRange("a", (), ended=True)]
    assert not source_ends(source, start, end)


def test_of_a_split_that_goes_on_only_what_was_not_read_is_said():
    source = Parted({"a/1": 5, "a/2": 5}, bounded=False)
    start = {"a/1": at(2), "a/2": at(0)}
    del source.lengths["a/1"]
    assert ranges_between(source, start, {"a/2": at(0)}) == [SplitRange("a", (), ended=False, lost=1)]


def test_a_split_that_has_ended_is_not_reported_again_when_it_is_gone():
    source = Parted({"a": 5, "b": 5}, bounded=False)
    start = next_offsets(source, {}, None)
    del source.lengths["a"]
    assert next_offsets(source, start, None) is start, "nothing to do is no reason for a micro-batch"
    source.lengths["c"] = 1
    end = next_offsets(source, start, None)
    assert end == {"b": at(5, ended=True), "c": at(1, ended=True)}
    assert ranges_between(source, start, end) == [SplitRange("c", (PartRange("c", 0, 1),), ended=True, joined=True)]


class Stopping(Parted):
    """Grows for ever, and is to be read up to where it was when it was first seen."""

    def __init__(self, lengths, **stops):
        super().__init__(lengths, bounded=True)
        self.stops = stops

    def beginnings(self, parts):
        return {part: Beginning(1, self.stops.get(part, self.lengths[part]), f"id of {part}") for part in parts}

    def has_ended(self, split, position):
        raise AssertionError


def test_a_part_ends_at_the_stop_that_it_had_when_it_was_first_seen_whatever_has_come_since():
    source = Stopping({"a": 4, "b": 9}, b=0)
    first = next_offsets(source, {}, 2)
    assert first == {
        "a": at(3, start=1) | {"stop": 4, "identity": "id of a"},
        "b": at(1, start=1, ended=True) | {"stop": 0, "identity": "id of b"},
    }, "what has nothing before its stop has ended, and takes no share of the rows"
    source.lengths["a"] = 50
    second = next_offsets(source, first, 5, target={"a": 3, "b": 9})
    assert second["a"] == at(4, start=1, ended=True) | {"stop": 4, "identity": "id of a"}
    assert source_ends(source, first, second)
    assert identities(second) == {"a": "id of a", "b": "id of b"}


def test_a_batch_run_of_a_source_with_stops_reads_up_to_them():
    class Fills(Stopping):
        def parts(self, known):
            self.lengths = {part: length + 1 for part, length in self.lengths.items()}
            return super().parts(known)

    end = everything(Fills({"a": 4}))
    assert (end["a"]["position"], end["a"]["ended"]) == (5, True)


def test_what_a_micro_batch_leaves_for_later_is_counted_where_it_may_leave_something():
    source = Parted({"a": 7, "b/1": 2, "b/2": 9}, bounded=False)
    end = next_offsets(source, {}, 4)
    assert pending_records(source, end, is_limited=True) == {"a": 5, "b": 9}
    assert pending_records(source, next_offsets(source, end, None), is_limited=True) == {}
    source.latest_position = None
    assert pending_records(source, end, is_limited=False) == {"a": 0, "b": 0}
    assert pending_records(source, end, is_limited=True) is None, "a metric makes no job fail"


def test_what_is_left_in_ten_thousand_splits_needs_no_further_look_at_them():
    class Counting(Parted):
        asked = 0

        def latest_position(self, split):
            self.asked += 1
            return self.lengths[split]

        def has_ended(self, split, position):
            return False

    source = Counting({str(n): n for n in range(10_000)}, bounded=False)
    end = next_offsets(source, {}, 10_000)
    assert source.asked == 10_000
    pending = pending_records(source, end, is_limited=True)
    assert source.asked == 10_000
    assert (pending["9999"], sum(pending.values())) == (9_998, sum(range(10_000)) - 10_000)
    assert list(furthest_behind(pending).items())[:2] == [("9999", 9_998), ("9998", 9_997)]
    assert len(furthest_behind(pending)) == 200
    source.lengths["9999"] = 10_100
    assert pending_records(source, end, is_limited=True)["9999"] == 10_099, "a plan that did not ask is caught up with"


def test_a_source_of_a_frozen_class_remembers_what_it_has_seen():
    @dataclass(frozen=True)
    class Frozen(Parted):
        lengths: dict
        bounded: bool = False

        def parts(self, known):
            return list(self.lengths)

    source = Frozen({"a": 7})
    assert pending_records(source, next_offsets(source, {}, 3), is_limited=True) == {"a": 4}


class Latest(Parted):
    """Read from where it stands when it is first seen."""

    def initial_position(self, split):
        return self.lengths[split]

    def has_ended(self, split, position):
        return False


def test_where_a_part_starts_is_asked_once_and_then_is_in_the_offsets():
    source = Latest({"a": 7}, bounded=False)
    first = next_offsets(source, {}, None)
    assert first == {"a": at(7, start=7)}
    source.lengths["a"] = 9
    source.lengths["b"] = 4
    second = next_offsets(source, first, None)
    assert second == {"a": at(9, start=7), "b": at(4, start=4)}
    assert ranges_between(source, first, second) == [
        SplitRange("a", (PartRange("a", 7, 9),), ended=False),
        SplitRange("b", (), ended=False, joined=True),
    ]
    source.lengths |= {"a": 20, "b": 20}
    third = next_offsets(source, second, 2)
    assert third == {"a": at(10, start=7), "b": at(5, start=4)}


def test_a_first_micro_batch_that_is_repeated_reads_the_same_though_its_start_would_be_another_now():
    source = Latest({"a": 9}, bounded=False)
    end = {"a": at(9, start=4)}
    source.lengths["a"] = 50
    assert ranges_between(source, {}, end) == [SplitRange("a", (PartRange("a", 4, 9),), ended=False, joined=True)]


def test_what_was_read_before_counts_more_than_a_start_that_is_asked_for_again():
    """PySpark 4.1 does not say where a micro-batch begins, so that each is planned from nothing."""
    source = Latest({"a": 7}, bounded=False)
    first = everything(source)
    source.lengths["a"] = 9
    second = everything(source)
    assert ranges_between(source, first, second) == [SplitRange("a", (PartRange("a", 7, 9),), ended=False)]


def test_a_start_after_the_target_of_a_run_is_no_way_back():
    source = Latest({"a": 9}, bounded=False)
    assert next_offsets(source, {}, None, {"a": 5}) == {"a": at(9, start=9)}


def test_a_run_that_stops_goes_no_further_than_its_target():
    source = Parted({"a/1": 5, "b/1": 5, "c/1": 5})
    target = {"a/1": 3, "b/1": 5}
    assert next_offsets(source, {}, None, target) == {"a/1": at(3), "b/1": at(5, ended=True)}


def test_what_was_begun_before_a_run_is_finished_though_it_is_no_target():
    source = Parted({"a/1": 5})
    assert next_offsets(source, {"a/1": at(2)}, None, {}) == {"a/1": at(5, ended=True)}


def test_a_source_is_its_own_parts_unless_it_says_otherwise():
    class Plain(Parted):
        parts, split_of = Source.parts, Source.split_of

        def splits(self):
            return list(self.lengths)

    assert next_offsets(Plain({"a": 1, "b": 2}), {}, None) == {"a": at(1, ended=True), "b": at(2, ended=True)}
    assert Plain({"a": 1, "b": 2}).latest_positions() == {"a": 1, "b": 2}
    with pytest.raises(ProgramError, match="has no splits"):
        next_offsets(Plain({}), {}, None)


def test_columns_are_left_out_only_by_sources_that_can():
    source = Parted({})
    assert source.with_columns(["a"]) is source


@pytest.mark.parametrize(
    ("lengths", "count", "dealt"),
    [
        ([1, 1, 1, 1], 2, [[0, 2], [1, 3]]),
        ([9, 1, 1, 1], 2, [[0], [1, 2, 3]]),
        ([1, 5, 9, 5], 2, [[2, 0], [1, 3]]),
        ([0, 0, 0], 2, [[0, 2], [1]]),
        ([], 1, [[]]),
    ],
)
def test_tasks_get_whole_splits_and_about_the_same_work(lengths, count, dealt):
    ranges = [SplitRange(str(i), (PartRange(str(i), 0, length),), ended=False) for i, length in enumerate(lengths)]
    assert [[int(r.split) for r in task] for task in dealt_out(ranges, count)] == dealt


def test_that_a_part_and_its_source_have_ended_is_said_again_to_another_audience():
    source = Parted({"a": 2, "b": 3})
    start = {"a": at(2, ended=True), "b": at(3, ended=True)}
    assert next_offsets(source, start, None) == start
    end = next_offsets(source, start, None, audience="others")
    assert end == {"a": at(2, ended=True, audience="others"), "b": at(3, ended=True, audience="others")}
    empty = [SplitRange("a", (PartRange("a", 2, 2),), ended=True), SplitRange("b", (PartRange("b", 3, 3),), ended=True)]
    assert ranges_between(source, start, end) == empty
    assert source_ends(source, start, end)
    assert next_offsets(source, end, None, audience="others") == end


def test_that_a_split_has_joined_is_said_again_to_another_audience():
    """Where the splits that its program expects are others, as those of another source before."""
    source = Parted({"a": 2, "b": 3})
    start = {"a": at(1), "b": at(3, ended=True)}
    end = next_offsets(source, start, None, target={"a": 1, "b": 3}, audience="others")
    ended = SplitRange("b", (PartRange("b", 3, 3),), ended=True)
    assert ranges_between(source, start, end) == [ended, SplitRange("a", (), ended=False, joined=True)]
    assert not source_ends(source, start, end)
    further = next_offsets(source, end, None, audience="others")
    assert ranges_between(source, end, further) == [SplitRange("a", (PartRange("a", 1, 2),), ended=True)]


def test_what_follows_on_all_parts_appears_in_the_micro_batch_in_which_they_end():
    class Followed(Parted):
        def following(self, parts):
            return ["b"] if "b" not in parts else []

    source = Followed({"a": 2})
    assert next_offsets(source, {}, 1) == {"a": at(1)}
    end = next_offsets(source, {"a": at(1)}, 1)
    assert end == {"a": at(2, ended=True), "b": at(0)}
    assert not source_ends(source, {"a": at(1)}, end)
    assert next_offsets(source, {"a": at(1)}, 1, {"a": 2}) == {"a": at(2, ended=True)}, "b came after the run's start"


def test_that_a_split_rests_is_said_once_and_again_to_others():
    source = Parted({"a": 9, "b": 9})
    free, rests = {"a": at(3), "b": at(3)}, {"a": at(4), "b": at(3) | {"rest": "held"}}
    assert ranges_between(source, free, rests)[1] == SplitRange("b", (), ended=False, rest="held")
    assert ranges_between(source, rests, {**rests, "a": at(5)}) == [
        SplitRange("a", (PartRange("a", 4, 5),), ended=False)
    ]
    told = {part: of | {"audience": "others"} for part, of in rests.items()}
    assert SplitRange("b", (), ended=False, joined=True, rest="held") in ranges_between(source, rests, told)
    assert ranges_between(source, rests, {**rests, "b": at(5)}) == [
        SplitRange("b", (PartRange("b", 3, 5),), ended=False, rest="none")
    ]


def test_a_source_that_no_longer_waits_says_that_its_splits_do_not_rest():
    source = Parted({"a": 9, "b": 9})
    end = next_offsets(source, {"a": at(9, ended=True), "b": at(3) | {"rest": "held"}}, 2)
    assert "rest" not in end["b"]
