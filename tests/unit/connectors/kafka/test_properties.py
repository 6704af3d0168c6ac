"""Properties of the Java client as librdkafka has them: translated, without effect and said so, or refused."""

from __future__ import annotations

import re
import warnings

import pytest

from eventide.connectors.kafka._properties import ConnectorOptions, as_text, librdkafka_properties
from eventide.errors import ProgramError

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="wren" password="a \\"b\\" \\\\ c";'
SCRAM = (
    "org.apache.flink.kafka.shaded.org.apache.kafka.common.security.scram.ScramLoginModule required\n"
    "  username=wren\n  password='it';\n"
)


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ({"security.protocol": "SASL_SSL"}, {"security.protocol": "SASL_SSL"}),
        ({"isolation.level": "read_committed"}, {"isolation.level": "read_committed"}),
        ({"fetch.max.wait.ms": "20"}, {"fetch.wait.max.ms": "20"}),
        ({"receive.buffer.bytes": "-1"}, {"socket.receive.buffer.bytes": "0"}),
        ({"send.buffer.bytes": "9"}, {"socket.send.buffer.bytes": "9"}),
        ({"buffer.memory": "33554432"}, {"queue.buffering.max.kbytes": "32768"}),
        ({"max.request.size": "5"}, {"message.max.bytes": "5"}),
        ({"queued.min.messages": "7"}, {"queued.min.messages": "7"}),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.location": "ca.pem"}, {"ssl.ca.location": "ca.pem"}),
        ({"ssl.truststore.certificates": "-----"}, {"ssl.ca.pem": "-----"}),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.location": "me.pem"},
            {"ssl.certificate.location": "me.pem", "ssl.key.location": "me.pem"},
        ),
        (
            {"ssl.keystore.location": "me.p12", "ssl.keystore.password": "x"},
            {"ssl.keystore.location": "me.p12", "ssl.keystore.password": "x"},
        ),
        (
            {"ssl.keystore.certificate.chain": "c", "ssl.keystore.key": "k", "ssl.key.password": "p"},
            {"ssl.certificate.pem": "c", "ssl.key.pem": "k", "ssl.key.password": "p"},
        ),
        ({"sasl.jaas.config": PLAIN}, {"sasl.username": "wren", "sasl.password": 'a "b" \\ c'}),
        ({"sasl.jaas.config": SCRAM}, {"sasl.username": "wren", "sasl.password": "'it'"}),
        ({"partition.discovery.interval.ms": "1000", "client.id.prefix": "a"}, {}),
        ({"commit.offsets.on.checkpoint": "false", "default.api.timeout.ms": "5"}, {}),
        ({"enable.auto.commit": "false"}, {}),
    ],
)
def test_a_property_is_translated(java: dict[str, str], librdkafka: dict[str, str]) -> None:
    assert librdkafka_properties(java) == librdkafka


@pytest.mark.parametrize(
    ("java", "instead"),
    [
        ({"ssl.truststore.location": "trust.jks"}, "ssl.ca.location"),
        ({"ssl.truststore.password": "x"}, "ssl.ca.location"),
        ({"ssl.keystore.location": "me.jks"}, "ssl.certificate.location and ssl.key.location"),
        ({"ssl.engine.factory.class": "x.Y"}, "ssl.*.location"),
        ({"ssl.enabled.protocols": "TLSv1.3"}, "leave it out"),
        ({"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"}, "sasl.kerberos.keytab"),
        (
            {"sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"},
            "sasl.oauthbearer.method=oidc",
        ),
        ({"sasl.jaas.config": "a.PlainLoginModule required username=wren;"}, "has no password"),
        ({"sasl.jaas.config": "nonsense"}, "sasl.username and sasl.password"),
        ({"sasl.login.callback.handler.class": "x.Y"}, "sasl.oauthbearer.method"),
        ({"interceptor.classes": "x.Y"}, "let a function"),
        ({"partitioner.class": "x.Y"}, "murmur2_random"),
        ({"flink.partition-discovery.interval-millis": "5"}, "partition.discovery.interval.ms"),
    ],
)
def test_a_property_without_a_counterpart_is_refused_with_what_to_set_instead(
    java: dict[str, str], instead: str
) -> None:
    with pytest.raises(ProgramError, match=re.escape(instead)) as caught:
        librdkafka_properties(java)
    assert next(iter(java)).rpartition(".")[0] in str(caught.value)


@pytest.mark.parametrize(
    "name", ["max.poll.records", "auto.offset.reset", "key.deserializer", "register.consumer.metrics"]
)
def test_a_property_without_effect_is_left_out_with_a_warning(name: str) -> None:
    with pytest.warns(UserWarning, match=f"^the property {name} has no effect: "):
        assert librdkafka_properties({name: "x"}) == {}


def test_the_warning_points_into_the_program() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        librdkafka_properties({"enable.auto.commit": "true"})
    assert [warning.filename for warning in caught] == [__file__]


def test_the_connector_s_own_properties_have_flink_s_defaults() -> None:
    assert ConnectorOptions.of({}) == ConnectorOptions(300_000, True, None, 120_000)


def test_the_connector_s_own_properties_are_taken() -> None:
    options = ConnectorOptions.of(
        {
            "partition.discovery.interval.ms": "-1",
            "commit.offsets.on.checkpoint": "False",
            "client.id.prefix": "flights",
            "default.api.timeout.ms": "5000",
        }
    )
    assert options == ConnectorOptions(None, False, "flights", 5_000)


@pytest.mark.parametrize(
    ("name", "value"), [("partition.discovery.interval.ms", "5 s"), ("commit.offsets.on.checkpoint", "yes")]
)
def test_a_value_without_meaning_is_refused(name: str, value: str) -> None:
    with pytest.raises(ProgramError, match=f"{name}.*{value}"):
        ConnectorOptions.of({name: value})


def test_numbers_and_truth_values_become_text() -> None:
    assert [as_text("a", value) for value in ("x", 5, True)] == ["x", "5", "true"]
    with pytest.raises(ProgramError, match="a property has a name and a value"):
        as_text("a", None)
