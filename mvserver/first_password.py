"""The password of the role that every server begins with: without one nobody could log in to set the others.

It comes from the variable MVSERVER_SUPERUSER_PASSWORD at a start (where the role has none yet, as in the images of
PostgreSQL), or from ``mvserver init``, which also mends a lost one. The variable is taken out of the environment, which
child processes would inherit.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from dataclasses import replace
from pathlib import Path

from catalog.store import Catalog
from mvserver import sqlstates
from mvserver.auth import passwords
from mvserver.errors import SqlError

VARIABLE = "MVSERVER_SUPERUSER_PASSWORD"


def take(environment: MutableMapping[str, str] | None = None) -> str | None:
    """The variable's value, None where it is not set or empty; afterwards it is not there."""
    variables = os.environ if environment is None else environment
    return variables.pop(VARIABLE, None) or None


def provide(catalog: Catalog, password: str | None, encryption: str) -> None:
    """At a start: the first password of the first role, unless it has one."""
    if password is not None and catalog.roles.bootstrap().password is None:
        _set(catalog, password, encryption)


def require(catalog: Catalog) -> None:
    """F0000 where nobody could log in."""
    if not any(role.can_login and role.password is not None for role in catalog.roles.all()):
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR,
            "no role has a password, so that nobody could log in",
            hint=f"Run mvserver init with the same --data-dir, or set the variable {VARIABLE}.",
        )


def initialize(data_directory: Path, password: str, encryption: str) -> str:
    """``mvserver init``: makes the catalog where there is none; returns the role's name."""
    if not password:
        raise SqlError(sqlstates.INVALID_PASSWORD, "empty string is not a valid password")
    catalog = Catalog.open(data_directory / "catalog.db")
    try:
        return _set(catalog, password, encryption)
    finally:
        catalog.close()


def _set(catalog: Catalog, password: str, encryption: str) -> str:
    role = catalog.roles.bootstrap()
    verifier = passwords.stored(password, role.name, encryption)
    with catalog.transaction():
        catalog.roles.update(replace(role, can_login=True, password=verifier))
    return role.name
