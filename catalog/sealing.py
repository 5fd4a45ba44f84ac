"""Properties of other systems, with their passwords, sealed by a key in a file of its own (AES-GCM, 256 bits).

Whoever has the catalog alone, a copy or a backup of it, has no password. A sealed text belongs to one row: put into
another one it cannot be opened.
"""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mvserver import sqlstates
from mvserver.errors import SqlError

KEY_FILE = "secrets.key"
_PREFIX = "sealed:1:"
_NONCE_BYTES, _KEY_BYTES = 12, 32


class Sealer:
    """``key_file`` is made when something is sealed for the first time, and nobody else's."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._cipher: AESGCM | None = None

    def sealed(self, text: str, row: str) -> str:
        """``row`` says whose text it is, as it has to for ``opened``."""
        cipher = self._cipher = self._cipher or self._of_file() or self._new()
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return _PREFIX + base64.b64encode(nonce + cipher.encrypt(nonce, text.encode(), row.encode())).decode()

    def opened(self, text: str, row: str) -> str:
        """A text that was never sealed is as it is. F0000 where the key is missing, or is another one."""
        if not is_sealed(text):
            return text
        self._cipher = self._cipher or self._of_file()
        if self._cipher is None:
            raise self._refused("is missing")
        raw = base64.b64decode(text.removeprefix(_PREFIX))
        try:
            return self._cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], row.encode()).decode()
        except InvalidTag:
            raise self._refused("is another one") from None

    def _of_file(self) -> AESGCM | None:
        try:
            key = bytes.fromhex(self._key_file.read_text("ascii").strip())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self._refused(f"cannot be read ({error})") from error
        if len(key) != _KEY_BYTES:
            raise self._refused("is not a whole one")
        return AESGCM(key)

    def _new(self) -> AESGCM:
        """On the disk before anything is sealed by it."""
        key = secrets.token_bytes(_KEY_BYTES)
        aside = self._key_file.with_name(f".{self._key_file.name}")
        self._key_file.parent.mkdir(parents=True, exist_ok=True)
        aside.unlink(missing_ok=True)
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(key.hex() + "\n")
            file.flush()
            os.fsync(file.fileno())
        aside.rename(self._key_file)
        folder = os.open(self._key_file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return AESGCM(key)

    def _refused(self, what: str) -> SqlError:
        return SqlError(
            sqlstates.CONFIG_FILE_ERROR,
            f"the key by which properties of stores are sealed {what}",
            detail=f"It is kept in {self._key_file}.",
            hint="Put back the file that belongs to the catalog, or name it by the setting secrets_key_file.",
        )


def is_sealed(text: str) -> bool:
    return text.startswith(_PREFIX)
