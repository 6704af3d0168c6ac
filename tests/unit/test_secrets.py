"""Passwords that a program gives are in no name, message, dead letter, description or repr."""

import json

import pyarrow.fs
import pytest
import typer

from eventide._secrets import without_secrets
from eventide.cli.answers import answer
from eventide.common import Duration, Encoder, WatermarkStrategy
from eventide.common.job import FinishedJob, JobExecutionResult, JobID
from eventide.common.serialization import SimpleStringSchema
from eventide.connectors.file_system import files
from eventide.dashboard.watched import WatchedJob
from eventide.datastream.checkpoint_storage import FileSystemCheckpointStorage
from eventide.datastream.connectors import FormatSink
from eventide.datastream.connectors.file_system import FileSink, FileSource
from eventide.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from eventide.datastream.formats.avro_confluent import ConfluentRegistryAvroDeserializationSchema
from eventide.errors import DataError, ProgramError
from eventide.plan.description import describe, explain
from eventide.runtime.chain.outputs import dead_letter
from eventide.testing import local_environment

SECRET = "hunter2"
LOGIN = f"s3://AKIA:{SECRET}@bucket/in"
SASL = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "wren",
    "sasl.password": SECRET,
    "ssl.key.password": SECRET,
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (LOGIN, "s3://bucket/in"),
        (f"s3a://AKIA:ab/{SECRET}@bucket/in", "s3a://bucket/in"),
        (f"[S3://AKIA:{SECRET}@bucket/a], ('http://me:{SECRET}@there')", "[S3://bucket/a], ('http://there')"),
        (f"http://me:a@{SECRET}@there:80/in", "http://there:80/in"),
        (f"amqp://me:{SECRET}@one,you:{SECRET}@other", "amqp://other"),
        ("hdfs://name:8020/a@b:c", "hdfs://name:8020/a@b:c"),
        ("abfss://container@account/in", "abfss://container@account/in"),
        ("at 12:30 me@example.org", "at 12:30 me@example.org"),
    ],
)
def test_uris_lose_name_and_password_and_nothing_else(text, shown):
    assert without_secrets(text) == shown


def kafka():
    source = KafkaSource.builder().set_bootstrap_servers("b:9092").set_topics("t").set_properties(SASL)
    return source.set_value_only_deserializer(SimpleStringSchema()).build()


def kafka_sink():
    serializer = KafkaRecordSerializationSchema.builder().set_topic("t")
    serializer = serializer.set_value_serialization_schema(SimpleStringSchema()).build()
    sink = KafkaSink.builder().set_bootstrap_servers("b:9092").set_record_serializer(serializer)
    for name, value in SASL.items():
        sink.set_property(name, value)
    return sink.build()


AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A store that takes a login, in place of one of Amazon's."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\n")

    def opened(location):
        assert SECRET in location
        return pyarrow.fs.LocalFileSystem(), str(tmp_path / "in")

    monkeypatch.setattr(files, "opened", opened)


@pytest.mark.usefixtures("stored")
def test_no_repr_has_a_password():
    source = kafka()
    registry = ConfluentRegistryAvroDeserializationSchema.for_generic(
        AVRO, f"http://me:{SECRET}@registry:8081", {"basic.auth.user.info": f"me:{SECRET}"}
    )
    shown = [source, source._settings, kafka_sink(), registry, FileSource.text(LOGIN).build()]
    assert [repr(one) for one in shown if SECRET in repr(one)] == []


@pytest.mark.usefixtures("stored")
def test_no_description_and_no_explanation_has_a_password():
    env = local_environment()
    sink = FileSink.for_row_format(LOGIN, Encoder.simple_string_encoder()).build()
    files = FileSource.text(LOGIN).build()
    env.from_source(files, WatermarkStrategy.no_watermarks(), "in").sink_to(kafka_sink())
    env.from_collection(["a"]).map(str).sink_to(sink)
    plan = env.get_plan()
    assert SECRET not in explain(plan)
    assert SECRET not in json.dumps(describe(plan))
    assert SECRET not in env.get_execution_plan()


def test_no_error_and_no_dead_letter_has_a_password():
    for kind in (ProgramError, DataError):
        error = kind(f"Arrow cannot open {LOGIN!r}")
        assert (str(error), SECRET in repr(error)) == ("Arrow cannot open 's3://bucket/in'", False)
    assert dead_letter("parse", "reading", ValueError(f"no {LOGIN}"), element="x").error == "no s3://bucket/in"


@pytest.mark.usefixtures("stored")
def test_splits_of_a_location_with_a_login_have_names_without():
    source = FileSource.text(LOGIN).build()
    [part] = source.parts({})
    assert part == "s3://bucket/in/a.txt"
    assert source.latest_position(part) == 2


@pytest.mark.usefixtures("stored")
def test_a_checkpoint_that_has_names_with_passwords_goes_on_under_them():
    source = FileSource.text(LOGIN).monitor_continuously(Duration.of_seconds(1)).build()
    old = f"{LOGIN}/a.txt"
    assert source.parts({old: None}) == [old]
    assert source.latest_position(old) == 2


def test_no_page_and_no_answer_of_the_command_line_has_a_password(capsys):
    class Fails(FinishedJob):
        def why(self, operator=None, at=None, key=None):
            raise OSError(f"no {LOGIN}")

    job = WatchedJob(1, "in", Fails(JobExecutionResult(JobID("the id"), 5), []), {})
    assert job.why("in") == "The reason could not be determined: no s3://bucket/in"
    with pytest.raises(typer.Exit):
        answer({"location": LOGIN}, "", as_json=True)
    assert json.loads(capsys.readouterr().out) == {"location": "s3://bucket/in"}


def test_options_of_a_spark_format_are_named_without_their_values():
    options = {"kafka.bootstrap.servers": "b:9092", "kafka.sasl.jaas.config": f'PlainLoginModule password="{SECRET}";'}
    env = local_environment()
    env.from_collection(["a"]).sink_to(FormatSink("kafka", options))
    plan = env.get_plan()
    assert SECRET not in explain(plan) + json.dumps(describe(plan))
    with pytest.raises(ProgramError, match=r"'kafka.sasl.jaas.config': \.\.\.") as failed:
        env.execute()
    assert SECRET not in str(failed.value)
    assert repr(FormatSink("csv", {"path": LOGIN})) == (
        "FormatSink(format='csv', options={'path': 's3://bucket/in'}, partition_by=())"
    )


def test_what_is_not_built_yet_is_refused_without_its_passwords():
    env, strategy = local_environment(), WatermarkStrategy.no_watermarks()
    builder = KafkaSource.builder().set_topics("t").set_properties(SASL)
    for given in (builder, FileSource.text(LOGIN)):
        with pytest.raises(ProgramError, match=r"; call its build\(\)$") as failed:
            env.from_source(given, strategy, "in")
        assert SECRET not in str(failed.value) + repr(given)
    sink = FileSink.for_row_format(LOGIN, Encoder.simple_string_encoder())
    storage = FileSystemCheckpointStorage(LOGIN)
    assert [repr(one) for one in (sink, sink.build(), storage) if SECRET in repr(one)] == []
