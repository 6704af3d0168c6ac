"""A job for the kill tests: numbered texts into a topic, exactly once.

python kafka_sink_job.py SERVERS TOPIC PREFIX CHECKPOINT BATCHES [PLACE NUMBER]

It kills itself when it reaches a place of a transaction for the so-manieth time.
"""

from __future__ import annotations

import os
import signal
import sys

from eventide.common import SimpleStringSchema, Types, WatermarkStrategy
from eventide.connectors.kafka.sink_writer import Transactions
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import DeliveryGuarantee, KafkaSink
from eventide.datastream.connectors.kafka import KafkaRecordSerializationSchema
from eventide.testing import ScriptedSource


def texts(batch: int) -> list[str]:
    return [f"{batch}-{number}" for number in range(3)]


def kill_at(place: str, number: int) -> None:
    reached = 0

    def count(self: Transactions, here: str) -> None:
        nonlocal reached
        reached += here == place
        if reached == number:
            os.kill(os.getpid(), signal.SIGKILL)

    Transactions._reached = count


def run(servers: str, topic: str, prefix: str, checkpoint: str, batches: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    script = [[("split", text) for text in texts(batch)] for batch in range(batches)]
    source = ScriptedSource(["split"], script, Types.STRING(), bounded=False)
    records = KafkaRecordSerializationSchema.builder().set_topic(topic)
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(records.set_value_serialization_schema(SimpleStringSchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(prefix)
    )
    env.from_source(source, WatermarkStrategy.no_watermarks(), "script").sink_to(sink.build())
    env.execute()


if __name__ == "__main__":
    servers, topic, prefix, checkpoint, batches, *kill = sys.argv[1:]
    if kill:
        kill_at(kill[0], int(kill[1]))
    run(servers, topic, prefix, checkpoint, int(batches))
