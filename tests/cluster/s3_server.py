"""An S3 server on this machine, and what Spark and Arrow have to know to use it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from eventide.testing._maven import fetched
from eventide.testing._ports import HOST, free_ports, listens

_BUCKET = "bucket"


class S3:
    """A running server with one bucket."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://{HOST}:{port}"
        self.bucket = f"s3a://{_BUCKET}"
        self.variables = {
            "AWS_ACCESS_KEY_ID": "anybody",
            "AWS_SECRET_ACCESS_KEY": "anything",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def settings(self) -> dict[str, str]:
        """Those of a session: Hadoop's client, and the variables for the Python processes of executors."""
        jars = f"{_jars()}/*"
        return {
            "spark.driver.extraClassPath": jars,
            "spark.executor.extraClassPath": jars,
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            **{f"spark.executorEnv.{name}": value for name, value in self.variables.items()},
        }


@contextmanager
def s3_server() -> Iterator[S3]:
    """Moto's server in a process of its own."""
    [port] = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not listens(port):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield S3(port)
    finally:
        process.kill()
        process.wait()


def _jars() -> Path:
    """Hadoop's client of S3, of the version that PySpark has of the rest of Hadoop: 660 MB, fetched once."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations
    [client] = Path(spec.submodule_search_locations[0], "jars").glob("hadoop-client-api-*.jar")
    version = client.stem.rpartition("-")[2]
    return fetched(f"hadoop-aws-{version}", ("org.apache.hadoop", "hadoop-aws", version))
