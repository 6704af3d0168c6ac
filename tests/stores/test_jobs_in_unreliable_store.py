"""A whole job in an S3 store in which calls of Spark and of eventide fail now and then gives what it gives on disk."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession
from tests.cluster.disturbed import of_files
from tests.cluster.drivers import PATIENCE_S, started
from tests.spark import killed_job
from tests.spark.test_kill import PROGRAMS, _output
from tests.stores.s3_server import variables, with_hadoop
from tests.stores.store import Store
from tests.stores.test_jobs_in_stores import KILLED_DRIVER, got, put
from tests.stores.unreliable import Fault, unreliable

from eventide.testing.servers import HOST
from support.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.store]

ONE_OF = 25
FAULTS = [Fault.INTERNAL_ERROR, Fault.SLOW_DOWN, Fault.UNREACHED, Fault.REPLY_LOST, Fault.SLOW]


def test_a_job_gives_the_undisturbed_output_though_calls_fail_now_and_then(
    spark: SparkSession, cluster: SparkCluster, s3: Store, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """One call of 25 fails, in one of five ways; `--seed=` has the same order of faults."""
    job, dice, lock = "bounded", random.Random(pytestconfig.getoption("--seed")), threading.Lock()
    killed_job.write_input(tmp_path / "input")
    undisturbed = tmp_path / "undisturbed"
    PROGRAMS[job].main(job, str(undisturbed / "checkpoint"), str(undisturbed / "output"), str(tmp_path / "input"))
    place, happened = f"{s3.location}/unreliable", []
    put(tmp_path / "input", f"{place}/input")

    def fault_of(_: int) -> Fault | None:
        with lock:
            fault = dice.choice(FAULTS) if dice.randrange(ONE_OF) == 0 else None
            happened.extend([fault] if fault else [])
            return fault

    port = urlsplit(s3.variables["AWS_ENDPOINT_URL"]).port
    assert port is not None
    with unreliable(port) as (proxy, its_port):
        proxy.begin(fault_of)
        through = with_hadoop(Store(s3.location, variables(f"http://{HOST}:{its_port}")))
        program, _ = of_files(job, place, f"{place}/input")
        driver = started(KILLED_DRIVER, cluster, *program, variables=through.written(tmp_path))
        driver.communicate(timeout=PATIENCE_S)
        assert driver.returncode == 0
    assert {*happened} == {*FAULTS}
    assert _output(spark, got(place, tmp_path / "copied")) == _output(spark, undisturbed)
