"""Enum types in DuckDB: each is an anonymous ENUM of its labels, and so has their order for comparisons and sorting.

DuckDB knows such a type by its labels alone. So that two types with the same labels stay two, and the type's oid and
name can be read from any bound expression or error, the first label is none of the user's: it says which type it is. It
is longer than a label may be, so that no label is equal to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.acl import Privilege
from catalog.identifiers import RESERVED_SCHEMAS
from catalog.model import EnumType
from catalog.refusals import denied, denied_for
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog.session_functions import SessionFacts

_MARK = "\x01enum"
_PAD = 80  # longer than a label may be
_KNOWN = re.compile(rf"^ENUM\('{_MARK} (?P<oid>\d+) +(?P<name>(?:[^']|'')*)'(?P<labels>.*)\)$", re.S)
_LABEL = re.compile(r", '((?:[^']|'')*)'", re.S)


@dataclass(frozen=True)
class KnownEnum:
    """What the name of a DuckDB type tells."""

    oid: int
    name: str
    labels: tuple[str, ...]
    duck_type: str


def known(duck: str) -> KnownEnum | None:
    """By the type's name as DuckDB prints it; None for any other type."""
    found = _KNOWN.match(duck)
    if found is None:
        return None
    labels = tuple(label.replace("''", "'") for label in _LABEL.findall(found["labels"]))
    return KnownEnum(int(found["oid"]), found["name"].replace("''", "'"), labels, duck)


def _duck_type(enum: EnumType) -> exp.DataType:
    identity = f"{_MARK} {str(enum.oid).ljust(_PAD)} {enum.name}"
    labels = [identity, *(label.name for label in enum.labels)]
    return exp.DataType(this=exp.DType.ENUM, expressions=[exp.Literal.string(label) for label in labels])


def types_of(oids: Iterable[int], enums: Sequence[EnumType]) -> Mapping[int, str]:
    """The DuckDB types of parameters that a client declared by the oid of an enum type or of an array of one."""
    wanted = {oid for oid in oids if oid}
    found: dict[int, str] = {}
    for enum in enums if wanted else ():
        if wanted & {enum.oid, enum.array_oid}:
            text = _duck_type(enum).sql(dialect="duckdb")
            found |= {enum.oid: text, enum.array_oid: f"{text}[]"}
    return found


# --- names in a query -----------------------------------------------------------------------------------------------
def resolve(target: exp.Expr, facts: SessionFacts) -> exp.DataType | None:
    """The DuckDB type for a type name in a cast, or for an array of it; None where no enum type has that name."""
    if not isinstance(target, exp.DataType):
        return None
    if target.this == exp.DType.ARRAY and target.expressions:
        inner = resolve(target.expressions[0], facts)
        return inner and exp.DataType(this=exp.DType.ARRAY, expressions=[inner], nested=True)
    kind = target.args.get("kind")
    if target.this != exp.DType.USERDEFINED or not isinstance(kind, exp.Expr):
        return None
    enum = named(_parts(kind), facts)
    return None if enum is None else _duck_type(enum)


def oid_of(target: exp.Expr, facts: SessionFacts) -> int | None:
    """The oid of the enum type that a cast names, or of an array of it; None for all others."""
    if not isinstance(target, exp.DataType):
        return None
    array = target.this == exp.DType.ARRAY and bool(target.expressions)
    bare = target.expressions[0] if array else target
    kind = bare.args.get("kind")
    if not isinstance(bare, exp.DataType) or bare.this != exp.DType.USERDEFINED or not isinstance(kind, exp.Expr):
        return None
    enum = named(_parts(kind), facts)
    return None if enum is None else enum.array_oid if array else enum.oid


def _parts(kind: exp.Expr) -> list[str]:
    """``a.b.c`` from left to right."""
    if isinstance(kind, exp.Dot):
        return [*_parts(kind.this), *_parts(kind.expression)]
    return [_folded(kind)]


def _folded(node: exp.Expr) -> str:
    quoted = isinstance(node, exp.Identifier) and bool(node.quoted)
    return str(node.name) if quoted else str(node.name).lower()


def named(parts: Sequence[str], facts: SessionFacts) -> EnumType | None:
    """``name``, ``schema.name`` or ``database.schema.name``, folded; 42501 for what the role may not use."""
    database = parts[0] if len(parts) == 3 else facts.database
    authority = facts.snapshot.authority(facts.role)
    for schema in (parts[-2],) if len(parts) > 1 else facts.search_path:
        place = facts.snapshot.schemas_by_name.get((database, schema))
        if place is None and len(parts) > 1 and schema not in RESERVED_SCHEMAS:
            raise SqlError(sqlstates.INVALID_SCHEMA_NAME, f'schema "{schema}" does not exist')
        usable = place is not None and authority.holds(place, Privilege.USAGE)
        if place is not None and not usable and len(parts) > 1:
            raise denied_for(f"schema {schema}")
        found = facts.snapshot.enums_by_name.get((database, schema, parts[-1])) if usable else None
        if found is not None:
            if not authority.holds(found, Privilege.USAGE):
                raise denied(found)
            return found
    return None
