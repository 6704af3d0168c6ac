"""The process beside the driver in which Spark has a Python source plan."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

_PATIENCE_S = 5


def call_before_the_end(stop: Callable[[], None]) -> None:
    """Have something called when Spark ends this process, which it announces by SIGTERM and by nothing else.

    It has some seconds; then the process ends, whatever threads it has. Does nothing outside of the main thread, where
    Python takes no signals.
    """

    def end(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # it comes twice
        stopping = threading.Thread(target=stop, daemon=True)
        stopping.start()
        stopping.join(_PATIENCE_S)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, end)
