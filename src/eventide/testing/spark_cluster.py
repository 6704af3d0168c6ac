"""A real Spark cluster on this machine, with nothing but the package pyspark and Java."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from eventide.errors import EventideError, ProgramError
from eventide.spark.java import check_java
from eventide.testing._guarded_folder import GuardedFolder
from eventide.testing._ports import HOST, free_ports, listens

_PATIENCE_S = 60
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_REGISTERED = "Successfully registered with master"


class SparkCluster:
    """A standalone Spark cluster, for tests: a master and workers, which can be killed and started again.

    Each of them is a process of its own, and each worker starts executors, in a folder of its own, for every session
    that points at :attr:`master`. They share nothing with this process but the machine: what they see of its
    environment is what ``environment`` says. Behind the ``with`` block, and however the process that started them ends,
    neither a process nor data is left.

    Args:
        workers: How many workers there are, each with one executor for a session.
        cores: How many tasks an executor runs at a time.
        memory: What a worker may give to executors, as Spark writes it.
        environment: Variables of their processes, beside ``PATH``, ``HOME`` and ``JAVA_HOME`` of this process.
        java_options: Options of their Java; these let it start sooner, and work slower, than Java's own.
        started_by: A command that each of them is started by, such as ``("nice",)``; theirs follows as its arguments,
            and must take its place (``exec``).

    Raises:
        ProgramError: There is no pyspark with its jars, or no Java.
        EventideError: Something does not start; the message has the end of its log.

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
    ) -> None:
        self._count = workers
        self._cores = cores
        self._memory = memory
        self._more = dict(environment or {})
        self._java_options = " ".join(java_options)
        self._started_by = tuple(started_by)
        self._folder: GuardedFolder | None = None
        self._port = 0
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes] | None] = [None] * workers

    @property
    def master(self) -> str:
        """What ``spark.master`` is for a session that uses this cluster; the same when the master is started again.

        Raises:
            ProgramError: The cluster has not been started.
        """
        return f"spark://{HOST}:{self._port}" if self._folder else self._refuse()

    def folder(self, worker: int) -> Path:
        """Where a worker keeps what it has: the folders of its executors, and their logs."""
        return self._home() / f"worker-{worker}"

    def executors(self, worker: int) -> list[int]:
        """The process ids of the executors that a worker has started."""
        psutil, process = _psutil(), self._workers[worker]
        with suppress(psutil.NoSuchProcess):
            return [] if process is None else [one.pid for one in psutil.Process(process.pid).children()]
        return []

    def start(self) -> None:
        """Start what does not run: all of it, the first time; later what was killed."""
        if self._folder is None:
            check_java()
            self._folder = GuardedFolder("eventide-spark-")
            [self._port] = free_ports(1)
        if self._master is None:
            self._start_master()
        for number, process in enumerate(self._workers):
            if process is None:
                self._start_worker(number)

    def kill_master(self) -> None:
        """End the master at once, as a failure does (SIGKILL); :meth:`start` brings it back, with what it knew."""
        if self._master is not None:
            _kill(self._master)
            self._master = None
            self._guard()

    def kill_worker(self, worker: int) -> None:
        """End a worker at once; its executors end by themselves, since they have nobody who looks after them."""
        process = self._workers[worker]
        if process is not None:
            _kill(process)
            self._workers[worker] = None
            self._guard()

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

    def _start_master(self) -> None:
        [page] = free_ports(1)
        arguments = ["--host", HOST, "--port", str(self._port), "--webui-port", str(page)]
        self._master = self._spark("master", _MASTER, *arguments)
        self._wait_for("master", self._master, lambda: listens(self._port) and "ALIVE" in self._said("master"))

    def _start_worker(self, number: int) -> None:
        [page] = free_ports(1)
        name = f"worker-{number}"
        arguments = ["--host", HOST, "--cores", str(self._cores), "--memory", self._memory]
        arguments += ["--webui-port", str(page), "--work-dir", str(self.folder(number))]
        known = self._said(name).count(_REGISTERED)
        process = self._workers[number] = self._spark(name, _WORKER, *arguments, self.master)
        self._wait_for(name, process, lambda: self._said(name).count(_REGISTERED) > known)

    def _spark(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        spark, home = _spark_home(), self._home()
        of_this_process = {v: os.environ[v] for v in ("PATH", "HOME", "JAVA_HOME") if v in os.environ}
        environment = {
            **of_this_process,
            "SPARK_HOME": str(spark),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(home / name / "local"),
            # A master that comes back knows its workers and sessions.
            "SPARK_DAEMON_JAVA_OPTS": f"{self._java_options} -Dspark.deploy.recoveryMode=FILESYSTEM "
            f"-Dspark.deploy.recoveryDirectory={home}/master -Dspark.worker.timeout=10",
            **self._more,
        }
        (home / name).mkdir(exist_ok=True)
        with (home / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*self._started_by, str(spark / "bin" / "spark-class"), *command],
                cwd=home / name,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._guard(process.pid)
        return process

    def _said(self, name: str) -> str:
        log = self._home() / f"{name}.log"
        return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""

    def _wait_for(self, name: str, process: subprocess.Popen[bytes], is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not is_so():
            if process.poll() is not None or time.monotonic() > deadline:
                raise EventideError(
                    f"the {name} of the Spark cluster does not start. It said:\n{self._said(name)[-4000:]}"
                )
            time.sleep(0.05)

    def _guard(self, *more: int) -> None:
        if self._folder is not None:
            self._folder.guard(*(one.pid for one in (self._master, *self._workers) if one is not None), *more)

    def _home(self) -> Path:
        return self._folder.path if self._folder else Path(self._refuse())

    @staticmethod
    def _refuse() -> str:
        raise ProgramError("the cluster has not been started: use it within `with SparkCluster() as cluster:`")


def _spark_home() -> Path:
    """Spark as the package pyspark brings it, found without loading it.

    Raises:
        ProgramError: if it is not there.
    """
    spec = find_spec("pyspark")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / "bin" / "spark-class").exists():
            return Path(folder)
    raise ProgramError("a cluster needs the programs of Spark, which come with the package pyspark; install it")


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _kill_all(processes: Sequence[int]) -> int:
    for one in processes:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    return len(processes)


def _psutil() -> Any:
    try:
        import psutil
    except ImportError as error:
        raise ProgramError("the executors of a cluster are found with psutil: pip install psutil") from error
    return psutil
