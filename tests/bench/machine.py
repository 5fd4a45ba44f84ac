"""What a measurement was made on: numbers without it cannot be compared."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("mvserver", "pyspark", "duckdb", "pyarrow", "psycopg", "confluent-kafka")


def describe() -> dict[str, Any]:
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _first(r"model name\s*:\s*(.+)", "/proc/cpuinfo") or platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(int(_first(r"MemTotal:\s*(\d+)", "/proc/meminfo") or 0) / 1024**2, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java(),
        "packages": {name: metadata.version(name) for name in _PACKAGES},
        "load_average": [round(value, 2) for value in os.getloadavg()],
    }


def _first(pattern: str, path: str) -> str | None:
    try:
        match = re.search(pattern, Path(path).read_text())
    except OSError:
        return None
    return match.group(1).strip() if match else None


def _java() -> str:
    try:
        told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return "none on the path"
    return told.stderr.splitlines()[0]
