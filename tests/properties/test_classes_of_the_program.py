"""A program's own classes are the same before and after a restart: two processes give what one gives."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import program_of_classes

EVENT = st.tuples(st.integers(0, 2), st.integers(1, 2), st.integers(0, 9), st.integers(0, 30))
BATCHES = st.lists(st.lists(EVENT, min_size=1, max_size=8), min_size=2, max_size=5)


def run(host, checkpoint, events, until, bound=3):
    """A process with the program as its main file; the lines that it printed."""
    arguments = [host, str(checkpoint), str(events), str(until), str(bound)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, program_of_classes.__file__, *arguments], env=environment, capture_output=True, check=False
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout.decode().splitlines()[-1])


@pytest.mark.long
@settings(max_examples=6)
@given(st.sampled_from(["twin", "worker"]), BATCHES, st.data())
def test_elements_keys_windows_and_state_are_one_across_a_restart(tmp_path_factory, host, batches, data):
    place = tmp_path_factory.mktemp("lives")
    events = place / "events"
    events.write_text(json.dumps(batches))
    cut = data.draw(st.integers(1, len(batches) - 1))
    two = [line for until in (cut, "end") for line in run(host, place / "two", events, until)]
    assert two == run("twin", place / "one", events, "end")


def in_three_lives(host, place):
    """The results of each of three lives: the first waits for 40 seconds, the others for two.

    The highest time comes in the first, and only the generator of the second remembers it.
    """
    events = place / "events"
    events.write_text("[[[0, 1, 3, 5], [1, 2, 5, 12]], [[0, 1, 7, 11]], [[2, 2, 2, 25]]]")
    lives = [(1, 40), (2, 2), ("end", 2)]
    return [sorted(run(host, place / f"checkpoint of the {host}", events, *life)) for life in lives]


def test_a_generator_is_made_anew_with_the_bound_of_the_program_and_knows_what_it_learnt(tmp_path):
    lives = in_three_lives("worker", tmp_path)
    customer = "Customer(name='c0', place=Place(city='p0', zone=0))"
    order = f"Order(customer={customer}, colour=<Colour.RED: 1>, amount=3, second=5)"
    inside = "0 [('c0', 'RED', 3)] ['RED'] 0"
    assert lives[:2] == [[], [f"Colour.RED {inside}", f"{customer} {inside}", order]]
    assert lives[2]


@pytest.mark.spark
@pytest.mark.long
def test_so_it_is_on_spark_whose_workers_have_another_main_file(tmp_path):
    assert in_three_lives("spark", tmp_path) == in_three_lives("twin", tmp_path)
