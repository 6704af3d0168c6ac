"""Topics of Kafka as a sink (PyFlink: ``KafkaSink``)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from eventide._absent import says_what_is_absent
from eventide.connectors.base import DeliveryGuarantee
from eventide.connectors.kafka._properties import as_text, librdkafka_properties
from eventide.connectors.kafka.record_serialization import KafkaRecordSerializationSchema
from eventide.connectors.sink import Sink
from eventide.errors import ProgramError

_LONGEST_PREFIX = 64_000


@says_what_is_absent
@dataclass(frozen=True)
class KafkaSink(Sink):
    """Writes elements as records of Kafka topics; made with :meth:`builder`. PyFlink: ``KafkaSink``.

    - ``EXACTLY_ONCE``: all records of a micro-batch, and its number, are written in one transaction, so that a reader
      that reads what is committed (``isolation.level=read_committed``) sees each record once, whatever failed and was
      repeated in between. The records of a micro-batch go through the driver.
    - ``AT_LEAST_ONCE``: Spark's tasks write their records, and end when Kafka has them. A micro-batch, or a task, that
      is repeated writes them again.
    - ``NONE``, the default as in Flink: here, the same as ``AT_LEAST_ONCE``.

    >>> from eventide.common import SimpleStringSchema
    >>> lines = KafkaRecordSerializationSchema.builder().set_topic("lines")
    >>> sink = (
    ...     KafkaSink.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_record_serializer(lines.set_value_serialization_schema(SimpleStringSchema()).build())
    ...     .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    ...     .set_transactional_id_prefix("lines-of-the-job")
    ...     .build()
    ... )
    >>> sink.delivery_guarantee.name, sink.transactional_id_prefix
    ('EXACTLY_ONCE', 'lines-of-the-job')
    """

    bootstrap_servers: str
    record_serializer: KafkaRecordSerializationSchema
    delivery_guarantee: DeliveryGuarantee = DeliveryGuarantee.NONE
    transactional_id_prefix: str | None = None
    properties: dict[str, str] = field(default_factory=dict, repr=False)  # there are passwords among them

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Start without anything set."""
        return KafkaSinkBuilder()

    @property
    def is_exactly_once(self) -> bool:
        """Whether records are written in transactions."""
        return self.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE


@dataclass(frozen=True)
class _Draft:
    bootstrap_servers: str | None = None
    record_serializer: KafkaRecordSerializationSchema | None = None
    delivery_guarantee: DeliveryGuarantee = DeliveryGuarantee.NONE
    transactional_id_prefix: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


class KafkaSinkBuilder:
    """Builds a :class:`KafkaSink`; each step changes the builder and returns it. PyFlink: ``KafkaSinkBuilder``."""

    def __init__(self) -> None:
        self._draft = _Draft()

    def set_bootstrap_servers(self, bootstrap_servers: str) -> Self:
        """Set where brokers are found: host and port, several of them with commas between."""
        return self._with(bootstrap_servers=bootstrap_servers)

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> Self:
        """Set what makes records of elements.

        Raises:
            ProgramError: It is no :class:`KafkaRecordSerializationSchema`.
        """
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise ProgramError(
                "set_record_serializer takes what KafkaRecordSerializationSchema.builder()...build() gives, not "
                f"{record_serializer!r}"
            )
        return self._with(record_serializer=record_serializer)

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> Self:
        """Set how often a record gets to its topic when a job fails in between; by default ``NONE``.

        Raises:
            ProgramError: It is no :class:`DeliveryGuarantee`.
        """
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise ProgramError(f"set_delivery_guarantee takes a DeliveryGuarantee, not {delivery_guarantee!r}")
        return self._with(delivery_guarantee=delivery_guarantee)

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> Self:
        """Set what names the transactions of this sink, and the consumer group that keeps how far it has got.

        ``EXACTLY_ONCE`` needs it. It must stay the same when the job is restarted, and no other sink of the cluster may
        have it.

        Raises:
            ProgramError: It is empty, or longer than 64,000 bytes in UTF-8.
        """
        if not transactional_id_prefix or len(transactional_id_prefix.encode()) > _LONGEST_PREFIX:
            raise ProgramError(
                f"a transactional id prefix has 1 to {_LONGEST_PREFIX:,} bytes, not {transactional_id_prefix!r:.100}"
            )
        return self._with(transactional_id_prefix=transactional_id_prefix)

    def set_property(self, key: str, value: str) -> Self:
        """Set a property of the producer: one of librdkafka's, or of Java's producer where that has the same meaning.

        Raises:
            ProgramError: It is a property of Java's that has no counterpart; the error says what to set instead.
        """
        if key == "transactional.id":
            raise ProgramError("transactional.id is made of a prefix: call set_transactional_id_prefix(...)")
        return self._with(properties={**self._draft.properties, key: as_text(key, value)})

    def build(self) -> KafkaSink:
        """The sink.

        Raises:
            ProgramError: The servers or the serializer are not set, or the prefix where ``EXACTLY_ONCE`` needs it.
        """
        draft = self._draft
        servers = draft.bootstrap_servers or draft.properties.get("bootstrap.servers")
        if not servers:
            raise ProgramError("a KafkaSink needs brokers: call set_bootstrap_servers(...)")
        if draft.record_serializer is None:
            raise ProgramError("a KafkaSink needs what makes records of elements: call set_record_serializer(...)")
        if draft.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE and draft.transactional_id_prefix is None:
            raise ProgramError(
                "EXACTLY_ONCE needs a name of this sink's own in the cluster, which stays the same when the job is "
                "restarted: call set_transactional_id_prefix(...)"
            )
        librdkafka_properties(draft.properties)  # refuses what has no counterpart
        return KafkaSink(
            servers, draft.record_serializer, draft.delivery_guarantee, draft.transactional_id_prefix, draft.properties
        )

    def _with(self, **changes: Any) -> Self:
        self._draft = replace(self._draft, **changes)
        return self
