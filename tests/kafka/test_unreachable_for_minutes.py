"""Two Kafka brokers that no packet reaches for minutes, first one and then both: alignment, idleness, exactly once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eventide.common import Duration, JobClient, SimpleStringSchema, Types, WatermarkStrategy
from eventide.common.restart_strategy import RestartStrategies
from eventide.datastream import OutputTag, StreamExecutionEnvironment, WindowFunction
from eventide.datastream.connectors import FormatSink
from eventide.datastream.connectors.kafka import KafkaSource
from eventide.datastream.window import TimeWindow, TumblingEventTimeWindows
from eventide.testing import KafkaBroker
from support.distant_broker import DistantBroker
from support.kafka_topics import new_topic, produce
from support.namespaces import Namespace, namespace

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill]

MINUTES_S = 125
"""How long a broker is away in a series: longer than the two minutes for which a request is repeated by default."""

MOMENT_S = 25
"""Time away in a single run: longer than it takes until a split is idle."""

DRIFT_S, WINDOW_S, IDLE_S = 60, 10, 10
START_MS = 1_700_000_000_000
LAST = 10_000
"""The second of the last element of each source, which closes all windows before it."""


class Listing(WindowFunction):
    """Lists the elements of each window."""

    def apply(self, key: str, window: TimeWindow, inputs: Iterable[str]) -> list[str]:
        return [f"{(window.start - START_MS) // 1_000}: {', '.join(inputs)}"]


class Sources:
    """A topic on each of two brokers, near and far, with an element for each second."""

    def __init__(self, near: KafkaBroker, far: KafkaBroker) -> None:
        self.brokers = {"near": near, "far": far}
        self.topics = {name: new_topic(broker) for name, broker in self.brokers.items()}
        self.elements: list[str] = []

    def tell(self, name: str, seconds: Iterable[int]) -> None:
        told = {f"{name} {second}": second for second in seconds}
        records = [{"value": text.encode(), "timestamp": START_MS + second * 1_000} for text, second in told.items()]
        produce(self.brokers[name], self.topics[name], records)
        self.elements += told

    def program(self, folder: Path, *, idleness: bool) -> StreamExecutionEnvironment:
        """Windows over both sources, which wait for each other; what is late is written, too.

        Far may be away for 20 minutes; when near is away for longer than by default, the job fails and starts again.
        """
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        env.set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 1_000))
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(folder / "checkpoint"))
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        strategy = strategy.with_watermark_alignment("both", Duration.of_seconds(DRIFT_S))
        if idleness:
            strategy = strategy.with_idleness(Duration.of_seconds(IDLE_S))
        streams = []
        for name, broker in self.brokers.items():
            source = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers).set_topics(self.topics[name])
            source.set_value_only_deserializer(SimpleStringSchema())
            if name == "far":
                source.set_property("default.api.timeout.ms", "1200000")
            streams.append(env.from_source(source.build(), strategy, name))
        late = OutputTag("late", Types.STRING())
        windows = streams[0].union(streams[1]).key_by(lambda text: text.split()[0], Types.STRING())
        windows = windows.window(TumblingEventTimeWindows.of(Duration.of_seconds(WINDOW_S))).side_output_late_data(late)
        listed = windows.apply(Listing(), Types.STRING()).name("windows")
        listed.sink_to(FormatSink("text", {"path": str(folder / "out")}))
        listed.get_side_output(late).sink_to(FormatSink("text", {"path": str(folder / "late")}))
        return env


def lines(folder: Path) -> list[str]:
    """The lines that a sink has written."""
    return sorted(line for part in folder.glob("part-*") for line in part.read_text().splitlines())


def listed(folder: Path) -> list[str]:
    """The elements in the windows that have fired."""
    return [text for line in lines(folder / "out") for text in line.partition(": ")[2].split(", ")]


def of(name: str, seconds: Iterable[int]) -> set[str]:
    return {f"{name} {second}" for second in seconds}


@pytest.fixture
def places() -> Iterator[list[Namespace]]:
    with ExitStack() as stack:
        yield [stack.enter_context(namespace()) for _ in range(2)]


@contextmanager
def away(seconds: float, *places: Namespace) -> Iterator[Callable[[], None]]:
    """Cut links for as long as the block takes, and for some time at least; gives a function that waits for that."""
    over = time.monotonic() + seconds

    def wait() -> None:
        time.sleep(max(0.0, over - time.monotonic()))

    for place in places:
        place.cut()
    try:
        yield wait
        wait()
    finally:
        for place in places:
            place.restore()


def wait_until(holds: Callable[[], object], *jobs: JobClient) -> None:
    deadline = time.monotonic() + 500
    while not holds():
        for job in jobs:
            assert not job.get_job_status().result().is_terminal_state()
        assert time.monotonic() < deadline
        time.sleep(0.2)


def read(job: JobClient, name: str) -> int:
    """How many elements a job has read of a source."""
    return int(job.get_metrics().get(name, {}).get("numRecordsOut", 0))


def test_sources_wait_for_one_that_is_away_unless_it_is_idle_and_nothing_is_lost_or_doubled(
    spark: SparkSession, places: list[Namespace], tmp_path: Path, pytestconfig: pytest.Config, injected: Counter[str]
) -> None:
    """For minutes with `--kills=2` and more, as in `./run nightly`: then the job with near fails, and starts again."""
    away_s = MINUTES_S if pytestconfig.getoption("--kills") > 1 else MOMENT_S
    near_place, far_place = places
    with DistantBroker(near_place) as near, DistantBroker(far_place) as far:
        sources = Sources(near, far)
        strict_at, lenient_at = tmp_path / "strict", tmp_path / "lenient"
        sources.tell("near", range(10))
        sources.tell("far", range(10))
        strict = sources.program(strict_at, idleness=False).execute_async()
        lenient = sources.program(lenient_at, idleness=True).execute_async()
        jobs = (strict, lenient)
        wait_until(lambda: all(read(job, name) == 10 for job in jobs for name in ("near", "far")), *jobs)

        with away(away_s, far_place) as for_all_of_it:
            sources.tell("near", range(10, 300))
            # Far is idle, as after any silence: near does not wait for it.
            wait_until(lambda: read(lenient, "near") == 300 and of("near", range(290)) <= {*listed(lenient_at)}, *jobs)
            held = 9 + DRIFT_S + 2  # far has reached second 9; the next element shows that near is ahead
            wait_until(lambda: read(strict, "near") >= held, *jobs)
            for_all_of_it()
            assert read(strict, "near") == held, "far is not idle without a timeout: near waits for it"
            assert lines(strict_at / "out") == []
            assert {*lines(lenient_at / "late")} == set()
        sources.tell("far", range(10, 310))
        fired = of("far", range(10, 290))
        wait_until(
            lambda: all(read(job, "far") == 310 for job in jobs) and fired <= {*lines(lenient_at / "late")}, *jobs
        )
        assert {*lines(lenient_at / "late")} == fired, "late is what comes for windows that have fired, and no more"
        sources.tell("near", range(300, 310))
        wait_until(lambda: all(read(job, "near") == 310 for job in jobs), *jobs)

        sources.tell("near", range(310, 400))
        sources.tell("far", range(310, 400))
        with away(away_s, near_place, far_place):  # perhaps while they are read
            pass
        for name in ("near", "far"):
            sources.tell(name, [*range(400, 500), LAST])
        last = of("near", range(500)) | of("far", range(500))
        wait_until(lambda: last <= {*listed(strict_at)}, *jobs)
        wait_until(lambda: last <= {*listed(lenient_at), *lines(lenient_at / "late")}, *jobs)
        for job in jobs:
            job.cancel().result()

        sources.program(tmp_path / "undisturbed", idleness=False).set_available_now().execute()
    assert lines(strict_at / "out") == lines(tmp_path / "undisturbed" / "out")
    assert lines(strict_at / "late") == []
    on_time = Counter(text for text in listed(strict_at) if text.split()[1] != str(LAST))
    assert on_time == Counter(text for text in sources.elements if text.split()[1] != str(LAST))
    told = Counter([*listed(lenient_at), *lines(lenient_at / "late")])
    assert told == on_time, "each element is in a window, or is late, once"
    injected["brokers out of reach"] += 3
