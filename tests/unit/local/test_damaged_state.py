"""State of every kind, of which bytes change between two micro-batches: an error that names it, and no other result."""

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row
from eventide.common.checksum import has_checksum, without_checksum
from eventide.errors import StateError
from eventide.local.host import evidence, take_savepoint
from eventide.local.runner import LocalRunner
from eventide.pickling.pickles import dumps, plain_loads
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.operators import HEAD, OperatorStates, small_values
from eventide.testing import local_environment
from support.disks import outcome
from support.saved_program import streams
from support.twin import plan_of, timed

ROWS = [
    [(split, Row(key=key, amount=number, at=8 * batch + number)) for number, (split, key) in enumerate(["au", "bv"])]
    for batch in range(4)
]
RULES = [[("uvwx"[number], number)] for number in range(4)]
BEFORE = 2


class Job:
    """A job with state of every kind, cut after some micro-batches; and the results that it has from there on."""

    def __init__(self):
        rows = [[(split, row) for split, row in batch] for batch in ROWS]
        self.plan = plan_of(*streams(local_environment(), rows, RULES, bounded=True).values())
        runner = LocalRunner(self.plan, clock=lambda: 0)
        batches = runner.batches()
        for _ in range(BEFORE):
            next(batches)
        self.checkpoint = deepcopy(runner.checkpoint)
        self.values = [(at, name) for at, values in self.checkpoint.state.items() for name in values]
        self.expected = self.results(self.checkpoint)

    def results(self, checkpoint):
        runner = LocalRunner(self.plan, clock=lambda: 0, checkpoint=deepcopy(checkpoint))
        return [batch.elements for batch in runner.batches()]

    def changed(self, at, name, change):
        checkpoint = deepcopy(self.checkpoint)
        checkpoint.state[at][name] = change(checkpoint.state[at][name])
        return checkpoint


@pytest.fixture(scope="module")
def job():
    return Job()


def cut(value, share):
    return value[: int(len(value) * share)]


def flipped(value, share, bits):
    at = min(int(len(value) * share), len(value) - 1)
    return value[:at] + bytes([value[at] ^ bits]) + value[at + 1 :]


SHARES = st.floats(0, 1, exclude_max=True)
CHANGES = st.one_of(
    st.builds(lambda share: lambda value: cut(value, share), SHARES),
    st.builds(lambda share, bits: lambda value: flipped(value, share, bits), SHARES, st.integers(1, 255)),
)


def test_state_of_many_kinds_is_there(job):
    kinds = {name.rpartition("/")[0].partition("/")[2].partition("/")[0] or name for _, name in job.values}
    assert {HEAD, "program", "chunks", "extent", "index", "schema"} <= kinds


@settings(max_examples=25)
@given(st.data())
def test_what_has_changed_in_a_value_is_an_error_that_names_it(job, data):
    at, name = data.draw(st.sampled_from(job.values))
    checkpoint = job.changed(at, name, data.draw(CHANGES))
    found, said = outcome(lambda: job.results(checkpoint), StateError)
    if said:
        assert f"the state {name!r} of subtask {at[1]} of " in said
        assert "is not as it was stored; put a copy of the checkpoint back" in said
    else:
        assert found == job.expected, "it was not read any more"


@pytest.mark.parametrize("change", [lambda value: b"", lambda value: flipped(value, 0, 75)])
def test_a_head_whose_mark_has_changed_or_is_gone_is_an_error_that_names_it(job, change):
    """With 75, the mark and the checksum would be read as a number of a pickle, and all else without its checksum."""
    at = next(at for at, name in job.values if name == HEAD)
    with pytest.raises(StateError, match=f"the state 'head' of subtask {at[1]} of .* is not as it was stored"):
        job.results(job.changed(at, HEAD, change))


@settings(max_examples=25)
@given(st.data())
def test_a_savepoint_is_not_taken_of_state_that_has_changed(job, tmp_path_factory, data):
    at, name = data.draw(st.sampled_from([one for one in job.values if one[1] != HEAD]))
    with pytest.raises(StateError, match="is not as it was stored"):
        take_savepoint(job.plan, job.changed(at, name, data.draw(CHANGES)), str(tmp_path_factory.mktemp("saved") / "s"))


def test_what_is_shown_of_state_is_what_was_stored(job):
    found = evidence(job.plan, job.checkpoint, 0)
    [operator] = [one for one in found.operators if one["name"] == "process" or one["id"] == "process"]
    assert [*found.stored(operator)]
    at, name = next(one for one in job.values if one[1].startswith("process/extent/"))
    with pytest.raises(StateError, match=f"the state '{name}' is not as it was stored"):
        [*evidence(job.plan, job.changed(at, name, lambda value: flipped(value, 0.5, 1)), 0).stored(operator)]


def test_an_error_says_which_keys_are_concerned():
    stream = timed(local_environment(), [("a", 1), ("b", 20)]).key_by(lambda e: e[0])
    plan = plan_of(stream.sum(1).uid("sums").name("sums of words"), parallelism=2)
    runner = LocalRunner(plan, clock=lambda: 0)
    next(runner.batches())
    (at, name) = next(
        (at, name) for at, values in runner.checkpoint.state.items() for name in values if "extent/" in name
    )
    runner.checkpoint.state[at][name] = b""
    stage = plan.stages[0]
    groups = "0 to 63" if at[1] == 0 else "64 to 127"
    with pytest.raises(
        StateError, match=rf"of subtask {at[1]} of 'sums of words', which has the key groups from {groups},"
    ):
        stage.run(at[1], MemoryBackend(runner.checkpoint.state[at]), 0)._states.backend.get(name)


def of_the_version_before(values):
    """The state of a subtask as the version before has stored it: without checksums."""
    found = {name: without_checksum(stored) for name, stored in values.items()}
    return found | {HEAD: dumps(plain_loads(found[HEAD]) | {"format": 3})}


def test_state_of_the_version_before_goes_on_as_it_was_stored(job):
    checkpoint = deepcopy(job.checkpoint)
    checkpoint.state = {at: of_the_version_before(values) for at, values in checkpoint.state.items()}
    assert job.results(checkpoint) == job.expected
    runner = LocalRunner(job.plan, clock=lambda: 0, checkpoint=checkpoint)
    assert len([*runner.batches()]) == len(job.expected)
    heads = [values[HEAD] for values in runner.checkpoint.state.values()]
    assert not any(map(has_checksum, heads))
    assert {plain_loads(head)["format"] for head in heads} == {3}
    assert all(small_values(head) for head in heads)


def test_a_savepoint_of_state_of_the_version_before_is_that_of_today(job, tmp_path):
    before = deepcopy(job.checkpoint)
    before.state = {at: of_the_version_before(values) for at, values in before.state.items()}
    saved = [
        take_savepoint(job.plan, one, str(tmp_path / name)) for name, one in (("a", job.checkpoint), ("b", before))
    ]
    assert saved[0].small_rows() == saved[1].small_rows()
    assert [*saved[0].keyed_rows("process")] == [*saved[1].keyed_rows("process")]


def test_a_head_in_no_form_that_is_known_is_refused():
    for head in (b"", b"\x80\x05N.", b"half", dumps({"small": {}}), dumps({"format": 7})):
        with pytest.raises(
            StateError, match=r"stores state in format|stored data cannot be read|is not as it was stored"
        ):
            OperatorStates(MemoryBackend({HEAD: head}), {})
