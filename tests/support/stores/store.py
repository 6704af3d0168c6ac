"""Settings of a program that uses a store on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True)
class Store:
    """A running store: a folder in it, the variables that Python needs, and the settings that Spark needs."""

    location: str
    variables: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def written(self, folder: Path) -> Mapping[str, str]:
        """Write the settings where Spark looks for them, and return all variables for a process that uses the store."""
        in_executors = {f"spark.executorEnv.{name}": value for name, value in self.variables.items()}
        lines = [f"{name} {value}" for name, value in {**self.settings, **in_executors}.items()]
        (folder / "spark-defaults.conf").write_text("\n".join(lines))
        return {**self.variables, "SPARK_CONF_DIR": str(folder)}


def hadoop_version() -> str:
    """The version of Hadoop's client among PySpark's jars."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations
    [client] = Path(spec.submodule_search_locations[0], "jars").glob("hadoop-client-api-*.jar")
    return client.stem.rpartition("-")[2]
