"""Roles."""

from __future__ import annotations

from dataclasses import dataclass, field

from mvserver.sql.statements.base import Kind, RoleSpec, Statement


@dataclass(frozen=True)
class RoleOptions:
    """What a statement says of a role; None where it says nothing."""

    superuser: bool | None = None
    login: bool | None = None
    sets_password: bool = False
    password: str | None = field(default=None, repr=False)  # None with sets_password: PASSWORD NULL
    create_database: bool | None = None
    create_store: bool | None = None
    create_function: bool | None = None
    bypass_row_security: bool | None = None
    connection_limit: int | None = None
    valid_until: str | None = None
    in_roles: tuple[str, ...] = ()  # CREATE only, as the next two
    members: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateRole(Statement, kind=Kind.DDL):
    name: str
    options: RoleOptions = RoleOptions()


@dataclass(frozen=True)
class AlterRole(Statement, kind=Kind.DDL):
    name: str | None  # None: CURRENT_USER
    options: RoleOptions = RoleOptions()


@dataclass(frozen=True)
class DropRole(Statement, kind=Kind.DDL):
    names: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class RenameRole(Statement, kind=Kind.DDL):
    name: str
    new_name: str


@dataclass(frozen=True)
class AlterRoleSetting(Statement, kind=Kind.DDL):
    """``ALTER ROLE r SET x = v``; ``RESET`` where ``value`` is None, of all where ``setting`` is None too."""

    role: RoleSpec
    setting: str | None
    value: str | None


@dataclass(frozen=True)
class GrantRole(Statement, kind=Kind.DDL):
    roles: tuple[str, ...]
    to: tuple[RoleSpec, ...]
    admin_option: bool = False


@dataclass(frozen=True)
class RevokeRole(Statement, kind=Kind.DDL):
    roles: tuple[str, ...]
    of: tuple[RoleSpec, ...]
    option_only: bool = False
