"""The types of a query's parameters: as the client has said them, the others as PostgreSQL infers them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlglot import exp

from mvserver.dialect import binding
from mvserver.dialect.functions import enums
from mvserver.dialect.marks import RELATION, SYSTEM_RELATION
from mvserver.dialect.parameters import inference
from mvserver.dialect.typing import duck_types
from mvserver.errors import SqlError
from mvserver.pgcatalog import static_data
from mvserver.pgcatalog.session_functions import SessionFacts
from mvserver.pgcatalog.visibility import FIRST_OWN_OID
from mvserver.sql.types import Kind, parse_type
from mvserver.types import oids


def with_inferred(tree: exp.Expr, given: Sequence[int], facts: SessionFacts) -> tuple[int, ...]:
    """The oids by number; 0 for one whose type DuckDB has to find. Names of tables are resolved in ``tree``."""
    numbers = binding.parameter_numbers(tree)
    if all(number <= len(given) and given[number - 1] for number in numbers):
        return tuple(given)
    found = inference.infer(tree, given, _columns, lambda target: enums.oid_of(target, facts))
    count = max(numbers[-1], len(given))
    said = [given[number - 1] if number <= len(given) else 0 for number in range(1, count + 1)]
    return tuple(oid or _readable(found.get(number, 0)) for number, oid in enumerate(said, start=1))


def _readable(oid: int) -> int:
    """0 for a type whose values are not read from the wire, as regclass."""
    return oid if oid >= FIRST_OWN_OID or duck_types.parameter_cast(oid) is not None else 0


def _columns(node: exp.Expr) -> inference.Columns | None:
    relation, system = node.meta.get(RELATION), node.meta.get(SYSTEM_RELATION)
    if relation is not None:
        return [(column.name, _oid_of(column.type)) for column in relation.columns]
    static = static_data.relation(*system) if system is not None else None
    return None if static is None else [(column.name, column.pg_oid) for column in static.columns]


@cache
def _oid_of(declared: str) -> int | None:
    """None for types that PostgreSQL has not, and for those that users have made."""
    try:
        kind = parse_type(declared)
    except SqlError:
        return None
    if kind.kind is Kind.ARRAY:
        element = _oid_of(str(kind.element)) if kind.element is not None else None
        return None if element is None else oids.ARRAY_OF.get(element)
    return kind.kind.row.oid
