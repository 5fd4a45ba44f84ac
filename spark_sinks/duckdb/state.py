"""State tables: what a view keeps in DuckDB, how a batch of partial aggregates merges into it, how columns finish.

A view in upsert mode has a table keyed by its group columns and a small table of its own for keys with a NULL (a
primary key refuses NULL), merged by IS NOT DISTINCT FROM. A view in append mode has one table without a key. The
user's rows come from a DuckDB view over these tables, which finishes the columns.

Merge state per measure: COUNT a sum of counts, SUM a sum, MIN and MAX the extreme, MOMENTS count, mean and sum of
squared deviations (Chan, Golub and LeVeque, 1979: pairwise updating), so that every merge is associative. A measure
of DISTINCT values takes in the values that are new to their group, as their value table tells.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from spark_sinks.duckdb import value_tables
from spark_sinks.duckdb.join_sides import FeedState
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.value_tables import ValueTable
from spark_sinks.duckdb.windows import Aging, Removal, Watch, Windowing

NULLS = "_nulls"  # the table of keys with a NULL, beside the state's own
JOIN = "_join"  # of the tables of a join that a view reads, before their own words
ROWS = "_rows"  # that of the contributions of a changelog's rows
SETTLED = "_settled"  # that of what contributions gave which are kept no more
OUTBOX = "_outbox"  # that of what is to be written elsewhere


class Measure(enum.Enum):
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MOMENTS = "moments"


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
        values = (value_tables.table_name(self.table, i) for i in range(len(self.values)))
        return (self.table, *([f"{self.table}{NULLS}"] if self.key_types else []), *values)

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


@dataclass(frozen=True)
class AppendState:
    """A projection's rows. ``types`` are DuckDB types of c0, c1 ..."""

    table: str
    types: tuple[str, ...]
    aging: Aging | None = None

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table,)


def watched(state: State) -> Watch | None:
    """None where there is no watermark."""
    if isinstance(state, AppendState) and state.aging is not None:
        aging = state.aging
        return Watch(aging.delay_us, Removal(state.tables, EVENT_US, aging.retention_us))
    if isinstance(state, FeedState) and state.side.watched is not None:
        return Watch(state.side.delay_us, moved=tuple(state.join.low_statements()))
    if not isinstance(state, UpsertState) or state.windowing is None:
        return None
    windowing, removal = state.windowing, None
    if windowing.retention_us is not None:
        removal = Removal(state.tables, f"epoch_us(k{windowing.end_key})", windowing.retention_us)
    return Watch(windowing.delay_us, removal)


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
    return beside.removesuffix(NULLS).removesuffix(ROWS).removesuffix(OUTBOX).removesuffix(SETTLED)


def create_statements(state: State) -> list[str]:
    """DDL of a state; a keyless aggregate starts with its one row, as SELECT count(*) over nothing has."""
    if not isinstance(state, (UpsertState, AppendState)):
        return state.create_statements()
    if isinstance(state, AppendState):
        columns = [f"c{i} {kind}" for i, kind in enumerate(state.types)]
        columns += [f"{EVENT_US} BIGINT"] if state.aging is not None else []
        return [f"CREATE TABLE {qualified(state.table)} ({', '.join(columns)})"]
    keys = [f"{name} {kind}" for name, kind in zip(state.keys, state.key_types, strict=True)]
    values = [f"{name} {kind}" for name, kind in state.state_columns]
    beside = [
        value_tables.create_statement(state.table, i, state.key_types, each) for i, each in enumerate(state.values)
    ]
    if not state.keys:
        return [
            f"CREATE TABLE {qualified(state.table)} ({', '.join(['k UTINYINT PRIMARY KEY', *values])})",
            f"INSERT INTO {qualified(state.table)} VALUES (0, {_zeros(state)})",
            *beside,
        ]
    grows = state.windowing is not None and state.windowing.gap_us is not None
    primary = [] if grows else [f"PRIMARY KEY ({', '.join(state.keys)})"]
    return [
        f"CREATE TABLE {qualified(state.table)} ({', '.join([*keys, *values, *primary])})",
        f"CREATE TABLE {qualified(state.table + NULLS)} ({', '.join([*keys, *values])})",
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
    return ", ".join("0" if _is_count(name, state) else "NULL" for name, _ in state.state_columns)


def drop_statements(state: State) -> list[str]:
    return [f"DROP TABLE IF EXISTS {qualified(table)}" for table in state.tables]


def source_text(state: UpsertState) -> str:
    """A FROM item with the columns k0 ..., n, m0 ... of all rows."""
    columns = ", ".join([*state.keys, *(name for name, _ in state.state_columns)])
    if not state.keys:
        return f"(SELECT {columns} FROM {qualified(state.table)})"
    return (
        f"(SELECT {columns} FROM {qualified(state.table)} UNION ALL "
        f"SELECT {columns} FROM {qualified(state.table + NULLS)})"
    )


def merge_statement(state: UpsertState, rolled_up: str, *, nulls: bool) -> str:
    """Upserts rows of ``rolled_up``, a query with the columns of the state; ``nulls``: those with a NULL in a key.

    MERGE, since ON CONFLICT would have DuckDB look for rows of equal keys among them first, which a roll-up has not.
    """
    keys = state.keys or ("k",)
    table, equal = (state.table + NULLS, "IS NOT DISTINCT FROM") if nulls else (state.table, "=")
    same = " AND ".join(f"t.{key} {equal} s.{key}" for key in keys)
    updates = ", ".join(f"{name} = {value}" for name, value in _merged(state, "t", "s"))
    names = [*keys, *(name for name, _ in state.state_columns)]
    return (
        f"MERGE INTO {qualified(table)} AS t USING ({rolled_up}) AS s ON {same} "
        f"WHEN MATCHED THEN UPDATE SET {updates} "
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
    )


def _is_count(name: str, state: UpsertState) -> bool:
    if name == "n":
        return True
    counts = {
        column
        for i, measure in enumerate(state.measures)
        if measure.kind in (Measure.COUNT, Measure.MOMENTS)
        for column, _ in measure.columns(i)[:1]
    }
    return name in counts


def _merged(state: UpsertState, old: str, new: str) -> list[tuple[str, str]]:
    """(column, merged value) for each state column."""
    pairs: list[tuple[str, str]] = [("n", f"{old}.n + {new}.n")]
    for i, measure in enumerate(state.measures):
        column = f"m{i}"
        if measure.kind is Measure.COUNT:
            pairs.append((column, f"{old}.{column} + {new}.{column}"))
        elif measure.kind is Measure.SUM:
            pairs.append((column, f"coalesce({old}.{column} + {new}.{column}, {old}.{column}, {new}.{column})"))
        elif measure.kind is Measure.MIN:
            pairs.append((column, f"least({old}.{column}, {new}.{column})"))  # least and greatest skip NULL
        elif measure.kind is Measure.MAX:
            pairs.append((column, f"greatest({old}.{column}, {new}.{column})"))
        else:
            pairs.extend(_merged_moments(column, old, new))
    return pairs


def _merged_moments(column: str, old: str, new: str) -> list[tuple[str, str]]:
    n_old, n_new = f"{old}.{column}_n", f"{new}.{column}_n"
    total = f"({n_old} + {n_new})"
    delta = f"({new}.{column}_mean - {old}.{column}_mean)"
    share = f"({n_new}::DOUBLE / {total})"
    mean = f"{old}.{column}_mean + {delta} * {share}"
    m2 = f"{old}.{column}_m2 + {new}.{column}_m2 + {delta} * {delta} * {n_old} * {share}"
    return [
        (f"{column}_n", total),
        (f"{column}_mean", _by_side(n_old, n_new, f"{old}.{column}_mean", f"{new}.{column}_mean", mean)),
        (f"{column}_m2", _by_side(n_old, n_new, f"{old}.{column}_m2", f"{new}.{column}_m2", m2)),
    ]


def _by_side(n_old: str, n_new: str, only_old: str, only_new: str, both: str) -> str:
    return f"CASE WHEN {n_new} = 0 THEN {only_old} WHEN {n_old} = 0 THEN {only_new} ELSE {both} END"


@dataclass(frozen=True)
class MeasureInput:
    """Where a batch holds a measure. In row mode ``argument`` is the column of evaluated arguments (one row is one
    record); in partial mode ``partial`` are the columns of partial values, in the order of the state columns."""

    argument: str | None = None
    partial: tuple[str, ...] = ()


def roll_up(
    state: UpsertState,
    relation: str,
    *,
    keys: Sequence[str],
    passing: str,
    count: str | None,
    inputs: Sequence[MeasureInput],
    nulls: bool | None,
    anyway: bool = False,
) -> str:
    """The query that reduces a batch to one row a key, shaped as the state.

    ``passing``: condition that a row belongs to the view; ``count``: column with the number of records behind a partial
    row, None in row mode. ``nulls``: only keys with (True) or without (False) a NULL, or all (None).
    ``anyway``: the group without keys is there also where nothing is in it.
    """
    conditions = [passing]
    if nulls is not None and keys:
        any_null = " OR ".join(f"{key} IS NULL" for key in keys)
        conditions.append(f"({any_null})" if nulls else f"NOT ({any_null})")
    where = " AND ".join(conditions)
    selected: list[str] = [f"{key} AS k{i}" for i, key in enumerate(keys)] if keys else ["0 AS k"]
    selected.append(("count(*)" if count is None else f"sum({count})::BIGINT") + " AS n")
    grouping = f" GROUP BY {', '.join(keys)}" if keys else "" if anyway else " HAVING n > 0"
    source = relation
    if count is not None and any(m.kind is Measure.MOMENTS and m.values is None for m in state.measures):
        source = _with_group_means(state, relation, keys, where, inputs)
        where = "true"
    for i, (measure, given) in enumerate(zip(state.measures, inputs, strict=True)):
        if measure.values is None:
            selected.extend(rolled(i, measure, given))
    rolled_up = f"SELECT {', '.join(selected)} FROM {source} WHERE {where}{grouping}"
    return _with_new_values(state, rolled_up) if any(m.values is not None for m in state.measures) else rolled_up


def _with_new_values(state: UpsertState, rolled_up: str) -> str:
    """Adds to each group of a batch its measures of the values that are new to it."""
    keys = state.keys or ("k",)
    columns = [f"r.{name}" for name in (*keys, "n")]
    measured: dict[int, list[str]] = {}
    for i, measure in enumerate(state.measures):
        if measure.values is None:
            columns += [f"r.{name}" for name, _ in measure.columns(i)]
            continue
        measured.setdefault(measure.values, []).extend(rolled(i, measure, MeasureInput(argument="v")))
        for name, _ in measure.columns(i):
            column = f"d{measure.values}.{name}"
            columns.append(f"coalesce({column}, 0) AS {name}" if _is_count(name, state) else column)
    joins = []
    for index, texts in measured.items():
        selected = ", ".join([*state.keys, *texts])
        grouping = f" GROUP BY {', '.join(state.keys)}" if state.keys else ""
        same = " AND ".join(f"r.{key} IS NOT DISTINCT FROM d{index}.{key}" for key in state.keys) or "true"
        values = value_tables.new_values(index, state.key_types)
        joins.append(f"LEFT JOIN (SELECT {selected} FROM {values}{grouping}) AS d{index} ON {same}")
    return f"SELECT {', '.join(columns)} FROM ({rolled_up}) AS r {' '.join(joins)}"


def merged_partials(state: UpsertState, relation: str) -> str:
    """The query that merges rows shaped as the state, several of a key; the one group without keys is there anyway."""
    return roll_up(
        state,
        f"(SELECT * RENAME (n AS records) FROM {relation})",
        keys=state.keys,
        passing="true",
        count="records",
        inputs=[
            MeasureInput(partial=tuple(name for name, _ in measure.columns(i)))
            for i, measure in enumerate(state.measures)
        ],
        nulls=None,
        anyway=True,
    )


def rolled(index: int, measure: StateMeasure, given: MeasureInput) -> list[str]:
    column = f"m{index}"
    if given.argument is not None:
        a, once = given.argument, "DISTINCT " if measure.distinct else ""
        if measure.kind is Measure.COUNT:
            return [f"count({once}{a}) AS {column}"]
        if measure.kind is Measure.SUM:
            return [f"sum({once}{a})::{measure.type} AS {column}"]
        if measure.kind is Measure.MOMENTS:
            return [
                f"count({once}{a}) AS {column}_n",
                f"avg({once}{a}::DOUBLE) AS {column}_mean",
                f"var_pop({once}{a}::DOUBLE) * count({once}{a}) AS {column}_m2",
            ]
        return [f"{measure.kind.value}({a}) AS {column}"]
    if measure.kind is Measure.COUNT:
        return [f"sum({given.partial[0]})::BIGINT AS {column}"]
    if measure.kind is Measure.MOMENTS:
        n, mean, m2 = given.partial
        return [
            f"sum({n})::BIGINT AS {column}_n",
            f"any_value(g{index}) AS {column}_mean",
            f"sum({m2} + {n} * ({mean} - g{index}) * ({mean} - g{index})) AS {column}_m2",
        ]
    if measure.kind is Measure.SUM:
        return [f"sum({given.partial[0]})::{measure.type} AS {column}"]
    return [f"{measure.kind.value}({given.partial[0]}) AS {column}"]


def _with_group_means(
    state: UpsertState, relation: str, keys: Sequence[str], where: str, inputs: Sequence[MeasureInput]
) -> str:
    """Adds each group's mean to its partial rows: squared deviations are combined around it without cancellation."""
    window = f"(PARTITION BY {', '.join(keys)})" if keys else "()"
    means = [
        f"sum({given.partial[0]} * {given.partial[1]}) OVER {window} "
        f"/ nullif(sum({given.partial[0]}) OVER {window}, 0) AS g{i}"
        for i, (measure, given) in enumerate(zip(state.measures, inputs, strict=True))
        if measure.kind is Measure.MOMENTS and measure.values is None
    ]
    return f"(SELECT *, {', '.join(means)} FROM {relation} WHERE {where})"


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
