"""Files as a sink, described as PyFlink does; Spark writes them."""

from __future__ import annotations

import codecs
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Self

from eventide._absent import says_what_is_absent
from eventide.common.accepted import has_no_effect
from eventide.common.serialization import BulkWriterFactory, Encoder
from eventide.common.typeinfo import TypeInformation, Types
from eventide.connectors.sink import FormatSink, Sink
from eventide.errors import ProgramError

__all__ = ["BucketAssigner", "BulkWriterFactory", "FileSink", "OutputFileConfig", "RollingPolicy", "StreamingFileSink"]

_PART_SIZE = 128 * 1024 * 1024
_INTERVAL_MS = 60_000


@dataclass(frozen=True)
class OutputFileConfig:
    """How part files are to be named. Taken for PyFlink's sake: they are named after their micro-batch.

    >>> OutputFileConfig.builder().with_part_prefix("visits").with_part_suffix(".txt").build()
    OutputFileConfig(part_prefix='visits', part_suffix='.txt')
    """

    part_prefix: str = "part"
    part_suffix: str = ""

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Start with the names that nothing was said about."""
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """Return the beginning of the names of part files."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """Return the end of the names of part files."""
        return self.part_suffix

    @dataclass
    class OutputFileConfigBuilder:
        """Builds an ``OutputFileConfig``; each step changes the builder and returns it."""

        config: OutputFileConfig = field(default_factory=lambda: OutputFileConfig())  # noqa: PLW0108 - not there yet

        def with_part_prefix(self, prefix: str) -> Self:
            """Set what the name of a part file is to begin with."""
            self.config = replace(self.config, part_prefix=prefix)
            return self

        def with_part_suffix(self, suffix: str) -> Self:
            """Set what the name of a part file is to end with."""
            self.config = replace(self.config, part_suffix=suffix)
            return self

        def build(self) -> OutputFileConfig:
            """The configuration."""
            return self.config


@dataclass(frozen=True)
class RollingPolicy:
    """When a part file is closed. Taken for PyFlink's sake: Spark closes all files at the end of a micro-batch.

    >>> RollingPolicy.default_rolling_policy() == RollingPolicy.default_rolling_policy(128 * 1024 * 1024)
    True
    """

    part_size: int | None = None
    rollover_interval: int | None = None
    inactivity_interval: int | None = None

    @staticmethod
    def default_rolling_policy(
        part_size: int = _PART_SIZE, rollover_interval: int = _INTERVAL_MS, inactivity_interval: int = _INTERVAL_MS
    ) -> RollingPolicy:
        """Close a file at a size in bytes, an age, or a time without elements, both in milliseconds."""
        return RollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> RollingPolicy:
        """Close files at every checkpoint alone, which is what Spark does: every micro-batch is one."""
        return RollingPolicy()


@dataclass(frozen=True)
class BucketAssigner:
    """In which subdirectory an element is written. Taken for PyFlink's sake: Spark writes all into one directory.

    >>> BucketAssigner.base_path_bucket_assigner() == BucketAssigner()
    True
    """

    format_str: str | None = None
    timezone_id: str | None = None

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Write all into the directory itself, which is what Spark does."""
        return BucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """Write into a subdirectory for the time at which an element comes."""
        return BucketAssigner(format_str, timezone_id)


@says_what_is_absent
@dataclass(frozen=True)
class FileSink(Sink):
    r"""Writes elements into the files of a directory, exactly once: as lines of text, or as rows of a format.

    Each micro-batch with results writes files of its own, ``part-<micro-batch>-<number>``, which appear when they are
    complete. One that is repeated leaves nothing twice.

    Flink: ``FileSink``. It is :class:`~eventide.datastream.connectors.FormatSink` under PyFlink's names.

    >>> sink = FileSink.for_row_format("out", Encoder.simple_string_encoder()).build()
    >>> sink.base_path, sink.row(("JFK", 3))
    ('out', "('JFK', 3)")
    """

    base_path: str
    writer: Encoder | BulkWriterFactory
    output_file_config: OutputFileConfig = OutputFileConfig()
    rolling_policy: RollingPolicy = RollingPolicy()
    bucket_assigner: BucketAssigner = BucketAssigner()

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Start a sink of text lines.

        Args:
            base_path: The directory, as Spark takes it: a path, or a URI such as ``s3a://…``.
            encoder: What turns an element into text.

        Raises:
            ProgramError: The encoder is none, or writes something other than UTF-8, which Spark's text files are in.
        """
        if not isinstance(encoder, Encoder):
            raise ProgramError(
                f"for_row_format needs an Encoder, such as Encoder.simple_string_encoder(), not {encoder!r}"
            )
        if codecs.lookup(encoder.charset_name).name != "utf-8":
            raise ProgramError(
                f"Spark writes text files in UTF-8 only, and the encoder asks for {encoder.charset_name}"
            )
        sink = FileSink(str(base_path), encoder, rolling_policy=RollingPolicy.default_rolling_policy())
        return FileSink.RowFormatBuilder(sink)

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSink.BulkFormatBuilder:
        """Start a sink of rows, as Parquet, CSV or JSON.

        Args:
            base_path: The directory, as Spark takes it: a path, or a URI such as ``s3a://…``.
            writer_factory: What ``ParquetBulkWriters.for_row_type`` and its like for other formats give.

        Raises:
            ProgramError: The factory is none of those.

        >>> from eventide.connectors.formats.parquet import ParquetBulkWriters
        >>> rows = Types.ROW_NAMED(["user", "visits"], [Types.STRING(), Types.LONG()])
        >>> FileSink.for_bulk_format("out", ParquetBulkWriters.for_row_type(rows)).build().format_sink()
        FormatSink(format='parquet', options={'path': 'out'})
        """
        if not isinstance(writer_factory, BulkWriterFactory):
            raise ProgramError(
                "for_bulk_format needs a writer of eventide.connectors.formats, such as "
                f"ParquetBulkWriters.for_row_type(...), not {writer_factory!r}"
            )
        return FileSink.BulkFormatBuilder(FileSink(str(base_path), writer_factory))

    @property
    def row_type(self) -> TypeInformation:
        """The type of what is written: text for lines."""
        return Types.STRING() if isinstance(self.writer, Encoder) else self.writer.row_type

    @property
    def has_lines(self) -> bool:
        """Whether elements are written as lines of text."""
        return isinstance(self.writer, Encoder)

    def row(self, value: Any) -> Any:
        """Return the written form of one element: a line without its end, or the element as it is."""
        if isinstance(self.writer, Encoder):
            return self.writer.encode(value).decode(self.writer.charset_name).removesuffix("\n")
        return value

    def format_sink(self) -> FormatSink:
        """Return the sink of a Spark format that writes the files."""
        if isinstance(self.writer, Encoder):
            return FormatSink("text", {"path": self.base_path})
        return FormatSink(self.writer.format, {**self.writer.options, "path": self.base_path})

    @says_what_is_absent
    @dataclass
    class BaseBuilder:
        """Base of the builders of both kinds; each step changes the builder and returns it."""

        sink: FileSink

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
            """Ask for names of part files, which Spark does not grant."""
            self.sink = replace(self.sink, output_file_config=output_file_config)
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Ask for when part files are closed: on Spark, at the end of every micro-batch."""
            self.sink = replace(self.sink, rolling_policy=rolling_policy)
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
            """Ask for subdirectories, which Spark does not make."""
            self.sink = replace(self.sink, bucket_assigner=bucket_assigner)
            return self

        def with_bucket_check_interval(self, interval: int) -> Self:
            """Ask for how often, in milliseconds, is looked for part files to close: without effect."""
            has_no_effect("with_bucket_check_interval", "Spark closes all files at the end of a micro-batch")
            return self

        def build(self) -> FileSink:
            """The sink; a warning says what was asked for and will not be."""
            asked = []
            if self.sink.output_file_config != OutputFileConfig():
                asked.append(f"{self.sink.output_file_config!r}: files are named part-<micro-batch>-<number>")
            if self.sink.rolling_policy not in (RollingPolicy.default_rolling_policy(), RollingPolicy()):
                asked.append(f"{self.sink.rolling_policy!r}: Spark closes all files at the end of a micro-batch")
            if self.sink.bucket_assigner != BucketAssigner():
                asked.append(f"{self.sink.bucket_assigner!r}: all files are in one directory")
            if asked:
                warnings.warn(f"the file sink {self.sink.base_path!r} ignores " + "; ".join(asked), stacklevel=2)
            return self.sink

    @dataclass
    class RowFormatBuilder(BaseBuilder):
        """Builds a ``FileSink`` of text lines."""

    @dataclass
    class BulkFormatBuilder(BaseBuilder):
        """Builds a ``FileSink`` of rows."""


StreamingFileSink = FileSink
"""PyFlink's older name of :class:`FileSink`."""
