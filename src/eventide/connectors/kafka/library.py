"""The client library, confluent-kafka, which the extra ``kafka`` brings, and the meaning of its errors.

It is loaded when a client is made.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from eventide.errors import DataError, EventideError, ProgramError, needing

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, TopicPartition

    from eventide.connectors.kafka._offsets import KafkaTopicPartition

_T = TypeVar("_T")

CLIENT_DEFAULTS = {
    "log_level": 0,  # errors are reported by the code that waits
    "reconnect.backoff.max.ms": 1_000,  # as the Java client has it; by default, a broker that is back waits for 10 s
}

GRACE_S = 5.0
"""How long a broker that has just started may answer "there is no such topic"."""

_PASSING = (
    "_TIMED_OUT _TIMED_OUT_QUEUE _TRANSPORT _ALL_BROKERS_DOWN _RESOLVE _WAIT_COORD _WAIT_CACHE _IN_PROGRESS "
    "REQUEST_TIMED_OUT LEADER_NOT_AVAILABLE NOT_LEADER_FOR_PARTITION BROKER_NOT_AVAILABLE REPLICA_NOT_AVAILABLE "
    "NETWORK_EXCEPTION COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR KAFKA_STORAGE_ERROR "
    "OFFSET_NOT_AVAILABLE UNKNOWN_LEADER_EPOCH FENCED_LEADER_EPOCH UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID"
)
_ABSENT = "_NOENT UNKNOWN_TOPIC_OR_PART _UNKNOWN_TOPIC _UNKNOWN_PARTITION"
_REFUSED = (
    "_AUTHENTICATION SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE _SSL "
    "TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED "
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
)


def library(part: str = "") -> Any:
    """The module confluent_kafka, or a part of it, such as ``admin``.

    Raises:
        ProgramError: if it is not installed where this runs.
    """
    with needing("confluent-kafka", "Kafka", "kafka"):
        return import_module(f"confluent_kafka.{part}" if part else "confluent_kafka")


def client(make: Callable[[dict[str, Any]], _T], properties: dict[str, Any]) -> _T:
    """A client of the library, made with some properties.

    Raises:
        ProgramError: if there is no such property, or its value is invalid.
    """
    try:
        return make(properties)
    except (library().KafkaException, TypeError, ValueError) as error:
        raise ProgramError(
            f"a property of Kafka is wrong: {said(error)}. Properties are those of librdkafka, or of the Java "
            "client where they have the same meaning"
        ) from error


def said(error: KafkaError | Exception) -> str:
    """Return the text of an error of the library, or of an exception around one."""
    inner = error.args[0] if isinstance(error, Exception) and error.args else error
    return str(inner.str()) if hasattr(inner, "str") else str(inner)


def place(partition: KafkaTopicPartition, *offset: int) -> TopicPartition:
    """A partition in the library's form, or an offset in it."""
    found: TopicPartition = library().TopicPartition(partition.topic, partition.partition, *offset)
    return found


class NotThere(DataError):
    """A topic or partition is missing, for longer than a broker takes to start."""


class Meaning(Enum):
    """Kind of error, by its treatment."""

    WAIT = "it passes"
    ABSENT = "a topic or partition is not there"
    REFUSED = "the client is refused, or not allowed to"
    BAD = "nothing helps"


def meaning_of(error: KafkaError) -> Meaning:
    """Return the kind of an error of the library."""
    return _by_code().get(error.code()) or (Meaning.WAIT if error.retriable() else Meaning.BAD)


class Complaints:
    """Errors that a client reports outside of a request: that it is refused, or that no broker answers.

    Its :meth:`hear` is the client's ``error_cb``.
    """

    _FAILED_HANDSHAKES = 3

    def __init__(self) -> None:
        self.last = ""
        self._refused: str | None = None
        self._handshakes = 0

    def hear(self, error: KafkaError) -> None:
        """Take note of an error."""
        self.last = said(error)
        if meaning_of(error) is Meaning.REFUSED:
            self._handshakes += 1  # one handshake may fail because its broker stops
            is_handshake = error.code() == library().KafkaError._SSL
            if not is_handshake or self._handshakes >= self._FAILED_HANDSHAKES:
                self._refused = self.last

    def forget(self) -> None:
        """Forget earlier errors, because there was an answer."""
        self.last, self._refused, self._handshakes = "", None, 0

    def check(self, servers: str) -> None:
        """Return if the client was not refused.

        Raises:
            ProgramError: if a client was refused.
        """
        if self._refused is not None:
            raise refused(servers, self._refused)


class Patience:
    """The time to wait for an answer, which starts again after each answer.

    Args:
        servers: the servers.
        patience_s: the patience in seconds.
        complaints: the errors that the client has reported.
    """

    def __init__(self, servers: str, patience_s: float, complaints: Complaints) -> None:
        self._servers = servers
        self._patience_s = patience_s
        self._complaints = complaints
        self.began = time.monotonic()

    @property
    def waited(self) -> float:
        """The seconds since the last answer."""
        return time.monotonic() - self.began

    def renew(self) -> None:
        """Take note of an answer."""
        self.began = time.monotonic()
        self._complaints.forget()

    def answer_to(self, ask: Callable[[], _T], what: str, rest: Callable[[KafkaError], object]) -> _T:
        """Repeat a request until there is an answer.

        Args:
            ask: makes the request once; a ``KafkaException`` means that there is no answer yet.
            what: the name of the request, for messages.
            rest: is called with the error between two attempts: it processes reported errors, and waits a moment.

        Raises:
            ProgramError: if Kafka refuses the client.
            DataError: if patience is over, or the error is permanent.
        """
        while True:
            try:
                answer = ask()
            except library().KafkaException as error:
                rest(error.args[0])
                self.check_error(what, error.args[0])
            else:
                self.renew()
                return answer

    def check_complaints(self) -> None:
        """Check that Kafka does not refuse the client.

        Raises:
            ProgramError: if it does.
        """
        self._complaints.check(self._servers)

    def check(self, what: str, error: str = "") -> None:
        """Check that there is patience left.

        Raises:
            ProgramError: if Kafka refuses the client.
            DataError: if it is over.
        """
        self.check_complaints()
        if self.waited >= self._patience_s:
            why = self._complaints.last or error or "no broker said why"
            raise DataError(
                f"Kafka at {self._servers} gave no answer for {self.waited:.0f} s, when asked for {what}: {why}. "
                "The property default.api.timeout.ms says how long to wait"
            )

    def check_error(self, what: str, error: KafkaError) -> None:
        """Check that an error is temporary, or a topic may appear soon, and that there is patience left.

        Raises:
            ProgramError: if Kafka refuses the client.
            DataError: if it is over, or the error is permanent.
        """
        match meaning_of(error):
            case Meaning.WAIT:
                self.check(what, said(error))
            case Meaning.REFUSED:
                raise refused(self._servers, said(error))
            case Meaning.ABSENT:
                self.check_complaints()
                if self.waited >= GRACE_S:
                    raise NotThere(f"Kafka at {self._servers} does not have {what}: {said(error)}")
            case Meaning.BAD:
                raise DataError(f"Kafka at {self._servers} refused the request for {what}: {said(error)}")


def refused(servers: str, why: str) -> EventideError:
    """Return the error for a client that Kafka refuses."""
    return ProgramError(
        f"Kafka at {servers} refuses this client: {why}. Look at security.protocol, sasl.mechanism, sasl.username, "
        "sasl.password and ssl.ca.location, and at what the user is allowed to"
    )


@cache
def _by_code() -> dict[int, Meaning]:
    codes = library().KafkaError
    names = {Meaning.WAIT: _PASSING, Meaning.ABSENT: _ABSENT, Meaning.REFUSED: _REFUSED}
    return {
        getattr(codes, name): meaning
        for meaning, text in names.items()
        for name in text.split()
        if hasattr(codes, name)
    }
