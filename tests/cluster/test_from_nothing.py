"""A program and all that it needs reach executors whose Python has no packages; what is missing is said."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from support.cluster.drivers import ended
from support.spark_cluster import SparkCluster

PROGRAM = Path(__file__).parents[1] / "support" / "cluster" / "from_nothing.py"
SHOP = """
from eventide.common import Row

def as_row(number):
    return Row(key=number % 4, ts=number)

def later(a, b):
    return a if a["ts"] > b["ts"] else b
"""
PRICES = {"0": 10, "1": 11, "2": 12, "3": 13}
PARCEL = "def wrapped(key, price):\n    return ['parcel', key, price]\n"
METADATA = "Metadata-Version: 2.1\nName: parcel\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter without a single package."""
    place = tmp_path_factory.mktemp("bare")
    venv.create(place, with_pip=False)
    python = str(place / "bin" / "python")
    for package in ("eventide", "pyarrow", "pandas", "cloudpickle"):
        assert subprocess.run(
            [python, "-E", "-c", f"import {package}"], stderr=subprocess.DEVNULL, check=False
        ).returncode
    return python


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program's module, its requirements (a wheel of its own), and an archive of data."""
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "shop.py").write_text(SHOP)
    with zipfile.ZipFile(tmp_path / "parcel-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("parcel.py", PARCEL)
        wheel.writestr("parcel-1.0.dist-info/METADATA", METADATA)
        wheel.writestr("parcel-1.0.dist-info/WHEEL", WHEEL)
        wheel.writestr("parcel-1.0.dist-info/RECORD", "parcel.py,,\n")
    (tmp_path / "requirements.txt").write_text(f"parcel @ {(tmp_path / 'parcel-1.0-py3-none-any.whl').as_uri()}\n")
    with zipfile.ZipFile(tmp_path / "tables.zip", "w") as archive:
        archive.writestr("prices.json", json.dumps(PRICES))
    return tmp_path


def test_modules_packages_and_archives_reach_executors_that_have_nothing(
    cluster: SparkCluster, folder: Path, bare_python: str
) -> None:
    found = json.loads(ended(PROGRAM, cluster, folder, python=bare_python))
    expected = [["parcel", n % 4, PRICES[str(n % 4)]] for n in range(40)]
    expected += [["session", key, 36 + key] for key in range(4)]
    for start in range(0, 40, 10):
        for key in range(4):
            members = [n for n in range(start, start + 10) if n % 4 == key]
            expected.append(["sum", key, len(members), sum(members)])
    assert found == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("without", "missing", "bare"),
    [
        ("module", "finds no module 'shop'; bring it along with env.add_python_file(...)", False),
        ("packages", "with env.set_python_requirements(...) if it is an installed package", True),
    ],
)
def test_what_an_executor_lacks_is_said_in_a_sentence(
    cluster: SparkCluster, folder: Path, bare_python: str, without: str, missing: str, bare: bool
) -> None:
    others = ["module", "packages"] if without == "module" else [without]
    said = json.loads(ended(PROGRAM, cluster, folder, *others, python=bare_python if bare else sys.executable))
    assert missing in said
    assert "Traceback" not in said
