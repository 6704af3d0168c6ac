"""Settings of a Kafka source; and the properties of Flink programs, which are translated or refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from eventide.common.accepted import has_no_effect
from eventide.connectors.kafka._offsets import KafkaOffsetsInitializer, Subscription
from eventide.connectors.kafka._records import KafkaRecordDeserializationSchema
from eventide.errors import ProgramError

_READ_COMMITTED = "read_committed"

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
_BYTES_AS_ELEMENTS = "keys and values are read and written by the schemas that the builder is given"
_PLANNED = "eventide's own plan of a micro-batch distributes the partitions"
_COMMITTED = "offsets are committed with each micro-batch; commit.offsets.on.checkpoint=false turns that off"
_COUNTED = "the job's own metrics have what is counted"
_WITHOUT_EFFECT = {
    "key.deserializer": _BYTES_AS_ELEMENTS,
    "value.deserializer": _BYTES_AS_ELEMENTS,
    "key.serializer": _BYTES_AS_ELEMENTS,
    "value.serializer": _BYTES_AS_ELEMENTS,
    "auto.commit.interval.ms": _COMMITTED,
    "auto.offset.reset": "the KafkaOffsetsInitializer of set_starting_offsets says where to start",
    "enable.auto.commit": _COMMITTED,
    "max.poll.records": "a micro-batch takes what there is, or what set_max_rows_per_batch of the environment allows",
    "partition.assignment.strategy": _PLANNED,
    "exclude.internal.topics": "set_topic_pattern leaves internal topics out",
    "max.block.ms": "delivery.timeout.ms says how long a record may take",
    "metadata.max.idle.ms": "the client knows the topics that are in use, and no others",
    "metric.reporters": _COUNTED,
    "metrics.num.samples": _COUNTED,
    "metrics.recording.level": _COUNTED,
    "metrics.sample.window.ms": _COUNTED,
    "auto.include.jmx.reporter": _COUNTED,
    "enable.metrics.push": _COUNTED,
    "register.consumer.metrics": _COUNTED,
    "register.producer.metrics": _COUNTED,
}
_UNLESS = {"enable.auto.commit": "false", "exclude.internal.topics": "true", "enable.metrics.push": "false"}
"""Values that describe what always holds, and need no warning."""

_WITHOUT_COUNTERPART = {
    "interceptor.classes": "interceptors are classes of Java; let a function of the stream do it",
    "partitioner.class": "set partitioner to one of librdkafka's; murmur2_random is the default of the Java client",
    "partitioner.ignore.keys": "set partitioner to one of librdkafka's; random ignores keys",
    "flink.partition-discovery.interval-millis": "it was of FlinkKafkaConsumer; set partition.discovery.interval.ms",
}

_DISCOVERY, _COMMIT, _PREFIX = "partition.discovery.interval.ms", "commit.offsets.on.checkpoint", "client.id.prefix"
_PATIENCE = "default.api.timeout.ms"

_LOGIN = re.compile(r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*);\s*\Z", re.DOTALL | re.IGNORECASE)
_OPTION = re.compile(r'\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))')
_WITH_PASSWORD = ("PlainLoginModule", "ScramLoginModule")

_STORES = {
    "ssl.truststore.location": "ssl.ca.location with a file of PEM; keytool -exportcert -rfc writes one",
    "ssl.keystore.location": "ssl.certificate.location and ssl.key.location with files of PEM, or "
    "ssl.keystore.type=PKCS12; keytool -importkeystore -deststoretype PKCS12 makes one",
}
_PEM = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_CHOSEN_BY_OPENSSL = "OpenSSL chooses it; leave it out"
_ONLY_IN_JAVA = {
    "ssl.protocol": _CHOSEN_BY_OPENSSL,
    "ssl.enabled.protocols": _CHOSEN_BY_OPENSSL,
    "ssl.provider": _CHOSEN_BY_OPENSSL,
    "ssl.keymanager.algorithm": _CHOSEN_BY_OPENSSL,
    "ssl.trustmanager.algorithm": _CHOSEN_BY_OPENSSL,
    "ssl.secure.random.implementation": _CHOSEN_BY_OPENSSL,
    "ssl.engine.factory.class": "it is a class of Java; name keys and certificates with ssl.*.location",
    "security.providers": "they are classes of Java; name keys and certificates with ssl.*.location",
    "sasl.client.callback.handler.class": "it is a class of Java; use sasl.oauthbearer.method and its like",
    "sasl.login.callback.handler.class": "it is a class of Java; use sasl.oauthbearer.method and its like",
    "sasl.login.class": "it is a class of Java; use sasl.username and sasl.password",
}


@dataclass(frozen=True, slots=True)
class ConnectorOptions:
    """Properties for the connector, not for the client, under Flink's names.

    Args:
        discovery_interval_ms: The interval of partition discovery; None for never. 5 minutes by default.
        commits_offsets: Whether handled offsets are committed to the group.
        client_id_prefix: The prefix of the clients' names.
        patience_ms: How long a request without an answer is repeated; 2 minutes by default.
    """

    discovery_interval_ms: int | None = 300_000
    commits_offsets: bool = True
    client_id_prefix: str | None = None
    patience_ms: int = 120_000

    @staticmethod
    def of(properties: Mapping[str, str]) -> ConnectorOptions:
        """Read the options from properties.

        Raises:
            ProgramError: One of them is not a number, or neither true nor false.
        """
        interval = _number(properties, _DISCOVERY, 300_000)
        commits = properties.get(_COMMIT, "true").strip().lower()
        if commits not in {"true", "false"}:
            raise ProgramError(f"the property {_COMMIT} is true or false, not {properties[_COMMIT]!r}")
        return ConnectorOptions(
            interval if interval > 0 else None,
            commits == "true",
            properties.get(_PREFIX),
            _number(properties, _PATIENCE, 120_000),
        )


def as_text(name: str, value: object) -> str:
    """The value of a property as text, which may be given as a number or a boolean.

    Raises:
        ProgramError: if it is of another type, or the name is not text.

    >>> as_text("enable.auto.commit", False)
    'false'
    """
    if isinstance(name, str) and name and isinstance(value, str | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    raise ProgramError(f"a property has a name and a value, both of them text, not {name!r} and {value!r}")


def librdkafka_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties of the Java client, and of Flink's connectors, as properties of librdkafka.

    Properties of librdkafka itself are unchanged. Properties of Flink's connectors are left out; see
    :class:`ConnectorOptions`. Properties without effect are left out with a warning.

    Raises:
        ProgramError: if one has no equivalent; the error says what to set instead.

    >>> librdkafka_properties({"fetch.max.wait.ms": "20", "client.rack": "b", "partition.discovery.interval.ms": "-1"})
    {'fetch.wait.max.ms': '20', 'client.rack': 'b'}
    """
    found: dict[str, str] = {}
    for name, value in properties.items():
        if name in _WITHOUT_COUNTERPART:
            raise ProgramError(f"the property {name} of the Java client is not supported: {_WITHOUT_COUNTERPART[name]}")
        if name in _WITHOUT_EFFECT:
            if value.strip().lower() != _UNLESS.get(name):
                has_no_effect(f"the property {name}", _WITHOUT_EFFECT[name])
        elif name == "buffer.memory":
            found["queue.buffering.max.kbytes"] = str(max(1, _number(properties, name, 0) // 1024))
        elif name not in {_DISCOVERY, _COMMIT, _PREFIX, _PATIENCE}:
            found[_RENAMED.get(name, name)] = value
    for name in ("socket.receive.buffer.bytes", "socket.send.buffer.bytes"):
        if found.get(name) == "-1":  # Java's value for the default of the system
            found[name] = "0"
    return translated_security(found)


def translated_security(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with TLS and SASL properties in librdkafka's form.

    Raises:
        ProgramError: if one has no equivalent; the error says what to set instead.
    """
    found = dict(properties)
    _translate_trust(found)
    _translate_keys(found)
    for java, name in _PEM.items():
        if java in found:
            found[name] = found.pop(java)
    if found.get("ssl.endpoint.identification.algorithm") == "":
        found["ssl.endpoint.identification.algorithm"] = "none"
    if "sasl.jaas.config" in found:
        login = _login(found.pop("sasl.jaas.config"))
        found = {**login, **found}
    for name, instead in _ONLY_IN_JAVA.items():
        if name in found:
            raise ProgramError(f"the property {name} of the Java client is not supported: {instead}")
    return found


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    try:
        return int(properties.get(name, default))
    except ValueError as error:
        raise ProgramError(
            f"the property {name} is a number of milliseconds or bytes, not {properties[name]!r}"
        ) from error


def _translate_trust(found: dict[str, str]) -> None:
    kind, location = found.pop("ssl.truststore.type", ""), found.pop("ssl.truststore.location", None)
    password = found.pop("ssl.truststore.password", None)
    if location is not None:
        if kind.upper() != "PEM":
            raise _no_store("ssl.truststore.location")
        found["ssl.ca.location"] = location
    elif password is not None:
        raise _no_store("ssl.truststore.location")


def _translate_keys(found: dict[str, str]) -> None:
    kind, location = found.pop("ssl.keystore.type", "").upper(), found.get("ssl.keystore.location")
    if location is None or kind == "PKCS12" or location.endswith((".p12", ".pfx")):
        return  # librdkafka reads PKCS #12, under the same name
    if kind != "PEM":
        raise _no_store("ssl.keystore.location")
    del found["ssl.keystore.location"]
    found |= {"ssl.certificate.location": location, "ssl.key.location": location}


def _no_store(name: str) -> ProgramError:
    return ProgramError(f"{name} names a store of Java's, which only Java reads: set {_STORES[name]}")


def _login(jaas: str) -> dict[str, str]:
    """Read a JAAS login, for the mechanisms with a name and a password."""
    login = _LOGIN.match(jaas)
    module = login[1].rpartition(".")[2] if login else ""
    if login is None or module not in _WITH_PASSWORD:
        instead = {
            "Krb5LoginModule": "set sasl.kerberos.principal, sasl.kerberos.keytab and sasl.kerberos.service.name",
            "OAuthBearerLoginModule": "set sasl.oauthbearer.method=oidc, sasl.oauthbearer.client.id, "
            "sasl.oauthbearer.client.secret and sasl.oauthbearer.token.endpoint.url",
        }.get(module, "set sasl.username and sasl.password")
        what = f"the login module {module}" if module else "what it says"
        raise ProgramError(f"sasl.jaas.config is Java's, and {what} has no counterpart: {instead}")
    options = {
        found[1]: re.sub(r"\\(.)", r"\1", found[2]) if found[3] is None else found[3]
        for found in _OPTION.finditer(login[2])
    }
    if missing := {"username", "password"} - options.keys():
        raise ProgramError(f"sasl.jaas.config has no {' and no '.join(sorted(missing))}; {module} needs both")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


@dataclass(frozen=True, slots=True)
class KafkaSourceSettings:
    """The checked settings of the builder of a Kafka source.

    Args:
        properties: The properties of librdkafka, with the servers; they are not shown, because they contain passwords.
        options: The properties for the connector.
        subscription: The partitions to read.
        deserializer: The deserializer of records.
        starting: The start offsets of partitions.
        stopping: Their stop offsets; None if they do not stop.
        is_bounded: Whether only the partitions of the start are read, and the input is known to end.
        group_id: The group that offsets are committed to, and whose offsets may be start offsets.
        fails_on_data_loss: Whether records that are gone before they were read are an error.
    """

    properties: dict[str, str] = field(hash=False, repr=False)
    options: ConnectorOptions
    subscription: Subscription
    deserializer: KafkaRecordDeserializationSchema
    starting: KafkaOffsetsInitializer
    stopping: KafkaOffsetsInitializer | None = None
    is_bounded: bool = False
    group_id: str | None = None
    fails_on_data_loss: bool = True

    @property
    def servers(self) -> str:
        """The servers of Kafka."""
        return self.properties["bootstrap.servers"]

    @property
    def reads_committed(self) -> bool:
        """Whether records of open and of aborted transactions are skipped; by default not, as in Flink."""
        return self.properties.get("isolation.level", "").lower() == _READ_COMMITTED
