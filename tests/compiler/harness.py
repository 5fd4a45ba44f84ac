"""Shared by the compiler's tests: a stream with a column of every type, and short ways to bind and compile."""

from __future__ import annotations

from sqlglot import exp

from mvserver import sqlstates
from mvserver.compiler.binder import Binder
from mvserver.compiler.coercion import coerce
from mvserver.compiler.compile import compile_select
from mvserver.compiler.expressions import Cast, Expression
from mvserver.compiler.literals import is_unknown
from mvserver.compiler.plans import ContinuousPlan, ScanColumn
from mvserver.compiler.scope import Scope
from mvserver.compiler.shape import RelationShape
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.dialect import parse_select

CLICKS = RelationShape(
    id="11111111-1111-1111-1111-111111111111",
    name="clickstream_db.public.clicks",
    kind="stream",
    columns=(
        ScanColumn("event_time", t.BIGINT),
        ScanColumn("device_id", t.VARCHAR),
        ScanColumn("url", t.VARCHAR),
        ScanColumn("ip", t.VARCHAR),
        ScanColumn("userid", t.VARCHAR),
    ),
    timestamp="event_time",
)

EVERYTHING = RelationShape(
    id="22222222-2222-2222-2222-222222222222",
    name="postgres.public.everything",
    kind="stream",
    columns=(
        ScanColumn("b", t.BOOLEAN),
        ScanColumn("i1", t.TINYINT),
        ScanColumn("i2", t.SMALLINT),
        ScanColumn("i4", t.INTEGER),
        ScanColumn("i8", t.BIGINT),
        ScanColumn("f4", t.FLOAT),
        ScanColumn("f8", t.DOUBLE),
        ScanColumn("n", t.decimal(10, 2)),
        ScanColumn("s", t.VARCHAR),
        ScanColumn("s5", t.SqlType(t.Kind.VARCHAR, length=5)),
        ScanColumn("bin", t.VARBINARY),
        ScanColumn("d", t.DATE),
        ScanColumn("tm", t.TIME),
        ScanColumn("ts", t.TIMESTAMP),
        ScanColumn("tz", t.TIMESTAMP_LTZ),
        ScanColumn("arr", t.array(t.INTEGER)),
        ScanColumn("m", t.map_of(t.VARCHAR, t.INTEGER)),
        ScanColumn("st", t.struct(("a", t.INTEGER), ("inner", t.struct(("x", t.VARCHAR))))),
        ScanColumn("Mixed", t.INTEGER),
    ),
    metadata=t.struct(("topic", t.VARCHAR), ("offset", t.BIGINT)),
)

CHANGES = RelationShape(id="3", name="postgres.public.changes", kind="materialized view", columns=EVERYTHING.columns)

_RELATIONS = {"clicks": CLICKS, "everything": EVERYTHING, "changes": CHANGES}


def resolve(parts: tuple[str, ...], position: int | None) -> RelationShape:
    found = _RELATIONS.get(parts[-1])
    if found is None:
        raise SqlError(sqlstates.UNDEFINED_TABLE, f'relation "{".".join(parts)}" does not exist', position=position)
    return found


def compiled(sql: str, default_starting: str = "earliest", *, written: bool = False) -> ContinuousPlan:
    return compile_select(parse_select(sql), resolve, default_starting=default_starting, written=written)


def bound(sql: str, relation: RelationShape | None = None) -> Expression:
    """An expression bound on its own, over the relation's columns if one is given."""
    select = parse_select(f"SELECT {sql}")
    node = select.expressions[0]
    tree = node.this if isinstance(node, exp.Alias) else node
    result = Binder(Scope.of(relation, None) if relation else Scope(), "SELECT").bind(tree)
    return coerce(result, t.VARCHAR) if is_unknown(result) else result


def bound_text(sql: str) -> Expression:
    """The expression cast to text."""
    node = bound(sql)
    return node if node.type.kind is t.Kind.VARCHAR else Cast(t.VARCHAR, node)
