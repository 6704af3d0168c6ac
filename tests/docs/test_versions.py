"""The documentation of several versions, side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

import eventide

ROOT = Path(__file__).parents[2]
NOW = "{}.{}".format(*Version(eventide.__version__).release)


def built(folder: Path) -> Path:
    """Build a site of one page with MkDocs itself, and return where it is."""
    pytest.importorskip("mkdocs", reason="`./run docs` installs what builds the documentation, and runs this test")
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "index.md").write_text("# Lake\n")
    (folder / "mkdocs.yml").write_text(f"site_name: lake\nhooks: [{ROOT / 'mkdocs_versions.py'}]\n")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return folder / "site"


def test_a_build_replaces_its_own_version_and_leaves_the_others(tmp_path: Path) -> None:
    for version in ("0.0", NOW, "0.0.9"):
        (tmp_path / "site" / version).mkdir(parents=True)
        (tmp_path / "site" / version / "old.html").write_text("old")
    (tmp_path / "site" / "images").mkdir()
    site = built(tmp_path)
    assert {path.relative_to(site).as_posix() for path in site.rglob("old.html")} == {"0.0/old.html", "0.0.9/old.html"}
    assert "Lake" in (site / NOW / "index.html").read_text()
    assert [one["version"] for one in json.loads((site / "versions.json").read_text())] == [NOW, "0.0.9", "0.0"]


def test_the_first_page_leads_to_the_newest_version(tmp_path: Path) -> None:
    (tmp_path / "site" / "99.10").mkdir(parents=True)
    (tmp_path / "site" / "99.9").mkdir()
    assert 'url=99.10/"' in (built(tmp_path) / "index.html").read_text()
