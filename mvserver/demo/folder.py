"""The demos' own folder, made fresh at each start; never anybody else's."""

from __future__ import annotations

import shutil
from pathlib import Path

_MARK = ".mvserver-demo"


class NotOursError(Exception):
    """There is a folder of that name, and it is not the demo's."""


def fresh_folder(path: Path) -> Path:
    """An empty folder; what a demo left there before is removed, anything else is left alone."""
    if path.exists():
        if not (path / _MARK).is_file() and any(path.iterdir()):
            raise NotOursError(f"{path} is there and was not made by the demo; give another folder by DEMO_DIR")
        shutil.rmtree(path)
    path.mkdir(parents=True)
    (path / _MARK).write_text("made by mvserver's demo, removed when it starts again\n")
    return path.resolve()
