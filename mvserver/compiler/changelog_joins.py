"""FROM changelog JOIN changelog: which columns tell the joined rows apart.

The rows are the pairs of current rows, so a pair is told by both primary keys. Where ON compares the whole primary key
of one side, a row of the other meets one row at most and tells the pair by its own key: what it meets may change, and
is then the same joined row with other values.
"""

from __future__ import annotations

from dataclasses import replace

from mvserver.compiler.expressions import Cast, ColumnReference, Expression, KeyReference
from mvserver.compiler.plans import ChangelogJoin, Groups, JoinKind, JoinSide, Output, Scan, ScanColumn
from mvserver.sql.types import Kind


def changelog_join(kind: JoinKind, left: JoinSide, right: JoinSide, residual: Expression | None) -> ChangelogJoin:
    left, right = _with_primary_key(left, "left"), _with_primary_key(right, "right")
    if kind is not JoinKind.FULL and _met_once(right):
        key = _key_names(left)
    elif kind is JoinKind.INNER and _met_once(left):
        key = _key_names(right)
    else:
        key = (*_key_names(left), *_key_names(right))
    types = {output.name: output.type for output in (*left.outputs, *right.outputs)}
    return ChangelogJoin(kind, left, right, residual, tuple(ScanColumn(name, types[name]) for name in key))


def _with_primary_key(side: JoinSide, word: str) -> JoinSide:
    """The side, giving the columns of its primary key that are not among what it gives."""
    scan = side.scan
    given = {_key_column(scan, output.expression) for output in side.outputs}
    types = {column.name: column.type for column in scan.columns}
    hidden = [
        Output(f"{word} key {i}", types[name], ColumnReference(types[name], name))
        for i, name in enumerate(scan.primary_key)
        if name not in given
    ]
    return replace(side, outputs=(*side.outputs, *hidden))


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
    return set(side.scan.primary_key) <= {_key_column(side.scan, narrow(key)) for key in side.keys}


def key_tells_rows(side: JoinSide) -> bool:
    """Whether a side's keys are the primary key of its scan, each column of it once."""
    columns = [narrow(key) for key in side.keys]
    names = [each.name for each in columns if isinstance(each, ColumnReference)]
    return sorted(names) == sorted(side.scan.primary_key) and len(names) == len(columns)


def narrow(key: Expression) -> Expression:
    """Without a cast to a wider type that has all values of the narrow one."""
    if isinstance(key, Cast) and key.operand.type.is_integer and (key.type.is_integer or key.type.kind is Kind.DECIMAL):
        return key.operand
    return key


def _key_column(scan: Scan, node: Expression) -> str | None:
    """The column of the scan that an expression is; what selects a key of groups is the key."""
    if not isinstance(node, ColumnReference):
        return None
    if isinstance(scan.derived, Groups):
        for output in scan.derived.outputs:
            if output.name == node.name and isinstance(output.expression, KeyReference):
                return scan.derived.key[output.expression.index].name
    return node.name


def _key_names(side: JoinSide) -> tuple[str, ...]:
    """The primary key of a side by the names that its columns have in the joined rows."""
    names = {_key_column(side.scan, output.expression): output.name for output in reversed(side.outputs)}
    return tuple(names[name] for name in side.scan.primary_key)
