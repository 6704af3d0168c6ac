"""S3 that fails at each of the calls that are made: tried again within bounds, else an error that names the file.

In each case nothing is lost, and nothing is there twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from eventide.common import Duration, Types, WatermarkStrategy
from eventide.connectors.file_system.sink import PartFiles
from eventide.datastream.connectors import FileSource
from eventide.datastream.connectors.file_system import StreamFormat
from eventide.errors import DataError, StateError, StorageError
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.spark.checkpoint.owner import Ownership
from eventide.storage import Folder, opened, opened_store
from eventide.testing import local_environment
from eventide.testing.servers import HOST
from support.disks import outcome
from support.stores.s3_server import s3_server, variables
from support.stores.unreliable import Fault, Unreliable, unreliable
from support.twin import plan_of

pytestmark = [pytest.mark.spark, pytest.mark.store]  # they take minutes, though they need no Spark

AT_ONE_CALL = [Fault.INTERNAL_ERROR, Fault.SLOW_DOWN, Fault.UNREACHED, Fault.REPLY_LOST]
PLACE = "s3a://bucket"


@pytest.fixture(scope="module")
def faults() -> Iterator[Unreliable]:
    """The proxy before a server, which Arrow in this process takes for S3."""
    with s3_server() as store, pytest.MonkeyPatch.context() as patch:
        port = urlsplit(store.variables["AWS_ENDPOINT_URL"]).port
        assert port is not None
        with unreliable(port) as (proxy, its_port):
            for name, value in variables(f"http://{HOST}:{its_port}").items():
                patch.setenv(name, value)
            opened_store.cache_clear()  # of a server before this one
            file_system, bucket = opened("s3://bucket?allow_bucket_creation=true")
            file_system.create_dir(bucket)
            yield proxy
    opened_store.cache_clear()


@pytest.fixture(autouse=True)
def reliable_again(faults: Unreliable, injected: Counter[str]) -> Iterator[None]:
    before = faults.failed
    yield
    faults.begin()
    injected["calls to S3 failed"] += faults.failed - before


def calls_of(faults: Unreliable, do: Callable[[], object]) -> int:
    """How many calls something makes that goes well."""
    faults.begin()
    do()
    return len(faults.calls)


def only(number: int, fault: Fault) -> Callable[[int], Fault | None]:
    return lambda call: fault if call == number else None


def from_then_on(number: int, fault: Fault) -> Callable[[int], Fault | None]:
    return lambda call: fault if call >= number else None


@pytest.mark.parametrize("fault", AT_ONE_CALL)
def test_one_failure_at_any_call_of_a_write_is_not_noticed(faults: Unreliable, fault: Fault) -> None:
    place = f"{PLACE}/once-{fault.name}"
    count = calls_of(faults, lambda: Folder(f"{place}/0").write("file", b"old"))
    assert count >= 4
    for number in range(count):
        folder = Folder(f"{place}/{number}")
        faults.begin(only(number, fault))
        folder.write("file", b"new")
        assert len(faults.calls) > number, "the fault has happened"
        faults.begin()
        assert (folder.names(), folder.read("file", bytes), folder.unfinished()) == (["file"], b"new", [])


def test_a_reply_that_does_not_come_at_any_call_of_a_write_is_asked_for_again(faults: Unreliable) -> None:
    """Arrow waits some seconds for it."""
    folder = Folder(f"{PLACE}/slow")
    folder.write("file", b"older")
    count = calls_of(faults, lambda: folder.write("file", b"old"))
    assert count >= 3
    for number in range(count):
        new = f"new {number}".encode()
        faults.begin(only(number, Fault.SLOW))
        folder.write("file", new)
        assert len(faults.calls) > count
        faults.begin()
        assert (folder.names(), folder.read("file", bytes), folder.unfinished()) == (["file"], new, [])


def test_a_store_that_does_not_come_back_is_an_error_with_the_files_name(faults: Unreliable) -> None:
    """Arrow tries again for six seconds."""
    folder = Folder(f"{PLACE}/away")
    folder.write("file", b"old")
    faults.begin(lambda _: Fault.SLOW_DOWN)
    with pytest.raises(StorageError, match=r"^bucket/away/file cannot be written: .*SLOW_DOWN.*start the job again"):
        folder.write("file", b"new")
    assert 3 < len(faults.calls) < 200, "it is tried again, and not for ever"
    faults.begin()
    assert folder.read("file", bytes) == b"old"


def test_a_store_that_takes_no_more_at_any_call_is_such_an_error_and_what_was_there_stays(faults: Unreliable) -> None:
    count = calls_of(faults, lambda: Folder(f"{PLACE}/denied/first").write("file", b"old"))
    for number in range(count):
        folder = Folder(f"{PLACE}/denied/{number}")
        folder.write("file", b"old")
        faults.begin(from_then_on(number, Fault.DENIED))
        _, said = outcome(lambda folder=folder: folder.write("file", b"new"), StorageError)
        faults.begin()
        assert not said or said.startswith(f"bucket/denied/{number}/file cannot be written: ")
        assert folder.read("file", bytes) in ([b"old", b"new"] if said else [b"new"])
        folder.write("file", b"again")
        assert (folder.names(), folder.read("file", bytes)) == (["file"], b"again")


@pytest.mark.parametrize("fault", [*AT_ONE_CALL, None], ids=lambda fault: getattr(fault, "name", "for good"))
def test_files_of_a_micro_batch_are_there_once_whatever_fails_when_they_become_visible(
    faults: Unreliable, fault: Fault | None
) -> None:
    """A micro-batch that fails is run again: it writes its files again, and makes them visible again."""
    place = f"{PLACE}/parts-{fault.name if fault else 'good'}"

    def staged(location: str, stage: str, begun: int | None = None) -> Callable[[], int]:
        parts = PartFiles.at(location)
        leftovers = parts.leftovers(begun)
        parts.file_system.create_dir(f"{parts.path}/{stage}", recursive=True)
        for name in ("a", "b"):
            with parts.file_system.open_output_stream(f"{parts.path}/{stage}/{name}.txt") as file:
                file.write(name.encode())
        return lambda: parts.commit(0, stage, {"a.txt": ".txt", "b.txt": ".txt"}, leftovers)

    commit = staged(f"{place}/first", "_eventide-first")
    count = calls_of(faults, commit)
    assert count > 4
    for number in range(count):
        location = f"{place}/{number}"
        commit = staged(location, "_eventide-first")
        faults.begin(only(number, fault) if fault else from_then_on(number, Fault.DENIED))
        _, said = outcome(commit, OSError)
        assert bool(said) == (fault is None), said
        faults.begin()
        if said:
            assert f"parts-good/{number}" in said
            staged(location, "_eventide-second", begun=0)()
        parts = PartFiles.at(location)
        contents = [parts.file_system.open_input_stream(f"{parts.path}/{name}").read() for name in parts.names()]
        assert (contents, parts.folders()) == ([b"a", b"b"], [])


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.UNREACHED, Fault.REPLY_LOST, Fault.LISTING_LAGS])
def test_files_are_read_once_whatever_fails_when_they_are_found_and_read(faults: Unreliable, fault: Fault) -> None:
    """Where Arrow does not try again, the error names the file, and the job reads it when it is started again."""
    place = f"{PLACE}/read-{fault.name}"
    file_system, path = opened(place)

    def put(name: str) -> None:
        with file_system.open_output_stream(f"{path}/{name}.txt") as file:
            file.write(name.encode())

    put("first")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), place)
    source = source.monitor_continuously(Duration.of_millis(1)).build()
    lines = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "files").map(str, Types.STRING())
    checkpoint, plan = LocalCheckpoint(), plan_of(lines)

    given: list[str] = []

    def read() -> None:
        for batch in LocalRunner(plan, clock=lambda: 0, checkpoint=checkpoint, available_now=True).batches():
            given.extend(value for value, _ in batch.elements.get(plan.sinks[0].number, []))

    for number in range(6):
        put(str(number))
        faults.begin(lambda call, number=number: fault if call % 6 == number else None)
        _, said = outcome(read, DataError)
        assert not said or f"read-{fault.name}/" in said
    faults.begin()
    read()
    assert sorted(given) == ["0", "1", "2", "3", "4", "5", "first"]


def test_a_run_that_cannot_ask_whether_it_owns_the_checkpoint_goes_on_and_asks_again(faults: Unreliable) -> None:
    older, younger = (Ownership(f"{PLACE}/owned", run) for run in ("older", "younger"))
    older.claim()
    faults.begin(lambda _: Fault.DENIED)
    with pytest.raises(OSError, match="owned"):
        older.check()
    faults.begin()
    older.check()
    younger.claim()
    with pytest.raises(StateError, match="another run of this job has begun"):
        older.check()
    younger.check()


def test_a_run_owns_the_checkpoint_that_it_has_claimed_also_where_listings_lag(faults: Unreliable) -> None:
    older, younger = (Ownership(f"{PLACE}/lagging", run) for run in ("older", "younger"))
    Folder(f"{PLACE}/lagging/eventide-owner").names()
    older.claim()
    faults.begin(lambda _: Fault.LISTING_LAGS)
    older.check()
    younger.claim()
    younger.check()
    with pytest.raises(StateError, match="another run of this job has begun"):
        older.check()
