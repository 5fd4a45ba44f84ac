"""FROM in the first dialect: topics and named queries, joined as the kinds of their rows allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mvserver import sqlstates
from mvserver.lenses import metadata
from mvserver.lenses.problems import Place, ProblemError, problem, unsupported
from mvserver.lenses.program import (
    Binary,
    Chain,
    Expression,
    Join,
    RowKind,
    Select,
    Selection,
    SourceName,
)
from mvserver.lenses.rows import KEY, META, VALUE, Rows, columns_of
from mvserver.lenses.scope import Item, Scope, by_alias
from mvserver.lenses.values import expression
from mvserver.lenses.written import Written, joined, written
from mvserver.quoting import constant, quoted

_JOINS = {"LEFT": "a LEFT join", "RIGHT": "a RIGHT join", "OUTER": "an OUTER join"}
_STREAM, _TABLE = RowKind.STREAM, RowKind.TABLE


@dataclass(frozen=True)
class TopicSource:
    """A topic as it is read: ``relation`` is its declaration in the first dialect."""

    rows: Rows
    relation: str
    properties: tuple[tuple[str, str], ...] = ()


Topics = Callable[[SourceName, RowKind], TopicSource]
"""How a topic is found; a ProblemError where it cannot be read so."""


@dataclass(frozen=True)
class KeyPart:
    """A field of the key that rows have, ``name`` None where the key is this one value."""

    name: str | None
    text: Written
    never_null: bool = False


@dataclass(frozen=True)
class From:
    """``key`` is the key of its rows, None where nothing is known of it. A join of TABLEs whose rows no key of one side
    tells apart has a ``made_key``: a value of each row, made of the keys of all sides, of which some may be NULL."""

    text: Written
    scope: Scope
    kind: RowKind
    key: tuple[KeyPart, ...] | None
    reads: tuple[str, ...]  # the named queries
    made_key: tuple[Written, ...] = ()


@dataclass(frozen=True)
class _Side:
    item: Item
    rows: Rows
    text: Written
    place: Place


def from_of(select: Select, named: Mapping[str, Rows], topics: Topics) -> From:
    # Joined rows and windows are of no one record: what they need of it is a column.
    meta = metadata.used_by(select) if select.joins or select.window is not None else frozenset()
    first = _side(select.source, select.kind, named, topics, meta)
    reads = [select.source.name] if select.source.name in named else []
    if not select.joins:
        scope = Scope((first.item,), records=first.rows.records)
        return From(first.text, scope, first.rows.kind, _own_key(first), tuple(reads))
    sides = [first]
    for join in select.joins:
        side = _side(join.source, select.kind, named, topics, meta)
        if any(side.item.alias == each.item.alias for each in sides):
            raise problem(
                join.source.place,
                sqlstates.DUPLICATE_ALIAS,
                f'"{side.item.alias}" is named twice in FROM',
                "Give one of them another name with AS.",
            )
        reads += [join.source.name] if join.source.name in named else []
        sides.append(side)
    joined_reads = tuple(dict.fromkeys(reads))
    return _joined(select.joins, sides, joined_reads)


def _side(
    source: SourceName, kind: RowKind, named: Mapping[str, Rows], topics: Topics, meta: frozenset[metadata.Path]
) -> _Side:
    """``meta`` is what columns are to have of the records of a topic."""
    alias = source.alias or source.name
    if source.name in named:
        if source.event_time is not None:
            raise unsupported(
                source.place, "EVENTTIME BY stands after a topic", "Write it in the WITH that reads the topic."
            )
        rows = named[source.name]
        return _Side(Item(alias, rows), rows, _aliased(source.place, source.name, "", alias), source.place)
    topic = topics(source, kind)
    properties = dict(topic.properties)
    if source.event_time is not None and not _is_own_time(source.event_time):
        properties["timestamp"] = _event_time(source.event_time, alias, topic.rows)
    listed = ", ".join(f"'{key}' = {constant(value)}" for key, value in properties.items())
    text = _aliased(source.place, topic.relation, f" WITH ({listed})" if listed else "", alias)
    rows = topic.rows
    if meta and rows.kind is _STREAM:
        columns = ", ".join(f"{metadata.of_record(path)} AS {quoted(metadata.column(path))}" for path in sorted(meta))
        text = written(source.place, f"(SELECT *, {columns} FROM ", text, f") AS {quoted(alias)}")
        rows = replace(rows, meta=meta, records=False)
    return _Side(Item(alias, rows), rows, text, source.place)


def _aliased(place: Place, relation: str, properties: str, alias: str) -> Written:
    return written(place, f"{quoted(relation)}{properties} AS {quoted(alias)}")


def _is_own_time(selection: Selection) -> bool:
    """Whether it is the record's time, which is the event time where nothing else is said."""
    return selection.parts[-2:] == (META, "timestamp")


def _event_time(selection: Selection, alias: str, rows: Rows) -> str:
    """The column of the topic that is the event time."""
    text = expression(selection, Scope((Item(alias, rows),))).text
    for facet, what in ((KEY, rows.key), (VALUE, rows.value)):
        for name in () if what is None else columns_of(facet, what):
            if text == by_alias(alias, name):
                return name
    raise unsupported(
        selection.place, "the event time must be a field of the topic itself", "Name a field that is in no other one."
    )


def _own_key(side: _Side) -> tuple[KeyPart, ...] | None:
    key = side.rows.key
    if key is None:
        return None
    names: Sequence[str | None] = (None,) if key.primitive else key.fields
    return tuple(
        KeyPart(name, written(side.place, by_alias(side.item.alias, column)), column in side.rows.not_null)
        for name, column in zip(names, side.rows.key_columns, strict=True)
    )


# --- joins ----------------------------------------------------------------------------------------------------------
def _joined(joins: Sequence[Join], sides: list[_Side], reads: tuple[str, ...]) -> From:
    scope = Scope(tuple(side.item for side in sides), records=False)
    kind, text, key = sides[0].rows.kind, sides[0].text, _own_key(sides[0])
    told = True
    for number, (join, side) in enumerate(zip(joins, sides[1:], strict=True)):
        left = sides[: number + 1]
        _check_within(join, kind, side.rows.kind)
        on = _condition(join, left[-1], side, scope)
        swapped, spelled = _direction(join, kind, side.rows.kind)
        if swapped and number:
            raise unsupported(
                join.place, "such a join cannot follow another one", "Give the first join a name with WITH."
            )
        within = "" if join.within is None else f" WITHIN {join.within.amount} {join.within.unit}"
        first, second = (side.text, text) if swapped else (text, side.text)
        text = written(first, join.place, f" {spelled} ", second, within, " ON ", on)
        if kind is _TABLE and side.rows.kind is _TABLE:
            by_right = _is_told_by_right(join, left, side, scope)
            key, told = _own_key(side) if by_right else key, told and by_right is not None
        else:
            key = _join_key(join, scope, left, side)
        kind = _TABLE if kind is _TABLE and side.rows.kind is _TABLE else _STREAM
    found = From(text, _missing(scope, joins), kind, key, reads)
    return found if told else _with_made_key(found, joins, sides, scope)


def _is_told_by_right(join: Join, left: Sequence[_Side], right: _Side, scope: Scope) -> bool | None:
    """Whether the joined rows of TABLEs are told apart by the key of the right one; else by that of the left one, each
    row of which meets one row at most. None: several would have one key."""
    if join.side == "OUTER":
        return None
    if join.on is None:
        return join.side == "RIGHT"
    compared = [_compared(each, scope, {side.item.alias for side in left}, right) for each in _operands(join.on)]
    texts = {expression(part, scope).text for pair in compared if pair is not None for part in pair}
    whole = [
        {by_alias(side.item.alias, column) for column in side.rows.key_columns} <= texts for side in (*left, right)
    ]
    if whole[-1] and join.side != "RIGHT":
        return False
    return True if whole[0] and len(left) == 1 and join.side != "LEFT" else None


def _with_made_key(found: From, joins: Sequence[Join], sides: Sequence[_Side], scope: Scope) -> From:
    """Of two TABLEs of which the whole keys are compared, and nothing else, that of either one; else all keys."""
    pairs = _whole_keys(joins[0], sides[0], sides[1], scope) if len(joins) == 1 else None
    if pairs is None:
        text = _text_of_keys([by_alias(side.item.alias, name) for side in sides for name in side.rows.key_columns])
        return replace(found, key=(KeyPart(None, text, never_null=True),), made_key=(text,))
    shared = tuple(
        written(f"coalesce({by_alias(sides[0].item.alias, one)}, {by_alias(sides[1].item.alias, other)})")
        for one, other in pairs
    )
    own = _own_key(sides[0]) or ()
    key = tuple(KeyPart(part.name, text, never_null=True) for part, text in zip(own, shared, strict=True))
    return replace(found, key=key, made_key=shared)


def _text_of_keys(columns: Sequence[str]) -> Written:
    """All of them as one text, an array of texts as JSON has it: a key of a TABLE has no part that is NULL."""

    def text(column: str) -> str:
        plain = f"CAST({column} AS VARCHAR)"
        for special, escaped in (("\\", "\\\\"), ('"', '\\"')):
            plain = f"replace({plain}, {constant(special)}, {constant(escaped)})"
        return f"coalesce('\"' || {plain} || '\"', 'null')"

    texts = " || ',' || ".join(map(text, columns))
    return written(f"('[' || {texts} || ']')")


def _whole_keys(join: Join, left: _Side, right: _Side, scope: Scope) -> Sequence[tuple[str, str]] | None:
    """Pairs of the key columns of both sides, if ON compares them and nothing else."""
    if join.on is None:
        return list(zip(left.rows.key_columns, right.rows.key_columns, strict=True))
    found: list[tuple[str, str]] = []
    columns = [{by_alias(side.item.alias, name): name for name in side.rows.key_columns} for side in (left, right)]
    operands = _operands(join.on)
    for each in operands:
        pair = _compared(each, scope, {left.item.alias}, right)
        if pair is not None:
            one, other = (expression(side, scope).text for side in pair)
            if one in columns[0] and other in columns[1]:
                found.append((columns[0][one], columns[1][other]))
    order = {name: place for place, name in enumerate(left.rows.key_columns)}
    found.sort(key=lambda pair: order[pair[0]])
    whole = all(
        sorted(pair[index] for pair in found) == sorted(side.rows.key_columns)
        for index, side in enumerate((left, right))
    )
    return found if whole and len(found) == len(operands) else None


def _missing(scope: Scope, joins: Sequence[Join]) -> Scope:
    """With the columns that an outer join may find nothing for as ones that may be NULL."""
    items = list(scope.items)
    for number, join in enumerate(joins, start=1):
        of_left = range(number) if join.side in ("RIGHT", "OUTER") else range(0)
        of_right = (number,) if join.side in ("LEFT", "OUTER") else ()
        for index in (*of_left, *of_right):
            rows = items[index].rows
            if rows is not None:
                items[index] = replace(items[index], rows=replace(rows, not_null=frozenset(), missing=True))
    return replace(scope, items=tuple(items))


def _check_within(join: Join, left: RowKind, right: RowKind) -> None:
    streams = left is _STREAM and right is _STREAM
    if streams and join.within is None:
        raise problem(
            join.place,
            sqlstates.SYNTAX_ERROR,
            "a join of two streams needs WITHIN",
            "Write WITHIN 1h behind the condition.",
        )
    if not streams and join.within is not None:
        raise problem(join.within.place, sqlstates.SYNTAX_ERROR, "WITHIN is for joins of two streams", "Leave it out.")


def _direction(join: Join, left: RowKind, right: RowKind) -> tuple[bool, str]:
    """Whether the sides change places, and the join's words then."""
    side = join.side
    if left is _TABLE and right is _STREAM:
        if side in ("LEFT", "OUTER"):
            raise unsupported(
                join.place,
                f"{_JOINS[side]} of a TABLE with a STREAM is not supported",
                "INNER and RIGHT are, as in the original; the result has a record for each of the stream.",
            )
        return True, "JOIN" if side == "INNER" else "LEFT JOIN"
    if left is _STREAM and right is _TABLE and side in ("RIGHT", "OUTER"):
        raise unsupported(
            join.place,
            f"{_JOINS[side]} of a STREAM with a TABLE is not supported",
            "INNER and LEFT are, as in the original; the result has a record for each of the stream.",
        )
    if side == "RIGHT":
        return True, "LEFT JOIN"
    return False, {"INNER": "JOIN", "LEFT": "LEFT JOIN", "OUTER": "FULL JOIN"}[side]


def _condition(join: Join, left: _Side, right: _Side, scope: Scope) -> Written:
    if join.on is not None:
        return expression(join.on, scope)
    for side in (left, right):
        if side.rows.key is None:
            raise problem(
                join.place,
                sqlstates.UNDEFINED_COLUMN,
                f'nothing is known of the key of "{side.item.alias}"',
                "Say what is compared: ON a.field = b.field.",
            )
    if left.rows.key != right.rows.key:
        raise problem(
            join.place,
            sqlstates.DATATYPE_MISMATCH,
            f'the keys of "{left.item.alias}" and "{right.item.alias}" have different fields',
            "Say what is compared: ON a.field = b.field.",
        )
    pairs = [
        written(join.place, f"{by_alias(left.item.alias, name)} = {by_alias(right.item.alias, name)}")
        for name in left.rows.key_columns
    ]
    return joined(" AND ", pairs)


def _join_key(join: Join, scope: Scope, left: Sequence[_Side], right: _Side) -> tuple[KeyPart, ...] | None:
    """What the condition compares: its left side, or what there is of both in an OUTER join."""
    if join.on is None:
        own, other = _own_key(left[-1]), _own_key(right)
        if own is None or other is None:
            return None
        return tuple(
            KeyPart(mine.name, _chosen(join, mine.text, its.text), mine.never_null and its.never_null)
            for mine, its in zip(own, other, strict=True)
        )
    aliases = {side.item.alias for side in left}
    pairs = [pair for each in _operands(join.on) if (pair := _compared(each, scope, aliases, right))]
    if not pairs:
        return None
    parts: list[KeyPart] = []
    for mine, its in pairs:
        text = _chosen(join, expression(mine, scope), expression(its, scope))
        parts.append(KeyPart(mine.parts[-1] if isinstance(mine, Selection) else f"key{len(parts) + 1}", text))
    if len(parts) == 1:
        return (KeyPart(None, parts[0].text),)
    return tuple(parts) if len({part.name for part in parts}) == len(parts) else None


def _chosen(join: Join, mine: Written, its: Written) -> Written:
    if join.side == "OUTER":
        return written("coalesce(", mine, ", ", its, ")")
    return its if join.side == "RIGHT" else mine


def _operands(on: Expression) -> Sequence[Expression]:
    return on.operands if isinstance(on, Chain) and on.operator == "AND" else (on,)


def _compared(node: Expression, scope: Scope, left: set[str], right: _Side) -> tuple[Expression, Expression] | None:
    """An equality between the sides, that of the left one first."""
    if not isinstance(node, Binary) or node.operator != "=":
        return None
    one, other = node.left, node.right
    if not isinstance(one, Selection) or not isinstance(other, Selection):
        return None
    of_one, of_other = scope.item_of(one), scope.item_of(other)
    if of_one in left and of_other == right.item.alias:
        return one, other
    if of_other in left and of_one == right.item.alias:
        return other, one
    return None


def wrong_kind(select: Select, kind: RowKind) -> ProblemError:
    return problem(
        select.place,
        sqlstates.WRONG_OBJECT_TYPE,
        f"SELECT {select.kind.value} does not fit its source, which is a {kind.value}",
        f"Write SELECT {kind.value}, or read the topic anew: WITH name AS (SELECT {select.kind.value} * FROM topic);",
    )
