"""The pipeline on the page `docs/guide/pipelines.md`, run by Spark's own command."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.guide_pages import BLOCK, GUIDE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.skipif(importlib.util.find_spec("pyspark.pipelines") is None, reason="PySpark 4.1 has pipelines first"),
]

_PATIENCE_S = 400


def run(project: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("spark-pipelines")),
        "--conf",
        "spark.sql.catalogImplementation=hive",
        "run",
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]


def rows_of(project: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table, whose files are in the folder of Spark's warehouse."""
    files = sorted((project / "spark-warehouse" / table).glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def order(user: str, second: int, amount: int) -> dict[str, Any]:
    return {"user": user, "ts": 1_000 * second, "amount": amount}


def write_orders(project: Path, name: str, *orders: dict[str, Any]) -> None:
    (project / "orders").mkdir(exist_ok=True)
    (project / "orders" / name).write_text("".join(json.dumps(one) + "\n" for one in orders))


def test_a_pipeline_has_tables_of_eventide_and_goes_on_at_its_next_run(tmp_path: Path) -> None:
    blocks = dict(BLOCK.findall((GUIDE / "pipelines.md").read_text()))
    (tmp_path / "transformations").mkdir()
    (tmp_path / "spark-pipeline.yml").write_text(blocks["yaml"].replace("/data/", f"{tmp_path}/"))
    (tmp_path / "transformations" / "orders.py").write_text(blocks["py"].replace("/data/", f"{tmp_path}/"))
    write_orders(
        tmp_path, "1.json", order("ann", 10, 1), order("bob", 20, 5), order("ann", 70, 2), order("bob", 100, 7)
    )
    run(tmp_path)

    def totals() -> list[tuple[str, int, int, int]]:
        rows = rows_of(tmp_path, "totals")
        return sorted((r["user"], r["window"]["start"].minute, r["orders"], r["total"]) for r in rows)

    assert totals() == [("ann", 0, 1, 1), ("bob", 0, 1, 5)]
    write_orders(tmp_path, "2.json", order("ann", 90, 3), order("bob", 30, 100), order("ann", 200, 4))
    run(tmp_path)
    assert totals() == [("ann", 0, 1, 1), ("ann", 1, 2, 5), ("bob", 0, 1, 5), ("bob", 1, 1, 7)]
    assert rows_of(tmp_path, "late") == [order("bob", 30, 100)]
    per_user = {row["user"]: row["total"] for row in rows_of(tmp_path, "per_user")}
    assert per_user == {"ann": 6, "bob": 12}
