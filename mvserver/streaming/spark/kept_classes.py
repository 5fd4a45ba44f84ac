"""What was compiled of our Java, kept beside the archives of Spark's classes: it is the same at each start of Spark."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_log = logging.getLogger(__name__)

_SUFFIX = ".classes"  # of a file with a digest, and the jar behind it
_KEPT = 3  # of other versions


def kept_jar(folder: Path | None, made_of: Sequence[str], compiled: Callable[[], Mapping[str, bytes]]) -> bytes:
    """The jar of the classes that ``compiled`` gives by name, or the one of an earlier start that was made of the same
    texts. One that is damaged is made again."""
    if folder is None:
        return _jar(compiled())
    path = folder / (hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:32] + _SUFFIX)
    kept = _sound(path)
    if kept is not None:
        return kept
    made = _jar(compiled())
    try:
        _keep(path, made)
    except OSError as error:
        _log.info("what was compiled of our Java cannot be kept: %s", error)
    return made


def _jar(classes: Mapping[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as content:
        for name, code in classes.items():
            content.writestr(f"{name.replace('.', '/')}.class", code)
    return written.getvalue()


def _digest(jar: bytes) -> bytes:
    return hashlib.sha256(jar).digest()


def _sound(path: Path) -> bytes | None:
    try:
        found = path.read_bytes()
    except OSError:
        return None
    size = hashlib.sha256().digest_size
    digest, jar = found[:size], found[size:]
    return jar if digest == _digest(jar) else None


def _keep(path: Path, jar: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(f".{os.getpid()}.new")  # servers may start at the same time
    try:
        written.write_bytes(_digest(jar) + jar)
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)
    found = sorted(path.parent.glob(f"*{_SUFFIX}"), key=lambda each: each.stat().st_mtime, reverse=True)
    for old in found[_KEPT:]:
        old.unlink(missing_ok=True)
