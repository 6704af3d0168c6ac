"""One broker for all tests that need one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from eventide.errors import ProgramError
from eventide.testing import KafkaBroker
from eventide.testing._kafka_jars import kafka_jars


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """A running broker; whoever kills it starts it again. Without one a build server must not pass."""
    try:
        jars = kafka_jars()
    except ProgramError as error:
        if os.environ.get("CI"):
            pytest.fail(f"the build server must have a Kafka broker: {error}", pytrace=False)
        pytest.skip(f"no Kafka broker can be had here: {str(error).partition(': they are needed')[0]}")
    with KafkaBroker(jars=jars) as running:
        yield running
