"""The examples on Kafka print what they say, on the broker of the tests: without Spark, where that can be."""

from __future__ import annotations

import runpy
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from eventide.datastream import StreamExecutionEnvironment
from eventide.errors import TemporaryCheckpointWarning
from eventide.testing import KafkaBroker, local_environment

pytestmark = pytest.mark.kafka

EXAMPLES = Path(__file__).parents[2] / "examples" / "kafka"
Run = Callable[[str], list[str]]

PRINTED = {
    "aligned_partitions.py": """\
apart: 420 payments; when the lake is at six o'clock, 120 of downtown wait
aligned: 420 payments; when the lake is at six o'clock, 1 of downtown wait
""",
    "aligned_sources.py": """\
apart: 660 records; the topics are 534 minutes apart at most
aligned: 660 records; the topics are 6 minutes apart at most
""",
}


@pytest.fixture
def run(broker: KafkaBroker, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the `main` of an example, and return the lines that it printed."""

    def run_example(name: str) -> list[str]:
        main = runpy.run_path(str(EXAMPLES / name), run_name="example")["main"]
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TemporaryCheckpointWarning)
            main(broker)
        return capsys.readouterr().out.splitlines()

    return run_example


@pytest.fixture
def on_the_twin(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run without Spark."""
    monkeypatch.setattr(StreamExecutionEnvironment, "get_execution_environment", staticmethod(local_environment))
    return run


@pytest.mark.parametrize("name", PRINTED)
def test_the_example_prints_exactly_this(on_the_twin: Run, name: str) -> None:
    assert on_the_twin(name) == PRINTED[name].splitlines()


def test_with_a_watermark_for_each_partition_nothing_is_late(on_the_twin: Run) -> None:
    lines = on_the_twin("per_partition_watermarks.py")
    counted = {
        name: sorted(line.partition("> ")[2] for line in lines if line.startswith(f"{name}> "))
        for name in ("of each partition", "of all")
    }
    mountain = ["6 readings of the mountain in a minute"] * 2
    assert counted["of each partition"] == [*mountain, *["6 readings of the valley in a minute"] * 2]
    assert counted["of all"] == [
        *["2 readings of the valley in a minute"] * 2,
        *mountain,
        *["too late: a reading of the valley"] * 8,
    ]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_partition_without_records_holds_nothing_back(run: Run) -> None:
    assert run("idle_partition.py") == ["ten minutes: 10 reports of the press, 10 of the drill"] * 2


def test_every_example_is_among_these_tests() -> None:
    by_name = {"per_partition_watermarks.py", "idle_partition.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*PRINTED, *by_name}
