"""FROM changelog JOIN changelog: which columns tell the joined rows apart.

The rows are the pairs of current rows, so a pair is told by both primary keys. Where ON compares the whole primary key
of one side, a row of the other meets one row at most and tells the pair by its own key: what it meets may change, and
is then the same joined row with other values.
"""

from __future__ import annotations

from mvserver.compiler.derived import ChangelogJoin, JoinKind, JoinSide
from mvserver.compiler.expressions import Cast, ColumnReference, Expression
from mvserver.compiler.plans import Output, Scan, ScanColumn
from mvserver.sql.types import Kind


def changelog_join(kind: JoinKind, left: JoinSide, right: JoinSide, residual: Expression | None) -> ChangelogJoin:
    """The sides have their primary keys among their outputs, as :func:`with_primary_key` sees to."""
    if kind is not JoinKind.FULL and _met_once(right):
        key = _key_names(left)
    elif kind is JoinKind.INNER and _met_once(left):
        key = _key_names(right)
    else:
        key = (*_key_names(left), *_key_names(right))
    types = {output.name: output.type for output in (*left.outputs, *right.outputs)}
    return ChangelogJoin(kind, left, right, residual, tuple(ScanColumn(name, types[name]) for name in key))


def with_primary_key(scan: Scan, outputs: tuple[Output, ...], side: str) -> tuple[Output, ...]:
    """What a side gives to the joined rows, and the columns of its primary key that are not among it."""
    given = {output.expression for output in outputs}
    types = {column.name: column.type for column in scan.columns}
    keys = [ColumnReference(types[name], name) for name in scan.primary_key]
    hidden = [Output(f"{side} key {i}", key.type, key) for i, key in enumerate(keys) if key not in given]
    return (*outputs, *hidden)


def nullable_key(scan: Scan) -> bool:
    """Whether the key of a scan may hold NULLs: an outer join has rows without the key of one side."""
    join = scan.derived
    if not isinstance(join, ChangelogJoin):
        return False
    alone = {JoinKind.INNER: (), JoinKind.LEFT: (join.right,), JoinKind.FULL: join.sides}[join.kind]
    key = {column.name for column in join.key}
    sides = [side for side in join.sides if key & {output.name for output in side.outputs}]
    return any(side in alone or nullable_key(side.scan) for side in sides)


def _met_once(side: JoinSide) -> bool:
    """Whether its keys tell its rows apart."""
    return set(side.scan.primary_key) <= {_plain(key) for key in side.keys}


def _plain(key: Expression) -> str | None:
    """The column that a key is, be it in a wider type that has all its values."""
    if isinstance(key, Cast) and key.operand.type.is_integer and (key.type.is_integer or key.type.kind is Kind.DECIMAL):
        key = key.operand
    return key.name if isinstance(key, ColumnReference) else None


def _key_names(side: JoinSide) -> tuple[str, ...]:
    """The primary key of a side by the names that its columns have in the joined rows."""
    names = {o.expression.name: o.name for o in reversed(side.outputs) if isinstance(o.expression, ColumnReference)}
    return tuple(names[name] for name in side.scan.primary_key)
