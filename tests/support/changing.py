"""Programs that differ in one thing, for tests of what may change between two runs of a program."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eventide.common import Row, Time, Types, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, OutputTag, ProcessWindowFunction
from eventide.datastream.functions import ProcessJoinFunction, ReduceFunction
from eventide.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import ScriptedSource, local_environment
from support.twin import Contents, plan_of

STRING, LONG, INT, ANY = Types.STRING(), Types.LONG(), Types.INT(), Types.PICKLED_BYTE_ARRAY()
FIELDS = {"k": STRING, "v": LONG, "w": LONG, "at": LONG}
TENS = TumblingEventTimeWindows.of(10)
BY_AT = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row["at"])
ROWS = [
    [("a", 1, 10, 1), ("b", 2, 20, 2), ("a", 3, 30, 3)],
    [("a", 4, 40, 4), ("b", 5, 50, 30)],
    [("a", 6, 60, 300)],
]


def type_of(**kinds):
    """The type of the rows, with other types of some fields, or without them (None)."""
    kept = {name: kind for name, kind in (FIELDS | kinds).items() if kind is not None}
    return Types.ROW_NAMED([*kept], [*kept.values()])


def script(kind, rows):
    """The micro-batches of a source, as rows of a type; a field that the type has more is a text."""
    made = [[dict(zip(FIELDS, row, strict=True)) for row in batch] for batch in rows]
    return [[("s", Row(**{name: row.get(name, "-") for name in kind.field_names})) for row in batch] for batch in made]


@dataclass(frozen=True)
class Program:
    """A program on a stream of rows: ``build`` gives its results, one or several streams."""

    build: Callable
    kind: object = field(default_factory=type_of)
    strategy: WatermarkStrategy = BY_AT
    name: str = "rows"
    parallelism: int = 2
    max_parallelism: int = 128
    max_rows: int | None = None
    source: object = None
    rows: list = field(default_factory=lambda: ROWS)

    def plan(self):
        """A new plan of the program."""
        source = self.source or ScriptedSource(["s"], script(self.kind, self.rows))
        kind = self.kind if self.source is None else None
        stream = local_environment().from_source(source, self.strategy, self.name, kind)
        results = self.build(stream)
        results = results if isinstance(results, tuple) else (results,)
        return plan_of(*results, parallelism=self.parallelism, max_parallelism=self.max_parallelism)

    def without_first(self):
        """The program as it is when its first micro-batch had nothing."""
        return replace(self, rows=[[], *self.rows[1:]])


def program(build, kind=None, **settings):
    """The program of a stream's results, with other settings than most; or a program as it is."""
    if isinstance(build, Program):
        return build
    return Program(build, kind or type_of(), **settings)


def by_key(key=lambda row: row["k"], kind=STRING):
    return lambda stream: stream.key_by(key, kind)


def in_python(row):
    """The key, by a function that is no trace."""
    return bytes(row["k"], "utf-8").decode()


class Remembers(KeyedProcessFunction):
    """Gives what a key has kept, and keeps an element in its place: in a state of some kind, and in others unseen."""

    def __init__(self, descriptor, *unseen):
        self.descriptor = descriptor
        self.unseen = unseen

    def open(self, runtime_context):
        self.state, *self.others = (one.bind(runtime_context) for one in (self.descriptor, *self.unseen))

    def process_element(self, value, ctx):
        for other in self.others:
            other.add(value["v"])
        if isinstance(self.descriptor, MapStateDescriptor):
            yield ctx.get_current_key(), sorted(self.state.items())
            self.state.put(value["v"], value["w"])
        elif isinstance(self.descriptor, ListStateDescriptor):
            yield ctx.get_current_key(), list(self.state.get())
            self.state.add(value["v"])
        else:
            yield ctx.get_current_key(), self.state.value()
            self.state.update(value["v"])


class Counts(ProcessWindowFunction):
    """Gives how many elements there are."""

    def process(self, key, context, elements):
        yield key, len(list(elements))


class Pairs(ProcessJoinFunction):
    """Gives two fields of a pair."""

    def process_element(self, left, right, ctx):
        yield left["v"], right["w"]


class PairsInPython(ProcessJoinFunction):
    """Gives the same as `Pairs`, by what is no trace."""

    def process_element(self, left, right, ctx):
        yield int(str(left["v"])), int(str(right["w"]))


class Adds(ReduceFunction):
    """A fold that columns know."""

    def reduce(self, value1, value2):
        return Row(k=value1["k"], v=value1["v"] + value2["v"], w=value1["w"], at=value1["at"])


class AddsInPython(ReduceFunction):
    """A sum that columns do not recognise."""

    def reduce(self, value1, value2):
        return Row(k=value1["k"], v=int(str(value1["v"])) + value2["v"], w=value1["w"], at=value1["at"])


class Highest(WatermarkGenerator):
    """Remembers the highest time."""

    def __init__(self):
        self.highest = 0

    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.highest - 1))


class HighestToo(Highest):
    """Another class."""


def supplied(generator):
    return WatermarkStrategy.for_generator(lambda _: generator()).with_timestamp_assigner(lambda row, _: row["at"])


BY_K = by_key()


def kept(*descriptors, key=BY_K, uid="kept"):
    return lambda stream: key(stream).process(Remembers(*descriptors)).uid(uid)


def value(name="seen", kind=LONG, *, expires=False):
    """A value state."""
    descriptor = ValueStateDescriptor(name, kind)
    if expires:
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
    return descriptor


def windows(assigner=TENS, with_=lambda w: w, gives=lambda w: w.process(Contents()), key=BY_K, uid="windows"):
    def build(stream):
        result = gives(with_(key(stream).window(assigner)))
        return result if uid is None else result.uid(uid)

    return build


def reduced(function, **more):
    return windows(gives=lambda w: w.reduce(function), **more)


def aggregated(*aggregates, **more):
    return windows(gives=lambda w: w.aggregate(*aggregates), **more)


def joined(gives, reach=5, swapped=False, key="k"):
    """Rows joined with those of another source."""

    def build(stream):
        rows = [[("a", 100, 7, 2)], [("a", 200, 8, 5)], [("b", 300, 9, 400)]]
        other = stream._env.from_source(ScriptedSource(["s"], script(type_of(), rows)), BY_AT, "others", type_of())
        first, second = (other, stream) if swapped else (stream, other)
        pairs = first.key_by(key).interval_join(second.key_by(key))
        return gives(pairs.between(Time.milliseconds(-reach), Time.milliseconds(reach))).uid("joined")

    return build


def from_sources(*names):
    """Elements of several sources in windows, of which the first is far behind the second, and silent for a while."""
    scripts = {
        "slow": [[("a", 1, 10, 5)], [], [("a", 2, 20, 6)], [("a", 3, 30, 300)]],
        "fast": [[("a", 4, 40, 95)], [("a", 5, 50, 196)], [], [("a", 6, 60, 301)]],
        "new": [[], [], [], [("a", 7, 70, 402)]],
    }

    def build(stream):
        env = stream._env
        streams = {
            name: env.from_source(ScriptedSource(["s"], script(type_of(), scripts[name])), BY_AT, name, type_of())
            for name in names
        }
        first, *others = (streams[name] for name in sorted(names))
        united = first.union(*others) if others else first
        return united.key_by("k").window(TENS).process(Contents()).uid("windows")

    return build


def beside(stream):
    return windows()(stream), stream.key_by("w").process(Remembers(value())).uid("beside")


def downstream(stream):
    return windows()(stream).key_by(lambda found: found[0], STRING).process(Passes()).uid("downstream")


class Passes(KeyedProcessFunction):
    """Gives each element."""

    def process_element(self, value, ctx):
        yield value


def with_dead_letters(stream):
    """Windows whose function may set elements aside."""
    results = windows()(stream)
    results.side_output_dead_letters(OutputTag("letters"))
    return results


def rolling(aggregate):
    """A rolling aggregation of rows by key."""
    return lambda stream: aggregate(BY_K(stream)).uid("rolling")
