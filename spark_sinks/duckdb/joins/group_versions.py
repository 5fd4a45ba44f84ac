"""The join of a stream with groups: each row of the stream meets its group as it was at its event time.

A group at a time is made of what its source had come to then: of each partition, the records up to the first one behind
that time. So what has come waits until the mark of the whole source has passed it, and is then added in the order of
time. Each moment at which a group changes gives a version of its state, and the versions are joined as those of a
changelog's rows. The batches that the records came in have no part in it.

A source whose rows are replaced has signed contributions: a record takes back what the one before it of its primary
key gave.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from spark_sinks.duckdb.changes.logs import NEVER
from spark_sinks.duckdb.joins import join_sides
from spark_sinks.duckdb.joins.join_sides import EVER
from spark_sinks.duckdb.joins.temporal_joins import RELEASED, TemporalTables
from spark_sinks.duckdb.layout import NamedText
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.state.state import Measure, StateMeasure

STATE = "s"  # what the names of a state's columns begin with, beside a version's own

_VERSION = ("e BIGINT", "r TIMESTAMPTZ", "deleted BOOLEAN")  # what a version has besides

# Temporary tables, in the order in which they are made.
_DUE = "mv_version_due"  # what the mark has passed
_SIGNED = "mv_version_signed"  # what it gives to groups, and takes from them
_LAST = "mv_version_last"  # the last versions of these groups
_ADDED = "mv_versions"  # the versions behind them
_TEMPORARY = (_DUE, _SIGNED, _LAST, _ADDED)


@dataclass(frozen=True)
class GroupsMade:
    """How groups are made of contributions, the rows that the side is fed with, and finished.

    ``types`` are of the columns v0, v1 ... of a contribution. ``arguments`` are what the measures take, over these;
    ``further`` are those of them that are the same in the whole group. ``inner`` are keys and finished aggregates over
    the columns of a version, ``outputs`` and ``having`` are over them.
    """

    types: tuple[str, ...]
    measures: tuple[StateMeasure, ...]
    arguments: tuple[str, ...]
    further: tuple[int, ...]
    inner: tuple[NamedText, ...]
    outputs: tuple[str, ...]
    having: str | None = None

    @property
    def further_columns(self) -> tuple[str, ...]:
        return tuple(f"{STATE}f{i}" for i in range(len(self.further)))

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The state of a group, as (name, DuckDB type): how many rows it has, first."""
        measures = ((name, kind) for i, each in enumerate(self.measures) for name, kind in each.columns(i))
        named = [(f"{STATE}{name}", kind) for name, kind in (("n", "BIGINT"), *measures)]
        return (*named, *zip(self.further_columns, (self.types[i] for i in self.further), strict=True))

    def added(self, *, signed: bool) -> list[NamedText]:
        """What contributions that come at one moment come to."""
        found = [(f"{STATE}n", "sum(s)::BIGINT")]
        for index, (measure, a) in enumerate(zip(self.measures, self.arguments, strict=True)):
            (name, _), *_ = measure.columns(index)
            if not signed:
                text = f"{measure.kind.value}({a})"
            elif measure.kind is Measure.COUNT:
                text = f"count({a}) FILTER (s = 1) - count({a}) FILTER (s = -1)"
            else:
                came, went = (f"coalesce(sum({a}) FILTER (s = {sign}), 0)" for sign in (1, -1))
                text = f"{came} - {went}"
            kind = "BIGINT" if measure.kind is Measure.COUNT else measure.type
            found.append((f"{STATE}{name}", f"({text})::{kind}"))
        return [*found, *((name, f"max(v{i})") for name, i in zip(self.further_columns, self.further, strict=True))]

    def running(self, window: str) -> list[NamedText]:
        """What they come to with all before them."""
        added = {f"{STATE}n", *(f"{STATE}m{i}" for i, m in enumerate(self.measures) if m.kind in _SUMMED)}
        least = {f"{STATE}m{i}" for i, m in enumerate(self.measures) if m.kind is Measure.MIN}
        return [
            (name, f"({'sum' if name in added else 'min' if name in least else 'max'}({name}) OVER {window})::{kind}")
            for name, kind in self.columns
        ]


_SUMMED = (Measure.COUNT, Measure.SUM)


@dataclass(frozen=True)
class GroupVersionTables(TemporalTables):
    """``right`` has the groups' keys and the types of their outputs. It has a primary key where the rows of its source
    are replaced, which is that of the source."""

    made: GroupsMade = field(kw_only=True)

    @property
    def _version_tables(self) -> tuple[str, ...]:
        return (self._new, *([self._rows] if self._replaced else []))

    @property
    def _new(self) -> str:
        """What the mark has not passed yet."""
        return f"{self.right.table}_new"

    @property
    def _rows(self) -> str:
        """The last contribution of each row of the source that the mark has passed."""
        return f"{self.right.table}_rows"

    @property
    def _replaced(self) -> bool:
        return bool(self.right.primary_types)

    @property
    def _fed(self) -> TemporalTables:
        return replace(self, right=replace(self.right, types=self.made.types))

    @property
    def _arrivals(self) -> str:
        return qualified(self._new)

    def create_statements(self) -> list[str]:
        versions = replace(self, right=replace(self.right, types=(), primary_types=()))
        state = (f"{name} {kind}" for name, kind in self.made.columns)
        contributed = [*self._fed.right.typed, "t BIGINT"]
        arrived = [*contributed, "e BIGINT", "n BIGINT", "r TIMESTAMPTZ", "deleted BOOLEAN"]
        return [
            *join_sides.create_statements(versions, self._waiting, (*state, *_VERSION)),
            f"CREATE TABLE {self._arrivals} ({', '.join(arrived)})",
            *([f"CREATE TABLE {qualified(self._rows)} ({', '.join(contributed)})"] if self._replaced else []),
        ]

    def upgrade_statements(self, known: Collection[str]) -> list[str]:
        return []  # all versions of a group lie together

    def _take_versions(self) -> list[str]:
        return [f"INSERT INTO {self._arrivals} {self._came()}"]

    def _close_statements(self, also: Sequence[str] = ()) -> list[str]:
        return [
            *self._take_due(),
            *super()._close_statements(also),
            self._forget(),
            *(f"DROP TABLE {name}" for name in _TEMPORARY),
        ]

    def _forget_versions(self) -> list[str]:
        return []  # with what the mark has passed

    def _valid(self) -> str:
        right, names = self.right, [name for name, _ in self.made.columns]
        same = " AND ".join(f"p.{key} = v.{key}" for key in right.keys)
        told = ", ".join(f"v.{name}" for name in (*right.keys, *names, "r"))
        # A group has one version of a moment: DuckDB finds the last one by sorting both.
        rows = (
            f"SELECT p.id, v.deleted, {told} FROM {RELEASED} p ASOF JOIN {right.qualified} v ON {same} AND p.x >= v.e"
        )
        inner = ", ".join(f"{text} AS {name}" for name, text in self.made.inner)
        finished = f"SELECT id, r, {inner} FROM ({rows}) WHERE NOT deleted"
        outputs = [f"{text} AS {name}" for name, text in zip(right.columns, self.made.outputs, strict=True)]
        having = "" if self.made.having is None else f" WHERE {self.made.having}"
        groups = f"SELECT {', '.join(['id', 'r', *outputs])} FROM ({finished}){having}"
        if self.residual is None:
            return groups
        residual = self.residual.format(l="p", r="v")  # which may fail for rows that do not meet
        met = f"p.id = v.id AND CASE WHEN p.id = v.id THEN {residual} ELSE false END"
        return f"SELECT v.* FROM {RELEASED} p JOIN ({groups}) v ON {met}"

    def _forget(self) -> str:
        """Of the groups that have changed, the versions that nobody can see any more."""
        right, keys = self.right, ", ".join(self.right.keys)
        changed = f"SELECT DISTINCT {keys} FROM {_SIGNED}"
        last = (
            f"SELECT {keys}, max(e) AS e FROM {right.qualified} SEMI JOIN ({changed}) USING ({keys}) "
            f"WHERE e <= {self._horizon} GROUP BY {keys}"
        )
        later = f"SELECT 1 FROM ({last}) l WHERE {_same('v', 'l', right.keys)} AND v.e < l.e"
        return f"DELETE FROM {right.qualified} v WHERE EXISTS ({later})"

    # --- versions -------------------------------------------------------------------------------------------------
    def _take_due(self) -> Iterator[str]:
        passed = f"e < {join_sides.mark(self, 1, idle=str(EVER))}"
        yield f"CREATE OR REPLACE TEMP TABLE {_DUE} AS SELECT * FROM {self._arrivals} WHERE {passed}"
        yield f"DELETE FROM {self._arrivals} WHERE {passed}"
        if self._replaced:
            yield f"CREATE OR REPLACE TEMP TABLE {_SIGNED} AS {self._changes_of_rows()}"
            yield from self._keep_rows()
        else:
            given = ", ".join(self._contributed)
            yield f"CREATE OR REPLACE TEMP TABLE {_SIGNED} AS SELECT {given}, e, r, 1 AS s FROM {_DUE}"
        right, keys = self.right, ", ".join(self.right.keys)
        changed = f"SELECT DISTINCT {keys} FROM {_SIGNED}"
        last = f"SELECT {keys}, max(e) AS e FROM {right.qualified} SEMI JOIN ({changed}) USING ({keys}) GROUP BY {keys}"
        yield (
            f"CREATE OR REPLACE TEMP TABLE {_LAST} AS SELECT v.* FROM {right.qualified} v "
            f"JOIN ({last}) l ON {_same('v', 'l', (*right.keys, 'e'))}"
        )
        yield f"CREATE OR REPLACE TEMP TABLE {_ADDED} AS {self._versions()}"
        again = f"SELECT 1 FROM {_ADDED} a WHERE {_same('v', 'a', (*right.keys, 'e'))}"
        yield f"DELETE FROM {right.qualified} v WHERE EXISTS ({again})"
        yield f"INSERT INTO {right.qualified} BY NAME SELECT * FROM {_ADDED}"

    @property
    def _contributed(self) -> tuple[str, ...]:
        """The columns of a contribution but for the primary key of its row."""
        fed = self._fed.right
        return (*fed.keys, *fed.columns, "t")

    def _changes_of_rows(self) -> str:
        """What the rows of the source give, and what those before them of their primary keys gave."""
        primary, names = self.right.primary_key, self._contributed
        row = ", ".join((*primary, *names))
        known = (
            f"SELECT {row}, {NEVER} AS e, -1 AS n, NULL AS r, false AS deleted FROM {qualified(self._rows)} v "
            f"WHERE EXISTS (SELECT 1 FROM {_DUE} d WHERE {_same('v', 'd', primary)})"
        )
        before = ", ".join(f"lag({name}) OVER w AS {name}" for name in (*names, "deleted"))
        window = f"WINDOW w AS (PARTITION BY {', '.join(primary)} ORDER BY e, n)"
        told = f"SELECT {row}, e, n, r, deleted FROM {_DUE} UNION ALL {known}"
        given = ", ".join(names)
        whole = " AND ".join(["NOT deleted", *(f"{key} IS NOT NULL" for key in self.right.keys)])
        return (
            f"SELECT {given}, e, r, 1 AS s FROM {_DUE} WHERE {whole} UNION ALL "
            f"SELECT {given}, e, r, -1 FROM (SELECT {before}, e, r FROM ({told}) q {window}) WHERE {whole}"
        )

    def _keep_rows(self) -> Iterator[str]:
        rows, primary = qualified(self._rows), self.right.primary_key
        row = ", ".join((*primary, *self._contributed))
        last = f"PARTITION BY {', '.join(primary)} ORDER BY e DESC, n DESC"
        yield f"DELETE FROM {rows} v WHERE EXISTS (SELECT 1 FROM {_DUE} d WHERE {_same('v', 'd', primary)})"
        yield (
            f"INSERT INTO {rows} ({row}) SELECT {row} FROM {_DUE} "
            f"QUALIFY row_number() OVER ({last}) = 1 AND NOT deleted"
        )

    def _versions(self) -> str:
        """A version for each moment at which a group changes. What comes for a time that an idle source had passed
        is of the time of the last version, which it replaces."""
        right, names = self.right, [name for name, _ in self.made.columns]
        keys = ", ".join(right.keys)
        time = f"greatest(s.e, coalesce(l.e, {NEVER}))"
        added = ", ".join(f"{text} AS {name}" for name, text in self.made.added(signed=self._replaced))
        timed = (
            f"SELECT s.* EXCLUDE (e), {time} AS e FROM {_SIGNED} s LEFT JOIN {_LAST} l ON {_same('s', 'l', right.keys)}"
        )
        fresh = f"SELECT true AS fresh, {keys}, e, max(r) AS r, {added} FROM ({timed}) GROUP BY {keys}, e"
        known = f"SELECT false, {keys}, e, r, {', '.join(names)} FROM {_LAST}"
        window = f"w AS (PARTITION BY {keys} ORDER BY fresh, e ROWS UNBOUNDED PRECEDING)"
        running = ", ".join(f"{text} AS {name}" for name, text in self.made.running("w"))
        rows = (
            f"SELECT fresh, {keys}, e, max(r) OVER w AS r, {running} FROM ({fresh} UNION ALL {known}) WINDOW {window}"
        )
        return f"SELECT {keys}, {', '.join(names)}, e, r, {STATE}n = 0 AS deleted FROM ({rows}) WHERE fresh"


def _same(one: str, other: str, columns: Sequence[str]) -> str:
    return " AND ".join(f"{one}.{column} = {other}.{column}" for column in columns)
