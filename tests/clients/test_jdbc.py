"""PostgreSQL's JDBC driver: a small Java program says what it sees of the server, and this test compares it."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.clients.live_server import LiveServer

VERSION = "42.7.8"
CACHE = Path.home() / ".cache" / "mvserver-tests"
PROBE = Path(__file__).with_name("Probe.java")

pytestmark = [
    pytest.mark.skipif(shutil.which("javac") is None, reason="javac (a JDK) is not installed"),
]


@pytest.fixture(scope="module")
def driver() -> Path:
    """The driver's jar: from the cache, else by Maven."""
    jar = CACHE / f"postgresql-{VERSION}.jar"
    if not jar.exists():
        if shutil.which("mvn") is None:
            pytest.skip(f"mvn is not installed and {jar} is not there")
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact=org.postgresql:postgresql:{VERSION}",
             f"-DoutputDirectory={CACHE}"],
            check=True, timeout=300, capture_output=True,
        )  # fmt: skip
    return jar


@pytest.fixture(scope="module")
def seen(server: LiveServer, driver: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    classes = tmp_path_factory.mktemp("probe")
    subprocess.run(["javac", "-d", str(classes), str(PROBE)], check=True, timeout=120, capture_output=True)
    done = subprocess.run(
        ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8",
         "-Dstdout.encoding=UTF-8", "-cp", f"{classes}:{driver}", "Probe", server.jdbc_url],
        capture_output=True, timeout=120, check=False, text=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, list[str]] = defaultdict(list)
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        found[name].append(value)
    return found


def test_metadata(seen: dict[str, list[str]]) -> None:
    assert seen["product"] == ["PostgreSQL 15"]
    assert seen["table"] == [f"{name} MATERIALIZED VIEW" for name in ("numbers", "typed", "visits")]
    assert seen["column"] == ["url text 12 1", "visits int8 -5 2"]
    assert seen["schemas"] == ["true"]
    assert seen["index"] == ["url false"]
    assert seen["typeinfo"] == ["true"]


def test_queries(seen: dict[str, list[str]]) -> None:
    assert seen["parameters"] == ["1"]
    assert seen["result"] == ["visits int8"]
    assert seen["fetched"] == [str(99_999 * 100_000 // 2)]
    assert seen["null"] == ["true"]
    assert seen["batch"] == ["2"]
    assert seen["application"] == ["two"]
    assert seen["valid"] == ["true"]


def test_values_in_text_and_binary(seen: dict[str, list[str]]) -> None:
    expected = (
        "1 true 2 9007199254740993 1.5 0.1 12.30 näme 'x' [0, -1] 2024-02-29 23:59:59.123456 "
        "2024-01-02T03:04:05.678901 2024-01-02T03:04:05Z"
    )
    assert seen["typed"] == [expected, expected]


def test_transactions(seen: dict[str, list[str]]) -> None:
    assert seen["isolation"] == ["true"]
    assert seen["error"] == ['42P01 ERROR: relation "nothing" does not exist']
    assert seen["after"] == ["7"]


def test_cancel_and_timeout(seen: dict[str, list[str]]) -> None:
    assert seen["cancelled"] == ["57014"]
    assert seen["timed out"] == ["57014"]
