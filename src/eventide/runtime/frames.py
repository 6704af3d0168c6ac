"""Frames: the large, opaque rows that cross a stage boundary, and their layout in bytes."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

from eventide.runtime.events import Signal, SplitReport

METRICS_STAGE = -1

_ALIGNED = 16
_HEADER = struct.Struct("<BiiI")
_WATERMARK = struct.Struct("<q")
_REPORT = struct.Struct("<?q??")


@dataclass(frozen=True, slots=True)
class Frame:
    """One message from a task to one subtask of a stage, or to a sink.

    ``round`` numbers the steps of a micro-batch: all elements of a round come before its signals, all of a round
    before the next. ``channel`` is the split or the subtask that sends. ``content`` depends on the signal: encoded
    elements (bytes, or a view of them), a :class:`SplitReport`, a watermark in milliseconds, counters (a dict), None.
    """

    stage: int
    subtask: int
    signal: Signal
    round: int
    edge: int
    channel: str
    content: Any = None

    def to_bytes(self) -> bytes:
        """All but ``stage`` and ``subtask``, which stand beside the bytes to route them.

        The layout is little-endian: signal (1 byte), round (4), edge (4), length of the channel's name (4), the name
        in UTF-8, zeros up to a multiple of 16 bytes, which Arrow's columns need to be read where they are, the content.
        """
        channel = self.channel.encode()
        head = _HEADER.pack(self.signal, self.round, self.edge, len(channel))
        padding = bytes(_content_start(len(channel)) - len(head) - len(channel))
        return b"".join((head, channel, padding, _content_to_bytes(self.signal, self.content)))

    @classmethod
    def from_bytes(cls, stage: int, subtask: int, data: bytes) -> Frame:
        """The inverse of :meth:`to_bytes`."""
        signal, round_, edge, length = _HEADER.unpack_from(data)
        channel = data[_HEADER.size : _HEADER.size + length].decode()
        content = _content_from(Signal(signal), memoryview(data)[_content_start(length) :])
        return cls(stage, subtask, Signal(signal), round_, edge, channel, content)


def _content_start(channel: int) -> int:
    return -(-(_HEADER.size + channel) // _ALIGNED) * _ALIGNED


def _content_to_bytes(signal: Signal, content: Any) -> Any:
    if signal is Signal.ELEMENTS:
        return content  # bytes already, and many
    if signal is Signal.WATERMARK:
        return _WATERMARK.pack(content)
    if signal is Signal.SPLIT_REPORT:
        known = content.watermark is not None
        return _REPORT.pack(known, content.watermark if known else 0, content.idle, content.ended)
    if signal is Signal.METRICS:
        return json.dumps(content).encode()
    return b""


def _content_from(signal: Signal, data: memoryview) -> Any:
    if signal is Signal.ELEMENTS:
        return data
    if signal is Signal.WATERMARK:
        return _WATERMARK.unpack(data)[0]
    if signal is Signal.SPLIT_REPORT:
        known, watermark, idle, ended = _REPORT.unpack(data)
        return SplitReport(watermark if known else None, idle, ended)
    if signal is Signal.METRICS:
        return json.loads(bytes(data))
    return None
