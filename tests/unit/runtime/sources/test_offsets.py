"""Parts of splits: how ranges are put together, when a split ends, what is forgotten, and what a run reads up to."""

import pytest

from eventide.datastream.connectors import Source
from eventide.errors import ProgramError
from eventide.runtime.sources.offsets import (
    PartRange,
    SplitRange,
    dealt_out,
    everything,
    initial_offsets,
    next_offsets,
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


def at(position, ended=False):
    return {"position": position, "ended": ended}


def test_parts_of_a_split_are_one_range_what_was_begun_first_then_by_name():
    source = Parted({"a/3": 5, "a/1": 5, "b/1": 2, "a/2": 5})
    start = initial_offsets(source) | {"a/2": at(1)}
    assert ranges_between(source, start, everything(source)) == [
        SplitRange("a", (PartRange("a/2", 1, 5), PartRange("a/1", 0, 5), PartRange("a/3", 0, 5)), ended=True),
        SplitRange("b", (PartRange("b/1", 0, 2),), ended=True),
    ]


def test_a_split_ends_with_the_last_of_its_parts_and_only_if_the_source_is_bounded():
    for bounded in (True, False):
        source = Parted({"a/1": 5, "a/2": 5}, bounded)
        start = initial_offsets(source)
        first, second = start | {"a/1": at(5, ended=True)}, everything(source)
        assert [r.ended for r in ranges_between(source, start, first)] == [False]
        assert [r.ended for r in ranges_between(source, first, second)] == [bounded]
        assert not source_ends(source, start, first)
        assert source_ends(source, first, second) == bounded


def test_a_part_that_does_not_move_is_not_read():
    source = Parted({"a/1": 5})
    start = everything(source)
    source.lengths["b/1"] = 5
    end = start | {"b/1": at(0)}
    assert ranges_between(source, start, end) == []


def test_what_is_not_named_any_more_is_forgotten_if_it_has_ended_or_was_not_begun():
    source = Parted({"new": 2}, bounded=False)
    start = {"ended": at(5, ended=True), "waiting": at(0), "begun": at(3)}
    assert next_offsets(source, start, None) == {"begun": at(3), "new": at(2, ended=True)}
    assert source.known == {"ended": None, "waiting": 0, "begun": 3}


def test_where_nothing_moves_the_offsets_stay_whatever_has_gone():
    source = Parted({"b/1": 2}, bounded=False)
    start = {"a/1": at(5, ended=True), "b/1": at(2, ended=True)}
    assert next_offsets(source, start, None) is start


def test_a_run_that_stops_goes_no_further_than_its_target():
    source = Parted({"a/1": 5, "b/1": 5, "c/1": 5})
    start = initial_offsets(source)
    target = {"a/1": 3, "b/1": 5}
    del start["c/1"]
    assert next_offsets(source, start, None, target) == {"a/1": at(3), "b/1": at(5, ended=True)}


def test_what_was_begun_before_a_run_is_finished_though_it_is_no_target():
    source = Parted({"a/1": 5})
    assert next_offsets(source, {"a/1": at(2)}, None, {}) == {"a/1": at(5, ended=True)}


def test_a_source_is_its_own_parts_unless_it_says_otherwise():
    class Plain(Parted):
        parts, split_of = Source.parts, Source.split_of

        def splits(self):
            return list(self.lengths)

    assert initial_offsets(Plain({"a": 1, "b": 2})) == {"a": at(0), "b": at(0)}
    assert Plain({"a": 1, "b": 2}).latest_positions() == {"a": 1, "b": 2}
    with pytest.raises(ProgramError, match="has no splits"):
        initial_offsets(Plain({}))


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
