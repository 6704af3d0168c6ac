"""Partitions that Kafka does not have for a time, where that is no error."""

import time

import pytest

from eventide.common import SimpleStringSchema
from eventide.connectors.kafka._cluster import Cluster, KafkaTopic
from eventide.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from eventide.errors import StateError
from support.disks import damages, outcome

TWO = {"orders": KafkaTopic("the id", (0, 1)), "rides": KafkaTopic("another id", (0,))}
EARLIEST = KafkaOffsetsInitializer.earliest()
PARTS = ["orders-0", "orders-1", "rides-0"]


@pytest.fixture
def topics(monkeypatch):
    """The topics that Kafka has, which a test changes."""
    there = dict(TWO)
    monkeypatch.setattr(Cluster, "__init__", lambda self, settings: None)
    monkeypatch.setattr(Cluster, "close", lambda self: None)
    monkeypatch.setattr(Cluster, "topics", lambda self, subscription, known=(): dict(there))
    monkeypatch.setattr(Cluster, "beginning_offsets", lambda self, places: dict.fromkeys(places, 0))
    monkeypatch.setattr(Cluster, "end_offsets", lambda self, places: dict.fromkeys(places, 99))
    return there


def source(storage, starting=EARLIEST):
    built = (
        KafkaSource.builder()
        .set_bootstrap_servers("localhost:1")
        .set_topics("orders", "rides")
        .set_starting_offsets(starting)
        .set_value_only_deserializer(SimpleStringSchema())
        .set_property("partition.discovery.interval.ms", "1")
        .set_fail_on_data_loss(False)
        .build()
    )
    return built.for_job("orders", str(storage))


def parts(job, known):
    time.sleep(0.002)  # longer than the interval of discovery
    return job.parts(known)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_partition_that_comes_back_is_read_from_where_it_was(tmp_path, topics, restarts):
    job = source(tmp_path)
    assert parts(job, {}) == PARTS
    assert {part: one.start for part, one in job.beginnings(PARTS).items()} == dict.fromkeys(PARTS, 0)
    del topics["orders"]
    assert parts(job, {"orders-0": 7, "orders-1": 9, "rides-0": 1}) == ["rides-0"]
    if restarts:
        job = source(tmp_path)
        job.resume({"rides-0": "another id"})
    topics["orders"] = TWO["orders"]
    assert parts(job, {"rides-0": 2}) == PARTS
    assert {part: one.start for part, one in job.beginnings(PARTS[:2]).items()} == {"orders-0": 7, "orders-1": 9}


def test_one_of_a_topic_that_was_made_anew_begins_at_its_beginning(tmp_path, topics):
    job = source(tmp_path)
    parts(job, {})
    del topics["orders"]
    parts(job, {"orders-0": 7, "orders-1": 9, "rides-0": 1})
    job = source(tmp_path)
    job.resume({"rides-0": "another id"})
    topics["orders"] = KafkaTopic("a new id", (0, 1))
    assert parts(job, {"rides-0": 2}) == PARTS
    assert {part: one.start for part, one in job.beginnings(PARTS[:2]).items()} == {"orders-0": 0, "orders-1": 0}


def test_one_that_was_there_at_the_start_does_not_begin_at_the_latest_offset_again(tmp_path, topics):
    job = source(tmp_path, KafkaOffsetsInitializer.latest())
    parts(job, {})
    assert job.beginnings(["orders-0"])["orders-0"].start == 99
    del topics["orders"]
    parts(job, {"orders-0": 100, "orders-1": 99, "rides-0": 99})
    topics["orders"] = TWO["orders"]
    assert parts(job, {"rides-0": 99}) == PARTS
    assert job.beginnings(["orders-0"])["orders-0"].start == 100


def test_what_has_changed_in_the_record_of_partitions_is_an_error_that_names_the_file(tmp_path, topics, pytestconfig):
    """A partition of the start begins at its end, a later one at its beginning, and one that was gone where it was."""
    latest = KafkaOffsetsInitializer.latest()
    job = source(tmp_path, latest)
    parts(job, {})
    del topics["rides"]
    parts(job, {"orders-0": 99, "orders-1": 99, "rides-0": 7})
    topics.update(rides=TWO["rides"], orders=KafkaTopic("the id", (0, 1, 2)))

    def read():
        again = source(tmp_path, latest)
        found = again.parts({})
        return {part: one.start for part, one in again.beginnings(found).items()}

    expected = read()
    assert expected == {"orders-0": 99, "orders-1": 99, "orders-2": 0, "rides-0": 7}
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert [file.name for file in files] == ["first", "left-rides-0"]
    for file in files:
        content, refused = file.read_bytes(), 0
        for damaged in damages(content, pytestconfig):
            file.write_bytes(damaged)
            found, said = outcome(read, StateError)
            assert str(file) in said or found == expected, damaged
            refused += bool(said)
        file.write_bytes(content)
        assert refused >= 50
    assert read() == expected
