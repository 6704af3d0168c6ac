"""Three Kafka brokers on this machine, two of which can be killed and come back: topics have a copy on each."""

from __future__ import annotations

import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import Self

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from eventide.spark.session.java import check_java
from eventide.testing.kafka_broker import HOST, ServerFolder, free_ports, kafka_jars, listens

_JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
_NO_BROKER = -1
_COPIES, _IN_SYNC = "3", "2"
_SETTINGS = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "default.replication.factor": _COPIES,
    "min.insync.replicas": _IN_SYNC,
    "offsets.topic.replication.factor": _COPIES,
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": _COPIES,
    "transaction.state.log.min.isr": _IN_SYNC,
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
    # A broker that was killed is known to be gone, and out of sync, after this time.
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "300",
    "replica.lag.time.max.ms": "2000",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "2",
}


class KafkaCluster:
    """A cluster of three brokers, of which each topic's partitions need two in sync; the first is its controller.

    ::

        with KafkaCluster() as cluster:
            cluster.kill(2)
    """

    def __init__(self) -> None:
        self._folder = ServerFolder("eventide-kafka-cluster-")
        ports = free_ports(4)
        self._controller, self._ports = ports[0], dict(enumerate(ports[1:], start=1))
        self._id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap_servers(self) -> str:
        """All three."""
        return ",".join(f"{HOST}:{port}" for port in self._ports.values())

    def start(self, *nodes: int) -> None:
        """Start some that do not run, with the data that they had."""
        for node in nodes:
            self._running[node] = self._java(node, "kafka.Kafka", self._properties(node))
        for node in nodes:
            port = self._ports[node]
            self._folder.wait_for(_name(node), self._running[node], lambda port=port: listens(port))

    def kill(self, *nodes: int) -> None:
        """End some at once, as a failure does."""
        for node in nodes:
            self._folder.end(self._running.pop(node))

    def create_topic(self, name: str, partitions: int = 1, copies_on: Sequence[int] = (1, 2, 3)) -> None:
        """Make a topic with a copy of each partition on these brokers."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        needed = {"min.insync.replicas": str(min(len(copies_on), int(_IN_SYNC)))}
        rotated = [[*copies_on[n % len(copies_on) :], *copies_on[: n % len(copies_on)]] for n in range(partitions)]
        topic = NewTopic(name, num_partitions=partitions, replica_assignment=rotated, config=needed)
        admin.create_topics([topic])[name].result()

    def wait_until_leaderless(self, topic: str) -> None:
        """Wait until the cluster knows that no broker leads the topic's first partition."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        while admin.list_topics(topic).topics[topic].partitions[0].leader != _NO_BROKER:
            time.sleep(0.1)

    def __enter__(self) -> Self:
        try:
            for node in self._ports:
                arguments = ("format", f"--cluster-id={self._id}", "-c", self._properties(node))
                assert self._java(node, "kafka.tools.StorageTool", *arguments).wait() == 0, self._folder.said(
                    _name(node)
                )
            self.start(*self._ports)
        except BaseException:
            self._folder.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.close()

    def _properties(self, node: int) -> str:
        listeners = {"PLAINTEXT": self._ports[node]} | ({"CONTROLLER": self._controller} if node == 1 else {})
        settings = _SETTINGS | {
            "process.roles": "broker,controller" if node == 1 else "broker",
            "node.id": str(node),
            "controller.quorum.voters": f"1@{HOST}:{self._controller}",
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in listeners.items()),
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self._ports[node]}",
            "log.dirs": str(self._folder.path / f"log-{node}"),
        }
        file = self._folder.path / f"server-{node}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return str(file)

    def _java(self, node: int, *arguments: str) -> subprocess.Popen[bytes]:
        return self._folder.start(_name(node), check_java(), *_JAVA, "-cp", f"{kafka_jars()}/*", *arguments)


def _name(node: int) -> str:
    return f"Kafka broker {node}"
