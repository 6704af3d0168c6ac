"""A real Spark cluster on this machine, with nothing but the package pyspark and Java."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil
import pyspark

from eventide.testing.servers import HOST, ServerFolder, free_ports
from support.namespaces import Namespace, listens_at

_SPARK = Path(pyspark.__file__).parent
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_REGISTERED = "Successfully registered with master"


class SparkCluster:
    """A standalone Spark cluster: a master and workers, which can be killed and started again.

    Each of them is a process of its own, and each worker starts executors, in a folder of its own, for every session
    that points at :attr:`master`. They share nothing with this process but the machine, and the variables that
    ``environment`` names. After the ``with`` block, and however the process that started them ends,
    neither a process nor data is left.

    Args:
        workers: How many workers there are, each with one executor for a session.
        cores: How many tasks an executor runs at a time.
        memory: The memory that a worker may give to executors, as Spark writes it.
        environment: Variables of their processes, beside ``PATH``, ``HOME`` and ``JAVA_HOME`` of this process.
        java_options: Options of their Java; these let it start sooner, and work slower, than Java's own.
        started_by: A command that each of them is started by, such as ``("nice",)``; theirs follows as its arguments,
            and must take its place (``exec``).
        host: The address of the master, and of the workers that are not in a namespace.
        distant: The network namespaces of workers, by the worker's number; executors are where their worker is.

    Raises:
        EventideError: A process does not start; the message has the end of its log.

    ::

        with SparkCluster() as cluster:
            StreamExecutionEnvironment.get_execution_environment(
                Configuration.from_dict({"spark.master": cluster.master, "spark.driver.host": "127.0.0.1"})
            )
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        cores: int = 1,
        memory: str = "1g",
        environment: Mapping[str, str] | None = None,
        java_options: Sequence[str] = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        started_by: Sequence[str] = (),
        host: str = HOST,
        distant: Mapping[int, Namespace] | None = None,
    ) -> None:
        self._count = workers
        self._cores = cores
        self._memory = memory
        self._more = dict(environment or {})
        self._java_options = " ".join(java_options)
        self._started_by = tuple(started_by)
        self._host = host
        self._distant = dict(distant or {})
        self._folder: ServerFolder | None = None
        self._port = 0
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes] | None] = [None] * workers

    @property
    def master(self) -> str:
        """The value of ``spark.master`` for a session on this cluster; it stays when the master is started again."""
        return f"spark://{self._host}:{self._port}"

    def folder(self, worker: int) -> Path:
        """Where a worker keeps what it has: the folders of its executors, and their logs."""
        return self._servers().path / f"worker-{worker}"

    def said(self, name: str) -> str:
        """The log of a process: ``master``, ``worker-0``."""
        return self._servers().said(name)

    def executors(self, worker: int) -> list[int]:
        """The process ids of the executors that a worker has started."""
        process = self._workers[worker]
        with suppress(psutil.NoSuchProcess):
            return [] if process is None else [one.pid for one in psutil.Process(process.pid).children()]
        return []

    def start(self) -> None:
        """Start what does not run: all of it, the first time; later what was killed."""
        if self._folder is None:
            self._folder = ServerFolder("eventide-spark-")
            [self._port] = free_ports(1)
        if self._master is None:
            self._start_master(self._folder)
        for number, process in enumerate(self._workers):
            if process is None:
                self._start_worker(self._folder, number)

    def kill_master(self) -> None:
        """End the master at once, as a failure does (SIGKILL); :meth:`start` brings it back, with what it knew."""
        if self._master is not None:
            self._servers().end(self._master)
            self._master = None

    def kill_worker(self, worker: int) -> None:
        """End a worker at once; its executors then end by themselves."""
        process = self._workers[worker]
        if process is not None:
            self._servers().end(process)
            self._workers[worker] = None

    def kill_executor(self, worker: int) -> int:
        """End the executors of a worker at once; it starts others. Returns how many there were."""
        return _kill_all(self.executors(worker))

    def close(self) -> None:
        """End it for good, with all that it has; the end of a ``with`` block does the same."""
        executors = [one for worker in range(self._count) for one in self.executors(worker)]
        for worker in range(self._count):
            self.kill_worker(worker)
        _kill_all(executors)
        self.kill_master()
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _servers(self) -> ServerFolder:
        assert self._folder is not None, "use the cluster within `with SparkCluster() as cluster:`"
        return self._folder

    def _start_master(self, folder: ServerFolder) -> None:
        [page] = free_ports(1)
        arguments = ["--host", self._host, "--port", str(self._port), "--webui-port", str(page)]
        self._master = self._spark(folder, "master", self._host, (), _MASTER, *arguments)
        folder.wait_for(
            "master", self._master, lambda: listens_at(self._host, self._port) and "ALIVE" in folder.said("master")
        )

    def _start_worker(self, folder: ServerFolder, number: int) -> None:
        [page] = free_ports(1)
        name = f"worker-{number}"
        place = self._distant.get(number)
        host, started_by = (self._host, ()) if place is None else (place.address, place.command)
        arguments = ["--host", host, "--cores", str(self._cores), "--memory", self._memory]
        arguments += ["--webui-port", str(page), "--work-dir", str(self.folder(number))]
        known = folder.said(name).count(_REGISTERED)
        process = self._workers[number] = self._spark(folder, name, host, started_by, _WORKER, *arguments, self.master)
        folder.wait_for(name, process, lambda: folder.said(name).count(_REGISTERED) > known)

    def _spark(
        self, folder: ServerFolder, name: str, host: str, started_by: Sequence[str], *command: str
    ) -> subprocess.Popen[bytes]:
        home = folder.path / name
        home.mkdir(exist_ok=True)
        of_this_process = {v: os.environ[v] for v in ("PATH", "HOME", "JAVA_HOME") if v in os.environ}
        environment = {
            **of_this_process,
            "SPARK_HOME": str(_SPARK),
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(home / "local"),
            # A master that comes back knows its workers and sessions.
            "SPARK_DAEMON_JAVA_OPTS": f"{self._java_options} -Dspark.deploy.recoveryMode=FILESYSTEM "
            f"-Dspark.deploy.recoveryDirectory={folder.path}/master -Dspark.worker.timeout=10",
            **self._more,
        }
        starter = [*started_by, *self._started_by, str(_SPARK / "bin" / "spark-class")]
        return folder.start(name, *starter, *command, cwd=home, env=environment)


def _kill_all(processes: Sequence[int]) -> int:
    for one in processes:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    return len(processes)
