"""Programs from the packages of the system, unpacked into a folder of the cache: nothing is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.services.installed import installed

_DOWNLOAD_S = 120


def unpacked(name: str, packages: Sequence[str]) -> Path:
    """The folder with what the packages have; the test is skipped where they cannot be had."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip(f"{name} is not installed, and there is no apt-get to get it with")

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="mvserver-packages-") as made:
            done = subprocess.run(
                ["apt-get", "download", *packages],
                cwd=made, capture_output=True, text=True, timeout=_DOWNLOAD_S, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                pytest.skip(f"the packages of {name} cannot be had: {done.stderr[-300:]}")
            for package in sorted(Path(made).glob("*.deb")):
                subprocess.run(["dpkg-deb", "-x", package, folder], check=True, timeout=_DOWNLOAD_S)

    return installed(name, fill)


def library_path(folder: Path) -> str:
    """Where the loader finds the libraries of a folder, as ``LD_LIBRARY_PATH`` has it."""
    return ":".join(sorted({str(library.parent) for library in (folder / "usr" / "lib").rglob("*.so*")}))
