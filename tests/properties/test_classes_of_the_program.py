"""A program's own classes are the same before and behind a restart: two processes give what one gives."""

import json
import os
import subprocess
import sys

import program_of_classes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

EVENT = st.tuples(st.integers(0, 2), st.integers(1, 2), st.integers(0, 9), st.integers(0, 30))
BATCHES = st.lists(st.lists(EVENT, min_size=1, max_size=8), min_size=2, max_size=5)


def run(host, checkpoint, events, until):
    """A process with the program as its main file; what came out of it."""
    arguments = [host, str(checkpoint), str(events), str(until)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, program_of_classes.__file__, *arguments], env=environment, capture_output=True, check=False
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout.decode().splitlines()[-1])


def in_two_lives(host, place, batches, cut):
    events = place / "events"
    events.write_text(json.dumps(batches))
    return run(host, place / "two", events, cut) + run(host, place / "two", events, "end")


@settings(deadline=None, max_examples=6)
@given(st.sampled_from(["twin", "worker"]), BATCHES, st.data())
def test_elements_keys_windows_and_state_are_one_across_a_restart(tmp_path_factory, host, batches, data):
    place = tmp_path_factory.mktemp("two-lives")
    two = in_two_lives(host, place, batches, data.draw(st.integers(1, len(batches) - 1)))
    assert two == run("twin", place / "one", place / "events", "end")


ORDERS = [[[0, 1, 3, 2], [1, 2, 5, 3], [0, 2, 4, 4]], [[0, 1, 7, 5], [1, 2, 5, 6]], [[0, 1, 1, 25], [2, 2, 2, 12]]]


@pytest.mark.spark
def test_so_they_are_on_spark_whose_workers_have_another_main_file(tmp_path):
    two = in_two_lives("spark", tmp_path, ORDERS, 1)
    assert sorted(two) == sorted(run("twin", tmp_path / "one", tmp_path / "events", "end"))
