"""A server of Spark Connect in a process of its own, from PySpark's own package."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark

_MAIN_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_STARTED = "Spark Connect server started at"
_PATIENCE_S = 120


class ConnectServer:
    """Runs inside a ``with`` block, in a folder of its own, which is its working folder and has its log."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"sc://127.0.0.1:{self._port}"
        self._folder = folder

    def __enter__(self) -> ConnectServer:
        self.start()
        return self

    def start(self) -> None:
        """Start it, again at the same address if it was killed."""
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
        }
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(submit), "--class", _MAIN_CLASS, "--master", "local[2]", "--name", "connect"]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        paths = [path or os.getcwd() for path in sys.path if not path.startswith((sys.prefix, sys.base_prefix))]
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(paths),
            "SPARK_CONNECT_MODE": "0",  # as in Spark's own script: this is no client
        }
        self._log = self._folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, env=environment, stdout=log, stderr=log)
        until = time.monotonic() + _PATIENCE_S
        while _STARTED not in self._log.read_text(errors="replace"):
            assert self._process.poll() is None, self._log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < until, "the server does not start"
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill the process that is the server, and none of those that it has started."""
        self._process.kill()
        self._process.wait(_PATIENCE_S)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(_PATIENCE_S)
