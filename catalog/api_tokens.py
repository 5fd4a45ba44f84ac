"""API tokens as rows: not the tokens, but their digests, and the role that each acts as."""

from __future__ import annotations

from catalog.connection import CatalogConnection, Row
from catalog.identifiers import check_identifier
from catalog.model import ApiToken
from mvserver import sqlstates
from mvserver.errors import SqlError

_SELECT = "SELECT name, digest, role_oid, created_at, valid_until FROM api_tokens"


class ApiTokens:
    def __init__(self, connection: CatalogConnection) -> None:
        self._connection = connection

    def all(self) -> tuple[ApiToken, ...]:
        return tuple(map(_token, self._connection.read(f"{_SELECT} ORDER BY name")))

    def find(self, name: str) -> ApiToken | None:
        rows = self._connection.read(f"{_SELECT} WHERE name = ?", (name,))
        return _token(rows[0]) if rows else None

    def by_digest(self, digest: str) -> ApiToken | None:
        rows = self._connection.read(f"{_SELECT} WHERE digest = ?", (digest,))
        return _token(rows[0]) if rows else None

    def get(self, name: str) -> ApiToken:
        found = self.find(name)
        if found is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'API token "{name}" does not exist')
        return found

    def check_new(self, name: str) -> None:
        check_identifier(name)
        if self.find(name) is not None:
            raise SqlError(sqlstates.DUPLICATE_OBJECT, f'API token "{name}" already exists')

    def add(self, token: ApiToken) -> None:
        self.check_new(token.name)
        self._connection.write(
            "INSERT INTO api_tokens VALUES (?, ?, ?, ?, ?)",
            (token.name, token.digest, token.role, token.created_at, token.valid_until),
        )

    def delete(self, name: str) -> None:
        self._connection.write("DELETE FROM api_tokens WHERE name = ?", (name,))

    def delete_of(self, role: int) -> None:
        """A role that goes takes its tokens along."""
        self._connection.write("DELETE FROM api_tokens WHERE role_oid = ?", (role,))


def _token(row: Row) -> ApiToken:
    return ApiToken(*row)
