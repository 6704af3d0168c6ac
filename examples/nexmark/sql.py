"""The queries in SQL: on events at rest, to check the programs by, and on streams, as far as Spark can say them.

The views are `person`, `auction`, `bid` and, for query 13, `side_input`. Times are in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass

from examples.nexmark.generator import Recipe

_TEN_SECONDS = "window(dateTime, '10 seconds')"
_RANKS = ("TRUE", "price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")
_OF_RANK = ("total", "rank1", "rank2", "rank3")


def _of_each_rank(what: str, name: str) -> str:
    counts = zip(_OF_RANK, _RANKS, strict=True)
    return ", ".join(f"count({what}) FILTER (WHERE {rank}) AS {of}_{name}" for of, rank in counts)


_COUNTS = f"""{_of_each_rank("*", "bids")},
               {_of_each_rank("DISTINCT bidder", "bidders")},
               {_of_each_rank("DISTINCT auction", "auctions")}"""
_PRICES = "min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price"

_WINNERS = """
    SELECT a.*, b.auction, b.bidder, b.price, b.dateTime AS bid_dateTime, b.extra AS bid_extra,
           row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.dateTime, b.extra) AS place
    FROM auction a JOIN bid b ON a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
"""

_PRICE_IN_EUROS = "CAST(0.908 * price AS DECIMAL(23, 3))"

_ID_IN_URL = "nullif(regexp_extract(url, '(?:&|^)channel_id=([^&]*)', 1), '')"
_CHANNEL_ID = f"""
    CASE lower(channel)
        WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3' ELSE {_ID_IN_URL}
    END
"""

_WITH_AUCTION = """
    SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime AS bid_dateTime, b.extra AS bid_extra,
           a.itemName, a.description, a.initialBid, a.reserve, a.dateTime AS auction_dateTime,
           a.expires, a.seller, a.category, a.extra AS auction_extra
    FROM bid b JOIN auction a ON b.auction = a.id
    WHERE a.category = 10
"""

BATCH: dict[int, str] = {
    0: "SELECT * FROM bid",
    1: f"SELECT auction, bidder, {_PRICE_IN_EUROS} AS price, dateTime, extra FROM bid",
    2: "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    3: """
        SELECT p.name, p.city, p.state, a.id
        FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
    """,
    4: f"SELECT category, sum(price) DIV count(*) AS final FROM ({_WINNERS}) WHERE place = 1 GROUP BY category",
    5: """
        SELECT auction, window, num FROM (
            SELECT *, rank() OVER (PARTITION BY window ORDER BY num DESC) AS place FROM (
                SELECT auction, window, count(*) AS num
                FROM bid GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')
            )
        ) WHERE place = 1
    """,
    6: f"""
        SELECT seller, sum(price) DIV count(*) AS final FROM (
            SELECT *, row_number() OVER (PARTITION BY seller ORDER BY expires DESC, id DESC) AS last
            FROM ({_WINNERS}) WHERE place = 1
        ) WHERE last <= 10 GROUP BY seller
    """,
    7: f"""
        SELECT auction, bidder, price, channel, url, dateTime, extra FROM (
            SELECT *, rank() OVER (PARTITION BY {_TEN_SECONDS} ORDER BY price DESC) AS place FROM bid
        ) WHERE place = 1
    """,
    8: f"""
        SELECT id, name, window FROM (SELECT id, name, {_TEN_SECONDS} FROM person)
        JOIN (SELECT DISTINCT seller, {_TEN_SECONDS} FROM auction) USING (window) WHERE id = seller
    """,
    9: f"SELECT * EXCEPT (place) FROM ({_WINNERS}) WHERE place = 1",
    10: """
        SELECT auction, bidder, price, dateTime, extra,
               date_format(dateTime, 'yyyy-MM-dd') AS dt, date_format(dateTime, 'HH:mm') AS hm
        FROM bid
    """,
    11: """
        SELECT bidder,
               named_struct('start', min(dateTime), 'end', max(dateTime) + INTERVAL 10 SECONDS) AS window,
               count(*) AS bid_count
        FROM (
            SELECT *, count_if(begins) OVER (PARTITION BY bidder ORDER BY dateTime) AS session FROM (
                SELECT bidder, dateTime, dateTime > INTERVAL 10 SECONDS + lag(dateTime) OVER (
                    PARTITION BY bidder ORDER BY dateTime) AS begins
                FROM bid
            )
        ) GROUP BY bidder, session
    """,
    12: "SELECT bidder, count(*) AS bid_count FROM bid GROUP BY bidder",
    13: "SELECT auction, bidder, price, dateTime, value FROM bid JOIN side_input ON auction % 10000 = key",
    14: f"""
        SELECT auction, bidder, {_PRICE_IN_EUROS} AS price,
               CASE WHEN hour(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
                    WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime'
                    ELSE 'otherTime' END AS bidTimeType,
               dateTime, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
    """,
    15: f"SELECT window, {_COUNTS} FROM bid GROUP BY window(dateTime, '1 day')",
    16: f"""
        SELECT channel, date_format(dateTime, 'yyyy-MM-dd') AS day, max(date_format(dateTime, 'HH:mm')) AS minute,
               {_COUNTS}
        FROM bid GROUP BY channel, day
    """,
    17: f"""
        SELECT auction, window, {_of_each_rank("*", "bids")}, {_PRICES}
        FROM bid GROUP BY auction, window(dateTime, '1 day')
    """,
    18: """
        SELECT * EXCEPT (place) FROM (
            SELECT *, row_number() OVER (
                PARTITION BY bidder, auction ORDER BY dateTime DESC, price DESC, extra DESC) AS place
            FROM bid
        ) WHERE place = 1
    """,
    19: """
        SELECT * FROM (
            SELECT *, row_number() OVER (
                PARTITION BY auction ORDER BY price DESC, dateTime, extra) AS rank_number
            FROM bid
        ) WHERE rank_number <= 10
    """,
    20: _WITH_AUCTION,
    21: f"""
        SELECT auction, bidder, price, channel, {_CHANNEL_ID} AS channel_id FROM bid
        WHERE lower(channel) IN ('apple', 'google', 'facebook', 'baidu') OR {_ID_IN_URL} IS NOT NULL
    """,
    22: """
        SELECT auction, bidder, price, channel,
               split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
        FROM bid
    """,
}
"""Final results of each query. For query 12, which goes by the clock: the sum over all windows."""


@dataclass(frozen=True)
class Streaming:
    """A query of Spark's Structured Streaming.

    Attributes:
        sql: its text; in braces are attributes of the recipe.
        mode: the output mode.
        partition_by: columns that name the folders of files, where the query is about those.
    """

    sql: str
    mode: str = "append"
    partition_by: tuple[str, ...] = ()

    def text(self, recipe: Recipe) -> str:
        """The text for the events of a recipe."""
        return self.sql.format(recipe=recipe)


STREAMING: dict[int, Streaming] = {
    **{number: Streaming(BATCH[number]) for number in (0, 1, 2, 3, 13, 14, 21, 22)},
    10: Streaming(BATCH[10], partition_by=("dt", "hm")),
    5: Streaming("""
        SELECT auction.auction, window, auction.num FROM (
            SELECT window, explode(filter(auctions, one -> one.num = most)) AS auction FROM (
                SELECT window(window, '2 seconds') AS until, first(window) AS window,
                       max(num) AS most, collect_list(struct(auction, num)) AS auctions
                FROM (
                    SELECT auction, window, count(*) AS num
                    FROM bid GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')
                ) GROUP BY window(window, '2 seconds')
            )
        )
    """),
    # A join takes one column of event time from each side, so that of the bids is made an ordinary one.
    7: Streaming(f"""
        SELECT auction, bidder, price, channel, url, dateTime, extra
        FROM (SELECT * EXCEPT (dateTime), timestamp_micros(unix_micros(dateTime)) AS dateTime, {_TEN_SECONDS} FROM bid)
        JOIN (SELECT window, max(price) AS highest FROM bid GROUP BY {_TEN_SECONDS}) USING (window)
        WHERE price = highest
    """),
    8: Streaming(f"""
        SELECT p.id, p.name, p.window
        FROM (SELECT id, name, window FROM person GROUP BY id, name, {_TEN_SECONDS}) p
        JOIN (SELECT seller, window FROM auction GROUP BY seller, {_TEN_SECONDS}) a
        ON p.id = a.seller AND p.window = a.window
    """),
    11: Streaming("""
        SELECT bidder, session_window AS window, count(*) AS bid_count
        FROM bid GROUP BY bidder, session_window(dateTime, '10 seconds')
    """),
    12: Streaming(
        """
        SELECT bidder, window, count(*) AS bid_count
        FROM bid GROUP BY bidder, window(current_timestamp(), '10 seconds')
        """,
        "update",
    ),
    17: Streaming(BATCH[17], "update"),
    18: Streaming(
        """
        SELECT last.* FROM (
            SELECT max_by(struct(*), struct(dateTime, price, extra)) AS last FROM bid GROUP BY bidder, auction
        )
        """,
        "update",
    ),
    19: Streaming(
        """
        SELECT top.*, place + 1 AS rank_number FROM (
            SELECT posexplode(max_by(struct(*), struct(price, -unix_micros(dateTime)), 10)) AS (place, top)
            FROM bid GROUP BY auction
        )
        """,
        "update",
    ),
    20: Streaming(
        _WITH_AUCTION
        + """
        AND b.dateTime BETWEEN a.dateTime - INTERVAL {recipe.before_ms} MILLISECONDS
                           AND a.dateTime + INTERVAL {recipe.after_ms} MILLISECONDS
        """
    ),
}
"""Queries that Spark's streaming SQL can say; where a result replaces another one, in update mode."""

NOT_ON_SPARK: dict[int, str] = {
    4: "two aggregations without windows, one after the other",
    6: "an aggregation after a join without a known interval",
    9: "an aggregation after a join without a known interval",
    15: "distinct counts of a stream",
    16: "distinct counts of a stream",
}
"""Reasons why it cannot say the others."""
