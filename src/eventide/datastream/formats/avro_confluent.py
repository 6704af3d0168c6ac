"""Messages of Avro that name their schema in a registry, in Confluent's wire format; with the extra ``kafka``."""

from eventide._absent import hand_out_names
from eventide.connectors.formats.avro import ConfluentRegistryAvroDeserializationSchema

__all__ = ["ConfluentRegistryAvroDeserializationSchema"]

hand_out_names(__name__)
