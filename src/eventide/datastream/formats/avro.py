"""Messages of Avro, each a record without its schema; read and written by fastavro, which the extra ``avro`` brings."""

from eventide._absent import hand_out_names
from eventide.connectors.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema, AvroSchema

__all__ = ["AvroRowDeserializationSchema", "AvroRowSerializationSchema", "AvroSchema"]

hand_out_names(__name__)
