"""A micro-batch writes what it changes of the splits, and not all that there is of them."""

import pytest

from eventide.common import Types
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.local.host import begun_from, evidence, take_savepoint
from eventide.local.runner import LocalCheckpoint
from eventide.testing import ScriptedSource, local_environment
from eventide.why.standing import standings
from support.twin import BY_SECOND_FIELD, Contents, plan_of, runner

MANY = 1_000
SPLITS = [f"orders-{n:04}" for n in range(MANY)]
ALL = [(split, ("x", n)) for n, split in enumerate(SPLITS)]


def program(steps):
    source = ScriptedSource(SPLITS, steps)
    stream = local_environment().from_source(source, BY_SECOND_FIELD, "orders").key_by(lambda e: e[0], Types.STRING())
    return plan_of(stream.window(TumblingEventTimeWindows.of(10)).process(Contents()).uid("windows"))


def written(steps):
    """The bytes of state that each micro-batch wrote, of all subtasks."""
    checkpoint, before, sizes = LocalCheckpoint(), {}, []
    for _ in runner(program(steps), None, checkpoint).batches():
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


FEW = [(split, ("x", 5_000)) for split in SPLITS[-10:]]


@pytest.fixture
def stopped():
    """The plan and the checkpoint of a run after two micro-batches, of which the second one had few splits."""
    plan, checkpoint = program([ALL, FEW, ALL]), LocalCheckpoint()
    batches = runner(plan, None, checkpoint).batches()
    next(batches), next(batches)
    batches.close()
    assert any(name.endswith("gate/base") for values in checkpoint.state.values() for name in values)
    return plan, checkpoint


def test_why_reads_what_has_changed_since_the_base(stopped):
    (standing,) = standings(evidence(*stopped, 0))
    rows = {split.name: split.record.rows for split in standing.splits}
    assert rows == dict.fromkeys(SPLITS, 1) | dict.fromkeys(SPLITS[-10:], 2)
    assert {split.name: split.watermark for split in standing.splits}[SPLITS[-1]] == 4_999


def test_a_savepoint_has_all_splits(stopped, tmp_path):
    plan, checkpoint = stopped
    begun = begun_from(take_savepoint(plan, checkpoint, str(tmp_path / "saved")), plan)
    expected = [batch.elements for batch in runner(plan, None, checkpoint).batches()]
    assert [batch.elements for batch in runner(plan, None, begun).batches()] == expected
