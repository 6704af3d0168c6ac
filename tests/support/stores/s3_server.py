"""An S3 server on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventide.testing.kafka_broker import fetched
from eventide.testing.servers import HOST, free_ports, listens
from support.stores.store import Store, hadoop_version

_PROGRAM = Path(__file__).with_name("moto_server.py")


@contextmanager
def s3_server() -> Iterator[Store]:
    """Moto's server in a process of its own, without a bucket yet."""
    [port] = free_ports(1)
    command = [sys.executable, str(_PROGRAM), HOST, str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not listens(port):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield Store("s3a://bucket", variables(f"http://{HOST}:{port}"))
    finally:
        process.kill()
        process.wait()


def variables(endpoint: str) -> dict[str, str]:
    """The variables of AWS, which Arrow and Hadoop know."""
    return {
        "AWS_ACCESS_KEY_ID": "anybody",
        "AWS_SECRET_ACCESS_KEY": "anything",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
    }


def with_hadoop(store: Store) -> Store:
    """The store with Hadoop's client for it, 660 MB that are fetched once, and the settings for that."""
    version = hadoop_version()
    jars = f"{fetched(f'hadoop-aws-{version}', ('org.apache.hadoop', 'hadoop-aws', version))}/*"
    settings = {
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.hadoop.fs.s3a.endpoint": store.variables["AWS_ENDPOINT_URL"],
        "spark.hadoop.fs.s3a.endpoint.region": store.variables["AWS_REGION"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    return Store(store.location, store.variables, settings)
