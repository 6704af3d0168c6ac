"""Pathway: two worker threads of its engine, and its static mode, because its streams of files have no end."""

from __future__ import annotations

import pathway as pw
from contract import GAP_MS, LEAST_VALUE, WINDOW_MS, WITHIN_MS, main


class Event(pw.Schema):
    event: str
    user: str
    at: int
    value: int


def read(events, kind):
    return pw.io.csv.read(events / "whole" / kind, schema=Event, mode="static")


def job(results, out):
    (out / "out").mkdir(parents=True)
    pw.io.csv.write(results, out / "out" / "results.csv")
    return lambda: pw.run(monitoring_level=pw.MonitoringLevel.NONE)


def stateless(events, out):
    large = read(events, "events").filter(pw.apply_with_type(lambda value: value >= LEAST_VALUE, bool, pw.this.value))
    results = large.select(
        user=pw.apply_with_type(lambda user: user.upper(), str, pw.this.user),
        doubled=pw.apply_with_type(lambda value: value * 2, int, pw.this.value),
    )
    return job(results, out)


def windowed(events, out, window):
    sums = read(events, "events").windowby(pw.this.at, window=window, instance=pw.this.user)
    results = sums.reduce(
        user=pw.this._pw_instance, start=pw.this._pw_window_start, total=pw.reducers.sum(pw.this.value)
    )
    return job(results, out)


def tumbling(events, out):
    return windowed(events, out, pw.temporal.tumbling(duration=WINDOW_MS))


def sessions(events, out):
    return windowed(events, out, pw.temporal.session(max_gap=GAP_MS))


def join(events, out):
    one, other = read(events, "events"), read(events, "answers")
    pairs = one.interval_join(other, one.at, other.at, pw.temporal.interval(0, WITHIN_MS), one.event == other.event)
    return job(pairs.select(one.event, one.value, other=other.value), out)


PROGRAMS = {"stateless": stateless, "tumbling": tumbling, "sessions": sessions, "join": join}

if __name__ == "__main__":
    main(PROGRAMS)
