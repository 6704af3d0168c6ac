"""Resources of the job's processes: memory, open files, threads, CPU time."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import psutil

KINDS = ("driver", "jvm", "daemons", "workers", "planners")
"""The driver's Python; the JVM; what starts Python workers, and these; and what plans sources beside the driver."""
_DAEMON = "pyspark.daemon"


def taken(driver: psutil.Process) -> dict[str, float]:
    """Return the resources of a driver's processes, by kind, and their CPU time so far, with ended ones."""
    found: dict[str, list[psutil.Process]] = {kind: [] for kind in KINDS}
    for process in [driver, *driver.children(recursive=True)]:
        with suppress(psutil.Error):
            found[kind_of(process, driver)].append(process)
    figures: dict[str, float] = {}
    for kind, processes in found.items():
        figures |= {f"{kind}: {what}": number for what, number in _of_kind(processes).items()}
    figures["CPU seconds"] = sum(figures.pop(f"{kind}: CPU seconds") for kind in KINDS)
    return figures


def jvm(driver: psutil.Process) -> int:
    """The number of the JVM's process, which is started by the driver itself; 0 while there is none."""
    return next((process.pid for process in driver.children() if process.name() == "java"), 0)


def kind_of(process: psutil.Process, driver: psutil.Process) -> str:
    """Return the purpose of a process."""
    if process == driver:
        return "driver"
    if process.name() == "java":
        return "jvm"
    if _DAEMON not in process.cmdline():
        return "planners"
    parent = process.parent()
    return "workers" if parent is not None and _DAEMON in parent.cmdline() else "daemons"


def _of_kind(processes: Iterable[psutil.Process]) -> dict[str, float]:
    figures = {"processes": 0.0, "MB": 0.0, "open files": 0.0, "sockets": 0.0, "threads": 0.0, "CPU seconds": 0.0}
    for process in processes:
        with suppress(psutil.Error), process.oneshot():
            times = process.cpu_times()
            taken = {
                "processes": 1,
                "MB": process.memory_info().rss / 1e6,
                "open files": process.num_fds(),
                "sockets": len(process.net_connections("all")),
                "threads": process.num_threads(),
                "CPU seconds": times.user + times.system + times.children_user + times.children_system,
            }
            figures = {what: figures[what] + number for what, number in taken.items()}
    return figures
