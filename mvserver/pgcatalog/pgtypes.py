"""PostgreSQL's types with their sizes and modifiers for our types, as RowDescription and pg_attribute show them."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.types import Kind, SqlType
from mvserver.types import oids


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
