"""`read_text_file` and `read_file`: which files are read, and what is refused."""

import pytest

from eventide.common import Duration, Types
from eventide.datastream import FilePathFilter, FileProcessingMode
from eventide.datastream.connectors.file_system import StreamFormat
from eventide.errors import ProgramError
from eventide.testing import local_environment

TEXT = StreamFormat.text_line_format()


class NoReports(FilePathFilter):
    def filter_path(self, file_path):
        return file_path.endswith(".report")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "below").mkdir()
    for name in ("a.txt", "b.report", "_hidden", "below/c.txt", "d._COPYING_"):
        (tmp_path / name).write_text(f"{name} 1\n{name} 2\n")
    return str(tmp_path)


def lines(stream):
    return sorted({line.split()[0] for line in stream.execute_and_collect()})


def test_lines_of_the_folder_itself_are_read(folder):
    assert lines(local_environment().read_file(TEXT, folder)) == ["a.txt", "b.report", "d._COPYING_"]


def test_text_that_is_still_being_copied_is_passed_over(folder):
    assert lines(local_environment().read_text_file(folder)) == ["a.txt", "b.report"]


def test_a_charset_is_that_of_the_file(tmp_path):
    (tmp_path / "a").write_bytes("süß".encode("latin-1"))
    assert list(local_environment().read_text_file(str(tmp_path), "latin-1").execute_and_collect()) == ["süß"]


@pytest.mark.parametrize("block", [1, 2, 1000])
@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16"])
def test_only_a_line_feed_ends_a_line_of_a_text_file_and_drops_one_carriage_return(
    tmp_path, monkeypatch, block, charset
):
    monkeypatch.setattr("eventide.connectors.file_system.format.BLOCK", block)
    file = tmp_path / "a.txt"
    for text, lines in (
        ("a\rb\r\nc\n\nd\r\r\n", ["a\rb", "c", "", "d\r"]),
        ("\r\n\ra\nb\r", ["", "\ra", "b"]),
        ("\n", [""]),
    ):
        file.write_bytes(text.encode(charset))
        assert list(local_environment().read_text_file(str(file), charset).execute_and_collect()) == lines


@pytest.mark.parametrize(
    ("path_filter", "expected"),
    [(FilePathFilter.create_default_filter(), ["a.txt", "b.report"]), (NoReports(), ["a.txt", "d._COPYING_"])],
)
def test_a_filter_says_what_to_pass_over(folder, path_filter, expected):
    once = FileProcessingMode.PROCESS_ONCE
    stream = local_environment().read_file(TEXT, folder, once, 100, path_filter, Types.STRING())
    assert lines(stream) == expected


def test_a_folder_that_is_watched_has_no_end(folder):
    stream = local_environment().read_file(TEXT, folder, FileProcessingMode.PROCESS_CONTINUOUSLY, 100)
    source = stream._transformation.source
    assert not source.is_bounded()
    assert source._settings.discovery_interval == Duration.of_millis(100)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((FileProcessingMode.PROCESS_CONTINUOUSLY,), "looks for new files after 1 ms or more, not -1"),
        (("once",), "needs a FileProcessingMode, not 'once'"),
        ((FileProcessingMode.PROCESS_ONCE, 1, lambda path: True), "needs a FilePathFilter, not <function"),
    ],
)
def test_other_arguments_are_refused(folder, arguments, said):
    with pytest.raises(ProgramError, match=said):
        local_environment().read_file(TEXT, folder, *arguments)
