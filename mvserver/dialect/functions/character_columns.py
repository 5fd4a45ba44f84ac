"""Columns of the result that are of a character type: which, by PostgreSQL's rules, and the blanks of a char(n).

Inside a query such values are texts; the blanks at the end of a char(n) count nowhere there, and are left out
(``casts``). Where the value is shown they are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.derived_columns import choices_of, is_plain
from mvserver.dialect.functions.casts import PADDED, SHOWN_AS, character_length
from mvserver.dialect.joins import sources_of
from mvserver.dialect.parameters import signatures
from mvserver.types import oids

SHOWN_COLUMNS = "shown columns"
"""Of a set operation: what ``SHOWN_AS`` is of an expression, for each of its columns."""

_DEPTH_MAX = 20  # of sub-queries and calls through which a type is followed
_HEADER = 4  # what PostgreSQL adds to the length in a modifier


@dataclass(frozen=True)
class _Text:
    """A type, how many characters it is declared with, and to how many its values are filled with blanks; UNKNOWN of a
    constant."""

    oid: int
    length: int | None = None
    width: int | None = None

    @property
    def is_blank_padded(self) -> bool:
        return self.width is not None

    @property
    def shown_as(self) -> tuple[int, int]:
        return self.oid, -1 if self.length is None else self.length + _HEADER


_TEXT, _UNKNOWN = _Text(oids.TEXT), _Text(oids.UNKNOWN)


def show(tree: exp.Expr) -> None:
    """In place, while casts are as they were written."""
    for call in interrupts.asking(list(tree.find_all(*_SHOWING, exp.Anonymous))):
        if isinstance(call, _SHOWING) or call.name.lower() == "octet_length":
            for part in call.expressions:
                _pad(part)
    _show_columns(tree)


def _show_columns(tree: exp.Expr) -> None:
    if isinstance(tree, exp.SetOperation):
        _show_sets(tree)
        return
    if not isinstance(tree, exp.Select):
        return
    sorted_distinct = bool(tree.args.get("distinct") and tree.args.get("order"))
    for item in list(tree.expressions):
        value = item.unalias()
        if sorted_distinct and (isinstance(value, exp.Column) or _handed_on(value) is not None):
            continue  # what a DISTINCT is sorted by must stay as it is
        found = _type(value)
        if found.oid not in _CHARACTER:
            _show_array(value, tree)
            continue
        shown = _shown(item, value, found, tree)
        if shown is not None:
            shown.meta[SHOWN_AS] = found.shown_as


_SHOWING = (exp.Concat, exp.ConcatWs, exp.Format)
"""Functions that show values of any type as they are."""
_CHOICES = (exp.Case, exp.Coalesce)
"""Whose values get their blanks each for itself, where their widths differ."""


def _pad(value: exp.Expr) -> None:
    """With its blanks, where it is a char(n)."""
    bare, found = value.unnest(), _type(value)
    if not found.is_blank_padded:
        select = value.find_ancestor(exp.Select)
        if found.oid == oids.BPCHAR and isinstance(bare, _CHOICES) and (select is None or not _is_grouped(select)):
            _pad_parts(bare)
        return
    if isinstance(bare, exp.Cast):
        bare.meta[PADDED] = True
    else:
        value.replace(_padded(value, found.width or 1))


def _padded(value: exp.Expr, length: int) -> exp.Expr:
    bare = value.copy()
    if isinstance(bare, exp.Subquery):
        bare.set("alias", None)
    return exp.Anonymous(this="_blank_padded", expressions=[bare, exp.Literal.number(length)])


def _shown(item: exp.Expr, value: exp.Expr, found: _Text, select: exp.Select) -> exp.Expr | None:
    """The value with its blanks; None where it cannot have them."""
    if isinstance(value.unnest(), exp.Cast):
        value.unnest().meta[PADDED] = found.is_blank_padded
        return value
    if found.oid != oids.BPCHAR:
        return value
    widths = {each.width for each in _typed(value) if each.oid == oids.BPCHAR}
    typed = {each.oid for each in _typed(value)}
    if len(widths) == 1 and typed == {oids.BPCHAR} and None not in widths and not _has_constant(value):
        return _padded_item(item, value, widths.pop() or 1)
    if isinstance(value.unnest(), _CHOICES) and not _is_grouped(select):
        _pad_parts(value)
        return value
    return None


def _show_array(value: exp.Expr, select: exp.Select) -> None:
    """One that is written out, or an aggregate: its elements are of the type, with their blanks."""
    array = value.unnest()
    while isinstance(array, exp.Filter | exp.Window):
        array = array.this
    if isinstance(array, exp.ArrayAgg):
        keys = [order.this for order in array.find_all(exp.Ordered)]
        elements = [_argument(array), *keys]
        found = _type(elements[0])
    elif isinstance(array, exp.Array) and len(array.expressions) == 1 and isinstance(array.expressions[0], exp.Query):
        _show_query(value, array.expressions[0])
        return
    elif isinstance(array, exp.Array) and not _is_grouped(select):
        elements = list(array.expressions)
        found = _common([_type(element) for element in elements]) if elements else _TEXT
    else:
        return
    if found.oid in _CHARACTER and found.oid in oids.ARRAY_OF:
        for element in elements:
            _pad(element)
        value.meta[SHOWN_AS] = (oids.ARRAY_OF[found.oid], found.shown_as[1] if isinstance(array, exp.Array) else -1)


def _show_query(value: exp.Expr, query: exp.Query) -> None:
    """``ARRAY(SELECT …)``."""
    sides = _sides(query)
    if sides is None or len(sides[0].expressions) != 1:
        return
    found = _of_sets(query, 0)
    _show_columns(query.unnest())
    if found.oid in _CHARACTER and found.oid in oids.ARRAY_OF:
        value.meta[SHOWN_AS] = (oids.ARRAY_OF[found.oid], found.shown_as[1])


def _argument(call: exp.Expr) -> exp.Expr:
    part: exp.Expr = call.this
    while isinstance(part, exp.Order | exp.Distinct):
        part = part.this or part.expressions[0]
    return part


def _is_grouped(select: exp.Select) -> bool:
    """By something else than places of the list: what it is grouped by must stay as it is."""
    group = select.args.get("group")
    return group is not None and not all(isinstance(key, exp.Literal) for key in group.expressions)


def _padded_item(item: exp.Expr, value: exp.Expr, length: int) -> exp.Expr:
    padded = _padded(value, length)
    item.replace(exp.alias_(padded, item.alias_or_name, quoted=True, copy=False))
    return padded


def _pad_parts(node: exp.Expr) -> None:
    for part in _values(node.unnest()):
        bare = part.unnest()
        if isinstance(bare, _CHOICES):
            _pad_parts(bare)
        else:
            _pad(part)


def _show_sets(tree: exp.SetOperation) -> None:
    sides = _sides(tree)
    if sides is None:
        return
    all_kept = all(not each.args.get("distinct") for each in tree.find_all(exp.Union)) and tree.find(
        exp.Except, exp.Intersect
    ) is None  # fmt: skip
    shown: list[tuple[int, int] | None] = []
    for at in range(len(sides[0].expressions)):
        found = _of_sets(tree, at)
        if found.is_blank_padded or (found.oid == oids.BPCHAR and all_kept):
            for item in [side.expressions[at] for side in sides]:
                own = _type(item)
                if own.is_blank_padded:
                    _padded_item(item, item.unalias(), own.width or 1)
        known = found.oid in _CHARACTER and (all_kept or not _lacks_blanks(found, sides, at))
        shown.append(found.shown_as if known else None)
    tree.meta[SHOWN_COLUMNS] = shown


def _sides(tree: exp.Expr) -> list[exp.Select] | None:
    """The SELECTs of a set operation; None where their columns cannot be counted."""
    bare = tree.unnest()
    if isinstance(bare, exp.SetOperation):
        left, right = _sides(bare.left), _sides(bare.right)
        return None if left is None or right is None or len(left[0].expressions) != len(right[0].expressions) else [
            *left, *right,
        ]  # fmt: skip
    plain = isinstance(bare, exp.Select) and not any(item.is_star for item in bare.expressions)
    return [bare] if plain and isinstance(bare, exp.Select) else None


def _lacks_blanks(found: _Text, sides: Sequence[exp.Select], at: int) -> bool:
    """Whether blanks that belong to values of a side are left out, as they would make two values of one."""
    return not found.is_blank_padded and any(_type(side.expressions[at]).is_blank_padded for side in sides)


def _of_sets(tree: exp.Expr, at: int) -> _Text:
    bare = tree.unnest()
    if isinstance(bare, exp.SetOperation):
        return _common([_of_sets(bare.left, at), _of_sets(bare.right, at)])
    return _type(bare.expressions[at].unalias())


# --- types ------------------------------------------------------------------------------------------------------------
_CHARACTER = frozenset({oids.BPCHAR, oids.VARCHAR, oids.NAME})
_OIDS = {
    exp.DType.CHAR: oids.BPCHAR, exp.DType.BPCHAR: oids.BPCHAR, exp.DType.VARCHAR: oids.VARCHAR,
    exp.DType.NAME: oids.NAME,
}  # fmt: skip


def _type(node: exp.Expr, depth: int = 0, known: dict[int, _Text] | None = None) -> _Text:
    """Of an expression that is a text; ``_TEXT`` also for all that is none. ``known`` are columns that were met, as
    several sides may lead to one."""
    known = {} if known is None else known
    bare = node.unalias().unnest()
    if depth > _DEPTH_MAX:
        return _TEXT
    if isinstance(bare, exp.Cast):
        return _of_cast(bare)
    if isinstance(bare, exp.Null | exp.Parameter) or (isinstance(bare, exp.Literal) and bare.is_string):
        return _UNKNOWN
    if isinstance(bare, exp.Column):
        if id(bare) not in known:
            types = [_TEXT if is_plain(item) else _type(item, depth + 1, known) for item in _behind(bare)]
            known[id(bare)] = _resolved(_common(types)) if types else _TEXT
        return known[id(bare)]
    if isinstance(bare, exp.Select) and len(bare.expressions) == 1:  # of a scalar sub-query
        return _resolved(_type(bare.expressions[0], depth + 1, known))
    if isinstance(bare, exp.Nullif):
        first, other = (_type(part, depth + 1, known) for part in (bare.this, bare.expression))
        return first if first.oid == oids.BPCHAR and other.oid in (oids.BPCHAR, oids.UNKNOWN) else _TEXT
    handed = _handed_on(bare)
    if handed is not None:
        found = _type(handed, depth + 1, known)
        return replace(found, length=None) if found.oid == oids.BPCHAR else _TEXT
    values = _values(bare)
    if not values:
        return _TEXT
    return _common([_type(value, depth + 1, known) for value in values])


def _resolved(found: _Text) -> _Text:
    """A constant of a sub-query is a text."""
    return _TEXT if found.oid == oids.UNKNOWN else found


def _of_cast(cast: exp.Cast) -> _Text:
    oid = _OIDS.get(cast.to.this) if type(cast.to) is exp.DataType else None
    if oid is None:
        return _TEXT
    length = character_length(cast.to) if oid != oids.NAME else None
    length = 1 if length is None and cast.to.this == exp.DType.CHAR else length
    return _Text(oid, length, length if oid == oids.BPCHAR else None)


def _common(types: Sequence[_Text]) -> _Text:
    """The length is lost where one of them has another."""
    oid = signatures.common_type([each.oid for each in types]) or oids.TEXT
    if set(types) == {types[0]} and types[0] != _UNKNOWN:
        return types[0]
    widths = {each.width for each in types}
    return _Text(oid, None, widths.pop() if len(widths) == 1 else None)


def _values(node: exp.Expr) -> Sequence[exp.Expr]:
    """Of which one is the value of the node, in the order in which PostgreSQL looks at their types."""
    if isinstance(node, exp.Case):
        default = node.args.get("default") or exp.null()
        return [default, *(branch.args["true"] for branch in node.args["ifs"])]
    return [node.this, *node.expressions] if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least) else ()


_HANDING_ON = (
    exp.Max, exp.Min, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.Mode, exp.PercentileDisc,
)  # fmt: skip


def _handed_on(node: exp.Expr) -> exp.Expr | None:
    """Of an aggregate or window function whose result is one of the values that it is given, what they are; its result
    is a char without a length, with the blanks of the value."""
    call, ordered = node, None
    while isinstance(call, exp.Filter | exp.Window | exp.WithinGroup):
        ordered = call.expression if isinstance(call, exp.WithinGroup) else ordered
        call = call.this
    if not isinstance(call, _HANDING_ON) or call.args.get("default") is not None:
        return None
    if ordered is not None:
        keys = [key.this for key in ordered.find_all(exp.Ordered)]
        return keys[0] if len(keys) == 1 else None
    return _argument(call) if isinstance(call.this, exp.Expr) else None


def _typed(node: exp.Expr) -> list[_Text]:
    """The types of the values that have one."""
    bare = node.unnest()
    handed = _handed_on(bare)
    if handed is not None:
        return _typed(handed)
    values = _values(bare)
    if values:
        return [found for value in values for found in _typed(value)]
    found = _type(bare)
    return [] if found == _UNKNOWN else [found]


def _has_constant(node: exp.Expr) -> bool:
    """Whether a value may be a constant, which gets no blanks."""
    bare = node.unnest()
    handed = _handed_on(bare)
    if handed is not None:
        return _has_constant(handed)
    if values := _values(bare):
        return any(map(_has_constant, values))
    return isinstance(bare, exp.Literal | exp.Parameter)


def _behind(column: exp.Column) -> Sequence[exp.Expr]:
    """What queries within have for the column: that of each side, where several make one; none where it is unknown."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        found: list[exp.Expr] = []
        for source in sources_of(select):
            if column.table not in ("", source.alias_or_name):
                continue
            items = choices_of(source, column.name, select)
            if items is None or (not items and source.alias_or_name == column.name):  # a function's, or a whole row
                return ()
            found += items
        if found or (column.table and any(source.alias_or_name == column.table for source in sources_of(select))):
            return found
        select = select.find_ancestor(exp.Select)  # a sub-query's outer columns
    return ()
