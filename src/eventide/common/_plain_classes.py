"""Classes of Python, its libraries and eventide that any data may have objects of: making one does nothing else."""

from __future__ import annotations

import builtins

from eventide.common._class_name import ClassName

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
    "re": "_compile",
    "statistics": "NormalDist",
    "types": "SimpleNamespace",
    "uuid": "SafeUUID UUID",
    "zoneinfo": "ZoneInfo ZoneInfo._unpickle",
    "numpy": "dtype ndarray",
    "numpy._core.multiarray": "_reconstruct scalar",
    "numpy._core.numeric": "_frombuffer",
    "numpy.core.multiarray": "_reconstruct scalar",
    "numpy.core.numeric": "_frombuffer",
    "eventide.common._pickles": "class_of_name",
    "eventide.common._stand_ins": "_made",
    "eventide.common.time": "Duration Instant Time",
    "eventide.common.time_window": "TimeWindow",
    "eventide.common.types": "Row RowKind _restore",
    "eventide.common.watermark": "Watermark",
    "eventide.common.watermark_generator": "WatermarkGeneratorContext",
    "eventide.datastream.connectors.kafka._offsets": "KafkaTopicPartition",
    "eventide.datastream.connectors.kafka._records": "ConsumerRecord",
    "eventide.datastream.connectors.source": "Counted _Idle",
    "eventide.datastream.time_domain": "TimeDomain",
    "eventide.datastream.window._evictors": "TimestampedValue",
    "eventide.datastream.window._windows": "CountWindow GlobalWindow",
    "eventide.runtime.columnar.contents": "_Kept",
    "eventide.runtime.joins.windowed": "OnSide",
    "pyarrow.lib": (
        "_reconstruct_record_batch _reconstruct_table _restore_array binary chunked_array decimal128 decimal256 "
        "dictionary field large_list list_ map_ py_buffer scalar schema struct timestamp type_for_alias"
    ),
    "pandas._libs.tslibs.nattype": "_nat_unpickle",
    "pandas._libs.tslibs.timedeltas": "_timedelta_unpickle",
    "pandas._libs.tslibs.timestamps": "_unpickle_timestamp",
}

PLAIN_CLASSES: frozenset[ClassName] = frozenset(
    {(module, name) for module, names in _NAMES.items() for name in names.split()}
    | {
        ("builtins", name)
        for name, kind in vars(builtins).items()
        if isinstance(kind, type) and issubclass(kind, BaseException)
    }
)
"""Their names, and those of the functions that make some of them."""
