"""Values stored under a declared type are brought to a wider one, once, and refused where they do not fit."""

import json

import pytest

from eventide.common import Row, Types
from eventide.errors import StateError
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.declared import DECLARED, LIST, conversions_to, declared_together, types_of
from eventide.runtime.state.keyed import KeyedState

NARROW = Types.ROW_NAMED(["id"], [Types.INT()])
WIDE = Types.ROW_NAMED(["note", "id"], [Types.STRING(), Types.LONG()])


@pytest.fixture
def backend():
    """State that was written with a narrow type: of a key as a whole, of a window, and one that is not declared."""
    backend = MemoryBackend()
    keyed = KeyedState(backend, 4)
    keyed.declare("rows", NARROW)
    for key in range(100):
        keyed.write(key, None, "rows", Row(id=key))
        keyed.write(key, "window", "rows", Row(id=-key))
        keyed.write(key, None, "other", Row(id=key))
    keyed.flush()
    return backend


def test_all_keys_and_windows_of_a_name_are_brought_to_a_wider_type(backend):
    keyed = KeyedState(backend, 4)
    keyed.declare("rows", WIDE)
    keyed.flush()
    entries = KeyedState(backend, 4).all_entries()
    for key in range(100):
        assert entries[key, None] == {"rows": Row(note=None, id=key), "other": Row(id=key)}
        assert entries[key, "window"] == {"rows": Row(note=None, id=-key)}
    assert types_of(backend.get(DECLARED)) == {"rows": str(WIDE)}


def test_a_state_may_become_one_of_any_objects_and_not_the_other_way_round(backend):
    keyed = KeyedState(backend, 4)
    keyed.declare("rows", Types.PICKLED_BYTE_ARRAY())
    keyed.flush()
    again = KeyedState(backend, 4)
    assert again.read(7, None, "rows") == Row(id=7)
    with pytest.raises(StateError, match="was stored as PICKLED_BYTE_ARRAY and is now"):
        again.declare("rows", NARROW)


def test_what_is_not_stored_is_brought_there_again(backend):
    stored = dict(backend.values)
    KeyedState(backend, 4).declare("rows", WIDE)
    assert backend.values == stored


def test_a_type_that_stays_reads_nothing(backend):
    keyed = KeyedState(backend, 4)
    keyed.declare("rows", NARROW)
    assert keyed.keys == []


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Types.ROW_NAMED(["id"], [Types.SHORT()]), "the field 'id': SHORT does not hold all values of INT"),
        (Types.TUPLE([Types.INT()]), "ROW(id: INT) and TUPLE(INT) are of different kinds"),
        (Types.LIST(NARROW), "ROW(id: INT) and LIST(ROW(id: INT)) are of different kinds"),
    ],
)
def test_another_type_is_refused_with_both(backend, kind, why):
    with pytest.raises(StateError) as refused:
        KeyedState(backend, 4).declare("rows", kind)
    assert f"was stored as ROW(id: INT) and is now {kind}, which is not wider: {why}" in str(refused.value)


def test_another_kind_of_state_is_refused_where_it_is_known(backend):
    keyed = KeyedState(backend, 4)
    with pytest.raises(StateError, match=r"was stored as value state and is now list state, .* give the state another"):
        keyed.declare("rows", NARROW, LIST)
    backend.put(DECLARED, json.dumps({"rows": str(NARROW)}).encode())  # as version 0.1.0 has stored it
    keyed = KeyedState(backend, 4)
    keyed.declare("rows", NARROW, LIST)
    keyed.flush()
    with pytest.raises(StateError, match="was stored as list state and is now value state"):
        KeyedState(backend, 4).declare("rows", NARROW)


def stored_as(kind):
    """The declarations of a subtask whose rows have a type, or a kind."""
    return json.dumps({"rows": str(kind)}).encode()


NOTED = Types.ROW_NAMED(["note", "id"], [Types.STRING(), Types.INT()])
COUNTED = Types.ROW_NAMED(["id", "count"], [Types.INT(), Types.INT()])
ANYTHING = Types.PICKLED_BYTE_ARRAY()


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        (NARROW, WIDE, WIDE),
        (NARROW, NOTED, NOTED),
        (COUNTED, WIDE, "ROW(note: STRING, id: LONG, count: INT)"),
        (Types.TUPLE([Types.LIST(NARROW)]), Types.TUPLE([Types.LIST(NOTED)]), Types.TUPLE([Types.LIST(NOTED)])),
        (Types.MAP(Types.INT(), NOTED), Types.MAP(Types.LONG(), NARROW), Types.MAP(Types.LONG(), NOTED)),
        (NARROW, ANYTHING, ANYTHING),
    ],
)
def test_subtasks_that_declared_different_types_get_one_with_the_fields_of_all(one, other, together):
    assert types_of(declared_together(map(stored_as, (one, other)))) == {"rows": str(together)}
    swapped = types_of(declared_together(map(stored_as, (other, one))))["rows"]
    assert sorted(swapped) == sorted(str(together))
    assert types_of(declared_together([stored_as(one)])) == {"rows": str(one)}


def test_values_of_each_subtask_are_brought_to_the_united_type_from_the_type_that_the_subtask_declared():
    together = declared_together(map(stored_as, (NARROW, NOTED)))
    assert conversions_to(together, stored_as(NARROW))["rows"](Row(1)) == Row(None, 1)
    assert conversions_to(together, stored_as(NOTED)) == {}
    assert conversions_to(stored_as(ANYTHING), stored_as(NARROW)) == {}


@pytest.mark.parametrize(
    ("one", "other"), [("value", "list"), (Types.LONG(), Types.STRING()), (NARROW, Types.ROW_NAMED(["a: b"], [NARROW]))]
)
def test_subtasks_whose_declarations_have_nothing_in_common_are_refused(one, other):
    together = declared_together(map(stored_as, (one, other)))
    with pytest.raises(StateError, match="which is not wider"):
        [conversions_to(together, stored_as(kind)) for kind in (one, other)]
