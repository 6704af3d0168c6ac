"""Avro messages that name their schema in a registry, in Confluent's wire format; with the extra ``kafka``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from eventide.common.typeinfo import CompositeTypeInfo
from eventide.connectors.formats._messages import row_type_of, said
from eventide.connectors.formats.avro import AvroSchema, ReadsAvroRecords
from eventide.connectors.kafka.library import library
from eventide.errors import DataError, ProgramError

__all__ = ["ConfluentRegistryAvroDeserializationSchema"]

_UNKNOWN_SCHEMA = 404


@dataclass(frozen=True)
class ConfluentRegistryAvroDeserializationSchema(ReadsAvroRecords):
    """Reads rows from Avro records, each after the number of the schema that it was written with.

    That schema is fetched once, and a record is converted from it to the reader's schema by Avro's rules. Made with
    :meth:`for_generic`. Flink: ``ConfluentRegistryAvroDeserializationSchema`` of the Java API; not in PyFlink.

    A registry that does not answer, or refuses access, is an error of the program, not a bad record.
    """

    schema: AvroSchema
    url: str = field(repr=False)
    registry_configs: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    @staticmethod
    def for_generic(
        schema: str | AvroSchema, url: str, registry_configs: Mapping[str, str] | None = None
    ) -> ConfluentRegistryAvroDeserializationSchema:
        """Return one for rows of a schema.

        Args:
            schema: The schema to read with, as JSON.
            url: The address of the registry.
            registry_configs: Properties of confluent-kafka's registry client, such as ``basic.auth.user.info``.

        Raises:
            ProgramError: It is not an Avro schema, does not describe a record, or has a part without a type.

        ::

            ConfluentRegistryAvroDeserializationSchema.for_generic(schema, "http://localhost:8081")
        """
        known = schema if isinstance(schema, AvroSchema) else AvroSchema.parse_string(schema)
        configs = {name: value for name, value in (registry_configs or {}).items() if name != _SOURCE}
        made = ConfluentRegistryAvroDeserializationSchema(known, url, configs)
        _ = made.row_type
        return made

    @cached_property
    def row_type(self) -> CompositeTypeInfo:  # type: ignore[override]
        """The type of the rows, from the reader's schema."""
        return row_type_of(type(self).__name__, self.schema.type_info())

    @cached_property
    def _deserialize(self) -> Any:
        configs = {"url": self.url, **self.registry_configs}
        try:
            registry = library("schema_registry").SchemaRegistryClient(configs)
            return library("schema_registry.avro").AvroDeserializer(registry, self.schema.text)
        except (TypeError, ValueError) as error:
            raise ProgramError(f"the settings of the schema registry at {self.url} are wrong: {error}") from error

    def _record(self, message: bytes) -> Any:
        try:
            return self._deserialize(message, None)
        except ProgramError:
            raise
        except library("schema_registry.error").SchemaRegistryError as error:
            if error.http_status_code != _UNKNOWN_SCHEMA:
                raise self._no_answer(error) from error
            raise DataError(f"the schema of the message {said(message)} is not known to {self.url}: {error}") from error
        except Exception as error:
            if _is_of_network(error):
                raise self._no_answer(error) from error
            raise DataError(
                f"the message {said(message)} cannot be read as Avro of {self.row_type}, with its schema in "
                f"{self.url}: {error!r}"
            ) from error

    def _no_answer(self, error: Exception) -> ProgramError:
        return ProgramError(
            f"the schema registry at {self.url} does not say with which schema messages were written: {error!r}. Look "
            "at its url, and at basic.auth.user.info"
        )


_SOURCE = "basic.auth.credentials.source"  # of the Java client, which has several; here what is given is used


def _is_of_network(error: Exception) -> bool:
    """Whether an error is from the library's HTTP client, or from a connection."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0].startswith(("httpx", "httpcore"))
