"""Maps of many keys in columns against the map state of a function on single elements, on random streams."""

from copy import deepcopy
from itertools import groupby

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, OutputTag
from eventide.datastream.functions import VectorizedKeyedProcessFunction
from eventide.datastream.state import MapStateDescriptor
from eventide.testing import ScriptedSource, local_environment
from support.twin import by_sink, plan_of, run_with_restarts, runner

KINDS = {
    "text": (Types.STRING(), st.sampled_from(["a", "b", "", "ä"])),
    "whole": (Types.LONG(), st.sampled_from([0, 1, -1, 2**60])),
    "float": (Types.DOUBLE(), st.sampled_from([0.0, -0.0, 1.5, float("inf")])),
}
OUT = Types.TUPLE([Types.STRING(), Types.STRING()])
BAD = OutputTag("bad")


class Each(KeyedProcessFunction):
    """Does what the element says with an entry, or with all; some elements are bad when it is done."""

    def __init__(self, kind):
        self.descriptor = MapStateDescriptor("map", kind, Types.LONG())

    def open(self, runtime_context):
        self.map = runtime_context.get_map_state(self.descriptor)

    def process_element(self, value, ctx):
        match value.what:
            case "put":
                self.map.put(value.entry, value.n)
            case "remove":
                self.map.remove(value.entry)
            case "get":
                yield value.key, f"{value.entry}: {self.map.get(value.entry)}"
            case "entries":
                for entry, n in self.map.items():
                    yield value.key, f"{entry}: {n}"
            case "clear":
                self.map.clear()
        if value.n == 13:
            raise ValueError("bad")


class Many(VectorizedKeyedProcessFunction):
    """The function on columns, for all successive elements with one instruction."""

    def __init__(self, kind):
        self.descriptor = MapStateDescriptor("map", kind, Types.LONG())

    def open(self, runtime_context):
        self.map = runtime_context.get_vectorized_map_state(self.descriptor)

    def process_batch(self, batch, ctx):
        whats = batch.column("what").to_pylist()
        begin = 0
        for what, some in groupby(whats):
            count = len([*some])
            self.act(what, batch.slice(begin, count), ctx, begin)
            begin += count
        if 13 in batch.column("n").to_pylist():
            raise ValueError("bad")

    def act(self, what, batch, ctx, begin):
        keys, entries = batch.column("key"), batch.column("entry")
        match what:
            case "put":
                self.map.put(keys, entries, batch.column("n"))
            case "remove":
                self.map.remove(keys, entries)
            case "get":
                self.tell(ctx, np.arange(len(keys)), keys, entries, self.map.get(keys, entries), begin)
            case "entries":
                rows, found, values = self.map.entries(keys)
                self.tell(ctx, rows, keys, found, values, begin)
            case "clear":
                self.map.clear(keys)

    def tell(self, ctx, rows, keys, entries, values, begin):
        texts = [f"{entry}: {n}" for entry, n in zip(entries.to_pylist(), values.to_pylist(), strict=True)]
        found = {"f0": keys.take(pa.array(rows)), "f1": pa.array(texts, pa.string())}
        ctx.collect(pa.record_batch(found), rows + begin)


def streams(entries):
    element = st.builds(
        Row,
        key=st.sampled_from("abc"),
        at=st.integers(0, 40),
        what=st.sampled_from(["put", "put", "remove", "get", "entries", "clear"]),
        entry=entries,
        n=st.one_of(st.none(), st.sampled_from([13, *range(5)])),
    )
    return st.lists(st.lists(st.tuples(st.sampled_from("st"), element), max_size=10), max_size=5)


def program(function, kind, batches):
    names = ["key", "at", "what", "entry", "n"]
    event = Types.ROW_NAMED(names, [Types.STRING(), Types.LONG(), Types.STRING(), kind, Types.LONG()])
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    stream = local_environment().from_source(ScriptedSource(["s", "t"], batches, event), by_time, "s", event)
    out = stream.key_by("key").process(function, OUT).uid("process").side_output_dead_letters(BAD)
    return plan_of(out, out.get_side_output(BAD), max_parallelism=32_768)


@given(st.data(), st.sampled_from([*KINDS]), st.integers(1, 3))
@settings(max_examples=2 * settings().max_examples)
def test_maps_in_columns_are_maps_of_single_keys(data, kind, every):
    kind, entries = KINDS[kind]
    batches = data.draw(streams(entries))
    found, expected = (run_with_restarts(program(each(kind), kind, batches), every) for each in (Many, Each))
    assert repr(found) == repr(expected)


@given(streams(KINDS["text"][1]), st.integers(1, 4), st.booleans())
@settings(max_examples=30)
def test_a_program_changes_from_one_to_the_other_and_keeps_its_maps(batches, change, from_columns):
    kind = Types.STRING()
    first, then = (program(each(kind), kind, batches) for each in ((Many, Each) if from_columns else (Each, Many)))
    one, results = runner(first), []
    for batch in one.batches():
        results.append(by_sink(first, batch))
        if len(results) == change:
            break
    results += [by_sink(then, batch) for batch in runner(then, checkpoint=deepcopy(one.checkpoint)).batches()]
    assert repr(results) == repr(run_with_restarts(then, 100))
