"""HDFS on this machine: a name node and a data node of Hadoop's own, in one process."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventide.spark.session.java import check_java
from eventide.testing.kafka_broker import fetched
from eventide.testing.servers import HOST
from support.stores.store import Store, hadoop_version

_MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"
_NAME = "hadoop-client-minicluster"


@contextmanager
def hdfs_server(folder: Path) -> Iterator[Store]:
    """A running HDFS, whose data lie in a folder; its jars, 110 MB, are fetched once."""
    version = hadoop_version()
    jars = fetched(f"{_NAME}-{version}", ("org.apache.hadoop", _NAME, version))
    details = folder / "details.json"
    command = [check_java(), "-Xmx256m", "-cp", f"{jars}/*", _MAIN, "-format", "-datanodes", "1", "-httpport", "0"]
    command += ["-writeDetails", str(details), "-D", f"hdfs.minidfs.basedir={folder / 'data'}"]
    with (folder / "hdfs.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 120
        while not (port := _port(details)):
            assert process.poll() is None, (folder / "hdfs.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield Store(f"hdfs://{HOST}:{port}/jobs")
    finally:
        process.kill()
        process.wait()


def _port(details: Path) -> int | None:
    """The port of the name node, once it is written down."""
    try:
        return int(json.loads(details.read_text())["namenode_port"])
    except (FileNotFoundError, ValueError):
        return None
