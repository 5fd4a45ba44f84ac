"""The jars that the server keeps, each under the digest of its bytes: what a file held when a source was made."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

JAR_BYTES_MAX = 256 << 20


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class JarFolder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, digest: str) -> Path:
        return self._folder / f"{digest}.jar"

    def keep(self, content: bytes) -> None:
        """Durable when it returns."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self.path(digest_of(content))
        aside = path.with_suffix(".part")
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
        handle = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def forget(self, digest: str) -> None:
        self.path(digest).unlink(missing_ok=True)

    def read(self, digest: str) -> bytes:
        return self.path(digest).read_bytes()
