"""Topics in tests, beside the program under test: fill them, and read what any reader would see."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from eventide.testing import KafkaBroker

QUIET = {"log_level": 0}


def new_topic(broker: KafkaBroker, partitions: int = 1, **config: str) -> str:
    """A topic that no other test has."""
    name = f"topic-{uuid.uuid4().hex[:12]}"
    broker.create_topic(name, partitions, {setting.replace("_", "."): value for setting, value in config.items()})
    return name


def produce(broker: KafkaBroker, topic: str, records: Iterable[dict[str, Any] | bytes]) -> None:
    """Write records, each as its value or with the arguments of confluent-kafka's ``produce``."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, **QUIET})
    for record in records:
        producer.produce(topic, **(record if isinstance(record, dict) else {"value": record}))
    assert producer.flush(30) == 0


def contents(broker: KafkaBroker, topic: str, isolation: str = "read_committed") -> list[Message]:
    """All that a reader sees in a topic now, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 10,  # else each end of a partition takes half a second
            **QUIET,
        }
    )
    found: list[Message] = []
    try:
        for partition in sorted(consumer.list_topics(topic, timeout=30).topics[topic].partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            found += _to_the_end(consumer)
    finally:
        consumer.close()
    return found


def _to_the_end(consumer: Consumer) -> Iterable[Message]:
    while True:
        message = consumer.poll(30)
        assert message is not None, "the broker says nothing"
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            return
        else:
            raise AssertionError(str(error))


def values(broker: KafkaBroker, topic: str, isolation: str = "read_committed") -> list[bytes | None]:
    """The values of what a reader sees in a topic."""
    return [message.value() for message in contents(broker, topic, isolation)]
