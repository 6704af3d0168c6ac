"""The client library, confluent-kafka, which ``eventide[kafka]`` brings; loaded where somebody talks to Kafka."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eventide.errors import ProgramError

if TYPE_CHECKING:
    from eventide.connectors.kafka._offsets import KafkaTopicPartition


def library(part: str = "") -> Any:
    """The module confluent_kafka, or a part of it, such as ``admin``.

    Raises:
        ProgramError: if it is not installed where this runs.
    """
    try:
        return import_module(f"confluent_kafka.{part}" if part else "confluent_kafka")
    except ImportError as error:
        raise ProgramError(
            "Kafka needs the library confluent-kafka, which is not installed here: pip install 'eventide[kafka]', also "
            "where Spark's workers run"
        ) from error


CLIENT_DEFAULTS = {
    "log_level": 0,  # errors are reported by the code that waits
    "reconnect.backoff.max.ms": 1_000,  # as the Java client has it; by default, a broker that is back waits for 10 s
}


def client(make: Any, properties: dict[str, Any]) -> Any:
    """A client of the library, made with some properties.

    Raises:
        ProgramError: if there is no such property, or its value has no meaning.
    """
    try:
        return make(properties)
    except (library().KafkaException, TypeError, ValueError) as error:
        raise ProgramError(
            f"a property of Kafka is wrong: {said(error)}. Properties are those of librdkafka, or of the Java "
            "client where they have the same meaning"
        ) from error


def said(error: Any) -> str:
    """Return the text of an error of the library, or of an exception around one."""
    inner = error.args[0] if isinstance(error, Exception) and error.args else error
    return str(inner.str()) if hasattr(inner, "str") else str(inner)


def place(partition: KafkaTopicPartition, *offset: int) -> Any:
    """A partition as the library has it, or a place in it."""
    return library().TopicPartition(partition.topic, partition.partition, *offset)
