"""A merge that tells what it does to the rows of a view, where these would else be read before it and behind it.

One statement joins the new groups with the state's rows, and has of each group what it was, what it becomes, and both
as the view shows them. It puts these rows where they belong, by their place in the table where they are there already,
and gives them. What is written is what was told, so that the two cannot differ. (``MERGE … RETURNING`` tells nothing of
the past, and has DuckDB write whole rows: where an index is, it deletes and inserts them.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import pyarrow as pa

from spark_sinks.duckdb.changes.change_outbox import GONE, NEW, OLD_OF_UPDATE, UPDATED
from spark_sinks.duckdb.layout import NamedText
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state.roll_ups import RollUp
from spark_sinks.duckdb.state.state import NULLS, UpsertState, merged_columns
from spark_sinks.duckdb.statements import Statements

OLD = "o_"  # before the names of the state's columns, of a row as it was
_BEFORE, _AFTER = "b_", "a_"
_KIND, _PLACE, _TOLD = "mv_kind", "mv_place", "mv_told"
_SAME, _CAME, _WENT, _CHANGED = range(4)
_PAIR = [OLD_OF_UPDATE, UPDATED]
_TEXTS_MAX = 1_000
_WORD, _CAST = re.compile(r"\w+"), re.compile(r"CAST\((\w+) AS (.+)\)")
_FLOATS = ("FLOAT", "DOUBLE")
_THROUGH_ARROW = re.compile(
    r"VARCHAR|BOOLEAN|U?(?:TINY|SMALL|BIG)?INT(?:EGER)?|HUGEINT|DECIMAL\(.*\)|FLOAT|DOUBLE|DATE|TIME|TIMESTAMP(?:TZ)?|BLOB"
)


@dataclass(frozen=True)
class ShownRow:
    """What a view shows of a row of its state: ``values`` are c0, c1 ..., and ``passes`` is whether it shows the row at
    all. They are over the keys and the columns of ``inner``, which are over those of the state."""

    inner: tuple[NamedText, ...]
    values: tuple[str, ...]
    passes: str | None = None


@dataclass(frozen=True)
class ShownGroups:
    """``before`` is over a row's columns behind OLD. ``counted``: a value is the number of its records, so that no
    merge leaves the row as it is."""

    before: ShownRow
    after: ShownRow
    counted: bool = False


def is_told(state: UpsertState) -> bool:
    """Whether the columns of its rows come back from Arrow as they went."""
    return all(_THROUGH_ARROW.fullmatch(kind) for _, kind in state.stored_columns)


@dataclass(frozen=True)
class Told:
    """``keys`` (g0 ...) of all groups of the batch, and the changes of the rows that are shown: op, the keys, c0, c1
    ..., the rows of one pair side by side. ``grew``: some of the groups are new."""

    keys: pa.Table
    changes: pa.Table
    grew: bool


def merge_and_tell(statements: Statements, roll_up: RollUp, shown: ShownGroups, *, grows: bool) -> Told:
    """Merges. ``grows``: new groups are likely, so they are put in by the same statement; it need not be so."""
    told = _telling(roll_up.state, roll_up.query, bool(roll_up.nulls), shown)
    groups = statements.table(told.growing if grows else told.known)
    grew = groups.column(_PLACE).null_count > 0
    if grew and not grows:
        with statements.named(groups) as name:
            statements.execute(told.coming.format(name))
    keys = roll_up.state.keys
    named = groups.select(list(keys)).rename_columns([f"g{i}" for i in range(len(keys))])
    return Told(named, _changes(groups, told), grew)


def _changes(groups: pa.Table, told: _Telling) -> pa.Table:
    """The rows as they were stand before those as they are, and are taken from there by twos."""
    number = groups.num_rows
    if told.has_kinds:
        kinds = groups.column(_KIND).to_pylist()
    elif groups.column(_PLACE).null_count:
        kinds = [_CAME if place is None else _CHANGED for place in groups.column(_PLACE).to_pylist()]
    else:
        kinds = []  # all of them have changed
    places: list[int] = []
    ops: list[str] = []
    for at, kind in enumerate(kinds):
        if kind == _CHANGED:
            places += (at, number + at)
            ops += _PAIR
        elif kind == _CAME:
            places.append(number + at)
            ops.append(NEW)
        elif kind == _WENT:
            places.append(at)
            ops.append(GONE)
    if not kinds:
        places = list(chain.from_iterable(zip(range(number), range(number, 2 * number), strict=True)))
        ops = _PAIR * number
    taken = pa.array(places, pa.int64())
    columns = [
        pa.chunked_array([*groups.column(old).chunks, *groups.column(new).chunks], groups.field(new).type).take(taken)
        for old, new in zip(told.before, told.after, strict=True)
    ]
    return pa.table([pa.array(ops, pa.string()), *columns], ["op", *told.names])


@dataclass(frozen=True)
class _Telling:
    """``growing`` puts the groups into the table and gives them, ``known`` all but new ones, and ``coming`` these, of
    the groups that were given, for whose name it has a place. ``before`` and ``after`` are the columns of the rows that
    are shown, whose ``names`` are the keys, c0, c1 ..."""

    growing: str
    known: str
    coming: str
    names: list[str]
    before: list[str]
    after: list[str]
    has_kinds: bool


@lru_cache(_TEXTS_MAX)
def _telling(state: UpsertState, rolled_up: str, nulls: bool, shown: ShownGroups) -> _Telling:
    table = qualified(state.table + (NULLS if nulls else ""))
    types, columns = dict(state.stored_columns), [name for name, _ in state.state_columns]
    keys = [name for name in types if name not in columns]
    before, after = _resolved(shown.before, types), _resolved(shown.after, types)
    has_kinds = shown.after.passes is not None or not shown.counted
    was = f"({OLD}n IS NOT NULL{'' if shown.before.passes is None else f' AND ({shown.before.passes})'})"
    is_ = "true" if shown.after.passes is None else f"({shown.after.passes})"
    # a number comes first: of a statement that writes, DuckDB's client takes the first value for the rows written
    selected = {name: name for name in ("n", _PLACE, *types)}
    sides: list[list[str]] = []
    for side, values, there in ((_BEFORE, before, was), (_AFTER, after, is_)):
        names = []
        for i, (text, plain) in enumerate(values):
            name = text if plain else f"{side}c{i}"
            names.append(name)
            selected[name] = text if plain or there == "true" else f"CASE WHEN {there} THEN {text} END"
        sides.append([*state.keys, *names])
    if has_kinds:
        selected[_KIND] = f"CAST({_kind(was, is_, before, after, counted=shown.counted)} AS TINYINT)"
    used = set(_WORD.findall(" ".join(selected.values())))
    inner = "".join(f", {text} AS {name}" for name, text in (*shown.before.inner, *shown.after.inner) if name in used)
    query = (
        f"SELECT {', '.join(f'{text} AS {name}' for name, text in selected.items())} "
        f"FROM (SELECT *{inner} FROM ({_joined(state, table, rolled_up, keys, nulls=nulls)}))"
    )
    stored = ", ".join(types)
    # DuckDB carries out statements in WITH in their order, each after what it reads is complete
    put = (
        f"WITH {_TOLD} AS MATERIALIZED ({query}), "
        f"mv_put AS (UPDATE {table} AS t SET {', '.join(f'{name} = s.{name}' for name in columns)} "
        f"FROM {_TOLD} AS s WHERE t.rowid = s.{_PLACE})"
    )
    coming = f"INSERT INTO {table} ({stored}) SELECT {stored} FROM {{}} WHERE {_PLACE} IS NULL"
    return _Telling(
        f"{put}, mv_came AS ({coming.format(_TOLD)}) SELECT * FROM {_TOLD}",
        f"{put} SELECT * FROM {_TOLD}",
        coming,
        [*state.keys, *(f"c{i}" for i in range(len(after)))],
        sides[0],
        sides[1],
        has_kinds,
    )


def _resolved(row: ShownRow, types: Mapping[str, str]) -> list[tuple[str, bool]]:
    """The values, and whether they are plain columns of the joined rows."""
    inner, found = dict(row.inner), []
    for text in row.values:
        seen = inner.get(text, text)
        cast = _CAST.fullmatch(seen)
        if cast is not None and types.get(cast[1].removeprefix(OLD)) == cast[2]:
            seen = cast[1]
        plain = seen.removeprefix(OLD) in types
        found.append((seen if plain else text, plain))
    return found


def _kind(
    was: str, is_: str, before: Sequence[tuple[str, bool]], after: Sequence[tuple[str, bool]], *, counted: bool
) -> str:
    pairs = [(old, new) for (old, _), (new, _) in zip(before, after, strict=True) if old != new]
    differs = " OR ".join(f"({old}) IS DISTINCT FROM ({new})" for old, new in pairs)
    changed = str(_CHANGED) if counted else f"CASE WHEN {differs} THEN {_CHANGED} ELSE {_SAME} END"
    if not counted and not pairs:
        changed = str(_SAME)
    return f"CASE WHEN {was} AND {is_} THEN {changed} WHEN {is_} THEN {_CAME} WHEN {was} THEN {_WENT} ELSE {_SAME} END"


def _joined(state: UpsertState, table: str, rolled_up: str, keys: Sequence[str], *, nulls: bool) -> str:
    """Query of the batch's groups: their place in the table, the columns as they were, and as they become."""
    types, columns = dict(state.stored_columns), [name for name, _ in state.state_columns]
    merged = {each.name: each for each in merged_columns(state, {name: name for name in columns})}

    def one(name: str, there: str, new: str) -> str:
        text = new if there == new else f"CASE WHEN t.n IS NULL THEN {new} ELSE {there} END"
        return f"CAST({text} AS {types[name]}) AS {name}"

    selected = [
        f"t.rowid AS {_PLACE}",
        # 0.0 and -0.0 are one group, under the key that came first
        *(one(key, f"{'t' if types[key] in _FLOATS else 's'}.{key}", f"s.{key}") for key in keys),
        *(f"t.{name} AS {OLD}{name}" for name in columns),
        *(one(name, merged[name].updated, merged[name].inserted) for name in columns),
    ]
    equal = "IS NOT DISTINCT FROM" if nulls else "="
    same = " AND ".join(f"t.{key} {equal} s.{key}" for key in keys)
    return f"SELECT {', '.join(selected)} FROM ({rolled_up}) AS s LEFT JOIN {table} AS t ON {same}"
