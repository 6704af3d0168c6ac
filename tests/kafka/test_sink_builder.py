"""Faults of a sink are errors when it is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eventide.common import SimpleStringSchema
from eventide.datastream.connectors import DeliveryGuarantee, KafkaSink
from eventide.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSinkBuilder
from eventide.errors import ProgramError

RECORDS = KafkaRecordSerializationSchema("topic", SimpleStringSchema())


def whole() -> KafkaSinkBuilder:
    return KafkaSink.builder().set_bootstrap_servers("localhost:9092").set_record_serializer(RECORDS)


def test_the_default_guarantee_is_none_as_in_flink() -> None:
    assert whole().build() == KafkaSink("localhost:9092", RECORDS, DeliveryGuarantee.NONE, None, {})


def test_what_is_set_for_a_login_is_not_shown() -> None:
    sink = whole().set_property("sasl.username", "till").set_property("sasl.password", "top secret").build()
    assert sink.properties["sasl.password"] == "top secret"
    assert "secret" not in repr(sink)


def test_servers_may_be_a_property() -> None:
    sink = KafkaSink.builder().set_record_serializer(RECORDS).set_property("bootstrap.servers", "a:1").build()
    assert sink.bootstrap_servers == "a:1"


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: KafkaSink.builder().set_record_serializer(RECORDS).build(), "needs brokers"),
        (lambda: KafkaSink.builder().set_bootstrap_servers("a:1").build(), "needs a record serializer"),
        (lambda: whole().set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).build(), "set_transactional_id_prefix"),
        (lambda: whole().set_transactional_id_prefix(""), "has 1 to 64,000 bytes"),
        (lambda: whole().set_transactional_id_prefix("é" * 32_001), "has 1 to 64,000 bytes"),
        (lambda: whole().set_delivery_guarantee("EXACTLY_ONCE"), "takes a DeliveryGuarantee"),
        (lambda: whole().set_record_serializer(SimpleStringSchema()), "KafkaRecordSerializationSchema.builder"),
        (lambda: whole().set_property("transactional.id", "x"), "set_transactional_id_prefix"),
        (lambda: whole().set_property("interceptor.classes", "x").build(), "interceptors are classes of Java"),
    ],
)
def test_what_is_missing_or_wrong_is_said(build: Callable[[], Any], says: str) -> None:
    with pytest.raises(ProgramError, match=says):
        build()
