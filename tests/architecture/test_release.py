"""A release says the same of itself everywhere: in its package, its changelog, its recipe."""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

import eventide
from eventide.errors import DISTRIBUTION

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECIPE: dict[str, Any] = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
OF_CONDA = {"python", "openjdk"}
"""The dependencies of the conda package that pip does not bring."""


def test_the_changelog_has_a_section_of_the_version_with_its_date() -> None:
    assert re.search(rf"^## {re.escape(eventide.__version__)} \(\d{{4}}-\d\d-\d\d\)$", changelog(), re.MULTILINE)


def changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text()


def test_the_recipe_of_conda_needs_what_the_package_needs() -> None:
    for_pip = {(one.name, one.specifier) for one in map(Requirement, PROJECT["dependencies"])}
    for_conda = {(one.name, one.specifier) for one in map(Requirement, RECIPE["requirements"]["run"])}
    assert {one for one in for_conda if one[0] not in OF_CONDA} == for_pip
    assert dict(for_conda)["python"] == PROJECT["requires-python"]
    assert {*RECIPE["requirements"]["host"]} >= {"hatchling >=1.27,<2", f"python {PROJECT['requires-python']}"}


def test_the_recipe_of_conda_makes_this_version_and_this_command() -> None:
    assert (PROJECT["name"], RECIPE["package"]["name"]) == (DISTRIBUTION, DISTRIBUTION)
    assert RECIPE["context"]["version"] == eventide.__version__
    [(name, entry)] = PROJECT["scripts"].items()
    assert RECIPE["build"]["python"]["entry_points"] == [f"{name} = {entry}"]


def test_extras_are_made_of_each_other_under_the_name_of_the_distribution() -> None:
    needed = [Requirement(one) for extra in PROJECT["optional-dependencies"].values() for one in extra]
    ours = [one for one in needed if one.name.startswith("eventide")]
    assert {one.name for one in ours} == {DISTRIBUTION}
    assert {extra for one in ours for extra in one.extras} <= {*PROJECT["optional-dependencies"]}
