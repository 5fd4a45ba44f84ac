"""Programs that tests install once, beside the user's other caches, however many runs begin at once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mvserver-tests"


def installed(name: str, fill: Callable[[Path], None]) -> Path:
    """The folder of the program ``name`` (with its version); ``fill`` puts it into a new folder the first time."""
    folder = cache() / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            fill(Path(made))
            try:
                Path(made).rename(folder)
            except OSError:  # another run was faster
                assert folder.is_dir()
            else:
                Path(made).mkdir()
    return folder
