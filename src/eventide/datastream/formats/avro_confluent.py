"""Messages of Avro that name their schema in a registry, in Confluent's wire format; with the extra ``kafka``."""

from eventide._absent import hand_out_names
from eventide.connectors.formats.avro_confluent import *
from eventide.connectors.formats.avro_confluent import __all__ as __all__

hand_out_names(__name__)
