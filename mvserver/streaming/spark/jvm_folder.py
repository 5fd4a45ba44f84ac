"""The folder in which one JVM keeps its temporary files. What a killed JVM has left goes with the next start."""

from __future__ import annotations

import logging
import shutil
import uuid
from pathlib import Path

_log = logging.getLogger(__name__)

_PREFIX = "jvm-"
_PROCESSES = Path("/proc")


def make_jvm_folder(work: Path) -> Path:
    """A new one below ``work``; those of JVMs that do not live any more are removed."""
    work.mkdir(parents=True, exist_ok=True)
    for old in work.glob(f"{_PREFIX}*"):
        if not is_in_use(old):
            shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(work / "local", ignore_errors=True)  # of earlier versions of the server, which shared it
    folder = work / f"{_PREFIX}{uuid.uuid4().hex[:12]}"
    for name in ("local", "tmp"):
        (folder / name).mkdir(parents=True)
    return folder


def remove_jvm_folder(folder: Path) -> None:
    """After its JVM has ended."""
    shutil.rmtree(folder, ignore_errors=True)


def is_in_use(folder: Path) -> bool:
    """By a JVM that has not noticed yet that its server has ended: it has the folder's name in its command,
    which the system shows a moment after its start."""
    name = folder.name.encode()
    if not _PROCESSES.is_dir():  # not Linux: a server's JVM ends within moments of it
        return False
    for process in _PROCESSES.iterdir():
        try:
            if process.name.isdigit() and name in (process / "cmdline").read_bytes():
                return True
        except OSError:  # it has just ended, or is another user's
            continue
    return False
