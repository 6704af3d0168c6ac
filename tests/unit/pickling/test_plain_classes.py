"""Each plain class, why data may have objects of it, and what a pickle cannot make of it."""

import datetime
import importlib
import os
import pathlib
import pickle
import random
import subprocess
import sys
import uuid
import zoneinfo

import numpy as np
import pytest

from eventide.errors import StateError
from eventide.pickling.pickles import ProgramClasses, bring, class_of_name, dumps, loads
from eventide.pickling.plain_classes import INSTEAD, PLAIN_CLASSES
from eventide.pickling.stand_ins import StandIn, loads_anyway, shown_loads

CONSTANT = "its type cannot be changed, and to make one looks at its arguments and nothing else"
EXCEPTION = "keeps its arguments; its state is attributes of its own"
PYTHON = "its constructor computes with its arguments, in Python: it opens, imports, sends and calls nothing else"
CHECKED = "a function of eventide's own, which checks types, sizes and buffers, takes its place"
ARROW = "makes types, tables and scalars of Arrow's from values and from arrays that eventide has checked"
PANDAS = "makes a time from numbers and a time zone"
ZONES = "reads a file of time zones, whose name Python keeps below its own folders"
STATE = "its state is checked by Python's own code in C"
FINDS = "gives a class that data may name, and nothing else"
OURS = "a class of eventide's that keeps what it is given"
FORMER = "the name that older checkpoints have for a class of eventide's: the class itself takes its place"

REASONS = {
    CONSTANT: {
        "builtins": "bool int float complex str bytes bytearray list tuple dict set frozenset slice range object",
        "array": "array",
        "collections": "OrderedDict defaultdict deque",
        "datetime": "date datetime time timedelta timezone",
        "decimal": "Decimal",
        "types": "SimpleNamespace",
    },
    STATE: {"array": "_array_reconstructor", "random": "Random"},
    PYTHON: {
        "collections": "ChainMap Counter UserDict UserList UserString",
        "fractions": "Fraction",
        "ipaddress": "IPv4Address IPv4Interface IPv4Network IPv6Address IPv6Interface IPv6Network",
        "pathlib": "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath",
        "statistics": "NormalDist",
        "uuid": "SafeUUID UUID",
    },
    ZONES: {"zoneinfo": "ZoneInfo ZoneInfo._unpickle"},
    CHECKED: {
        "builtins": "getattr",
        "re": "_compile",
        "numpy": "dtype ndarray",
        "numpy._core.multiarray": "_reconstruct scalar",
        "numpy._core.numeric": "_frombuffer",
        "numpy.core.multiarray": "_reconstruct scalar",
        "numpy.core.numeric": "_frombuffer",
        "pandas._libs.tslibs.nattype": "_nat_unpickle",
        "pandas._libs.tslibs.timestamps": "_unpickle_timestamp",
        "pyarrow.lib": "_restore_array py_buffer",
    },
    ARROW: {
        "pyarrow.lib": "_reconstruct_record_batch _reconstruct_table binary chunked_array decimal128 decimal256 "
        "dictionary field large_list list_ map_ scalar schema struct timestamp type_for_alias"
    },
    PANDAS: {
        "pandas._libs.tslibs.timedeltas": "_timedelta_unpickle",
    },
    FINDS: {"eventide.pickling.pickles": "class_of_name"},
    OURS: {
        "eventide.pickling.stand_ins": "_made",
        "eventide.common.time": "Duration Instant Time",
        "eventide.common.types": "Row RowKind _restore",
        "eventide.common.watermark": "Watermark",
        "eventide.common.watermark_generator": "WatermarkGeneratorContext",
        "eventide.common.windows": "CountWindow GlobalWindow TimeWindow",
        "eventide.connectors.kafka._offsets": "KafkaTopicPartition",
        "eventide.connectors.kafka._records": "ConsumerRecord",
        "eventide.api.source": "Counted _Idle",
        "eventide.api.functions.timers": "TimeDomain",
        "eventide.api.windows._evictors": "TimestampedValue",
        "eventide.runtime.joins.windowed": "OnSide",
        "eventide.runtime.window.aggregated_contents": "_Kept",
        "eventide.runtime.window.contents": "Accumulated",
    },
    FORMER: {
        "eventide.api.functions.time_domain": "TimeDomain",
        "eventide.api.windows._windows": "CountWindow GlobalWindow TimeWindow",
        "eventide.common._pickles": "class_of_name",
        "eventide.common._stand_ins": "_made",
        "eventide.common.time_window": "CountWindow GlobalWindow TimeWindow",
        "eventide.datastream.connectors.kafka._offsets": "KafkaTopicPartition",
        "eventide.datastream.connectors.kafka._records": "ConsumerRecord",
        "eventide.datastream.connectors.source": "Counted _Idle",
        "eventide.datastream.time_domain": "TimeDomain",
        "eventide.datastream.window._evictors": "TimestampedValue",
        "eventide.datastream.window._windows": "CountWindow GlobalWindow TimeWindow",
        "eventide.runtime.columnar.contents": "_Kept",
    },
}

REASON_OF = {
    (module, name): reason for reason, of in REASONS.items() for module, names in of.items() for name in names.split()
}

READERS = [loads, shown_loads, loads_anyway]


def of_exceptions(at):
    module, name = at
    kind = getattr(importlib.import_module("builtins"), name, None) if module == "builtins" else None
    return isinstance(kind, type) and issubclass(kind, BaseException)


def named(at):
    """The opcodes that find a name."""
    return b"".join(b"X" + len(text).to_bytes(4, "little") + text.encode() for text in at) + b"\x93"


def built(what, state):
    """A pickle that sets the state of what some opcodes leave."""
    return b"\x80\x05" + what + pickle.dumps(state, 5)[2:-1] + b"b."


class Calls:
    """Pickles as a call of something, as anybody may write it."""

    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


def real(at):
    module, name = INSTEAD.get(at, at)
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        pytest.skip(f"this version has no {'.'.join(at)}")
    return found


@pytest.mark.parametrize("at", sorted(PLAIN_CLASSES), ids=".".join)
def test_every_plain_class_has_a_reason_and_no_pickle_changes_it(at):
    reason = REASON_OF.get(at) or (EXCEPTION if of_exceptions(at) else None)
    assert reason is not None, f"say in REASONS why it is safe that a pickle of anybody's has objects of {at}"
    found = real(at)
    if reason is CONSTANT:
        with pytest.raises(TypeError, match="immutable type"):
            found.is_set = 1
    before = dict(getattr(found, "__dict__", {}))
    for read in READERS:
        for state in (None, {"is_set": 1}), {"is_set": 1}, (None, {"__init__": 1, "__defaults__": (1,)}):
            with pytest.raises((StateError, TypeError, AttributeError, ValueError)):
                read(built(named(at), state))
        assert dict(getattr(found, "__dict__", {})) == before


def test_no_reason_is_left_over():
    assert REASON_OF.keys() <= PLAIN_CLASSES


class Order:
    """A class of the program."""

    price = 1

    def __init__(self, of=None):
        self.of = of


class Meta(type):
    """A class whose objects are classes."""


def in_this_module(kind):
    return named((__name__, kind.__qualname__))


@pytest.fixture
def program():
    bring(ProgramClasses(own=(Order,), packages=frozenset({__name__.partition(".")[0]})))


ATTACKS = {
    "a plain class": lambda: built(named(("pathlib", "PurePath")), (None, {"__fspath__": 1})),
    "one of the program": lambda: built(in_this_module(Order), (None, {"price": 2})),
    "one that is found by a call": lambda: built(
        pickle.dumps(Calls(class_of_name, __name__, "Order"), 5)[2:-1], (None, {"price": 2})
    ),
    "a class that was kept": lambda: (
        b"\x80\x05" + in_this_module(Order) + b"\x94" + built(b"0h\x00", (0, {"price": 2}))[2:]
    ),
    "after objects of it": lambda: (
        b"\x80\x05(" + pickle.dumps(Order(), 5)[2:-1] + built(in_this_module(Order), (None, {"price": 2}))[2:-1] + b"t."
    ),
}


@pytest.mark.parametrize("read", [loads, loads_anyway])
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.usefixtures("program")
def test_state_is_set_on_no_class(attack, read):
    with pytest.raises(StateError, match=r"would set attributes of .*none of that was done"):
        read(ATTACKS[attack]())
    assert Order.price == 1
    assert os.fspath(pathlib.PurePath("a")) == "a"


@pytest.mark.usefixtures("program")
def test_classes_are_values_of_state_too():
    """A stand-in makes the objects; the value contains the class itself, also if an object refers to it."""
    assert loads(dumps([Order, pathlib.PurePath])) == [Order, pathlib.PurePath]
    [kept, alone] = loads(dumps([Order(Order), Order]))
    assert type(kept) is kept.of is alone is Order


def made_of(*kinds):
    """A function that makes objects, and looks at what it gets for that."""
    return Made("function", [kind is Order and issubclass(kind, Order) for kind in flat(kinds)])


def flat(kinds):
    return [one for kind in kinds for one in (flat(kind) if isinstance(kind, tuple | list) else [kind])]


class Made:
    """Says what its maker saw of its arguments."""

    def __init__(self, maker, seen):
        self.maker, self.seen = maker, [one if isinstance(one, bool) else one is Order for one in flat(seen)]

    def __reduce__(self):
        return self.how


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("arguments", [(Order,), ((Order,), [Order, Order])])
@pytest.mark.parametrize("maker", [made_of, Made])
def test_what_makes_an_object_of_a_class_is_given_the_class_itself(maker, arguments):
    bring(ProgramClasses(registered=frozenset({(__name__, "made_of")})))
    stored = Made("", [])
    stored.how = (maker, arguments if maker is made_of else ("class", [*arguments]))
    again = loads(dumps([stored, 1]))[0]
    assert again.maker == ("function" if maker is made_of else "class")
    assert again.seen == [True] * len(flat(arguments))


@pytest.mark.usefixtures("program")
def test_an_argument_may_contain_itself():
    bring(ProgramClasses(registered=frozenset({(__name__, "length_of")})))
    cycle = [1, 2]
    cycle.append(cycle)
    stored = Made("", [])
    stored.how = (length_of, (cycle, {"of": cycle}))
    assert loads(dumps(stored)).seen == [False] * 3


def length_of(values, by_name):
    """A function that makes an object of a list that contains itself."""
    assert by_name["of"] is values
    return Made("length", [None] * len(values))


@pytest.mark.usefixtures("program")
def test_classes_of_classes_are_not_data():
    with pytest.raises(StateError, match="not a class that the program is known to use"):
        loads(b"\x80\x05" + in_this_module(Meta) + b"X\x01\x00\x00\x00A)}\x87R.")


def test_members_of_enums_are_shared_and_stay_what_they_are():
    from eventide.common import RowKind

    with pytest.raises(StateError, match="would set attributes of an object of RowKind"):
        loads(built(pickle.dumps(RowKind.INSERT, 5)[2:-1], {"_value_": 7}))
    assert RowKind.INSERT.value == 0
    assert loads(dumps(RowKind.INSERT)) is RowKind.INSERT


FOREIGN = (0x4141414141414141).to_bytes(8, "little")


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "attack",
    [
        Calls(np.ndarray, (1,), np.dtype(object), FOREIGN),
        Calls(np.frombuffer, FOREIGN, np.dtype(object)),
        Calls(np._core.numeric._frombuffer, FOREIGN, np.dtype(object), (1,), "C"),
        Calls(np._core.numeric._frombuffer, bytearray(FOREIGN), np.dtype([("a", object)]), (1,), "C"),
        Calls(np._core.multiarray.scalar, np.dtype([("a", object)]), FOREIGN),
        Calls(np._core.multiarray.scalar, np.dtype(object), FOREIGN),
        Calls(np._core.numeric._frombuffer, b"\2\3", np.dtype(bool), (2,), "C"),
        Calls(np._core.numeric._frombuffer, b"\2\3", np.dtype("i8"), (2,), "C"),
    ],
)
def test_no_array_lies_over_memory_that_is_not_its_own(attack, read):
    """Objects over foreign bytes are pointers that somebody else has chosen: those are enough to run code."""
    try:
        made = read(pickle.dumps(attack))
    except (StateError, TypeError):
        return
    assert isinstance(made, StandIn)


def test_an_array_of_arrow_stays_in_its_buffers():
    import pyarrow as pa

    kind, length, nulls, offset, _, children, dictionary = pa.array(["a", "b"]).__reduce__()[1][0]
    restored = pa.lib._restore_array
    for buffers in (
        [None, pa.py_buffer(b"\0\0\0\0\xff\0\0\0\xff\xff\0\0"), pa.py_buffer(b"ab")],
        [None, pa.py_buffer(b"")],
        [None, None, None],
    ):
        with pytest.raises(StateError, match="an array"):
            loads(pickle.dumps(Calls(restored, (kind, length, nulls, offset, buffers, children, dictionary))))


@pytest.mark.parametrize(
    "code",
    [
        *("i8", ">i4", "?", "f2", "c16", "g", "S3", "U5", "V7", "M8[25us]", "M8[ns]", "m8[D]", "O"),
        *([("a", "i4"), ("b", "M8[ns]", (2,))], [("x", [("y", "?"), ("z", "U2")])], [(("title", "a"), "i4")]),
    ],
)
def test_arrays_and_scalars_of_simple_types_are_what_they_were(code):
    kind = np.dtype(code)
    whole = np.zeros((6, 4), kind)
    for array in (whole, np.asfortranarray(whole), whole[::2], whole[0, 0:1].reshape(()), whole[:0]):
        read = loads(dumps(array))
        assert (read.dtype, read.shape, read.flags.writeable) == (kind, array.shape, True)
        assert (read == array).all()
    assert loads(dumps(kind)) == kind
    if not kind.hasobject:
        assert type(loads(dumps(whole[0, 0]))) is type(whole[0, 0])
        assert loads(dumps(whole[0, 0])) == whole[0, 0]


@pytest.mark.parametrize("read", [loads, loads_anyway])
def test_a_time_zone_is_what_it_was(read):
    noon = datetime.datetime(2026, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    assert read(dumps(noon)) == noon
    with pytest.raises(StateError, match="none of it was run"):
        read(pickle.dumps(Calls(getattr, str, "upper")))


def test_a_structure_keeps_its_layout_and_an_array_that_cannot_be_written_to_stays_so():
    aligned = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    assert loads(dumps(np.zeros(2, aligned))).dtype.isalignedstruct
    padded = np.dtype({"names": ["a"], "formats": ["i4"], "offsets": [4], "itemsize": 16})
    assert loads(dumps(np.zeros(2, padded))).dtype == padded
    constant = np.arange(3)
    constant.flags.writeable = False
    assert not loads(dumps(constant)).flags.writeable
    assert loads(dumps(np.array([1, "x", None], object))).tolist() == [1, "x", None]


def test_what_is_shown_is_not_made():
    """Where a value is only to be shown, of Python's own library and others too nothing is made."""
    from fractions import Fraction

    import pyarrow as pa

    for value in (pathlib.PurePath("a"), uuid.UUID(int=5), Fraction(1, 2), np.arange(2), pa.array([1]), OSError(5)):
        assert isinstance(shown_loads(dumps(value)), StandIn)
    assert repr(shown_loads(dumps(pathlib.PurePosixPath("a/b")))) == "PurePosixPath('a', 'b')"
    assert repr(shown_loads(dumps(np.int64(5)))) == "np.int64(5)"


FUZZER = pathlib.Path(__file__).parents[2] / "support" / "random_pickles.py"


def test_no_opcodes_over_plain_classes_do_anything_but_make_values():
    """Random pickles over the list of plain classes, by all readers, while Python tells of all that it does."""
    seed = random.randrange(10**6)
    run = subprocess.run(
        [sys.executable, FUZZER, str(seed), "1500"], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, f"seed {seed}: {run.returncode}\n{run.stdout[-2000:]}{run.stderr[-4000:]}"
    made, refused = map(int, run.stdout.split())
    assert made > 100
    assert refused > 300
