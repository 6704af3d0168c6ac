"""The process of the job.

python -m soak.life SERVERS PLACE SPEED

It writes the progress of each micro-batch as a line of JSON, and ends when its standard input does.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from eventide.common.configuration import Configuration
from eventide.common.job import BatchProgress, JobClient
from eventide.datastream import StreamExecutionEnvironment
from soak.program import PARALLELISM, build

PROGRESS = "progress.jsonl"
DASHBOARD = "dashboard.url"
HEAP_MB = 700
RETAINED = 30
"""The number of micro-batches that Spark keeps, in place of 100, so that all is level sooner."""
_TICK_MS = 3_000
_LOOK_S = 2.0


def main(servers: str, place: str, speed: str) -> None:
    """Run the job."""
    settings = Configuration()
    settings.set_string("spark.driver.memory", f"{HEAP_MB}m")
    settings.set_string("spark.sql.streaming.minBatchesToRetain", str(RETAINED))
    settings.set_string("spark.master", f"local[{PARALLELISM}]")
    env = StreamExecutionEnvironment.get_execution_environment(settings).set_parallelism(PARALLELISM)
    env.get_config().set_auto_watermark_interval(_TICK_MS)
    root = Path(place)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(root / "checkpoint"))
    env.set_dashboard(0)
    build(env, servers, root / "files", root / "folders", root / "output", int(speed))
    client = env.execute_async("soak")
    (root / DASHBOARD).write_text(env.get_dashboard_url())
    over = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(over,), daemon=True).start()
    with (root / PROGRESS).open("a") as lines:
        known = -1
        while not over.wait(_LOOK_S) and not client.get_job_status().result().is_terminal_state():
            known = _write(lines, client, known)
    client.cancel().result()
    client.get_job_execution_result().result()


def _wait_for_the_end(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


def _write(lines: Any, client: JobClient, known: int) -> int:
    """Write what is new; return the number of the last micro-batch that was written."""
    for progress in client.get_progress():
        if progress.batch > known:
            known = progress.batch
            lines.write(json.dumps(said(progress)) + "\n")
    lines.flush()
    return known


def said(progress: BatchProgress) -> dict[str, Any]:
    """Return the record of a micro-batch."""
    return {
        "batch": progress.batch,
        "ended_ms": progress.ended_ms,
        "took_ms": progress.took_ms,
        **{f"{what}_ms": ms for what, ms in progress.spent_ms.items()},
        "rows_in": progress.rows_in,
        "state_bytes": sum(progress.state_bytes),
        "splits": sum(map(len, progress.splits_of.values())),
        **_added(progress.held.values()),
        "late": _added(progress.counters.values()).get("numLateRecordsToSideOutput", 0),
        "out": _added(progress.counters.values()).get("numRecordsOut", 0),
    }


def _added(counts: Iterable[dict[str, Any]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for of_operator in counts:
        total.update({name: number for name, number in of_operator.items() if isinstance(number, int)})
    return dict(total)


if __name__ == "__main__":
    main(*sys.argv[1:])
