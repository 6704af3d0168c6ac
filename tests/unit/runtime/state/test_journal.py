"""Values of JSON with large tables in them: what is written follows what has changed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import StateError
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.journal import Journal, has_base, whole

LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.text(max_size=3), st.just([]))
ROWS = st.dictionaries(st.text(max_size=2), st.lists(LEAVES, max_size=2), max_size=4)
VALUES = st.dictionaries(
    st.sampled_from(["splits", "idle", "holder"]),
    st.one_of(
        LEAVES,
        ROWS,
        st.lists(st.one_of(LEAVES, ROWS), max_size=3),
        st.dictionaries(st.text(max_size=1), ROWS, max_size=2),
    ),
)
LARGE = {f"split {n:04}": [1_700_000_000_000 + n, False, True] for n in range(2_000)}


def written_by(backend, content):
    before = dict(backend.values)
    Journal(backend, "gate").write(content)
    return {name: len(value) for name, value in backend.values.items() if value != before.get(name)}


@given(st.lists(st.tuples(VALUES, st.integers(0, 3)), min_size=1, max_size=6))
def test_a_value_comes_back_as_it_was_written_whatever_its_size(values):
    backend = MemoryBackend()
    for value, many in values:
        large = {} if not many else {"many": {name: row if many > 1 else [*row, many] for name, row in LARGE.items()}}
        Journal(backend, "gate").write(value | large)
        assert Journal(backend, "gate").content == value | large
        assert json.loads(whole(backend, "gate")) == value | large


def test_a_small_value_lies_there_as_a_whole_as_before():
    backend, value = MemoryBackend(), {"splits": {"a": [5, False]}, "inputs": [None]}
    Journal(backend, "gate").write(value)
    assert backend.values == {"gate": json.dumps(value).encode()}
    assert not has_base(backend.values["gate"])


def test_of_a_large_value_what_has_changed_is_written():
    backend = MemoryBackend()
    first = written_by(backend, {"splits": LARGE})
    assert first["gate/base"] < len(json.dumps({"splits": LARGE})) / 2
    assert written_by(backend, {"splits": LARGE}) == {}
    changed = LARGE | {"split 0007": [0, True, True], "new": [1, False, True]}
    assert written_by(backend, {"splits": changed}) == {"gate": 91}
    del changed["split 1999"]
    assert written_by(backend, {"splits": changed}) == {"gate": 109}


def test_the_base_is_written_anew_when_much_has_changed():
    backend = MemoryBackend()
    written_by(backend, {"splits": LARGE})
    moved = {name: [at + 60_000, *rest] for name, (at, *rest) in LARGE.items()}
    assert written_by(backend, {"splits": moved}).keys() == {"gate/base"}
    assert Journal(backend, "gate").content == {"splits": moved}


def test_what_is_small_again_has_no_base():
    backend = MemoryBackend()
    written_by(backend, {"splits": LARGE})
    written_by(backend, {"splits": {"a": [1]}})
    assert backend.values == {"gate": b'{"splits": {"a": [1]}}'}


def test_a_large_value_of_an_earlier_version_lies_there_as_a_whole_and_is_read():
    backend = MemoryBackend({"gate": json.dumps({"splits": LARGE}).encode()})
    journal = Journal(backend, "gate")
    assert journal.content == {"splits": LARGE}
    journal.write({"splits": LARGE})
    assert (has_base(backend.values["gate"]), Journal(backend, "gate").content) == (True, {"splits": LARGE})


def test_a_base_that_is_gone_is_an_error_that_says_so():
    backend = MemoryBackend()
    Journal(backend, "gate").write({"splits": LARGE})
    backend.delete("gate/base")
    with pytest.raises(StateError, match="'gate/base' is named by the head of the state, and is not there"):
        Journal(backend, "gate")
