"""The jars of a Kafka broker."""

from __future__ import annotations

from pathlib import Path

from eventide.testing._maven import fetched

VERSION = "4.1.0"


def kafka_jars() -> Path:
    """The folder of jars; the first who asks fetches them: half a minute, 43 MB.

    Raises:
        ProgramError: if they cannot be fetched, with what Ivy said of it.
    """
    # A broker whose log nobody writes says nothing of why it does not start.
    logging = ("org.slf4j", "slf4j-simple", "1.7.36")
    return fetched(f"kafka-{VERSION}", ("org.apache.kafka", "kafka_2.13", VERSION), logging)
