"""A program whose classes are those of its main file: elements, keys, windows, state; told from where to go on.

python program_of_classes.py twin|worker|spark CHECKPOINT EVENTS UNTIL [BOUND]

EVENTS is a file of JSON: micro-batches of (number of a customer, number of a colour, amount, second). It handles those
up to UNTIL, or all, up to the end of the stream, where UNTIL is "end"; and prints its results, as JSON. As "worker"
it runs on the twin, but with a main file that has nothing, like that of a worker of Spark. Orders may be out of order
by BOUND seconds, which its own generator of watermarks gets.
"""

from __future__ import annotations

import enum
import json
import pickle
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from eventide.common import TimestampAssigner, Types, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import EventTimeTrigger, Window, WindowAssigner
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.testing import ScriptedSource


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Place(NamedTuple):
    city: str
    zone: int


@dataclass(frozen=True)
class Customer:
    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Shade:
    colour: Colour


@dataclass
class Order:
    """An element: a class that is not frozen, with others in it."""

    customer: Customer
    colour: Colour
    amount: int
    second: int


class Seen:
    """State with slots."""

    __slots__ = ("colours", "orders")

    def __init__(self):
        self.orders, self.colours = [], set()


class Ten(Window):
    """Ten seconds, by number."""

    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number

    def max_timestamp(self):
        return self.number * 10_000 + 9_999

    def __eq__(self, other):
        return isinstance(other, Ten) and other.number == self.number

    def __hash__(self):
        return hash(self.number)


class Tens(WindowAssigner):
    def assign_windows(self, element, timestamp, context):
        return [Ten(timestamp // 10_000)]

    def get_default_trigger(self, env=None):
        return EventTimeTrigger.create()

    def is_event_time(self):
        return True

    @property
    def has_time_windows(self):
        return False


class Trailing(WatermarkGenerator):
    """Learns the highest time, and has a bound as its parameter."""

    def __init__(self, bound_ms):
        self.bound_ms, self.highest = bound_ms, 0

    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.highest - self.bound_ms - 1))


class ByOrder(WatermarkStrategy):
    """A strategy of the program's own, whose assigner counts what it has seen."""

    def __init__(self, bound_ms):
        self.bound_ms = bound_ms

    def create_timestamp_assigner(self, context):
        return OrderTime()

    def create_watermark_generator(self, context):
        return Trailing(self.bound_ms)


class OrderTime(TimestampAssigner):
    """Gives the second of an order, and learns which customers there are."""

    def __init__(self):
        self.customers = set()

    def extract_timestamp(self, value, record_timestamp):
        self.customers.add(value.customer)
        return value.second * 1000


class Report(ProcessWindowFunction):
    """Says what is in a window, and what its key has seen in all windows so far."""

    def process(self, key, context, elements):
        state = context.global_state().get_state(ValueStateDescriptor("seen", Types.PICKLED_BYTE_ARRAY()))
        seen = state.value() or Seen()
        for order in elements:
            seen.colours.add(order.colour)
            seen.orders.append(order)
        state.update(seen)
        inside = [(o.customer.name, o.colour.name, o.amount) for o in elements]
        doubled = len(seen.orders) - sum(1 for n, o in enumerate(seen.orders) if o not in seen.orders[:n])
        yield f"{key} {context.window().number} {inside} {sorted(c.name for c in seen.colours)} {doubled}"


def larger(one, other):
    """The order with the larger amount, the former of two that are equal."""
    return other if other.amount > one.amount else one


def program(env, batches, bounded, bound_ms):
    """Orders by customer, by colour, and by place and shade, each in windows of the program's own."""
    script = [
        [
            ("split", Order(Customer(f"c{who}", Place(f"p{who % 2}", who)), Colour(colour), amount, second))
            for who, colour, amount, second in batch
        ]
        for batch in batches
    ]
    orders = env.from_source(ScriptedSource(["split"], script, bounded=bounded), ByOrder(bound_ms), "orders")
    by_customer = orders.key_by(lambda order: order.customer).window(Tens()).process(Report())
    by_colour = orders.key_by(lambda order: order.colour).window(Tens()).process(Report())
    by_both = orders.key_by(lambda order: (order.customer.place, Shade(order.colour))).window(Tens()).reduce(larger)
    return by_customer.union(by_colour, by_both.map(str))


def main(host, checkpoint, events, until, bound="3"):
    """Run it from where the checkpoint stands; return the results."""
    batches = json.loads(Path(events).read_text())
    bounded = until == "end"
    build = partial(program, batches=batches if bounded else batches[: int(until)], bounded=bounded)
    build = partial(build, bound_ms=1000 * int(bound))
    if host == "worker":
        sys.modules["__main__"] = ModuleType("__main__")
    if host != "spark":
        return on_the_twin(Path(checkpoint), build)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    return list(build(env).execute_and_collect())


def on_the_twin(file, build):
    """Run it on the twin, whose checkpoint is a file."""
    from eventide.testing import local_environment
    from support.twin import plan_of, values

    checkpoint = pickle.loads(file.read_bytes()) if file.exists() else LocalCheckpoint()
    plan = plan_of(build(local_environment()))
    runner = LocalRunner(plan, clock=lambda: 0, checkpoint=checkpoint)
    results = [[batch.elements.get(sink.number, []) for sink in plan.sinks] for batch in runner.batches()]
    file.write_bytes(pickle.dumps(runner.checkpoint))
    return values(results)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
