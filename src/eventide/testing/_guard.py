"""A process that outlives the one that started it, by as long as it takes to end what that one has left behind.

    python _guard.py FOLDER

On its standard input come lines with the ids of the processes to end, or an empty line for none; at the end of the
input, which comes however the other process ends, those of the last line are killed and the folder deleted. Standard
library alone: it is run as a file.
"""

import os
import shutil
import signal
import sys
import time


def end(process: int) -> None:
    """Kill a process, and wait until it is gone, so that it writes no more."""
    try:
        os.kill(process, signal.SIGKILL)
        for _ in range(100):
            os.kill(process, 0)
            time.sleep(0.02)
    except OSError:  # it is gone
        return


def guard(folder: str) -> None:
    """Follow the lines to their end, then clean up."""
    line = ""
    for said in sys.stdin:
        line = said.strip()
    for process in line.split():
        end(int(process))
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    guard(sys.argv[1])
