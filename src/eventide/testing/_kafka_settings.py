"""The settings of a broker that is all of its cluster, made for tests: quick to start, it keeps what it is given."""

from __future__ import annotations

from collections.abc import Mapping

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def broker_settings(
    ports: Mapping[str, int], log: str, users: Mapping[str, str], more: Mapping[str, str]
) -> dict[str, str]:
    """What is in the file of settings.

    Args:
        ports: the port of each listener: ``PLAINTEXT``, ``CONTROLLER``, and ``SASL_PLAINTEXT`` where users log in.
        log: the folder for what the broker keeps.
        users: passwords of those who may log in, by name.
        more: settings of the caller's, which come first.
    """
    listeners = {name: f"{name}://127.0.0.1:{port}" for name, port in ports.items()}
    advertised = {name: place for name, place in listeners.items() if name != "CONTROLLER"}
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(listeners.values()),
        "advertised.listeners": ",".join(advertised.values()),
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "log.dirs": log,
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
        # One that was killed is known to be gone, and may come back, behind this time.
        "broker.session.timeout.ms": "1500",
        "broker.heartbeat.interval.ms": "300",
        "log.cleaner.dedupe.buffer.size": "2097152",
        "num.network.threads": "2",
        "num.io.threads": "2",
        "background.threads": "2",
    }
    if users:
        known = " ".join(f'user_{name}="{_escaped(password)}"' for name, password in users.items())
        settings["sasl.enabled.mechanisms"] = "PLAIN"
        settings["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = f"{_PLAIN} required {known};"
    return settings | dict(more)


def as_file(settings: Mapping[str, str]) -> str:
    """The text of a file of properties, in which Java reads a backslash as the beginning of something."""
    return "".join(f"{name}={_escaped(value, quotes=False)}\n" for name, value in settings.items())


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\")
    return text.replace('"', '\\"') if quotes else text
