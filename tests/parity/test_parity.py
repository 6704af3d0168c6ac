"""The parity table: each name of PyFlink's has one place, and is found, or refused with a reason, there."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import pytest

from eventide._absent import MEMBERS, MODULES, NAMES, OLDER_NAMES, REEXPORTS
from eventide.common import JobStatus
from eventide.testing import local_environment
from parity.differences import DIFFERENCES
from parity.names import CLASSES, FACADES, FUNCTIONS, IMPORTS, Place, all_names, counterpart, is_here, verdict
from parity.table import page

ROOT = Path(__file__).parents[2]

# What modules of PyFlink 1.13 to 1.20 handed out, and those of 2.3 do not.
_SCHEMAS = "AvroRow{0} CsvRow{0} JsonRow{0}"
IMPORTS_OF_FLINK_1 = {
    "common.execution_config": "ExecutionMode InputDependencyConstraint RestartStrategies RestartStrategyConfiguration",
    "common.serialization": f"{_SCHEMAS.format('SerializationSchema')} {_SCHEMAS.format('DeserializationSchema')} "
    "typeinfo",
    "datastream.connectors": "DefaultRollingPolicy DeserializationSchema Duration Encoder RowTypeInfo "
    "SerializationSchema SourceFunction TypeInformation typeinfo",
    "datastream.data_stream": "ValueState ValueStateDescriptor",
    "datastream.stream_execution_environment": "StateBackend",
}
READ_ON = "See 'From PyFlink' and 'Parity' in eventide's documentation."

ABSENT = [path for path in all_names() if verdict(path).place is Place.ABSENT]


@pytest.fixture
def as_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """No module has been asked for a name of Flink 1 yet: it warns of each once."""
    for module, names in OLDER_NAMES.items():
        for name in names:
            monkeypatch.delitem(vars(import_module(f"eventide.{module}")), name, raising=False)


def test_every_name_of_pyflinks_has_a_place() -> None:
    """`verdict` raises for a name that is neither here nor said to be absent."""
    assert {verdict(path).place for path in all_names()} == set(Place)


def test_the_page_is_what_is_true() -> None:
    written = (ROOT / "docs" / "parity.md").read_text()
    assert written == page(), "run PYTHONPATH=src:tests python -m parity.table > docs/parity.md"


def test_what_differs_is_here() -> None:
    assert [path for path in DIFFERENCES if verdict(path).place is not Place.DIFFERS] == []


def test_what_is_said_to_be_absent_is_not_here() -> None:
    """A name that came to eventide leaves the table of eventide/_absent.py."""
    known = [*FUNCTIONS, *CLASSES, *(f"{facade}.{name}" for facade, names in FACADES.items() for name in names)]
    stale = [path for path in known if path.rpartition(".")[2] in NAMES and is_here(path)]
    stale += [module for module in MODULES if is_here(module)]
    for path in CLASSES:
        cls = counterpart(path) if is_here(path) else None
        stale += [f"{path}.{name}" for name in MEMBERS.get(getattr(cls, "__qualname__", ""), {}) if hasattr(cls, name)]
    assert stale == []


def test_every_entry_of_the_table_of_absences_is_of_use() -> None:
    """Each name and member in it is one of PyFlink's, of Flink 1, of Flink in Java, or a private one that is used."""
    names = {part for path in [*FUNCTIONS, *CLASSES, *all_names()] for part in path.split(".")}
    assert {
        name for name, why in NAMES.items() if not why.startswith(("Flink 1 had it", "Flink has it in Java"))
    } - names == set()
    members = {name for reasons in MEMBERS.values() for name in reasons if not name.startswith("_j_")}
    assert members - names == set()


@pytest.mark.parametrize("path", [path for path in ABSENT if path.rpartition(".")[0] not in CLASSES])
def test_an_import_of_what_is_not_here_says_why(path: str) -> None:
    module, _, name = path.rpartition(".")
    with pytest.raises(ImportError) as caught:
        exec(f"from eventide.{module} import {name}")
    assert str(caught.value).endswith(READ_ON)
    assert verdict(path).why in str(caught.value)


def test_a_member_that_is_not_here_says_why() -> None:
    for path in ABSENT:
        owner, _, name = path.rpartition(".")
        if owner in CLASSES and is_here(owner):
            cls = counterpart(owner)
            assert not hasattr(cls, name)
            with pytest.raises(AttributeError) as caught:
                getattr(next(iter(cls)) if issubclass(cls, Enum) else cls, name)
            assert str(caught.value).endswith(READ_ON)
            assert verdict(path).why in str(caught.value)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_is_not_here_says_why(module: str) -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        __import__(f"eventide.{module}")
    assert str(caught.value).endswith(READ_ON)


@pytest.mark.parametrize("module", ["datastream.connectors", "datastream.connectors.jdbc"])
def test_jdbc_is_refused_with_what_writes_a_database_instead(module: str) -> None:
    with pytest.raises(ImportError, match=r"sink_to\(function\)(?s:.*)rows\.write\.jdbc(?s:.*); see A database out in"):
        exec(f"from eventide.{module} import JdbcSink")
    guide = Path(__file__).parents[2] / "docs" / "guide" / "sources-and-sinks.md"
    assert "\n### A database out\n" in guide.read_text()  # tests/examples runs it


def test_a_module_that_pyflink_has_not_either_is_just_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'eventide\.nonsense'$"):
        __import__("eventide.nonsense")


@pytest.mark.parametrize("module", ["common", "datastream", "datastream.window", "datastream.state_backend"])
def test_a_name_that_pyflink_has_not_either_is_just_not_there(module: str) -> None:
    with pytest.raises(ImportError, match=r"^cannot import name 'nonsense' from "):
        exec(f"from eventide.{module} import nonsense")
    loaded = sys.modules[f"eventide.{module}"]
    assert not hasattr(loaded, "nonsense")


def test_what_pyflinks_modules_import_is_what_it_is_where_it_is_defined() -> None:
    """A program may import a name from any module of PyFlink's that imports it; type variables are made there."""
    differing = []
    for module, names in IMPORTS.items():
        for name, home in names.items():
            path = f"{module}.{name}"
            if verdict(path).place is Place.ABSENT:
                continue
            if home is None:
                is_right = isinstance(counterpart(path), TypeVar) and counterpart(path).__name__ == name
            else:
                is_right = counterpart(path) is counterpart(home)
            if not is_right:
                differing.append(path)
    assert differing == []


def test_each_name_that_leads_elsewhere_is_of_use() -> None:
    """PyFlink's module hands it out, or did so in Flink 1."""
    unknown = [
        f"{module}.{name}"
        for module, names in REEXPORTS.items()
        for name in names
        if name not in IMPORTS.get(module, {}) and name not in IMPORTS_OF_FLINK_1.get(module, "").split()
    ]
    assert unknown == []


@pytest.mark.parametrize("module", IMPORTS_OF_FLINK_1)
def test_what_modules_of_flink_1_handed_out_is_what_it_is_where_it_is_defined(module: str) -> None:
    for name in IMPORTS_OF_FLINK_1[module].split():
        found: dict[str, object] = {}
        exec(f"from eventide.{module} import {name}", found)
        home = import_module(REEXPORTS[module][name])
        assert found[name] is (home if home.__name__.endswith(f".{name}") else getattr(home, name))


def test_programs_name_type_variables_in_generic_classes_of_their_own() -> None:
    found: dict[str, Any] = {}
    exec(
        "from eventide.datastream.functions import IN, IN1, IN2, KEY, OUT, BroadcastProcessFunction\n"
        "from eventide.datastream.functions import KeyedBroadcastProcessFunction, ProcessWindowFunction\n"
        "from eventide.datastream.window import T, Trigger, W\n"
        "class A(BroadcastProcessFunction[IN1, IN2, OUT]): pass\n"
        "class B(KeyedBroadcastProcessFunction[KEY, IN1, IN2, OUT]): pass\n"
        "class C(ProcessWindowFunction[IN, OUT, KEY, W]): pass\n"
        "class D(Trigger[T, W]): pass\n",
        found,
    )
    assert [len(found[name].__parameters__) for name in "ABCD"] == [3, 4, 4, 2]


@pytest.mark.usefixtures("as_at_first")
@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in OLDER_NAMES.items() for name in names]
)
def test_a_name_of_flink_1_leads_to_its_successor_with_one_warning(module: str, name: str) -> None:
    home, successor = OLDER_NAMES[module][name]
    found: dict[str, object] = {}
    with pytest.warns(DeprecationWarning, match=re.escape(f"{name} is of Flink 1; use {successor}")) as caught:
        exec(f"from eventide.{module} import {name}", found)
    assert [warning.filename for warning in caught] == ["<string>"]
    assert found[name] is counterpart(home.removeprefix("eventide."))


@pytest.mark.usefixtures("as_at_first")
def test_a_state_backend_of_flink_1_says_where_the_checkpoint_is() -> None:
    env = local_environment()
    with pytest.warns(DeprecationWarning, match="use HashMapStateBackend, and set_checkpoint_storage_dir"):
        from eventide.datastream import FsStateBackend  # type: ignore[attr-defined]
    with pytest.warns(UserWarning, match="set_state_backend has no effect"):
        env.set_state_backend(FsStateBackend("file:///tmp/shop"))
    assert env.get_checkpoint_config().get_checkpoint_storage_dir() == "file:///tmp/shop"


@pytest.mark.usefixtures("as_at_first")
def test_a_name_of_flink_1_that_is_asked_for_warns_at_the_line_that_asks() -> None:
    import eventide.datastream.state_backend as module

    with pytest.warns(DeprecationWarning, match="FsStateBackend is of Flink 1") as caught:
        module.FsStateBackend  # noqa: B018
    assert [warning.filename for warning in caught] == [__file__]


def test_a_module_has_not_what_it_would_refuse_to_import() -> None:
    import eventide.datastream.functions as functions

    assert not hasattr(functions, "SinkFunction")
    with pytest.raises(AttributeError, match="it wraps a class of Java"):
        functions.SinkFunction  # noqa: B018


def test_objects_of_classes_with_absent_members_are_copied_and_pickled() -> None:
    env = local_environment()
    stream = env.from_collection([1, 2])
    assert not hasattr(env, "create_input")
    assert "create_input" not in dir(env)
    assert {"execute", "from_source"} < set(dir(env))
    assert not hasattr(stream, "_j_data_stream")
    assert list(copy.copy(stream).execute_and_collect()) == [1, 2]
    assert pickle.loads(pickle.dumps(JobStatus.RUNNING)) is JobStatus.RUNNING


@pytest.mark.long
def test_type_checkers_do_not_know_what_is_absent(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(
        "from eventide.common import nonsense\n"
        "from eventide.datastream import DataStream, SinkFunction\n"
        "def f(stream: DataStream) -> None:\n    stream.cache()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", str(tmp_path), str(program)],
        env={"MYPYPATH": str(ROOT / "src"), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line.partition("program.py:")[2] for line in done.stdout.splitlines() if "program.py" in line]
    assert [line.partition(":")[0] for line in found] == ["1", "2", "4"]
