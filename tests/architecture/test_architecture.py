"""eventide keeps its rules, and each rule catches what it is there for."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from architecture import rules

SRC = Path(__file__).parents[2] / "src"
Rule = Callable[[Path], list[str]]


def test_eventide_keeps_the_rules() -> None:
    """All in one test, for which each file is parsed once."""
    findings = {rule.__doc__: found for rule in rules.STATIC_RULES if (found := rule(SRC))}
    assert not findings, "\n".join(line for what, found in findings.items() for line in (str(what), *found))


def test_every_exported_name_resolves_and_is_documented() -> None:
    findings = rules.exports_resolve(SRC)
    assert not findings, "\n".join(findings)


# (rule, file, its text, where the finding is)
VIOLATIONS: list[tuple[Rule, str, str, str]] = [
    (rules.python_3_11_can_parse_it, "plan/checks.py", "type Name = str", "plan/checks.py:1"),
    (rules.imports_go_down, "common/time.py", "import eventide.runtime.clock", "common/time.py:1"),
    (rules.imports_go_down, "common/time.py", "from ..runtime import clock", "common/time.py:1"),
    (rules.imports_go_down, "errors.py", "from eventide.common import time", "errors.py:1"),
    (rules.imports_go_down, "runtime/timers.py", "from eventide.datastream import Trigger", "runtime/timers.py:1"),
    (rules.imports_go_down, "plan/stages.py", "from eventide.local import runner", "plan/stages.py:1"),
    (rules.imports_go_down, "local/runner.py", "from eventide.testing import harness", "local/runner.py:1"),
    (rules.imports_go_down, "local/runner.py", "from eventide.spark import frames", "local/runner.py:1"),
    (rules.imports_go_down, "testing/harness.py", "import eventide.cli", "testing/harness.py:1"),
    (rules.imports_go_down, "spark/host.py", "import eventide.datastream.data_stream", "spark/host.py:1"),
    (
        rules.private_modules_are_private,
        "spark/sinks/files.py",
        "from eventide.connectors.file_system._planning import Known",
        "spark/sinks/files.py:1",
    ),
    (
        rules.private_names_stay_in_their_module,
        "plan/checks.py",
        "from eventide.plan.graph import Node, _number",
        "plan/checks.py:1",
    ),
    (
        rules.packages_of_the_runtime_go_down,
        "runtime/exchange/frames.py",
        "from eventide.runtime.chain import chain",
        "runtime/exchange/frames.py:1",
    ),
    (
        rules.packages_of_the_runtime_go_down,
        "runtime/columnar/panes.py",
        "from eventide.runtime.window.operator import WindowOperator",
        "runtime/columnar/panes.py:1",
    ),
    (
        rules.packages_of_the_runtime_go_down,
        "runtime/metrics.py",
        "from eventide.runtime.state.backend import Backend",
        "runtime/metrics.py:1",
    ),
    (
        rules.fluent_api_imports_hosts_late,
        "datastream/data_stream/stream.py",
        "from eventide.spark import host",
        "datastream/data_stream/stream.py:1",
    ),
    (rules.spark_is_in_spark_alone, "plan/stages.py", "def f():\n    import pyspark.sql", "plan/stages.py:2"),
    (rules.values_and_vocabulary_are_light, "common/types.py", "import pyarrow as pa", "common/types.py:1"),
    (rules.values_and_vocabulary_are_light, "api/windows/_w.py", "import numpy", "api/windows/_w.py:1"),
    (
        rules.values_and_vocabulary_are_light,
        "common/types.py",
        "def f():\n    import typing_extensions",
        "common/types.py:2",
    ),
    (rules.pickles_are_made_in_few_places, "runtime/timers.py", "import pickle", "runtime/timers.py:1"),
    (rules.pickles_are_made_in_few_places, "common/t.py", "def f():\n    import cloudpickle", "common/t.py:2"),
    (
        rules.values_and_vocabulary_are_light,
        "connectors/files.py",
        "import eventide.storage.hdfs",
        "connectors/files.py:1",
    ),
    (rules.files_are_opened_in_one_way, "plan/checks.py", "import pathlib", "plan/checks.py:1"),
    (
        rules.files_are_opened_in_one_way,
        "spark/checkpoint/record.py",
        "x = open('metadata')",
        "spark/checkpoint/record.py:1",
    ),
    (rules.files_are_opened_in_one_way, "savepoint/s.py", "x = fs.FileSystem.from_uri('s3://a')", "savepoint/s.py:1"),
    (rules.runtime_sees_no_world, "runtime/timers.py", "import time", "runtime/timers.py:1"),
    (rules.runtime_sees_no_world, "runtime/timers.py", "def f():\n    import os.path", "runtime/timers.py:2"),
    (rules.jvm_is_not_touched, "spark/host.py", "\nx = spark._jvm", "spark/host.py:2"),
    (rules.jvm_is_not_touched, "spark/host.py", "x = getattr(frame, '_jdf')", "spark/host.py:1"),
    (rules.nothing_is_asserted, "plan/checks.py", "assert True", "plan/checks.py:1"),
    (
        rules.host_compares_no_times,
        "spark/query/subtask_run.py",
        "late = last_ms <= self.watermark",
        "spark/query/subtask_run.py:1",
    ),
    (rules.files_are_short, "plan/checks.py", "x = 1\n" * 601, "plan/checks.py:601"),
    (rules.public_things_have_docstrings, "plan/checks.py", "class Check:\n    pass", "plan/checks.py:1"),
    (
        rules.public_methods_have_docstrings,
        "plan/checks.py",
        "class Check(Elsewhere):\n    'Doc.'\n    def check(self):\n        pass",
        "plan/checks.py:3",
    ),
]


@pytest.mark.parametrize(("rule", "file", "text", "place"), VIOLATIONS)
def test_a_planted_violation_is_found_where_it_stands(
    tmp_path: Path, rule: Rule, file: str, text: str, place: str
) -> None:
    plant(tmp_path, file, text)
    assert [finding.split(": ")[0] for finding in rule(tmp_path)] == [f"eventide/{place}"]


# (file, text) that no rule may object to
ALLOWED: list[tuple[str, str]] = [
    ("common/types.py", "def arrow():\n    'Doc.'\n    import pyarrow"),
    ("common/types.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pyarrow"),
    ("common/types.py", "import typing\nif typing.TYPE_CHECKING:\n    import typing_extensions"),
    ("datastream/__init__.py", "import eventide.datastream.data_stream"),
    ("api/windows/triggers.py", "from eventide.api.functions import ReduceFunction"),
    ("datastream/data_stream/stream.py", "import eventide.datastream.stream_execution_environment"),
    ("datastream/data_stream/stream.py", "def run():\n    'Doc.'\n    from eventide.spark import host"),
    ("datastream/data_stream/stream.py", "import typing\nif typing.TYPE_CHECKING:\n    import pyspark.sql"),
    ("runtime/timers.py", "import datetime\nimport pyarrow\nfrom eventide.api.windows import Trigger"),
    ("storage/__init__.py", "def run():\n    'Doc.'\n    return FileSystem.from_uri('s3://bucket')"),
    ("spark/session/locations.py", "import tempfile"),
    ("testing/harness.py", "from eventide.local import runner"),
    ("testing/harness.py", "from eventide.datastream.data_stream import DataStream"),
    (
        "spark/query/subtask_run.py",
        "def same(a, b):\n    'Doc.'\n    return a.split < b.split and a.channel == b.channel",
    ),
    ("plan/checks.py", "x = 1\n" * 600),
    ("datastream/data_stream/stream.py", "x = 1\n" * 601),
    ("plan/_checks.py", "class Check:\n    pass"),
    (
        "plan/checks.py",
        "class Check:\n    'Doc.'\n    def check(self):\n        'Doc.'\n"
        "class Sharper(Check):\n    'Doc.'\n    def check(self):\n        pass",
    ),
]


@pytest.mark.parametrize(("file", "text"), ALLOWED)
def test_what_the_rules_allow_is_left_alone(tmp_path: Path, file: str, text: str) -> None:
    plant(tmp_path, file, text)
    assert [finding for rule in rules.STATIC_RULES for finding in rule(tmp_path)] == []


def test_a_circle_of_imports_is_found_where_it_begins(tmp_path: Path) -> None:
    plant(tmp_path, "plan/graph.py", "import os\nfrom eventide.plan import compiler")
    plant(tmp_path, "plan/compiler.py", "def compile():\n    from eventide.plan import graph\n    return graph")
    (finding,) = rules.modules_import_in_no_circle(tmp_path)
    assert finding in (
        "eventide/plan/graph.py:2: a circle of imports: eventide.plan.graph imports eventide.plan.compiler imports "
        "eventide.plan.graph",
        "eventide/plan/compiler.py:2: a circle of imports: eventide.plan.compiler imports eventide.plan.graph imports "
        "eventide.plan.compiler",
    )


def test_a_second_class_of_one_name_is_found_with_the_first(tmp_path: Path) -> None:
    plant(
        tmp_path,
        "plan/checks.py",
        "class Check:\n    class Context:\n        pass\nParts: TypeAlias = list[int]\nNumbers: TypeAlias = list[int]",
    )
    plant(
        tmp_path,
        "runtime/checks.py",
        "class _Check:\n    pass\nclass Context:\n    pass\nclass Parts:\n    pass\n_Numbers: TypeAlias = list[int]",
    )
    assert rules.one_class_has_a_name(tmp_path) == [
        "eventide/runtime/checks.py:1: _Check is also a name in eventide.plan.checks: give one of them another name",
        "eventide/runtime/checks.py:5: Parts is also a name in eventide.plan.checks: give one of them another name",
    ]


def test_an_export_that_does_not_resolve_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted_exports.py").write_text(
        "__all__ = ['there', 'bare', 'gone']\ndef there():\n    'Doc.'\ndef bare():\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "planted_exports", raising=False)
    assert rules.exports_resolve(tmp_path) == [
        "planted_exports.py:1: bare is in __all__ and has no docstring",
        "planted_exports.py:1: gone is in __all__ and does not exist",
    ]


def test_a_private_module_of_eventide_itself_may_be_used_everywhere(tmp_path: Path) -> None:
    plant(tmp_path, "spark/sinks/files.py", "from eventide._secrets import without_secrets")
    assert rules.private_modules_are_private(tmp_path) == []


def plant(root: Path, file: str, text: str) -> None:
    """Make a tree that has every package of eventide, empty, and one file with this text."""
    for name in [*rules.FLOORS, "eventide.api.windows", "eventide.api.functions"]:
        package = root.joinpath(*name.split("."))
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
    path = root / "eventide" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n")
