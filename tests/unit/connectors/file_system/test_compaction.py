"""Part files that are put together: no row is lost, none comes twice, and a killed compaction is finished."""

import datetime
import gzip
import json
from contextlib import suppress
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.connectors.file_system.compaction import Compacted, Compaction
from eventide.connectors.file_system.sink import PartFiles
from eventide.errors import DataError, ProgramError, StateError
from support.disks import damages, outcome

LARGE = 1 << 30


def compaction(folder, target=LARGE, header=None):
    return Compaction(PartFiles.at(str(folder)), target, header)


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def lines(folder, batch, number, *texts, ending="json"):
    path = folder / f"part-{batch:08}-{number:05}.{ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def content(folder):
    return "".join((folder / name).read_text() for name in names(folder))


@pytest.fixture
def written(tmp_path):
    """Three micro-batches, of two tasks each."""
    for batch in range(3):
        for task in range(2):
            lines(tmp_path, batch, task, f"{batch}{task}a", f"{batch}{task}b")
    return tmp_path


def test_files_become_one_in_the_order_of_micro_batches_and_the_newest_stay(written):
    before = content(written)
    assert compaction(written).run() == Compacted(before=6, after=3)
    assert names(written) == ["part-00000000-00000.json", "part-00000002-00000.json", "part-00000002-00001.json"]
    assert content(written) == before
    assert compaction(written).run() == Compacted(before=3, after=3)


def test_a_file_that_is_large_enough_is_left_alone(written):
    lines(written, 1, 0, *range(100))
    assert compaction(written, target=20).run() == Compacted(before=6, after=5)
    assert names(written)[:3] == [
        "part-00000000-00000.json",
        "part-00000001-00000.json",
        "part-00000001-00001.json",
    ]


def test_each_folder_of_fields_has_its_own_and_hidden_folders_are_passed_over(tmp_path):
    for batch in range(3):
        lines(tmp_path / "day=1", batch, 0, f"one {batch}")
        lines(tmp_path / "day=2", batch, 0, f"two {batch}")
    lines(tmp_path / "_eventide-0a1b2c3d", 0, 0, "of a run at work")
    compaction(tmp_path).run()
    assert (tmp_path / "day=1" / "part-00000000-00000.json").read_text() == "one 0\none 1\n"
    assert len(names(tmp_path)) == 5


def killed(*args, **options):
    raise KeyboardInterrupt


@pytest.mark.parametrize("stops_at", ["move", "delete"])
def test_what_a_killed_compaction_has_begun_is_finished(written, monkeypatch, stops_at):
    before = content(written)

    with monkeypatch.context() as patched:
        patched.setattr(PartFiles, stops_at, killed)
        with pytest.raises(KeyboardInterrupt):
            compaction(written).run()
    assert compaction(written).run().after == 3
    assert content(written) == before
    assert not (written / "_compacting").exists()


@pytest.mark.parametrize("plan", [None, "", '["part-00000000-00000.json", "part-0000'])
def test_what_was_not_written_to_its_end_counts_for_nothing(written, plan):
    before = content(written)
    (written / "_compacting").mkdir()
    (written / "_compacting" / "merged").write_text("half a li")
    if plan is not None:
        (written / "_compacting" / "plan.json").write_text(plan)
    compaction(written).run()
    assert content(written) == before


def test_lines_of_names_stay_once(tmp_path):
    for batch in range(3):
        lines(tmp_path, batch, 0, "user,n", f"a,{batch}", ending="csv")
    with pytest.raises(ProgramError, match="--header or --no-header"):
        compaction(tmp_path).run()
    compaction(tmp_path, header=True).run()
    assert (tmp_path / "part-00000000-00000.csv").read_text() == "user,n\na,0\na,1\n"


def test_compressed_lines_are_appended(tmp_path):
    for batch in range(3):
        (tmp_path / f"part-{batch:08}-00000.json.gz").write_bytes(gzip.compress(f"{batch}\n".encode()))
    compaction(tmp_path).run()
    assert gzip.decompress((tmp_path / "part-00000000-00000.json.gz").read_bytes()) == b"0\n1\n"


def test_other_formats_are_refused_before_anything_is_changed(written):
    for batch in range(2):
        lines(written, batch, 9, "x", ending="snappy.orc")
    before = names(written)
    with pytest.raises(ProgramError, match="format whose files cannot be merged"):
        compaction(written).run()
    assert names(written) == before


@pytest.mark.parametrize("int96", [True, False])
def test_rows_of_parquet_keep_their_types(tmp_path, int96):
    at = datetime.datetime(2300, 1, 1, tzinfo=datetime.UTC)  # nanoseconds would not reach so far
    tables = [
        pa.table(
            {"n": pa.array([batch, None]), "at": pa.array([at, None], pa.timestamp("us", "UTC")), "all": [[1], []]}
        )
        for batch in range(3)
    ]
    for batch, table in enumerate(tables):
        path = tmp_path / f"part-{batch:08}-00000.snappy.parquet"
        pq.write_table(table, path, use_deprecated_int96_timestamps=int96)
    before = pq.ParquetFile(path).schema
    compaction(tmp_path).run()
    merged = pq.ParquetFile(tmp_path / "part-00000000-00000.snappy.parquet", coerce_int96_timestamp_unit="us")
    assert str(merged.schema) == str(before) or merged.schema.equals(before)
    assert merged.read().column("n").to_pylist() == [0, None, 1, None]
    assert [one and one.year for one in merged.read().column("at").to_pylist()] == [2300, None, 2300, None]


@pytest.mark.parametrize("as_integer", [True, False])
def test_decimals_stay_what_they_are_so_that_later_files_fit(tmp_path, as_integer):
    kinds = [pa.decimal128(digits, 2) for digits in (9, 18, 38)]
    row = pa.table([pa.array([Decimal("-1.10")], kind) for kind in kinds], names=["small", "medium", "large"])
    for batch in range(4):
        path = tmp_path / f"part-{batch:08}-00000.snappy.parquet"
        pq.write_table(row, path, store_decimal_as_integer=as_integer)
        compaction(tmp_path).run()
    merged = pq.ParquetFile(tmp_path / "part-00000000-00000.snappy.parquet")
    assert merged.schema.equals(pq.ParquetFile(path).schema)
    assert merged.read().to_pylist() == [dict.fromkeys(row.column_names, Decimal("-1.10"))] * 3


def test_other_columns_are_an_error_and_nothing_is_lost(tmp_path):
    for batch, name in enumerate("abc"):
        pq.write_table(pa.table({name: [batch]}), tmp_path / f"part-{batch:08}-00000.parquet")
    with pytest.raises(DataError, match=r"the columns of part-00000001-00000.parquet are not those of part-00000000"):
        compaction(tmp_path).run()
    assert len([name for name in names(tmp_path) if name.endswith(".parquet")]) == 3


def test_the_command_says_how_many_there_are_now(written):
    done = CliRunner().invoke(app, ["compact", str(written), "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {"directory": str(written), "before": 6, "after": 3}


@pytest.mark.parametrize("name", ["missing", "part-00000000-00000.json"])
def test_a_location_without_a_directory_is_refused(written, name):
    with pytest.raises(ProgramError, match=rf"there is no directory at .*{name}; give the one that a file sink"):
        compaction(written / name).run()


def test_a_plan_that_has_changed_is_not_carried_out(written, monkeypatch, pytestconfig):
    """Before the merged file is moved it counts for nothing; after that, files may be there twice, which is said."""
    before = content(written)
    for stops_at in ("move", "delete"):
        with monkeypatch.context() as patched:
            patched.setattr(PartFiles, stops_at, killed)
            with pytest.raises(KeyboardInterrupt):
                compaction(written).run()
        saved = {path: path.read_bytes() for path in written.rglob("*") if path.is_file()}
        plan = written / "_compacting" / "plan.json"
        for damaged in damages(saved[plan], pytestconfig, 20):
            plan.write_bytes(damaged)
            _, said = outcome(compaction(written).run, StateError)
            if said or stops_at == "delete":
                assert f"{plan} is not as it was written" in said
                assert stops_at == "delete"
            else:
                assert content(written) == before
            for path, kept in saved.items():
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(kept)
            for path in {*written.rglob("part-*")} - {*saved}:
                path.unlink()


@pytest.mark.parametrize("is_killed", [True, False])
def test_of_two_compactions_at_once_one_stops_and_no_row_is_lost(written, monkeypatch, is_killed):
    """The second one runs while the first has written its merged file, and not yet its plan."""
    merge_lines = Compaction._merge_lines

    def stalls(first, group, stream):
        merge_lines(first, group, stream)
        stream.flush()
        monkeypatch.setattr(Compaction, "_merge_lines", dies if is_killed else merge_lines)
        lines(written, 3, 0, "30a")  # the job goes on
        with suppress(KeyboardInterrupt):
            compaction(written).run()
        monkeypatch.setattr(Compaction, "_merge_lines", merge_lines)

    def dies(second, group, stream):
        stream.write(b"half a li")
        stream.flush()
        killed()

    monkeypatch.setattr(Compaction, "_merge_lines", stalls)
    expected = content(written) + "30a\n"
    with suppress(StateError):
        compaction(written).run()
    compaction(written).run()
    assert content(written) == expected
    assert not (written / "_compacting").exists()


def test_a_plan_whose_files_another_compaction_has_put_together_does_not_stop_the_next_one(written, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(PartFiles, "move", killed)
        with pytest.raises(KeyboardInterrupt):
            compaction(written).run()
    hidden = {path: path.read_bytes() for path in (written / "_compacting").iterdir()}
    compaction(written).run()
    lines(written, 3, 0, "30a")
    compaction(written).run()
    expected = content(written)
    (written / "_compacting").mkdir()
    for path, kept in hidden.items():
        path.write_bytes(kept)
    compaction(written).run()
    assert content(written) == expected
    assert not (written / "_compacting").exists()


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("n\r1\r2\r", "n\r3\r4\r", "has no line feed at its end"),
        ("n;1;2;", "n;3;4;", "has no line feed at its end"),
        ("n\n1\n", "3\n4\n", "is not that of"),
    ],
)
def test_csv_files_whose_headers_are_not_found_stay_as_they_are(tmp_path, first, second, said):
    for batch, text in enumerate((first, second, "n\n5\n")):
        lines(tmp_path, batch, 0, ending="csv").write_text(text, newline="")
    before = {path: path.read_bytes() for path in tmp_path.glob("part-*")}
    with pytest.raises(DataError, match=said):
        compaction(tmp_path, header=True).run()
    assert {path: path.read_bytes() for path in tmp_path.glob("part-*")} == before


def test_a_name_in_a_header_may_have_a_line_end(tmp_path):
    for batch in range(3):
        lines(tmp_path, batch, 0, '"a\nb",c', f"{batch},x", ending="csv")
    compaction(tmp_path, header=True).run()
    assert (tmp_path / "part-00000000-00000.csv").read_text() == '"a\nb",c\n0,x\n1,x\n'
