"""Builders as programs of PyFlink's use them: each step changes the builder and returns it, chained or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eventide.common import Duration, Encoder, SimpleStringSchema, Time, Types
from eventide.datastream.connectors import DeliveryGuarantee
from eventide.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)
from eventide.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from eventide.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema, CsvSchema
from eventide.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from eventide.datastream.formats.parquet import ParquetBulkWriters
from eventide.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from eventide.datastream.state import StateTtlConfig

ROW = Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.STRING()])
OF_BOTH_SINKS = {
    "with_output_file_config": (OutputFileConfig(),),
    "with_rolling_policy": (RollingPolicy.on_checkpoint_rolling_policy(),),
    "with_bucket_assigner": (BucketAssigner.base_path_bucket_assigner(),),
    "with_bucket_check_interval": (10,),
}
OF_BOTH_CSV_SCHEMAS = {
    "set_field_delimiter": ("|",),
    "set_array_element_delimiter": (",",),
    "set_quote_character": ("'",),
    "set_escape_character": ("\\",),
    "set_null_literal": ("null",),
}
RECORDS = KafkaRecordSerializationSchema("topic", SimpleStringSchema())
SIZE = MemorySize.of_mebi_bytes(1)
TTL = StateTtlConfig

BUILDERS: list[tuple[Callable[[], Any], dict[str, tuple[Any, ...]]]] = [
    (
        lambda: CsvRowDeserializationSchema.Builder(ROW),
        {**OF_BOTH_CSV_SCHEMAS, "set_allow_comments": (True,), "set_ignore_parse_errors": (True,)},
    ),
    (
        lambda: CsvRowSerializationSchema.Builder(ROW),
        {**OF_BOTH_CSV_SCHEMAS, "set_line_delimiter": ("",), "disable_quote_character": ()},
    ),
    (
        JsonRowDeserializationSchema.builder,
        {
            "type_info": (ROW,),
            "json_schema": ('{"type": "object", "properties": {"a": {"type": "string"}}}',),
            "fail_on_missing_field": (),
            "ignore_parse_errors": (),
        },
    ),
    (JsonRowSerializationSchema.builder, {"with_type_info": (ROW,)}),
    (
        CsvSchema.builder,
        {
            "add_column": ("a", Types.SQL_DATE()),
            "add_string_column": ("b",),
            "add_boolean_column": ("c",),
            "add_number_column": ("d",),
            "add_array_column": ("e",),
            "add_columns_from": (CsvSchema(ROW),),
            "clear_columns": (),
            "set_column_separator": ("|",),
            "set_quote_char": ("'",),
            "disable_quote_char": (),
            "set_escape_char": ("\\",),
            "disable_escape_char": (),
            "set_null_value": ("-",),
            "set_line_separator": ("\r\n",),
            "set_reorder_columns": (),
            "set_use_header": (),
            "set_strict_headers": (),
            "set_skip_first_data_row": (),
        },
    ),
    (
        lambda: FileSource.for_record_stream_format(StreamFormat.text_line_format(), "in"),
        {
            "monitor_continuously": (Duration.of_seconds(1),),
            "process_static_file_set": (),
            "set_split_by": (str.upper,),
            "set_max_files_per_batch": (3,),
            "set_known_for": (Duration.of_hours(2),),
            "set_may_lose_most": (True,),
            "delete_when_read": (),
            "move_when_read": ("read",),
        },
    ),
    (
        KafkaSink.builder,
        {
            "set_bootstrap_servers": ("localhost:9092",),
            "set_record_serializer": (RECORDS,),
            "set_delivery_guarantee": (DeliveryGuarantee.AT_LEAST_ONCE,),
            "set_transactional_id_prefix": ("prefix",),
            "set_property": ("linger.ms", "1"),
        },
    ),
    (
        KafkaRecordSerializationSchema.builder,
        {
            "set_topic_selector": (str,),
            "set_topic": ("topic",),
            "set_key_serialization_schema": (SimpleStringSchema(),),
            "set_value_serialization_schema": (SimpleStringSchema(),),
            "set_partitioner": (lambda element, key, value, topic, partitions: 0,),
            "set_header_provider": (lambda element: {},),
        },
    ),
    (
        KafkaSource.builder,
        {
            "set_bootstrap_servers": ("localhost:9092",),
            "set_group_id": ("group",),
            "set_topics": ("a", "b"),
            "set_topic_pattern": ("a.*",),
            "set_partitions": ({KafkaTopicPartition("a", 0)},),
            "set_starting_offsets": (KafkaOffsetsInitializer.earliest(),),
            "set_unbounded": (KafkaOffsetsInitializer.latest(),),
            "set_bounded": (KafkaOffsetsInitializer.latest(),),
            "set_value_only_deserializer": (SimpleStringSchema(),),
            "set_deserializer": (KafkaRecordDeserializationSchema.value_only(SimpleStringSchema()),),
            "set_client_id_prefix": ("shop",),
            "set_property": ("client.rack", "b"),
            "set_properties": ({"client.rack": "b"},),
            "set_fail_on_data_loss": (False,),
        },
    ),
    (lambda: FileSink.for_row_format("out", Encoder.simple_string_encoder()), OF_BOTH_SINKS),
    (lambda: FileSink.for_bulk_format("out", ParquetBulkWriters.for_row_type(ROW)), OF_BOTH_SINKS),
    (OutputFileConfig.builder, {"with_part_prefix": ("x",), "with_part_suffix": (".txt",)}),
    (
        lambda: SlotSharingGroup.builder("group"),
        {
            "set_cpu_cores": (1.0,),
            "set_task_heap_memory": (SIZE,),
            "set_task_heap_memory_mb": (1,),
            "set_task_off_heap_memory": (SIZE,),
            "set_task_off_heap_memory_mb": (1,),
            "set_managed_memory": (SIZE,),
            "set_managed_memory_mb": (1,),
            "set_external_resource": ("gpu", 1.0),
        },
    ),
    (
        lambda: TTL.new_builder(Time.seconds(1)),
        {
            "set_update_type": (TTL.UpdateType.OnReadAndWrite,),
            "update_ttl_on_create_and_write": (),
            "update_ttl_on_read_and_write": (),
            "set_state_visibility": (TTL.StateVisibility.NeverReturnExpired,),
            "return_expired_if_not_cleaned_up": (),
            "never_return_expired": (),
            "set_ttl_time_characteristic": (TTL.TtlTimeCharacteristic.ProcessingTime,),
            "use_processing_time": (),
            "cleanup_full_snapshot": (),
            "cleanup_incrementally": (1, True),
            "cleanup_in_rocksdb_compact_filter": (1,),
            "disable_cleanup_in_background": (),
            "set_ttl": (Time.seconds(2),),
        },
    ),
]


@pytest.mark.filterwarnings("ignore:.*has no effect")
@pytest.mark.parametrize(("make", "steps"), BUILDERS)
def test_each_step_returns_the_builder(make: Callable[[], Any], steps: dict[str, tuple[Any, ...]]) -> None:
    kind = type(make())
    known = {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name, None))}
    assert known - {"build", "size"} == set(steps), "each step of the builder stands here"
    for name, arguments in steps.items():
        builder = make()
        assert getattr(builder, name)(*arguments) is builder, name


def test_what_was_built_stays_as_it_was() -> None:
    builder = CsvRowDeserializationSchema.Builder(ROW)
    builder.set_field_delimiter("|")
    with_bars = builder.build()
    builder.set_field_delimiter(";")
    assert with_bars.deserialize(b"1|a").as_dict() == builder.build().deserialize(b"1;a").as_dict()


def test_columns_of_csv_add_up_step_by_step() -> None:
    builder = CsvSchema.builder()
    builder.add_string_column("user")
    builder.add_number_column("amount")
    builder.set_use_header()
    schema = builder.build()
    assert (str(schema.row_type), schema.use_header) == ("ROW(user: STRING, amount: LONG)", True)
