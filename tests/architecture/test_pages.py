"""The pages that greet a reader are short, and agree with the code, the data and each other."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import eventide
from architecture.rules import FLOORS
from eventide.errors import DISTRIBUTION

ROOT = Path(__file__).parents[2]
DECISIONS = {int(path.name[:4]): path for path in sorted((ROOT / "docs" / "adr").glob("0*.md"))}
STATUS = re.compile(r"\*\*Status\.\*\* Accepted on \d{4}-\d\d-\d\d\.(?: (.*))?", re.DOTALL)
COMPARISON = re.compile(r"^\| \| Spark \| eventide \|\n(?:\|.*\n)+", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#([^)\s]+))?")
HEADING = re.compile(r"^#+ (.+)", re.MULTILINE)
GREETING = ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT", "changelog.d/README")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_readme_fits_on_three_screens_and_shows_code_on_the_first() -> None:
    lines = text_of("README.md").splitlines()
    assert len(lines) <= 120
    assert "```python" in lines[:15]


def test_the_readme_counts_the_results_of_flink() -> None:
    recorded = sum(len(file.read_text().splitlines()) for file in (ROOT / "tests/scenarios/data").glob("*.jsonl"))
    said = re.findall(r"(\d+) scripted jobs|Flink's (\d+) results", text_of("README.md"))
    assert [int(one or other) for one, other in said] == [recorded, recorded]


def test_the_readme_and_the_first_page_of_the_docs_compare_alike() -> None:
    here, there = (COMPARISON.findall(text_of(name)) for name in ("README.md", "docs/index.md"))
    assert here == there
    assert len(here) == 1


@pytest.mark.parametrize("name", GREETING)
def test_links_lead_somewhere(name: str) -> None:
    folder = (ROOT / f"{name}.md").parent

    def leads(link: str, section: str) -> bool:
        page = folder / link
        return page.exists() and (not section or section in sections_of(page))

    assert [
        f"{link}#{section}" for link, section in LINK.findall(text_of(f"{name}.md")) if not leads(link, section)
    ] == []


def sections_of(page: Path) -> list[str]:
    """The anchors of a page's headings, as MkDocs and GitHub name them."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_the_design_draws_the_floors_that_the_rules_check() -> None:
    drawing = text_of("docs/design.md").split("## Floors")[1].split("```")[1]
    drawn = {
        f"eventide.{name}": int(number)
        for number, names in re.findall(r"^ ?(\d+)  (\w+(?: \| \w+)*)", drawing, re.MULTILINE)
        for name in names.split(" | ")
    }
    assert drawn == {name: floor for name, floor in FLOORS.items() if name != "eventide"}


def test_the_reading_order_names_every_module_below_the_fluent_api() -> None:
    named = set(re.findall(r"(\w+\.py)`", text_of("docs/reading-order.md")))
    source = ROOT / "src" / "eventide"
    modules = [path for path in source.rglob("*.py") if path.name != "__init__.py"]
    below = [path.relative_to(source) for path in modules if "datastream" not in path.parts]
    assert len(below) > 200
    assert [path.as_posix() for path in below if path.name not in named] == []


def test_the_way_of_an_element_counts_its_modules() -> None:
    page = text_of("docs/reading-order.md")
    way = page.split("## One element, from a file to a file")[1].split("\n## ")[0]
    steps = way[way.index("\n1. ") : way.index("\n25. ")] + way[way.index("\n25. ") :].split("\n\n")[0]
    counts = re.search(r"name (\d+) modules.*?passes through\s+(\d+).*?the other (\d+) help", way, re.DOTALL)
    assert counts is not None
    every, passed, helping = map(int, counts.groups())
    assert len(set(re.findall(r"([\w/]+\.py)`", steps))) == every
    # Step 24 names the writer of each host; an element passes through one of them.
    assert every == passed + 1 + helping
    assert f"{passed} modules" in text_of("docs/adr/0046-a-reader-and-an-output.md")


@pytest.mark.parametrize("number", DECISIONS)
def test_a_decision_begins_with_its_status_and_date(number: int) -> None:
    title, status, _ = DECISIONS[number].read_text(encoding="utf-8").split("\n\n", 2)
    assert title.startswith(f"# {number}. ")
    assert STATUS.fullmatch(status)


def test_a_decision_that_changes_another_is_named_by_it() -> None:
    def changes(verbs: str) -> set[tuple[int, int]]:
        """The pairs of decisions of which the first has a sentence in its status that begins so, with the second."""
        found = set()
        for number, path in DECISIONS.items():
            status = path.read_text(encoding="utf-8").split("\n\n", 2)[1]
            for sentence in re.split(r"(?<=\.)\s+(?=[A-Z])", status):
                if sentence.startswith(tuple(verbs.split())):
                    found |= {(number, int(other)) for other in re.findall(r"\[decision (\d+)\]", sentence)}
        return found

    later = changes("Amends Supersedes")
    assert len(later) > 5
    assert {(old, new) for new, old in later} == changes("Amended Superseded")


def test_the_list_of_decisions_has_each_once_under_its_title() -> None:
    listed = re.findall(r"^- \[(.+?)\]\((.+?)\)", text_of("docs/adr/README.md"), re.MULTILINE)
    titles = [path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for path in DECISIONS.values()]
    assert sorted(listed) == sorted(zip(titles, (path.name for path in DECISIONS.values()), strict=True))


def test_modules_of_the_reference_are_said_to_be_stable_and_can_be_imported() -> None:
    rows = re.findall(r"^\| (`eventide.*?) \|", text_of("docs/stability.md"), re.MULTILINE)
    stable = tuple(re.findall(r"`(eventide[.\w]*)`", " ".join(rows)))
    shown = [
        name
        for page in (ROOT / "docs" / "reference").glob("*.md")
        for name in re.findall(r"^::: (\S+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(shown) > 20
    assert [name for name in shown if not f"{name}.".startswith(tuple(f"{module}." for module in stable))] == []
    assert all(import_module(name).__doc__ for name in stable)


def test_the_newest_version_in_the_changelog_is_the_one_of_the_package() -> None:
    versions = re.findall(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert versions[0] == eventide.__version__


def test_constraints_are_within_the_bounds_of_pyproject() -> None:
    pinned = dict(line.split("==") for line in text_of("constraints.txt").splitlines() if not line.startswith("#"))
    versions = {canonicalize_name(name): version for name, version in pinned.items()}
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    # Extras may be made of other extras.
    required = [one for one in map(Requirement, wanted) if one.name != DISTRIBUTION]
    assert len(required) < len(wanted)
    outside = [
        str(requirement)
        for requirement in required
        if (version := versions.get(canonicalize_name(requirement.name))) is None
        or not requirement.specifier.contains(version)
    ]
    assert not outside, "run `./run freeze`"
