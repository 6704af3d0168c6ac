"""The two kinds of tables, Delta's and Iceberg's: jars, settings of Spark, and names of tables in a warehouse."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from eventide.testing.kafka_broker import fetched

_CATALOG = "lake"


@dataclass(frozen=True)
class Lake:
    """One kind of table.

    Args:
        format: its name in Spark.
        module: organisation, name and version of what Spark needs to know it.
        own: how the names begin of those of its jars that Spark does not have, all others being Spark's own.
        settings: settings of Spark.
    """

    format: str
    module: tuple[str, str, str]
    own: tuple[str, ...]
    settings: dict[str, str]

    def write_settings(self, folder: Path, warehouse: Path) -> dict[str, str]:
        """Write the settings where Spark looks for them, and return the variable that names the place.

        Jars are fetched when they are needed for the first time.
        """
        organisation, name, version = self.module
        jars = fetched(f"{name}-{version}", (organisation, name, version)).glob("*.jar")
        settings = {"spark.jars": ",".join(str(jar) for jar in jars if jar.name.startswith(self.own)), **self.settings}
        if self.format == "iceberg":
            settings[f"spark.sql.catalog.{_CATALOG}.warehouse"] = str(warehouse)
        folder.mkdir(parents=True)
        lines = [f"{name} {value}" for name, value in settings.items()]
        (folder / "spark-defaults.conf").write_text("\n".join(lines))
        return {"SPARK_CONF_DIR": str(folder)}

    def table(self, warehouse: Path, name: str) -> str:
        """The path of a table, for Spark's readers and writers."""
        return str(warehouse / name) if self.format == "delta" else f"{_CATALOG}.db.{name}"


def spark_version() -> str:
    """The two first numbers of the version of PySpark, found without loading it."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations
    [core] = Path(spec.submodule_search_locations[0], "jars").glob("spark-core_*.jar")
    return ".".join(core.stem.rpartition("-")[2].split(".")[:2])


def lakes(spark: str) -> list[Lake]:
    """The kinds of tables that have a version for this one of Spark."""
    found = []
    if spark in ("4.1", "4.2"):
        settings = {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",  # for tables of a few files
        }
        module = ("io.delta", f"delta-spark_{spark}_2.13", "4.4.0")
        found.append(Lake("delta", module, ("delta-", "unitycatalog-"), settings))
    if spark == "4.1":
        catalog = f"spark.sql.catalog.{_CATALOG}"
        settings = {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "hadoop",
        }
        module = ("org.apache.iceberg", f"iceberg-spark-runtime-{spark}_2.13", "1.12.0")
        found.append(Lake("iceberg", module, ("iceberg-",), settings))
    return found
