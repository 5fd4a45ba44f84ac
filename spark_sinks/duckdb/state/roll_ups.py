"""A batch reduced to one row a key, shaped as the state that it merges into: for one view, or for several that
group alike, in one query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from spark_sinks.duckdb.state import value_tables
from spark_sinks.duckdb.state.state import Measure, StateMeasure, UpsertState, has_nested_floats, is_count


@dataclass(frozen=True)
class MeasureInput:
    """Where a batch holds a measure. In row mode ``argument`` is the column of evaluated arguments (one row is one
    record); in partial mode ``partial`` are the columns of partial values, in the order of the state columns."""

    argument: str | None = None
    partial: tuple[str, ...] = ()


@dataclass(frozen=True)
class RollUp:
    """What a view takes of ``relation``.

    ``passing``: condition that a row belongs to the view; ``count``: column with the number of records behind a partial
    row, None in row mode. ``nulls``: only keys with (True) or without (False) a NULL, or all (None).
    ``anyway``: the group without keys is there also where nothing is in it.
    """

    state: UpsertState
    relation: str
    keys: tuple[str, ...]
    inputs: tuple[MeasureInput, ...]
    passing: str = "true"
    count: str | None = None
    nulls: bool | None = None
    anyway: bool = False

    @cached_property
    def query(self) -> str:
        rolled_up = roll_up_together([self]).query
        distinct = any(measure.values is not None for measure in self.state.measures)
        return _with_new_values(self.state, rolled_up) if distinct else rolled_up

    @property
    def combines_moments(self) -> bool:
        measures = self.state.measures
        return self.count is not None and any(m.kind is Measure.MOMENTS and m.values is None for m in measures)


@dataclass(frozen=True)
class Together:
    """``columns``: for each of the roll-ups, the columns of the query that are those of its state, by their names."""

    query: str
    columns: tuple[Mapping[str, str], ...]


def roll_up_together(parts: Sequence[RollUp]) -> Together:
    """Several roll-ups of the same keys, but for their measures of DISTINCT values. A key is there where a row of it
    belongs to one of the views; those to which none belongs have counts of 0 in it."""
    first = parts[0]
    passing = list(dict.fromkeys(part.passing for part in parts))
    conditions = passing if len(passing) == 1 else [f"({' OR '.join(passing)})"]
    if first.nulls is not None and first.keys:
        any_null = " OR ".join(f"{key} IS NULL" for key in first.keys)
        conditions.append(f"({any_null})" if first.nulls else f"NOT ({any_null})")
    source, where = first.relation, " AND ".join(conditions)
    if any(part.combines_moments for part in parts):
        source, where = _with_group_means(parts, passing, where), "true"
    selected = [(f"k{i}", key) for i, key in enumerate(first.keys)] if first.keys else [("k", "0")]
    columns: list[dict[str, str]] = []
    known: dict[str, str] = {}
    for number, part in enumerate(parts):
        mine = {}
        for name, text in _aggregates(part, _own(part, passing)):
            column = known.get(text) if number else None  # what another view takes too is computed once
            if column is None:
                column = f"{name}_{number}" if number else name
                known[text] = column
                selected.append((column, text))
            mine[name] = column
        columns.append(mine)
    grouping = f" GROUP BY {', '.join(first.keys)}" if first.keys else "" if first.anyway else " HAVING n > 0"
    items = ", ".join(f"{text} AS {column}" for column, text in selected)
    return Together(f"SELECT {items} FROM {source} WHERE {where}{grouping}", tuple(columns))


def _aggregates(part: RollUp, own: str) -> list[tuple[str, str]]:
    """The columns of its state, and what makes them."""
    found = [("n", f"count(*){own}" if part.count is None else _added_counts(part.count, own))]
    for i, (measure, given) in enumerate(zip(part.state.measures, part.inputs, strict=True)):
        if measure.values is None:
            found += rolled(i, measure, given, own)
    return found


def merged_partials(state: UpsertState, relation: str) -> str:
    """The query that merges rows shaped as the state, several of a key; the one group without keys is there anyway."""
    return RollUp(
        state,
        f"(SELECT * RENAME (n AS records) FROM {relation})",
        keys=state.keys,
        count="records",
        inputs=tuple(
            MeasureInput(partial=tuple(name for name, _ in measure.columns(i)))
            for i, measure in enumerate(state.measures)
        ),
        anyway=True,
    ).query


def rolled(index: int, measure: StateMeasure, given: MeasureInput, own: str = "") -> list[tuple[str, str]]:
    """The columns of a measure, and the aggregates that make them. ``own``: the FILTER clause of a view that shares
    the query."""
    column = f"m{index}"
    if given.argument is not None:
        a, once = given.argument, "DISTINCT " if measure.distinct else ""
        if measure.kind is Measure.COUNT:
            return [(column, f"count({once}{a}){own}")]
        if measure.kind is Measure.SUM:
            return [(column, f"(sum({once}{a}){own})::{measure.type}")]
        if measure.kind is Measure.MOMENTS:
            return [
                (f"{column}_n", f"count({once}{a}){own}"),
                (f"{column}_mean", f"avg({once}{a}::DOUBLE){own}"),
                (f"{column}_m2", f"var_pop({once}{a}::DOUBLE){own} * count({once}{a}){own}"),
            ]
        return [(column, _extreme(measure, a, own))]
    if measure.kind is Measure.COUNT:
        return [(column, _added_counts(given.partial[0], own))]
    if measure.kind is Measure.MOMENTS:
        n, mean, m2 = given.partial
        middle = _mean_of_group(given)
        return [
            (f"{column}_n", _added_counts(n, own)),
            (f"{column}_mean", f"any_value({middle}){own}"),
            (f"{column}_m2", f"sum({m2} + {n} * ({mean} - {middle}) * ({mean} - {middle})){own}"),
        ]
    if measure.kind is Measure.SUM:
        return [(column, f"(sum({given.partial[0]}){own})::{measure.type}")]
    return [(column, _extreme(measure, given.partial[0], own))]


def _extreme(measure: StateMeasure, value: str, own: str) -> str:
    """The least or the greatest; of a structure or an array the value itself, since its sort key has no -0."""
    pick = measure.kind.value
    if not has_nested_floats(measure.type):
        return f"{pick}({value}){own}"
    timed = _TIMED_NUMBER.fullmatch(measure.type)
    if timed is None:
        order = "ASC" if measure.kind is Measure.MIN else "DESC"
        return f"(list({value} ORDER BY {value} {order} NULLS LAST){own})[1]"
    signed = f"{{'t': {value}.t, 'v': {value}.v, 'z': signbit({value}.v)}}"
    found = f"{pick}(CASE WHEN {value} IS NOT NULL THEN {signed} END){own}"
    time, number, minus = (f"struct_extract({found}, '{name}')" for name in "tvz")
    number = f"CASE WHEN {number} = 0 AND {minus} THEN '-0'::{timed[1]} ELSE {number} END"
    return f"CASE WHEN {found} IS NOT NULL THEN {{'t': {time}, 'v': {number}}} END"


_TIMED_NUMBER = re.compile(r"STRUCT\(t BIGINT, v (DOUBLE|FLOAT|REAL)\)")


def _added_counts(column: str, own: str) -> str:
    return f"coalesce(sum({column}){own}, 0)::BIGINT" if own else f"sum({column})::BIGINT"


def _mean_of_group(given: MeasureInput) -> str:
    return f"{given.partial[1]}_of_group"


def _own(part: RollUp, passing: Sequence[str]) -> str:
    """What leaves out the rows of the other views, where these are not all the same."""
    return "" if len(passing) == 1 else f" FILTER (WHERE {part.passing})"


def _with_group_means(parts: Sequence[RollUp], passing: Sequence[str], where: str) -> str:
    """Adds each group's means to its partial rows: squared deviations are combined around them without cancellation."""
    window = f"(PARTITION BY {', '.join(parts[0].keys)})" if parts[0].keys else "()"
    means = {}
    for part in parts:
        own = _own(part, passing)
        for measure, given in zip(part.state.measures, part.inputs, strict=True):
            if measure.kind is Measure.MOMENTS and measure.values is None:
                n, mean, _ = given.partial
                whole = f"sum({n} * {mean}){own} OVER {window} / nullif(sum({n}){own} OVER {window}, 0)"
                means[_mean_of_group(given)] = whole
    added = ", ".join(f"{text} AS {name}" for name, text in means.items())
    return f"(SELECT *, {added} FROM {parts[0].relation} WHERE {where})"


def _with_new_values(state: UpsertState, rolled_up: str) -> str:
    """Adds to each group of a batch its measures of the values that are new to it."""
    keys = state.keys or ("k",)
    columns = [f"r.{name}" for name in (*keys, "n")]
    measured: dict[int, list[str]] = {}
    for i, measure in enumerate(state.measures):
        if measure.values is None:
            columns += [f"r.{name}" for name, _ in measure.columns(i)]
            continue
        texts = [f"{text} AS {column}" for column, text in rolled(i, measure, MeasureInput(argument="v"))]
        measured.setdefault(measure.values, []).extend(texts)
        for name, _ in measure.columns(i):
            column = f"d{measure.values}.{name}"
            columns.append(f"coalesce({column}, 0) AS {name}" if is_count(name, state) else column)
    joins = []
    for index, texts in measured.items():
        selected = ", ".join([*state.keys, *texts])
        grouping = f" GROUP BY {', '.join(state.keys)}" if state.keys else ""
        same = " AND ".join(f"r.{key} IS NOT DISTINCT FROM d{index}.{key}" for key in state.keys) or "true"
        values = value_tables.new_values(index, state.key_types)
        joins.append(f"LEFT JOIN (SELECT {selected} FROM {values}{grouping}) AS d{index} ON {same}")
    return f"SELECT {', '.join(columns)} FROM ({rolled_up}) AS r {' '.join(joins)}"
