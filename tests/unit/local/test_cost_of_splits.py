"""A micro-batch writes what it changes of the splits, and not all that there is of them."""

import pytest

from eventide.common import Types
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.local.runner import LocalCheckpoint
from eventide.testing import ScriptedSource, local_environment
from support.twin import BY_SECOND_FIELD, Contents, plan_of, runner

MANY = 1_000
SPLITS = [f"orders-{n:04}" for n in range(MANY)]
ALL = [(split, ("x", n)) for n, split in enumerate(SPLITS)]


def written(steps):
    """The bytes of state that each micro-batch wrote, of all subtasks."""
    source = ScriptedSource(SPLITS, steps)
    stream = local_environment().from_source(source, BY_SECOND_FIELD, "orders").key_by(lambda e: e[0], Types.STRING())
    checkpoint, before, sizes = LocalCheckpoint(), {}, []
    for _ in runner(
        plan_of(stream.window(TumblingEventTimeWindows.of(10)).process(Contents())), None, checkpoint
    ).batches():
        now = {(*at, name): value for at, values in checkpoint.state.items() for name, value in values.items()}
        sizes.append(sum(len(value) for name, value in now.items() if value != before.get(name)))
        before = now
    return sizes


def test_what_a_micro_batch_writes_follows_the_splits_that_it_reads():
    first, few, none_of_these = written(
        [ALL, [(split, ("x", 5_000)) for split in SPLITS[-10:]], [(SPLITS[0], ("x", 9))]]
    )[:3]
    assert first > 30 * MANY
    assert few < 6_000
    assert none_of_these < 6_000


@pytest.mark.parametrize("times", [2_000, 3_000])
def test_all_splits_take_some_bytes_each(times):
    _, everything = written([ALL, [(split, ("x", times + n)) for n, split in enumerate(SPLITS)]])[:2]
    assert everything < 110 * MANY
