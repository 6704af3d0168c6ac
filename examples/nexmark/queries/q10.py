"""Query 10: every bid, in files by the day and the minute of its time. A file sink that makes directories."""

from eventide.common import Row, Types
from eventide.connectors.formats.parquet import ParquetBulkWriters
from eventide.datastream import DataStream
from eventide.datastream.connectors.file_system import BucketAssigner, FileSink
from examples.nexmark.source import Streams

LOGGED = Types.ROW_NAMED(
    ["auction", "bidder", "price", "dateTime", "extra", "dt", "hm"],
    [*[Types.LONG()] * 3, Types.SQL_TIMESTAMP(), *[Types.STRING()] * 3],
)
Logged = Row(*LOGGED.field_names)


def by_minute(streams: Streams) -> DataStream:
    return streams.bids.map(
        lambda bid: Logged(
            *(bid.auction, bid.bidder, bid.price, bid.dateTime, bid.extra),
            *(bid.dateTime.strftime("%Y-%m-%d"), bid.dateTime.strftime("%H:%M")),
        ),
        LOGGED,
    )


def files_by_minute(folder: str) -> FileSink:
    """The sink of the query, below a folder."""
    sink = FileSink.for_bulk_format(folder, ParquetBulkWriters.for_row_type(LOGGED))
    return sink.with_bucket_assigner(BucketAssigner.field_bucket_assigner("dt", "hm")).build()
