"""A program with state of every kind, for tests that save it and go on; each result is a text, its operator first."""

from dataclasses import dataclass

from eventide.aggregates import count, first, max_, min_, sum_
from eventide.common import Row, Time, Types, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, ProcessWindowFunction
from eventide.datastream.functions import (
    KeyedBroadcastProcessFunction,
    ProcessJoinFunction,
    ReduceFunction,
)
from eventide.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from eventide.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from eventide.joins import left, right
from eventide.testing import ScriptedSource

ROWS = Types.ROW_NAMED(["key", "amount", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])
WIDE = Types.ROW_NAMED(["note", "at", "amount", "key"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING()])
RULES = MapStateDescriptor("everybody's rules", Types.STRING(), Types.LONG())
TEN, TWENTY = Time.milliseconds(10), Time.milliseconds(20)


class Lagging(WatermarkGenerator):
    """Learns the highest timestamp."""

    def __init__(self):
        self.highest = None

    def on_event(self, event, event_timestamp, output):
        self.highest = event_timestamp if self.highest is None else max(self.highest, event_timestamp)

    def on_periodic_emit(self, output):
        if self.highest is not None:
            output.emit_watermark(Watermark(self.highest - 1))


@dataclass
class Seen:
    """A value of a class of the program's own."""

    amount: int


class Remembers(KeyedProcessFunction):
    """State of each kind, and a timer of event time that shows it."""

    def __init__(self, rows):
        self.rows = rows

    def open(self, runtime_context):
        self.row = runtime_context.get_state(ValueStateDescriptor("row", self.rows))
        self.found = runtime_context.get_map_state(MapStateDescriptor("found", Types.LONG(), self.rows))
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.LONG()))
        self.by_amount = runtime_context.get_map_state(MapStateDescriptor("by", Types.LONG(), Types.LONG()))
        self.total = runtime_context.get_reducing_state(ReducingStateDescriptor("total", _add, Types.LONG()))

    def process_element(self, value, ctx):
        self.row.update(value)
        self.found[value["amount"] % 3] = value
        self.last.update(Seen(value["amount"]))
        self.all.add(value["amount"])
        self.by_amount[value["amount"] % 3] = value["at"]
        self.total.add(value["amount"])
        ctx.timer_service().register_event_time_timer(value["at"] + 15)

    def on_timer(self, timestamp, ctx):
        kept = self.last.value().amount, list(self.all.get()), sorted(self.by_amount.items()), self.total.get()
        rows = [self.row.value(), *(row for _, row in sorted(self.found.items()))]
        yield f"process {ctx.get_current_key()} {timestamp} {kept} {[field_of(row, 'note') for row in rows]}"


class Ruled(KeyedBroadcastProcessFunction):
    """Each element with the rule of its key."""

    def process_element(self, value, ctx):
        yield f"ruled {value['key']} {value['amount']} {ctx.get_broadcast_state(RULES).get(value['key'])}"

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES)[value[0]] = value[1]


class Listed(ProcessWindowFunction):
    """All elements of a window."""

    def process(self, key, context, elements):
        window = context.window()
        found = [(value["amount"], field_of(value, "note")) for value in elements]
        yield f"listed {key} {window.start} {window.end} {found}"


class Concatenates(ReduceFunction):
    """Is not associative."""

    def reduce(self, value1, value2):
        value1["amount"], value1["at"] = 2 * value1["amount"] + value2["amount"], value2["at"]
        return value1


class Pairs(ProcessJoinFunction):
    """Both amounts."""

    def process_element(self, left, right, ctx):
        yield f"pair {left['key']} {left['amount']} {right['amount']} {ctx.get_timestamp()}"


def of_type(row, kind):
    """The row with the fields of a type; None in those that it does not have."""
    return Row(**{name: row.as_dict().get(name) for name in kind.get_field_names()})


def field_of(row, name):
    """A field that only later rows have: None for those of a program that has no such field."""
    return row[name] if name in row.get_field_names() else None


def _add(one, other):
    return one + other


def streams(env, batches, rules, *, bounded, has_another=False, rows_type=ROWS):
    """The streams of the program: ``batches`` are micro-batches of (split, row), ``rules`` of what is broadcast."""
    at = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row["at"])
    learning = WatermarkStrategy.for_generator(Lagging).with_timestamp_assigner(lambda row, _: row["at"])
    script = ScriptedSource(["a", "b"], batches, rows_type, bounded=bounded)
    said = ScriptedSource(["r"], [[("r", rule) for rule in some] for some in rules], bounded=bounded)
    rows = env.from_source(script, at, "rows", rows_type)
    learnt = env.from_source(script, learning, "learnt", rows_type)
    ruled = env.from_source(said, WatermarkStrategy.no_watermarks(), "rules").broadcast(RULES)
    by_key, by_name = rows.key_by(lambda row: row["key"], Types.STRING()), rows.key_by("key")
    interval = by_name.interval_join(learnt.key_by("key")).between(-5, 5)
    totals = [count().alias("n"), sum_("amount").alias("total")]
    on_columns = {
        "tumbling": TumblingEventTimeWindows.of(TEN),
        "twenty": TumblingEventTimeWindows.of(TWENTY),
        "sliding": SlidingEventTimeWindows.of(TWENTY, Time.milliseconds(7)),
        "sessions": EventTimeSessionWindows.with_gap(TEN),
    }
    every_five = ContinuousEventTimeTrigger.of(Time.milliseconds(5))
    in_windows = rows.join(learnt).where("key").equal_to("key").window(on_columns["twenty"])
    two_stages = by_name.window(on_columns["tumbling"]).aggregate(*totals).uid("first stage").key_by("n")
    two_stages = two_stages.window(on_columns["sliding"])
    listed = learnt.key_by(lambda row: row["key"], Types.STRING())
    relearnt = by_key.window(TumblingEventTimeWindows.of(TEN)).reduce(Concatenates()).uid("reduced")
    relearnt = relearnt.assign_timestamps_and_watermarks(learning).uid("learning")
    relearnt = relearnt.key_by(lambda row: row["key"], Types.STRING())
    rolling = by_key.sum("amount").uid("rolling").map(lambda row: f"rolling {row['key']} {row['amount']}")
    found = {
        **{name: by_name.window(windows).aggregate(*totals) for name, windows in on_columns.items()},
        "two": two_stages.aggregate(count().alias("m"), sum_("total").alias("sum")),
        "extremes": by_name.window(on_columns["twenty"]).aggregate(min_("amount"), max_("amount"), first("at")),
        "continuous": by_name.window(on_columns["twenty"]).trigger(every_five).aggregate(*totals),
        "counted": by_name.count_window(3).aggregate(*totals),
        "last three": by_name.count_window(3, 2).aggregate(*totals),
        "process": by_key.process(Remembers(rows_type)),
        "ruled": by_key.connect(ruled).process(Ruled()),
        "listed": listed.window(TumblingEventTimeWindows.of(TEN)).process(Listed()),
        "listed sessions": listed.window(EventTimeSessionWindows.with_gap(TEN)).process(Listed()),
        "counting trigger": listed.window(on_columns["twenty"]).trigger(CountTrigger.of(2)).process(Listed()),
        "evicted": listed.window(on_columns["twenty"]).evictor(CountEvictor.of(2)).process(Listed()),
        "generator behind windows": relearnt.window(on_columns["twenty"]).process(Listed()),
        "interval join": by_key.interval_join(listed).between(-5, 5).process(Pairs()),
        "joined": interval.select(left("amount"), right("at")),
        "met": in_windows.select(left("amount"), right("at"), how="left"),
        "all": rows.window_all(TumblingEventTimeWindows.of(TEN)).aggregate(*totals),
    }
    found = {name: _texts(name, stream.uid(name)) for name, stream in found.items()}
    found["rolling"] = rolling
    if has_another:
        found["another"] = by_key.window(TumblingEventTimeWindows.of(TWENTY)).process(Another())
    return found


class Another(ProcessWindowFunction):
    """Only a later program has it."""

    def process(self, key, context, elements):
        yield f"another {key}"


def _texts(name, stream):
    return stream.map(lambda row: row if isinstance(row, str) else f"{name} {row}")
