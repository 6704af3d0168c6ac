"""Quix Streams: from topics of two partitions into a topic, with a process of its consumer group for each core.

The processes take seconds to join the group; processing starts with the first event.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import quixstreams.dataframe.windows.aggregations as agg
from contract import BOUND_MS, GAP_MS, LEAST_VALUE, WINDOW_MS, WITHIN_MS, in_processes, say
from quixstreams import Application

QUIET_S = 5.0
"""After how long without an event a process ends: a topic has no end."""


def read(app, topic="events"):
    return app.dataframe(app.topic(topic, key_deserializer="str"))


def stateless(app, out):
    large = read(app).filter(lambda event: event["value"] >= LEAST_VALUE)
    large.apply(lambda event: {"user": event["user"].upper(), "doubled": event["value"] * 2}).to_topic(out)


def windowed(windows, out):
    sums = windows.agg(total=agg.Sum("value")).final(closing_strategy="partition")
    told = sums.apply(
        lambda window, key, *_: {"user": key, "start": window["start"], "total": window["total"]}, metadata=True
    )
    told.to_topic(out)


def tumbling(app, out):
    windowed(read(app).tumbling_window(WINDOW_MS, grace_ms=BOUND_MS), out)


def sessions(app, out):
    windowed(read(app).session_window(GAP_MS, grace_ms=BOUND_MS), out)


def join(app, out):
    one, other = read(app, "events-by-name"), read(app, "answers-by-name")
    pairs = one.join_interval(
        other,
        on_merge=lambda one, other: {"event": one["event"], "value": one["value"], "other": other["value"]},
        grace_ms=BOUND_MS + WITHIN_MS,
        forward_ms=WITHIN_MS,
    )
    pairs.to_topic(out)


PROGRAMS = {"stateless": stateless, "tumbling": tumbling, "sessions": sessions, "join": join}


def work(number, name, place):
    """Run one process of the group; return when it had its first event, and when all that followed was committed."""
    at = []

    def first(*_):
        if not at:
            at.append(time.time())

    app = Application(
        os.environ["PEERS_KAFKA"],
        consumer_group=name,
        auto_offset_reset="earliest",
        state_dir=Path(place, f"state-{number}"),
        on_message_processed=first,
        consumer_poll_timeout=0.1,
        loglevel="WARNING",
    )
    PROGRAMS[name](app, app.topic(f"results-{name}"))
    app.run(timeout=QUIET_S, collect=False)
    return at, time.time() - QUIET_S


if __name__ == "__main__":
    name, _, _, out = sys.argv[1:]
    _, processes = in_processes(work, name, out)
    say(min(start for at, _ in processes for start in at), max(ended for _, ended in processes))
