"""The living part of information_schema.

PostgreSQL leaves materialized views out of information_schema; tools that read nothing else would then see an empty
database, so ours lists them as views (``tables``, ``columns``, ``views``), and streams as foreign tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from catalog import acl
from catalog.model import Column, Relation
from mvserver.pgcatalog import pgtypes
from mvserver.pgcatalog.rows import Row, database_oid, view_definition
from mvserver.pgcatalog.snapshot import CatalogSnapshot
from mvserver.pgcatalog.static_data import INFORMATION_SCHEMA, PG_CATALOG, type_spellings
from mvserver.sql.types import Kind
from mvserver.types import oids

_DATA_TYPES: dict[int, str] = {
    **{kind.row.oid: kind.row.name for kind in Kind if kind.row.oid and kind.row.name and kind.row.spark_class},
    oids.INT2: "smallint", oids.INTERVAL: "interval", oids.NUMERIC: "numeric", oids.JSON: "json", oids.UUID: "uuid",
}  # fmt: skip

_VIEWS = frozenset({"materialized view", "view"})
_BITS = {oids.INT2: 16, oids.INT4: 32, oids.INT8: 64, oids.FLOAT4: 24, oids.FLOAT8: 53}


def _place(snapshot: CatalogSnapshot, relation: Relation) -> tuple[str, str]:
    schema = snapshot.schemas_by_id[relation.schema_id]
    return snapshot.databases_by_id[schema.database_id].name, schema.name


def _schemata(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for database in snapshot.databases:
        for name in (PG_CATALOG, INFORMATION_SCHEMA):
            yield {
                "_db": database.oid, "catalog_name": database.name, "schema_name": name, "schema_owner": "postgres",
            }  # fmt: skip
    for schema in snapshot.schemas:
        database = snapshot.databases_by_id[schema.database_id]
        yield {
            "_db": database.oid, "_o": schema.oid, "catalog_name": database.name, "schema_name": schema.name,
            "schema_owner": schema.owner,
        }  # fmt: skip


def _character_sets(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for database in snapshot.databases:
        yield {
            "_db": database.oid, "character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8",
            "default_collate_catalog": database.name, "default_collate_schema": PG_CATALOG,
            "default_collate_name": "C.UTF-8",
        }  # fmt: skip


def _tables(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in snapshot.relations:
        database, schema = _place(snapshot, relation)
        yield {
            "_db": database_oid(snapshot, relation), "_o": relation.oid,
            "table_catalog": database, "table_schema": schema,
            "table_name": relation.name, "table_type": "VIEW" if relation.kind in _VIEWS else "FOREIGN",
            "is_insertable_into": "NO", "is_typed": "NO",
        }  # fmt: skip


def _views(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in snapshot.relations:
        if relation.kind in _VIEWS:
            database, schema = _place(snapshot, relation)
            yield {
                "_db": database_oid(snapshot, relation), "_o": relation.oid,
                "table_catalog": database, "table_schema": schema,
                "table_name": relation.name, "view_definition": view_definition(snapshot, relation),
                "check_option": "NONE", "is_updatable": "NO", "is_insertable_into": "NO", "is_trigger_updatable": "NO",
                "is_trigger_deletable": "NO", "is_trigger_insertable_into": "NO",
            }  # fmt: skip


def _columns(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for relation in snapshot.relations:
        database, schema = _place(snapshot, relation)
        for number, column in enumerate(relation.columns, start=1):
            yield {
                "_db": database_oid(snapshot, relation), "_o": relation.oid,
                "table_catalog": database, "table_schema": schema,
                "table_name": relation.name, "udt_catalog": database, **_column(relation, column, number),
            }  # fmt: skip


def _column(relation: Relation, column: Column, number: int) -> Row:
    pg_type = pgtypes.of_column(relation, column)
    element = oids.ELEMENT_OF.get(pg_type.oid)
    data_type = "ARRAY" if element else _DATA_TYPES.get(pg_type.oid) or type_spellings()[pg_type.oid]
    udt = f"_{oids.TYPE_NAMES[element]}" if element else oids.TYPE_NAMES[pg_type.oid]
    modifier = pg_type.typmod - 4 if pg_type.oid == oids.NUMERIC and pg_type.typmod >= 0 else None
    row: dict[str, object] = {
        "column_name": column.name, "ordinal_position": number, "is_nullable": "NO" if column.not_null else "YES",
        "data_type": data_type, "udt_schema": PG_CATALOG, "udt_name": udt, "dtd_identifier": str(number),
        "is_self_referencing": "NO", "is_identity": "NO", "identity_cycle": "NO", "is_generated": "NEVER",
        "is_updatable": "NO",
    }  # fmt: skip
    if pg_type.oid in _BITS:
        integer = pg_type.oid in (oids.INT2, oids.INT4, oids.INT8)
        row.update(
            numeric_precision=_BITS[pg_type.oid], numeric_precision_radix=2, numeric_scale=0 if integer else None
        )
    if pg_type.oid == oids.NUMERIC:
        row["numeric_precision_radix"] = 10
    if modifier is not None:
        row.update(numeric_precision=modifier >> 16, numeric_scale=modifier & 0xFFFF)
    if pg_type.oid in (oids.TIME, oids.TIMESTAMP, oids.TIMESTAMPTZ, oids.INTERVAL):
        row["datetime_precision"] = 6
    if pg_type.oid == oids.DATE:
        row["datetime_precision"] = 0
    if pg_type.oid == oids.TEXT:
        row["character_octet_length"] = 1_073_741_824
    return row


def _catalog_name(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for database in snapshot.databases:
        yield {"_db": database.oid, "catalog_name": database.name}


def _enabled_roles(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for role in snapshot.roles:
        yield {"role_name": role.name}


def _privileges(snapshot: CatalogSnapshot) -> Iterator[Row]:
    """An owner's own are among them, as PostgreSQL has them."""
    for relation in snapshot.relations:
        database, schema = _place(snapshot, relation)
        owner = snapshot.role_oid(relation.owner)
        for item in relation.acl if relation.acl is not None else acl.default(acl.ObjectKind.RELATION, owner):
            for privilege in acl.Privilege:
                if privilege in item.privileges:
                    grantable = privilege in item.grantable or item.grantee == owner
                    yield {
                        "_db": database_oid(snapshot, relation), "_o": relation.oid, "table_catalog": database,
                        "table_schema": schema, "table_name": relation.name, "privilege_type": privilege.name,
                        "grantor": snapshot.role_names.get(item.grantor),
                        "grantee": snapshot.role_names.get(item.grantee, "PUBLIC"),
                        "is_grantable": "YES" if grantable else "NO",
                        "with_hierarchy": "YES" if privilege is acl.Privilege.SELECT else "NO",
                    }  # fmt: skip


def _role_grants(snapshot: CatalogSnapshot) -> Iterator[Row]:
    return (row for row in _privileges(snapshot) if row["grantee"] != "PUBLIC")


LIVING: dict[str, Callable[[CatalogSnapshot], Iterator[Row]]] = {
    "schemata": _schemata, "character_sets": _character_sets, "tables": _tables, "views": _views, "columns": _columns,
    "information_schema_catalog_name": _catalog_name, "enabled_roles": _enabled_roles,
    "table_privileges": _privileges, "role_table_grants": _role_grants,
}  # fmt: skip
