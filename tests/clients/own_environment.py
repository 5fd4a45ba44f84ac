"""Tools whose requirements do not go with those of the tests: each in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_INSTALL_S = 1_800


def environment(requirements: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a new environment that has them."""
    folder = tmp_path_factory.mktemp(requirements.parent.name)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    programs = folder / "bin"
    done = subprocess.run(
        [programs / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", requirements],
        capture_output=True, text=True, timeout=_INSTALL_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return programs
