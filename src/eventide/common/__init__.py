"""Values: time, types, watermarks and their strategies (PyFlink: ``pyflink.common``).

Names are imported when they are first used, so that a worker loads only what it needs.
"""

from typing import TYPE_CHECKING

from eventide._absent import hand_out_names, homes_of

if TYPE_CHECKING:
    from eventide.common.completable_future import *
    from eventide.common.config_options import *
    from eventide.common.configuration import *
    from eventide.common.execution_config import *
    from eventide.common.input_dependency_constraint import *
    from eventide.common.job import *
    from eventide.common.restart_strategy import *
    from eventide.common.serialization import *
    from eventide.common.serializer import *
    from eventide.common.time import *
    from eventide.common.timestamp_assigner import *
    from eventide.common.typeinfo import *
    from eventide.common.types import *
    from eventide.common.watermark import *
    from eventide.common.watermark_generator import *
    from eventide.common.watermark_generators import *
    from eventide.common.watermark_strategy import *

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
