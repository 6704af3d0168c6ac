"""Driver processes: each is a program that is started as a user starts one, and points at a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from support.spark_cluster import SparkCluster

PATIENCE_S = 400


def started(
    program: Path,
    cluster: SparkCluster,
    *arguments: object,
    python: str = sys.executable,
    variables: Mapping[str, str] | None = None,
    started_by: Sequence[str] = (),
    errors: IO[bytes] | None = None,
) -> subprocess.Popen[str]:
    """Start a program, whose functions an interpreter runs that finds no modules of the tests by itself."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path.endswith("src")),
        "PYSPARK_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "MASTER": cluster.master,
        **(variables or {}),
    }
    command = [*started_by, sys.executable, str(program), *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True, env=environment
    )


def ended(
    program: Path,
    cluster: SparkCluster,
    *arguments: object,
    python: str = sys.executable,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Run a program to its end, and return what it printed."""
    driver = started(program, cluster, *arguments, python=python, variables=variables)
    printed, _ = driver.communicate(timeout=PATIENCE_S)
    assert driver.returncode == 0
    return printed
