"""pgbench in its three modes: many clients, scripts with variables, several statements in a pipeline."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.client_world import Address

pytestmark = pytest.mark.skipif(shutil.which("pgbench") is None, reason="pgbench is not installed")

SCRIPT = """\
\\set key random(0, 99999)
SELECT n FROM numbers WHERE n = :key;
BEGIN;
SELECT url, visits FROM visits WHERE url = './home' \\gset
SELECT count(*) AS c FROM typed WHERE id = 1 \\gset
END;
\\if :c <> 1
SELECT wrong_count;
\\endif
"""
PIPELINED = """\
\\set key random(0, 99999)
\\startpipeline
SELECT n FROM numbers WHERE n = :key;
SELECT sum(visits) FROM visits;
\\endpipeline
"""


def bench(to: Address, script: str, folder: Path, *arguments: str) -> str:
    path = folder / "script.sql"
    path.write_text(script, encoding="utf-8")
    done = subprocess.run(
        ["pgbench", "-n", "-f", str(path), "-h", to.host, "-p", str(to.port), "-U", to.user, *arguments, to.database],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.splitlines() == [] or "ERROR" not in done.stderr
    return done.stdout


def facts(printed: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z ]+): (.*)$", printed, re.M))


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_each_mode(ours: Address, tmp_path: Path, mode: str) -> None:
    shown = facts(bench(ours, SCRIPT, tmp_path, "-M", mode, "-c", "3", "-j", "2", "-t", "10"))
    assert shown["query mode"] == mode
    assert shown["number of transactions actually processed"] == "30/30"
    assert shown["number of failed transactions"].startswith("0 ")


@pytest.mark.parametrize("mode", ["extended", "prepared"])
def test_pipelines(ours: Address, tmp_path: Path, mode: str) -> None:
    shown = facts(bench(ours, PIPELINED, tmp_path, "-M", mode, "-c", "2", "-t", "10"))
    assert shown["number of transactions actually processed"] == "20/20"


def test_a_new_connection_for_each_transaction(ours: Address, tmp_path: Path) -> None:
    shown = facts(bench(ours, "SELECT visits FROM visits WHERE url = './home';", tmp_path, "-C", "-c", "2", "-t", "5"))
    assert shown["number of transactions actually processed"] == "10/10"
