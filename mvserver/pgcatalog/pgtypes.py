"""PostgreSQL's types with their sizes and modifiers for our types, as RowDescription and pg_attribute show them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from catalog.model import Column, Relation
from mvserver.pgcatalog import static_data
from mvserver.sql.types import Kind, SqlType, parse_type
from mvserver.types import oids

_MODIFIED = re.compile(r"(?P<name>[^(]+)\((?P<first>\d+)(,(?P<second>\d+))?\)(?P<rest>.*)")
_LENGTHS = frozenset({oids.VARCHAR, oids.BPCHAR})


@dataclass(frozen=True)
class PgType:
    oid: int
    typmod: int = -1

    @property
    def size(self) -> int:
        return 4 if self.oid >= oids.OWN_FIRST and not oids.is_own_array(self.oid) else oids.SIZES.get(self.oid, -1)


def numeric(precision: int, scale: int) -> PgType:
    return PgType(oids.NUMERIC, ((precision << 16) | scale) + 4)


def array_of(element: PgType) -> PgType:
    """The array type; what has none (arrays of arrays of JSON and the like) is shown as JSON."""
    if oids.element_of(element.oid) is not None:
        return element  # PostgreSQL's arrays of arrays have the same type
    if element.oid >= oids.OWN_FIRST:
        return PgType(element.oid + 1)
    array = oids.ARRAY_OF.get(element.oid)
    return PgType(oids.JSON) if array is None else PgType(array, element.typmod)


def of_sql_type(declared: SqlType) -> PgType:
    if declared.kind is Kind.DECIMAL and declared.precision is not None and declared.scale is not None:
        return numeric(declared.precision, declared.scale)
    if declared.kind is Kind.ARRAY and declared.element is not None:
        return array_of(of_sql_type(declared.element))
    return PgType(declared.kind.row.oid or oids.JSON)


def of_column(relation: Relation, column: Column) -> PgType:
    return _of_spelling(column.type) if relation.select is not None else of_sql_type(parse_type(column.type))


def spelled(found: PgType) -> str:
    """As format_type does."""
    name = static_data.type_spellings()[found.oid]
    if found.typmod < 0:
        return name
    element, base = oids.element_of(found.oid) or found.oid, name.removesuffix("[]")
    size = found.typmod - 4
    if element == oids.NUMERIC:
        base = f"{base}({size >> 16},{size & 0xFFFF})"
    elif element in _LENGTHS:
        base = f"{base}({size})"
    return base + name[len(name.removesuffix("[]")) :]


def _of_spelling(text: str) -> PgType:
    found = _MODIFIED.fullmatch(text)
    if found is None:
        return PgType(static_data.type_names()[text])
    oid = static_data.type_names()[found["name"] + found["rest"]]
    if found["second"] is None:
        return PgType(oid, int(found["first"]) + 4)
    return PgType(oid, numeric(int(found["first"]), int(found["second"])).typmod)
