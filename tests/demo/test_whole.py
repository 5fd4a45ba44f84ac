"""The demos as a person runs them: child processes, the wire, the counts at the end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.services import class_archives

ROOT = Path(__file__).resolve().parents[2]
_TIMEOUT_S = 300.0


def demo(module: str, folder: Path, **settings: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DEMO_", "MVSERVER_"))}
    environment |= {"DEMO_DIR": str(folder), "PYTHONUNBUFFERED": "1", **settings}
    environment[class_archives.VARIABLE] = class_archives.prepared()
    return subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> str:
    try:
        output, _ = process.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        pytest.fail(f"not done within {_TIMEOUT_S:g} s:\n{output}")
    return output


@pytest.mark.spark
def test_the_clicks_demo_ends_with_equal_views(tmp_path: Path) -> None:
    process = demo("mvserver.demo", tmp_path / "demo", DEMO_SECONDS="12")
    output = finished(process)
    assert process.returncode == 0, output
    assert "of 3 views compared, 0 wrong" in output
    assert "PASS: 1 undecodable fed, 1 in mv_catalog.rejected_rows" in output
    assert "visits of ./home: " in output
    assert "most visited: ./home" in output
    assert "User_9 on mobile: " in output
    assert "psql -h 127.0.0.1 -p " in output
    assert "rejected by " in output
    assert "visits by page, live in a browser: http://127.0.0.1:" in output
    assert re.search(r"the console, .*: http://127\.0\.0\.1:\d+/console\n", output)
    assert "FAIL" not in output


@pytest.mark.night
@pytest.mark.spark
def test_the_clicks_demo_ends_cleanly_on_ctrl_c(tmp_path: Path) -> None:
    process = demo("mvserver.demo", tmp_path / "demo")
    watchdog = threading.Timer(_TIMEOUT_S, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "visits of ./home" in line:
                process.send_signal(signal.SIGINT)
                break
        lines += process.stdout.readlines()
        process.wait(_TIMEOUT_S)
    finally:
        watchdog.cancel()
    output = "".join(lines)
    assert process.returncode == 0, output
    assert "stopping the server" in output
    assert "Traceback" not in output
    assert "Traceback" not in (tmp_path / "demo" / "server.log").read_text()


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.kafka
def test_the_flights_demo_ends_with_equal_views(tmp_path: Path) -> None:
    process = demo("mvserver.demo.flights", tmp_path / "demo")
    output = finished(process)
    assert process.returncode == 0, output
    assert "EWR 120,835, JFK 111,279, LGA 104,662: as known" in output
    assert "of 3 views compared, 0 wrong" in output


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.kinesis
@pytest.mark.postgres
def test_the_demo_of_stores_ends_with_equal_results(tmp_path: Path) -> None:
    process = demo("tests.stores_demo", tmp_path / "demo")
    output = finished(process)
    assert process.returncode == 0, output
    assert output.count("of 6 views compared, 0 wrong") == 2
    assert "topic pageviews_enriched, by a consumer of Kafka: 6,000 rows, all equal" in output
    assert "view users_now, by SELECT: 200 rows, all equal" in output
    assert "PASS: " in output.splitlines()[-1]
    assert "FAIL" not in output
    assert "Traceback" not in output
