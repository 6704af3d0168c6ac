"""The examples on event time print what they say: all without Spark, where that can be, and the telling ones on it."""

from __future__ import annotations

import importlib.util
import re
import runpy
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from eventide.datastream import StreamExecutionEnvironment
from eventide.errors import TemporaryCheckpointWarning
from eventide.testing import local_environment

EXAMPLES = Path(__file__).parents[2] / "examples" / "event_time"
Run = Callable[..., list[str]]

PRINTED = {
    "strategy_with_assigner.py": """\
bridge, minute 0: Ada, Bob (known at watermark 60999)
tower, minute 0: Ada (known at watermark 60999)
bridge, minute 1: Cleo, Dan (known at the end of the input)
tower, minute 1: Bob (known at the end of the input)
""",
    "strategy_on_a_source.py": """\
source> ('press', 2)
source> ('drill', 1)
source> ('press', 1)
filter> ('press', 2)
filter> ('drill', 1)
filter> ('press', 1)
""",
    "bounded_out_of_orderness_generator.py": """\
by hand> day 1: 2 letter(s)
built in> day 1: 2 letter(s)
by hand> day 2: 1 letter(s)
by hand> day 1: too late
built in> day 2: 1 letter(s)
built in> day 1: too late
by hand> day 3: 1 letter(s)
by hand> day 4: 1 letter(s)
by hand> day 5: 1 letter(s)
by hand> day 6: 1 letter(s)
by hand> day 9: 1 letter(s)
built in> day 3: 1 letter(s)
built in> day 4: 1 letter(s)
built in> day 5: 1 letter(s)
built in> day 6: 1 letter(s)
built in> day 9: 1 letter(s)
""",
    "punctuated_assigner.py": """\
generator> from 9 o'clock: 15
generator> from 10 o'clock: 12
generator> too late: 8 of 9:40
older form> from 9 o'clock: 15
older form> from 10 o'clock: 12
older form> too late: 8 of 9:40
""",
    "source_with_timestamps.py": """\
harbour, from hour 0 to 6: up to 3.0 m
harbour, from hour 6 to 12: up to 2.0 m
harbour, from hour 12 to 18: up to 3.2 m
harbour, from hour 18 to 24: up to 2.0 m
""",
    "own_strategy.py": """\
from second 0: WARNING 3, WARNING 7
from second 10: WARNING 12
""",
    "allowed_lateness.py": """\
tea, from second 0 to 9: 2 vote(s)
tea, from second 0 to 9: 3 vote(s)
tea, from second 10 to 19: 1 vote(s)
tea, from second 30 to 39: 1 vote(s)
too late> ('tea', 6)
""",
    "as_of_join.py": """\
order> 9:02 200 EUR at 110
order> 9:04 50 CHF at 120
order> 9:06 10 EUR at 114
order> 9:07 100 EUR at 114
balance> 9:02 200 EUR
balance> 9:04 50 CHF
balance> 9:06 210 EUR
balance> 9:07 310 EUR
""",
    "calendar_days.py": """\
day> from Friday 23:00 UTC: 24 kWh
day> from Saturday 23:00 UTC: 23 kWh
so far> up to Saturday 00:00 UTC: 1 kWh
so far> up to Saturday 06:00 UTC: 6 kWh
so far> up to Saturday 12:00 UTC: 12 kWh
so far> up to Saturday 18:00 UTC: 18 kWh
so far> up to Sunday 00:00 UTC: 24 kWh
so far> up to Sunday 06:00 UTC: 6 kWh
so far> up to Sunday 12:00 UTC: 12 kWh
so far> up to Sunday 18:00 UTC: 18 kWh
so far> up to Monday 00:00 UTC: 22 kWh
""",
    "history_then_live.py": """\
('tea', 2)
('coffee', 1)
('coffee', 1)
('tea', 2)
('coffee', 1)
""",
}

GENERATORS = {
    "ascending": ["from second 0: 1, 4", "too late: 8", "from second 10: 12, 13", "from second 20: 23", "too late: 9"],
    "bounded": ["from second 0: 1, 4, 8, 9", "from second 10: 12, 13", "from second 20: 23"],
    "marked": ["from second 0: 1, 4, 8", "from second 10: 12, 13", "from second 20: 23", "too late: 9"],
    "none": ["from second 0: 1, 4, 8, 9", "from second 10: 12, 13", "from second 20: 23"],
    "time lag": ["from second 0: 1, 4", *(f"too late: {second}" for second in (12, 13, 8, 9, 23))],
}

STRETCHES = """\
Anna, hour 0: 4.5 of 2
Bela, hour 0: 3.0 of 1
Anna, hour 1: 1.0 of 1
Bela, hour 1: 6.0 of 1
Bela, hour 2: 0.5 of 1
counted: {'numRecordsIn': 7, 'numRecordsOut': 5, 'numLateRecordsDropped': 1}
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the `main` of an example, and return the lines that it printed."""

    def run_example(name: str, **arguments: object) -> list[str]:
        main = runpy.run_path(str(EXAMPLES / name), run_name="example")["main"]
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TemporaryCheckpointWarning)
            main(**arguments)
        return capsys.readouterr().out.splitlines()

    return run_example


@pytest.fixture
def on_the_twin(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run without Spark."""
    monkeypatch.setattr(StreamExecutionEnvironment, "get_execution_environment", staticmethod(local_environment))
    return run


@pytest.fixture
def on_spark(run: Run, spark: object) -> Run:
    """Run on the one session of the tests."""
    return run


def by_prefix(lines: list[str]) -> dict[str, list[str]]:
    """The lines of each sink."""
    found: dict[str, list[str]] = {}
    for line in lines:
        prefix, _, text = line.partition("> ")
        found.setdefault(prefix, []).append(text)
    return found


@pytest.mark.parametrize("name", PRINTED)
def test_the_example_prints_exactly_this(on_the_twin: Run, name: str) -> None:
    assert on_the_twin(name) == PRINTED[name].splitlines()


def test_who_waits_longer_loses_less(on_the_twin: Run) -> None:
    assert by_prefix(on_the_twin("ready_made_generators.py")) == GENERATORS


def test_a_generator_on_columns_speaks_in_the_middle_of_a_batch(on_the_twin: Run) -> None:
    lines = on_the_twin("vectorized_generator.py")
    assert any(line.startswith("Operator 2 'stretches': columns, rows go through the shuffle") for line in lines)
    assert lines[-6:] == STRETCHES.splitlines()


def test_event_time_is_the_same_in_every_run_and_other_times_are_those_of_the_clock(on_the_twin: Run) -> None:
    from eventide.common import Time

    found = by_prefix(on_the_twin("time_characteristics.py", hour=Time.milliseconds(100)))
    assert set(found) == {"EventTime", "IngestionTime", "ProcessingTime"}
    assert found.pop("EventTime") == ["1970, 00:00:00: 4 cars"] * 6
    for lines in found.values():
        assert not any(line.startswith("1970") for line in lines)
        assert sum(int(line.split()[-2]) for line in lines) == 24


@pytest.mark.spark
def test_a_silent_sensor_holds_nothing_back(on_spark: Run) -> None:
    assert on_spark("idleness.py") == [
        "from second 0: 10 readings of the roof, 3 of the cellar",
        "from second 10: 10 readings of the roof, 0 of the cellar",
        "from second 20: 10 readings of the roof, 0 of the cellar",
    ]


@pytest.mark.spark
def test_a_window_closes_though_nothing_comes_any_more(on_spark: Run) -> None:
    assert on_spark("time_lag_generator.py") == ["the bell rang 5 times, and then was silent for a second"]


@pytest.mark.spark
def test_a_watermark_in_the_middle_of_a_batch_on_spark(on_spark: Run) -> None:
    found = by_prefix(on_spark("punctuated_assigner.py"))
    assert found == by_prefix(PRINTED["punctuated_assigner.py"].splitlines())


@pytest.mark.spark
def test_a_strategy_of_the_users_over_files_on_spark(on_spark: Run) -> None:
    assert sorted(on_spark("own_strategy.py")) == PRINTED["own_strategy.py"].splitlines()


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="not installed: matplotlib")
def test_the_pictures_of_the_page_on_event_time_are_those_that_are_drawn(tmp_path: Path) -> None:
    runpy.run_path(str(EXAMPLES / "pictures.py"), run_name="example")["draw"](tmp_path)
    drawn = {path.name for path in tmp_path.iterdir()}
    page = (EXAMPLES.parents[1] / "docs" / "concepts" / "event-time.md").read_text()
    assert drawn == set(re.findall(r"images/(event-time-[\w-]+\.svg)", page))
    assert drawn == {path.name for path in (EXAMPLES.parents[1] / "docs" / "images").glob("event-time-*")}


def test_every_example_is_among_these_tests() -> None:
    by_name = {"ready_made_generators.py", "vectorized_generator.py", "time_characteristics.py"}
    live = {"idleness.py", "time_lag_generator.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} - {"pictures.py"} == {*PRINTED, *by_name, *live}
