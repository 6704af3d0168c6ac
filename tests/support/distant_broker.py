"""A Kafka broker in a network namespace, whose link can be cut while the broker runs."""

from __future__ import annotations

import subprocess

from eventide.spark.session.java import check_java
from eventide.testing import KafkaBroker
from eventide.testing.kafka_broker import kafka_jars
from eventide.testing.servers import ServerFolder
from support.namespaces import Namespace, listens_at

_PORT, _CONTROLLER = 9092, 9093
_JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


class DistantBroker(KafkaBroker):
    """A broker that listens at the address of a namespace."""

    def __init__(self, namespace: Namespace) -> None:
        controller = f"{namespace.address}:{_CONTROLLER}"
        self._namespace = namespace
        super().__init__(
            {
                "controller.quorum.voters": f"1@{controller}",
                "listeners": f"PLAINTEXT://{self.bootstrap_servers},CONTROLLER://{controller}",
                "advertised.listeners": f"PLAINTEXT://{self.bootstrap_servers}",
            }
        )

    @property
    def bootstrap_servers(self) -> str:
        return f"{self._namespace.address}:{_PORT}"

    def start(self) -> None:
        """Start it; unlike other brokers it is not started a second time."""
        folder = self._prepare()
        self._process = self._java(folder, "kafka.Kafka", str(folder.path / "server.properties"))
        folder.wait_for("Kafka broker", self._process, lambda: listens_at(self._namespace.address, _PORT))

    def _java(self, folder: ServerFolder, *arguments: str) -> subprocess.Popen[bytes]:
        return folder.start(
            "Kafka broker", *self._namespace.command, check_java(), *_JAVA, "-cp", f"{kafka_jars()}/*", *arguments
        )
