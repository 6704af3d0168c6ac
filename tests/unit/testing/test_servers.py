"""Servers of tests end with the folder of their data."""

import gc
import signal

from eventide.testing.servers import ServerFolder


def test_the_servers_of_a_folder_that_is_forgotten_end_and_nothing_is_left():
    folder = ServerFolder("eventide-forgotten-")
    server, path = folder.start("sleeper", "sleep", "600"), folder.path
    del folder
    gc.collect()
    assert server.wait(30) == -signal.SIGKILL
    assert not path.exists()
