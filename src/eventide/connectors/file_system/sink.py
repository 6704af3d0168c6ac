"""Files as a sink, described as in PyFlink; and the files of each micro-batch, which become visible as a whole.

The description is for programs. ``PartFiles`` is for hosts, which write the files.
"""

from __future__ import annotations

import codecs
import re
import uuid
import warnings
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias

from eventide._absent import says_what_is_absent
from eventide._secrets import shown_without_secrets
from eventide.common.accepted import has_no_effect
from eventide.common.serialization import BulkWriterFactory, Encoder
from eventide.common.type_variables import IN_contra, T, T_contra
from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.types import Row
from eventide.connectors.sink import FormatSink, Sink
from eventide.errors import ProgramError, StateError, check_is
from eventide.storage import opened, writing

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

__all__ = [
    "BucketAssigner",
    "BulkWriterFactory",
    "DefaultRollingPolicy",
    "FileSink",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamingFileSink",
]

OfFields: TypeAlias = Row | tuple[Any, ...] | list[Any] | Mapping[Any, Any] | None
"""An element that can be written as columns: a value with fields, or None."""

_PART_SIZE = 128 * 1024 * 1024
_INTERVAL_MS = 60_000


@dataclass(frozen=True)
class OutputFileConfig:
    """Names of part files. Accepted for compatibility with PyFlink: they are named after their micro-batch.

    >>> OutputFileConfig.builder().with_part_prefix("visits").with_part_suffix(".txt").build()
    OutputFileConfig(part_prefix='visits', part_suffix='.txt')
    """

    part_prefix: str = "part"
    part_suffix: str = ""

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Start with the default names."""
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
            """Set the beginning of the names of part files."""
            self.config = replace(self.config, part_prefix=prefix)
            return self

        def with_part_suffix(self, suffix: str) -> Self:
            """Set the end of the names of part files."""
            self.config = replace(self.config, part_suffix=suffix)
            return self

        def build(self) -> OutputFileConfig:
            """The configuration."""
            return self.config


@dataclass(frozen=True)
class RollingPolicy:
    """Rules for closing part files. Accepted for compatibility with PyFlink: Spark closes files after each micro-batch.

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
        """Close files only at checkpoints, as Spark does: every micro-batch is one."""
        return RollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """`RollingPolicy.default_rolling_policy`, with the builder of PyFlink 1.12.

    >>> DefaultRollingPolicy.builder().build() == RollingPolicy.default_rolling_policy()
    True
    """

    @staticmethod
    def builder() -> DefaultRollingPolicy.PolicyBuilder:
        """Start with the defaults."""
        return DefaultRollingPolicy.PolicyBuilder()

    class PolicyBuilder:
        """Builds a `RollingPolicy`; each step changes the builder and returns it."""

        def __init__(self) -> None:
            self._policy = RollingPolicy.default_rolling_policy()

        def with_max_part_size(self, size: int) -> Self:
            """Close a file at a size in bytes."""
            return self._with(part_size=size)

        def with_rollover_interval(self, interval: int) -> Self:
            """Close a file at an age in milliseconds."""
            return self._with(rollover_interval=interval)

        def with_inactivity_interval(self, interval: int) -> Self:
            """Close a file after a number of milliseconds without elements."""
            return self._with(inactivity_interval=interval)

        def build(self) -> RollingPolicy:
            """The policy."""
            return self._policy

        def _with(self, **changes: int) -> Self:
            self._policy = replace(self._policy, **changes)
            return self


@dataclass(frozen=True)
class BucketAssigner(Generic[T_contra]):
    """Choice of the subdirectory of an element: none, or one for the values of some of its fields.

    >>> BucketAssigner.field_bucket_assigner("day", "hour").fields
    ('day', 'hour')
    """

    format_str: str | None = None
    timezone_id: str | None = None
    fields: tuple[str, ...] = ()

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner[object]:
        """Write all elements into the directory itself."""
        return BucketAssigner()

    @staticmethod
    def field_bucket_assigner(*fields: str) -> BucketAssigner[OfFields]:
        """Write into a subdirectory for the values of fields, such as ``day=2026-05-01/hour=9``.

        The files contain the other fields; Spark, Arrow and Polars read the fields in directory names as columns.
        Fields are text, whole numbers or dates. None, and the empty text, become ``__HIVE_DEFAULT_PARTITION__``.

        Flink: ``PARTITIONED BY`` of Flink SQL's file system connector; PyFlink's ``FileSink`` does not have it.

        Raises:
            ProgramError: Without a field.
        """
        if not fields:
            raise ProgramError(
                "field_bucket_assigner needs the name of a field; without one, use base_path_bucket_assigner"
            )
        return BucketAssigner(fields=fields)

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> BucketAssigner[object]:
        """Write into a subdirectory for the time of the clock. Accepted for compatibility with PyFlink: no effect."""
        return BucketAssigner(format_str, timezone_id)


@says_what_is_absent
@shown_without_secrets
@dataclass(frozen=True)
class FileSink(Sink[T_contra]):
    r"""Writes elements into the files of a directory, exactly once: as lines of text, or as rows of a format.

    Each micro-batch with results writes its own files, ``part-<micro-batch>-<number>``, which appear when they are
    complete. A repeated micro-batch leaves no duplicates.

    Flink: ``FileSink``. It is :class:`~eventide.datastream.connectors.FormatSink` under PyFlink's names.

    >>> sink = FileSink.for_row_format("out", Encoder.simple_string_encoder()).build()
    >>> sink.base_path, sink.row(("JFK", 3))
    ('out', "('JFK', 3)")
    """

    base_path: str
    writer: Encoder[T_contra] | BulkWriterFactory
    output_file_config: OutputFileConfig = OutputFileConfig()
    rolling_policy: RollingPolicy = RollingPolicy()
    bucket_assigner: BucketAssigner[T_contra] = BucketAssigner()

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder[T]) -> FileSink.RowFormatBuilder[T]:
        """Start a sink of text lines.

        Args:
            base_path: The directory, as Spark takes it: a path, or a URI such as ``s3a://…``.
            encoder: The encoder that turns an element into text.

        Raises:
            ProgramError: It is not an encoder, or does not write UTF-8, the encoding of Spark's text files.
        """
        check_is(encoder, Encoder, "for_row_format needs an Encoder, such as Encoder.simple_string_encoder()")
        if codecs.lookup(encoder.charset_name).name != "utf-8":
            raise ProgramError(
                f"Spark writes text files in UTF-8 only, and the encoder asks for {encoder.charset_name}"
            )
        sink = FileSink(str(base_path), encoder, rolling_policy=RollingPolicy.default_rolling_policy())
        return FileSink.RowFormatBuilder(sink)

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSink.BulkFormatBuilder[OfFields]:
        """Start a sink of rows, as Parquet, CSV or JSON.

        Args:
            base_path: The directory, as Spark takes it: a path, or a URI such as ``s3a://…``.
            writer_factory: The result of ``ParquetBulkWriters.for_row_type``, or of the same method for another format.

        Raises:
            ProgramError: The factory is not such a result.

        >>> from eventide.connectors.formats.parquet import ParquetBulkWriters
        >>> rows = Types.ROW_NAMED(["user", "visits"], [Types.STRING(), Types.LONG()])
        >>> FileSink.for_bulk_format("out", ParquetBulkWriters.for_row_type(rows)).build().format_sink()
        FormatSink(format='parquet', options={'path': 'out'}, partition_by=())
        """
        needs = "for_bulk_format needs a writer of eventide.connectors.formats, such as that of ParquetBulkWriters"
        check_is(writer_factory, BulkWriterFactory, needs)
        return FileSink.BulkFormatBuilder(FileSink(str(base_path), writer_factory))

    @property
    def row_type(self) -> TypeInformation:
        """The type of the written elements: text for lines."""
        return Types.STRING() if isinstance(self.writer, Encoder) else self.writer.row_type

    @property
    def has_lines(self) -> bool:
        """Whether elements are written as lines of text."""
        return isinstance(self.writer, Encoder)

    def row(self, value: T_contra) -> object:
        """Return the written form of one element: a line without its end, or the element itself."""
        if isinstance(self.writer, Encoder):
            return self.writer.encode(value).decode(self.writer.charset_name).removesuffix("\n")
        return value

    def format_sink(self) -> FormatSink:
        """Return the sink of a Spark format that writes the files."""
        if isinstance(self.writer, Encoder):
            return FormatSink("text", {"path": self.base_path})
        options = {**self.writer.options, "path": self.base_path}
        return FormatSink(self.writer.format, options, self.bucket_assigner.fields)

    @says_what_is_absent
    @dataclass
    class BaseBuilder(Generic[IN_contra]):
        """Base of the builders of both kinds; each step changes the builder and returns it."""

        sink: FileSink[IN_contra]

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
            """Set the names of part files, without effect on Spark."""
            self.sink = replace(self.sink, output_file_config=output_file_config)
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Set when part files are closed, without effect: Spark closes them at the end of every micro-batch."""
            self.sink = replace(self.sink, rolling_policy=rolling_policy)
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner[IN_contra]) -> Self:
            """Set the subdirectories of elements.

            Raises:
                ProgramError: It uses fields, and lines of text have none.
            """
            if bucket_assigner.fields and self.sink.has_lines:
                raise ProgramError("lines of text have no fields to name directories by; use for_bulk_format for rows")
            self.sink = replace(self.sink, bucket_assigner=bucket_assigner)
            return self

        def with_bucket_check_interval(self, interval: int) -> Self:
            """Set how often to look for part files to close, in milliseconds: without effect."""
            has_no_effect("with_bucket_check_interval", "Spark closes all files at the end of a micro-batch")
            return self

        def build(self) -> FileSink[IN_contra]:
            """The sink; a warning names the settings without effect."""
            asked = []
            if self.sink.output_file_config != OutputFileConfig():
                asked.append(f"{self.sink.output_file_config!r}: files are named part-<micro-batch>-<number>")
            if self.sink.rolling_policy not in (RollingPolicy.default_rolling_policy(), RollingPolicy()):
                asked.append(f"{self.sink.rolling_policy!r}: Spark closes all files at the end of a micro-batch")
            if self.sink.bucket_assigner.format_str is not None:
                asked.append(
                    f"{self.sink.bucket_assigner!r}: all files are in one directory; field_bucket_assigner makes others"
                )
            if asked:
                warnings.warn(f"the file sink {self.sink.base_path!r} ignores " + "; ".join(asked), stacklevel=2)
            return self.sink

    @dataclass
    class RowFormatBuilder(BaseBuilder[IN_contra]):
        """Builds a ``FileSink`` of text lines."""

    @dataclass
    class BulkFormatBuilder(BaseBuilder[IN_contra]):
        """Builds a ``FileSink`` of rows."""


StreamingFileSink = FileSink
"""PyFlink's older name of :class:`FileSink`."""


_STAGE = "_eventide-"
_OWN, _JOB = "_eventide", "job"


def new_stage() -> str:
    """The name of a hidden directory for one run of a sink: an earlier run may still be at work."""
    return f"{_STAGE}{uuid.uuid4().hex[:8]}"


def prefix_of(batch_id: int) -> str:
    """The prefix of the files of a micro-batch.

    >>> prefix_of(7)
    'part-00000007-'
    """
    return f"part-{batch_id:08d}-"


_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")


def bucket_of(values: Mapping[str, object]) -> str:
    """The subdirectory for the values of some fields, as Spark and Hive name it.

    >>> bucket_of({"number": 7, "at": "09:30", "shop": None})
    'number=7/at=09%3A30/shop=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(
        f"{_escaped(name)}={_NO_VALUE if value in (None, '') else _escaped(str(value))}"
        for name, value in values.items()
    )


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found.group()):02X}", text)


def used_by_another(path: str) -> ProgramError:
    """The error of a sink whose directory has files already: each job counts its micro-batches from 0."""
    return ProgramError(
        f"the directory {path} holds the output of another job, and the two could not be told apart there; give this "
        "one a directory of its own, or continue the other job from its checkpoint"
    )


def used_twice(path: str) -> ProgramError:
    """The error of two sinks of one job that have the same directory."""
    return ProgramError(f"two sinks write to the directory {path}, and overwrite each other; give each its own")


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The files of a micro-batch, and the hidden directories, that earlier runs have left.

    A run replaces and deletes only these and its own files. Files that appear later may belong to a newer run.
    """

    names: frozenset[str] = frozenset()
    stages: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.names or self.stages)


NO_LEFTOVERS = Leftovers()


@dataclass(frozen=True, slots=True)
class PartFiles:
    """A directory of part files on Arrow's file system.

    A host writes the files of a micro-batch into a hidden directory, which readers ignore; they are moved when they are
    complete. A repeated micro-batch gives its files the same names, so that they replace the earlier ones.

    A run that was thought dead may still be at work beside a newer run. So a file that may be the only copy is never
    deleted: it is replaced by moving another one to its name, and stays if that fails.
    """

    file_system: FileSystem
    path: str

    @classmethod
    def at(cls, location: str) -> PartFiles:
        """The directory at a location with a scheme, or at a local path.

        Raises:
            ProgramError: if Arrow cannot open it.
        """
        return cls(*opened(location))

    def claim(self, job: str) -> None:
        """Reserve the directory for a job, by a unique name of the job.

        Raises:
            StateError: if it is another job's.
        """
        path = f"{self.path}/{_OWN}/{_JOB}"
        owner = self._text(path)
        if owner is None:
            with writing(path):
                self.file_system.create_dir(f"{self.path}/{_OWN}", recursive=True)
                with self.file_system.open_output_stream(path, compression=None) as stream:
                    stream.write(job.encode())
            owner = self._text(path)
        if owner != job:
            raise StateError(
                f"the directory {self.path} belongs to another job ({owner}), and the two could not be told apart "
                f"there; give this one a directory of its own, or delete {self.path}/{_OWN} if that job will not "
                "continue"
            )

    def _text(self, path: str) -> str | None:
        try:
            with self.file_system.open_input_stream(path, compression=None) as stream:
                return bytes(stream.read()).decode(errors="replace")  # what has changed is another name
        except FileNotFoundError:
            return None

    def exists(self) -> bool:
        """Whether there is a directory."""
        from pyarrow.fs import FileType

        return bool(self.file_system.get_file_info(self.path).type == FileType.Directory)

    def leftovers(self, begun: int | None = None) -> Leftovers:
        """Return the leftovers of earlier runs, given the micro-batch that they did not finish, if any."""
        stages = [name for name in self.folders() if name.startswith(_STAGE)]
        return Leftovers(frozenset(() if begun is None else self.names_of(begun)), frozenset(stages))

    def commit(self, batch_id: int, stage: str, written: Mapping[str, str], leftovers: Leftovers = NO_LEFTOVERS) -> int:
        """Make the files of a micro-batch visible, and delete the hidden directory; without files it may be missing.

        Args:
            batch_id: its number.
            stage: the hidden directory.
            written: the valid files in it, in their order, each with its suffix; each stays in the bucket whose folder
                is before its name.
            leftovers: for the first micro-batch of a run, the leftovers of earlier runs, which this one replaces or
                deletes.

        Returns:
            The number of files.

        Raises:
            FileNotFoundError: if a file in the hidden directory is gone: another run has deleted it.
            FileExistsError: if another run has written files of this micro-batch since this one began.
        """
        prefix = prefix_of(batch_id)
        names = {
            f"{stage}/{name}": f"{name[: name.rfind('/') + 1]}{prefix}{n:05d}{ending}"
            for n, (name, ending) in enumerate(written.items())
        }
        for bucket in {here.rpartition("/")[0] for here in names.values()} - {""}:
            self.file_system.create_dir(f"{self.path}/{bucket}", recursive=True)
        for there, here in names.items():
            self.move(there, here, may_replace=here in leftovers.names)
        for name in leftovers.names - {*names.values()}:
            self.delete(name)
        for name in leftovers.stages:
            with suppress(FileNotFoundError):
                self.delete_folder(name)
        with nullcontext() if names else suppress(FileNotFoundError):
            self.delete_folder(stage)
        return len(names)

    def names_of(self, batch_id: int) -> list[str]:
        """The names of the files of a micro-batch."""
        prefix = prefix_of(batch_id)
        return [name for name in self.names() if name.rpartition("/")[2].startswith(prefix)]

    def names(self, below: str = "") -> list[str]:
        """The names of the files in it, or in a directory below it; in buckets, after the names of their folders.

        A directory that does not exist has none; folders that are not buckets are ignored.
        """
        names: list[str] = []
        for info in self._infos(below):
            if info.is_file:
                names.append(info.base_name)
            elif "=" in info.base_name:
                names += [f"{info.base_name}/{name}" for name in self.names(f"{below}/{info.base_name}".lstrip("/"))]
        return sorted(names)

    def folders(self) -> list[str]:
        """The names of the directories in it."""
        return sorted(info.base_name for info in self._infos() if not info.is_file)

    def _infos(self, below: str = "") -> list[FileInfo]:
        from pyarrow.fs import FileSelector

        selector = FileSelector(f"{self.path}/{below}".rstrip("/"), allow_not_found=True)
        infos: list[FileInfo] = self.file_system.get_file_info(selector)
        return infos

    def move(self, there: str, here: str, *, may_replace: bool) -> None:
        """Rename a file.

        Args:
            there: its present name.
            here: its new name.
            may_replace: whether to replace a file with the new name, left by an earlier run.

        Raises:
            FileNotFoundError: if the file is gone; a file with the new name stays.
            FileExistsError: if another file has the name and must not be replaced.
        """
        if not may_replace and self._is_file(here):
            raise FileExistsError(f"this run has not written {here}, which is there")
        try:
            self._rename(there, here)
        except OSError as error:
            if not self._is_file(there):
                raise FileNotFoundError(f"{there} has been deleted") from error
            if not may_replace or not self._is_file(here):
                raise
            self._rename_over(there, here)

    def _rename_over(self, there: str, here: str) -> None:
        """Replace a file on a store that cannot do so itself; the old file stays until the new one exists."""
        aside = f"{there}-before"
        self._rename(here, aside)
        try:
            self._rename(there, here)
        except OSError:
            self._rename(aside, here)
            raise
        self.delete(aside)

    def _rename(self, there: str, here: str) -> None:
        self.file_system.move(f"{self.path}/{there}", f"{self.path}/{here}")

    def _is_file(self, name: str) -> bool:
        return bool(self.file_system.get_file_info(f"{self.path}/{name}").is_file)

    def delete(self, name: str) -> None:
        """Delete a file."""
        self.file_system.delete_file(f"{self.path}/{name}")

    def delete_folder(self, name: str) -> None:
        """Delete a directory with its contents."""
        self.file_system.delete_dir(f"{self.path}/{name}")
