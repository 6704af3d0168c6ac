"""A real Kafka broker on this machine, with nothing but Java; its jars are fetched once, and kept."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self
from xml.sax.saxutils import quoteattr

from eventide.errors import EventideError, ProgramError, getting
from eventide.spark.session.java import check_java
from eventide.testing.servers import HOST, ServerFolder, free_ports, listens

KAFKA_VERSION = "4.1.0"
_PATIENCE_S = 60
_NAME = "Kafka broker"

_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "num.partitions": "1",
    "auto.create.topics.enable": "false",
    # One broker cannot have two copies, and a test needs few partitions of Kafka's own topics.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Event times of long ago would be deleted within seconds: Kafka counts the age of a record from its timestamp.
    "log.retention.ms": "-1",
    # A broker that was killed is known to be gone, and may come back, after this time.
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "300",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "log.cleaner.backoff.ms": "1000",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "2",
}
"""The settings of a broker that is all of its cluster: it starts quickly, and keeps what it is given."""


def kafka_jars() -> Path:
    """The folder of a broker's jars; the first call fetches them: half a minute, 43 MB.

    Raises:
        ProgramError: The jars cannot be fetched; the message has what Ivy said.
    """
    # Without a logger, a broker does not say why it does not start.
    logging = ("org.slf4j", "slf4j-simple", "1.7.36")
    return fetched(f"kafka-{KAFKA_VERSION}", ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION), logging)


class KafkaBroker:
    """A cluster of one Kafka broker, for tests: it starts in seconds, can be killed, and comes back with its data.

    The broker is Kafka itself, in a process of its own. Its jars are fetched from the Maven repository when they are
    needed for the first time, half a minute, and kept in the user's cache folder. After the ``with`` block, and however
    the process that started the broker ends, neither a process nor data is left.

    Args:
        settings: Settings of the broker, by Kafka's names, in place of those that it has here.
        users: Passwords by name. With any, there is a second listener, on which clients log in with SASL/PLAIN.
        jars: A folder with the jars of a broker, in place of those that are fetched.
        java_options: Options of its Java; these let it start sooner, and work slower, than Java's own.

    It keeps records for ever, however old their timestamps are, and makes a topic only when it is asked to.

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
        self._folder: ServerFolder | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: dict[str, int] = {}
        self._admin: object = None

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
        folder = self._folder or self._prepare()
        self._process = self._java(folder, "kafka.Kafka", str(folder.path / "server.properties"))
        try:
            folder.wait_for(_NAME, self._process, lambda: all(map(listens, self._ports.values())))
        except EventideError:
            self.kill()
            raise

    def stop(self) -> None:
        """End it as an operator does: it takes leave of its clients, and writes down what it has."""
        self._end(gently=True)

    def kill(self) -> None:
        """End it at once, as a failure does (SIGKILL); :meth:`start` brings it back."""
        self._end()

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

    def _prepare(self) -> ServerFolder:
        """Lay out the folder of the cluster."""
        self._jars = self._jars or kafka_jars()
        self._folder = folder = ServerFolder("eventide-kafka-")
        names = ["PLAINTEXT", "CONTROLLER", *(["SASL_PLAINTEXT"] if self._users else [])]
        self._ports = dict(zip(names, free_ports(len(names)), strict=True))
        listeners = {name: f"{name}://{HOST}:{port}" for name, port in self._ports.items()}
        settings = _SETTINGS | {
            "controller.quorum.voters": f"1@{HOST}:{self._ports['CONTROLLER']}",
            "listeners": ",".join(listeners.values()),
            "advertised.listeners": ",".join(listeners[name] for name in names if name != "CONTROLLER"),
            "log.dirs": str(folder.path / "log"),
        }
        if self._users:
            quoted = {name: _escaped(password).replace('"', '\\"') for name, password in self._users.items()}
            known = " ".join(f'user_{name}="{password}"' for name, password in quoted.items())
            settings["sasl.enabled.mechanisms"] = "PLAIN"
            settings["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = (
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {known};"
            )
        lines = [f"{name}={_escaped(value)}\n" for name, value in (settings | self._more).items()]
        file = folder.path / "server.properties"
        file.write_text("".join(lines), encoding="utf-8")
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        laid_out = self._java(folder, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(file))
        failed = laid_out.wait() != 0
        folder.end(laid_out)
        if failed:
            raise EventideError(
                f"the folder of the Kafka broker could not be laid out. It said:\n{folder.said(_NAME)[-4000:]}"
            )
        return folder

    def _java(self, folder: ServerFolder, *arguments: str) -> subprocess.Popen[bytes]:
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return folder.start(_NAME, check_java(), *self._java_options, level, "-cp", f"{self._jars}/*", *arguments)

    def _address(self, listener: str) -> str:
        if listener not in self._ports:
            raise ProgramError("the broker has not been started: use it within `with KafkaBroker() as broker:`")
        return f"{HOST}:{self._ports[listener]}"

    def _end(self, *, gently: bool = False) -> None:
        if self._process is not None and self._folder is not None:
            self._folder.end(self._process, gently=gently)
            self._process = None

    def _administrator(self) -> Any:
        if self._admin is None:
            try:
                from confluent_kafka.admin import AdminClient
            except ImportError as error:
                raise ProgramError(f"topics are made with confluent-kafka: {getting('kafka')}") from error
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        return self._admin

    def _has_leaders(self, topic: str) -> bool:
        partitions = self._administrator().list_topics(topic, timeout=10).topics[topic].partitions.values()
        return bool(partitions) and all(one.leader >= 0 and not one.error for one in partitions)

    def _wait_for(self, what: str, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not is_so():
            if time.monotonic() > deadline:
                raise EventideError(f"a test waited {_PATIENCE_S} s for {what} of the Kafka broker")
            time.sleep(0.02)


def _escaped(text: str) -> str:
    """A text in a file of properties, or within quotes in a login: a backslash begins an escape there."""
    return text.replace("\\", "\\\\")


_REPOSITORY = "DEFAULT_ARTIFACT_REPOSITORY"  # Spark's own name for the repository to ask instead of Ivy's default
_FETCHED_WITHIN_S = 600


def fetched(name: str, *modules: tuple[str, str, str]) -> Path:
    """A folder with the jars of some modules and of all that they need, fetched by the first call for it.

    It is in the user's cache, ``$XDG_CACHE_HOME`` or ``~/.cache``, and appears there when it is complete, so that
    several processes may ask at once.

    Args:
        name: the name of the folder, which says what is in it, with its version.
        modules: organisation, name and version of each module.

    Raises:
        ProgramError: if something cannot be fetched, with Ivy's message.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eventide"
    kept = cache / name
    if kept.is_dir():
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=cache) as folder:
        for module in modules:
            _fetch(name, module, Path(folder))
        try:
            Path(folder, "jars").rename(kept)
        except OSError:
            if not kept.is_dir():  # else another process was there first
                raise
    return kept


def _fetch(name: str, module: tuple[str, str, str], folder: Path) -> None:
    """Let Ivy resolve a module, with nothing of its own outside of this folder."""
    command = [check_java(), "-jar", _ivy(), "-warn", "-cache", str(folder / "cache")]
    if repository := os.environ.get(_REPOSITORY):
        settings = folder / "ivysettings.xml"
        settings.write_text(
            '<ivysettings><settings defaultResolver="it"/><resolvers>'
            f'<ibiblio name="it" m2compatible="true" root={quoteattr(repository)}/></resolvers></ivysettings>',
            encoding="utf-8",
        )
        command += ["-settings", str(settings)]
    command += ["-dependency", *module, "-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{folder}/jars/[artifact]-[revision].[ext]"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_FETCHED_WITHIN_S, check=False)
        is_there, said = ended.returncode == 0 and (folder / "jars").is_dir(), ended.stdout + ended.stderr
    except subprocess.TimeoutExpired:
        is_there, said = False, f"no end within {_FETCHED_WITHIN_S} seconds"
    if not is_there:
        raise ProgramError(
            f"the jars of {name} could not be fetched from the Maven repository; they are needed once. "
            f"If there is a proxy, name it in JAVA_TOOL_OPTIONS; name another repository in {_REPOSITORY}, as for "
            f"Spark; or put them into a folder {name!r} below eventide's in the user's cache. "
            f"Ivy said:\n{said.strip()[-2000:]}"
        )


def _ivy() -> str:
    """The Ivy among PySpark's jars, found without loading PySpark."""
    spec = find_spec("pyspark")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec and spec.origin else []
    if not found:
        raise ProgramError(
            "jars are fetched by the Ivy that comes with PySpark, and there is none in its folder jars; install the "
            "whole package pyspark"
        )
    return str(found[0])
