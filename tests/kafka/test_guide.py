"""The pages of the guide that need a broker, which they start themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.testing import KafkaBroker
from support.guide_pages import GUIDE, run_page

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("name", ["kafka-source.md"])
def test_a_page_with_a_broker(
    name: str,
    broker: KafkaBroker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The page starts a broker of its own; that of the tests skips the test where there is none."""
    assert broker.is_running
    run_page(GUIDE / name, tmp_path, monkeypatch, capsys)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("broker", "spark")
@pytest.mark.parametrize("name", ["kafka-sink.md", "kafka.md"])
def test_a_page_with_a_broker_and_spark(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_page(GUIDE / name, tmp_path, monkeypatch, capsys)
