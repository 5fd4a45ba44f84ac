"""What stands behind a column of a query: its sources, and the expressions of those that are written out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from mvserver.dialect.guard import function_name
from mvserver.dialect.joins import is_bracket, joined, sources_of
from mvserver.dialect.marks import RELATION

Item = tuple[str, exp.Expr]
"""A column's name, and the expression behind it; NULL for one of a view, or of a function whose type is plain."""
_Column = tuple[str, tuple[exp.Expr, ...]]
"""The same with all expressions of which one is the value: those of rows, of a set's sides, and of a join by names."""

_DEPTH_MAX = 8  # of sub-queries that are looked into
_PAIRS = frozenset({"json_each", "jsonb_each", "json_each_text", "jsonb_each_text"})
_ELEMENTS = frozenset({
    "json_array_elements", "json_array_elements_text", "jsonb_array_elements", "jsonb_array_elements_text",
})  # fmt: skip
"""Their column is called "value"."""
_ONE_COLUMN = _ELEMENTS | {
    "generate_series", "generate_subscripts", "unnest", "regexp_split_to_table", "string_to_table", "regexp_matches",
    "json_object_keys", "jsonb_object_keys",
}  # fmt: skip


def inner_first(tree: exp.Expr) -> Sequence[exp.Expr]:
    """All nodes, those within another before it, and what a query reads before what it makes of that."""
    found: list[exp.Expr] = []
    rest = [tree]
    while rest:
        node = rest.pop()
        found.append(node)
        parts = list(node.iter_expressions())
        if isinstance(node, exp.Query):
            parts.sort(key=lambda part: _FIRST.get(part.arg_key or "", len(_FIRST)))
        rest += parts
    found.reverse()
    return found


_NAMES = "names_of_columns"
_FIRST = {"with_": 0, "from_": 1, "joins": 2, "laterals": 3}


def query_of(source: exp.Expr) -> exp.Expr | None:
    """The query of a source that is one; None for others."""
    if isinstance(source, exp.Lateral):
        source = source.this
    return source.this if isinstance(source, exp.Subquery) else None


def item_of(source: exp.Expr, name: str, select: exp.Select) -> exp.Expr | None:
    """The expression behind a column of a source; None where the source is not known to have it."""
    return _first(choices_of(source, name, select) or ())


def choices_of(source: exp.Expr, name: str, select: exp.Select) -> Sequence[exp.Expr] | None:
    """All expressions of which one is the column's value: none where the source does not have it, None where its
    columns are not known."""
    relation, alias = source.meta.get(RELATION), source.args.get("alias")
    if relation is not None and not (isinstance(alias, exp.TableAlias) and alias.columns):
        names = source.meta.get(_NAMES)  # asked for each column of a query that may name them all
        if names is None:
            names = source.meta[_NAMES] = frozenset(column.name.lower() for column in relation.columns)
        return (exp.null(),) if name.lower() in names else ()
    found = _columns_of(source, select)
    return None if found is None else next((items for each, items in found if each.lower() == name.lower()), ())


def _first(items: Sequence[exp.Expr]) -> exp.Expr | None:
    """That of the first row or side that has a value there."""
    return next((item for item in items if not _is_open(item)), items[0] if items else None)


def is_plain(item: exp.Expr) -> bool:
    """Whether it stands for the column of a view or function; a NULL of the query's text is a part of that."""
    return isinstance(item, exp.Null) and item.parent is None


def items_of(query: exp.Expr | None) -> Sequence[Item] | None:
    """The columns of a query; None where they cannot be told from its text."""
    found = _items_of(query, 0)
    return None if found is None else [(name, _first(items) or exp.null()) for name, items in found]


def _items_of(query: exp.Expr | None, depth: int) -> Sequence[_Column] | None:
    query = query.unnest() if query is not None else None
    if query is None or depth > _DEPTH_MAX:
        return None
    if isinstance(query, exp.Values):
        return _of_rows(query)
    if isinstance(query, exp.SetOperation):
        return _of_sides(query, depth)
    if not isinstance(query, exp.Select):
        return None
    found: list[_Column] = []
    for item in query.expressions:
        columns = _starred(item, query, depth) if item.is_star else [(item.alias_or_name, (item,))]
        if columns is None:
            return None
        found += columns
    return found


def _columns_of(source: exp.Expr, select: exp.Expr, depth: int = 0) -> Sequence[_Column] | None:
    """Those of a source of ``select``, by the names that it gives them."""
    alias = source.args.get("alias")
    names = [each.name for each in alias.columns] if isinstance(alias, exp.TableAlias) else []
    relation = source.meta.get(RELATION)
    found: Sequence[_Column] | None
    if relation is not None:
        plain = (exp.null(),)
        found = [(column.name, plain) for column in relation.columns]
    elif isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        clause = _with(source.name, select)
        found = None if clause is None else _items_of(clause.this, depth + 1)
        own = clause.args.get("alias") if clause is not None else None
        found = _renamed(found, [each.name for each in own.columns] if isinstance(own, exp.TableAlias) else [])
    elif isinstance(source, exp.Values) or isinstance(source.this, exp.Values):
        found = _of_rows(source if isinstance(source, exp.Values) else source.this)
    elif is_bracket(source):
        found = _joined(source.this, select, depth + 1)
    else:
        query = query_of(source)
        found = _of_function(source) if query is None else _items_of(query, depth + 1)
    return _renamed(found, names)


def _renamed(found: Sequence[_Column] | None, names: Sequence[str]) -> Sequence[_Column] | None:
    if found is None or not names:
        return found
    return [(names[n] if n < len(names) else name, item) for n, (name, item) in enumerate(found)]


def _of_rows(values: exp.Values) -> Sequence[_Column]:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in values.expressions]
    columns = [[row[at] for row in rows if at < len(row)] for at in range(len(rows[0]) if rows else 0)]
    return [(f"column{number}", _each_once(items)) for number, items in enumerate(columns, start=1)]


def _of_sides(query: exp.SetOperation, depth: int) -> Sequence[_Column] | None:
    left, right = (_items_of(side, depth + 1) for side in (query.left, query.right))
    if left is None:
        return None
    if right is None or len(right) != len(left):
        right = [(name, (exp.null(),)) for name, _ in left]
    return [(name, _each_once([*items, *others])) for (name, items), (_, others) in zip(left, right, strict=True)]


def _each_once(items: Iterable[exp.Expr]) -> tuple[exp.Expr, ...]:
    """But of those without a type only the first, as long lists of rows have many."""
    found: dict[int, exp.Expr] = {}
    for item in items:
        found.setdefault(0 if _is_open(item) and item.parent is not None else id(item), item)
    return tuple(found.values())


def _is_open(item: exp.Expr) -> bool:
    bare = item.unalias().unnest()
    return isinstance(bare, exp.Null) or (isinstance(bare, exp.Literal) and bool(bare.is_string))


def _of_function(source: exp.Expr) -> Sequence[_Column] | None:
    """Functions of rows whose columns are known."""
    if isinstance(source, exp.Unnest):
        count = len(source.expressions) + bool(source.args.get("offset"))
        return [(f"unnest{n}", (exp.null(),)) for n in range(count)]
    if not (isinstance(source, exp.Table) and isinstance(source.this, exp.Func)):
        return None
    name, ordinal = function_name(source.this), bool(source.args.get("ordinality"))
    if name in _PAIRS:
        whole = exp.cast(exp.null(), exp.DType.JSONB) if name == "jsonb_each" else exp.null()
        found = [("key", (exp.null(),)), ("value", (whole,))]
    elif name in _ONE_COLUMN or isinstance(source.this, exp.ExplodingGenerateSeries):
        whole = exp.cast(exp.null(), exp.DType.JSONB) if name == "jsonb_array_elements" else exp.null()
        own = "value" if name in _ELEMENTS else name
        found = [(own, (whole,))] * max(1, len(source.this.expressions) if name == "unnest" else 1)
    else:
        return None
    return [*found, *([("ordinality", (exp.null(),))] if ordinal else [])]


def _starred(star: exp.Expr, select: exp.Select, depth: int) -> Sequence[_Column] | None:
    """The columns that a star stands for; None where those of a source cannot be told."""
    if isinstance(star, exp.Column):
        sources = sources_of(select)
        return next((_columns_of(each, select, depth) for each in sources if each.alias_or_name == star.table), None)
    start = select.args.get("from_")
    return None if start is None else _joined(start.this, select, depth, select.args.get("joins") or ())


def _joined(source: exp.Expr, select: exp.Expr, depth: int, joins: Sequence[exp.Expr] = ()) -> Sequence[_Column] | None:
    found = joined(source, lambda each: _columns_of(each, select, depth), joins)
    if found is None:
        return None
    return [(name, _each_once(item for items in sides for item in items)) for name, sides in found]


def _with(name: str, select: exp.Expr | None) -> exp.Expr | None:
    while select is not None:
        clause = select.args.get("with_")
        for cte in clause.expressions if clause is not None else ():
            if cte.alias == name:
                return cte  # type: ignore[no-any-return]
        select = select.parent
    return None
