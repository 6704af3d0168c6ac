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


_PRICES = "min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price"

_WINNERS = """
    SELECT a.*, b.auction, b.bidder, b.price, b.dateTime AS bid_dateTime, b.extra AS bid_extra,
           row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.dateTime, b.extra) AS place
    FROM auction a JOIN bid b ON a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
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
    1: "SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(23, 3)) AS price, dateTime, extra FROM bid",
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
    16: f"""
        SELECT channel, date_format(dateTime, 'yyyy-MM-dd') AS day, max(date_format(dateTime, 'HH:mm')) AS minute,
               {_of_each_rank("*", "bids")},
               {_of_each_rank("DISTINCT bidder", "bidders")},
               {_of_each_rank("DISTINCT auction", "auctions")}
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
    20: _WITH_AUCTION,
}
"""Final results of each query. For query 12, which goes by the clock: the sum over all windows."""


@dataclass(frozen=True)
class Streaming:
    """A query of Spark's Structured Streaming.

    Attributes:
        sql: its text; in braces are attributes of the recipe.
        mode: the output mode.
    """

    sql: str
    mode: str = "append"

    def text(self, recipe: Recipe) -> str:
        """The text for the events of a recipe."""
        return self.sql.format(recipe=recipe)


STREAMING: dict[int, Streaming] = {
    **{number: Streaming(BATCH[number]) for number in (0, 1, 2, 3, 13)},
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
    9: "an aggregation after a join without a known interval",
    16: "distinct counts of a stream",
}
"""Reasons why it cannot say the others."""
