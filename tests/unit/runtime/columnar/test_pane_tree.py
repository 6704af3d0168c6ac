"""Windows of many panes: the same as the sum of their panes, at a logarithm of their cost."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.runtime.columnar.stores import NUMBER, PaneStore, PaneTree
from eventide.runtime.state.backend import MemoryBackend

SIZE = 19


class Lists:
    """Joins lists, by key, and counts the rows that it is given."""

    def __init__(self):
        self.rows = 0

    def __call__(self, table, *by):
        if not len(table):
            return table
        self.rows += len(table)
        merged = {}
        for row in table.to_pylist():
            merged.setdefault(tuple(row[name] for name in ("k", *by)), []).extend(row["v"])
        columns = dict(zip(("k", *by), zip(*merged, strict=True), strict=True))
        return pa.table({**{name: list(column) for name, column in columns.items()}, "v": list(merged.values())})


class Batches:
    """Panes and the tree above them, opened for each micro-batch anew."""

    def __init__(self):
        self.backend = MemoryBackend()
        self.merge = Lists()
        self.open()

    def open(self):
        self.panes = PaneStore(self.backend, self.merge)
        self.tree = PaneTree(self.backend, self.panes, SIZE, self.merge)

    def add(self, pane, key, value):
        self.panes.add(pane, pa.table({"k": [key], "v": [[value]]}))
        self.tree.forget_above(pane)

    def windows(self, firsts, only=None):
        found, start = {}, 0
        ranges = [(first, first + SIZE) for first in firsts]
        for table, count in self.tree.together(ranges, only, ["k"]):
            for row in table.to_pylist():
                found[firsts[start + row[NUMBER]], row["k"]] = row["v"]
            start += count
        return found

    def drop(self, until):
        for pane in self.panes.panes():
            if pane <= until:
                self.panes.drop(pane)
        self.tree.drop_before(until + 1)

    def end_batch(self):
        self.panes.flush()
        self.tree.flush()
        self.open()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(-20, 40), st.sampled_from("ab")),
        st.tuples(st.just("fire"), st.integers(-30, 40), st.integers(1, 9)),
        st.tuples(st.just("drop"), st.integers(-20, 40), st.none()),
        st.just(("end", 0, None)),
    ),
    max_size=60,
)


@settings(max_examples=200)
@given(STEPS)
def test_a_window_is_its_panes_in_the_order_of_time_whatever_happened_before(steps):
    batches, expected = Batches(), {}
    for value, (what, number, more) in enumerate(steps):
        if what == "add":
            batches.add(number, more, value)
            expected.setdefault((number, more), []).append(value)
        elif what == "drop":
            batches.drop(number)
            expected = {(pane, key): values for (pane, key), values in expected.items() if pane > number}
        elif what == "fire":
            firsts = [f for f in range(number, number + more) if any(f <= pane < f + SIZE for pane, _ in expected)]
            wanted = {}
            for first in firsts:
                for pane, key in sorted(expected):
                    if first <= pane < first + SIZE:
                        wanted.setdefault((first, key), []).extend(expected[pane, key])
            if firsts:
                assert batches.windows(firsts) == wanted
                of_a = batches.windows(firsts, pa.table({"k": ["a"]}))
                assert {at: values for at, values in of_a.items() if at[1] == "a"} == {
                    at: values for at, values in wanted.items() if at[1] == "a"
                }
        else:
            batches.end_batch()
    batches.drop(100)
    batches.end_batch()
    assert batches.backend.values == {}


def test_windows_that_fire_one_after_the_other_share_what_they_have_in_common():
    batches = Batches()
    for pane in range(500):
        batches.add(pane, "a", pane)
        if pane >= SIZE:
            assert batches.windows([pane - SIZE + 1]) == {
                (pane - SIZE + 1, "a"): list(range(pane - SIZE + 1, pane + 1))
            }
            batches.drop(pane - SIZE + 1)
        batches.end_batch()
    assert batches.merge.rows < 500 * 6
    assert sum("/" in name for name in batches.backend.values) < 3 * SIZE


def test_windows_of_few_panes_store_panes_only():
    batches = Batches()
    batches.tree = PaneTree(batches.backend, batches.panes, 12, batches.merge)
    for pane in range(12):
        batches.add(pane, "a", pane)
    ((table, count),) = batches.tree.together([(0, 12)], None, ["k"])
    assert (table["v"].to_pylist(), count) == ([list(range(12))], 1)
    batches.tree.flush()
    assert batches.backend.values == {}
