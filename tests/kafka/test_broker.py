"""The broker for tests: it keeps what it is given through its own death, and leaves no files or processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from eventide.errors import EventideError, ProgramError
from eventide.testing import KafkaBroker
from eventide.testing.kafka_broker import kafka_jars
from support.kafka_topics import QUIET, new_topic, produce, values

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("end", [KafkaBroker.kill, KafkaBroker.stop])
def test_what_was_written_is_there_when_the_broker_comes_back(broker: KafkaBroker, end) -> None:
    servers = broker.bootstrap_servers
    topic = new_topic(broker, partitions=2)
    produce(broker, topic, [{"value": b"%d" % n, "partition": n % 2} for n in range(4)])
    assert values(broker, topic) == [b"0", b"2", b"1", b"3"]
    end(broker)
    assert not broker.is_running
    broker.start()
    assert broker.bootstrap_servers == servers
    assert values(broker, topic) == [b"0", b"2", b"1", b"3"]
    produce(broker, topic, [{"value": b"4", "partition": 0}])
    assert values(broker, topic) == [b"0", b"2", b"4", b"1", b"3"]


def test_a_record_of_long_ago_stays(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [{"value": b"old", "timestamp": 1_000}])
    assert values(broker, topic) == [b"old"]


def test_a_deleted_topic_can_be_made_anew_and_is_empty(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [b"before"])
    broker.delete_topic(topic)
    broker.create_topic(topic)
    assert values(broker, topic) == []


@pytest.mark.usefixtures("broker")  # its jars
def test_users_log_in_on_a_listener_of_their_own_and_settings_are_taken() -> None:
    with KafkaBroker({"num.partitions": "7"}, users={"ada": 'a "word" of \\ hers'}) as broker:

        def client(password: str) -> AdminClient:
            login = {"sasl.mechanism": "PLAIN", "sasl.username": "ada", "sasl.password": password}
            servers = {"bootstrap.servers": broker.sasl_bootstrap_servers, "security.protocol": "SASL_PLAINTEXT"}
            return AdminClient({**servers, **login, **QUIET})

        broker.create_topic("hers", partitions=-1)
        known = client('a "word" of \\ hers').list_topics(timeout=30).topics
        assert len(known["hers"].partitions) == 7
        with pytest.raises(KafkaException):
            client("guessed").list_topics(timeout=2)


def test_addresses_are_those_of_a_running_broker() -> None:
    with pytest.raises(ProgramError, match="knows no users"):
        _ = KafkaBroker().sasl_bootstrap_servers
    with pytest.raises(ProgramError, match="has not been started"):
        _ = KafkaBroker().bootstrap_servers


@pytest.mark.usefixtures("broker")  # its jars
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("authorizer.class.name", r"does not start(?s:.*)no\.such\.one"),
        ("group.consumer.assignors", r"not be laid out(?s:.*)no\.such\.one"),
    ],
)
def test_a_broker_that_cannot_start_says_why_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str, said: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with (
        pytest.raises(EventideError, match=said),
        KafkaBroker({setting: "no.such.one"}),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


_STARTS_AND_DIES = """
import os, signal
from eventide.testing import KafkaBroker
broker = KafkaBroker()
broker.start()
print(broker._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.long
@pytest.mark.usefixtures("broker")  # its jars
def test_nothing_is_left_of_the_broker_of_a_process_that_was_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    died = subprocess.run([sys.executable, "-c", _STARTS_AND_DIES], env=environment, capture_output=True, check=False)
    process = int(died.stdout)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and (_lives(process) or list(tmp_path.glob("eventide-kafka-*"))):
        time.sleep(0.05)
    assert not _lives(process)
    assert not list(tmp_path.glob("eventide-kafka-*"))


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_jars_that_cannot_be_fetched_are_told_of_and_leave_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", (tmp_path / "no repository").as_uri())
    with pytest.raises(ProgramError, match=r"could not be fetched(?s:.*)kafka_2\.13"):
        kafka_jars()
    assert list((tmp_path / "eventide").iterdir()) == []
