"""Functions of users in pg_proc, and their language in pg_language as soon as there is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mvserver.pgcatalog.role_rows import acl_texts
from mvserver.pgcatalog.snapshot import CatalogSnapshot
from mvserver.sql.types import SqlType, parse_type
from mvserver.types import oids

Row = Mapping[str, Any]
_LANGUAGE_OIDS = {"python": 13_990, "java": 13_991}  # below those of users' objects, and none of PostgreSQL's


def functions(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for each in snapshot.functions:
        schema = snapshot.schemas_by_id[each.schema_id]
        types = [_oid(parse_type(type_)) for _, type_ in each.parameters]
        yield {
            "_db": snapshot.databases_by_id[schema.database_id].oid, "_o": each.oid, "oid": each.oid,
            "proname": each.name, "pronamespace": schema.oid, "proowner": snapshot.role_oid(each.owner),
            "prolang": _LANGUAGE_OIDS[each.language], "procost": 100.0, "prorows": 0.0,
            "prokind": "a" if each.aggregate else "f", "prosecdef": False, "proleakproof": False,
            "proisstrict": each.strict, "proretset": False, "provolatile": "i",
            "proparallel": "s", "pronargs": len(types), "pronargdefaults": 0,
            "prorettype": _oid(parse_type(each.result)), "proargtypes": types,
            "proargnames": [name for name, _ in each.parameters] or None, "prosrc": each.body,
            "proacl": acl_texts(snapshot, each.acl),
        }  # fmt: skip


def languages(snapshot: CatalogSnapshot) -> Iterator[Row]:
    used = {(snapshot.schemas_by_id[each.schema_id].database_id, each.language) for each in snapshot.functions}
    for database_id, language in sorted(used):
        yield {
            "_db": snapshot.databases_by_id[database_id].oid, "oid": _LANGUAGE_OIDS[language], "lanname": language,
            "lanowner": 10,
            "lanispl": True, "lanpltrusted": False,
        }  # fmt: skip


def _oid(type_: SqlType) -> int:
    if type_.element is not None:
        return oids.ARRAY_OF.get(type_.element.kind.row.oid or 0, oids.ANYARRAY)
    return type_.kind.row.oid or oids.TEXT
