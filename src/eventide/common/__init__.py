"""Values: time, types, watermarks and their strategies (PyFlink: ``pyflink.common``).

Names are imported when they are first used, so that a worker loads only what it needs.
"""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names

if TYPE_CHECKING:
    from eventide.common.completable_future import CompletableFuture
    from eventide.common.config_options import ConfigOption, ConfigOptions
    from eventide.common.configuration import Configuration
    from eventide.common.execution_config import ExecutionConfig
    from eventide.common.input_dependency_constraint import InputDependencyConstraint
    from eventide.common.job import JobClient, JobExecutionResult, JobID, JobStatus
    from eventide.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
    from eventide.common.serialization import (
        ByteArraySchema,
        DeserializationSchema,
        Encoder,
        SerializationSchema,
        SimpleStringSchema,
    )
    from eventide.common.serializer import TypeSerializer
    from eventide.common.time import Duration, Instant, Time
    from eventide.common.timestamp_assigner import (
        RecordTimestampAssigner,
        TimestampAssigner,
        VectorizedTimestampAssigner,
    )
    from eventide.common.typeinfo import TypeInformation, Types
    from eventide.common.types import Row, RowKind
    from eventide.common.watermark import MAX_WATERMARK, UNINITIALIZED, Watermark
    from eventide.common.watermark_generator import (
        BatchWatermarkOutput,
        VectorizedWatermarkGenerator,
        WatermarkGenerator,
        WatermarkGeneratorContext,
        WatermarkOutput,
    )
    from eventide.common.watermark_generators import (
        AscendingTimestampsWatermarks,
        BoundedOutOfOrdernessWatermarks,
        NoWatermarksGenerator,
        PunctuatedWatermarks,
        TimeLagWatermarks,
        WatermarksWithIdleness,
    )
    from eventide.common.watermark_strategy import NullTimestamps, WatermarkStrategy

_MODULES = {
    "Duration": "eventide.common.time",
    "Time": "eventide.common.time",
    "Instant": "eventide.common.time",
    "Row": "eventide.common.types",
    "RowKind": "eventide.common.types",
    "Types": "eventide.common.typeinfo",
    "TypeInformation": "eventide.common.typeinfo",
    "Watermark": "eventide.common.watermark",
    "MAX_WATERMARK": "eventide.common.watermark",
    "UNINITIALIZED": "eventide.common.watermark",
    "WatermarkGenerator": "eventide.common.watermark_generator",
    "WatermarkGeneratorContext": "eventide.common.watermark_generator",
    "WatermarkOutput": "eventide.common.watermark_generator",
    "VectorizedWatermarkGenerator": "eventide.common.watermark_generator",
    "BatchWatermarkOutput": "eventide.common.watermark_generator",
    "BoundedOutOfOrdernessWatermarks": "eventide.common.watermark_generators",
    "AscendingTimestampsWatermarks": "eventide.common.watermark_generators",
    "NoWatermarksGenerator": "eventide.common.watermark_generators",
    "WatermarksWithIdleness": "eventide.common.watermark_generators",
    "PunctuatedWatermarks": "eventide.common.watermark_generators",
    "TimeLagWatermarks": "eventide.common.watermark_generators",
    "NullTimestamps": "eventide.common.watermark_strategy",
    "WatermarkStrategy": "eventide.common.watermark_strategy",
    "TimestampAssigner": "eventide.common.timestamp_assigner",
    "RecordTimestampAssigner": "eventide.common.timestamp_assigner",
    "VectorizedTimestampAssigner": "eventide.common.timestamp_assigner",
    "Configuration": "eventide.common.configuration",
    "ExecutionConfig": "eventide.common.execution_config",
    "SerializationSchema": "eventide.common.serialization",
    "DeserializationSchema": "eventide.common.serialization",
    "SimpleStringSchema": "eventide.common.serialization",
    "ByteArraySchema": "eventide.common.serialization",
    "Encoder": "eventide.common.serialization",
    "JobClient": "eventide.common.job",
    "JobExecutionResult": "eventide.common.job",
    "JobID": "eventide.common.job",
    "JobStatus": "eventide.common.job",
    "CompletableFuture": "eventide.common.completable_future",
    "ConfigOption": "eventide.common.config_options",
    "ConfigOptions": "eventide.common.config_options",
    "InputDependencyConstraint": "eventide.common.input_dependency_constraint",
    "RestartStrategies": "eventide.common.restart_strategy",
    "RestartStrategyConfiguration": "eventide.common.restart_strategy",
    "TypeSerializer": "eventide.common.serializer",
    # PyFlink hands these out here, too. They belong to a floor above this one, so that nothing here imports them.
    **{
        f"{format_name.capitalize()}Row{way}Schema": f"eventide.datastream.formats.{format_name}"
        for format_name in ("json", "csv", "avro")
        for way in ("Serialization", "Deserialization")
    },
}

__all__ = [
    "Duration",
    "Time",
    "Instant",
    "Row",
    "RowKind",
    "Types",
    "TypeInformation",
    "Watermark",
    "MAX_WATERMARK",
    "UNINITIALIZED",
    "WatermarkGenerator",
    "WatermarkGeneratorContext",
    "WatermarkOutput",
    "VectorizedWatermarkGenerator",
    "BatchWatermarkOutput",
    "BoundedOutOfOrdernessWatermarks",
    "AscendingTimestampsWatermarks",
    "NoWatermarksGenerator",
    "WatermarksWithIdleness",
    "PunctuatedWatermarks",
    "TimeLagWatermarks",
    "NullTimestamps",
    "WatermarkStrategy",
    "TimestampAssigner",
    "RecordTimestampAssigner",
    "VectorizedTimestampAssigner",
    "Configuration",
    "ExecutionConfig",
    "SerializationSchema",
    "DeserializationSchema",
    "SimpleStringSchema",
    "ByteArraySchema",
    "Encoder",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "InputDependencyConstraint",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "TypeSerializer",
]


if not TYPE_CHECKING:  # otherwise a type checker would take any name
    __getattr__ = finder_of_names(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
