"""Modules that travel with a program, as their sources, to processes whose path does not lead to them.

Python asks finders for a module that it does not know. The one here has those of the program that this process serves.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import CodeType, ModuleType


@dataclass(frozen=True, slots=True)
class Modules:
    """The sources of modules.

    Attributes:
        sources: the text of each file, by its path: ``rides.py``, or ``trips/__init__.py`` for a package.
        digest: what tells them from others.
    """

    sources: Mapping[str, str]
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        """Compute the digest."""
        texts = sorted(self.sources.items())
        object.__setattr__(self, "digest", hashlib.sha256(repr(texts).encode()).hexdigest() if texts else "")


NO_MODULES = Modules({})


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
        """Have Python import other modules of these names."""
        for name in self._paths:
            module = sys.modules.get(name)
            if module is not None and getattr(module, "__loader__", None) is self:
                del sys.modules[name]
        for name in self._folders:
            if name in sys.modules and not list(getattr(sys.modules[name], "__path__", ["elsewhere"])):
                del sys.modules[name]


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


def _module_of(path: str) -> str:
    """The name of the module in a file.

    >>> _module_of("trips/city/__init__.py"), _module_of("trips/fares.py")
    ('trips.city', 'trips.fares')
    """
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
