"""The temporal join: each row of a stream meets the version of its key that was valid at its event time.

The changelog's rows are kept as versions; a deletion is one too. A row of the stream waits until the changelog's mark
has passed its time. A version that comes later than that, by its own mark, is too late for it: so the answer depends on
the order of the records in each source alone, and an idle changelog is the only thing that a clock decides.

Where something else than the primary key is compared, a row of the stream meets each row of the changelog whose version
of that time has it. Versions are then found by what is compared, and hide each other by the primary key.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.logs import NEVER
from spark_sinks.duckdb.joins import join_sides
from spark_sinks.duckdb.joins.join_sides import EVER, INCOMING, Batch, MarkedSides, alone
from spark_sinks.duckdb.record_columns import PLACE, RANK
from spark_sinks.duckdb.state.windows import MARK, source_mark

RELEASED = "mv_released"  # a temporary table: rows of the stream that need wait no longer


@dataclass(frozen=True)
class TemporalTables(MarkedSides):
    """``left`` is the stream and keeps what waits, ``right`` the changelog and keeps versions. A row of the stream that
    comes more than ``kept_us`` behind its mark sees the version of that long before the mark."""

    kept_us: int
    residual: str | None = None

    def create_statements(self) -> list[str]:
        versions = ("t BIGINT", "e BIGINT", "n BIGINT", "r TIMESTAMPTZ", "deleted BOOLEAN")
        return join_sides.create_statements(self, self._waiting, versions)

    @property
    def _waiting(self) -> tuple[str, ...]:
        return ("t BIGINT", "x BIGINT", "r TIMESTAMPTZ", *(["own BIGINT"] if self.log.marked else []))

    def feed_statements(self, index: int, batch: Batch) -> list[str]:
        extra: tuple[str, ...] = (f"NOT {batch.passing} AS deleted",)
        if index == 0:
            extra = () if self.left.watched is None else (f"{MARK} AS own",)
        taking = self._take_rows() if index == 0 else self._take_versions()
        side = join_sides.side_of(self._fed, index)
        extra += tuple(f"{mine} AS {name}" for mine, name in zip(batch.primary_key, side.primary_key, strict=True))
        rows = join_sides.timed(self._fed, index, join_sides.with_marks(side, batch), *extra)
        return [
            f"CREATE OR REPLACE TEMP TABLE {INCOMING} AS {rows}",
            *taking,
            *join_sides.carry_statements(side, batch),
            *join_sides.mark_statements(self, index),
            *self.close_statements(),
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
        alone_ = ", ".join((alone(self, 0, "s"), *self._marked(self._own)))
        hopeless = f"SELECT {alone_} FROM {INCOMING} s WHERE NOT ({side.can_match})"
        return [
            *(logs.append_statements(self.log, [hopeless]) if side.preserved else []),
            f"INSERT INTO {side.qualified} SELECT {kept} FROM {INCOMING} WHERE {side.can_match}",
        ]

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
        return [
            f"INSERT INTO {self._arrivals} SELECT {columns}, t, greatest(t, w), n, r, deleted FROM ({rows}) "
            f"WHERE {whole}"
        ]

    @property
    def _identity(self) -> tuple[str, ...]:
        """What tells the changelog's rows apart: its primary key, which may be what is compared."""
        return self.right.primary_key or self.right.keys

    def close_statements(self) -> list[str]:
        left, right = self.left, self.right
        passed = f"x < {join_sides.mark(self, 1, idle=str(EVER))}"
        met = "v.id = p.id AND NOT v.deleted"
        if right.primary_key:
            met += "".join(f" AND v.{key} = p.{key}" for key in right.keys)
        if self.residual is not None:
            met += f" AND {self.residual.format(l='p', r='v')}"
        given = ["greatest(p.r, v.r)", *(f"p.{column}" for column in left.columns)]
        given += [f"v.{column}" for column in right.columns]
        rows = (
            f"SELECT {', '.join([*given, 'make_timestamptz(p.t)', *self._marked('p.own')])} FROM {RELEASED} p "
            f"{'LEFT ' if left.preserved else ''}JOIN ({self._valid()}) v ON {met}"
        )
        return [
            f"CREATE OR REPLACE TEMP TABLE {RELEASED} AS SELECT *, row_number() OVER () AS id FROM {left.qualified} "
            f"WHERE {passed}",
            *logs.append_statements(self.log, [rows]),
            f"DELETE FROM {left.qualified} WHERE {passed}",
            f"DROP TABLE {RELEASED}",
            *self.low_statements(),
        ]

    def _valid(self) -> str:
        """Of each released row, the versions of its time of all rows of the changelog that it may meet."""
        right = self.right
        same = " AND ".join(f"p.{key} = v.{key}" for key in right.keys)
        released = f"{RELEASED} p"
        if right.primary_key:  # first the rows of which some version has the key, whenever that was
            found = ", ".join(f"v.{key}" for key in right.primary_key)
            released = (
                f"(SELECT DISTINCT p.id, p.x, {found} FROM {RELEASED} p "
                f"JOIN {right.qualified} v ON {same} AND v.e <= p.x) p"
            )
            same = " AND ".join(f"p.{key} = v.{key}" for key in right.primary_key)
        told = ", ".join(f"v.{name}" for name in (*right.keys, *right.columns, "r", "deleted"))
        each = ", ".join(["p.id", *(f"v.{key}" for key in right.primary_key)])
        return (
            f"SELECT p.id, {told} FROM {released} JOIN {right.qualified} v ON {same} AND v.e <= p.x "
            f"QUALIFY row_number() OVER (PARTITION BY {each} ORDER BY v.t DESC, v.n DESC) = 1"
        )

    @property
    def _horizon(self) -> str:
        """A version that a later one of that time hides is seen by no row that waits or may come."""
        oldest = f"(SELECT min(x) FROM {self.left.qualified})"
        return f"least({join_sides.least_mark(self, 0)} - {self.kept_us}, {oldest})"

    def _forget_versions(self) -> list[str]:
        """Of the keys of the batch, those that nobody can see any more."""
        side = self.right
        same = " AND ".join(f"s.{key} = v.{key}" for key in self._identity)
        touched = " AND ".join(f"i.{key} = v.{key}" for key in self._identity)
        return [
            f"DELETE FROM {side.qualified} v WHERE EXISTS (SELECT 1 FROM {INCOMING} i WHERE {touched}) "
            f"AND EXISTS (SELECT 1 FROM {side.qualified} s WHERE {same} AND (s.t > v.t OR (s.t = v.t AND s.n > v.n)) "
            f"AND s.e <= {self._horizon})"
        ]
