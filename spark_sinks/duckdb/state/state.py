"""State tables: what a view keeps in DuckDB, how a batch of partial aggregates merges into it, how columns finish.

A view in upsert mode has a table keyed by its group columns, which refuses NULL in them, and a small table of its own
for keys with a NULL, merged by IS NOT DISTINCT FROM. A view in append mode has one table without a key. The
user's rows come from a DuckDB view over these tables, which finishes the columns.

Merge state per measure: COUNT a sum of counts, SUM a sum, MIN and MAX the extreme, MOMENTS count, mean and sum of
squared deviations (Chan, Golub and LeVeque, 1979: pairwise updating), so that every merge is associative. A measure
of DISTINCT values takes in the values that are new to their group, as their value table tells.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from spark_sinks.duckdb.joins.join_sides import Batch, FeedState
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state import value_tables
from spark_sinks.duckdb.state.value_tables import ValueTable
from spark_sinks.duckdb.state.windows import Aging, Removal, WatermarkRule, Windowing, carry_statement

NULLS = "_nulls"  # the table of keys with a NULL, beside the state's own
JOIN = "_join"  # of the tables of a join that a view reads, before their own words
ROWS = "_rows"  # that of the contributions of a changelog's rows
SETTLED = "_settled"  # that of what contributions gave which are kept no more
OUTBOX = "_outbox"  # that of what is to be written elsewhere
HISTORY = "_history"  # that of what became of the rows that a view shows


class Measure(enum.Enum):
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MOMENTS = "moments"


_ONLY_KEY = "k"  # of a state without keys
EVENT_US = "event_us"  # of a projection's rows that age


@dataclass(frozen=True)
class StateMeasure:
    """A measure of a view. ``type`` is DuckDB's type of the merged value (unused for COUNT and MOMENTS); ``values`` is
    the value table whose new values it takes in, None where it takes in every record. ``distinct``: it is taken over
    the rows of a changelog, each value once."""

    kind: Measure
    type: str
    values: int | None = None
    distinct: bool = False

    def columns(self, index: int) -> tuple[tuple[str, str], ...]:
        """Its state columns as (name, DuckDB type)."""
        if self.kind is Measure.COUNT:
            return ((f"m{index}", "BIGINT"),)
        if self.kind is Measure.MOMENTS:
            return ((f"m{index}_n", "BIGINT"), (f"m{index}_mean", "DOUBLE"), (f"m{index}_m2", "DOUBLE"))
        return ((f"m{index}", self.type),)


@dataclass(frozen=True)
class UpsertState:
    """A keyed view's state. ``table`` is the state table's bare name; ``key_types`` are DuckDB types. ``totals``:
    groups that are there before any record, by the number of their empty grouping set, which is the last key."""

    table: str
    key_types: tuple[str, ...]
    measures: tuple[StateMeasure, ...]
    values: tuple[ValueTable, ...] = ()
    totals: tuple[int, ...] = ()
    windowing: Windowing | None = None

    @property
    def tables(self) -> tuple[str, ...]:
        """All tables of the state."""
        return (self.table, *(() if self.nulls is None else (self.nulls,)), *self.value_tables)

    @property
    def nulls(self) -> str | None:
        """The table of the rows whose key holds a NULL; None without keys."""
        return f"{self.table}{NULLS}" if self.key_types else None

    @property
    def value_tables(self) -> tuple[str, ...]:
        return tuple(value_tables.table_name(self.table, i) for i in range(len(self.values)))

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(f"k{i}" for i in range(len(self.key_types)))

    @property
    def identity(self) -> tuple[str, ...]:
        """The keys that tell apart the rows that are seen."""
        windowing = self.windowing
        if windowing is None or not windowing.latest:
            return self.keys
        return windowing.others(self.keys)

    @property
    def state_columns(self) -> tuple[tuple[str, str], ...]:
        """All merged columns; ``n``, the hidden row count, first."""
        flat = [column for i, measure in enumerate(self.measures) for column in measure.columns(i)]
        return (("n", "BIGINT"), *flat)

    @property
    def stored_columns(self) -> tuple[tuple[str, str], ...]:
        """All columns of the table and their types. Without keys there is one row, under a key of its own."""
        keys = tuple(zip(self.keys, self.key_types, strict=True)) or ((_ONLY_KEY, "UTINYINT"),)
        return (*keys, *self.state_columns)


@dataclass(frozen=True)
class AppendState:
    """A projection's rows. ``types`` are DuckDB types of c0, c1 ..."""

    table: str
    types: tuple[str, ...]
    aging: Aging | None = None

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table,)

    @property
    def stored_columns(self) -> tuple[tuple[str, str], ...]:
        """All columns of the table and their types."""
        times = ((EVENT_US, "BIGINT"),) if self.aging is not None else ()
        return (*((f"c{i}", kind) for i, kind in enumerate(self.types)), *times)

    def take_statements(self, batch: Batch) -> list[str]:
        """The last of the batch's columns is the event time, where rows age."""
        rows = f"SELECT {', '.join(batch.columns)} FROM {batch.relation} WHERE {batch.passing}"
        carried = [] if batch.event is None else [carry_statement(batch.query_id, batch.event, batch.relation)]
        return [f"INSERT INTO {qualified(self.table)} {rows}", *carried]

    def added_rows(self, batch: Batch) -> str:
        """Query of the rows that the view shows besides, behind a batch: c0, c1 ..."""
        columns = ", ".join(f"{column} AS c{i}" for i, column in enumerate(batch.columns[: len(self.types)]))
        return f"SELECT {columns} FROM {batch.relation} WHERE {batch.passing}"


def watermark_rule(state: State) -> WatermarkRule | None:
    """None where there is no watermark."""
    if isinstance(state, AppendState) and state.aging is not None:
        aging = state.aging
        return WatermarkRule(aging.delay_us, Removal(state.tables, EVENT_US, aging.retention_us))
    if isinstance(state, FeedState) and state.side.watched is not None:
        return WatermarkRule(state.side.delay_us, moved=tuple(state.join.low_statements()))
    if not isinstance(state, UpsertState) or state.windowing is None:
        return None
    windowing, removal = state.windowing, None
    if windowing.retention_us is not None:
        removal = Removal(state.tables, f"epoch_us(k{windowing.end_key})", windowing.retention_us)
    return WatermarkRule(windowing.delay_us, removal)


class OtherState(Protocol):
    """What else a view may keep, in a module of its own."""

    @property
    def table(self) -> str: ...

    @property
    def tables(self) -> tuple[str, ...]: ...

    def create_statements(self) -> list[str]: ...


State = UpsertState | AppendState | OtherState


def main_table(table: str) -> str:
    """The state table that a table of a state belongs to: itself, or the one that it stands beside."""
    beside = table.split(JOIN, 1)[0].split(value_tables.SUFFIX, 1)[0]
    for suffix in (NULLS, ROWS, OUTBOX, SETTLED, HISTORY):
        beside = beside.removesuffix(suffix)
    return beside


def keyed(columns: Sequence[str], keys: Sequence[str], *, replaced: bool = False) -> list[str]:
    """The definitions of a table of whole keys, whose columns come first. ``replaced``: rows are put in by ``INSERT OR
    REPLACE``, which needs a primary key.

    An index of several columns serves no merge and no look-up, but every new row has to be put into it. So states of
    several keys have none. That no key is there twice is the merge's doing, whose rows have each key once.
    """
    if replaced or len(keys) == 1:
        return [*columns, f"PRIMARY KEY ({', '.join(keys)})"]
    return [*(f"{column} NOT NULL" for column in columns[: len(keys)]), *columns[len(keys) :]]


def create_statements(state: State, *, replaced: bool = False) -> list[str]:
    """DDL of a state; a keyless aggregate starts with its one row, as SELECT count(*) over nothing has. ``replaced``:
    as in :func:`keyed`."""
    if not isinstance(state, (UpsertState, AppendState)):
        return state.create_statements()
    columns = [f"{name} {kind}" for name, kind in state.stored_columns]
    if isinstance(state, AppendState):
        return [f"CREATE TABLE {qualified(state.table)} ({', '.join(columns)})"]
    beside = [
        value_tables.create_statement(state.table, i, state.key_types, each) for i, each in enumerate(state.values)
    ]
    if not state.keys:
        return [
            f"CREATE TABLE {qualified(state.table)} ({', '.join(columns)}, PRIMARY KEY ({_ONLY_KEY}))",
            f"INSERT INTO {qualified(state.table)} VALUES (0, {_zeros(state)})",
            *beside,
        ]
    grows = state.windowing is not None and state.windowing.gap_us is not None
    whole = columns if grows else keyed(columns, state.keys, replaced=replaced)
    return [
        f"CREATE TABLE {qualified(state.table)} ({', '.join(whole)})",
        f"CREATE TABLE {qualified(state.table + NULLS)} ({', '.join(columns)})",
        *beside,
        *total_statements(state),
    ]


def total_statements(state: UpsertState) -> list[str]:
    """What puts in the groups that are there without any record, where they are not."""
    table = qualified(state.table + (NULLS if len(state.keys) > 1 else ""))
    nulls = "NULL, " * (len(state.keys) - 1)
    return [
        f"INSERT INTO {table} SELECT {nulls}{number}, {_zeros(state)} "
        f"WHERE NOT EXISTS (SELECT 1 FROM {table} WHERE {state.keys[-1]} = {number})"
        for number in state.totals
    ]


def _zeros(state: UpsertState) -> str:
    return ", ".join("0" if is_count(name, state) else "NULL" for name, _ in state.state_columns)


def source_text(state: UpsertState, *, nulls: bool = True) -> str:
    """A FROM item with the columns k0 ..., n, m0 ... of all rows, or of those whose keys hold no NULL."""
    columns = ", ".join([*state.keys, *(name for name, _ in state.state_columns)])
    if not state.keys or not nulls:
        return f"(SELECT {columns} FROM {qualified(state.table)})"
    return (
        f"(SELECT {columns} FROM {qualified(state.table)} UNION ALL "
        f"SELECT {columns} FROM {qualified(state.table + NULLS)})"
    )


@dataclass(frozen=True)
class MergedColumn:
    """``updated``: what it becomes of columns of ``t``, the row that is there, and of ``s``, the new one."""

    name: str
    updated: str
    inserted: str


def merge_statement(state: UpsertState, rolled_up: str, *, nulls: bool, told_by: str | None = None) -> str:
    """Upserts rows of ``rolled_up``, a query with the columns of the state; ``nulls``: those with a NULL in a key;
    ``told_by``: as in :func:`upsert`."""
    columns = merged_columns(state, {name: name for name, _ in state.state_columns})
    table, keys = state.table + (NULLS if nulls else ""), state.keys or (_ONLY_KEY,)
    return upsert(table, keys, columns, rolled_up, nulls=nulls, told_by=told_by)


def upsert(
    table: str,
    keys: Sequence[str],
    columns: Sequence[MergedColumn],
    rolled_up: str,
    *,
    nulls: bool,
    told_by: str | None = None,
) -> str:
    """MERGE, since ON CONFLICT would have DuckDB look for rows of equal keys among the new ones first, which a roll-up
    has not. ``told_by``: the only key that is to be hashed, of keys without NULL; the others are compared."""
    equal = "IS NOT DISTINCT FROM" if nulls else "="
    compared = () if told_by is None else tuple(key for key in keys if key != told_by)
    same = " AND ".join(
        f"t.{key} >= s.{key} AND t.{key} <= s.{key}" if key in compared else f"t.{key} {equal} s.{key}" for key in keys
    )
    updates = ", ".join(f"{each.name} = {each.updated}" for each in columns)
    names = ", ".join([*keys, *(each.name for each in columns)])
    values = ", ".join([*(f"s.{key}" for key in keys), *(each.inserted for each in columns)])
    return (
        f"MERGE INTO {qualified(table)} AS t USING ({rolled_up}) AS s ON {same} "
        f"WHEN MATCHED THEN UPDATE SET {updates} WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})"
    )


def is_count(name: str, state: UpsertState) -> bool:
    if name == "n":
        return True
    counts = {
        column
        for i, measure in enumerate(state.measures)
        if measure.kind in (Measure.COUNT, Measure.MOMENTS)
        for column, _ in measure.columns(i)[:1]
    }
    return name in counts


def merged_columns(state: UpsertState, new: Mapping[str, str], prefix: str = "") -> list[MergedColumn]:
    """Of each state column. ``new``: its name in the new rows; ``prefix``: before its name in those that are there."""
    found: list[MergedColumn] = []

    def add(column: str, updated: str) -> None:
        found.append(MergedColumn(f"{prefix}{column}", updated, f"s.{new[column]}"))

    def sides(column: str) -> tuple[str, str]:
        return f"t.{prefix}{column}", f"s.{new[column]}"

    add("n", " + ".join(sides("n")))
    for i, measure in enumerate(state.measures):
        if measure.kind is Measure.MOMENTS:
            parts = [f"m{i}_n", f"m{i}_mean", f"m{i}_m2"]
            for column, updated in zip(parts, _merged_moments(*map(sides, parts)), strict=True):
                add(column, updated)
            continue
        old, value = sides(f"m{i}")
        if measure.kind is Measure.COUNT:
            add(f"m{i}", f"{old} + {value}")
        elif measure.kind is Measure.SUM:
            add(f"m{i}", f"coalesce({old} + {value}, {old}, {value})")
        elif has_nested_floats(measure.type):
            sign = "<" if measure.kind is Measure.MIN else ">"
            add(f"m{i}", f"CASE WHEN {old} IS NULL OR {value} {sign} {old} THEN {value} ELSE {old} END")
        elif measure.kind is Measure.MIN:
            add(f"m{i}", f"least({old}, {value})")  # least and greatest skip NULL
        else:
            add(f"m{i}", f"greatest({old}, {value})")
    return found


def has_nested_floats(duck: str) -> bool:
    """Whether it is a structure or an array with floating-point numbers in it. What DuckDB does with such values by
    their sort keys makes 0 of a -0: ``min``, ``greatest``, ``first``, ``INSERT OR REPLACE``."""
    return ("(" in duck or "[" in duck) and re.search(r"\b(DOUBLE|FLOAT|REAL)\b", duck) is not None


Sides = tuple[str, str]  # of a column, in the row that is there and in the new one


def _merged_moments(count: Sides, mean: Sides, m2: Sides) -> tuple[str, str, str]:
    n_old, n_new = count
    total = f"({n_old} + {n_new})"
    delta = f"({mean[1]} - {mean[0]})"
    share = f"({n_new}::DOUBLE / {total})"
    return (
        total,
        _by_side(count, mean, f"{mean[0]} + {delta} * {share}"),
        _by_side(count, m2, f"{m2[0]} + {m2[1]} + {delta} * {delta} * {n_old} * {share}"),
    )


def _by_side(count: Sides, only: Sides, both: str) -> str:
    n_old, n_new = count
    return f"CASE WHEN {n_new} = 0 THEN {only[0]} WHEN {n_old} = 0 THEN {only[1]} ELSE {both} END"


# --- finishing ------------------------------------------------------------------------------------------------------
def average_exact(sum_column: str, sum_scale: int, count_column: str, result_scale: int) -> str:
    """sum / count rounded half up (away from zero) at ``result_scale``, in integers: DuckDB's own division is inexact.

    ``sum_column`` is DECIMAL(38, sum_scale); NULL when count is 0.
    """
    # The text form without its point is the unscaled value; a multiplication could overflow.
    unscaled = f"replace({sum_column}::VARCHAR, '.', '')::HUGEINT" if sum_scale else f"{sum_column}::HUGEINT"
    factor = 10 ** (result_scale - sum_scale)
    size, n = f"abs({unscaled})", f"{count_column}::HUGEINT"
    quotient = f"(({size}) // {n}) * {factor} + ((({size}) % {n}) * {2 * factor} + {n}) // (2 * {n})"
    unit = "0." + "0" * (result_scale - 1) + "1" if result_scale else "1"
    value = (
        f"(sign({sum_column})::HUGEINT * ({quotient}))::DECIMAL(38, 0) "
        f"* '{unit}'::DECIMAL({max(result_scale, 1)}, {result_scale})"
    )
    return f"CASE WHEN {count_column} > 0 THEN ({value})::DECIMAL(38, {result_scale}) END"


def variance(column: str, *, sample: bool, root: bool) -> str:
    """From a MOMENTS measure; NULL below one value (population) or two (sample)."""
    least = 2 if sample else 1
    divisor = f"({column}_n - 1)" if sample else f"{column}_n"
    value = f"greatest({column}_m2, 0) / {divisor}"
    return f"CASE WHEN {column}_n >= {least} THEN {f'sqrt({value})' if root else value} END"
