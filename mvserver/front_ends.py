"""The front ends as the settings want them: PostgreSQL's wire, and HTTP where it has a port. Both listen when made."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from catalog.store import Catalog
from mvserver import config, first_password, sqlstates
from mvserver.auth.password_check import PasswordCheck
from mvserver.auth.password_source import CatalogPasswords, CatalogTokens
from mvserver.errors import SqlError
from mvserver.front import Backend, ServedViews
from mvserver.pgwire.authentication import PasswordAuthentication
from mvserver.pgwire.server import PgWireServer
from mvserver.pgwire.tls import Tls

if TYPE_CHECKING:
    from mvserver.http.server import HttpServer


def password_check(catalog: Catalog, settings: config.ServerSettings) -> PasswordCheck | None:
    """None for trust, which front ends keep to loopback."""
    if settings.authentication == "trust":
        return None
    first_password.require(catalog)
    source = CatalogPasswords(catalog)
    return PasswordCheck(source, secret=source.secret(), md5=settings.authentication == "md5")


async def start_wire(
    backend: Backend, settings: config.ServerSettings, tls: Tls | None, check: PasswordCheck | None
) -> PgWireServer:
    # A thread for each connection that has work: statements may wait for Spark, a view or a client for long.
    wire = PgWireServer(
        backend,
        settings.host,
        settings.port,
        authentication=None if check is None else PasswordAuthentication(check),
        authentication_timeout_s=settings.authentication_timeout,
        connections_max=settings.max_connections,
        tls=tls,
    )
    try:
        await wire.start()
    except OSError as error:
        raise _cannot_listen(settings.host, settings.port, "--port", error) from error
    return wire


async def start_http(
    backend: Backend,
    views: ServedViews,
    catalog: Catalog,
    problem: Callable[[], str | None],
    settings: config.ServerSettings,
    tls: Tls | None,
    check: PasswordCheck | None,
) -> HttpServer | None:
    """None where the settings have no port for it. ``problem`` says why nothing is computed now."""
    if settings.http_port is None:
        return None
    try:
        from mvserver.http.server import HttpServer
    except ModuleNotFoundError as error:
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR,
            "the setting http_port needs packages that are not installed",
            detail=f'There is no package "{error.name}".',
            hint="Run pip install 'mvserver[web]', or leave http_port empty.",
        ) from error
    http = HttpServer(
        backend,
        views,
        CatalogTokens(catalog),
        settings.host,
        settings.http_port,
        check=check,
        problem=problem,
        tls=None if tls is None else tls.context,
        origins=settings.http_cors_origins,
        workers=settings.max_connections,
        connections_max=settings.http_max_connections,
        first_request_s=settings.authentication_timeout,
    )
    try:
        await http.start()
    except OSError as error:
        raise _cannot_listen(settings.host, settings.http_port, "--http-port", error) from error
    return http


def _cannot_listen(host: str, port: int, flag: str, error: OSError) -> SqlError:
    return SqlError(
        sqlstates.CONFIG_FILE_ERROR,
        f"cannot listen on {host}:{port}",
        detail=f"{os.strerror(error.errno) if error.errno else error}.",
        hint=f"Is another server running there? If not, wait a few seconds and retry, or choose another {flag}.",
    )
