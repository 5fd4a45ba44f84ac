"""Archives of Spark's classes, as the JVM holds them in memory: it maps one at its start and so starts sooner.

Reading, checking and linking some ten thousand classes is two fifths of what a start of Spark costs. The JVM writes
such an archive when it ends (``-XX:ArchiveClassesAtExit``), which takes seconds, so another process is there for it
alone (``class_archive_maker``). A JVM compares the archive with itself and with its jars, and leaves it aside where it
does not fit. So a wrong one costs time, and nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mvserver.spark_jvm import pyspark_home

_log = logging.getLogger(__name__)

OPTIONS = "spark.driver.extraJavaOptions"
_CLASS_PATH = "spark.driver.extraClassPath"
_MAKER = "mvserver.streaming.spark.class_archive_maker"
QUIET_S = 20.0  # so long after Spark is up the archive is begun: who has started a server uses it first
MAKE_S = 300.0  # how long it may take, with the least of priorities
_FREE_BYTES_MIN = 3 << 30  # of memory, for another JVM
_KEPT = 3  # archives: of other versions, and of other sets of connectors
_TRY_AGAIN_S = 7 * 24 * 3600.0  # where the JVM has written none
_LOOK_S = 0.5


@dataclass(frozen=True)
class ClassArchives:
    """Of one folder, which may be shared by servers."""

    folder: Path

    def used(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """The settings of a JVM with the archive that was made for such a one, where there is one."""
        path = self._path(settings)
        try:
            os.utime(path)  # the oldest ones are removed
        except OSError:
            return settings
        return _with_flags(settings, f"-XX:SharedArchiveFile={path}", *_QUIET)

    def lacks(self, settings: Mapping[str, str]) -> bool:
        """Whether there is none for such a JVM, and it is worth making one."""
        path = self._path(settings)
        if path.exists():
            return False
        with contextlib.suppress(OSError):
            return time.time() - _failed(path).stat().st_mtime > _TRY_AGAIN_S
        return True

    def make(
        self, settings: Mapping[str, str], command: Callable[[Mapping[str, str]], Sequence[str]], given_up: _GivenUp
    ) -> bool:
        """Makes it, by a process of its own; False where ``given_up``, where another process is at it, or where the
        JVM has not written one."""
        path = self._path(settings)
        self.folder.mkdir(parents=True, exist_ok=True)
        with _alone(self.folder / "making") as alone:
            if not alone or not self.lacks(settings):
                return False
            written = path.with_suffix(".new")
            written.unlink(missing_ok=True)
            work = self.folder / "work"
            shutil.rmtree(work, ignore_errors=True)  # of one that was killed
            try:
                writing = f"-XX:ArchiveClassesAtExit={written}", f"-Djava.io.tmpdir={work}"
                given = _with_flags(settings, *writing, *_QUIET)
                if not _run(command(given), work, given_up):
                    return False
                if not written.exists():
                    _failed(path).touch()
                    return False
                _keep(written)
                written.replace(path)
            finally:
                written.unlink(missing_ok=True)
                shutil.rmtree(work, ignore_errors=True)
            self._forget_old()
        return True

    def _path(self, settings: Mapping[str, str]) -> Path:
        known = {
            "java": _java(),
            "spark": described([*(pyspark_home() / "jars").glob("*.jar")]),
            "class path": described([Path(each) for each in settings.get(_CLASS_PATH, "").split(os.pathsep) if each]),
            "options": settings.get(OPTIONS, ""),
        }
        return self.folder / f"{hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:32]}.jsa"

    def _forget_old(self) -> None:
        found = sorted(self.folder.glob("*.jsa"), key=lambda each: each.stat().st_mtime, reverse=True)
        for old in found[_KEPT:]:
            old.unlink(missing_ok=True)


_GivenUp = Callable[[], bool]
_QUIET = ("-Xshare:auto", "-XX:+VerifySharedSpaces", "-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


def make_beside(
    archives: ClassArchives,
    settings: Mapping[str, str],
    command: Callable[[Mapping[str, str]], Sequence[str]],
    ended: threading.Event,
) -> None:
    """Makes the archive of a Spark that is up, where it is lacking; given up when Spark has ``ended``."""
    if not archives.lacks(settings) or ended.wait(QUIET_S) or free_memory() < _FREE_BYTES_MIN:
        return
    try:
        if archives.make(settings, command, ended.is_set):
            _log.info("the next start of Spark takes its classes from %s", archives.folder)
    except OSError as error:
        _log.info("an archive of Spark's classes cannot be made: %s", error)


def free_memory() -> int:
    """Bytes that the system can give without taking them from others; 0 where that is not known."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)


def _run(command: Sequence[str], work: Path, given_up: _GivenUp) -> bool:
    """Whether the maker went through. It ends when this process does: its input is closed then."""
    order = json.dumps({"command": list(command), "work": str(work)})
    maker = subprocess.Popen(
        [sys.executable, "-m", _MAKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is the server's to handle
    )
    assert maker.stdin is not None  # noqa: S101 - a pipe
    try:
        maker.stdin.write(f"{order}\n".encode())
        maker.stdin.flush()
        deadline = time.monotonic() + MAKE_S
        while maker.poll() is None and not given_up() and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                maker.wait(_LOOK_S)
    except BrokenPipeError:
        return False
    finally:
        with contextlib.suppress(BrokenPipeError):
            maker.stdin.close()
        maker.wait()
    return maker.returncode == 0


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[bool]:
    """Whether no other process of this machine holds the lock."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _with_flags(settings: Mapping[str, str], *flags: str) -> dict[str, str]:
    quoted = " ".join(f'"{flag}"' for flag in flags)
    return {**settings, OPTIONS: f"{settings.get(OPTIONS, '')} {quoted}".strip()}


def _keep(path: Path) -> None:
    """On the disk, also where the machine ends now."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _failed(path: Path) -> Path:
    return path.with_suffix(".none")


def _java() -> list[str]:
    """The Java that Spark's own scripts take, or what tells another one apart."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java") if home is None else str(Path(home) / "bin" / "java")
    modules = Path(os.path.realpath(java)).parents[1] / "lib" / "modules" if java else None
    return [str(java), *(described([modules]) if modules is not None else ())]


def described(paths: Sequence[Path]) -> list[str]:
    """What tells these files apart from others: names, sizes and times."""
    found = []
    for path in sorted(paths):
        with contextlib.suppress(OSError):
            stat = path.stat()
            found.append(f"{path} {stat.st_size} {stat.st_mtime_ns}")
    return found
