"""Columns of the result that are of a character type because a query within says so.

Inside a query such values are texts; the blanks at the end of a char(n) count nowhere there, and are left out
(``casts``). Where the value is shown they are added.
"""

from __future__ import annotations

from sqlglot import exp

from mvserver.dialect.derived_columns import item_of
from mvserver.dialect.functions.casts import SHOWN_AS, character_length
from mvserver.dialect.joins import sources_of
from mvserver.types import oids

_DEPTH_MAX = 20  # of sub-queries through which a column is followed
_HEADER = 4  # what PostgreSQL adds to the length in a modifier


def show(tree: exp.Expr) -> None:
    """In place, while casts are as they were written."""
    if not isinstance(tree, exp.Select) or (tree.args.get("distinct") and tree.args.get("order")):
        return  # what a DISTINCT is sorted by must stay as it is
    for item in list(tree.expressions):
        column = item.unalias()
        cast = _cast_behind(column, 0) if isinstance(column, exp.Column) else None
        kind = None if cast is None else cast.to.this
        if cast is None or kind not in _OIDS:
            continue
        declared = character_length(cast.to)
        length = declared or 1
        shown: exp.Expr = column
        if kind == exp.DType.CHAR:
            filled = [column.copy(), exp.Literal.number(length), exp.Literal.string(" ")]
            shown = exp.Anonymous(this="rpad", expressions=filled)
            item.replace(exp.alias_(shown, item.alias_or_name, quoted=True, copy=False))
        shown.meta[SHOWN_AS] = (_OIDS[kind], -1 if kind == exp.DType.VARCHAR and declared is None else length + _HEADER)


_OIDS = {exp.DType.CHAR: oids.BPCHAR, exp.DType.VARCHAR: oids.VARCHAR}


def _cast_behind(column: exp.Column, depth: int) -> exp.Cast | None:
    """What a query within has for the column, where that is a cast."""
    select = column.find_ancestor(exp.Select)
    for source in sources_of(select) if select is not None and depth < _DEPTH_MAX else ():
        if select is None or (column.table and column.table != source.alias_or_name):
            continue
        item = item_of(source, column.name, select)
        bare = None if item is None else item.unalias().unnest()
        if isinstance(bare, exp.Column):
            return _cast_behind(bare, depth + 1)
        if bare is not None:
            return bare if isinstance(bare, exp.Cast) and type(bare.to) is exp.DataType else None
    return None
