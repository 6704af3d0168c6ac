"""Tables in a state backend, read and written in few calls; windows of many panes, at a logarithm of their cost."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.runtime.columnar.layout import TableCodec, TablePayload, joined_rows, slices_by
from eventide.runtime.columnar.stores import NUMBER, KeyedTable, PaneStore, PaneTree
from eventide.runtime.elements.codec import encode_table
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.runs import compressed


def sums(table):
    merged = table.group_by(["k"], use_threads=False).aggregate([("v", "sum")])
    return merged.rename_columns({"v_sum": "v"}) if "v_sum" in merged.column_names else merged


def as_dict(table):
    return dict(zip(table["k"].to_pylist(), table["v"].to_pylist(), strict=True))


class Counting(MemoryBackend):
    """Counts what is written."""

    def __init__(self, values=None):
        super().__init__(values)
        self.written = 0

    def put(self, name, value):
        super().put(name, value)
        self.written += len(value)


@settings(max_examples=50)
@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-9, 9)), max_size=5), max_size=30))
def test_a_pane_holds_the_sum_of_what_was_added_over_many_batches(batches):
    backend, expected = MemoryBackend(), {}
    for batch in batches:
        store = PaneStore(backend, sums)
        for pane, key, value in batch:
            store.add(pane, pa.table({"k": [key], "v": [value]}))
            of_pane = expected.setdefault(pane, {})
            of_pane[key] = of_pane.get(key, 0) + value
        store.flush()
    store = PaneStore(backend, sums)
    assert store.panes() == sorted(expected)
    assert {pane: as_dict(store.read(pane)) for pane in store.panes()} == expected
    for pane in store.panes():
        store.drop(pane)
    store.flush()
    assert backend.values == {}


def test_a_pane_that_is_added_to_for_ever_is_rewritten_a_logarithmic_number_of_times():
    backend = Counting()
    one = pa.table({"k": [1], "v": [1]})
    for batch in range(1_000):
        store = PaneStore(backend, lambda table: table)  # nothing merges: every row is a key of its own
        store.add(0, one.set_column(0, "k", pa.array([batch])))
        store.flush()
    store = PaneStore(backend, lambda table: table)
    assert len(store.read(0)) == 1_000
    assert len(backend.values) < 30
    row = len(backend.values["chunks/0/0"]) / 1_000
    assert backend.written < 1_000 * row * 60


def test_what_one_batch_adds_bit_by_bit_is_merged_when_it_is_read():
    store = PaneStore(MemoryBackend(), sums)
    for value in (2, 3):
        store.add(0, pa.table({"k": [1], "v": [value]}))
    assert as_dict(store.read(0)) == {1: 5}


SCHEMA = pa.schema([("__key0", pa.string()), ("v", pa.int64())])


def _values(table):
    return table.table["v"].to_numpy()


def test_rows_by_key_come_back_when_their_key_is_touched_or_their_time_has_come():
    backend = MemoryBackend()
    table = KeyedTable(backend, SCHEMA, ["__key0"])
    table.table = pa.table({"__key0": ["a", "b", "c", "b"], "v": [1, 20, 30, 19]}, schema=SCHEMA)
    table.flush(_values(table))
    assert table.count == 4

    table = KeyedTable(backend, SCHEMA, ["__key0"])
    table.read_keys_of(pa.table({"__key0": ["b"]}))
    assert table.table["v"].to_pylist() == [20, 19]
    table.read_due(5)
    assert sorted(table.table["v"].to_pylist()) == [1, 19, 20]
    table.table = table.table.slice(0, 0)
    table.flush(_values(table))
    assert table.count == 1

    table = KeyedTable(backend, SCHEMA, ["__key0"])
    table.read_due(2**63 - 1)
    assert table.table["v"].to_pylist() == [30]
    table.table = table.table.slice(0, 0)
    table.flush(_values(table))
    assert backend.values == {}


def test_the_buckets_of_an_earlier_version_are_read_and_are_gone_then():
    backend = MemoryBackend()
    rows = pa.table({"__key0": ["a", "b", "c", "b"], "v": [1, 20, 30, 19]}, schema=SCHEMA)
    backend.put("buckets", json.dumps({"count": 3, "entries": len(rows), "times": [[0, 1]]}).encode())
    backend.put("times/0", b"of buckets")
    for bucket, part in slices_by(rows.append_column("__bucket", pa.array([0, 1, 2, 1])), "__bucket"):
        backend.put(f"bucket/{bucket}", compressed(encode_table(part)))
    table = KeyedTable(backend, SCHEMA, ["__key0"])
    table.read_keys_of(rows.slice(0, 1))
    assert sorted(table.table["v"].to_pylist()) == [1, 19, 20, 30]
    table.flush(_values(table))
    assert not [name for name in backend.values if name.startswith("bucket")]
    table = KeyedTable(backend, SCHEMA, ["__key0"])
    table.read_due(19)
    assert sorted(table.table["v"].to_pylist()) == [1, 19, 20]
    assert KeyedTable(backend, SCHEMA, ["__key0"]).count == 4


@given(st.lists(st.dictionaries(st.text("abcdef", max_size=2), st.none() | st.integers(0, 9), max_size=8), max_size=8))
def test_a_keyed_table_is_a_dict(batches):
    backend, model = MemoryBackend(), {}
    for batch in batches:
        table = KeyedTable(backend, SCHEMA, ["__key0"])
        table.read_keys_of(pa.table({"__key0": pa.array(list(batch), pa.string())}))
        kept = dict(zip(*table.table.to_pydict().values(), strict=True))
        assert kept.items() <= model.items()
        assert kept.keys() >= batch.keys() & model.keys()
        model = {key: value for key, value in (model | batch).items() if value is not None}
        left = [(key, value) for key, value in (kept | batch).items() if value is not None]
        table.table = (
            pa.table([pa.array(column) for column in zip(*left, strict=True)], schema=SCHEMA)
            if left
            else (SCHEMA.empty_table())
        )
        table.flush(_values(table))
    table = KeyedTable(backend, SCHEMA, ["__key0"])
    table.read_due(3)
    found = dict(zip(*table.table.to_pydict().values(), strict=True))
    assert found.items() <= model.items()
    assert found.keys() >= {key for key, value in model.items() if value <= 3}


ENTRY = pa.struct([("name", pa.string()), ("times", pa.list_(pa.timestamp("us")))])
MANY_TYPES = pa.schema(
    [
        ("__key0", pa.string()),
        ("number", pa.int64()),
        ("truth", pa.bool_()),
        ("parts", pa.list_(pa.float64())),
        ("entry", ENTRY),
        ("names", pa.map_(pa.string(), pa.int64())),
        ("pairs", pa.list_(pa.int32(), 2)),
    ]
)


def many_types(keys):
    """Rows with validity bitmaps, of which some are needed and some are not."""
    count = len(keys)
    whole = pa.table(
        {
            "__key0": ["a", *keys, None],
            "number": pa.array([None, *range(count), None], pa.int64()),
            "truth": pa.array([None, *(i % 3 == 0 for i in range(count)), None], pa.bool_()),
            "parts": pa.array([None, *([0.5] * (i % 4) if i % 5 else None for i in range(count)), None]),
            "entry": [None, *({"name": "x" * i, "times": [i]} if i % 2 else None for i in range(count)), None],
            "names": [None, *([("a", i)] * (i % 3) for i in range(count)), None],
            "pairs": [None, *([i, i] for i in range(count)), None],
        },
        schema=MANY_TYPES,
    )
    return whole.slice(1, count)


def test_what_is_read_and_stays_as_it_is_is_not_written_and_what_changes_is_found_by_its_bits():
    backend = MemoryBackend()
    plain = ["__key0", "number", "truth", "float"]
    schema = pa.schema([*(MANY_TYPES.field(name) for name in plain[:3]), ("float", pa.float64())])
    rows = many_types([f"key {i}" for i in range(100)]).select(plain[:3])
    rows = rows.append_column("float", pa.array([None, 0.0, float("nan"), *range(97)], pa.float64()))
    table = KeyedTable(backend, schema, ["__key0"])
    table.table = rows.cast(schema)
    table.flush(np.zeros(100, np.int64))
    before = dict(backend.values)
    table = KeyedTable(backend, schema, ["__key0"])
    table.read_keys_of(rows)
    table.table = pa.concat_tables([table.table.slice(50), table.table.slice(0, 50)])
    table.flush(np.zeros(100, np.int64))
    assert backend.values == before
    table = KeyedTable(backend, schema, ["__key0"])
    table.read_keys_of(rows)
    other = pc.if_else(pc.equal(table.table["float"], 0.0), -0.0, table.table["float"])
    table.table = table.table.set_column(3, "float", other)
    table.flush(np.zeros(100, np.int64))
    new = [name for name in backend.values.keys() - before.keys() if name.startswith("extent/")]
    table = KeyedTable(backend, schema, ["__key0"])
    table.read_keys_of(rows)
    assert len(new) == 1
    assert sorted(map(str, table.table["float"].to_pylist())) == sorted(map(str, other.to_pylist()))


def test_rows_of_every_type_come_back():
    backend, keys = MemoryBackend(), [f"key {i}" for i in range(100)]
    expected = many_types(keys)
    for first in range(0, 100, 9):
        table = KeyedTable(backend, MANY_TYPES, ["__key0"])
        table.read_keys_of(pa.table({"__key0": keys[: first + 1]}))
        table.table = pa.concat_tables([table.table.slice(0, 0), expected.slice(0, first + 1)])
        table.flush(np.zeros(first + 1, np.int64))
    table = KeyedTable(backend, MANY_TYPES, ["__key0"])
    table.read_due(0)
    assert table.table.sort_by("number").to_pylist() == expected.slice(0, first + 1).to_pylist()


def test_rows_are_sliced_by_value_in_the_order_of_values_and_keep_theirs():
    table = pa.table({"pane": [7, -3, 7, 7, -3], "v": [1, 2, 3, 4, 5]})
    assert [(value, part["v"].to_pylist()) for value, part in slices_by(table, "pane")] == [
        (-3, [2, 5]),
        (7, [1, 3, 4]),
    ]
    assert slices_by(table.slice(0, 0), "pane") == []


def test_rows_of_several_channels_interleave_by_place_then_channel():
    def part(order, values):
        return TablePayload(pa.table({"__sequence": order, "v": values}), 0)

    rows = joined_rows([part([0, 1, 5], ["a0", "a1", "a5"]), part([0, 2], ["b0", "b2"])])
    assert rows["v"].to_pylist() == ["a0", "b0", "a1", "b2", "a5"]


def test_a_table_travels_with_its_place():
    codec = TableCodec()
    part = codec.decode(codec.encode(pa.table({"v": [1, 2]}), 7))
    assert (part.first, len(part), part.table["v"].to_pylist()) == (7, 2, [1, 2])
    partials = codec.decode(codec.encode(pa.table({"__rows": [3, 4]}), 0))
    assert len(partials) == 7


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


@settings(max_examples=3 * settings().max_examples)
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
