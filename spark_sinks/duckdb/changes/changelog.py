"""Views over a changelog: what each source row gives to the view is kept by its primary key, and taken back when the
row is replaced or deleted.

A projection's rows are those contributions. An aggregation has them beside its state of groups: group keys, then the
arguments of the aggregates. Counts and exact sums of a changed group are corrected by what went and what came; where a
view has another aggregate, its changed groups are computed anew from their contributions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state import value_tables
from spark_sinks.duckdb.state.grouping_sets import SET, Sets, grouped_in_place
from spark_sinks.duckdb.state.roll_ups import MeasureInput, RollUp, merged_partials, rolled
from spark_sinks.duckdb.state.state import (
    NULLS,
    SETTLED,
    Measure,
    UpsertState,
    create_statements,
    merge_statement,
    source_text,
    total_statements,
)

CHANGES, _OLD, _SIGNED = "mv_changes", "mv_old", "mv_signed"
_GROUPS, _ANEW = "mv_groups", "mv_anew"
_IDENTITY = "id"
_ZONED = "TIMESTAMPTZ"

Register = Callable[[str, pa.Table], None]


@dataclass(frozen=True)
class KeyedRows:
    """A row for each primary key (p0 ...) of the source that is in the view: its columns c0 ... Where a key may hold
    NULLs, or have no columns at all, a text made of it tells the rows apart: a primary key of DuckDB cannot. Where a
    source row gives several rows, the last ``ordinals`` of the key number them."""

    table: str
    key_types: tuple[str, ...]
    types: tuple[str, ...]
    nullable: bool = False
    ordinals: int = 0

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table,)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(f"p{i}" for i in range(len(self.key_types)))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"c{i}" for i in range(len(self.types)))

    @property
    def source_keys(self) -> tuple[str, ...]:
        """The primary key of the source."""
        return self.keys[: len(self.key_types) - self.ordinals]

    @property
    def source_identity(self) -> tuple[str, ...]:
        """The columns that tell the source's rows apart."""
        return (_IDENTITY,) if self.nullable else self.source_keys

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that tell its own rows apart."""
        return (*self.source_identity, *self.keys[len(self.source_keys) :])

    @property
    def stored(self) -> tuple[str, ...]:
        return (*([_IDENTITY] if self.nullable else []), *self.keys, *self.columns)

    def identity_of(self, keys: Sequence[str]) -> str | None:
        """The text of a key, given the columns of a batch; None where the key itself will do."""
        if not self.nullable:
            return None
        texts = [
            f"{f'epoch_us({key})' if kind == _ZONED else key}::VARCHAR"  # an instant is written as its zone has it
            for key, kind in list(zip(keys, self.key_types, strict=True))[: len(self.source_keys)]
        ]
        return f"to_json([{', '.join(texts)}]::VARCHAR[])::VARCHAR"

    @property
    def stored_columns(self) -> tuple[tuple[str, str], ...]:
        """The same with their types."""
        types = (*(["VARCHAR"] if self.nullable else []), *self.key_types, *self.types)
        return tuple(zip(self.stored, types, strict=True))

    def create_statements(self) -> list[str]:
        columns = [f"{name} {kind}" for name, kind in self.stored_columns]
        primary = f"PRIMARY KEY ({', '.join(self.identity)})"
        return [f"CREATE TABLE {qualified(self.table)} ({', '.join([*columns, primary])})"]


@dataclass(frozen=True)
class RetractedState:
    """The groups of a view over a changelog, and the contributions of its source's rows: columns of group keys first;
    ``arguments`` and ``values`` name the columns that each measure and each value table takes."""

    groups: UpsertState
    rows: KeyedRows
    arguments: tuple[str, ...]
    values: tuple[tuple[str, ...], ...] = ()
    sets: Sets = ()
    end: str | None = None  # of a contribution: it does not change any more when the source's watermark has passed it

    @property
    def table(self) -> str:
        return self.groups.table

    @property
    def tables(self) -> tuple[str, ...]:
        return (*self.groups.tables, *self.rows.tables, *(() if self.settled is None else self.settled.tables))

    @property
    def settled(self) -> UpsertState | None:
        """What contributions gave that are forgotten, by group. None where all are kept, and where nobody asks."""
        if self.end is None or self.subtracts or not self.adds:
            return None
        return replace(self.groups, table=f"{self.table}{SETTLED}", totals=())

    @property
    def settles(self) -> bool:
        """Whether a contribution can be forgotten when it does not change any more."""
        return self.end is not None and (self.subtracts or self.settled is not None)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """What a row has of the group keys."""
        return self.rows.columns[: len(self.groups.key_types) - bool(self.sets)]

    @property
    def group_columns(self) -> tuple[str, ...]:
        """The keys of the groups, over what :meth:`grouped` makes."""
        return (*self.key_columns, *([SET] if self.sets else []))

    def grouped(self, relation: str) -> str:
        """A FROM item with a row for each group that a row of ``relation`` is in."""
        return grouped_in_place(relation, self.key_columns, self.sets)

    @property
    def subtracts(self) -> bool:
        """Whether all of its measures can be corrected without a look at the other contributions."""
        return all(
            (m.kind is Measure.COUNT or (m.kind is Measure.SUM and m.type != "DOUBLE")) and not m.distinct
            for m in self.groups.measures
        )

    @property
    def adds(self) -> bool:
        """Whether new contributions alone can be merged into its groups."""
        return not any(m.distinct for m in self.groups.measures)

    def create_statements(self) -> list[str]:
        settled = [] if self.settled is None else create_statements(self.settled)
        return [*create_statements(self.groups, replaced=True), *self.rows.create_statements(), *settled]


ChangelogState = KeyedRows | RetractedState


def last_changes(
    relation: str,
    *,
    keys: Sequence[str],
    known: str,
    passing: str,
    order: Sequence[str],
    columns: Sequence[str],
    identity: str | None = None,
    ordinals: int = 0,
) -> str:
    """The last record of each primary key in a batch, with all of its rows; ``known`` leaves out rejected ones. One
    that does not pass, or has no value, takes its key out of the view. ``identity``: what the key is told apart by,
    where not by itself."""
    selected = [f"{key} AS p{i}" for i, key in enumerate(keys)]
    selected += [] if identity is None else [f"{identity} AS {_IDENTITY}"]
    selected.append(f"{passing} AS passes")
    selected += [f"{column} AS c{i}" for i, column in enumerate(columns)]
    told_apart = ", ".join(keys[: len(keys) - ordinals]) if identity is None else _IDENTITY
    latest = f"rank() OVER (PARTITION BY {told_apart} ORDER BY {', '.join(f'{o} DESC' for o in order)})"
    return f"SELECT {', '.join(selected)} FROM {relation} WHERE {known} QUALIFY {latest} = 1"


def merge_changes(
    cursor: duckdb.DuckDBPyConnection, register: Register, state: ChangelogState, changes: pa.Table
) -> None:
    """Inside the batch's transaction. ``changes``: what :func:`last_changes` gave, which is registered as CHANGES."""
    if isinstance(state, KeyedRows):
        _replace_rows(cursor, state, changes)
        return
    same = _equal(state.rows.source_identity)
    columns = ", ".join(state.rows.columns) or "1 AS one"
    stored = ", ".join(f"r.{name}" for name in state.rows.columns) or "1 AS one"
    old = cursor.sql(
        f"SELECT {stored} FROM {qualified(state.rows.table)} AS r SEMI JOIN {CHANGES} AS c ON {same}"
    ).to_arrow_table()
    register(_OLD, old)
    both = f"SELECT 1 AS s, {columns} FROM {CHANGES} WHERE passes UNION ALL SELECT -1, {columns} FROM {_OLD}"
    signed = cursor.sql(f"SELECT * FROM {state.grouped(f'({both})')}").to_arrow_table()
    _replace_rows(cursor, state.rows, changes)
    if signed.num_rows == 0:
        return
    register(_SIGNED, signed)
    _merge_values(cursor, state)
    if state.subtracts:
        _merge_differences(cursor, state)
    elif old.num_rows == 0 and state.adds:
        _merge_new(cursor, state)
    else:
        _compute_anew(cursor, register, state)
    for statement in total_statements(state.groups):
        cursor.execute(statement)


def _replace_rows(cursor: duckdb.DuckDBPyConnection, rows: KeyedRows, changes: pa.Table) -> None:
    passing = pc.sum(changes.column("passes")).as_py() or 0
    if rows.ordinals:
        changed, same = _equal(rows.source_identity), _equal(rows.identity)
        cursor.execute(
            f"DELETE FROM {qualified(rows.table)} AS r WHERE EXISTS (SELECT 1 FROM {CHANGES} AS c WHERE {changed}) "
            f"AND NOT EXISTS (SELECT 1 FROM {CHANGES} AS c WHERE {same} AND c.passes)"
        )
    elif passing < changes.num_rows:
        same = _equal(rows.identity)
        cursor.execute(f"DELETE FROM {qualified(rows.table)} AS r USING {CHANGES} AS c WHERE {same} AND NOT c.passes")
    if passing:
        cursor.execute(_replacing(qualified(rows.table), rows.identity, rows.stored, f"{CHANGES} WHERE passes"))


def _replacing(table: str, identity: Sequence[str], columns: Sequence[str], source: str) -> str:
    """Rows that take the place of those with the same identity. ``INSERT OR REPLACE`` would make 0 of a -0 within an
    array or a structure."""
    same = " AND ".join(f"t.{name} = s.{name}" for name in identity)
    others = ", ".join(f"{name} = s.{name}" for name in columns if name not in identity)
    names, given = ", ".join(columns), ", ".join(f"s.{name}" for name in columns)
    return (
        f"MERGE INTO {table} AS t USING (SELECT {names} FROM {source}) AS s ON {same} "
        f"WHEN MATCHED THEN {f'UPDATE SET {others}' if others else 'DO NOTHING'} "
        f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({given})"
    )


def _equal(columns: Sequence[str]) -> str:
    """Of a row r and a change c."""
    return " AND ".join(f"r.{column} = c.{column}" for column in columns)


# --- groups ---------------------------------------------------------------------------------------------------------
def _merge_values(cursor: duckdb.DuckDBPyConnection, state: RetractedState) -> None:
    groups = state.groups
    for index, (values, arguments) in enumerate(zip(groups.values, state.values, strict=True)):
        cursor.execute(
            value_tables.merge_statement(
                groups.table,
                index,
                groups.key_types,
                values,
                relation=_SIGNED,
                keys=state.group_columns,
                passing="true",
                count="s",
                arguments=arguments,
            )
        )
        cursor.execute(f"DELETE FROM {qualified(value_tables.table_name(groups.table, index))} WHERE n = 0")


def _merge_differences(cursor: duckdb.DuckDBPyConnection, state: RetractedState) -> None:
    """Adds what came and subtracts what went."""
    keys = state.group_columns
    selected = [f"{key} AS k{i}" for i, key in enumerate(keys)] if keys else ["0 AS k"]
    selected.append("sum(s)::BIGINT AS n")
    for i, (measure, a) in enumerate(zip(state.groups.measures, state.arguments, strict=True)):
        if measure.kind is Measure.COUNT:
            selected.append(f"count({a}) FILTER (s = 1) - count({a}) FILTER (s = -1) AS m{i}")
        else:
            came, went = (f"coalesce(sum({a}) FILTER (s = {sign}), 0)" for sign in (1, -1))
            selected.append(f"({came} - {went})::{measure.type} AS m{i}")
    grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
    for nulls in (False, True) if keys else (None,):
        differences = f"SELECT {', '.join(selected)} FROM {_SIGNED} WHERE {with_nulls(keys, nulls)}{grouping}"
        _merge(cursor, state, differences, nulls=bool(nulls))
    if keys:
        for table in (state.table, state.table + NULLS):
            cursor.execute(f"DELETE FROM {qualified(table)} WHERE n = 0")


def _merge_new(cursor: duckdb.DuckDBPyConnection, state: RetractedState) -> None:
    """As a stream's rows: nothing was replaced."""
    keys = state.group_columns
    inputs = tuple(MeasureInput(argument=argument) for argument in state.arguments)
    for nulls in (False, True) if keys else (None,):
        new = RollUp(state.groups, _SIGNED, keys, inputs, nulls=nulls)
        _merge(cursor, state, new.query, nulls=bool(nulls))


def _merge(cursor: duckdb.DuckDBPyConnection, state: RetractedState, rows: str, *, nulls: bool) -> None:
    cursor.execute(merge_statement(state.groups, rows, nulls=nulls))


def _compute_anew(cursor: duckdb.DuckDBPyConnection, register: Register, state: RetractedState) -> None:
    """The changed groups from all of their contributions, and what is settled of them."""
    keys, groups = state.group_columns, state.groups
    names = ", ".join([*groups.keys, *(name for name, _ in groups.state_columns)])
    main = qualified(groups.table)
    if not keys:
        register(_ANEW, cursor.sql(_contributed(state)).to_arrow_table())
        cursor.execute(_replacing(main, ("k",), ("k", *(name for name, _ in groups.state_columns)), _ANEW))
        return
    changed = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
    register(_GROUPS, cursor.sql(f"SELECT DISTINCT {changed} FROM {_SIGNED}").to_arrow_table())
    register(_ANEW, cursor.sql(_contributed(state)).to_arrow_table())
    whole, partly = (with_nulls(groups.keys, nulls) for nulls in (False, True))
    stored = (*groups.keys, *(name for name, _ in groups.state_columns))
    cursor.execute(_replacing(main, groups.keys, stored, f"{_ANEW} WHERE {whole}"))
    gone = " AND ".join(f"t.{key} = g.{key}" for key in groups.keys)
    still = " AND ".join(f"a.{key} = g.{key}" for key in groups.keys)
    cursor.execute(
        f"DELETE FROM {main} AS t USING {_GROUPS} AS g WHERE {gone} "
        f"AND NOT EXISTS (SELECT 1 FROM {_ANEW} AS a WHERE {still})"
    )
    nulls = qualified(groups.table + NULLS)
    known = " AND ".join(f"t.{key} IS NOT DISTINCT FROM g.{key}" for key in groups.keys)
    cursor.execute(f"DELETE FROM {nulls} AS t USING {_GROUPS} AS g WHERE {known}")
    cursor.execute(f"INSERT INTO {nulls} ({names}) SELECT {names} FROM {_ANEW} WHERE {partly}")


def _contributed(state: RetractedState) -> str:
    """Query of what the contributions to the groups come to, with what is settled; of groups with keys, _GROUPS."""
    groups, settled = state.groups, state.settled
    found = rolled_contributions(state, qualified(state.rows.table), _of_groups(state.group_columns))
    if settled is None:
        return found
    names = ", ".join([*(groups.keys or ("0 AS k",)), *(name for name, _ in groups.state_columns)])
    both = f"{found} UNION ALL SELECT {names} FROM {source_text(settled)} AS r{_of_groups(groups.keys)}"
    return merged_partials(groups, f"({both})")


def _of_groups(keys: Sequence[str]) -> str:
    same = " AND ".join(f"r.{key} IS NOT DISTINCT FROM g.k{i}" for i, key in enumerate(keys))
    return f" WHERE EXISTS (SELECT 1 FROM {_GROUPS} AS g WHERE {same})" if keys else ""


def rolled_contributions(state: RetractedState, relation: str, where: str) -> str:
    """Query of what these contributions come to, shaped as the state of groups."""
    keys, groups = state.group_columns, state.groups
    selected = [f"r.{key} AS k{i}" for i, key in enumerate(keys)] if keys else ["0 AS k"]
    selected.append("count(*) AS n")
    for i, (measure, argument) in enumerate(zip(groups.measures, state.arguments, strict=True)):
        selected += [f"{text} AS {column}" for column, text in rolled(i, measure, MeasureInput(argument=argument))]
    grouping = f" GROUP BY {', '.join(f'r.{key}' for key in keys)}" if keys else ""
    return f"SELECT {', '.join(selected)} FROM {state.grouped(relation)} AS r{where}{grouping}"


def with_nulls(keys: Sequence[str], nulls: bool | None) -> str:
    """Only rows with (True) or without (False) a NULL among their keys, or all."""
    if nulls is None:
        return "true"
    any_null = " OR ".join(f"{key} IS NULL" for key in keys)
    return f"({any_null})" if nulls else f"NOT ({any_null})"
