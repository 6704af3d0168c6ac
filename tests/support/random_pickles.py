"""A program that reads random pickles over the list of plain classes: it ends with an error where one does anything.

Arguments are a seed and how many pickles there are. It prints how many were read, and how many were refused.
"""

import contextlib
import datetime
import decimal
import importlib
import pathlib
import pickle
import random
import resource
import signal
import sys
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa

from eventide.common import Row
from eventide.common.windows import TimeWindow
from eventide.pickling.pickles import class_of_name, loads, plain_loads
from eventide.pickling.plain_classes import INSTEAD, PLAIN_CLASSES
from eventide.pickling.stand_ins import loads_anyway, shown_loads

FORBIDDEN = (
    *("os.", "shutil.", "subprocess.", "socket.", "ctypes.", "exec", "compile", "code.__new__", "function.__new__"),
    *("tempfile.", "urllib.", "import", "pty.", "webbrowser.", "sys.addaudithook"),
)
ALLOWED = ("os.listdir", "os.scandir")  # as of what looks for a file of a time zone
NAMES = sorted(PLAIN_CLASSES)
HONEST = [
    pickle.dumps(value, protocol)
    for protocol in (2, 4, 5)
    for value in (
        *(
            np.arange(3),
            np.float64(1),
            np.zeros(2, "M8[ns]"),
            np.zeros(2, [("a", "i4"), ("b", "U2")]),
            np.arange(4)[::2],
        ),
        *(pa.table({"a": ["x", None]}), pd.Timestamp(5, tz="UTC"), pd.NaT, pd.Timedelta(5), decimal.Decimal("1.5")),
        *(
            Row(a=1),
            TimeWindow(0, 5),
            uuid.UUID(int=5),
            pathlib.PurePath("a"),
            datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        ),
        *(random.Random(1), OSError(5, "x"), {"a": {1, 2}, "b": (None, True)}),
    )
]
PLAIN = [1, 0, -1, 7, 10**5, "a", "price", "i8", "C", "", b"", b"\0" * 8, (), {}, [], None, True, 1.5, (1,), {"a": 1}]
STATES = [
    (None, {"__init__": 1}),
    {"__class__": 1},
    (None, {"__class__": 1}),
    {"_value_": 1},
    (1, (1,), None, False, b""),
]


def text(value: str) -> bytes:
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


def piece(chance: random.Random) -> bytes:
    """Opcodes that leave one object more."""
    kind = chance.random()
    if kind < 0.45:
        module, name = chance.choice(NAMES)
        return text(module) + text(name) + b"\x93"
    if kind < 0.8:
        return pickle.dumps(chance.choice(PLAIN), 2)[2:-1]
    if kind < 0.9:
        return pickle.dumps(chance.choice(STATES), 2)[2:-1]
    return chance.choice([b"h\x00", b"h\x01", b"2"])


def made(chance: random.Random) -> bytes:
    """A pickle: pieces, and what is done with the last of them; or an honest one, with a little changed."""
    if chance.random() < 0.3:
        return changed(chance, chance.choice(HONEST))
    parts = [b"\x80\x04", piece(chance), b"\x94"]
    for _ in range(chance.randrange(2, 14)):
        kind = chance.random()
        if kind < 0.45:
            parts.append(piece(chance))
        elif kind < 0.9:
            arguments = b"".join(piece(chance) for _ in range(chance.randrange(4)))
            parts.append(
                chance.choice(
                    [
                        b"(" + arguments + b"tR",
                        b"(" + arguments + b"t\x81",
                        piece(chance) + b"b",
                        pickle.dumps(chance.choice(STATES), 2)[2:-1] + b"b",
                        piece(chance) + b"a",
                        b"(" + arguments + b"e",
                        b"(" + piece(chance) + piece(chance) + b"u",
                        b"(" + arguments + b"\x90",
                        b")}\x92",
                    ]
                )
            )
        else:
            parts.append(chance.choice([b"\x94", b"0", b"\x85", b"\x86", b"\x87", b"R", b"b", b"\x81"]))
    return b"".join(parts) + b"."


def changed(chance: random.Random, stored: bytes) -> bytes:
    content = bytearray(stored)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(2, len(content))
        if chance.random() < 0.5:
            content[at] = chance.randrange(256)
        else:
            content[at:at] = piece(chance) + chance.choice([b"", b"b", b"R", b"\x81"])
    return bytes(content)


def attributes() -> dict[str, dict[str, object]]:
    """The attributes of all plain classes, and the functions that make them."""
    found = {}
    for module, name in (INSTEAD.get(at, at) for at in NAMES):
        with contextlib.suppress(ImportError, AttributeError):
            one = importlib.import_module(module)
            for part in name.split("."):
                one = getattr(one, part)
            found[f"{module}.{name}"] = {
                key: value for key, value in getattr(one, "__dict__", {}).items() if key != "_abc_impl"
            }
    return found


def main(seed: int, count: int) -> None:
    """Read that many pickles.

    Raises:
        SystemExit: One did something, or changed a class.
    """
    chance = random.Random(seed)
    for module, name in NAMES:
        with contextlib.suppress(Exception):
            class_of_name(module, name)
    for stored in HONEST:  # whatever is imported late is imported now
        for read in (loads, shown_loads, loads_anyway):
            with contextlib.suppress(Exception):
                repr(read(stored))
    before, done, watched = attributes(), [], [True]

    def is_of_python(event: str, arguments: tuple[object, ...]) -> bool:
        """Whether a codec or a file of a time zone is looked for."""
        what = arguments[event == "compile"] if arguments else ""  # the name of a file comes after its code
        where = str(getattr(what, "co_filename", what))
        return event in {"import", "exec", "compile"} and any(
            name in where for name in ("encodings", "tzdata", "importlib", "zoneinfo")
        )

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        opens = event == "open" and arguments[1] not in {None, "r", "rb"}
        if (
            watched[0]
            and (opens or (event.startswith(FORBIDDEN) and event not in ALLOWED))
            and not is_of_python(event, arguments)
        ):
            done.append((event, arguments))

    def no_longer(number: int, frame: object) -> None:
        raise TimeoutError

    sys.dont_write_bytecode = True  # where a module of a time zone is imported for the first time on this machine
    signal.signal(signal.SIGALRM, no_longer)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.RLIM_INFINITY))
    sys.addaudithook(hook)
    counts = [0, 0]
    for _ in range(count):
        stored = made(chance)
        for read in (loads, shown_loads, loads_anyway, plain_loads):
            del done[:]
            is_made = 0
            with contextlib.suppress(Exception):
                signal.setitimer(signal.ITIMER_REAL, 2)  # a range of very many numbers as a list takes long
                try:
                    read(stored)
                    is_made = 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            counts[1 - is_made] += 1
            if done:
                raise SystemExit(f"{read.__name__} did {done[:3]} for {stored!r}")
    signal.setitimer(signal.ITIMER_REAL, 0)
    watched[0] = False
    after = attributes()
    wrong = [
        name
        for name, one in before.items()
        if one.keys() != after[name].keys() or any(value is not after[name][key] for key, value in one.items())
    ]
    if wrong:
        raise SystemExit(f"changed: {wrong}")
    print(*counts)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
