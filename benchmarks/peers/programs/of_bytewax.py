"""Bytewax: a worker in each of two processes, because the threads of one would share Python's lock."""

from __future__ import annotations

import socket
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bytewax.operators as op
from bytewax.connectors.files import DirSink, DirSource
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, SessionWindower, TumblingWindower, fold_window
from bytewax.run import cli_main
from contract import BOUND_MS, CORES, GAP_MS, LEAST_VALUE, WINDOW_MS, in_processes, say

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CLOCK = EventClock(
    ts_getter=lambda event: EPOCH + timedelta(milliseconds=event[2]),
    wait_for_system_duration=timedelta(milliseconds=BOUND_MS),
    to_system_utc=lambda _: None,  # windows of long ago: only events and the end of the input close them
)


def parse(line):
    name, user, at, value = line.split(",")
    return None if name == "event" else (name, user, int(at), int(value))


def stateless(events):
    large = op.filter("large", events, lambda event: event[3] >= LEAST_VALUE)
    return op.map("double", large, lambda event: (event[1], f"{event[1].upper()},{event[3] * 2}"))


def tumbling(events):
    windowed = fold_window(
        "sum",
        op.key_on("user", events, lambda event: event[1]),
        CLOCK,
        TumblingWindower(length=timedelta(milliseconds=WINDOW_MS), align_to=EPOCH),
        builder=lambda: 0,
        folder=lambda total, event: total + event[3],
        merger=lambda one, other: one + other,
        ordered=False,
    )
    return op.map("line", windowed.down, lambda one: (one[0], f"{one[0]},{one[1][0] * WINDOW_MS},{one[1][1]}"))


def sessions(events):
    windowed = fold_window(
        "sum",
        op.key_on("user", events, lambda event: event[1]),
        CLOCK,
        SessionWindower(gap=timedelta(milliseconds=GAP_MS)),
        builder=lambda: (sys.maxsize, 0),
        folder=lambda session, event: (min(session[0], event[2]), session[1] + event[3]),
        merger=lambda one, other: (min(one[0], other[0]), one[1] + other[1]),
        ordered=False,
    )
    return op.map("line", windowed.down, lambda one: (one[0], f"{one[0]},{one[1][1][0]},{one[1][1][1]}"))


PROGRAMS = {"stateless": stateless, "tumbling": tumbling, "sessions": sessions}


def work(number, addresses, name, events, out):
    flow = Dataflow(name)
    lines = op.input("read", flow, DirSource(Path(events)))
    op.output("write", PROGRAMS[name](op.filter_map("parse", lines, parse)), DirSink(Path(out), CORES))
    time.sleep(number / 4)  # a process that finds the one before it not listening yet waits for a second
    cli_main(flow, process_id=number, addresses=addresses)
    return time.time()


def free_addresses():
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in (one, other)]


if __name__ == "__main__":
    name, events, _, out = sys.argv[1:]
    results = Path(out, "results", "out")
    results.mkdir(parents=True)
    started, ended = in_processes(work, free_addresses(), name, f"{events}/whole/events", str(results))
    say(started, max(ended))
