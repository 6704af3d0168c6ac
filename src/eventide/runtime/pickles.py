"""Parts of a program as bytes, for the way to the workers, and the classes that every worker gets beside them.

Within one process, they are copied in the same way, from bytes that were made once. Modules travel with a program as
their sources, to processes whose path does not lead to them: Python asks finders for a module that it does not know,
and the finder here has those of the program that this process serves.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from itertools import chain
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import cloudpickle

from eventide.errors import ProgramError
from eventide.pickling.pickles import ProgramClasses, bring
from eventide.pickling.plain_classes import ClassName, class_name

_LIBRARIES = sys.stdlib_module_names | {"cloudpickle", "eventide", "numpy", "pandas", "py4j", "pyarrow", "pyspark"}
"""Large packages that are not part of a program: classes of theirs in data are listed elsewhere, or registered."""

_NO_CLASSES = ProgramClasses()
T = TypeVar("T")

_kept: WeakValueDictionary[int, type] = WeakValueDictionary()
"""The classes that copies refer to."""


@dataclass(frozen=True, slots=True)
class Modules:
    """The sources of modules.

    Attributes:
        sources: the text of each file, by its path: ``rides.py``, or ``trips/__init__.py`` for a package.
        digest: a digest that tells them from others.
    """

    sources: Mapping[str, str]
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        """Compute the digest."""
        texts = sorted(self.sources.items())
        object.__setattr__(self, "digest", hashlib.sha256(repr(texts).encode()).hexdigest() if texts else "")


NO_MODULES = Modules({})


@dataclass(frozen=True, slots=True)
class Program:
    """A part of a program, with what is known of the classes of the whole program.

    An element may meet any part of the program, and its class is named, not sent along: so each part brings them all.
    ``start`` names the start of the program that it is sent for: a worker may have served the one before.
    """

    part: Any
    classes: ProgramClasses
    start: str
    modules: Modules

    def bring(self) -> None:
        """Make the classes and modules of the program known in this process, in place of those of another program."""
        bring_modules(self.modules)
        bring(self.classes)


def classes_of(parts: Iterable[tuple[Any, str]], registered: Iterable[Any] = ()) -> ProgramClasses:
    """The classes of a program in some parts, each given with what a message may call it.

    Those that travel are of the main file, or were made inside functions, and anything in the parts refers to them.
    Where two have one name, a name could mean either, so neither is among them.

    Args:
        parts: all parts of the program.
        registered: the classes of objects in the program's data, as the program says.

    Raises:
        ProgramError: as :func:`dumps_program`.
    """
    return _together([_pickled(value, what, _Pickler) for value, what in parts], tuple(registered))


def dumps_program(
    value: object, what: str, classes: ProgramClasses = _NO_CLASSES, start: str = "", modules: Modules = NO_MODULES
) -> bytes:
    """Pickle a part of the user's program, functions and classes by value, after the modules that they are from.

    Raises:
        ProgramError: if it holds something that cannot travel, such as an open file, a lock or a SparkSession.
    """
    return pickle.dumps(modules) + _pickled((value, classes, start), what, _Pickler).content


def loads_program(payload: bytes) -> Program:
    """The inverse of :func:`dumps_program`; the classes and modules are known in this process from then on."""
    with io.BytesIO(payload) as file:
        modules: Modules = pickle.load(file)
        bring_modules(modules)
        part, known, start = pickle.load(file)
    program = Program(part, known, start, modules)
    program.bring()
    return program


class Copies:
    """Parts of a program in the process that they were made in, any number of times.

    What can travel can be copied, and nothing else. Classes are not copied: those of the main file, and those made
    inside functions, are what they were.

    Args:
        parts: each with what a message may call it.
        registered: the classes of objects in the program's data, as the program says.

    Raises:
        ProgramError: as :func:`dumps_program`.
    """

    def __init__(self, parts: Sequence[tuple[Any, str]], registered: Sequence[Any] = ()) -> None:
        self._parts = parts  # keeps their classes alive
        self._pickled = [_pickled(value, what, _CopyPickler) for value, what in parts]
        self.classes = _together(self._pickled, registered)

    def copy(self, number: int) -> Any:
        """Another copy of the part of a number, as it was when all this was made."""
        return pickle.loads(self._pickled[number].content)


def captured(value: T, what: str) -> T:
    """A copy of a part of a program, as it is now.

    What a function takes from around it may change before the program runs, as the variable of a loop does; and one
    function object may be given to several operators, which share nothing.

    Args:
        value: the part.
        what: its name in messages.

    Raises:
        ProgramError: as :func:`dumps_program`.
    """
    found: T = Copies([(value, what)]).copy(0)
    return found


def bring_modules(modules: Modules) -> None:
    """Let this process import the modules of a program, and no more those of the one that it has served before."""
    before = next((finder for finder in sys.meta_path if isinstance(finder, _Finder)), None)
    if modules.digest == (before.digest if before else NO_MODULES.digest):
        return
    if before is not None:
        sys.meta_path.remove(before)
        before.forget()
    if modules.sources:
        sys.meta_path.append(_Finder(modules))


def _together(parts: Sequence[_PickledProgram], registered: Sequence[Any]) -> ProgramClasses:
    own_of_registered = _pickled(registered, "a registered type", _Pickler).by_value
    named: dict[ClassName, list[type]] = defaultdict(list)
    for kind in chain.from_iterable([*(part.by_value for part in parts), own_of_registered]):
        kinds = named[class_name(kind)]
        if not any(kind is known or _is_made_into(kind, known) for known in kinds):
            kinds.append(kind)
    own = tuple(kinds[0] for kinds in named.values() if len(kinds) == 1)
    packages = frozenset(chain.from_iterable(part.packages for part in parts)) - _LIBRARIES
    return ProgramClasses(own, packages, frozenset(map(class_name, registered)))


def _is_made_into(before: type, kind: type) -> bool:
    """Whether a class is what ``dataclass(slots=True)`` found and made another one of, which still refers to it."""
    fields = vars(kind).get("__dataclass_fields__")
    return fields is not None and fields is vars(before).get("__dataclass_fields__")


@dataclass(frozen=True, slots=True)
class _PickledProgram:
    content: bytes
    by_value: list[type]
    packages: set[str]


def _pickled(value: object, what: str, kind: type[_Pickler]) -> _PickledProgram:
    with io.BytesIO() as file:
        pickler = kind(file)
        try:
            pickler.dump(value)
        except Exception as error:
            raise ProgramError(
                f"{what} cannot be sent to the workers: {error!r}. A function must not hold open files, locks, "
                "connections or a SparkSession; create those in its open() method"
            ) from error
        return _PickledProgram(file.getvalue(), pickler.by_value, pickler.packages)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Takes note of the classes that it pickles by value, and of where functions and classes are from."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.by_value: list[type] = []
        self.packages: set[str] = set()

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, type | FunctionType):
            self.packages.add(str(obj.__module__).partition(".")[0])
        if isinstance(obj, CodeType):  # of which cloudpickle leaves out the file
            make, parts = self.dispatch_table[CodeType](obj)
            return _code_in_file, (make, parts, obj.co_filename)
        reduced = super().reducer_override(obj)
        if isinstance(obj, type) and reduced is not NotImplemented and obj.__module__ != "builtins":
            self.by_value.append(obj)
        return reduced


class _CopyPickler(_Pickler):
    """Refers to those classes instead: pickle would set all attributes of the class again with every copy.

    Their contents are pickled only to find the classes in them.
    """

    def reducer_override(self, obj: object) -> Any:
        reduced = super().reducer_override(obj)
        if not self.by_value or self.by_value[-1] is not obj:
            return reduced
        _kept[id(obj)] = obj
        state = reduced[2] if len(reduced) > 2 else None
        return _kept_class, (id(obj),), state, None, None, _left_as_it_is


def _code_in_file(make: Callable[..., CodeType], parts: tuple[Any, ...], file: str) -> CodeType:
    return make(*parts).replace(co_filename=file)


def _kept_class(number: int) -> type:
    return _kept[number]


def _left_as_it_is(kind: type, state: object) -> type:
    return kind


class _Finder(MetaPathFinder, InspectLoader):
    """Finds and loads some modules."""

    def __init__(self, modules: Modules) -> None:
        self.digest = modules.digest
        self._sources = modules.sources
        self._paths = {_module_of(path): path for path in modules.sources}
        folders = {name.rpartition(".")[0] for name in self._paths}
        while above := {name.rpartition(".")[0] for name in folders} - folders:
            folders |= above
        self._folders = folders - {""} - self._paths.keys()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Called by Python for each module that is imported for the first time and found nowhere before."""
        if fullname in self._folders:  # a package without a file of its own
            return ModuleSpec(fullname, None, is_package=True)
        if fullname not in self._paths:
            return None
        return spec_from_loader(fullname, self, origin=self._paths[fullname], is_package=self.is_package(fullname))

    def is_package(self, fullname: str) -> bool:
        """Whether modules are below it."""
        return self._path_of(fullname).endswith("__init__.py")

    def get_source(self, fullname: str) -> str:
        """Called by Python to load a module, and to show lines of it in a traceback."""
        return self._sources[self._path_of(fullname)]

    def get_code(self, fullname: str) -> CodeType:
        """Called by Python to load a module."""
        return self.source_to_code(self.get_source(fullname), self._path_of(fullname))

    def _path_of(self, fullname: str) -> str:
        try:
            return self._paths[fullname]
        except KeyError:
            raise ImportError(f"the program has brought no module {fullname!r}", name=fullname) from None

    def forget(self) -> None:
        """Make Python import other modules of these names."""
        for name in self._paths:
            module = sys.modules.get(name)
            if module is not None and getattr(module, "__loader__", None) is self:
                del sys.modules[name]
        for name in self._folders:
            if name in sys.modules and not list(getattr(sys.modules[name], "__path__", ["elsewhere"])):
                del sys.modules[name]


def _module_of(path: str) -> str:
    """The name of the module in a file.

    >>> _module_of("trips/city/__init__.py"), _module_of("trips/fares.py")
    ('trips.city', 'trips.fares')
    """
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
