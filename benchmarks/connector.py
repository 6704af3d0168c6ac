"""Spark's own connector for Kafka, which does not come with PySpark: the newest version that the repository has."""

from __future__ import annotations

from pathlib import Path

from pyspark import __version__ as spark_version

from eventide.errors import ProgramError
from eventide.testing.kafka_broker import fetched

_VERSIONS = ("4.3.0", "4.2.0", "4.1.0")  # a newer one may not be there yet; an older one works with a newer Spark
_NEEDED = (
    "spark-sql-kafka",
    "spark-token-provider-kafka",
    "kafka-clients",
    "commons-pool2",
)  # what else is Spark's own


def connector() -> tuple[str, list[Path]]:
    """The version of Spark's connector for Kafka, and the jars that a session needs.

    Raises:
        ProgramError: if there is none.
    """
    said = ""
    for version in dict.fromkeys([spark_version, *_VERSIONS]):
        try:
            folder = fetched(f"spark-kafka-{version}", ("org.apache.spark", "spark-sql-kafka-0-10_2.13", version))
        except ProgramError as error:
            said = str(error)
        else:
            return version, [jar for jar in sorted(folder.iterdir()) if jar.name.startswith(_NEEDED)]
    raise ProgramError(f"there is no connector of Spark's for Kafka to be had: {said}")
