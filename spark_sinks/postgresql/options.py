"""The options of a store of TYPE POSTGRESQL: one database of a server, and how to log in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.property_values import boolean, configured_file, conflict, printable, refuse_unknown
from spark_sinks.store_kind import REGION

_ACCEPTED = (
    "type",
    "uris",
    *REGION,  # the uris say better where a server is
    "postgres.username",
    "postgres.password",
    "tls.disabled",
    "tls.verify_server_hostname",
    "tls.ca_cert_file",
)
_SCHEMES = ("postgresql", "postgres")
_HOST = re.compile(r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_PORT = 5432
_HINT = "Give one server and its database: 'uris' = 'postgresql://host:5432/database'."


@dataclass(frozen=True)
class PostgresOptions:
    """``ca_file`` is a file of the configured folders with the certificates that the server's is compared with."""

    host: str
    port: int
    database: str
    username: str
    password: str | None = field(default=None, repr=False)
    tls: bool = True
    verify_hostname: bool = True
    ca_file: Path | None = None
    region: str | None = None

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, Any], *, certificate_folders: Sequence[Path] = ()
    ) -> PostgresOptions:
        """Checks a store's properties; 22023 for what is wrong in them, 42501 for a file that is not open to stores."""
        refuse_unknown("POSTGRESQL", properties, _ACCEPTED)
        host, port, database = _address(properties.get("uris"))
        password = properties.get("postgres.password")
        ca_file = properties.get("tls.ca_cert_file")
        disabled = boolean(properties, "tls.disabled", default=None)
        if disabled and ca_file is not None:
            raise conflict("tls.ca_cert_file", "tls.disabled")
        # A password never travels in the clear unless the statement says so.
        tls = not disabled if disabled is not None else password is not None or ca_file is not None
        return cls(
            host,
            port,
            database,
            _text(properties, "postgres.username", required=True) or "",
            _text(properties, "postgres.password"),
            tls,
            bool(boolean(properties, "tls.verify_server_hostname", default=True)),
            None if ca_file is None else configured_file("tls.ca_cert_file", ca_file, certificate_folders),
            next((str(properties[key]) for key in REGION if properties.get(key) is not None), None),
        )

    def conninfo(self) -> dict[str, str]:
        """libpq's parameters. Nothing of the environment or of a service file is left to choose."""
        verified = self.ca_file is not None
        mode = ("verify-full" if self.verify_hostname else "verify-ca") if verified else "require"
        return {
            "host": self.host,
            "port": str(self.port),
            "dbname": self.database,
            "user": self.username,
            "password": self.password or "",
            "passfile": "/dev/null/none",
            "sslmode": mode if self.tls else "disable",
            "sslrootcert": str(self.ca_file) if verified else "",
            "gssencmode": "disable",
        }


def _address(value: object) -> tuple[str, int, str]:
    if not isinstance(value, str) or not value.strip():
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, 'a store of type POSTGRESQL needs the property "uris"', hint=_HINT
        )
    text = value.strip()
    parts = urlsplit(text if "://" in text else f"postgresql://{text}")
    try:
        port = _PORT if parts.port is None else parts.port
    except ValueError:
        port = 0
    host, database = parts.hostname or "", unquote(parts.path.removeprefix("/"))
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            'property "uris" has more than a server and a database',
            hint="Give the user with 'postgres.username' and 'postgres.password', which are kept secret.",
        )
    known = parts.scheme in _SCHEMES and _HOST.fullmatch(f"[{host}]" if ":" in host else host) is not None
    if not known or port == 0 or not database or "/" in database or "\0" in database:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "uris" has "{text}", which is not host:port/database',
            hint=_HINT,
        )
    return host, port, database


def _text(properties: Mapping[str, Any], key: str, *, required: bool = False) -> str | None:
    if properties.get(key) is None and required:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'a store of type POSTGRESQL needs the property "{key}"',
            hint="The user needs the attribute REPLICATION, and must own the tables that are read.",
        )
    return printable(properties, key)
