"""``eventide dashboard``: how the jobs of a running dashboard stand."""

from __future__ import annotations

import json
import socket

import pytest
from typer.testing import CliRunner

from eventide.cli.app import app
from support.watching import finished, job_of_the_twin, served


def run(*arguments):
    return CliRunner().invoke(app, ["dashboard", *arguments])


def test_it_says_how_each_job_stands():
    with served(job_of_the_twin("trips [bold]"), finished([], name="other")) as url:
        found = run(url)
        assert found.exit_code == 0
        lines = [" ".join(line.split()) for line in found.stdout.splitlines()]
        assert lines[0] == "trips [bold] finished"
        assert lines[1] == "verdict It has finished"
        assert "rows 0 in the micro-batch" in lines[3]
        assert lines[3].endswith("; 1 late")
        assert "watermark the end (<script>alert(1)</script>)" in lines
        assert lines[-1] == "micro-batch the first has not ended yet"
        first, other = json.loads(run(url, "--json").stdout)
        assert (first["name"], first["status"], other["lines"]) == (
            "trips [bold]",
            "finished",
            [["micro-batch", "the first has not ended yet"]],
        )


def test_no_job_is_said_to_be_none():
    with served() as url:
        assert run(url).stdout.strip() == f"no job has started yet at {url}"


@pytest.mark.parametrize("kind", ["nothing", "no checkpoint"])
def test_what_is_no_dashboard_and_no_checkpoint_is_said_in_a_sentence(kind, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    found = run(url if kind == "nothing" else str(tmp_path))
    assert found.exit_code == 2
    assert "Traceback" not in found.stderr
    assert ("does not answer as an eventide dashboard" if kind == "nothing" else str(tmp_path)) in found.stderr
