"""Modules that travel as sources: imported as any other, and swapped for those of the next program."""

from __future__ import annotations

import importlib
import pickle
import sys
import traceback
from collections.abc import Iterator

import pytest

from eventide.runtime.pickles import NO_MODULES, Modules, bring_modules, dumps_program, loads_program

TRIPS = Modules(
    {
        "trips_of_test/__init__.py": "from trips_of_test.fares import fare",
        "trips_of_test/fares.py": "from . import cities\n\ndef fare(city):\n    return cities.FARES[city]\n",
        "trips_of_test/cities.py": "FARES = {'Bergen': 5}\n",
    }
)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Each test begins and ends without modules of a program."""
    yield
    bring_modules(NO_MODULES)
    assert not [name for name in sys.modules if name.startswith("trips_of_test")]


def test_packages_are_imported_with_what_is_in_them():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("trips_of_test")
    bring_modules(TRIPS)
    trips = importlib.import_module("trips_of_test")
    assert trips.fare("Bergen") == 5


def test_a_traceback_shows_the_line():
    bring_modules(TRIPS)
    trips = importlib.import_module("trips_of_test")
    with pytest.raises(KeyError) as caught:
        trips.fare("Oslo")
    assert "return cities.FARES[city]" in "".join(traceback.format_exception(caught.value))


def test_the_next_program_has_its_own_and_the_one_before_gets_its_own_back():
    dearer = Modules({**TRIPS.sources, "trips_of_test/cities.py": "FARES = {'Bergen': 7}\n"})
    for modules, fare in [(TRIPS, 5), (dearer, 7), (TRIPS, 5)]:
        bring_modules(modules)
        assert importlib.import_module("trips_of_test").fare("Bergen") == fare
    bring_modules(NO_MODULES)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("trips_of_test")


def test_the_same_modules_are_imported_once():
    bring_modules(TRIPS)
    trips = importlib.import_module("trips_of_test")
    bring_modules(pickle.loads(pickle.dumps(TRIPS)))
    assert importlib.import_module("trips_of_test") is trips


def test_modules_are_there_before_what_refers_to_them_is_made():
    bring_modules(TRIPS)
    fare = importlib.import_module("trips_of_test").fare
    payload = dumps_program(fare, "a function", modules=TRIPS)
    bring_modules(NO_MODULES)
    assert loads_program(payload).part("Bergen") == 5


def test_packages_need_no_file_of_their_own() -> None:
    bring_modules(Modules({"deep_trips/city/fares.py": "PRICE = 3\n"}))
    assert importlib.import_module("deep_trips.city.fares").PRICE == 3
    bring_modules(Modules({"deep_trips/other.py": ""}))
    assert importlib.import_module("deep_trips.other")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("deep_trips.city.fares")
