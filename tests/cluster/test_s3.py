"""A job whose files, checkpoint, logs and output are in S3 alone gives what it gives on disk, its driver dead once."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.sql import SparkSession
from tests.cluster.disturbed import Disturbed
from tests.cluster.s3_server import s3_server
from tests.spark import killed_job
from tests.spark.test_kill import check
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.testing import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


def test_jobs_in_s3_give_what_they_give_on_disk(
    spark: SparkSession, cluster: SparkCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "input"
    killed_job.write_input(folder)
    undisturbed = {job: tmp_path / "undisturbed" / job for job in killed_job.JOBS}
    for job, place in undisturbed.items():
        killed_job.main(job, str(place / "checkpoint"), str(place / "output"), str(folder))
    with s3_server() as s3:
        for name, value in s3.variables.items():
            monkeypatch.setenv(name, value)
        store, _ = fs.FileSystem.from_uri("s3://bucket?allow_bucket_creation=true")
        store.create_dir("bucket")
        fs.copy_files(str(folder), "bucket/input", fs.LocalFileSystem(), store)
        variables = {**s3.variables, "SETTINGS": json.dumps(s3.settings())}
        for job in killed_job.JOBS:
            place = f"{s3.bucket}/{job}"
            Disturbed(cluster, job, place, f"{s3.bucket}/input", random.Random(job), variables).run(["driver"])
        fs.copy_files("bucket", str(tmp_path / "copied"), store, fs.LocalFileSystem())
        check(spark, {job: tmp_path / "copied" / job for job in killed_job.JOBS}, undisturbed)

        told = CliRunner().invoke(app, ["checkpoint", f"{s3.bucket}/bounded/checkpoint"])
        assert "the job is not running" in told.output or told.exit_code == 0
