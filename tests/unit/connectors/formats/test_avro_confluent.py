"""Avro in Confluent's wire format: the schema of each message is asked for once, in a registry that is one of ours."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import fastavro
import pytest
from confluent_kafka import Message

from eventide.common import Types
from eventide.connectors.kafka._records import Decoder
from eventide.datastream.connectors.kafka import KafkaSource, KafkaTopicPartition
from eventide.datastream.formats.avro_confluent import ConfluentRegistryAvroDeserializationSchema
from eventide.errors import DataError, ProgramError

WRITTEN = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "user", "type": "string"}, {"name": "amount", "type": "int"}, {"name": "old", "type": "int"}],
}
READ = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "amount", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}


class Registry(ThreadingHTTPServer):
    """A registry that knows one schema, under the number 7, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked: list[str] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answer(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        known = self.path.startswith("/schemas/ids/7")
        status = self.server.status if known else 404
        said = {"schema": json.dumps(WRITTEN)} if status == 200 else {"error_code": status * 100 + 3, "message": "no"}
        content = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    server = Registry()
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def message(user: str, amount: int, schema: int = 7) -> bytes:
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(WRITTEN), {"user": user, "amount": amount, "old": 0})
    return b"\x00" + schema.to_bytes(4, "big") + data.getvalue()


def schema_of(registry: Registry, **configs: str) -> ConfluentRegistryAvroDeserializationSchema:
    return ConfluentRegistryAvroDeserializationSchema.for_generic(json.dumps(READ), registry.url, configs)


def test_a_message_is_brought_from_the_writer_s_schema_to_the_reader_s(registry: Registry) -> None:
    schema = schema_of(registry)
    assert schema.get_produced_type() == Types.ROW_NAMED(
        ["user", "amount", "note"], [Types.STRING(), Types.LONG(), Types.STRING()]
    )
    assert schema.deserialize(message("wren", 5)).as_dict() == {"user": "wren", "amount": 5, "note": None}
    assert schema.deserialize(None) is None


def test_columns_mean_the_same_and_the_registry_is_asked_once(registry: Registry) -> None:
    import pyarrow as pa

    schema = pickle.loads(pickle.dumps(schema_of(registry)))
    column = schema.deserialize_column(pa.array([message("wren", 5), None, message("robin", 6)]))
    assert column.to_pylist() == [
        {"user": "wren", "amount": 5, "note": None},
        None,
        {"user": "robin", "amount": 6, "note": None},
    ]
    assert len(registry.asked) == 1


@pytest.mark.parametrize("bad", [b"", b"{}", b"\x00\x00\x00\x00\x07\x08a", b"\x01" + message("a", 1)[1:]])
def test_a_message_that_is_none_is_a_bad_one(registry: Registry, bad: bytes) -> None:
    with pytest.raises(DataError, match=r"the message .* cannot be read as Avro of ROW"):
        schema_of(registry).deserialize(bad)


def test_a_schema_that_is_not_known_makes_a_bad_message(registry: Registry) -> None:
    with pytest.raises(DataError, match=r"is not known to http://127.0.0.1"):
        schema_of(registry).deserialize(message("wren", 5, schema=8))


@pytest.mark.parametrize("status", [401, 422])
def test_a_registry_that_does_not_answer_is_no_reason_to_skip_records(registry: Registry, status: int) -> None:
    registry.status = status
    builder = KafkaSource.builder().set_bootstrap_servers("a").set_topics("a")
    source = builder.set_value_only_deserializer(schema_of(registry)).build()
    with pytest.raises(ProgramError, match=r"the schema registry at http://127.0.0.1:\d+ does not say"):
        list(
            Decoder(source._settings.deserializer).items(
                KafkaTopicPartition("a", 0), [Message(value=message("wren", 5))]
            )
        )


def test_what_is_no_schema_of_records_is_refused() -> None:
    with pytest.raises(ProgramError, match="is not an Avro schema"):
        ConfluentRegistryAvroDeserializationSchema.for_generic("what?", "http://a")
    with pytest.raises(ProgramError, match="needs the type of its rows"):
        ConfluentRegistryAvroDeserializationSchema.for_generic('"string"', "http://a")


def test_settings_that_have_no_meaning_are_refused(registry: Registry) -> None:
    with pytest.raises(ProgramError, match=r"the settings of the schema registry at .* are wrong: .*no.such"):
        schema_of(registry, **{"no.such": "1"}).deserialize(message("wren", 5))
