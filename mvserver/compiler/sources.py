"""The sources of a continuous SELECT: FROM becomes names over one scan.

A sub-query or WITH query is not run by itself. Its columns stand for expressions over the scan below it, and its WHERE
and the outer one become one condition, the inner tested first. What it aggregates, the outer SELECT may compute with
and filter, which is then part of finishing; grouping it again would need a second level of state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.compiler.analyzer import Branch, analyze
from mvserver.compiler.changelogs import CHANGELOG
from mvserver.compiler.expressions import Expression, KeyReference, size, with_children
from mvserver.compiler.joins import joined
from mvserver.compiler.nested import changes_of
from mvserver.compiler.own_functions import known
from mvserver.compiler.plans import Aggregation, ContinuousPlan, Output
from mvserver.compiler.refusals import refused
from mvserver.compiler.scope import Scope, ScopeColumn, ScopeTable, Source
from mvserver.compiler.shape import RelationShape, Resolve, ViewDefinition
from mvserver.compiler.source_properties import scan_of
from mvserver.compiler.state_ttl import forgetting
from mvserver.compiler.tables import TABLE, unreadable
from mvserver.compiler.unions import union_all
from mvserver.compiler.unnests import Alias, first_in_from, unnested
from mvserver.compiler.windowed import over_window
from mvserver.errors import SqlError
from mvserver.sql.nodes import position_of


@dataclass(frozen=True)
class Names:
    """What FROM may name: relations, and the WITH queries around it, which hide them. ``read`` collects the WITH
    queries that something reads."""

    resolve: Resolve
    default_starting: str
    queries: Mapping[str, WithQuery] = field(default_factory=dict)
    read: set[int] = field(default_factory=set)
    level: int = 0


@dataclass(frozen=True)
class WithQuery:
    """A query of WITH and the names that it may use: those before it."""

    tree: exp.Expression  # exp.CTE
    names: Names


def plan_select(select: exp.Expression, names: Names, branch: Branch | None = None) -> ContinuousPlan:
    """Bind a SELECT and all that it reads."""
    if names.level > limits.QUERY_LEVELS_MAX:
        raise SqlError(
            sqlstates.STATEMENT_TOO_COMPLEX,
            f"queries are nested more than {limits.QUERY_LEVELS_MAX} levels deep",
            position=position_of(select),
        )
    with_ = select.args.get("with_")
    written = with_.expressions if with_ is not None else []
    for tree in written:
        known = WithQuery(tree, names)
        names = replace(names, queries={**names.queries, str(tree.args["alias"].this.this): known})
    plan = _plan(select, names, branch)
    for tree in written:
        if id(tree) not in names.read:
            # Its relations would have to be kept for a query that needs nothing of them.
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'WITH query "{tree.args["alias"].this.this}" is never read',
                hint="Leave it out.",
                position=position_of(tree),
            )
    return plan


def _plan(select: exp.Expression, names: Names, branch: Branch | None) -> ContinuousPlan:
    """Without its WITH, whose queries are among the names."""
    if isinstance(select, exp.Union):
        inside = replace(names, level=names.level + 1)
        first = Branch.LATER if branch is Branch.LATER else Branch.FIRST
        left = plan_select(select.this, inside, first)
        return union_all(left, plan_select(select.expression, inside, Branch.LATER), select)
    _refuse_clauses(select)
    return analyze(select, _source(select, names), branch)


def _refuse_clauses(select: exp.Expression) -> None:
    if not isinstance(select, exp.Select):
        raise refused("INTERSECT and EXCEPT", select, "Write one query for each part.")
    for clause, spelled in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if select.args.get(clause) is not None:
            raise refused(spelled, select.args[clause], "Use it in the SELECT that reads the view.")
    if select.args.get("windows") is not None:
        raise refused("WINDOW", select, "Use it in the SELECT that reads the view.")


# --- FROM -----------------------------------------------------------------------------------------------------------
def _source(select: exp.Expression, names: Names) -> Source:
    from_ = select.args.get("from_")
    if from_ is None:
        raise refused("a SELECT without FROM", select, "A continuous query reads a stream.")
    source = _item(from_.this, names)
    for join in select.args.get("joins") or ():
        if isinstance(join.this, exp.Unnest):
            source = unnested(source, join, Alias(*_alias(join.this.args.get("alias"))))
            continue
        other = _item(join.this, names)
        if _is_current(source, other):  # of use from its beginning: the rows that it has now
            other = _item(join.this, replace(names, default_starting="earliest"))
        source, other = (_with_changes(each, join) for each in (source, other))
        if source.scan.window is not None or other.scan.window is not None:
            windowed = source.scan if source.scan.window is not None else other.scan
            what = "a window in a join" if not windowed.views else "a join with a view that is over a window"
            raise refused(what, join, "Join the streams first, or join the views where you read them.")
        source = joined(source, other, join)
    return source


def _is_current(source: Source, other: Source) -> bool:
    """Whether it is a changelog that something is joined with, or the groups that a stream is."""
    of_stream = source.aggregation is None and source.scan.kind != CHANGELOG
    return other.scan.kind == CHANGELOG or (other.aggregation is not None and of_stream)


def _with_changes(source: Source, join: exp.Join) -> Source:
    """A side that aggregates is the changelog of its groups."""
    return source if source.aggregation is None else changes_of(source, source.aggregation, join)


def _item(item: exp.Expression, names: Names) -> Source:
    if isinstance(item, exp.Subquery):
        if item.meta.get("properties"):
            raise refused("WITH (...) after a sub-query", item, "Write it after the stream that the query reads.")
        inside = replace(names, level=names.level + 1)
        return over_window(_derived(item.this, item, inside, item.args.get("alias"), None), item)
    if isinstance(item, exp.Unnest):
        raise first_in_from(item)
    if not isinstance(item, exp.Table):
        raise refused("this item of FROM", item, "Name a stream.")
    parts = tuple(str(part.this) for key in ("catalog", "db", "this") if (part := item.args.get(key)) is not None)
    known = names.queries.get(parts[0]) if len(parts) == 1 else None
    if known is not None:
        return _with_query(item, known, names)
    return _relation(item, parts, names)


def _relation(item: exp.Expression, parts: tuple[str, ...], names: Names) -> Source:
    relation = names.resolve(parts, position_of(item))
    if relation.view is not None:
        return _view(item, relation, relation.view, names)
    if relation.kind == TABLE:
        raise unreadable(parts[-1], position_of(item))
    if relation.kind not in ("stream", CHANGELOG):  # what is inlined is a view that keeps all its rows
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'a continuous query over {relation.kind} "{parts[-1]}" is not supported',
            detail="It forgets rows, or shows them only once they are final.",
            hint="Write the query over the source of the view.",
            position=position_of(item),
        )
    alias = item.args.get("alias")
    name, columns = _alias(alias)
    source = over_window(Source(Scope.of(relation, name), scan_of(relation, item, names.default_starting)), item)
    (table,) = source.scope.tables
    renamed = replace(table, columns=_renamed(table.columns, columns, table.name, position_of(alias)))
    return replace(source, scope=Scope((renamed,)))


def _view(item: exp.Expression, relation: RelationShape, view: ViewDefinition, names: Names) -> Source:
    """A view over a view reads what that one reads, by its definition: so both change in one transaction."""
    if item.meta.get("properties"):
        raise refused("WITH (...) after a materialized view", item, "The view says how it reads its source.")
    inside = Names(view.resolve, names.default_starting, level=names.level + 1)
    alias = item.args.get("alias")
    with known(view.functions):
        source = _derived(view.select, item, inside, alias, None)
    (table,) = source.scope.tables
    aggregation = source.aggregation
    if aggregation is not None:
        aggregation = forgetting(aggregation, view.state_ttl_ms)
    below = source.scan if aggregation is None else aggregation.scan
    # Earliest is then where the view began.
    scan = replace(below, views=(*below.views, relation.id), starting_position=names.default_starting)
    named = replace(table, path=tuple(relation.name.split(".")))
    aggregation = None if aggregation is None else replace(aggregation, scan=scan)
    return over_window(replace(source, scope=Scope((named,)), scan=scan, aggregation=aggregation), item)


def _with_query(item: exp.Expression, known: WithQuery, names: Names) -> Source:
    names.read.add(id(known.tree))
    if item.meta.get("properties"):
        raise refused("WITH (...) after a WITH query", item, "Write it after the stream that the query reads.")
    inside = replace(known.names, level=names.level + 1)
    return over_window(_derived(known.tree.this, item, inside, item.args.get("alias"), known.tree.args["alias"]), item)


def _derived(
    select: exp.Expression,
    item: exp.Expression,
    names: Names,
    alias: exp.Expression | None,
    declared: exp.Expression | None,
) -> Source:
    """``declared`` is the name and column names that a WITH query was given."""
    plan = plan_select(select, names)
    own, own_columns = _alias(declared)
    name, names_given = _alias(alias)
    columns = tuple(ScopeColumn(output.name, _over_scan(plan, output)) for output in plan.outputs)
    for column in columns:
        if size(column.expression) > limits.EXPRESSION_NODES_MAX:
            raise SqlError(
                sqlstates.STATEMENT_TOO_COMPLEX,
                f'column "{column.name}" of a sub-query is too complex',
                detail=f"It comes to more than {limits.EXPRESSION_NODES_MAX} operations.",
                hint="Split it over two streams.",
                position=position_of(item),
            )
    columns = _renamed(columns, own_columns, own or "", position_of(declared))
    columns = _renamed(columns, names_given, name or own or "", position_of(alias))
    table = ScopeTable(columns, name or own)
    aggregation = plan if isinstance(plan, Aggregation) else None
    return Source(Scope((table,)), plan.scan, plan.where, aggregation)


def _over_scan(plan: ContinuousPlan, output: Output) -> Expression:
    """An output as an expression over the scan and, where the plan aggregates, its aggregates."""
    if not isinstance(plan, Aggregation):
        return output.expression
    keys = plan.keys

    def without_keys(node: Expression) -> Expression:
        if isinstance(node, KeyReference):
            return keys[node.index] if node.index < len(keys) else node  # the number of a grouping set stays
        return with_children(node, without_keys)

    return without_keys(output.expression)


def _alias(alias: exp.Expression | None) -> tuple[str | None, Sequence[str]]:
    if alias is None:
        return None, ()
    name = str(alias.this.this) if alias.this is not None else None
    return name, [str(column.this) for column in alias.args.get("columns") or ()]


def _renamed(
    columns: tuple[ScopeColumn, ...], names: Sequence[str], table: str, position: int | None
) -> tuple[ScopeColumn, ...]:
    """The first columns under other names, as AS t (a, b) gives them."""
    if len(names) > len(columns):
        raise SqlError(
            sqlstates.INVALID_COLUMN_REFERENCE,
            f'table "{table}" has {len(columns)} columns available but {len(names)} columns specified',
            position=position,
        )
    return (*(replace(c, name=n) for c, n in zip(columns, names, strict=False)), *columns[len(names) :])
