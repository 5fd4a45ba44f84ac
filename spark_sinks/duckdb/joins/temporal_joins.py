"""The temporal join: each row of a stream meets the version of its key that was valid at its event time.

The changelog's rows are kept as versions; a deletion is one too. A row of the stream waits until the changelog's mark
has passed its time. A version that comes later than that, by its own mark, is too late for it: so the answer depends on
the order of the records in each source alone, and an idle changelog is the only thing that a clock decides.

Where something else than the primary key is compared, a row of the stream meets each row of the changelog whose version
of that time has it. Versions are then found by what is compared, and hide each other by the primary key.

A version is seen by the times from ``e`` on, before ``h``, where a later one hides it. The last version of each row of
the changelog has a table of its own, which is as large as the changelog. The others lie in the order in which they were
hidden. So who looks for the versions of a time reads the last ones, and of the others only those hidden since.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.logs import NEVER
from spark_sinks.duckdb.joins import join_sides
from spark_sinks.duckdb.joins.join_sides import EVER, INCOMING, Batch, MarkedSides, alone
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.record_columns import PLACE, RANK
from spark_sinks.duckdb.state.windows import MARK, source_mark

RELEASED = "mv_released"  # a temporary table: rows of the stream that need wait no longer
_CHAIN = "mv_chain"  # another: the versions of the batch's keys that hide each other; ``odd``: not in their order


_VERSION = ("t BIGINT", "e BIGINT", "n BIGINT", "r TIMESTAMPTZ", "deleted BOOLEAN")


@dataclass(frozen=True)
class TemporalTables(MarkedSides):
    """``left`` is the stream and keeps what waits, ``right`` the changelog and keeps versions. A row of the stream that
    comes more than ``kept_us`` behind its mark sees the version of that long before the mark."""

    kept_us: int
    residual: str | None = None

    @property
    def tables(self) -> tuple[str, ...]:
        return (*super().tables, *self._version_tables)

    @property
    def _version_tables(self) -> tuple[str, ...]:
        """Those of versions besides the last ones."""
        return (self.past,)

    @property
    def past(self) -> str:
        """The table of the versions that later ones hide."""
        return f"{self.right.table}_past"

    @property
    def _hidden(self) -> str:
        return qualified(self.past)

    def create_statements(self) -> list[str]:
        return [*join_sides.create_statements(self, self._waiting, _VERSION), self._create_past()]

    @property
    def _waiting(self) -> tuple[str, ...]:
        return ("t BIGINT", "x BIGINT", "r TIMESTAMPTZ", *(["own BIGINT"] if self.log.marked else []))

    def _create_past(self) -> str:
        return f"CREATE TABLE {self._hidden} ({', '.join([*self.right.typed, *_VERSION, 'h BIGINT'])})"

    def upgrade_statements(self, known: Collection[str]) -> list[str]:
        """Where there was no table of hidden versions yet, all lie in that of the last ones."""
        if self.past in known or self.right.table not in known:
            return []
        columns = ", ".join(self._version)
        return [
            self._create_past(),
            f"CREATE OR REPLACE TEMP TABLE {_CHAIN} AS SELECT {columns} FROM {self.right.qualified}",
            f"DELETE FROM {self.right.qualified}",
            self._hide(),
            f"INSERT INTO {self.right.qualified} ({columns}) {self._last()}",
            f"DROP TABLE {_CHAIN}",
        ]

    def feed_statements(self, index: int, batch: Batch) -> list[str]:
        extra: tuple[str, ...] = (f"NOT {batch.passing} AS deleted",)
        if index == 0:
            extra = () if self.left.watched is None else (f"{MARK} AS own",)
        side = join_sides.side_of(self._fed, index)
        extra += tuple(f"{mine} AS {name}" for mine, name in zip(batch.primary_key, side.primary_key, strict=True))
        rows = join_sides.timed(self._fed, index, join_sides.with_marks(side, batch), *extra)
        return [
            f"CREATE OR REPLACE TEMP TABLE {INCOMING} AS {rows}",
            *(self._take_rows() if index == 0 else self._take_versions()),
            *join_sides.carry_statements(side, batch),
            *join_sides.mark_statements(self, index),
            *self._close_statements(self._hopeless() if index == 0 and side.preserved else ()),
            *(self._forget_versions() if index == 1 else []),
            f"DROP TABLE {INCOMING}",
            *logs.trim_statements(self.log),
        ]

    @property
    def _fed(self) -> TemporalTables:
        """The same, whose sides have the columns that batches have."""
        return self

    @property
    def _arrivals(self) -> str:
        """Where what comes of the changelog goes."""
        return self.right.qualified

    def _take_rows(self) -> list[str]:
        side = self.left
        kept = ", ".join(
            (*side.keys, *side.columns, "t", f"greatest(t, w - {self.kept_us})", "r", *self._marked(self._own))
        )
        return [f"INSERT INTO {side.qualified} SELECT {kept} FROM {INCOMING} WHERE {side.can_match}"]

    def _hopeless(self) -> tuple[str, ...]:
        """Rows that meet nobody whatever comes."""
        columns = ", ".join((alone(self, 0, "s"), *self._marked(self._own)))
        return (f"SELECT {columns} FROM {INCOMING} s WHERE NOT ({self.left.can_match})",)

    @property
    def _own(self) -> str:
        """The mark of a row of the stream that it is late by; NULL for none."""
        return f"nullif(w, {NEVER})" if self.left.watched is None else "own"

    def _marked(self, column: str) -> tuple[str, ...]:
        return (column,) if self.log.marked else ()

    def low_statements(self) -> list[str]:
        """As far as the stream is, but not beyond a row that waits: its windows are open until it comes."""
        if not self.log.marked:
            return []
        waiting = f"SELECT min(greatest(t, own)) FROM {self.left.qualified}"
        if self.left.watched is None:
            come_to = join_sides.mark(self, 0, idle=join_sides.greatest_mark(self, 0))
            return logs.low_statements(self.log, f"SELECT least({come_to}, ({waiting}))")
        return logs.low_statements(
            self.log,
            f"SELECT least(mark, ({waiting})) FROM ({source_mark([self.left.watched])}) WHERE mark IS NOT NULL",
        )

    def _take_versions(self) -> list[str]:
        """What a batch hides, and what it hides itself, is found among the last versions of its keys: the keys of which
        versions come in the order of their times. Of the others all versions are looked at anew."""
        side, columns = self.right, ", ".join(self._version)
        odd = "known AND row_number() OVER times > 1 OR coalesce(e > lead(e) OVER times, false) AS odd"
        others = f"{self._hidden} v WHERE EXISTS (SELECT 1 FROM {_CHAIN} o WHERE o.odd AND {self._same('o', 'v')})"
        matched = ", ".join(f"{name} = c.{name}" for name in self._version if name not in self._identity)
        return [
            f"CREATE OR REPLACE TEMP TABLE {_CHAIN} AS WITH came AS MATERIALIZED ({self._came()}) "
            f"SELECT {columns}, {odd} FROM (SELECT false AS known, {columns} FROM came UNION ALL "
            f"SELECT true, {columns} FROM {side.qualified} v "
            f"WHERE EXISTS (SELECT 1 FROM came o WHERE {self._same('o', 'v')})) WINDOW times AS ({self._times})",
            f"INSERT INTO {_CHAIN} SELECT {columns}, false FROM {others}",
            f"DELETE FROM {others}",
            self._hide(),
            f"MERGE INTO {side.qualified} AS v USING ({self._last()}) AS c ON {self._same('c', 'v')} "
            f"WHEN MATCHED THEN UPDATE SET {matched} WHEN NOT MATCHED THEN INSERT ({columns}) "
            f"VALUES ({', '.join(f'c.{name}' for name in self._version)})",
            f"DROP TABLE {_CHAIN}",
        ]

    def _came(self) -> str:
        """A record without an event time, as a deletion may be, is of the time that its partition had come to."""
        side = self._fed.right
        earlier = f"PARTITION BY part ORDER BY {RANK}, {PLACE} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        time = f"coalesce(t, greatest(mark, max(t) OVER ({earlier})), {NEVER})"
        columns = ", ".join((*side.primary_key, *side.keys, *side.columns))
        last = f"(SELECT coalesce(max(n), 0) FROM {self._arrivals})"
        rows = (
            f"SELECT {columns}, {time} AS t, w, {last} + row_number() OVER (ORDER BY {RANK}, {PLACE}) AS n, r, deleted "
            f"FROM {INCOMING}"
        )
        whole = " AND ".join(f"{key} IS NOT NULL" for key in self._identity)
        return f"SELECT {columns}, t, greatest(t, w) AS e, n, r, deleted FROM ({rows}) WHERE {whole}"

    def _hide(self) -> str:
        """Keeps the versions of the chain that a later one hides; not those that nobody can have seen."""
        columns = ", ".join(self._version)
        later = f"min(e) OVER ({self._times} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)"
        hidden = f"SELECT {columns}, {later} AS h FROM {_CHAIN}"
        return f"INSERT INTO {self._hidden} ({columns}, h) SELECT {columns}, h FROM ({hidden}) WHERE h > e ORDER BY h"

    def _last(self) -> str:
        """The last version of each key of the chain. Its number is the greatest of all of them, so that the next one's
        is greater."""
        columns = ", ".join(
            f"max(n) OVER ({self._by_identity}) AS n" if name == "n" else name for name in self._version
        )
        last = f"row_number() OVER ({self._by_identity} ORDER BY t DESC, {_CHAIN}.n DESC) = 1"
        return f"SELECT {columns} FROM {_CHAIN} QUALIFY {last}"

    @property
    def _version(self) -> tuple[str, ...]:
        """The columns of a version."""
        side = self.right
        return (*side.primary_key, *side.keys, *side.columns, "t", "e", "n", "r", "deleted")

    @property
    def _identity(self) -> tuple[str, ...]:
        """What tells the changelog's rows apart: its primary key, which may be what is compared."""
        return self.right.primary_key or self.right.keys

    def _identities(self) -> str:
        return ", ".join(self._identity)

    def _same(self, one: str, other: str) -> str:
        return " AND ".join(f"{one}.{name} = {other}.{name}" for name in self._identity)

    @property
    def _by_identity(self) -> str:
        return f"PARTITION BY {self._identities()}"

    @property
    def _times(self) -> str:
        """The versions of a row of the changelog in the order in which they hide each other."""
        return f"{self._by_identity} ORDER BY t, n"

    def close_statements(self) -> list[str]:
        return self._close_statements()

    def _close_statements(self, also: Sequence[str] = ()) -> list[str]:
        """``also`` are queries of rows that go into the log besides."""
        left, right = self.left, self.right
        passed = f"x < {join_sides.mark(self, 1, idle=str(EVER))}"
        given = ["greatest(p.r, v.r)", *(f"p.{column}" for column in left.columns)]
        given += [f"v.{column}" for column in right.columns]
        rows = (
            f"SELECT {', '.join([*given, 'make_timestamptz(p.t)', *self._marked('p.own')])} FROM {RELEASED} p "
            f"{'LEFT ' if left.preserved else ''}JOIN ({self._valid()}) v ON v.id = p.id"
        )
        return [
            f"CREATE OR REPLACE TEMP TABLE {RELEASED} AS SELECT *, row_number() OVER () AS id FROM {left.qualified} "
            f"WHERE {passed}",
            *logs.append_statements(self.log, [*also, rows]),
            f"DELETE FROM {left.qualified} WHERE {passed}",
            f"DROP TABLE {RELEASED}",
            *self.low_statements(),
        ]

    def _valid(self) -> str:
        """Of each released row what it meets: the versions that it sees, by what is compared."""
        right = self.right
        columns = ", ".join((*right.keys, *right.columns, "e", "r", "deleted"))
        # A column compared with one query: DuckDB then reads only the row groups that may have such rows.
        versions = (
            f"SELECT {columns}, {EVER} AS h FROM {right.qualified} UNION ALL SELECT {columns}, h FROM {self._hidden} "
            f"WHERE h > (SELECT min(x) FROM {RELEASED})"
        )
        seen = "v.e <= p.x AND p.x < v.h AND NOT v.deleted"
        on = [f"p.{key} = v.{key}" for key in right.keys]
        on.append(
            seen
            if self.residual is None
            else f"CASE WHEN {seen} THEN {self.residual.format(l='p', r='v')} ELSE false END"
        )
        told = ", ".join(f"v.{name}" for name in (*right.columns, "r"))
        return f"SELECT p.id, {told} FROM {RELEASED} p JOIN ({versions}) v ON {' AND '.join(on)}"

    def _forget_versions(self) -> list[str]:
        """Those that are hidden from every row that waits or may come."""
        return [f"DELETE FROM {self._hidden} WHERE h <= (SELECT {self._horizon})"]

    @property
    def _horizon(self) -> str:
        """A version that a later one of that time hides is seen by no row that waits or may come."""
        oldest = f"(SELECT min(x) FROM {self.left.qualified})"
        return f"least({join_sides.least_mark(self, 0)} - {self.kept_us}, {oldest})"
