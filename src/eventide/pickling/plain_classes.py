"""Classes of Python, its libraries and eventide that any data may contain: making an object has no other effect.

Why that is so of each stands in the table of ``tests/unit/pickling/test_plain_classes.py``.
"""

from __future__ import annotations

import builtins
from typing import TypeAlias

ClassName: TypeAlias = tuple[str, str]
"""A module, and the qualified name of a class in it."""

_NAMES = {
    "builtins": "bool int float complex str bytes bytearray list tuple dict set frozenset slice range object",
    "array": "array _array_reconstructor",
    "collections": "ChainMap Counter OrderedDict UserDict UserList UserString defaultdict deque",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "ipaddress": "IPv4Address IPv4Interface IPv4Network IPv6Address IPv6Interface IPv6Network",
    "pathlib": "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath",
    "random": "Random",
    "statistics": "NormalDist",
    "types": "SimpleNamespace",
    "uuid": "SafeUUID UUID",
    "zoneinfo": "ZoneInfo ZoneInfo._unpickle",
    "eventide.pickling.pickles": "class_of_name",
    "eventide.pickling.stand_ins": "_made",
    "eventide.common.time": "Duration Instant Time",
    "eventide.common.time_window": "TimeWindow",
    "eventide.common.types": "Row RowKind _restore",
    "eventide.common.watermark": "Watermark",
    "eventide.common.watermark_generator": "WatermarkGeneratorContext",
    "eventide.connectors.kafka._offsets": "KafkaTopicPartition",
    "eventide.connectors.kafka._records": "ConsumerRecord",
    "eventide.api.source": "Counted _Idle",
    "eventide.api.functions.timers": "TimeDomain",
    "eventide.api.windows._evictors": "TimestampedValue",
    "eventide.api.windows._windows": "CountWindow GlobalWindow",
    "eventide.runtime.columnar.contents": "_Kept",
    "eventide.runtime.joins.windowed": "OnSide",
    "eventide.runtime.window.contents": "Accumulated",
    "pyarrow.lib": (
        "_reconstruct_record_batch _reconstruct_table binary chunked_array decimal128 decimal256 dictionary field "
        "large_list list_ map_ scalar schema struct timestamp type_for_alias"
    ),
    "pandas._libs.tslibs.timedeltas": "_timedelta_unpickle",
}

_FORMER_MODULES = {
    "eventide.api.functions.time_domain": "eventide.api.functions.timers",
    "eventide.common._pickles": "eventide.pickling.pickles",
    "eventide.common._stand_ins": "eventide.pickling.stand_ins",
    "eventide.datastream.connectors.kafka._offsets": "eventide.connectors.kafka._offsets",
    "eventide.datastream.connectors.kafka._records": "eventide.connectors.kafka._records",
    "eventide.datastream.connectors.source": "eventide.api.source",
    "eventide.datastream.time_domain": "eventide.api.functions.timers",
    "eventide.datastream.window._evictors": "eventide.api.windows._evictors",
    "eventide.datastream.window._windows": "eventide.api.windows._windows",
}
"""The modules that data of older checkpoints name, and where their classes are now."""

_OURS = {
    "builtins getattr": "method_of",
    "numpy dtype": "DtypeForm",
    "numpy ndarray": "ArrayForm",
    "numpy._core.multiarray _reconstruct": "array_form",
    "numpy._core.multiarray scalar": "scalar_of",
    "numpy._core.numeric _frombuffer": "array_of",
    "numpy.core.multiarray _reconstruct": "array_form",
    "numpy.core.multiarray scalar": "scalar_of",
    "numpy.core.numeric _frombuffer": "array_of",
    "pandas._libs.tslibs.nattype _nat_unpickle": "no_time",
    "pandas._libs.tslibs.timestamps _unpickle_timestamp": "timestamp_of",
    "pyarrow.lib _restore_array": "arrow_array",
    "pyarrow.lib py_buffer": "arrow_buffer",
    "re _compile": "pattern",
}

INSTEAD: dict[ClassName, ClassName] = {
    (module, name): ("eventide.pickling.plain_values", ours)
    for names, ours in _OURS.items()
    for module, name in [names.split()]
} | {(former, name): (module, name) for former, module in _FORMER_MODULES.items() for name in _NAMES[module].split()}
"""Substitutes of stored names: safe functions for those of libraries that would accept any pickled data,
and eventide's classes where they are now."""

PLAIN_CLASSES: frozenset[ClassName] = frozenset(
    {*INSTEAD}
    | {(module, name) for module, names in _NAMES.items() for name in names.split()}
    | {
        ("builtins", name)
        for name, kind in vars(builtins).items()
        if isinstance(kind, type) and issubclass(kind, BaseException)
    }
)
"""Names of plain classes, and of the functions that make objects of them."""

SHOWN_CLASSES: frozenset[ClassName] = frozenset(
    {(module, name) for module in ("builtins", "datetime", "decimal") for name in _NAMES[module].split()}
    | {("eventide.pickling.pickles", "class_of_name"), ("numpy", "dtype"), ("eventide.common.types", "_restore")}
    | {at for at in PLAIN_CLASSES if at[0] in {"eventide.common.time_window", "eventide.common.types"}}
    | {("eventide.api.windows._windows", name) for name in ("CountWindow", "GlobalWindow")}
    | {at for at, (_, ours) in INSTEAD.items() if ours in {"CountWindow", "GlobalWindow", "class_of_name", "scalar_of"}}
)
"""Classes whose objects are made to be shown: the objects cannot be changed, or run only eventide's code."""


def class_name(kind: type) -> ClassName:
    """The name under which data refer to a class."""
    return kind.__module__, kind.__qualname__
