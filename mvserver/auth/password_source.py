"""The catalog as a source of passwords and tokens: the verifiers of roles, and a secret that outlives restarts."""

from __future__ import annotations

import secrets
import time

from catalog.store import Catalog
from mvserver.auth import api_tokens

_SECRET = "authentication_secret"  # noqa: S105 - a setting's name
_SECRET_BYTES = 32


class CatalogPasswords:
    """Implements ``mvserver.auth.password_check.PasswordSource``."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def password_of(self, role: str) -> str | None:
        """None also where its time has come (VALID UNTIL): as if it were wrong, and nothing tells which."""
        found = self._catalog.roles.find_in_constant_time(role)
        if found is None or (found.valid_until is not None and found.valid_until <= time.time()):
            return None
        return found.password

    def secret(self) -> bytes:
        """From it the challenges of roles that do not exist are made; it is made once for a catalog."""
        with self._catalog.transaction():
            kept = self._catalog.settings.get(_SECRET)
            if kept is None:
                kept = secrets.token_hex(_SECRET_BYTES)
                self._catalog.settings.set(_SECRET, kept)
        return bytes.fromhex(kept)


class CatalogTokens:
    """Implements ``mvserver.http.credentials.TokenSource``."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def role_of(self, token: str) -> str | None:
        if not api_tokens.may_be_one(token):
            return None
        found = self._catalog.api_tokens.by_digest(api_tokens.digest(token))
        if found is None or (found.valid_until is not None and found.valid_until <= time.time()):
            return None
        role = self._catalog.roles.by_oid(found.role)
        return None if role is None else role.name
