"""The sources of a FROM clause, and their columns in PostgreSQL's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from sqlglot import exp

T = TypeVar("T")
Columns = list[tuple[str, Sequence[T]]]
"""Names, each with what the column is in the sources that have it."""
ColumnsOf = Callable[[exp.Expr], Sequence[tuple[str, T]] | None]
"""Those of one source; None where they cannot be told."""


def sources_of(select: exp.Select) -> list[exp.Expr]:
    """What it reads, in the order of FROM, also in brackets around joins."""
    start = select.args.get("from_")
    parts = [] if start is None else [start.this, *(join.this for join in select.args.get("joins") or ())]
    return [source for part in parts for source in _sources(part)]


def _sources(part: exp.Expr) -> Iterator[exp.Expr]:
    if is_bracket(part) and not part.alias:
        yield from _sources(part.this)
    else:
        yield part
    for join in part.args.get("joins") or ():
        yield from _sources(join.this)


def joins_of(part: exp.Expr) -> Iterator[exp.Expr]:
    """All joins of a SELECT or a source, also those in brackets, but for those of sub-queries."""
    start = part.args.get("from_")
    if start is not None:
        yield from joins_of(start.this)
    elif is_bracket(part):
        yield from joins_of(part.this)
    for join in part.args.get("joins") or ():
        yield join
        yield from joins_of(join.this)


def is_bracket(source: exp.Expr) -> bool:
    """Whether it is ``(a JOIN b …)``, which is no query."""
    if not isinstance(source, exp.Subquery):
        return False
    inner = source.this
    if isinstance(inner, exp.Subquery | exp.Values):
        return bool(inner.args.get("alias") or inner.args.get("joins")) or is_bracket(inner)
    return not isinstance(inner, exp.Query)


def is_by_name(join: exp.Expr) -> bool:
    """Whether columns of both sides become one: by USING or NATURAL."""
    return bool(join.args.get("using")) or str(join.args.get("method") or "").upper() == "NATURAL"


def joined(source: exp.Expr, columns_of: ColumnsOf[T], joins: Sequence[exp.Expr] = ()) -> Columns[T] | None:
    """The columns of a source and of what is joined to it, as a star has them: a join by names has those of both sides
    first. It does not reach across a comma. None where those of a source cannot be told."""
    finished: Columns[T] = []  # of the joins before the last comma
    if is_bracket(source) and not source.alias:
        found = joined(source.this, columns_of)
    else:
        alone = columns_of(source)
        found = None if alone is None else [(name, [value]) for name, value in alone]
    for join in (*(source.args.get("joins") or ()), *joins):
        own = joined(join.this, columns_of)
        if found is None or own is None:
            return None
        if is_by_name(join):
            found = _by_name(join, found, own)
        elif _is_comma(join):
            finished, found = [*finished, *found], own
        else:
            found = [*found, *own]
    return None if found is None else [*finished, *found]


def _is_comma(join: exp.Expr) -> bool:
    return not any(join.args.get(key) for key in ("kind", "side", "on", "method"))


def _by_name(join: exp.Expr, left: Columns[T], right: Columns[T]) -> Columns[T]:
    """The columns of both sides are spelled as on the left one."""
    shared = [part.name.lower() for part in join.args.get("using") or ()]
    if not shared:
        names = {name.lower() for name, _ in right}
        shared = [name.lower() for name, _ in left if name.lower() in names]
    both: Columns[T] = []
    for name in shared:
        columns = [column for column in (*left, *right) if column[0].lower() == name]
        both.append((columns[0][0] if columns else name, [value for _, values in columns for value in values]))
    return [*both, *(column for column in (*left, *right) if column[0].lower() not in shared)]
