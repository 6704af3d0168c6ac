"""A source tree as the rules see it: modules, and what each of them imports, where."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

Place = Literal["module", "function", "types"]


@dataclass(frozen=True)
class Import:
    """One imported module: its absolute dotted name, the line, and when the import runs.

    `place` is "module" for an import that runs with the module, "function" for one inside a function, and
    "types" for one under `if TYPE_CHECKING:`, which never runs.
    """

    name: str
    line: int
    place: Place

    def is_of(self, *packages: str) -> bool:
        """Say whether this imports one of these packages or something in it."""
        return any(self.name == package or self.name.startswith(package + ".") for package in packages)


@dataclass(frozen=True)
class Module:
    """One file of the tree."""

    root: Path
    path: Path

    @property
    def parts(self) -> tuple[str, ...]:
        parts = self.path.relative_to(self.root).with_suffix("").parts
        return parts[:-1] if parts[-1] == "__init__" else parts

    @property
    def name(self) -> str:
        return ".".join(self.parts)

    @property
    def package(self) -> tuple[str, ...]:
        return self.parts if self.path.name == "__init__.py" else self.parts[:-1]

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def parsed(self) -> ast.Module | SyntaxError:
        """The file as the oldest supported Python reads it, whichever runs the tests."""
        try:
            return ast.parse(self.text, filename=str(self.path), feature_version=(3, 11))
        except SyntaxError as error:
            return error

    @property
    def tree(self) -> ast.Module:
        """The file, or nothing where it can't be parsed; one rule tells of that, all others pass over it."""
        return self.parsed if isinstance(self.parsed, ast.Module) else ast.Module([], [])

    @cached_property
    def imports(self) -> list[Import]:
        """Every import of the module, at any depth."""
        return list(self._imports(self.tree, "module"))

    def _imports(self, node: ast.AST, place: Place) -> Iterator[Import]:
        match node:
            case ast.Import(names=names):
                yield from (Import(alias.name, node.lineno, place) for alias in names)
            case ast.ImportFrom():
                yield from (Import(name, node.lineno, place) for name in self._imported_from(node))
            case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                for child in node.body:
                    yield from self._imports(child, "types")
                for child in node.orelse:
                    yield from self._imports(child, place)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                for child in ast.iter_child_nodes(node):
                    yield from self._imports(child, "function")
            case _:
                for child in ast.iter_child_nodes(node):
                    yield from self._imports(child, place)

    def _imported_from(self, node: ast.ImportFrom) -> list[str]:
        """`from a import b` imports a.b where that is a module of the tree, and a where b is a name in it."""
        base = list(self.package[: len(self.package) - node.level + 1]) if node.level else []
        origin = ".".join(base + ([node.module] if node.module else []))
        return [
            f"{origin}.{alias.name}" if self._is_module(f"{origin}.{alias.name}") else origin for alias in node.names
        ]

    def _is_module(self, name: str) -> bool:
        path = self.root.joinpath(*name.split("."))
        return path.with_suffix(".py").exists() or path.is_dir()

    def at(self, line: int, text: str) -> str:
        """Return a finding about a line of this module."""
        return f"{self.path.relative_to(self.root)}:{line}: {text}"


@lru_cache(maxsize=1)
def modules(root: Path) -> list[Module]:
    """Return the modules below a folder that holds packages, in the order of their names.

    Each is read once while rules look at the folder one after the other.
    """
    return [Module(root, path) for path in sorted(root.rglob("*.py"))]
