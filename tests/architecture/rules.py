"""The rules that keep eventide's shape: each takes a source folder and returns what it found wrong there.

A finding names file and line, and says what to do. The floors are those of docs/design.md.
"""

import ast
import importlib
import inspect
import sys
from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from architecture.source import Import, Module, modules

# A module stands on the floor of the longest name here that it begins with. It may import what is below it and
# what has the same name here; not what is above it, and not a neighbour with the same number.
FLOORS = {
    "eventide._absent": 0,
    "eventide._secrets": 0,
    "eventide": 1,
    "eventide.errors": 1,
    "eventide.pickling": 2,
    "eventide.common": 3,
    "eventide.metrics": 3,
    "eventide.api": 4,
    "eventide.aggregates": 4,
    "eventide.joins": 4,
    "eventide.storage": 4,
    "eventide.connectors": 5,
    "eventide.runtime": 5,
    "eventide.plan": 6,
    "eventide.savepoint": 6,
    "eventide.why": 6,
    "eventide.dashboard": 7,
    "eventide.local": 7,
    "eventide.spark": 7,
    "eventide.datastream": 8,
    "eventide.advisor": 9,
    "eventide.state_processor": 9,
    "eventide.testing": 9,
    "eventide.cli": 10,
    "eventide.__main__": 11,
}
# Floors within the runtime: a reader from the bottom up meets nothing that is explained further up.
RUNTIME_FLOORS = {
    "eventide.runtime": 0,
    "eventide.runtime.compact": 1,
    "eventide.runtime.invoke": 1,
    "eventide.runtime.pickles": 1,
    "eventide.runtime.python_folder": 1,
    "eventide.runtime.elements": 2,
    "eventide.runtime.tracing": 3,
    "eventide.runtime.exchange": 4,
    "eventide.runtime.eventtime": 5,
    "eventide.runtime.observation.event_time_log": 6,
    "eventide.runtime.observation.histograms": 6,
    "eventide.runtime.metrics": 7,
    "eventide.runtime.state": 8,
    "eventide.runtime.observation": 9,
    "eventide.runtime.chain": 10,
    "eventide.runtime.sources": 11,
    "eventide.runtime.tasks": 12,
    "eventide.runtime.process": 13,
    "eventide.runtime.columnar": 14,
    "eventide.runtime.window": 15,
    "eventide.runtime.joins": 16,
}
FLUENT = ("eventide.datastream.data_stream", "eventide.datastream.stream_execution_environment")
# Loads the standard library only, so that a worker that unpickles a trigger loads little.
LIGHT = (
    "eventide._absent",
    "eventide._secrets",
    "eventide.errors",
    "eventide.pickling",
    "eventide.common",
    "eventide.metrics",
    "eventide.api",
    "eventide.aggregates",
    "eventide.joins",
    "eventide.storage",
    "eventide.connectors",
)
HOSTS = ("eventide.local", "eventide.spark")

SPARK = ("pyspark", "py4j")
OUT_OF_REACH_OF_RUNTIME = (*SPARK, "pandas", "time", "threading", "os", "socket")
# Users' data, users' programs, and a log of bytes.
PICKLES = (
    "eventide.pickling.pickles",
    "eventide.pickling.reader",
    "eventide.pickling.stand_ins",
    "eventide.runtime.pickles",
    "eventide.connectors._function_log",
)
# Where a location of the program's becomes a file system, and which modules are loaded when one is wanted.
FILE_SYSTEMS = ("eventide.storage",)
LOADED_LATE = ("eventide.storage.hdfs",)
MAKERS_OF_FILE_SYSTEMS = frozenset(
    {
        "from_uri",
        "FSSpecHandler",
        "PyFileSystem",
        "LocalFileSystem",
        "S3FileSystem",
        "HadoopFileSystem",
        "GcsFileSystem",
    }
)
# Files that are of this machine by their nature: what ships with eventide, programs, temporary files, tests.
ON_THIS_MACHINE = (
    "eventide.advisor",
    "eventide.cli",
    "eventide.dashboard.runbook",
    "eventide.dashboard.server",
    "eventide.connectors.formats.avro",
    "eventide.local.host",
    "eventide.runtime.python_folder",
    "eventide.spark.demo",
    "eventide.spark.query.subtask_run",
    "eventide.spark.query.worker",
    "eventide.spark.session.java",
    "eventide.spark.session.locations",
    "eventide.spark.session.python_files",
    "eventide.spark.failures",
    "eventide.spark.session.make",
    "eventide.storage.local_copies",
    "eventide.testing",
)
LOCAL_FILES = ("pathlib", "tempfile", "shutil", "glob", "fileinput")
JVM_HANDLES = frozenset({"_jvm", "_jdf", "_jsparkSession", "_jsc"})
MAX_LINES = 600
# One class each, with every method that PyFlink gives it: split, a reader would look for a method in several files.
MAY_BE_LONG = ("eventide.datastream.data_stream.stream", "eventide.datastream.stream_execution_environment")
# Names in stored pickles, which stay.
STORED_NAMES = (("eventide.api.source", "_Idle"),)
# Modules that the light floors import only inside functions.
LATE = ("pyarrow", "numpy", "pandas", "msgspec", "cloudpickle", "confluent_kafka")


def floor_of(name: str) -> tuple[int, str]:
    """Return the number of the floor that a module stands on, and the entry of FLOORS that says so."""
    owner = max((entry for entry in FLOORS if f"{name}.".startswith(f"{entry}.")), key=len)
    return FLOORS[owner], owner


def python_3_11_can_parse_it(root: Path) -> list[str]:
    """The oldest Python that is promised reads every file."""
    return [
        module.at(error.lineno or 1, f"{error.msg}: Python 3.11 must be able to read this")
        for module in modules(root)
        if isinstance(error := module.parsed, SyntaxError)
    ]


def imports_go_down(root: Path) -> list[str]:
    """A floor imports what is below it: nothing above, no neighbour."""

    def is_wrong(module: Module, imported: Import) -> bool:
        if not imported.is_of("eventide"):
            return False
        (here, owner), (there, other) = floor_of(module.name), floor_of(imported.name)
        return there > here or (there == here and owner != other)

    return _imports(root, is_wrong, "is above {module} or beside it: move what is needed to a floor below both")


def private_modules_are_private(root: Path) -> list[str]:
    """A module whose name begins with an underscore is imported by modules of its own package alone."""

    def is_wrong(module: Module, imported: Import) -> bool:
        parts = imported.name.split(".")
        private = next((number for number, part in enumerate(parts) if part.startswith("_") and part[1] != "_"), None)
        return imported.is_of("eventide") and private is not None and module.parts[:private] != tuple(parts[:private])

    return _imports(root, is_wrong, "is private to its package: import a public name, or rename the module")


def private_names_stay_in_their_module(root: Path) -> list[str]:
    """A name that begins with an underscore is used by its own module alone; one that others import is public."""

    def is_wrong(node: ast.AST) -> bool:
        imported = node.names if isinstance(node, ast.ImportFrom) and node.module else ()
        return any(alias.name.startswith("_") and not alias.name.startswith("__") for alias in imported)

    return _nodes(root, is_wrong, "this name is private to another module: give it one without the underscore")


def packages_of_the_runtime_go_down(root: Path) -> list[str]:
    """The runtime's packages, from what travels to what a task does: each knows only those before it."""

    def floor(name: str) -> int:
        return RUNTIME_FLOORS[max((entry for entry in RUNTIME_FLOORS if f"{name}.".startswith(f"{entry}.")), key=len)]

    def is_wrong(module: Module, imported: Import) -> bool:
        if not (module.name.startswith("eventide.runtime.") and imported.is_of("eventide.runtime")):
            return False
        same = module.parts[:3] == tuple(imported.name.split(".")[:3])
        return floor(imported.name) >= floor(module.name) and not same

    return _imports(root, is_wrong, "is above {module}, or beside it, within the runtime: see RUNTIME_FLOORS")


def modules_import_in_no_circle(root: Path) -> list[str]:
    """Modules can be read one after the other, types included; the fluent API alone returns itself in a circle."""
    found = {module.name: module for module in modules(root)}
    lines = {
        (module.name, imported.name): imported.line
        for module in found.values()
        for imported in module.imports
        if imported.name in found
        and imported.name != module.name
        and not (imported.is_of(*FLUENT) and _is_of(module, FLUENT))
    }
    graph = {name: [after for before, after in lines if before == name] for name in found}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = error.args[1][::-1]  # each imports the next one
        first = found[circle[0]]
        return [first.at(lines[circle[0], circle[1]], f"a circle of imports: {' imports '.join(circle)}")]
    return []


def fluent_api_imports_hosts_late(root: Path) -> list[str]:
    """The fluent API builds a graph; only execute() needs a host, and imports it then."""

    def is_wrong(module: Module, imported: Import) -> bool:
        return module.name.startswith(FLUENT) and imported.place == "module" and imported.is_of(*HOSTS)

    return _imports(root, is_wrong, "is a host: import it inside the function that runs the job")


def spark_is_in_spark_alone(root: Path) -> list[str]:
    """PySpark appears under eventide.spark alone; the fluent API may name its types."""

    def is_wrong(module: Module, imported: Import) -> bool:
        only_named = module.name.startswith(FLUENT) and imported.place == "types"
        return imported.is_of(*SPARK) and module.parts[:2] != ("eventide", "spark") and not only_named

    return _imports(root, is_wrong, "belongs to eventide.spark alone: put this code there, behind a Protocol")


def values_and_vocabulary_are_light(root: Path) -> list[str]:
    """Values, vocabulary and connectors load the standard library; pyarrow and the like only inside functions."""

    def is_wrong(module: Module, imported: Import) -> bool:
        own = imported.is_of("eventide") or imported.name.split(".")[0] in sys.stdlib_module_names
        named = imported.is_of("typing_extensions") and imported.place == "types"
        late = (imported.is_of(*LATE) and imported.place != "module") or named
        too_early = imported.is_of(*LOADED_LATE) and imported.place == "module"
        light = module.name in LOADED_LATE or ((own or late) and not too_early)
        return any(f"{module.name}.".startswith(f"{name}.") for name in LIGHT) and not light

    return _imports(root, is_wrong, "is too heavy for {module}: values and vocabulary load the standard library only")


def pickles_are_made_in_few_places(root: Path) -> list[str]:
    """Data of the user's is pickled so that it names the classes of the program: by eventide.pickling.pickles."""

    def is_wrong(module: Module, imported: Import) -> bool:
        return imported.is_of("pickle", "cloudpickle") and module.name not in PICKLES

    return _imports(root, is_wrong, "knows no classes of the program: use dumps and loads of eventide.pickling.pickles")


def files_are_opened_in_one_way(root: Path) -> list[str]:
    """Files that a job reads or keeps may lie in any store: all of them are opened by eventide.storage."""

    def is_of(module: Module, names: tuple[str, ...]) -> bool:
        return any(f"{module.name}.".startswith(f"{name}.") for name in names)

    def is_wrong(node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name(id="open")):
                return True
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name in MAKERS_OF_FILE_SYSTEMS
        return False

    def is_local(module: Module, imported: Import) -> bool:
        return imported.is_of(*LOCAL_FILES) and not is_of(module, ON_THIS_MACHINE)

    advice = "is for files of this machine alone: use opened() of eventide.storage"
    elsewhere = (module for module in modules(root) if not is_of(module, FILE_SYSTEMS + ON_THIS_MACHINE))
    return _imports(root, is_local, advice) + [
        module.at(node.lineno, "files are opened elsewhere: use opened() of eventide.storage")
        for module in elsewhere
        for node in ast.walk(module.tree)
        if is_wrong(node)
    ]


def runtime_sees_no_world(root: Path) -> list[str]:
    """The semantics know no Spark, no pandas, no clock, no thread, no file."""

    def is_wrong(module: Module, imported: Import) -> bool:
        return floor_of(module.name)[1] == "eventide.runtime" and imported.is_of(*OUT_OF_REACH_OF_RUNTIME)

    return _imports(root, is_wrong, "is out of reach of the runtime: let the host pass in what is needed")


def jvm_is_not_touched(root: Path) -> list[str]:
    """Public PySpark API only, so that a program runs over Spark Connect too."""

    def is_wrong(node: ast.AST) -> bool:
        match node:
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                return name in JVM_HANDLES
        return False

    return _nodes(root, is_wrong, "this reaches into the JVM: use public PySpark API")


def nothing_is_asserted(root: Path) -> list[str]:
    """`python -O` removes assertions, and their message says nothing to a user."""
    return _nodes(root, lambda node: isinstance(node, ast.Assert), "`assert` in the package: raise an eventide error")


def host_compares_no_times(root: Path) -> list[str]:
    """A rule about time in Spark's host would be a second copy of one in the runtime."""

    def is_time(node: ast.expr) -> bool:
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        return name.endswith(("_ms", "watermark", "timestamp"))

    def is_wrong(node: ast.AST) -> bool:
        ordered = isinstance(node, ast.Compare) and any(
            isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for operator in node.ops
        )
        return ordered and any(map(is_time, [node.left, *node.comparators]))

    host = root / "eventide" / "spark" / "query" / "subtask_run.py"
    return _nodes(root, is_wrong, "the host compares times: ask a rule of the runtime", only=host)


def files_are_short(root: Path) -> list[str]:
    """A file that outgrows the limit holds two things, but for the two classes of the fluent API."""
    return [
        module.at(MAX_LINES + 1, f"the file has {lines} lines, the limit is {MAX_LINES}: split it by concept")
        for module in modules(root)
        if (lines := module.text.count("\n")) > MAX_LINES and module.name not in MAY_BE_LONG
    ]


def one_class_has_a_name(root: Path) -> list[str]:
    """One word, one idea: classes and aliases of types differ by more than an underscore, whatever their packages.

    Aliases of one type may have one name.
    """
    homes: dict[str, tuple[str, str]] = {}
    found = []
    for module in modules(root):
        for node in module.tree.body:
            match node:
                case ast.ClassDef(name=name):
                    meaning = f"{module.name}.{name}"
                case ast.AnnAssign(
                    target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias"), value=ast.expr() as value
                ):
                    meaning = ast.unparse(value)
                case _:
                    continue
            if (module.name, name) in STORED_NAMES:
                continue
            before, home = homes.setdefault(name.lstrip("_"), (meaning, module.name))
            if before != meaning:
                found.append(module.at(node.lineno, f"{name} is also a name in {home}: give one of them another name"))
    return found


def public_things_have_docstrings(root: Path) -> list[str]:
    """Every public class and function of a public module says what it is for."""
    return [
        module.at(node.lineno, f"{node.name} has no docstring: say what it is for, with units and boundary values")
        for module in modules(root)
        if not any(part.startswith("_") for part in module.parts)
        for node in module.tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if not node.name.startswith("_") and ast.get_docstring(node) is None
    ]


def public_methods_have_docstrings(root: Path) -> list[str]:
    """Every public method of a public class says what it does, or overrides one of the package's that says it."""
    here = modules(root)
    classes: dict[str, list[ast.ClassDef]] = {}
    for node in (node for module in here for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)):
        classes.setdefault(node.name, []).append(node)

    def says(cls: ast.ClassDef, method: str, seen: tuple[str, ...] = ()) -> bool:
        own = (node for node in cls.body if isinstance(node, _FUNCTIONS) and node.name == method)
        bases = {_last_name(base) for base in cls.bases} - {cls.name, *seen}
        return any(map(_is_documented, own)) or any(
            says(base, method, (*seen, cls.name)) for name in bases for base in classes.get(name, ())
        )

    return [
        module.at(method.lineno, f"{cls.name}.{method.name} has no docstring, nor has a method that it overrides")
        for module in here
        if not any(part.startswith("_") for part in module.parts)
        for cls in _public_classes(module.tree)
        for method in cls.body
        if isinstance(method, _FUNCTIONS) and not method.name.startswith("_") and not says(cls, method.name)
    ]


def exports_resolve(root: Path) -> list[str]:
    """Every name in an __all__ exists, and a class or function among them has a docstring. Imports the modules."""
    findings = []
    for module in modules(root):
        loaded = importlib.import_module(module.name) if _line_of_all(module) else None
        for name in getattr(loaded, "__all__", ()):
            thing = getattr(loaded, name, None)
            if not hasattr(loaded, name):
                findings.append(module.at(_line_of_all(module), f"{name} is in __all__ and does not exist"))
            elif (inspect.isclass(thing) or inspect.isfunction(thing)) and not thing.__doc__:
                findings.append(module.at(_line_of_all(module), f"{name} is in __all__ and has no docstring"))
    return findings


STATIC_RULES: list[Callable[[Path], list[str]]] = [
    python_3_11_can_parse_it,
    imports_go_down,
    private_modules_are_private,
    private_names_stay_in_their_module,
    packages_of_the_runtime_go_down,
    modules_import_in_no_circle,
    fluent_api_imports_hosts_late,
    spark_is_in_spark_alone,
    values_and_vocabulary_are_light,
    pickles_are_made_in_few_places,
    files_are_opened_in_one_way,
    runtime_sees_no_world,
    jvm_is_not_touched,
    nothing_is_asserted,
    host_compares_no_times,
    files_are_short,
    one_class_has_a_name,
    public_things_have_docstrings,
    public_methods_have_docstrings,
]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Decorators that mark a method which has another one beside it.
_SAY_ENOUGH = ("overload", "setter")


def _public_classes(node: ast.Module | ast.ClassDef) -> list[ast.ClassDef]:
    classes = [child for child in node.body if isinstance(child, ast.ClassDef) and not child.name.startswith("_")]
    return classes + [inner for cls in classes for inner in _public_classes(cls)]


def _is_documented(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(function) is not None or any(
        _last_name(decorator) in _SAY_ENOUGH for decorator in function.decorator_list
    )


def _last_name(node: ast.expr) -> str:
    """Return the last name of `a.b.Name`, `Name[T]`, or `Name(...)`; empty where there is none."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Subscript(value=inner) | ast.Call(func=inner):
            return _last_name(inner)
    return ""


def _imports(root: Path, is_wrong: Callable[[Module, Import], bool], advice: str) -> list[str]:
    return [
        module.at(imported.line, f"{imported.name} {advice.format(module=module.name)}")
        for module in modules(root)
        for imported in module.imports
        if is_wrong(module, imported)
    ]


def _nodes(root: Path, is_wrong: Callable[[ast.AST], bool], advice: str, only: Path | None = None) -> list[str]:
    return [
        module.at(node.lineno, advice)
        for module in modules(root)
        if only is None or module.path == only
        for node in ast.walk(module.tree)
        if is_wrong(node)
    ]


def _is_of(module: Module, packages: tuple[str, ...]) -> bool:
    return any(f"{module.name}.".startswith(f"{package}.") for package in packages)


def _line_of_all(module: Module) -> int:
    """Return the line of the module's first `__all__ =`, or 0."""
    for node in module.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return node.lineno
    return 0
