"""The rows of pg_catalog that tell of roles, and lists of privileges as PostgreSQL writes them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping
from typing import Any

from catalog import acl
from mvserver.pgcatalog.snapshot import CatalogSnapshot

Row = Mapping[str, Any]


def acl_texts(snapshot: CatalogSnapshot, list_: acl.Acl | None) -> list[str] | None:
    return None if list_ is None else acl.texts(list_, snapshot.role_names)


def moment(seconds: float | None) -> dt.datetime | None:
    """Infinity is shown as the last moment there is."""
    if seconds is None:
        return None
    if math.isinf(seconds):
        return dt.datetime.max.replace(tzinfo=dt.UTC) if seconds > 0 else dt.datetime.min.replace(tzinfo=dt.UTC)
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def roles(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for role in snapshot.roles:
        yield {
            "oid": role.oid, "rolname": role.name, "rolsuper": role.superuser, "rolinherit": True,
            "rolcreaterole": role.superuser, "rolcreatedb": role.create_database or role.superuser,
            "rolcanlogin": role.can_login, "rolconnlimit": role.connection_limit, "rolpassword": "********",
            "rolvaliduntil": moment(role.valid_until),
            "rolconfig": [f"{name}={value}" for name, value in role.settings] or None,
            "rolreplication": role.superuser, "rolbypassrls": role.bypass_row_security or role.superuser,
        }  # fmt: skip


def authid(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for row in roles(snapshot):
        yield {**row, "rolpassword": None}


def users(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for role in snapshot.roles:
        if role.can_login:
            yield {
                "usename": role.name,
                "usesysid": role.oid,
                "usecreatedb": role.create_database or role.superuser,
                "usesuper": role.superuser,
                "valuntil": moment(role.valid_until),
                "useconfig": [f"{name}={value}" for name, value in role.settings] or None,
            }


def members(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for each in snapshot.memberships:
        yield {"roleid": each.role, "member": each.member, "grantor": each.grantor, "admin_option": each.admin}


_DEFAULT_ACL_OID = 0x2000_0000
_DEFAULT_KINDS = {acl.ObjectKind.RELATION: "r", acl.ObjectKind.SCHEMA: "n"}


def default_privileges(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for each in snapshot.default_privileges:
        schema = snapshot.schemas_by_id.get(each.schema_id or "")
        yield {
            "_db": 0 if schema is None else snapshot.databases_by_id[schema.database_id].oid,
            "_o": 0 if schema is None else schema.oid, "oid": _DEFAULT_ACL_OID | each.number,
            "defaclrole": each.role, "defaclnamespace": 0 if schema is None else schema.oid,
            "defaclobjtype": _DEFAULT_KINDS[each.kind], "defaclacl": acl_texts(snapshot, each.acl),
        }  # fmt: skip


def settings(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for role in snapshot.roles:
        if role.settings:
            yield {"setrole": role.oid, "setconfig": [f"{name}={value}" for name, value in role.settings]}
