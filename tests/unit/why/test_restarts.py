"""Answers of why survive: after a restart, in the middle of whatever micro-batch, they are as without one."""

import copy
import itertools
import json

import pytest

from eventide.common import Time
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.local.host import evidence
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.testing import Idle
from eventide.why import why
from support.stories import NOON, bounded, windows
from support.twin import plan_of

STEP = 20_000


def batch(minute, *splits):
    return [(split, NOON + 60_000 * minute + second) for second in range(0, 60_000, 7_000) for split in splits]


BATCHES = [
    batch(0, "p0", "p1", "p2"),
    [*batch(1, "p0", "p1"), Idle("p2")],  # not with_idleness: timeouts begin anew with each run
    [("p0", NOON + 1_000), *batch(2, "p0", "p1")],
    [*batch(3, "p1"), ("p1", NOON + 2_000)],
    [*batch(9, "p0", "p1", "p2"), ("p2", NOON)],
    [*batch(10, "p0"), Idle("p1"), Idle("p2")],
]


def program(name):
    first = windows(BATCHES, bounded()).name(name).uid("first")
    hours = first.key_by(lambda order: order[0]).window(TumblingEventTimeWindows.of(Time.hours(1)))
    return hours.reduce(max).name("behind").uid("second")


def run(killed_in=None, renamed="latest"):
    """The answer at the end, if the job is killed in the middle of a micro-batch, too: it leaves no trace."""
    plan = plan_of(program("latest"))
    checkpoint = LocalCheckpoint()

    def batches():
        return LocalRunner(plan, clock=lambda: NOON + STEP * checkpoint.batch, checkpoint=checkpoint).batches()

    if killed_in is not None:
        for _ in itertools.islice(batches(), killed_in):
            pass
        kept = copy.deepcopy(checkpoint)
        next(batches(), None)
        checkpoint, plan = kept, plan_of(program(renamed))
    for _ in itertools.islice(batches(), 8 - (killed_in or 0)):
        pass
    known = evidence(plan, checkpoint, NOON + 8 * STEP)
    return why(known).to_json(), known.counters(), [known.held(one) for one in known.operators]


@pytest.fixture(scope="module")
def undisturbed():
    return run()


def test_there_is_something_to_remember(undisturbed):
    said, counters, _ = undisturbed
    assert said["operators"][0]["late"]["elements"] == 3
    assert counters["latest"]["numRecordsIn"] == sum(map(len, BATCHES)) - 3  # the idle markers


@pytest.mark.parametrize("killed_in", range(7))
def test_after_a_restart_it_says_the_same(killed_in, undisturbed):
    assert run(killed_in) == undisturbed


def test_an_operator_that_is_renamed_at_a_restart_keeps_what_it_remembers(undisturbed):
    said = json.dumps(undisturbed).replace("latest", "newest")
    assert json.dumps(run(3, renamed="newest")) == said
