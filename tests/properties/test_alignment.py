"""Sources that wait for each other: a ten-line model of Flink's rule against what is planned, in whole jobs."""

from copy import deepcopy

from hypothesis import event, example, given
from hypothesis import strategies as st

from eventide.common import WatermarkStrategy
from eventide.datastream.connectors import IDLE, Source
from eventide.datastream.window import TimestampedValue
from eventide.local.runner import LocalCheckpoint
from eventide.testing import local_environment
from support.twin import by_sink, plan_of, runner, values

BOUND = 3


class Log(Source):
    """Splits that are written down: timestamps, in any order, and IDLE. It knows about time if it is said to."""

    def __init__(self, splits, bounded=True, finds_times=False):
        self.items, self.bounded, self.finds_times = splits, bounded, finds_times

    def splits(self):
        return sorted(self.items)

    def latest_position(self, split):
        return len(self.items[split])

    def read(self, split, start, end):
        for place, item in enumerate(self.items[split][start:end], start):
            yield item if item is IDLE else TimestampedValue((split, place), item)

    def is_bounded(self):
        return self.bounded

    def gives_timestamps(self):
        return True

    def gives_watermarks(self):
        return False

    def positions_at(self, timestamp_ms, positions, column=None):
        if not self.finds_times:
            return None
        return {part: before_later(self.items[part], timestamp_ms) for part in positions}


def before_later(items, timestamp_ms):
    """The position before the first element with a later timestamp."""
    later = (place for place, item in enumerate(items) if item is not IDLE and item > timestamp_ms)
    return next(later, len(items))


TIMES = st.integers(0, 200)
SORTED = st.lists(TIMES, max_size=12).map(sorted)
SPLIT = st.one_of(SORTED, st.lists(TIMES, max_size=8), st.lists(st.one_of(TIMES, st.just(IDLE)), max_size=10))
SOURCES = st.lists(st.lists(SPLIT, min_size=1, max_size=3), min_size=1, max_size=3)
DRIFTS = st.lists(st.sampled_from([0, 1, 20, 1000]), min_size=3, max_size=3)


def job(sources, drifts, bounded, finds_times=False):
    """The plan of a job that reads some sources of one group, each with a drift of its own, and collects all."""
    env, streams = local_environment(), []
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(BOUND)
    for number, (splits, drift) in enumerate(zip(sources, drifts, strict=False)):
        log = Log({f"{number}{place}": split for place, split in enumerate(splits)}, bounded, finds_times)
        streams.append(env.from_source(log, strategy.with_watermark_alignment("all", drift), f"log {number}"))
    return plan_of(streams[0].union(*streams[1:]) if len(streams) > 1 else streams[0])


class Model:
    """Where all splits stand: watermarks, those that are idle, those that have ended; and Flink's rule."""

    def __init__(self, sources, drifts, bounded):
        self.bounded = bounded
        self.items = {f"{n}{i}": split for n, splits in enumerate(sources) for i, split in enumerate(splits)}
        self.drift = {name: drifts[int(name[0])] for name in self.items}
        self.watermarks, self.idle, self.at = {}, set(), dict.fromkeys(self.items, 0)

    def counting(self):
        ended = {name for name, items in self.items.items() if self.bounded and self.at[name] == len(items)}
        return {name: ms for name, ms in self.watermarks.items() if name not in ended | self.idle}

    def held(self):
        counting = self.counting()
        return {name for name, ms in counting.items() if ms > min(counting.values()) + self.drift[name]}

    def read(self, positions):
        """Follow a micro-batch; an idle split counts again with its next elements, unless it is idle after them."""
        for name, position in positions.items():
            if (new := self.items[name][self.at[name] : position]) != []:
                times = [item for item in new if item is not IDLE]
                (self.idle.add if new[-1] is IDLE else self.idle.discard)(name)
                if times:
                    self.watermarks[name] = max(max(times) - BOUND - 1, self.watermarks.get(name, -(2**62)))
            self.at[name] = position


def positions_of(checkpoint):
    return {part: at["position"] for parts in checkpoint.offsets.values() for part, at in parts.items()}


def restarted(plan, max_rows, every):
    """The micro-batches of a job that goes on from a copy of its checkpoint after every `every` of them."""
    checkpoint, count = LocalCheckpoint(), 0
    while True:
        one = runner(plan, max_rows, deepcopy(checkpoint))
        for batch in one.batches():
            yield one.checkpoint, batch
            count += 1
            if count % every == 0:
                break
        else:
            return
        checkpoint = one.checkpoint


def check_the_end(model, found):
    """All has been read, each element once; only a split that must wait for one that may go on has something left."""
    left = {name for name, items in model.items.items() if model.at[name] < len(items)}
    assert left <= (set() if model.bounded else model.held())
    read = {name: items[: model.at[name]] for name, items in model.items.items()}
    elements = [(name, i) for name, items in read.items() for i, item in enumerate(items) if item is not IDLE]
    assert sorted(values(found)) == sorted(elements)


@given(SOURCES, DRIFTS, st.booleans(), st.integers(1, 9), st.sampled_from([1, 3, 1000]))
def test_who_is_ahead_by_flinks_rule_waits_and_no_other_does(sources, drifts, bounded, max_rows, every):
    plan, model, found = job(sources, drifts, bounded), Model(sources, drifts, bounded), []
    for checkpoint, batch in restarted(plan, max_rows, every):
        before, held = dict(model.at), model.held()
        model.read(positions_of(checkpoint))
        moved = {name for name, position in model.at.items() if position != before[name]}
        left = {name for name, items in model.items.items() if before[name] < len(items)}
        said = {p for parts in checkpoint.offsets.values() for p, at in parts.items() if at.get("rest") == "held"}
        assert moved == left - held
        assert said == held
        event(f"somebody is held: {bool(held)}")
        found.append(by_sink(plan, batch))
    check_the_end(model, found)


LIMITS = st.one_of(st.none(), st.integers(1, 30))


@given(SOURCES, DRIFTS, st.booleans(), LIMITS, st.sampled_from([1, 3, 1000]))
@example(sources=[[[17], [18, 19]]], drifts=[1, 0, 0], bounded=False, max_rows=None, every=1000)
@example(sources=[[[0], [1, 1]]], drifts=[1, 0, 0], bounded=False, max_rows=None, every=1000)
@example(sources=[[[0], [62, 63, 63]]], drifts=[1000, 0, 0], bounded=False, max_rows=1, every=1)
def test_where_positions_follow_from_time_nobody_is_ahead_by_more_than_one_row(
    sources, drifts, bounded, max_rows, every
):
    plan, model, found = job(sources, drifts, bounded, finds_times=True), Model(sources, drifts, bounded), []
    for checkpoint, batch in restarted(plan, max_rows, every):
        at, counted = dict(model.at), model.counting()
        model.read(positions_of(checkpoint))
        still = [ms for name, ms in model.counting().items() if name in counted]
        for name in counted if still else ():
            read = [item for item in model.items[name][at[name] : model.at[name]] if item is not IDLE]
            allowed = max(min(counted.values()), min(still)) + model.drift[name]
            assert all(ms - BOUND - 1 <= allowed for ms in read[:-1])
        for number, splits in enumerate(sources if max_rows is not None else ()):
            rows = sum(model.at[name] - at[name] for name in at if name[0] == str(number))
            assert rows <= max(max_rows, 2 * len(splits))
        found.append(by_sink(plan, batch))
    check_the_end(model, found)
