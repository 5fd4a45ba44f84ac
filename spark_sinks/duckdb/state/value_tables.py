"""Value tables: the values that an aggregate's argument took in each group of a view, each kept once.

DISTINCT needs to know which values of a batch are new to their group; exact percentiles need how often each value came.
Both are a table beside the view's state with a row for each group and value. A view's state takes in only the new
values of a batch, so that reading COUNT(DISTINCT x) costs what reading COUNT(x) does; percentiles are computed from
the counts when the view is read.

A group whose key holds a NULL is found by a mark of its NULLs (``z``, a digit for each key) and fillers in their
place, since a primary key refuses NULL.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_sinks.duckdb.names import qualified

SUFFIX = "_values"
_RANKS = 64  # a sketch's value is register * 64 + rank
_REGISTERS = 4_096
_FILLERS = {
    "DATE": "2000-01-01",
    "TIME": "00:00:00",
    "TIMESTAMP": "2000-01-01 00:00:00",
    "TIMESTAMPTZ": "2000-01-01 00:00:00+00",
}


@dataclass(frozen=True)
class ValueTable:
    """``type`` is DuckDB's type of the values; ``counted``: with how often each came; ``timed``: a value is another one
    at another event time; ``nullable``: NULL is a value, and the argument a list that holds it."""

    type: str
    counted: bool = False
    timed: bool = False
    nullable: bool = False

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """What makes a row another one of its group, as (name, DuckDB type)."""
        times = [("t", "BIGINT")] if self.timed else []
        return (*times, *([("u", "UTINYINT")] if self.nullable else []), ("v", self.type))  # u: 1 for NULL

    def texts(self, arguments: Sequence[str]) -> list[str]:
        """What goes into ``columns``, by a batch's columns of time, where it is kept, and argument."""
        *times, argument = arguments
        if not self.nullable:
            return [*times, argument]
        value = f"{argument}[1]"
        return [*times, f"CASE WHEN {value} IS NULL THEN 1 ELSE 0 END", _filled(value, self.type)]


class Ordered(enum.Enum):
    """What is computed from counted values in their order."""

    CONTINUOUS = "continuous"  # interpolated between the two nearest values
    DISCRETE = "discrete"  # the first value that covers the fraction
    MOST_FREQUENT = "most frequent"
    JOINED = "joined"  # all values in the order of their times, or each once in their own order
    COLLECTED = "collected"  # the same as an array
    GREATEST = "greatest"  # the greatest values, descending, as an array
    LEAST = "least"  # the least values, ascending, as an array
    MOST_OFTEN = "most often"  # the values that came most often, as an array; of equally frequent ones the least first
    LEAST_OFTEN = "least often"
    CARDINALITY = "cardinality"  # how many values a sketch has seen, about


@dataclass(frozen=True)
class OrderedValue:
    """One such result; ``fraction``, 0 to 1, is a percentile's, ``separator`` a joined text's; ``once``: equal values
    count once; ``limit`` is how many values an array has at most, 0 for all."""

    kind: Ordered
    fraction: float = 0.0
    descending: bool = False
    separator: str = ""
    once: bool = False
    limit: int = 0


_CHOSEN: Mapping[Ordered, str] = {
    Ordered.GREATEST: "v DESC", Ordered.LEAST: "v", Ordered.MOST_OFTEN: "n DESC, v", Ordered.LEAST_OFTEN: "n, v",
}  # fmt: skip
_PLAIN = frozenset({Ordered.JOINED, Ordered.COLLECTED, *_CHOSEN})  # need no window over their group
_PERCENTILES = frozenset({Ordered.CONTINUOUS, Ordered.DISCRETE})


def table_name(state_table: str, index: int) -> str:
    return f"{state_table}{SUFFIX}{index}"


def new_values_relation(index: int) -> str:
    """The name under which the writer gives the values that a batch brought first."""
    return f"mv_new_values{index}"


def _qualified(state_table: str, index: int) -> str:
    return qualified(table_name(state_table, index))


def _group_columns(key_types: Sequence[str]) -> list[str]:
    return ["z", *(f"k{i}" for i in range(len(key_types)))] if key_types else []


def create_statement(state_table: str, index: int, key_types: Sequence[str], values: ValueTable) -> str:
    group = _group_columns(key_types)
    types = ["VARCHAR", *key_types] if key_types else []
    columns = [f"{name} {kind}" for name, kind in zip(group, types, strict=True)]
    columns += [f"{name} {kind}" for name, kind in values.columns]
    if values.counted:
        columns.append("n BIGINT")
    columns.append(f"PRIMARY KEY ({', '.join([*group, *(name for name, _ in values.columns)])})")
    return f"CREATE TABLE {_qualified(state_table, index)} ({', '.join(columns)})"


def merge_statement(
    state_table: str,
    index: int,
    key_types: Sequence[str],
    values: ValueTable,
    *,
    relation: str,
    keys: Sequence[str],
    passing: str,
    count: str | None,
    arguments: Sequence[str],
) -> str:
    """Takes in a batch's values; where they are not counted, it returns those that are new to their group.

    ``keys``, ``passing`` and ``count`` name columns of the batch, as for a roll-up; ``arguments`` are the event time,
    where it is kept, and the value.
    """
    group = _group_columns(key_types)
    selected = [_mark(keys)] if keys else []
    selected += [_filled(key, kind) for key, kind in zip(keys, key_types, strict=True)]
    selected += values.texts(arguments)
    if values.counted:
        selected.append("count(*)" if count is None else f"sum({count})::BIGINT")
    unique = [*group, *(name for name, _ in values.columns)]
    names = [*unique, *(["n"] if values.counted else [])]
    grouping = ", ".join(dict.fromkeys([*keys, *arguments]))
    known = " AND ".join(f"{argument} IS NOT NULL" for argument in arguments)
    action = "UPDATE SET n = old.n + excluded.n" if values.counted else f"NOTHING RETURNING {', '.join(unique)}"
    return (
        f"INSERT INTO {_qualified(state_table, index)} AS old ({', '.join(names)}) SELECT {', '.join(selected)} "
        f"FROM {relation} WHERE {passing} AND {known} GROUP BY {grouping} "
        f"ON CONFLICT ({', '.join(unique)}) DO {action}"
    )


@dataclass(frozen=True)
class Moving:
    """Values of sessions that have grown: ``selected`` are those that get other bounds, with these; ``deleted`` takes
    them away, and ``put`` adds those of a relation to what is there."""

    selected: str
    deleted: str
    put: str


def moving(
    state_table: str,
    index: int,
    key_types: Sequence[str],
    values: ValueTable,
    *,
    bounds: tuple[int, int],
    sessions: str,
    relation: str,
) -> Moving:
    """``bounds`` are the places of a session's begin and end among the keys. ``sessions`` names the rows k0 ... of
    those that have grown, ``relation`` what ``put`` reads."""
    group, table = _group_columns(key_types), _qualified(state_table, index)
    start, end = (f"k{place}" for place in bounds)
    keys = [f"s.k{place}" for place in range(len(key_types))]
    filled = [_filled(key, kind) for key, kind in zip(keys, key_types, strict=True)]
    same = [f"old.k{place} = {filled[place]}" for place in range(len(keys)) if place not in bounds]
    inside = " AND ".join(
        [
            f"old.z = {_mark(keys)}", *same, f"s.{start} <= old.{start}", f"old.{end} <= s.{end}",
            f"(old.{start} <> s.{start} OR old.{end} <> s.{end})",
        ]
    )  # fmt: skip
    unique = [*group, *(name for name, _ in values.columns)]
    kept = [f"old.{name}" for name, _ in values.columns]
    chosen = ", ".join(f"{text} AS {name}" for text, name in zip([_mark(keys), *filled, *kept], unique, strict=True))
    by = ", ".join(str(place + 1) for place in range(len(unique)))
    return Moving(
        f"SELECT {chosen}, sum(old.n)::BIGINT AS n FROM {table} AS old JOIN {sessions} AS s ON {inside} GROUP BY {by}",
        f"DELETE FROM {table} AS old WHERE EXISTS (SELECT 1 FROM {sessions} AS s WHERE {inside})",
        f"INSERT INTO {table} AS old ({', '.join([*unique, 'n'])}) SELECT {', '.join([*unique, 'n'])} FROM {relation} "
        f"ON CONFLICT ({', '.join(unique)}) DO UPDATE SET n = old.n + excluded.n",
    )


def _mark(keys: Sequence[str]) -> str:
    return f"concat({', '.join(f'CASE WHEN {key} IS NULL THEN 1 ELSE 0 END' for key in keys)})"


def _filled(key: str, kind: str) -> str:
    return f"coalesce({key}, CAST('{_FILLERS.get(kind, '0')}' AS {kind}))"


def _keys(key_types: Sequence[str]) -> list[str]:
    """The group's keys, NULLs in their places again."""
    return [f"CASE WHEN substr(z, {i + 1}, 1) = '0' THEN k{i} END" for i in range(len(key_types))]


def new_values(index: int, key_types: Sequence[str]) -> str:
    """A FROM item with the columns k0 ... and v of the new values."""
    columns = [f"{text} AS k{i}" for i, text in enumerate(_keys(key_types))]
    return f"(SELECT {', '.join([*columns, 'v'])} FROM {new_values_relation(index)})"


# --- finishing ------------------------------------------------------------------------------------------------------
def ordered_values(
    state_table: str,
    index: int,
    key_types: Sequence[str],
    values: ValueTable,
    wanted: Sequence[tuple[str, OrderedValue]],
    prefix: str,
) -> str:
    """A FROM item with a row for each group: its keys, named ``prefix``0 ..., and ``wanted`` by name."""
    group = _group_columns(key_types)
    partition = f"PARTITION BY {', '.join(group)}" if group else ""
    windows = dict(_window(each, partition) for _, each in wanted if each.kind not in _PLAIN)
    if _PERCENTILES & {each.kind for _, each in wanted}:
        windows["total"] = f"sum(n) OVER ({partition})::DOUBLE"
    kept = [name for name, _ in values.columns]
    inner = ", ".join([*group, *kept, "n", *(f"{text} AS {name}" for name, text in windows.items())])
    columns = [f"{text} AS {prefix}{i}" for i, text in enumerate(_keys(key_types))]
    columns += [f"{_ordered(each)} AS {name}" for name, each in wanted]
    grouping = f" GROUP BY {', '.join(group)}" if group else ""
    return f"(SELECT {', '.join(columns)} FROM (SELECT {inner} FROM {_qualified(state_table, index)}){grouping})"


def _window(wanted: OrderedValue, partition: str) -> tuple[str, str]:
    """How many values stand up to and with a value, in the order that is asked for; or the highest count."""
    if wanted.kind is Ordered.MOST_FREQUENT:
        return "peak", f"max(n) OVER ({partition})"
    if wanted.kind is Ordered.CARDINALITY:
        by_register = f"{partition}, v // {_RANKS}" if partition else f"PARTITION BY v // {_RANKS}"
        return "highest", f"max(v) OVER ({by_register})"
    if wanted.descending:
        return "falling", f"sum(n) OVER ({partition} ORDER BY v DESC)"
    return "rising", f"sum(n) OVER ({partition} ORDER BY v)"


def _ordered(wanted: OrderedValue) -> str:
    if wanted.kind is Ordered.JOINED:
        separator = "'" + wanted.separator.replace("'", "''") + "'"
        if wanted.once:
            return f"string_agg(v, {separator} ORDER BY v)"
        return f"string_agg(v || repeat({separator} || v, n - 1), {separator} ORDER BY t, v)"
    if wanted.kind is Ordered.COLLECTED:
        return _collected(wanted)
    if wanted.kind in _CHOSEN:
        return _chosen(wanted)
    if wanted.kind is Ordered.CARDINALITY:
        return _cardinality()
    pick = "max" if wanted.descending else "min"
    if wanted.kind is Ordered.MOST_FREQUENT:
        return f"{pick}(v) FILTER (WHERE n = peak)"
    reach = "falling" if wanted.descending else "rising"
    share = f"CAST('{wanted.fraction!r}' AS DOUBLE)"
    if wanted.kind is Ordered.DISCRETE:
        return f"{pick}(v) FILTER (WHERE {reach} >= greatest(ceil({share} * total), 1))"
    place = f"({share} * (total - 1))"
    low = f"{pick}(v) FILTER (WHERE {reach} > floor({place}))"
    high = f"{pick}(v) FILTER (WHERE {reach} > ceil({place}))"
    rest = f"any_value({place} - floor({place}))"
    return f"CASE WHEN {rest} = 0 THEN {low} ELSE {low} + {rest} * ({high} - {low}) END"


def _collected(wanted: OrderedValue) -> str:
    value, first = "CASE WHEN u = 0 THEN v END", f"[1:{wanted.limit}]" if wanted.limit else ""
    if wanted.once:
        return f"list({value} ORDER BY u, v){first}"
    count = f"least(n, {wanted.limit})" if wanted.limit else "n"
    return f"flatten(list(list_resize([{value}], {count}, {value}) ORDER BY t, u, v)){first}"


def _chosen(wanted: OrderedValue) -> str:
    order = _CHOSEN[wanted.kind]
    if wanted.once or wanted.kind in (Ordered.MOST_OFTEN, Ordered.LEAST_OFTEN):
        return f"list(v ORDER BY {order})[1:{wanted.limit}]"
    return f"flatten(list(list_resize([v], least(n, {wanted.limit}), v) ORDER BY {order}))[1:{wanted.limit}]"


def _cardinality() -> str:
    """HyperLogLog's estimate over the highest rank of each register, and linear counting where many are empty."""
    m = _REGISTERS
    seen = "(count(*) FILTER (WHERE v = highest))"
    inverse = f"(sum(pow(2.0, -(v % {_RANKS}))) FILTER (WHERE v = highest) + ({m} - {seen}))"
    raw = f"({0.7213 / (1 + 1.079 / m) * m * m!r}::DOUBLE / {inverse})"
    return f"round(CASE WHEN {raw} <= {2.5 * m} AND {seen} < {m} THEN {m} * ln({m} / ({m} - {seen})) ELSE {raw} END)"
