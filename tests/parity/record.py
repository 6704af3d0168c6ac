"""Records what PyFlink has, from its source: names and parameters only. Run with the folder of its package:

    PYTHONPATH=tests python -m parity.record FOLDER > tests/parity/pyflink_signatures.json

Nothing of PyFlink is imported, so neither Java nor Flink is needed.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGES = ("common", "datastream", "metrics")


def record(pyflink: Path) -> dict[str, Any]:
    """Record the names that programs can use.

    - ``names``: by facade, the names that it hands out, in order.
    - ``imports``: by module, the names that it imports from another of PyFlink's, by the full path of each there; None
      for a type variable. A program can import them from that module, too.
    - ``functions``: by path, the parameters of the functions of modules, and None for their constants.
    - ``classes``: by path, the parameters of each method, and None for what is no method, such as the members of an
      enum. ``name=`` has a default.
    """
    names, imports, functions, classes = {}, {}, {}, {}
    for package in PACKAGES:
        for path in sorted((pyflink / package).rglob("*.py")):
            module = ".".join(path.relative_to(pyflink).with_suffix("").parts).removesuffix(".__init__")
            body = ast.parse(path.read_text()).body
            if path.name == "__init__.py":
                names[module] = [*_exported(body), *_installed(body)]
            else:
                imports[module] = dict(sorted(_imported(body)))
            for name, parameters in _members(body).items():
                if not name.startswith("__") and name not in imports.get(module, {}):
                    functions[f"{module}.{name}"] = parameters
            classes.update(_classes(module, body))
    facades, others = ({k: v for k, v in found.items() if v} for found in (names, imports))
    return {"names": facades, "imports": others, "functions": functions, "classes": classes}


def _imported(body: list[ast.stmt]) -> Iterator[tuple[str, str | None]]:
    for node in body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyflink."):
            home = str(node.module).removeprefix("pyflink.")
            yield from ((a.asname or a.name, f"{home}.{a.name}") for a in node.names if not a.name.startswith("_"))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_type_variable(node.value):
            yield node.targets[0].id, None


def _classes(owner: str, body: list[ast.stmt]) -> Iterator[tuple[str, dict[str, str | None]]]:
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            path = f"{owner}.{node.name}"
            yield path, _members(node.body, own=1)
            yield from _classes(path, node.body)


def _members(body: list[ast.stmt], own: int = 0) -> dict[str, str | None]:
    """The public functions and constants of a module or, with ``own`` parameters to leave out, of a class."""
    found: dict[str, str | None] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
            is_public = node.name in {"__init__", "__call__"} or not node.name.startswith("_")
            parameters = _parameters(node.args, 0 if "staticmethod" in decorators else own)
            if is_public and not (node.name == "__init__" and _takes_java(parameters)):
                found[node.name] = None if "property" in decorators else " ".join(_without_java(parameters))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update({t.id: None for t in targets if isinstance(t, ast.Name) and not t.id.startswith("_")})
    return dict(sorted(found.items()))


def _parameters(arguments: ast.arguments, own: int) -> list[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    first_default = len(positional) - len(arguments.defaults)
    names = [a.arg + ("=" if i >= first_default else "") for i, a in enumerate(positional)][own:]
    if arguments.vararg:
        names.append(f"*{arguments.vararg.arg}")
    names += [a.arg + ("=" if d else "") for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg:
        names.append(f"**{arguments.kwarg.arg}")
    return names


def _takes_java(parameters: list[str]) -> bool:
    """Whether an object of Java must be given: programs do not call such constructors."""
    return any(p.startswith("j_") and not p.endswith("=") for p in parameters)


def _without_java(parameters: list[str]) -> list[str]:
    """The parameters that programs give."""
    return [p for p in parameters if not p.startswith("j_")]


def _exported(body: list[ast.stmt]) -> list[str]:
    """``__all__``."""
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def _installed(body: list[ast.stmt]) -> list[str]:
    """Names that a facade takes in with ``setattr`` in a function of its own, for older programs."""
    calls = (node for function in body if isinstance(function, ast.FunctionDef) for node in ast.walk(function))
    return [
        ast.literal_eval(call.args[1])
        for call in calls
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "setattr"
    ]


def _is_type_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"


if __name__ == "__main__":
    print(json.dumps(record(Path(sys.argv[1])), indent=1))
