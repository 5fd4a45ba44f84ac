"""SELECTs of parts of a query over what the query reads, which are bound to learn the parts' types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import duckdb
from sqlglot import exp

from mvserver.dialect import binding
from mvserver.dialect.binding import Bound
from mvserver.dialect.duck_text import last_written
from mvserver.dialect.recursive import keep_first_parts
from mvserver.errors import SqlError
from mvserver.sql.trees import dismantle

_ALIAS = "_probed"


def types_in(
    cursor: duckdb.DuckDBPyConnection,
    items: Sequence[exp.Expr],
    select: exp.Select,
    outer: exp.Expr | None,
    *,
    adapt: Callable[[exp.Select], None] = lambda probe: None,
) -> Sequence[str] | None:
    """DuckDB's types of ``items`` where ``select`` reads; None where they cannot be told. ``outer`` is the whole
    query's WITH, ``adapt`` changes each probe before it is bound."""
    for probe in probes(items, select, outer):
        adapt(probe)
        _without_sets(probe)
        try:
            types = binding.bind(cursor, last_written(probe)).types
        except SqlError:
            continue
        return types if len(types) == len(items) else None
    return None


def _without_sets(probe: exp.Select) -> None:
    """``grouping(x)`` is an integer, and stands only where there are grouping sets."""
    for node in list(innermost(probe).find_all(exp.Grouping, exp.Anonymous)):
        if isinstance(node, exp.Grouping) or node.name.lower() == "grouping":
            node.replace(exp.cast(exp.Literal.number(0), "INT", dialect="duckdb"))


def type_parameters(probe: exp.Select, types: Mapping[int, str]) -> None:
    """NULLs of their types instead of parameters, in place; plain ones where a type is open or the text casts them."""
    for parameter in list(probe.find_all(exp.Parameter)):
        kind = types.get(int(parameter.name), binding.UNKNOWN) if parameter.name.isdigit() else ""
        known = kind not in ("", binding.UNKNOWN) and not kind.startswith("ANY")  # as ANY[], of any array
        cast = known and not isinstance(parameter.parent, exp.Cast)
        parameter.replace(exp.cast(exp.null(), kind, dialect="duckdb") if cast else exp.null())


def bound_in(cursor: duckdb.DuckDBPyConnection, query: exp.Expr, outer: exp.Expr | None) -> Bound | None:
    """The columns of a query that is a part of another; None where it does not bind there."""
    inner = exp.Select(expressions=[exp.Star()])
    inner.set("from_", exp.From(this=exp.Subquery(this=query.unnest().copy(), alias=_alias())))
    around = query.find_ancestor(exp.Select)
    whole = inner.copy()
    if outer is not None:
        whole.set("with_", keep_first_parts(outer.copy()))
    try:
        return _first_bound(cursor, chain([whole], _within(inner, around, query, outer) if around is not None else ()))
    finally:
        dismantle(inner)


def _first_bound(cursor: duckdb.DuckDBPyConnection, tried: Iterable[exp.Select]) -> Bound | None:
    for probe in tried:
        try:
            return binding.bind(cursor, last_written(probe))
        except SqlError:
            continue
    return None


def columns_of(
    cursor: duckdb.DuckDBPyConnection, source: exp.Expr, select: exp.Select, outer: exp.Expr | None
) -> Sequence[str] | None:
    """The names of the columns of one of the sources of ``select``; None where they cannot be told."""
    inner = exp.Select(expressions=[exp.Star()])
    alone = source.copy()
    alone.set("joins", None)
    inner.set("from_", exp.From(this=alone))
    whole = with_sources([], select, outer)
    whole.set("expressions", [exp.Star()])
    whole.set("joins", None)
    whole.set("laterals", None)
    whole.set("from_", inner.args["from_"].copy())
    try:
        found = _first_bound(cursor, chain([whole], _within(inner, select, source, outer)))
        return None if found is None else found.names or None  # none where a parameter has no type yet
    finally:
        dismantle(inner)


def probes(items: Sequence[exp.Expr], select: exp.Select, outer: exp.Expr | None) -> Iterator[exp.Select]:
    """One over what ``select`` reads before the items; then, for what a correlated sub-query names, within the sources
    of the query around it, of the one around that, and so on."""
    if not any(item.find(exp.Column) for item in items):  # it needs none of the sources, which may not bind yet
        yield with_sources([item.copy() for item in items], exp.Select(), None)
        yield with_sources([item.copy() for item in items], exp.Select(), outer)
    before = _source_with(select, items[0])
    yield with_sources([item.copy() for item in items], select, outer, before=before)
    around = select.find_ancestor(exp.Select)
    if around is not None:
        inner = with_sources([item.copy() for item in items], select, None, before=before)
        try:
            yield from _within(inner, around, select, outer)
        finally:
            dismantle(inner)


def _within(probe: exp.Select, around: exp.Select, inner: exp.Expr, outer: exp.Expr | None) -> Iterator[exp.Select]:
    """``probe`` stays the caller's."""
    above: exp.Select | None = around
    wider: exp.Select | None = None
    try:
        while above is not None:
            whole = _around(wider or probe, above, inner, outer)
            if whole is not None:
                yield whole
                narrower, wider = wider, _around(wider or probe, above, inner, None)
                if narrower is not None:
                    dismantle(narrower)
            inner, above = above, above.find_ancestor(exp.Select)
    finally:
        if wider is not None:
            dismantle(wider)


def innermost(probe: exp.Select) -> exp.Select:
    """The SELECT of a probe that has its items."""
    while (item := probe.expressions[0]) and isinstance(item, exp.Column) and item.table == _ALIAS:
        probe = probe.args["joins"][-1].this.this.this
    return probe


def _around(probe: exp.Select, around: exp.Select, inner: exp.Expr, outer: exp.Expr | None) -> exp.Select | None:
    """The probe within what ``around`` reads before it comes to ``inner``; None where that is nothing."""
    whole = with_sources([], around, outer, before=inner)
    if whole.args.get("from_") is None:
        return None
    lateral = exp.Lateral(this=exp.Subquery(this=probe.copy()), alias=_alias())
    whole.append("joins", exp.Join(this=lateral))
    whole.set("expressions", [exp.Column(this=exp.Star(), table=exp.to_identifier(_ALIAS, quoted=True))])
    return whole


def _alias() -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(_ALIAS, quoted=True))


def with_sources(
    items: Sequence[exp.Expr], select: exp.Select, outer: exp.Expr | None, *, before: exp.Expr | None = None
) -> exp.Select:
    """A SELECT of ``items`` over what ``select`` reads, to learn their types; they become a part of it.
    ``outer`` is the whole query's WITH. Only the sources ``before`` a sub-query are taken where one is given; a
    condition of a join has both sides before it."""
    probe = exp.Select(expressions=[exp.alias_(item, f"a{n}", copy=False) for n, item in enumerate(items)])
    last = None if before is None else _part_of(select, before)
    for key in ("from_", "joins", "laterals"):
        value = select.args.get(key)
        if value is last and value is not None:
            continue
        if isinstance(value, list):
            end = next((number for number, part in enumerate(value) if part is last), len(value))
            parts = [part.copy() for part in value[:end]]
            if last is not None and end < len(value) and _is_in_condition(last, before):
                joined = last.copy()
                joined.set("on", exp.true())  # as written it may not bind yet
                parts.append(joined)
            probe.set(key, parts)
        elif value is not None:
            probe.set(key, value.copy())
    own = select.args.get("with_")
    clauses = [clause for clause in (outer, own) if clause is not None]
    if outer is not None and own is not None and outer is not own:
        merged = outer.copy()
        merged.set("expressions", [cte.copy() for clause in clauses for cte in clause.expressions])
        probe.set("with_", keep_first_parts(merged))
    elif clauses:
        probe.set("with_", keep_first_parts(clauses[0].copy()))
    return probe


def _is_in_condition(join: exp.Expr, inner: exp.Expr | None) -> bool:
    condition = join.args.get("on")
    part = inner
    while part is not None and part is not join:
        if part is condition:
            return True
        part = part.parent
    return False


def _source_with(select: exp.Select, item: exp.Expr) -> exp.Expr | None:
    """The item, where it is in a source of ``select``: those from that one on cannot tell its type."""
    part = _part_of(select, item)
    return item if part.parent is select and part.arg_key in ("from_", "joins", "laterals") else None


def _part_of(select: exp.Select, inner: exp.Expr) -> exp.Expr:
    """The part of ``select`` that ``inner`` is in."""
    part = inner
    while part.parent is not None and part.parent is not select:
        part = part.parent
    return part
