"""Sinks of Kafka that are killed, cut off or looked at: the jobs, and what they have written."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Message

from eventide.common import SimpleStringSchema
from eventide.connectors.kafka.sink_writer import Mark, Transactions
from eventide.datastream.connectors import DeliveryGuarantee, KafkaSink
from eventide.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSinkBuilder
from eventide.testing import KafkaBroker
from support.kafka_sink_job import texts
from support.kafka_topics import new_topic

ROWS = 4_000


def sink_to(servers: str, topic: str) -> KafkaSinkBuilder:
    records = KafkaRecordSerializationSchema.builder().set_topic(topic)
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(records.set_value_serialization_schema(SimpleStringSchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"prefix-{uuid.uuid4().hex[:8]}")
        .set_property("default.api.timeout.ms", "60000")
    )


def table(*records: bytes) -> pa.Table:
    return pa.table({"value": pa.array(records, pa.binary()), "timestamp": pa.array([5] * len(records), pa.int64())})


def marks(sink: KafkaSink) -> list[Mark]:
    """The marks of a sink, as the next run finds them."""
    transactions = Transactions(sink)
    found = transactions.marks()
    transactions.close()
    return found


class Killable:
    """One life of a job after the other, on one checkpoint.

    Args:
        program: the file of the job.
        folder: where its checkpoint and its log are.
        arguments: those of the program.
    """

    def __init__(self, broker: KafkaBroker, program: str, folder: Path, *arguments: str) -> None:
        folder.mkdir(exist_ok=True)
        self.broker = broker
        self._command = [sys.executable, str(Path(__file__).with_name(program)), broker.bootstrap_servers, *arguments]
        self._log = folder / "log"

    def start(self, *kill: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen([*self._command, *kill], stdout=log, stderr=log, start_new_session=True)

    def ends(self, life: subprocess.Popen[bytes], timeout: float = 300) -> int:
        """Wait for the end of a life, and end what it has started."""
        try:
            return life.wait(timeout)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(life.pid, signal.SIGKILL)

    def said(self) -> str:
        return self._log.read_text()[-3_000:]


class Numbered(Killable):
    """Numbered texts into a topic, three in each micro-batch."""

    def __init__(self, broker: KafkaBroker, folder: Path, batches: int) -> None:
        self.topic = new_topic(broker)
        self._batches = batches
        arguments = [self.topic, f"prefix-{self.topic}", str(folder / "checkpoint"), str(batches)]
        super().__init__(broker, "kafka_sink_job.py", folder, *arguments)

    def expected(self) -> list[bytes]:
        return [text.encode() for batch in range(self._batches) for text in texts(batch)]


def by_key(messages: list[Message]) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for message in messages:
        found.setdefault(message.key(), []).append(message.value())
    return found


def disordered(numbers: random.Random) -> Iterator[dict[str, Any]]:
    """Events of a few users, 100 in a second, a little out of order, now and then late; in two partitions."""
    for n in range(ROWS):
        timestamp = 1_700_000_000_000 + 10 * n + numbers.randrange(1_500) - (8_000 if n % 61 == 0 else 0)
        value = b'{"user":"user-%d","n":%d}' % (numbers.randrange(9), n)
        yield {"value": value, "partition": n % 2, "timestamp": timestamp}
