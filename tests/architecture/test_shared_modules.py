"""Modules that tests share are not tests: no test imports another, so that each can be read and changed alone."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]


def imported(tree: ast.Module) -> set[str]:
    """The modules, and the names in them, that a module imports."""
    found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def is_of_tests(module: str) -> bool:
    """Whether a name is that of a module of tests, or of fixtures; eventide itself has modules of such names."""
    last = module.rpartition(".")[2]
    path = TESTS.joinpath(*module.removeprefix("tests.").split(".")).with_suffix(".py")
    return path.exists() and (last.startswith("test_") or last == "conftest")


def test_no_test_imports_another() -> None:
    """Fixtures that folders share are in `tests/support` too."""
    found = {
        str(file.relative_to(TESTS)): sorted(others)
        for file in TESTS.rglob("*.py")
        if (others := set(filter(is_of_tests, imported(ast.parse(file.read_text())))))
    }
    assert not found, "move what these share to tests/support"


def test_the_rule_knows_a_test_by_either_of_its_names() -> None:
    tree = ast.parse("from tests.spark.faults import test_kill\nimport support.columns\nfrom cluster.conftest import x")
    assert sorted(filter(is_of_tests, imported(tree))) == ["cluster.conftest", "tests.spark.faults.test_kill"]
