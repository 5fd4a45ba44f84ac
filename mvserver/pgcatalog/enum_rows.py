"""Enum types in pg_type (each with its array type) and their labels in pg_enum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mvserver.pgcatalog.role_rows import acl_texts
from mvserver.pgcatalog.snapshot import CatalogSnapshot
from mvserver.pgcatalog.static_data import procedure_names

Row = Mapping[str, Any]


def types(snapshot: CatalogSnapshot) -> Iterator[Row]:
    names = procedure_names()
    for enum in snapshot.enums:
        schema = snapshot.schemas_by_id[enum.schema_id]
        common = {
            "_db": snapshot.databases_by_id[schema.database_id].oid, "_o": enum.oid, "typnamespace": schema.oid,
            "typowner": snapshot.role_oid(enum.owner), "typisdefined": True, "typdelim": ",", "typtypmod": -1,
        }  # fmt: skip
        yield {
            **common, "oid": enum.oid, "typname": enum.name, "typlen": 4, "typbyval": True, "typtype": "e",
            "typcategory": "E", "typarray": enum.array_oid, "typalign": "i", "typstorage": "p",
            "typacl": acl_texts(snapshot, enum.acl),
            **{f"typ{way}": names.get(f"enum_{short}", 0) for way, short in _WAYS},
        }  # fmt: skip
        yield {
            **common, "oid": enum.array_oid, "typname": f"_{enum.name}"[:63], "typlen": -1, "typtype": "b",
            "typcategory": "A", "typelem": enum.oid, "typalign": "i", "typstorage": "x",
            "typsubscript": names.get("array_subscript_handler", 0), "typanalyze": names.get("array_typanalyze", 0),
            **{f"typ{way}": names.get(f"array_{short}", 0) for way, short in _WAYS},
        }  # fmt: skip


_WAYS = (("input", "in"), ("output", "out"), ("receive", "recv"), ("send", "send"))


def labels(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for enum in snapshot.enums:
        database = snapshot.databases_by_id[snapshot.schemas_by_id[enum.schema_id].database_id].oid
        for label in enum.labels:
            yield {
                "_db": database, "_o": enum.oid, "oid": label.oid, "enumtypid": enum.oid,
                "enumsortorder": label.order, "enumlabel": label.name,
            }  # fmt: skip
