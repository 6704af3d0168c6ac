"""Foreign content of a checkpoint: data are made of it, and nothing is run."""

import collections
import datetime
import decimal
import os
import pathlib
import pickle
import subprocess
import sys
import types
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from eventide.common import Row
from eventide.common.windows import TimeWindow
from eventide.connectors import _function_log
from eventide.connectors.kafka import sink_writer
from eventide.errors import StateError
from eventide.pickling.pickles import ProgramClasses, bring, class_of_name, dumps, loads, plain_loads
from eventide.pickling.stand_ins import loads_anyway, shown_loads
from eventide.runtime.pickles import classes_of


class Calls:
    """Pickles as a call of something, as anybody may write it."""

    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "was run"


@pytest.mark.parametrize(
    "attack",
    [
        lambda path: Calls(os.system, f"touch {path}"),
        lambda path: Calls(subprocess.Popen, ["touch", path]),
        lambda path: Calls(eval, f"open({path!r}, 'w')"),
        lambda path: Calls(open, path, "w"),
        lambda path: Calls(getattr, str, "upper"),
        lambda path: Calls(__import__, "os"),
        lambda path: Calls(type, "Made", (), {}),
        lambda path: Calls(pickle.loads, pickle.dumps(Calls(os.system, f"touch {path}"))),
        lambda path: Calls(pd.read_pickle, path),
        lambda path: Calls(pd.ExcelWriter, path),
        lambda path: Calls(_function_log.LogWriter, path),
        lambda path: Calls(sink_writer.SinkProducer, types.SimpleNamespace(properties={"plugin.library.paths": path})),
    ],
)
def test_what_is_no_class_of_data_is_refused_and_not_run(attack, marker):
    stored = pickle.dumps({"a": [attack(str(marker))]})
    with pytest.raises(StateError, match="somebody else has written into the checkpoint: none of it was run"):
        loads(stored)
    assert not marker.exists()


class Named(collections.UserString):
    """A text that seems to be another one, and gives what it likes where it is taken apart."""

    def __reduce__(self):
        return collections.UserString, ("SafeUUID",), {"data": "SafeUUID", "split": pathlib.Path}


@pytest.mark.parametrize("read", [loads, loads_anyway, shown_loads])
def test_a_class_is_named_by_texts_alone(read):
    with pytest.raises(StateError, match="name a class by objects that are not text"):
        read(pickle.dumps(Calls(class_of_name, "uuid", Named(""))))


def test_what_is_shown_of_a_class_that_is_not_here_is_its_name_and_no_more():
    def stored(name):
        return b"\x80\x05\x8c\x01x\x8c" + bytes([len(name)]) + name.encode() + b"\x93)R."

    name = "\x1b[31mA\nok: all is well"
    assert repr(shown_loads(stored(name))) == f"{name!r}()"
    with pytest.raises(StateError, match="cannot be shown"):
        shown_loads(stored("\0"))


@pytest.mark.parametrize("read", [loads, shown_loads])
@pytest.mark.parametrize("content", [b"", b"\x80\x05", b"no pickle"])
def test_what_is_no_pickle_is_said_to_be_none(read, content):
    with pytest.raises(StateError, match="the stored data cannot be"):
        read(content)


@pytest.mark.parametrize(
    "opcodes",
    [
        b"cos\nsystem\n(S'touch {path}'\ntR.",
        b"(S'touch {path}'\nios\nsystem\n.",
        b"\x80\x04\x8c\x18eventide.common._pickles\x8c\x0dos_of_nothing\x93.",
    ],
)
def test_older_forms_of_pickles_are_no_way_around(opcodes, marker):
    with pytest.raises(StateError):
        loads(opcodes.replace(b"{path}", str(marker).encode()))
    assert not marker.exists()


@pytest.mark.parametrize(
    "value",
    [
        [1, 2.5, True, None, "x", b"x", (1,), {"a": {1}}, frozenset({2}), range(3), complex(1, 2), bytearray(b"x")],
        [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(1), decimal.Decimal("1.5")],
        [collections.deque([1], 5), collections.Counter("aa"), collections.OrderedDict(a=1), uuid.UUID(int=5)],
        [Row(a=1), TimeWindow(0, 5), types.SimpleNamespace(a=1)],
        [np.int64(5), np.datetime64("2020-01-01"), pd.Timestamp("2020-01-01", tz="UTC"), pd.Timedelta(5)],
    ],
)
def test_plain_classes_are_known(value):
    assert loads(dumps(value)) == value


def test_arrays_and_tables_are_known():
    assert loads(dumps(np.array([1.5, 2.5]))).tolist() == [1.5, 2.5]
    table = pa.table({"a": [1, None], "b": [["x"], []], "t": pa.array([1, 2], pa.timestamp("us", "UTC"))})
    assert loads(dumps(table)) == table


@pytest.fixture
def orders(tmp_path, monkeypatch):
    """A package of a program, which has a class of its own, and imports another by name."""
    (tmp_path / "orders_shop").mkdir()
    (tmp_path / "orders_shop" / "__init__.py").write_text("")
    (tmp_path / "orders_shop" / "model.py").write_text(
        "from subprocess import Popen\nfrom dataclasses import dataclass\nfrom points_lib import Point\n"
        "@dataclass\nclass Order:\n    number: int\ndef parse(text):\n    return Order(int(text))\n"
    )
    (tmp_path / "points_lib.py").write_text(
        "".join(f"class {name}:\n    pass\n" for name in ("Point", "Other", "Registered"))
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("orders_shop.model", fromlist=["parse"])
    for name in [name for name in sys.modules if name.startswith(("orders_shop", "points_lib"))]:
        del sys.modules[name]


def test_classes_of_the_programs_packages_are_known_and_those_that_they_import_by_name(orders):
    bring(classes_of([(orders.parse, "map")]))
    assert loads(dumps(orders.Order(5))) == orders.Order(5)
    assert type(loads(dumps(orders.Point()))) is orders.Point


def test_nothing_else_is(orders):
    bring(classes_of([(orders.parse, "map")]))
    import points_lib

    for stored in (
        dumps(points_lib.Other()),
        dumps(orders.parse),
        b"corders_shop.model\nPopen\n(]S'true'\natR.",
        b"corders_shop.model\nOrder.__init__.__globals__\n.",
        b"corders_shop.model\nOrder.__class__\n.",
    ):
        with pytest.raises(StateError, match="not a class that the program is known to use"):
            loads(stored)


def test_what_is_registered_is_known(orders):
    import points_lib

    bring(classes_of([], [points_lib.Registered]))
    assert type(loads(dumps(points_lib.Registered()))) is points_lib.Registered


def test_a_function_that_makes_objects_can_be_registered():
    stored = dumps(Calls(os.path.basename, "/a/b"))
    bring(ProgramClasses(registered=frozenset({("posixpath", "basename")})))
    assert loads(stored) == "b"


def test_plain_values_have_no_class_at_all():
    with pytest.raises(StateError, match="should be plain values, and have Decimal of the module decimal"):
        plain_loads(dumps(decimal.Decimal(1)))
