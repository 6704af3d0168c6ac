"""Methods of the environment that read files as streams."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from eventide.api.source import Source
from eventide.common.time import Duration
from eventide.common.typeinfo import TypeInformation
from eventide.common.watermark_strategy import WatermarkStrategy
from eventide.connectors.file_system import (
    BulkFormat,
    FilePathFilter,
    FileProcessingMode,
    FileSource,
    StreamFormat,
)
from eventide.errors import ProgramError

if TYPE_CHECKING:
    from eventide.datastream.data_stream.stream import DataStream


class ReadingFiles:
    """The part of an environment that reads files without a watermark strategy. A strategy may follow."""

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        r"""Read the lines of the files of a folder, or of one file, once, as a stream of ``str``.

        Files in folders below are passed over, as in Flink. Flink: ``readTextFile``.

        Args:
            file_path: A local path, or a URI that Arrow knows.
            charset_name: The encoding of the lines.

        Raises:
            ProgramError: There is nothing at the path, or Python does not know the encoding.

        >>> import tempfile, pathlib
        >>> from eventide.testing import local_environment
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "words.txt"
        >>> _ = file.write_text("to be\nor not")
        >>> list(local_environment().read_text_file(str(file)).execute_and_collect())
        ['to be', 'or not']
        """
        return self.read_file(StreamFormat.text_line_format(charset_name), file_path)

    def read_file(
        self,
        file_format: StreamFormat | BulkFormat,
        file_path: str,
        watch_type: FileProcessingMode = FileProcessingMode.PROCESS_ONCE,
        interval: int = -1,
        path_filter: FilePathFilter | None = None,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """Read the files of a folder, or one file, in a format. Flink: ``readFile``, which PyFlink does not have.

        Files in folders below are passed over, as in Flink. A file must be complete when it appears and stay as it is;
        Flink would read it again as a whole when it changes. ``FileSource`` has more settings.

        Args:
            file_format: A format of lines or of columns, such as ``StreamFormat.text_line_format()``.
            file_path: A local path, or a URI that Arrow knows.
            watch_type: Whether to end with the files that are there, or to go on looking for new ones.
            interval: With ``PROCESS_CONTINUOUSLY``, how often to look, in milliseconds; at least 1.
            path_filter: Says which files to pass over, besides those whose name begins with ``.`` or ``_``.
            type_info: The type of the elements; by default, that of the format.

        Raises:
            ProgramError: An argument is of another kind, the interval is below 1, or there is nothing at the path.
        """
        if not isinstance(watch_type, FileProcessingMode):
            raise ProgramError(f"read_file needs a FileProcessingMode, not {watch_type!r}")
        if path_filter is not None and not isinstance(path_filter, FilePathFilter):
            raise ProgramError(f"read_file needs a FilePathFilter, not {path_filter!r}")
        if isinstance(file_format, BulkFormat):
            builder = FileSource.for_bulk_file_format(file_format, file_path)
        else:
            builder = FileSource.for_record_stream_format(file_format, file_path)
        builder = replace(builder, path_filter=path_filter, nested=False)
        if watch_type is FileProcessingMode.PROCESS_CONTINUOUSLY:
            if isinstance(interval, bool) or not isinstance(interval, int) or interval < 1:
                raise ProgramError(f"read_file looks for new files after 1 ms or more, not {interval!r}")
            builder.monitor_continuously(Duration.of_millis(interval))
        return self.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "file source", type_info)

    if TYPE_CHECKING:

        def from_source(
            self,
            source: Source,
            watermark_strategy: WatermarkStrategy,
            source_name: str,
            type_info: TypeInformation | None = None,
        ) -> DataStream:
            """Add a source to the environment and return its stream."""
