"""Unity Catalog over its REST API: which tables there are, and the registration of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import requests

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of

_API = "/api/2.1/unity-catalog"
_HIDDEN_SCHEMA = "information_schema"
_HIDDEN_CATALOGS = ("SYSTEM_CATALOG", "INTERNAL_CATALOG")  # types of catalogs that are the service's own


@dataclass(frozen=True)
class RegisteredTable:
    name: str  # catalog.schema.table
    type: str  # "EXTERNAL", "MANAGED", "VIEW", …
    format: str  # "DELTA", …
    location: str | None


class UnityCatalog:
    """Of one workspace. A redirection is not followed: the token is meant for nobody else."""

    def __init__(self, store: str, workspace: str, token: str, *, timeout_s: float) -> None:
        self._store = store
        self._base = workspace + _API
        self._timeout_s = timeout_s
        self._session = requests.Session()
        self._session.trust_env = False  # no netrc: the token is the store's
        self._session.headers["Authorization"] = f"Bearer {token}"

    def check(self) -> None:
        next(iter(self._pages("/catalogs", "catalogs", {"max_results": "1"})), None)

    def tables(self) -> Iterator[RegisteredTable]:
        for catalog in self._pages("/catalogs", "catalogs", {}):
            if catalog.get("catalog_type") in _HIDDEN_CATALOGS:
                continue
            for schema in self._pages("/schemas", "schemas", {"catalog_name": catalog["name"]}):
                if schema["name"] == _HIDDEN_SCHEMA:
                    continue
                place = {"catalog_name": catalog["name"], "schema_name": schema["name"]}
                for table in self._pages("/tables", "tables", place):
                    yield _table(table)

    def table(self, name: str) -> RegisteredTable | None:
        answer = self._ask("GET", f"/tables/{quote(name, safe='')}", missing_is_none=True)
        return None if answer is None else self._read(lambda: _table(answer))

    def register(self, name: str, location: str, columns: list[dict[str, Any]]) -> None:
        catalog, schema, table = name.split(".")
        body = {
            "catalog_name": catalog, "schema_name": schema, "name": table, "table_type": "EXTERNAL",
            "data_source_format": "DELTA", "storage_location": location, "columns": columns,
        }  # fmt: skip
        self._ask("POST", "/tables", body=body)

    def deregister(self, name: str) -> None:
        self._ask("DELETE", f"/tables/{quote(name, safe='')}")

    def close(self) -> None:
        self._session.close()

    def _pages(self, path: str, key: str, given: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        token: str | None = None
        while True:
            answer = self._ask("GET", path, parameters={**given, **({"page_token": token} if token else {})})
            yield from self._read(lambda answer=answer: list(answer.get(key) or ()))
            token = answer.get("next_page_token")
            if not token:
                return

    def _ask(
        self,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        body: Any = None,
        missing_is_none: bool = False,
    ) -> Any:
        try:
            answer = self._session.request(
                method, self._base + path, params=parameters, json=body, timeout=self._timeout_s, allow_redirects=False
            )
        except requests.RequestException as error:
            raise self._away(words_of(error)) from error
        if answer.status_code == requests.codes.not_found and missing_is_none:
            return None
        if answer.status_code != requests.codes.ok:
            raise self._refused(answer)
        return self._read(answer.json)

    def _read(self, read: Any) -> Any:
        try:
            return read()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SqlError(
                sqlstates.SYSTEM_ERROR, f'store "{self._store}" gave an answer that is not understood'
            ) from error

    def _refused(self, answer: requests.Response) -> SqlError:
        status, words = answer.status_code, _words(answer)
        if status in (requests.codes.unauthorized, requests.codes.forbidden):
            return SqlError(
                sqlstates.INSUFFICIENT_PRIVILEGE, f'store "{self._store}" refuses the access token', detail=words
            )
        if status == requests.codes.conflict or "ALREADY_EXISTS" in words:
            return SqlError(sqlstates.DUPLICATE_OBJECT, f'store "{self._store}" has such a table already', detail=words)
        if status in (requests.codes.bad_request, requests.codes.not_found):
            return SqlError(
                sqlstates.INVALID_PARAMETER_VALUE, f'store "{self._store}" refuses the request', detail=words
            )
        return self._away(words)

    def _away(self, words: str) -> SqlError:
        return SqlError(
            sqlstates.CONNECTION_FAILURE, f'could not connect to store "{self._store}"', detail=f"{words.rstrip('.')}."
        )


def _table(answer: Mapping[str, Any]) -> RegisteredTable:
    return RegisteredTable(
        name=".".join(str(answer[part]) for part in ("catalog_name", "schema_name", "name")),
        type=str(answer.get("table_type") or "EXTERNAL"),
        format=str(answer.get("data_source_format") or ""),
        location=answer.get("storage_location") or None,
    )


def _words(answer: requests.Response) -> str:
    try:
        found = answer.json()
        words = f"{found.get('error_code', '')}: {found.get('message', '')}".strip(": ")
    except (ValueError, AttributeError):
        words = ""
    return f"{(words or f'HTTP {answer.status_code}')[:500].rstrip('.')}."
