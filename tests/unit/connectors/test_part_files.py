"""The directory of a file sink, to which two runs of a job write where one was thought dead and is not."""

import shutil

import pytest
from pyarrow.fs import LocalFileSystem

from eventide.connectors.file_system.sink import PartFiles, new_stage, prefix_of


class RefusesToReplace(LocalFileSystem):
    """A local disk whose files are replaced by none, as HDFS has it; a test may do something before a move."""

    def __init__(self, root):
        super().__init__()
        self.root, self.before_move = root, {}

    def move(self, src, dest):
        self.before_move.pop(src.removeprefix(f"{self.root}/"), lambda: None)()
        if self.get_file_info(dest).is_file:
            raise OSError(f"{dest} is there")
        super().move(src, dest)


@pytest.fixture(params=[False, True], ids=["replaces", "refuses to replace"])
def folder(request, tmp_path):
    return PartFiles(RefusesToReplace(str(tmp_path)) if request.param else LocalFileSystem(), str(tmp_path))


def put(folder, name, content):
    folder.file_system.create_dir(f"{folder.path}/{name}".rpartition("/")[0])
    with folder.file_system.open_output_stream(f"{folder.path}/{name}") as stream:
        stream.write(content.encode())


def content(folder, name):
    with folder.file_system.open_input_stream(f"{folder.path}/{name}") as stream:
        return stream.read().decode()


def test_what_an_earlier_run_has_left_is_replaced(folder):
    put(folder, "part-7", "left")
    put(folder, "stage/written", "new")
    folder.move("stage/written", "part-7", may_replace=True)
    assert (content(folder, "part-7"), folder.names(), folder.names("stage")) == ("new", ["part-7"], [])


def test_a_run_whose_files_a_younger_one_has_deleted_leaves_those_of_the_younger_one(folder):
    put(folder, "older/written", "older")
    put(folder, "part-7", "younger")
    folder.delete_folder("older")
    with pytest.raises(FileNotFoundError, match="older/written has been deleted"):
        folder.move("older/written", "part-7", may_replace=True)
    assert (content(folder, "part-7"), folder.names()) == ("younger", ["part-7"])


def test_a_run_that_was_taken_over_in_its_first_micro_batch_deletes_nothing_of_its_successor(folder):
    younger = [prefix_of(7) + "00000", prefix_of(7) + "00001"]
    for name in younger:
        put(folder, name, "younger")
    put(folder, f"{new_stage()}/written", "the younger one's next micro-batch")
    with pytest.raises(FileNotFoundError, match="has been deleted"):
        folder.commit(7, new_stage(), {"written": ""}, after_another_run=True)
    assert folder.names() == younger
    assert [folder.names(stage) for stage in folder.folders()] == [["written"]]


def test_a_file_that_this_run_has_not_written_is_not_replaced_later_on(folder):
    put(folder, "older/written", "older")
    put(folder, "part-9", "younger")
    with pytest.raises(FileExistsError, match="this run has not written part-9"):
        folder.move("older/written", "part-9", may_replace=False)
    assert (content(folder, "part-9"), folder.names("older")) == ("younger", ["written"])


def test_a_file_that_cannot_be_replaced_is_put_back(tmp_path):
    store = RefusesToReplace(str(tmp_path))
    folder = PartFiles(store, str(tmp_path))
    put(folder, "older/written", "older")
    put(folder, "part-7", "younger")
    # The younger run deletes the older one's file after that one has looked, at the very last moment.
    store.before_move["part-7"] = (tmp_path / "older" / "written").unlink
    with pytest.raises(OSError, match="older/written"):
        folder.move("older/written", "part-7", may_replace=True)
    assert (content(folder, "part-7"), folder.names()) == ("younger", ["part-7"])


def test_where_the_folder_of_a_run_is_gone_nothing_is_moved_aside(tmp_path):
    store = RefusesToReplace(str(tmp_path))
    folder = PartFiles(store, str(tmp_path))
    put(folder, "older/written", "older")
    put(folder, "part-7", "younger")
    store.before_move["part-7"] = lambda: shutil.rmtree(tmp_path / "older")
    with pytest.raises(OSError, match="older"):
        folder.move("older/written", "part-7", may_replace=True)
    assert (content(folder, "part-7"), folder.names()) == ("younger", ["part-7"])
