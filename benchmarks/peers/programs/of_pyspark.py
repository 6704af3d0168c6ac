"""PySpark: Structured Streaming with two local cores, two shuffle partitions, and state in RocksDB."""

from __future__ import annotations

from contract import BOUND_MS, CORES, GAP_MS, LEAST_VALUE, WINDOW_MS, WITHIN_MS, main
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming import StatefulProcessor

SETTINGS = {
    "spark.master": f"local[{CORES}]",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}
spark = SparkSession.builder.config(map=SETTINGS).getOrCreate()


def read(events, kind):
    lines = spark.readStream.schema("event STRING, user STRING, at LONG, value LONG").option("header", True)
    return lines.option("maxFilesPerTrigger", CORES).csv(str(events / "parts" / kind))


def timed(events, kind="events"):
    rows = read(events, kind).withColumn("ts", F.timestamp_millis("at"))
    return rows.withWatermark("ts", f"{BOUND_MS} milliseconds")


def job(results, out):
    writer = results.writeStream.format("parquet").option("checkpointLocation", str(out / "checkpoint"))
    writer = writer.option("path", str(out / "out")).trigger(availableNow=True)
    return lambda: writer.start().awaitTermination()


def stateless(events, out):
    is_large = F.udf(lambda value: value >= LEAST_VALUE, "boolean", useArrow=True)
    upper = F.udf(lambda user: user.upper(), "string", useArrow=True)
    double = F.udf(lambda value: value * 2, "long", useArrow=True)
    large = read(events, "events").where(is_large("value"))
    return job(large.select(upper("user").alias("user"), double("value").alias("doubled")), out)


def windowed(events, out, window):
    sums = timed(events).groupBy("user", window.alias("window")).agg(F.sum("value").alias("total"))
    return job(sums.select("user", F.unix_millis("window.start").alias("start"), "total"), out)


def tumbling(events, out):
    return windowed(events, out, F.window("ts", f"{WINDOW_MS} milliseconds"))


def sessions(events, out):
    return windowed(events, out, F.session_window("ts", f"{GAP_MS} milliseconds"))


class Highest(StatefulProcessor):
    """The highest value of each user and period, told by a timer at the end of the period."""

    def init(self, handle):
        self.handle = handle
        self.highest = handle.getMapState("highest", "start LONG", "value LONG")

    def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803 - names of PySpark
        highest = {}
        for row in rows:
            start = row.at - row.at % WINDOW_MS
            highest[start] = max(row.value, highest.get(start, row.value))
        for start, value in highest.items():
            if not self.highest.containsKey((start,)):
                self.handle.registerTimer(start + WINDOW_MS)
                self.highest.updateValue((start,), (value,))
            elif value > self.highest.getValue((start,))[0]:
                self.highest.updateValue((start,), (value,))
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):  # noqa: N802, N803
        start = expiredTimerInfo.getExpiryTimeInMs() - WINDOW_MS
        (value,) = self.highest.getValue((start,))
        self.highest.removeKey((start,))
        yield Row(user=key[0], start=start, highest=value)

    def close(self):
        pass


def process(events, out):
    grouped = timed(events).select("user", "ts", "at", "value").groupBy("user")
    told = grouped.transformWithState(Highest(), "user STRING, start LONG, highest LONG", "Append", "EventTime")
    return job(told, out)


def join(events, out):
    one, other = timed(events).alias("one"), timed(events, "answers").alias("other")
    in_time = f"other.ts BETWEEN one.ts AND one.ts + INTERVAL {WITHIN_MS} MILLISECONDS"
    pairs = one.join(other, F.expr(f"one.event = other.event AND {in_time}"))
    return job(pairs.select("one.event", "one.value", F.col("other.value").alias("other")), out)


PROGRAMS = {"stateless": stateless, "tumbling": tumbling, "sessions": sessions, "process": process, "join": join}

if __name__ == "__main__":
    main(PROGRAMS, warm_up=True)
