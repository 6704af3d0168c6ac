"""A job on a cluster, parts of which are killed while it works."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from eventide.spark.checkpoint.files import CheckpointFiles
from support.cluster.drivers import PATIENCE_S, started
from support.spark.undisturbed import PROGRAMS
from support.spark_cluster import SparkCluster

VICTIMS = ("executor", "worker", "driver", "master")
IMPATIENT = {
    "spark.network.timeout": "12s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "2s",
    "spark.rpc.askTimeout": "12s",
    "spark.task.maxFailures": "8",
}
"""An executor is lost after twelve seconds without a word of it; Spark itself waits for two minutes."""
GIVEN_UP = "because we got no heartbeat"
"""In the log of the master, of a worker of which it has heard nothing for ten seconds."""
_DRIVER = Path(__file__).with_name("killed_driver.py")


def of_files(job: str, place: str, input: str) -> tuple[Sequence[str], str]:
    """The program of a job that test_kill.py has, and its checkpoint.

    Args:
        job: which job.
        place: the location for its checkpoint and output.
        input: the location of its files.
    """
    checkpoint = f"{place}/checkpoint"
    return (str(PROGRAMS[job].__file__), job, checkpoint, f"{place}/output", input), checkpoint


class Disturbed:
    """One job.

    Args:
        cluster: the cluster.
        name: its name, in the list of what was killed.
        program: the file and the arguments of its program, as killed_driver.py takes them.
        checkpoint: the location of its checkpoint.
        dice: which worker is killed, and when.
        variables: more of the environment of its driver.
        started_by: the command that starts its driver.
    """

    def __init__(
        self,
        cluster: SparkCluster,
        name: str,
        program: Sequence[str],
        checkpoint: str,
        dice: random.Random,
        variables: Mapping[str, str] | None = None,
        started_by: Sequence[str] = (),
    ) -> None:
        self._cluster, self._dice, self._variables, self._started_by = cluster, dice, variables or {}, started_by
        self._name, self._program, self._checkpoint = name, program, checkpoint
        self._driver = self._start()

    def run(self, victims: Sequence[str]) -> None:
        """Kill one after the other in mid work, each after a micro-batch that was not planned before; then wait."""
        try:
            for victim in victims:
                self._wait_for_work()
                time.sleep(self._dice.uniform(0, 1))
                what = victim.replace("_", " ")
                print(f"{self._name}: after micro-batch {self._planned()}, the {what} is killed", flush=True)
                getattr(self, f"_kill_{victim}")(self._dice.randrange(2))
            self._driver.communicate(timeout=PATIENCE_S)
            assert self._driver.returncode == 0
        finally:
            self._cluster.start()
            if self._driver.poll() is None:
                self._kill_process()

    def _kill_executor(self, worker: int) -> None:
        self._cluster.kill_executor(worker)

    def _kill_worker(self, worker: int) -> None:
        self._cluster.kill_worker(worker)
        time.sleep(self._dice.uniform(0, 3))
        self._cluster.start()

    def _kill_master(self, _: int) -> None:
        self._cluster.kill_master()
        time.sleep(self._dice.uniform(0, 3))
        self._cluster.start()

    def _kill_driver(self, _: int) -> None:
        self._kill_process()
        self._driver = self._start()

    def _kill_process(self) -> None:
        os.killpg(self._driver.pid, signal.SIGKILL)
        self._driver.communicate()

    def _start(self) -> subprocess.Popen[str]:
        return started(_DRIVER, self._cluster, *self._program, variables=self._variables, started_by=self._started_by)

    def _planned(self) -> int:
        return max(CheckpointFiles(self._checkpoint).planned(), default=-1)

    def _wait_for_work(self) -> None:
        before, deadline = self._planned(), time.monotonic() + PATIENCE_S
        while self._planned() <= before:
            assert self._driver.poll() is None, "the job ended before all could be killed; give it more to do"
            assert time.monotonic() < deadline, "the job did not get any further"
            time.sleep(0.05)
