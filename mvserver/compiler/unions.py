"""UNION ALL: the rows of several queries become one scan, whichever comes first."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.compiler.changelogs import CHANGELOG
from mvserver.compiler.coercion import coerce, common_type_of
from mvserver.compiler.derived import derived_scan
from mvserver.compiler.expressions import ColumnReference, Expression, both, over_columns
from mvserver.compiler.plans import ContinuousPlan, JoinSide, Output, Projection, UnionAll
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql.nodes import position_of


def union_all(left: ContinuousPlan, right: ContinuousPlan, tree: exp.Expression) -> Projection:
    """The names are those of the left query, the types those that both have in common."""
    for plan, node in ((left, tree.this), (right, tree.expression)):
        _check_branch(plan, node)
    if len(left.outputs) != len(right.outputs):
        raise SqlError(
            sqlstates.SYNTAX_ERROR,
            "each UNION query must have the same number of columns",
            position=position_of(tree.expression),
        )
    columns: list[tuple[Output, Output]] = []
    for number, (one, other) in enumerate(zip(left.outputs, right.outputs, strict=True)):
        common = common_type_of([one.expression, other.expression])
        if common is None:
            raise SqlError(
                sqlstates.DATATYPE_MISMATCH,
                f"UNION types {postgres_name(one.type)} and {postgres_name(other.type)} cannot be matched",
                hint=f'Cast column "{one.name}" in one of the queries.',
                position=position_of(tree.expression),
            )
        name = f"{number}.{one.name}"
        columns.append(
            (
                Output(name, common, coerce(one.expression, common, position_of(tree.this))),
                Output(name, common, coerce(other.expression, common, position_of(tree.expression))),
            )
        )
    derived = UnionAll(
        (
            *_sides(JoinSide(left.scan, left.where, (), tuple(one for one, _ in columns))),
            *_sides(JoinSide(right.scan, right.where, (), tuple(other for _, other in columns))),
        )
    )
    if len(derived.sides) > limits.UNION_QUERIES_MAX:
        raise SqlError(
            sqlstates.STATEMENT_TOO_COMPLEX,
            f"UNION ALL of more than {limits.UNION_QUERIES_MAX} queries",
            hint="Write some of them to a stream with CREATE STREAM ... AS, and read that.",
            position=position_of(tree.expression),
        )
    scan = derived_scan(f"{left.scan.relation} union all {right.scan.relation}", derived)
    outputs = tuple(
        Output(given.name, one.type, ColumnReference(one.type, one.name))
        for given, (one, _) in zip(left.outputs, columns, strict=True)
    )
    return Projection(scan, None, outputs)


def _sides(side: JoinSide) -> tuple[JoinSide, ...]:
    """A query over a UNION ALL is one query over each of its queries, so that all are sides of one union."""
    inner = side.scan.derived
    if not isinstance(inner, UnionAll) or side.scan.unnests:
        return (side,)
    return tuple(_through(side, each) for each in inner.sides)


def _through(side: JoinSide, inner: JoinSide) -> JoinSide:
    given = {output.name: output.expression for output in inner.outputs}

    def over_inner(node: Expression) -> Expression:
        return over_columns(node, lambda column: given[column.name])

    where = both(inner.where, None if side.where is None else over_inner(side.where))
    outputs = tuple(replace(output, expression=over_inner(output.expression)) for output in side.outputs)
    return replace(side, scan=inner.scan, where=where, outputs=outputs)


def _check_branch(plan: ContinuousPlan, node: exp.Expression) -> None:
    what = None
    if not isinstance(plan, Projection):
        what = "a query that aggregates"
    elif plan.scan.kind == CHANGELOG:
        what = "a query over a changelog"
    elif plan.scan.window is not None:
        what = "a query with a window"
    if what is not None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{what} is not supported in UNION ALL",
            hint="Its queries are projections of streams; aggregate over the UNION ALL: SELECT ... FROM (... UNION ALL "
            "...) AS u GROUP BY ...",
            position=position_of(node),
        )
