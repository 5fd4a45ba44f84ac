"""The living part of pg_catalog: rows made from a catalog snapshot, one function per relation.

Every row is a mapping by column name; what is left out takes PostgreSQL's neutral value for its type (``system.py``).
``_db`` is the database a row belongs to, 0 for rows that all databases show; ``_o`` is the object of which it tells,
for roles that do not see all (``visibility.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pyarrow as pa

from catalog.model import Index, IndexColumn, Relation, StoredSelect
from mvserver.pgcatalog import (
    enum_rows,
    function_rows,
    pgtypes,
    policy_rows,
    privilege_functions,
    role_rows,
    static_data,
)
from mvserver.pgcatalog.snapshot import CatalogSnapshot, row_type_oid, rule_oid
from mvserver.pgcatalog.static_data import INFORMATION_SCHEMA, INFORMATION_SCHEMA_OID, PG_CATALOG, PG_CATALOG_OID
from mvserver.quoting import quoted
from mvserver.types import oids

Row = Mapping[str, Any]

BOOTSTRAP_ROLE_OID = 10
HEAP_AM, BTREE_AM = 2, 403
_INDEX_AMS = {"btree": BTREE_AM, "hash": 405, "gist": 783, "gin": 2742, "spgist": 4000, "brin": 3580}
DEFAULT_COLLATION = 100
MV_CATALOG_OID = 13_001
_UTF8 = 6
_RELKINDS = {"materialized view": "m", "view": "v"}  # all others are foreign tables
_CLASS_OIDS = {
    "relation": 1259,
    "schema": 2615,
    "store": 1417,
    "database": 1262,
    "role": 1260,
    "type": 1247,
}  # of pg_class etc.
_REWRITE_OID = 2618  # of pg_rewrite
_LIVE_OID = 15_000  # the first oid of mv_catalog's relations
_COLLATED = frozenset({oids.TEXT, oids.VARCHAR, oids.ARRAY_OF[oids.TEXT]})


def database_oid(snapshot: CatalogSnapshot, relation: Relation) -> int:
    schema = snapshot.schemas_by_id[relation.schema_id]
    return snapshot.databases_by_id[schema.database_id].oid


def quote(name: str) -> str:
    plain = name.replace("_", "a").isalnum() and name.isascii() and name == name.lower() and not name[:1].isdigit()
    return name if plain else quoted(name)


def index_definition(snapshot: CatalogSnapshot, relation: Relation, index: Index) -> str:
    schema = snapshot.schemas_by_id[relation.schema_id]
    columns = ", ".join(quote(column.name) + _order(column) for column in index.columns)
    return (
        f"CREATE {'UNIQUE ' if index.unique else ''}INDEX {quote(index.name)} "
        f"ON {quote(schema.name)}.{quote(relation.name)} USING {index.method} ({columns})"
        f"{'' if index.nulls_distinct else ' NULLS NOT DISTINCT'}"
    )


def _order(column: IndexColumn) -> str:
    nulls = "" if column.nulls_first == column.descending else f" NULLS {'FIRST' if column.nulls_first else 'LAST'}"
    return (" DESC" if column.descending else "") + nulls


def view_definition(snapshot: CatalogSnapshot, relation: Relation) -> str:
    """The SELECT of the CREATE statement's text; that of a view by the names that its relations have now."""
    if relation.select is not None:
        return f" {_with_present_names(snapshot, relation.select)};"
    lowered = relation.definition.lower()
    at = lowered.find("select", max(lowered.find(" as"), 0))
    return " " + (relation.definition[at:] if at >= 0 else relation.definition).rstrip("; \n") + ";"


def _with_present_names(snapshot: CatalogSnapshot, select: StoredSelect) -> str:
    text = select.text
    for source in sorted(select.sources, key=lambda source: -source.start):
        found = snapshot.relations_by_id.get(source.relation_id or "")
        if found is not None:
            path = [snapshot.schemas_by_id[found.schema_id].name, found.name]
            text = text[: source.start] + ".".join(map(quote, path)) + text[source.end :]
    return text


def _pg_database(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for database in snapshot.databases:
        yield {
            "_o": database.oid,
            "oid": database.oid, "datname": database.name, "datdba": snapshot.role_oid(database.owner),
            "encoding": _UTF8, "datlocprovider": "c", "datallowconn": True, "datconnlimit": -1, "dattablespace": 1663,
            "datcollate": "C.UTF-8", "datctype": "C.UTF-8", "datacl": role_rows.acl_texts(snapshot, database.acl),
        }  # fmt: skip


def _pg_namespace(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for oid, name in ((PG_CATALOG_OID, PG_CATALOG), (INFORMATION_SCHEMA_OID, INFORMATION_SCHEMA)):
        yield {"oid": oid, "nspname": name, "nspowner": BOOTSTRAP_ROLE_OID}
    yield {"oid": MV_CATALOG_OID, "nspname": "mv_catalog", "nspowner": BOOTSTRAP_ROLE_OID}
    for schema in snapshot.schemas:
        yield {
            "_db": snapshot.databases_by_id[schema.database_id].oid, "_o": schema.oid,
            "oid": schema.oid, "nspname": schema.name, "nspowner": snapshot.role_oid(schema.owner),
            "nspacl": role_rows.acl_texts(snapshot, schema.acl),
        }  # fmt: skip


def _pg_class(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in snapshot.relations:
        kind = _RELKINDS.get(relation.kind, "f")
        common = {
            "_db": database_oid(snapshot, relation), "_o": relation.oid,
            "relnamespace": snapshot.schemas_by_id[relation.schema_id].oid,
            "relowner": snapshot.role_oid(relation.owner), "relpersistence": "p", "relispopulated": True,
            "reltuples": -1.0,
        }  # fmt: skip
        yield {
            **common, "oid": relation.oid, "relname": relation.name, "reltype": row_type_oid(relation),
            "relkind": kind, "relnatts": len(relation.columns), "relreplident": "n" if kind == "v" else "d",
            "relhasindex": bool(relation.indexes), "relam": HEAP_AM if kind == "m" else 0,
            "relhasrules": kind in ("m", "v"),
            "relrowsecurity": relation.row_security, "relforcerowsecurity": relation.row_security_forced,
            "relacl": role_rows.acl_texts(snapshot, relation.acl),
        }  # fmt: skip
        for index in relation.indexes:
            yield {
                **common, "oid": index.oid, "relname": index.name, "relkind": "i",
                "relnatts": len(index.columns), "relreplident": "n", "relam": _INDEX_AMS[index.method],
            }  # fmt: skip


def _pg_attribute(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in snapshot.relations:
        database, shown = database_oid(snapshot, relation), {"_o": relation.oid}
        for number, declared in enumerate(relation.columns, start=1):
            pg_type = pgtypes.of_column(relation, declared)
            yield {**_attribute(relation.oid, number, declared.name, pg_type, declared.not_null, database), **shown}
        by_name = {declared.name: declared for declared in relation.columns}
        for index in relation.indexes:
            for number, column in enumerate(index.columns, start=1):
                pg_type = pgtypes.of_column(relation, by_name[column.name])
                yield {**_attribute(index.oid, number, column.name, pg_type, False, database), **shown}


def _storage(pg_type: pgtypes.PgType) -> str:
    if pg_type.oid == oids.NUMERIC:
        return "m"
    return "p" if pg_type.size > 0 else "x"


def _attribute(
    relation: int, number: int, name: str, pg_type: pgtypes.PgType, not_null: bool, database: int = 0
) -> Row:
    return {
        "_db": database, "attrelid": relation, "attname": name, "atttypid": pg_type.oid, "attstattarget": -1,
        "attlen": pg_type.size, "attnum": number, "attcacheoff": -1, "atttypmod": pg_type.typmod,
        "attbyval": 0 < pg_type.size <= 8, "attalign": "i", "attstorage": _storage(pg_type),
        "attnotnull": not_null, "attislocal": True,
        "attcollation": DEFAULT_COLLATION if pg_type.oid in _COLLATED else 0,
    }  # fmt: skip


def _pg_type(snapshot: CatalogSnapshot) -> Iterator[Row]:
    """Row types of relations; the built-in types are constant."""
    for relation in snapshot.relations:
        yield {
            "_db": database_oid(snapshot, relation), "_o": relation.oid,
            "oid": row_type_oid(relation), "typname": relation.name,
            "typnamespace": snapshot.schemas_by_id[relation.schema_id].oid,
            "typowner": snapshot.role_oid(relation.owner), "typlen": -1, "typtype": "c", "typcategory": "C",
            "typisdefined": True, "typdelim": ",", "typrelid": relation.oid, "typalign": "d", "typstorage": "x",
            "typtypmod": -1,
            "typinput": 2290, "typoutput": 2291, "typreceive": 2402, "typsend": 2403,
        }  # fmt: skip
    yield from enum_rows.types(snapshot)


@cache
def _operator_classes() -> dict[int, int]:
    """Default btree operator class by type."""
    names, lines = static_data.rows_of("pg_opclass")
    method, oid, default, of = (names.index(name) for name in ("opcmethod", "oid", "opcdefault", "opcintype"))
    return {
        int(line[of] or 0): int(line[oid] or 0)
        for line in lines
        if line[method] == str(BTREE_AM) and line[default] == "t"
    }


def _operator_class(relation: Relation, key: str) -> int:
    column = next(column for column in relation.columns if column.name == key)
    return _operator_classes().get(pgtypes.of_column(relation, column).oid, 0)


def _pg_index(snapshot: CatalogSnapshot) -> Iterator[Row]:
    """What CREATE INDEX has made, as in PostgreSQL. The key of a view is none: tools that compare indexes with those
    that they have made would drop it."""
    for relation in snapshot.relations:
        numbers = {column.name: number for number, column in enumerate(relation.columns, start=1)}
        for index in relation.indexes:
            names = [column.name for column in index.columns]
            yield {
                "_db": database_oid(snapshot, relation), "_o": relation.oid,
                "indexrelid": index.oid, "indrelid": relation.oid,
                "indnatts": len(names), "indnkeyatts": len(names), "indisunique": index.unique,
                "indnullsnotdistinct": not index.nulls_distinct,
                "indimmediate": True, "indisvalid": True, "indisready": True, "indislive": True,
                "indkey": [numbers[name] for name in names], "indcollation": [0] * len(names),
                "indclass": [_operator_class(relation, name) for name in names],
                "indoption": [int(c.descending) + 2 * int(c.nulls_first) for c in index.columns],
            }  # fmt: skip


def _pg_foreign_data_wrapper(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for number, kind in enumerate(sorted({store.type for store in snapshot.stores})):
        yield {"oid": 13_100 + number, "fdwname": kind.lower(), "fdwowner": BOOTSTRAP_ROLE_OID}


def _pg_foreign_server(snapshot: CatalogSnapshot) -> Iterator[Row]:
    wrappers = {kind: 13_100 + n for n, kind in enumerate(sorted({store.type for store in snapshot.stores}))}
    for store in snapshot.stores:
        yield {
            "_o": store.oid, "oid": store.oid, "srvname": store.name, "srvowner": snapshot.role_oid(store.owner),
            "srvfdw": wrappers[store.type], "srvacl": role_rows.acl_texts(snapshot, store.acl),
        }  # fmt: skip


def _pg_foreign_table(snapshot: CatalogSnapshot) -> Iterator[Row]:
    servers = {store.id: store.oid for store in snapshot.stores}
    for relation in snapshot.relations:
        if relation.kind not in _RELKINDS:
            yield {
                "_db": database_oid(snapshot, relation), "_o": relation.oid, "ftrelid": relation.oid,
                "ftserver": servers.get(relation.store_id or "", 0),
                "ftoptions": [f"topic={relation.entity}"] if relation.entity else [],
            }  # fmt: skip


def _pg_matviews(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in snapshot.relations:
        if relation.kind == "materialized view":
            yield {
                "_db": database_oid(snapshot, relation), "_o": relation.oid,
                "schemaname": snapshot.schemas_by_id[relation.schema_id].name, "matviewname": relation.name,
                "matviewowner": relation.owner, "hasindexes": bool(relation.indexes), "ispopulated": True,
                "definition": view_definition(snapshot, relation),
            }  # fmt: skip


def _pg_views(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in snapshot.relations:
        if relation.select is not None:
            yield {
                "_db": database_oid(snapshot, relation), "_o": relation.oid,
                "schemaname": snapshot.schemas_by_id[relation.schema_id].name, "viewname": relation.name,
                "viewowner": relation.owner, "definition": view_definition(snapshot, relation),
            }  # fmt: skip


def _pg_rewrite(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in snapshot.relations:
        if relation.select is not None:
            yield {
                "_db": database_oid(snapshot, relation), "_o": relation.oid,
                "oid": rule_oid(relation), "rulename": "_RETURN", "ev_class": relation.oid, "ev_type": "1",
                "ev_enabled": "O", "is_instead": True,
            }  # fmt: skip


def _pg_depend(snapshot: CatalogSnapshot) -> Iterator[Row]:
    """Of views on what they read: tools order relations by it."""
    for relation in snapshot.relations:
        if relation.select is None:
            continue
        common = {
            "_db": database_oid(snapshot, relation), "_o": relation.oid, "classid": _REWRITE_OID,
            "objid": rule_oid(relation), "refclassid": _CLASS_OIDS["relation"],
        }  # fmt: skip
        yield {**common, "refobjid": relation.oid, "deptype": "i"}
        ids = dict.fromkeys(source.relation_id for source in relation.select.sources if source.relation_id)
        for id_ in ids:
            yield {**common, "refobjid": snapshot.relations_by_id[id_].oid, "deptype": "n"}


def _pg_indexes(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in snapshot.relations:
        for index in relation.indexes:
            yield {
                "_db": database_oid(snapshot, relation), "_o": relation.oid,
                "schemaname": snapshot.schemas_by_id[relation.schema_id].name, "tablename": relation.name,
                "indexname": index.name, "indexdef": index_definition(snapshot, relation, index),
            }  # fmt: skip


def _pg_description(snapshot: CatalogSnapshot) -> Iterator[Row]:
    """Comments on what is in a database; those on stores are shown in all."""
    databases: dict[tuple[str, int], list[int]] = {
        ("relation", each.oid): [database_oid(snapshot, each)] for each in snapshot.relations
    }
    databases |= {
        ("type", each.oid): [snapshot.databases_by_id[snapshot.schemas_by_id[each.schema_id].database_id].oid]
        for each in snapshot.enums
    }
    databases |= {("schema", s.oid): [snapshot.databases_by_id[s.database_id].oid] for s in snapshot.schemas}
    databases |= {("store", store.oid): [each.oid for each in snapshot.databases] for store in snapshot.stores}
    for comment in snapshot.comments:
        for database in databases.get((comment.kind, comment.oid), ()):
            yield {
                "_db": database, "_o": comment.oid, "objoid": comment.oid, "classoid": _CLASS_OIDS[comment.kind],
                "objsubid": comment.column_number, "description": comment.text,
            }  # fmt: skip


def _pg_shdescription(snapshot: CatalogSnapshot) -> Iterator[Row]:
    """Comments on what all databases share."""
    for comment in snapshot.comments:
        if comment.kind in ("database", "role"):
            yield {
                "_o": comment.oid if comment.kind == "database" else 0, "objoid": comment.oid,
                "classoid": _CLASS_OIDS[comment.kind], "description": comment.text,
            }  # fmt: skip


def _system_tables() -> Iterator[Row]:
    for item in static_data.relations():
        if item.kind == "r":
            yield {"schemaname": item.schema, "tablename": item.name, "tableowner": "postgres"}


def _system_views() -> Iterator[Row]:
    for item in static_data.relations():
        if item.kind == "v":
            yield {"schemaname": item.schema, "viewname": item.name, "viewowner": "postgres", "definition": ""}


def _definitions(snapshot: CatalogSnapshot) -> Iterator[Row]:
    """Not PostgreSQL's: what pg_get_viewdef and pg_get_indexdef look up."""
    for relation in snapshot.relations:
        if relation.kind in _RELKINDS:
            yield {"_o": relation.oid, "oid": relation.oid, "definition": view_definition(snapshot, relation)}
        for index in relation.indexes:
            definition = index_definition(snapshot, relation, index)
            yield {"_o": relation.oid, "oid": index.oid, "definition": definition}


def _states(snapshot: CatalogSnapshot) -> Iterator[Row]:
    """Not PostgreSQL's: the ids by which the states of views are stored."""
    for relation in snapshot.relations:
        if _RELKINDS.get(relation.kind) == "m":
            yield {"_o": relation.oid, "oid": relation.oid, "id": relation.id}


def _system_classes() -> Iterator[Row]:
    for item in static_data.relations():
        yield {
            "oid": item.oid, "relname": item.name, "relkind": item.kind, "relnatts": len(item.columns),
            "relnamespace": PG_CATALOG_OID if item.schema == PG_CATALOG else INFORMATION_SCHEMA_OID,
            "relowner": BOOTSTRAP_ROLE_OID, "relpersistence": "p", "relispopulated": True, "relreplident": "n",
            "reltuples": -1.0, "relam": HEAP_AM if item.kind == "r" else 0,
        }  # fmt: skip


def _system_attributes() -> Iterator[Row]:
    for item in static_data.relations():
        for number, column in enumerate(item.columns, start=1):
            yield _attribute(item.oid, number, column.name, pgtypes.PgType(column.pg_oid), column.not_null)


def live_rows(names: Mapping[str, pa.Schema]) -> tuple[list[Row], list[Row]]:
    """pg_class and pg_attribute rows of the mv_catalog relations, whose columns only their makers know."""
    classes: list[Row] = []
    attributes: list[Row] = []
    for oid, name in enumerate(sorted(names), start=_LIVE_OID):
        schema = names[name]
        classes.append({
            "oid": oid, "relname": name, "relkind": "v", "relnatts": len(schema), "relnamespace": MV_CATALOG_OID,
            "relowner": BOOTSTRAP_ROLE_OID, "relpersistence": "p", "relispopulated": True, "relreplident": "n",
            "reltuples": -1.0,
        })  # fmt: skip
        for number, field in enumerate(schema, start=1):
            attributes.append(_attribute(oid, number, field.name, _arrow_type(field.type), False))
    return classes, attributes


def _arrow_type(found: pa.DataType) -> pgtypes.PgType:
    for matches, oid in _ARROW:
        if matches(found):
            return pgtypes.PgType(oid)
    return pgtypes.PgType(oids.TEXT)


_ARROW: tuple[tuple[Callable[[pa.DataType], bool], int], ...] = (
    (pa.types.is_boolean, oids.BOOL), (pa.types.is_int64, oids.INT8), (pa.types.is_int32, oids.INT4),
    (pa.types.is_int16, oids.INT2), (pa.types.is_float64, oids.FLOAT8), (pa.types.is_binary, oids.BYTEA),
    (pa.types.is_date, oids.DATE), (pa.types.is_decimal, oids.NUMERIC),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, oids.TIMESTAMPTZ),
    (pa.types.is_timestamp, oids.TIMESTAMP),
)  # fmt: skip

CONSTANT: dict[str, Callable[[], Iterator[Row]]] = {
    "pg_class": _system_classes, "pg_attribute": _system_attributes, "pg_tables": _system_tables,
    "pg_views": _system_views,
}  # fmt: skip
"""Rows that are made once and stay: they have ``_db`` 0."""

LIVING: dict[str, Callable[[CatalogSnapshot], Iterator[Row]]] = {
    "pg_database": _pg_database, "pg_namespace": _pg_namespace, "pg_class": _pg_class, "pg_attribute": _pg_attribute,
    "pg_type": _pg_type, "pg_enum": enum_rows.labels, "pg_index": _pg_index,
    "pg_proc": function_rows.functions, "pg_language": function_rows.languages,
    "pg_foreign_data_wrapper": _pg_foreign_data_wrapper,
    "pg_foreign_server": _pg_foreign_server, "pg_foreign_table": _pg_foreign_table, "pg_roles": role_rows.roles,
    "pg_authid": role_rows.authid, "pg_user": role_rows.users, "pg_matviews": _pg_matviews, "pg_indexes": _pg_indexes,
    "pg_views": _pg_views, "pg_rewrite": _pg_rewrite, "pg_depend": _pg_depend,
    "pg_policy": policy_rows.policy, "pg_policies": policy_rows.policies,
    "pg_description": _pg_description, "pg_shdescription": _pg_shdescription,
    "pg_auth_members": role_rows.members, "pg_db_role_setting": role_rows.settings,
    "pg_default_acl": role_rows.default_privileges, "_definitions": _definitions, "_states": _states,
    "_grants": privilege_functions.grants, "_powers": privilege_functions.powers,
}  # fmt: skip
