"""Values: time, types, watermarks and their strategies (PyFlink: ``pyflink.common``).

Names are imported when they are first used, so that a worker loads only what it needs.
"""

from typing import TYPE_CHECKING

from eventide._absent import hand_out_names, homes_of

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


# PyFlink hands these out here, too. They belong to a floor above this one, so that nothing here imports them.
_SCHEMAS = [f"{form}Row{way}Schema" for form in ("Json", "Csv", "Avro") for way in ("Serialization", "Deserialization")]

hand_out_names(__name__, homes_of([*__all__, *_SCHEMAS]))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
