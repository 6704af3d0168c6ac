"""Jars that a program brings along: what eventide has by itself is passed over, the rest is refused."""

import warnings

import pytest

from eventide.datastream._hints import is_needless
from eventide.errors import ProgramError
from eventide.testing import local_environment


@pytest.mark.parametrize(
    "jar",
    [
        "file:///opt/flink-sql-connector-kafka-3.1.0-1.18.jar",
        "file:///opt/flink/flink-connector-kafka-1.17.1.jar",
        "file:///opt/flink-sql-connector-kafka_2.12-1.14.4.jar",
        "flink-connector-kafka_2.11-1.11.2.jar",
        "flink-sql-connector-kafka_2.11-1.13.0.jar",
        "flink-connector-kafka-0.11_2.11-1.10.0.jar",
        "file:///C:/jars/kafka-clients-3.2.3.jar",
        "file:///jars/flink-sql-connector-kafka.jar",
        "flink-connector-base-1.15.2.jar",
        "flink-json-1.16.0.jar",
        "flink-csv-1.16.0.jar",
        "flink-avro-1.16.0.jar",
        "flink-sql-avro-1.16.0.jar",
        "flink-sql-avro-confluent-registry-1.16.0.jar",
        "flink-sql-parquet-1.16.0.jar",
        "flink-sql-orc-1.16.0-SNAPSHOT.jar",
        "flink-connector-files-1.16.0.jar",
        "/opt/flink/plugins/s3-fs-hadoop/flink-s3-fs-hadoop-2.3.0.jar",
        "flink-s3-fs-presto-1.17.1.jar",
    ],
)
def test_a_jar_of_what_eventide_has_is_needless(jar):
    assert is_needless(jar)


@pytest.mark.parametrize(
    "jar",
    [
        "flink-connector-jdbc-3.1.0-1.17.jar",
        "postgresql-42.6.0.jar",
        "flink-sql-connector-elasticsearch7-3.0.1-1.17.jar",
        "flink-connector-kafkaesque-1.0.jar",
        "my-functions.jar",
        "/opt/jars/",
    ],
)
def test_another_jar_is_refused(jar):
    assert not is_needless(jar)
    for add in (local_environment().add_jars, local_environment().add_classpaths):
        with pytest.raises(ProgramError, match="jars bring classes of Java to Flink"):
            add("file:///opt/flink-sql-connector-kafka-3.1.0-1.18.jar", jar)


@pytest.mark.parametrize("method", ["add_jars", "add_classpaths"])
def test_needless_jars_are_passed_over_with_one_warning(method):
    with pytest.warns(UserWarning, match="has no effect") as caught:
        getattr(local_environment(), method)(
            "file:///a/flink-connector-kafka-1.17.1.jar;file:///a/flink-json-1.17.1.jar"
        )
    assert [str(warning.message) for warning in caught] == [
        f"{method} of file:///a/flink-connector-kafka-1.17.1.jar, file:///a/flink-json-1.17.1.jar has no effect: "
        "eventide has these connectors and formats by itself, and needs no jars for them"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(local_environment(), method)()


def test_what_is_no_text_is_no_jar():
    with pytest.raises(ProgramError, match=r"add_jars takes the URLs of jars, not \[7\]"):
        local_environment().add_jars(7)
