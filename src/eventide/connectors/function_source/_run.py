"""One life of a source function: its thread, and the way of what it emits into the log."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from eventide.api.functions import RuntimeContext, SourceContext, SourceFunction
from eventide.api.source import IDLE, Counted
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.watermark import Watermark
from eventide.connectors.function_source._emission import Cancelled, Emission
from eventide.connectors.function_source._log import LogWriter
from eventide.errors import ProgramError, UserFunctionError
from eventide.pickling.pickles import dumps, loads

_MAX_ITEMS = 100_000
_MAX_BYTES = 64 * 1024 * 1024
_PATIENCE_S = 1.0


class FunctionRun:
    """Runs a function from where its log ends, in a thread that keeps no process alive.

    Args:
        function: the function, which is used up by this.
        log: where what it emits is written to.
        operator: the name of its operator.
        job_parameters: what the function may ask for.
        max_items: how many items may wait to be written.
        max_bytes: how many bytes may wait to be written.
    """

    def __init__(
        self,
        function: SourceFunction,
        log: LogWriter,
        operator: str,
        job_parameters: Mapping[str, str] | None = None,
        *,
        max_items: int = _MAX_ITEMS,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        self._function = function
        self._log = log
        self._where = RuntimeContext(operator, 1, 0, job_parameters or {})
        self._emission = Emission(max_items, max_bytes)
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._work, name=f"eventide {operator}", daemon=True)
        if log.is_complete:
            self._emission.finish()
        else:
            self._thread.start()

    @property
    def has_ended(self) -> bool:
        """Whether the function has returned, and all that it emitted is written."""
        return self._log.is_complete

    @property
    def end(self) -> int:
        """The position after all that is written."""
        return self._log.end

    def write_ahead(self, up_to: int | None = None) -> int:
        """Write what has come so far, unless there is enough; return the position after all that is written.

        Args:
            up_to: the position up to which the next micro-batch may read; None where there is no limit.

        Raises:
            Exception: what the function raised, if it did.
        """
        is_over = self._emission.is_over
        if self._failure is not None:
            raise self._failure
        if up_to is not None and up_to <= self._log.end:
            return self._log.end  # so that the function waits in time, and does not fill the disk
        self._emission.take(self._keep)
        if is_over and not self._log.is_complete:
            self._keep(())
            self._log.complete()
        return self._log.end

    def write_ahead_for(self, seconds: float) -> int:
        """Write what comes within some time, or until the end; return the position after it.

        Raises:
            Exception: what the function raised, if it did.
        """
        deadline = time.monotonic() + seconds
        while not self.has_ended and (left := deadline - time.monotonic()) > 0:
            self._emission.wait(left, until_full=True)
            self.write_ahead()
        return self.write_ahead()

    def wait(self, seconds: float) -> None:
        """Wait until something has come, or the end, but no longer than this."""
        self._emission.wait(seconds)

    def forget(self, position: int) -> None:
        """Delete what will not be read again."""
        self._log.forget(position)

    def stop(self) -> None:
        """Cancel the function, and give it a moment to return. What it emitted and was not yet written is lost."""
        self._emission.cancel()
        if self._thread.is_alive():
            with suppress(Exception, Cancelled):  # no caller is left to be told
                self._function.cancel()
            self._emission.cancel()
            self._thread.join(_PATIENCE_S)

    def _work(self) -> None:
        try:
            self._live()
        except Cancelled:
            pass
        except Exception as error:
            self._failure = error
        except BaseException as error:
            self._failure = UserFunctionError(f"run() raised {error!r}")
        finally:
            self._emission.finish()

    def _live(self) -> None:
        state = self._log.state()
        if state is not None and hasattr(self._function, "restore_state"):
            self._function.restore_state(loads(state))
        self._function.open(self._where)
        try:
            self._function.run(_Context(self._emission))
        finally:
            self._function.close()

    def _keep(self, items: Sequence[bytes]) -> None:
        items = [*items, *self._counted()]
        if items:
            snapshot = getattr(self._function, "snapshot_state", None)
            self._log.append(items, None if snapshot is None else dumps(snapshot()))

    def _counted(self) -> list[bytes]:
        """Return the function's counts since the last call, as the item that comes after what it has emitted."""
        clock_ms = time.time_ns() // 1_000_000
        metrics = [*self._where.metrics.metrics().items()]  # the function's thread may be making more
        new = {name: reading for name, metric in metrics if (reading := metric.take(0, clock_ms)) is not None}
        return [dumps(Counted(new))] if new else []


class _Context(SourceContext):
    """Pickles what is emitted at once, so that it may be changed and used again."""

    def __init__(self, emission: Emission) -> None:
        self._emission = emission

    def collect(self, value: Any) -> None:
        self._emission.add(dumps((value,)))

    def collect_with_timestamp(self, value: Any, timestamp: int) -> None:
        is_integer = not isinstance(timestamp, bool) and hasattr(timestamp, "__index__")
        if not (is_integer and MIN_MS < timestamp.__index__() <= MAX_MS):
            raise ProgramError(
                f"collect_with_timestamp needs an int of milliseconds since the epoch, not {timestamp!r}"
            )
        self._emission.add(dumps((value, timestamp.__index__())))

    def emit_watermark(self, mark: Watermark) -> None:
        if not isinstance(mark, Watermark):
            raise ProgramError(f"emit_watermark needs a Watermark, such as Watermark(1_000), not {mark!r}")
        self._emission.add(dumps(mark))

    def mark_as_temporarily_idle(self) -> None:
        self._emission.add(dumps(IDLE))

    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        return self._emission
