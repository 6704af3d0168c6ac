"""Nexmark in Flink SQL, in a local mini-cluster: run by an interpreter that has `apache-flink`.

    PYTHON benchmarks/nexmark_flink.py EVENTS PLACE PARALLELISM WATERMARK_MS QUERY …

The folder of events has them as Parquet, a file for each subtask, because Flink reads files in no order but keeps the
order within one. Checkpoints, and what query 10 writes, go below the folder PLACE. For each query, a line of JSON on
standard output says how long its job ran, or why it did not.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TABLES = {
    "person": "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING",
    "auction": "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, "
    "expires TIMESTAMP(3), seller BIGINT, category BIGINT",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING",
}

SETTINGS = {
    "table.local-time-zone": "UTC",
    "table.optimizer.reuse-sub-plan-enabled": "true",
    "state.backend.type": "rocksdb",
    "execution.checkpointing.interval": "10 s",
    "execution.checkpointing.incremental": "true",
    "taskmanager.memory.managed.size": "1 gb",  # a mini-cluster has 128 MB for RocksDB, where a task manager has 512
}
"""State on disk, and a checkpoint of what has changed every ten seconds."""

RANKS = {
    "total": "TRUE",
    "rank1": "price < 10000",
    "rank2": "price >= 10000 AND price < 1000000",
    "rank3": "price >= 1000000",
}


def of_each_rank(what: str, name: str) -> str:
    return ", ".join(f"COUNT({what}) FILTER (WHERE {rank}) AS {of}_{name}" for of, rank in RANKS.items())


def tumbling(table: str) -> str:
    return f"TUMBLE(TABLE {table}, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)"


OF_EACH_RANK = f"""
    {of_each_rank("*", "bids")},
    {of_each_rank("DISTINCT bidder", "bidders")},
    {of_each_rank("DISTINCT auction", "auctions")}
"""
DAY = "DATE_FORMAT(dateTime, 'yyyy-MM-dd')"
ID_IN_URL = "REGEXP_EXTRACT(url, '(?:&|^)channel_id=([^&]*)', 1)"
COUNTS = """
    SELECT auction, window_start, window_end, COUNT(*) AS num
    FROM HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
    GROUP BY auction, window_start, window_end
"""
BIDS_IN_TIME = "auction a JOIN bid b ON a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires"
WINNERS = f"""
    SELECT * FROM (
        SELECT a.*, b.auction, b.bidder, b.price, b.dateTime AS bid_dateTime, b.extra AS bid_extra,
               ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.dateTime ASC) AS place
        FROM {BIDS_IN_TIME}
    ) WHERE place <= 1
"""

QUERIES = {
    0: "SELECT * FROM bid",
    1: "SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid",
    2: "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    3: """
        SELECT p.name, p.city, p.state, a.id
        FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
    """,
    4: f"""
        SELECT category, AVG(final) FROM (
            SELECT a.id, a.category, MAX(b.price) AS final FROM {BIDS_IN_TIME} GROUP BY a.id, a.category
        ) GROUP BY category
    """,
    5: f"""
        SELECT c.auction, c.num FROM ({COUNTS}) c JOIN (
            SELECT window_start, window_end, MAX(num) AS most FROM ({COUNTS}) GROUP BY window_start, window_end
        ) m ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num >= m.most
    """,
    6: f"""
        SELECT seller, AVG(price) AS final FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY seller ORDER BY expires DESC, id DESC) AS last FROM ({WINNERS})
        ) WHERE last <= 10 GROUP BY seller
    """,
    7: f"""
        SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra FROM bid b JOIN (
            SELECT window_time AS rowtime, window_start, window_end, MAX(price) AS highest
            FROM {tumbling("bid")} GROUP BY window_start, window_end, window_time
        ) m ON b.price = m.highest AND b.dateTime BETWEEN m.rowtime - INTERVAL '10' SECOND AND m.rowtime
    """,
    8: f"""
        SELECT p.id, p.name, p.window_start FROM (
            SELECT id, name, window_start, window_end FROM {tumbling("person")}
            GROUP BY id, name, window_start, window_end
        ) p JOIN (
            SELECT seller, window_start, window_end FROM {tumbling("auction")}
            GROUP BY seller, window_start, window_end
        ) a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end
    """,
    9: WINNERS,
    10: f"""
        SELECT auction, bidder, price, dateTime, extra, {DAY} AS dt, DATE_FORMAT(dateTime, 'HH:mm') AS hm FROM bid
    """,
    11: """
        SELECT bidder, COUNT(*) AS bid_count, window_start, window_end
        FROM SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)
        GROUP BY bidder, window_start, window_end
    """,
    12: """
        SELECT bidder, COUNT(*) AS bid_count, window_start, window_end
        FROM TUMBLE(TABLE bid_by_the_clock, DESCRIPTOR(clock), INTERVAL '10' SECOND)
        GROUP BY bidder, window_start, window_end
    """,
    13: """
        SELECT b.auction, b.bidder, b.price, b.dateTime, s.told
        FROM bid b JOIN side_input s ON MOD(b.auction, 10000) = s.id
    """,
    14: """
        SELECT auction, bidder, 0.908 * price AS price,
               CASE WHEN HOUR(dateTime) >= 8 AND HOUR(dateTime) <= 18 THEN 'dayTime'
                    WHEN HOUR(dateTime) <= 6 OR HOUR(dateTime) >= 20 THEN 'nightTime'
                    ELSE 'otherTime' END AS bidTimeType,
               dateTime, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
    """,
    15: f"SELECT {DAY} AS d, {OF_EACH_RANK} FROM bid GROUP BY {DAY}",
    16: f"""
        SELECT channel, {DAY} AS d, MAX(DATE_FORMAT(dateTime, 'HH:mm')) AS m, {OF_EACH_RANK}
        FROM bid GROUP BY channel, {DAY}
    """,
    17: f"""
        SELECT auction, {DAY} AS d, {of_each_rank("*", "bids")},
               MIN(price) AS low, MAX(price) AS high, AVG(price) AS average, SUM(price) AS total
        FROM bid GROUP BY auction, {DAY}
    """,
    18: """
        SELECT * FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) AS place FROM bid
        ) WHERE place <= 1
    """,
    19: """
        SELECT * FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid
        ) WHERE rank_number <= 10
    """,
    20: """
        SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime, b.extra,
               a.itemName, a.description, a.initialBid, a.reserve, a.dateTime, a.expires, a.seller, a.category, a.extra
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10
    """,
    21: f"""
        SELECT auction, bidder, price, channel,
               CASE WHEN LOWER(channel) = 'apple' THEN '0'
                    WHEN LOWER(channel) = 'google' THEN '1'
                    WHEN LOWER(channel) = 'facebook' THEN '2'
                    WHEN LOWER(channel) = 'baidu' THEN '3'
                    ELSE {ID_IN_URL} END AS channel_id
        FROM bid
        WHERE {ID_IN_URL} IS NOT NULL OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')
    """,
    22: """
        SELECT auction, bidder, price, channel,
               SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2, SPLIT_INDEX(url, '/', 5) AS dir3
        FROM bid
    """,
}
PARTITIONED_BY = {10: "dt, hm"}
"""The columns that name folders, of queries that write files. The results of all others go nowhere."""


def main(events: Path, place: Path, parallelism: int, watermark_ms: int, numbers: list[int]) -> None:
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    configuration = Configuration()
    for key, value in {
        **SETTINGS,
        "parallelism.default": parallelism,
        "taskmanager.numberOfTaskSlots": parallelism,
        "execution.checkpointing.dir": (place / "checkpoints").as_uri(),
    }.items():
        configuration.set_string(key, str(value))
    tables = TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
    )

    def run(sql: str) -> Any:
        return tables.execute_sql(quoted(sql))

    for name, columns in TABLES.items():
        run(f"""
            CREATE TABLE {name} (
                {columns}, dateTime TIMESTAMP(3), extra STRING,
                WATERMARK FOR dateTime AS dateTime - INTERVAL '{watermark_ms / 1000:.3f}' SECOND
            ) WITH ('connector' = 'filesystem', 'path' = '{(events / name).as_uri()}', 'format' = 'parquet')
        """)
    run("CREATE VIEW bid_by_the_clock AS SELECT *, PROCTIME() AS clock FROM bid")
    tables.create_temporary_view(
        "side_input",
        tables.from_elements([(key, f"value-{key * 7919 % 10_000}") for key in range(10_000)], ["id", "told"]),
    )
    for number in numbers:
        print(json.dumps({"query": number, **outcome(run, number, place)}), flush=True)


def outcome(run: Callable[[str], Any], number: int, place: Path) -> dict[str, float | str]:
    """How long the job of a query ran, in seconds; or what went wrong."""
    files = f"WITH ('connector' = 'filesystem', 'path' = '{(place / f'q{number}').as_uri()}', 'format' = 'parquet')"
    if number in PARTITIONED_BY:
        table = f"q{number} PARTITIONED BY ({PARTITIONED_BY[number]}) {files}"
    else:
        table = f"q{number} WITH ('connector' = 'blackhole')"
    try:
        run(f"DROP TABLE IF EXISTS q{number}")
        job = run(f"CREATE TABLE {table} AS {QUERIES[number]}").get_job_client()
        return {"seconds": job.get_job_execution_result().result().get_net_runtime() / 1_000}
    except Exception as error:  # what one query says must not end the others
        causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
        return {"error": (causes or str(error).splitlines())[-1]}


def quoted(sql: str) -> str:
    """With the one name in quotes that is a word of Flink's SQL."""
    return re.sub(r"\bdateTime\b", "`dateTime`", sql)


if __name__ == "__main__":
    events, place, subtasks, behind, *queries = sys.argv[1:]
    main(Path(events).resolve(), Path(place).resolve(), int(subtasks), int(behind), [int(number) for number in queries])
