"""A whole job in an S3 where one call in twenty fails: it is started again until it ends; its output is there once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from eventide.testing.servers import HOST
from support.cluster.drivers import PATIENCE_S, started
from support.spark import killed_job
from support.spark_cluster import SparkCluster
from support.stores import saved_driver
from support.stores.copies import got, lines, put
from support.stores.s3_server import variables, with_hadoop
from support.stores.store import Store
from support.stores.unreliable import Fault, unreliable

pytestmark = [pytest.mark.spark, pytest.mark.store]

_FAULTS = (Fault.INTERNAL_ERROR, Fault.SLOW_DOWN, Fault.UNREACHED, Fault.REPLY_LOST)
_RATE = 0.05
_STARTS = 10


def test_a_job_that_is_started_until_s3_lets_it_end_gives_its_output_once(
    cluster: SparkCluster, s3: Store, tmp_path: Path, pytestconfig: pytest.Config, injected: Counter[str]
) -> None:
    """Spark's checkpoint and eventide's sink go through the proxy; `--seed=` repeats the sequence of faults."""
    dice = random.Random(f"{pytestconfig.getoption('--seed')} unreliable")
    place, port = f"{s3.location}/unreliable", urlsplit(s3.variables["AWS_ENDPOINT_URL"]).port
    assert port is not None
    killed_job.write_input(tmp_path / "input")
    put(tmp_path / "input", f"{place}/input")
    calm = with_hadoop(s3).written(tmp_path)
    _run(cluster, f"{place}/calm", f"{place}/input", calm, starts=1)

    (tmp_path / "proxy").mkdir()
    with unreliable(port) as (faults, its_port):
        disturbed = with_hadoop(Store(s3.location, variables(f"http://{HOST}:{its_port}"))).written(tmp_path / "proxy")
        happened: list[Fault] = []

        def fault_of(_: int) -> Fault | None:
            if dice.random() >= _RATE:
                return None
            happened.append(dice.choice(_FAULTS))
            return happened[-1]

        faults.begin(fault_of)
        starts = _run(cluster, f"{place}/disturbed", f"{place}/input", disturbed, starts=_STARTS)
        print(f"{len(happened)} of {len(faults.calls)} calls failed; {starts} starts", flush=True)
        faults.begin()
    assert set(happened) == set(_FAULTS)
    injected["calls to S3 failed"] += len(happened)
    outputs = [got(f"{place}/{name}/output", tmp_path / name) for name in ("calm", "disturbed")]
    expected, found = map(lines, outputs)
    assert len(expected) > 100
    assert found == expected


def _run(cluster: SparkCluster, place: str, folder: str, environment: Mapping[str, str], *, starts: int) -> int:
    """Start a driver until one ends well; return how many there were."""
    arguments = f"{place}/checkpoint", f"{place}/output", folder, "2"
    for start in range(1, starts + 1):
        driver = started(Path(saved_driver.__file__), cluster, *arguments, variables=environment)
        driver.communicate(timeout=PATIENCE_S)
        if driver.returncode == 0:
            return start
    pytest.fail(f"the job has not ended after {starts} starts")
