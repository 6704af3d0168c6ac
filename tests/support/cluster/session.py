"""The environment of a program on the cluster that the variable MASTER names."""

from __future__ import annotations

import json
import os

from eventide.common import Configuration
from eventide.datastream import StreamExecutionEnvironment


def environment_on_cluster() -> StreamExecutionEnvironment:
    """Executors fit into workers of one gigabyte, and reach the driver on this machine; SETTINGS may have more."""
    settings = {
        "spark.master": os.environ["MASTER"],
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "768m",
        **json.loads(os.environ.get("SETTINGS", "{}")),
    }
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
