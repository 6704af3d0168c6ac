"""Jars of Flink programs: eventide has its own connectors and formats, and ignores theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from eventide.common.accepted import has_no_effect
from eventide.errors import ProgramError

_NEEDLESS = re.compile(
    r"""(?:.*/)?
    (?: flink-(?:sql-)?(?:connector-)?
            (?: kafka(?:-0\.\d+|-universal|-base)? | files | file-sink-common | base | datagen
              | json | csv | avro(?:-confluent-registry)? | parquet | orc )
      | flink-(?:streaming-java|clients|core|java|python|dist|runtime|statebackend-rocksdb|shaded-jackson)
      | kafka-clients | avro )
    (?:[-_]2(?:\.1[123])?)?                   # of Scala
    (?:[-_](?:\d[^/]*|\$\{[^/]*\})?)?  # of the artifact; some build files leave a variable there
    (?:\.jar)?/*""",
    re.VERBOSE,
)


def is_needless(jar: str) -> bool:
    """Say, from the name of a jar's file, whether eventide does the jar's work itself.

    >>> is_needless("file:///opt/flink-sql-connector-kafka-3.1.0-1.18.jar")
    True
    >>> is_needless("file:///opt/flink-connector-kafka_2.11-1.12.0.jar")
    True
    >>> is_needless("file:///opt/flink-connector-jdbc-3.1.0-1.17.jar")
    False
    """
    return _NEEDLESS.fullmatch(jar) is not None


def take_jars(method: str, jars: Iterable[str]) -> None:
    """Ignore needless jars, with one warning.

    Args:
        method: The method that was given the jars, for messages.
        jars: URLs or paths of jars; several may stand in one, with semicolons between them.

    Raises:
        ProgramError: One contains Java classes that have no replacement here, or is not a text.
    """
    given = list(jars)
    if not all(isinstance(jar, str) for jar in given):
        raise ProgramError(f"{method} takes the URLs of jars, not {given!r}")
    names = [name.strip() for jar in given for name in jar.split(";") if name.strip()]
    if others := [name for name in names if not is_needless(name)]:
        raise ProgramError(
            f"{method} cannot take {', '.join(others)}: jars bring classes of Java to Flink, and programs of eventide "
            "run without them. Read with a Spark source, env.from_data_frame(...), and write with "
            "sink_to(function), which may call rows.write.jdbc(...), or with sink_to(FormatSink(...)); Spark takes its "
            "own jars when a session is made, with spark.jars or spark.jars.packages"
        )
    why = "eventide has these connectors and formats by itself, and needs no jars for them"
    has_no_effect(f"{method} of {', '.join(names)}", why, how_many=len(names[:1]))
