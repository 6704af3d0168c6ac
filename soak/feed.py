"""Feed of the job: records of topics that come and go, files that come and go, keys that never come again."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections import deque
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer

from eventide.testing import KafkaBroker
from soak.program import READINGS, RESULTS

_EACH_S = 1.0
_RECORDS = 60
"""Number of records of topics that come at a time; of each kind of files, half as many."""
_RECORDS_OF_A_KEY = 40
_DISORDER_MS = 2_000
_LATE_MS = 60_000
_FILE_LIVES_S = 180
_TOPIC_EACH_S, _TOPIC_SPEAKS_S, _TOPIC_LIVES_S = 60, 60, 240
_FOLDER_EACH_S, _FOLDER_LIVES_S = 60, 240


class Feed:
    """Feeds the job at an even rate, in a thread of its own, until it is stopped.

    Files and folders go some time after they came, when they have long been read, and so do topics but the first.

    Args:
        broker: where the topics are.
        files: the folder in which each file is a split.
        folders: the folder in which each folder is a split.
        begins_ms: the event time of the first records, in milliseconds since the epoch.
        speed: how many seconds of event time go by in a second of the clock.
    """

    def __init__(self, broker: KafkaBroker, files: Path, folders: Path, begins_ms: int, speed: int) -> None:
        self._begins_ms, self._speed = begins_ms, speed
        self._began = time.monotonic()
        self._broker = broker
        self._files, self._folders = files, folders
        self._random = random.Random(7)
        self._number = 0
        self._topics: deque[tuple[float, str]] = deque()
        self._living: deque[tuple[float, Path]] = deque()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        self.error: Exception | None = None
        for folder in (files, folders):
            folder.mkdir(parents=True)
        broker.create_topic(RESULTS)
        broker.create_topic(f"{READINGS}-0", 2)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            began, second = time.monotonic(), 0
            while not self._over.wait(max(0.0, began + second * _EACH_S - time.monotonic())):
                self._speak(second)
                self._clear(second)
                second += 1
        except Exception as error:  # its starter looks at it
            self.error = error

    def _speak(self, second: int) -> None:
        if second and second % _TOPIC_EACH_S == 0:
            topic = f"{READINGS}-{second}"
            self._broker.create_topic(topic)
            self._topics.append((second, topic))
        topics = [f"{READINGS}-0", *(topic for since, topic in self._topics if second < since + _TOPIC_SPEAKS_S)]
        for place, record in enumerate(self._records(_RECORDS)):
            self._producer.produce(topics[place % len(topics)], json.dumps(record))
        self._producer.flush()
        self._write(self._files / f"{second:06}.parquet")
        self._living.append((second + _FILE_LIVES_S, self._files / f"{second:06}.parquet"))
        folder = self._folders / f"folder-{second // _FOLDER_EACH_S}"
        if not folder.exists():
            folder.mkdir()
            self._living.append((second + _FOLDER_LIVES_S, folder))
        self._write(folder / f"{second:06}.parquet")

    def _write(self, path: Path) -> None:
        """Write a file, which appears as a whole."""
        hidden = path.with_name(f".{path.name}")
        pq.write_table(pa.Table.from_pylist(self._records(_RECORDS // 2)), hidden)
        hidden.rename(path)

    def _records(self, count: int) -> list[dict[str, object]]:
        now_ms = self.event_ms()
        return [self._record(now_ms) for _ in range(count)]

    def event_ms(self) -> int:
        """Return the event time that it has come to, in milliseconds since the epoch."""
        return self._begins_ms + round((time.monotonic() - self._began) * 1_000 * self._speed)

    def _record(self, now_ms: int) -> dict[str, object]:
        """The next record; each key is that of a few that follow each other, and of none after them."""
        self._number += 1
        behind = (self._random.randrange(_DISORDER_MS) + (_LATE_MS if self._number % 200 == 0 else 0)) * self._speed
        key = f"key-{self._number // (_RECORDS_OF_A_KEY * 8)}-{self._number % 8}"
        return {"key": key, "value": self._number, "ts": now_ms - behind}

    def _clear(self, second: int) -> None:
        for _ in range(len(self._living)):
            until, path = self._living.popleft()
            if second < until:
                self._living.append((until, path))
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        while self._topics and second >= self._topics[0][0] + _TOPIC_LIVES_S:
            self._broker.delete_topic(self._topics.popleft()[1])
