"""Text files as a sink, described as PyFlink does; Spark's own file sink carries it out."""

from __future__ import annotations

import codecs
import warnings
from dataclasses import dataclass, field, replace

from eventide.common.serialization import Encoder
from eventide.datastream.connectors.sink import Sink
from eventide.errors import ProgramError

__all__ = ["FileSink", "OutputFileConfig", "RollingPolicy"]

_PART_SIZE = 128 * 1024 * 1024
_INTERVAL_MS = 60_000


@dataclass(frozen=True)
class OutputFileConfig:
    """How part files are to be named. Taken for PyFlink's sake: Spark names files itself.

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
        """What the name of a part file is to begin with."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """What the name of a part file is to end with."""
        return self.part_suffix

    @dataclass(frozen=True)
    class OutputFileConfigBuilder:
        """Builds an ``OutputFileConfig``; each step returns a new builder."""

        config: OutputFileConfig = field(default_factory=lambda: OutputFileConfig())  # noqa: PLW0108 - not there yet

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set what the name of a part file is to begin with."""
            return replace(self, config=replace(self.config, part_prefix=prefix))

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set what the name of a part file is to end with."""
            return replace(self, config=replace(self.config, part_suffix=suffix))

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
class FileSink(Sink):
    r"""Writes each element as a line of text, in files of a directory, exactly once.

    The files are those of Spark's ``text`` format, and belong together as Spark's file sink says: read the directory
    with ``spark.read.text``. A micro-batch that is repeated leaves nothing twice.

    Flink: ``FileSink`` for row formats. For columns, use :class:`~eventide.datastream.connectors.FormatSink`.

    >>> sink = FileSink.for_row_format("out", Encoder.simple_string_encoder()).build()
    >>> sink.base_path, sink.line(("JFK", 3))
    ('out', "('JFK', 3)")
    """

    base_path: str
    encoder: Encoder
    output_file_config: OutputFileConfig = OutputFileConfig()
    rolling_policy: RollingPolicy = RollingPolicy(_PART_SIZE, _INTERVAL_MS, _INTERVAL_MS)

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
        return FileSink.RowFormatBuilder(FileSink(str(base_path), encoder))

    def line(self, value: object) -> str:
        """The line for one element, without its end."""
        return self.encoder.encode(value).decode(self.encoder.charset_name).removesuffix("\n")

    @dataclass(frozen=True)
    class RowFormatBuilder:
        """Builds a ``FileSink``; each step returns a new builder."""

        sink: FileSink

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSink.RowFormatBuilder:
            """Ask for names of part files, which Spark does not grant."""
            return replace(self, sink=replace(self.sink, output_file_config=output_file_config))

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSink.RowFormatBuilder:
            """Ask for when part files are closed: on Spark, at the end of every micro-batch."""
            return replace(self, sink=replace(self.sink, rolling_policy=rolling_policy))

        def build(self) -> FileSink:
            """The sink; a warning says what was asked for and will not be."""
            asked = []
            if self.sink.output_file_config != OutputFileConfig():
                asked.append(f"{self.sink.output_file_config!r}: Spark names the files, part-00000-….txt")
            if self.sink.rolling_policy not in (RollingPolicy.default_rolling_policy(), RollingPolicy()):
                asked.append(f"{self.sink.rolling_policy!r}: Spark closes all files at the end of a micro-batch")
            if asked:
                warnings.warn(f"the file sink {self.sink.base_path!r} ignores " + "; ".join(asked), stacklevel=2)
            return self.sink
