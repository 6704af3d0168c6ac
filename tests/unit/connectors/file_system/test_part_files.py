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


def put_by_a_younger_run(folder):
    """Files of a run that took over: its micro-batch 7 is complete, and it writes the next one."""
    names = [prefix_of(7) + "00000", prefix_of(7) + "00001"]
    for name in names:
        put(folder, name, "younger")
    put(folder, f"{new_stage()}/written", "the younger one's next micro-batch")
    return names


def test_a_run_that_was_taken_over_in_its_first_micro_batch_changes_nothing_of_its_successor(folder):
    leftovers, older = folder.leftovers(7), new_stage()
    younger = put_by_a_younger_run(folder)
    put(folder, f"{older}/written", "older")
    with pytest.raises(FileExistsError, match="this run has not written part-00000007-00000"):
        folder.commit(7, older, {"written": ""}, leftovers)
    assert {name: content(folder, name) for name in folder.names()} == dict.fromkeys(younger, "younger")
    assert sorted(folder.names(stage) for stage in folder.folders()) == [["written"], ["written"]]


def test_a_run_that_has_nothing_to_write_when_it_resumes_deletes_nothing_of_its_successor(folder):
    put(folder, f"{(killed := new_stage())}/written", "half")
    leftovers = folder.leftovers(7)
    younger = put_by_a_younger_run(folder)
    folder.commit(7, new_stage(), {}, leftovers)
    assert folder.names() == younger
    assert killed not in folder.folders()
    assert [folder.names(stage) for stage in folder.folders()] == [["written"]]


def test_files_of_a_micro_batch_that_a_killed_run_began_are_replaced_or_deleted(folder):
    for number in range(3):
        put(folder, f"{prefix_of(7)}0000{number}", "killed")
    put(folder, f"{prefix_of(6)}00000", "committed")
    put(folder, f"{(killed := new_stage())}/written", "half")
    leftovers, stage = folder.leftovers(7), new_stage()
    put(folder, f"{stage}/written", "again")
    assert folder.commit(7, stage, {"written": ""}, leftovers) == 1
    assert {name: content(folder, name) for name in folder.names()} == {
        f"{prefix_of(6)}00000": "committed",
        f"{prefix_of(7)}00000": "again",
    }
    assert (folder.folders(), killed in leftovers.stages) == ([], True)


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
