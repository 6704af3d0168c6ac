"""A real Kafka broker on this machine, with nothing but Java."""

from __future__ import annotations

import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from eventide.errors import EventideError, ProgramError
from eventide.spark.java import check_java
from eventide.testing._guarded_folder import GuardedFolder
from eventide.testing._kafka_jars import kafka_jars
from eventide.testing._kafka_settings import as_file, broker_settings
from eventide.testing._ports import HOST, free_ports, listens

_PATIENCE_S = 60


class KafkaBroker:
    """A cluster of one Kafka broker, for tests: it starts in seconds, can be killed, and comes back with its data.

    The broker is Kafka itself, in a process of its own. Its jars are fetched from the Maven repository by the first
    who needs them, half a minute, and kept in the user's cache folder. Behind the ``with`` block, and however the
    process that started it ends, neither a process nor data is left.

    Args:
        settings: Settings of the broker, by Kafka's names, in place of those that it has here.
        users: Passwords by name. With any, there is a second listener, on which clients log in with SASL/PLAIN.
        jars: A folder with the jars of a broker, in place of those that are fetched.
        java_options: Options of its Java; these let it start sooner, and work slower, than Java's own.

    It keeps records for ever, however old their timestamps are, and makes no topic that nobody has asked for.

    Raises:
        ProgramError: The jars cannot be fetched, or there is no Java.
        EventideError: The broker does not start; the message has the end of its log.

    ::

        with KafkaBroker() as broker:
            broker.create_topic("flights", partitions=3)
            KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers)
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        users: Mapping[str, str] | None = None,
        jars: str | Path | None = None,
        java_options: Sequence[str] = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    ) -> None:
        self._more = dict(settings or {})
        self._users = dict(users or {})
        self._jars = None if jars is None else Path(jars)
        self._java_options = list(java_options)
        self._folder: GuardedFolder | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: dict[str, int] = {}
        self._admin: Any = None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find the broker: host and port. It stays the same when the broker starts again."""
        return self._address("PLAINTEXT")

    @property
    def sasl_bootstrap_servers(self) -> str:
        """Where clients find it that log in, with ``security.protocol`` SASL_PLAINTEXT and ``sasl.mechanism`` PLAIN.

        Raises:
            ProgramError: The broker has no users.
        """
        if not self._users:
            raise ProgramError("this broker knows no users; give it some: KafkaBroker(users={name: password})")
        return self._address("SASL_PLAINTEXT")

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, for the first time or where it was stopped or killed: with the same data, at the same port.

        Nothing happens where it runs.

        Raises:
            EventideError: It does not start; the message has the end of its log.
        """
        if self.is_running:
            return
        if self._folder is None:
            self._prepare()
        self._process = self._java("kafka.Kafka", self._settings_file())
        self._guard(self._process.pid)
        deadline = time.monotonic() + _PATIENCE_S
        while not all(listens(port) for port in self._ports.values()):
            if not self.is_running or time.monotonic() > deadline:
                self.kill()
                raise EventideError(f"the Kafka broker does not start. It said:\n{self._said()}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End it as an operator does: it says good-bye to its clients, and writes down what it has."""
        self._end(subprocess.Popen.terminate)

    def kill(self) -> None:
        """End it at once, as a failure does (SIGKILL); :meth:`start` brings it back."""
        self._end(subprocess.Popen.kill)

    def close(self) -> None:
        """End it for good, with all that it has; the end of a ``with`` block does the same."""
        self._admin = None
        self.kill()
        if self._folder is not None:
            self._folder.close()
            self._folder, self._ports = None, {}

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Make a topic, and wait until it can be written to.

        Args:
            name: Its name.
            partitions: The number of its partitions; -1 for as many as the broker's settings say.
            config: Settings of the topic, by Kafka's names.
        """
        from confluent_kafka.cimpl import NewTopic

        admin = self._administrator()
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        admin.create_topics([topic])[name].result()
        self._wait_for(f"leaders of the topic {name!r}", lambda: self._has_leaders(name))

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all that is in it, and wait until it is gone."""
        admin = self._administrator()
        admin.delete_topics([name])[name].result()
        self._wait_for(f"the end of the topic {name!r}", lambda: name not in admin.list_topics(timeout=10).topics)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self) -> None:
        """Lay out the folder of the cluster."""
        self._jars = self._jars or kafka_jars()
        self._folder = GuardedFolder("eventide-kafka-")
        listeners = ["PLAINTEXT", "CONTROLLER", *(["SASL_PLAINTEXT"] if self._users else [])]
        self._ports = dict(zip(listeners, free_ports(len(listeners)), strict=True))
        settings = broker_settings(self._ports, str(self._folder.path / "log"), self._users, self._more)
        Path(self._settings_file()).write_text(as_file(settings), encoding="utf-8")
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if self._java(
            "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", self._settings_file()
        ).wait():
            raise EventideError(f"the folder of the Kafka broker could not be laid out. It said:\n{self._said()}")

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        command = [check_java(), *self._java_options, level, "-cp", f"{self._jars}/*", *arguments]
        with self._log_file().open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def _settings_file(self) -> str:
        return str(self._log_file().with_name("server.properties"))

    def _log_file(self) -> Path:
        return (self._folder.path if self._folder else Path()) / "broker.log"

    def _said(self) -> str:
        return self._log_file().read_text(encoding="utf-8", errors="replace").strip()[-4000:]

    def _address(self, listener: str) -> str:
        if listener not in self._ports:
            raise ProgramError("the broker has not been started: use it within `with KafkaBroker() as broker:`")
        return f"{HOST}:{self._ports[listener]}"

    def _end(self, by: Any) -> None:
        if self._process is not None:
            by(self._process)
            self._process.wait()
            self._process = None
            self._guard()

    def _guard(self, *processes: int) -> None:
        if self._folder is not None:
            self._folder.guard(*processes)

    def _administrator(self) -> Any:
        if self._admin is None:
            try:
                from confluent_kafka.admin import AdminClient
            except ImportError as error:
                raise ProgramError("topics are made with confluent-kafka: pip install 'eventide[kafka]'") from error
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        return self._admin

    def _has_leaders(self, topic: str) -> bool:
        partitions = self._administrator().list_topics(topic, timeout=10).topics[topic].partitions.values()
        return bool(partitions) and all(one.leader >= 0 and not one.error for one in partitions)

    def _wait_for(self, what: str, is_so: Any) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not is_so():
            if time.monotonic() > deadline:
                raise EventideError(f"the Kafka broker has kept a test waiting for {what} for {_PATIENCE_S} seconds")
            time.sleep(0.02)
