"""Topics of a real broker, for engines that read nothing but Kafka: filled with the events, and read out."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pandas as pd
from confluent_kafka import Consumer, KafkaError, Producer

from benchmarks.peers.events import STREAMS
from benchmarks.peers.results import COLUMNS
from eventide.testing import KafkaBroker

TOPICS = {"events": ("events", "user"), "events-by-name": ("events", "event"), "answers-by-name": ("answers", "event")}
"""For each topic, what is in it, and the key."""

REBALANCE_MS = 3_000
"""How long a consumer group waits for its members: Kafka's default, where a broker for tests does not wait."""


def broker() -> KafkaBroker:
    """A broker with Kafka's own settings for consumer groups, and those of its Java."""
    return KafkaBroker({"group.initial.rebalance.delay.ms": str(REBALANCE_MS)}, java_options=["-Xmx1g"])


def fill(broker: KafkaBroker, tables: dict[str, pd.DataFrame], programs: Iterable[str]) -> None:
    """Make the topics, and write the events into them."""
    needed = {name for name in TOPICS for program in programs if name.endswith("by-name") == (program == "join")}
    for name in [*needed, *(results_of(program) for program in programs)]:
        broker.create_topic(name, partitions=STREAMS)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 50})
    for name in needed:
        kind, key = TOPICS[name]
        for row in tables[kind].to_dict("records"):
            while True:
                try:
                    producer.produce(name, json.dumps(row).encode(), row[key].encode(), timestamp=row["at"])
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()


def results_of(program: str) -> str:
    """The topic of a program's results."""
    return f"results-{program}"


def read(broker: KafkaBroker, program: str) -> pd.DataFrame:
    """The results of a program."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": f"check-{program}",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([results_of(program)])
    rows, ended = [], set()
    while len(ended) < STREAMS:
        for message in consumer.consume(10_000, timeout=1):
            error = message.error()
            if error is None:
                rows.append(json.loads(message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
    consumer.close()
    return pd.DataFrame(rows)[COLUMNS[program]]
